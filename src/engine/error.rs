//! Why a server gave no sighting: a closed kind, and words that may be shown to anybody.

use std::fmt;
use std::io;

use crate::policy::sighting::ProbeFailure;

/// The longest text of an error, in characters. What a server says is not ours to trust.
const LONGEST: usize = 240;

/// Why a server gave no sighting.
///
/// Its text is safe to show: bounded, without control characters, and never with a password, because drivers put none in
/// their errors and we add none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineError {
    kind: ProbeFailure,
    text: String,
}

impl EngineError {
    /// An error of this kind.
    pub fn new(kind: ProbeFailure, text: impl AsRef<str>) -> Self {
        Self {
            kind,
            text: presentable(text.as_ref()),
        }
    }

    /// The closed kind.
    pub fn kind(&self) -> ProbeFailure {
        self.kind
    }

    /// What the operating system said of an attempt to connect.
    pub(super) fn connecting(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => ProbeFailure::Refused,
            io::ErrorKind::TimedOut => ProbeFailure::Timeout,
            _ => ProbeFailure::Unreachable,
        };
        Self::new(kind, format!("connect: {error}"))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for EngineError {}

/// `text` without what could break a log, a terminal or a status.
pub(super) fn presentable(text: &str) -> String {
    let harmless = |c: char| if c.is_control() || is_invisible(c) { ' ' } else { c };
    let mut short: String = text.chars().take(LONGEST).map(harmless).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short.trim().to_owned()
}

/// Characters that change how others are shown: directions, joiners, byte order marks.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_made_presentable() {
        let hostile = format!("\u{1b}[31mred\r\nFATAL \u{202e}txet{}", "x".repeat(10_000));
        let error = EngineError::new(ProbeFailure::QueryFailed, hostile);
        let text = error.to_string();
        assert!(text.starts_with("[31mred  FATAL  txet"), "{text}");
        assert!(text.chars().count() <= LONGEST + 1);
        assert!(!text.chars().any(char::is_control));
    }

    #[test]
    fn the_operating_system_tells_refusal_from_silence() {
        for (kind, failure) in [
            (io::ErrorKind::ConnectionRefused, ProbeFailure::Refused),
            (io::ErrorKind::ConnectionReset, ProbeFailure::Refused),
            (io::ErrorKind::HostUnreachable, ProbeFailure::Unreachable),
            (io::ErrorKind::NetworkUnreachable, ProbeFailure::Unreachable),
            (io::ErrorKind::TimedOut, ProbeFailure::Timeout),
        ] {
            assert_eq!(
                EngineError::connecting(&io::Error::from(kind)).kind(),
                failure,
                "{kind}"
            );
        }
    }
}
