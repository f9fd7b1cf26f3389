//! The states of a member and of a service, as people see them.

use super::settings::Fallback;

/// Where a member stands in one service.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MemberState {
    /// Not yet proven.
    Pending,
    /// Proven, and in the list by freshness.
    Serving,
    /// Its bound exceeds the limit.
    Lagging,
    /// Within the admission mark again, waiting for dwell and spacing.
    Recovering,
    /// Not eligible whatever its lag: role, identity, pod, or a person said so.
    Excluded,
}

impl MemberState {
    /// Every state, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Serving,
        Self::Lagging,
        Self::Recovering,
        Self::Excluded,
    ];

    /// The word used in status, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Serving => "Serving",
            Self::Lagging => "Lagging",
            Self::Recovering => "Recovering",
            Self::Excluded => "Excluded",
        }
    }
}

/// How a service is decided right now. The first that applies, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ServiceState {
    /// A person froze what is published.
    Paused,
    /// Some member was never measured and the process is young: what is published stays.
    ColdStart,
    /// Nobody answers us, the primary included: what is published stays, without end.
    ControllerIsolated,
    /// Most members are silent at once, or the primary is not known: what is published stays.
    Frozen,
    /// No fallback gives an endpoint: the list is empty.
    Exhausted,
    /// Members that are not fresh, or the primary, are in the list.
    Fallback(Fallback),
    /// The primary gives no sign: members are judged by its last confirmed position.
    PrimarySilent,
    /// Some member is out or does not answer, or the list is below its floor.
    Degraded,
    /// Everyone is in.
    Normal,
}

impl ServiceState {
    /// Every state, in the order of precedence.
    pub const ALL: [Self; 12] = [
        Self::Paused,
        Self::ColdStart,
        Self::ControllerIsolated,
        Self::Frozen,
        Self::Exhausted,
        Self::Fallback(Fallback::Primary),
        Self::Fallback(Fallback::LeastLagged),
        Self::Fallback(Fallback::KeepLast),
        Self::Fallback(Fallback::None),
        Self::PrimarySilent,
        Self::Degraded,
        Self::Normal,
    ];

    /// The word used in status, metrics and logs; which fallback it is comes separately.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "Paused",
            Self::ColdStart => "ColdStart",
            Self::ControllerIsolated => "ControllerIsolated",
            Self::Frozen => "Frozen",
            Self::Exhausted => "Exhausted",
            Self::Fallback(_) => "Fallback",
            Self::PrimarySilent => "PrimarySilent",
            Self::Degraded => "Degraded",
            Self::Normal => "Normal",
        }
    }

    /// The fallback in force, when one is.
    pub const fn fallback(self) -> Option<Fallback> {
        match self {
            Self::Fallback(policy) => Some(policy),
            Self::Paused
            | Self::ColdStart
            | Self::ControllerIsolated
            | Self::Frozen
            | Self::Exhausted
            | Self::PrimarySilent
            | Self::Degraded
            | Self::Normal => None,
        }
    }
}

/// How a replica's proven position moves, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Under a twentieth of real time.
    Stalled,
    /// Slower than the primary writes.
    FallingBehind,
    /// As fast.
    Steady,
    /// Faster.
    CatchingUp,
}

impl Phase {
    /// The word used in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stalled => "Stalled",
            Self::FallingBehind => "FallingBehind",
            Self::Steady => "Steady",
            Self::CatchingUp => "CatchingUp",
        }
    }

    /// The phase of a frontier that advanced by `speed` seconds of the primary's time per second.
    pub fn of(speed: f64) -> Self {
        match speed {
            s if s < 0.05 => Self::Stalled,
            s if s < 0.95 => Self::FallingBehind,
            s if s <= 1.05 => Self::Steady,
            _ => Self::CatchingUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_meet_at_their_boundaries() {
        for (speed, phase) in [
            (0.0, Phase::Stalled),
            (0.049, Phase::Stalled),
            (0.05, Phase::FallingBehind),
            (0.949, Phase::FallingBehind),
            (0.95, Phase::Steady),
            (1.05, Phase::Steady),
            (1.051, Phase::CatchingUp),
        ] {
            assert_eq!(Phase::of(speed), phase, "{speed}");
        }
    }
}
