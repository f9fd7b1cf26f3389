//! Positions: what a primary has at an instant, and a replica either contains or does not.
//!
//! A position means something only within a [`History`]: one timeline of one database cluster. Positions of different
//! histories are never compared here; [`super::timeline`] says how far an ancestor's positions carry over.

use std::fmt;

/// Which database cluster a server belongs to: what its data descends from.
///
/// On PostgreSQL the system identifier. Two servers with different identities never share data, whatever their
/// addresses say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClusterId(pub u128);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One history of one primary. A promotion starts a new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct History {
    /// Whose data it is.
    pub cluster: ClusterId,
    /// The timeline within the cluster; rises by one or more with each promotion.
    pub timeline: u32,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {} timeline {}", self.cluster, self.timeline)
    }
}

/// One run of one server process: its start time in microseconds, compared for equality only.
///
/// A restarted standby may have forgotten what it had shown (it answers again from its last consistent point), so a
/// new incarnation voids what the old one proved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Incarnation(pub i64);

/// A PostgreSQL log sequence number: a byte position in the write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// The sizes that decide where the write-ahead log has headers instead of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalGeometry {
    /// `wal_block_size` in bytes.
    pub page: u64,
    /// `wal_segment_size` in bytes.
    pub segment: u64,
}

impl WalGeometry {
    /// What PostgreSQL is built with unless told otherwise: 8 KiB pages, 16 MiB segments.
    pub const DEFAULT: Self = Self {
        page: 8 * 1024,
        segment: 16 * 1024 * 1024,
    };

    /// Size of the header that begins a page, and of the longer one that begins a segment (`xlog_internal.h`:
    /// `SizeOfXLogShortPHD` and `SizeOfXLogLongPHD`, both rounded up to 8 bytes; the same since PostgreSQL 9.3).
    const PAGE_HEADER: u64 = 24;
    const SEGMENT_HEADER: u64 = 40;

    /// The position that a standby must have replayed to hold everything before the insert position `insert`.
    ///
    /// Right after a page switch the insert position already lies behind the page's header, where no record ends: a
    /// standby that replayed everything shows the boundary, a few bytes less. Without this rule every replica of an
    /// idle pool looks behind for ever once in a page (8 KiB of log).
    pub const fn reachable(self, insert: Lsn) -> Lsn {
        if self.page == 0 || self.segment == 0 {
            return insert;
        }
        if insert.0 % self.segment == Self::SEGMENT_HEADER {
            return Lsn(insert.0 - Self::SEGMENT_HEADER);
        }
        if insert.0 % self.page == Self::PAGE_HEADER {
            return Lsn(insert.0 - Self::PAGE_HEADER);
        }
        insert
    }
}

/// What a primary has at an instant, ordered within one history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// PostgreSQL: everything before this byte of the write-ahead log.
    Lsn(Lsn),
}

impl Position {
    /// Whether whoever has `self` has everything that `other` stands for. False across engines.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lsn(mine), Self::Lsn(theirs)) => mine >= theirs,
        }
    }

    /// What both `self` and `other` contain: the smaller of the two.
    pub fn common(&self, other: &Self) -> Self {
        if self.contains(other) {
            other.clone()
        } else {
            self.clone()
        }
    }

    /// How much of `self` is missing in `other`, in bytes of write-ahead log; zero when nothing is.
    pub fn ahead_of(&self, other: &Self) -> u64 {
        match (self, other) {
            (Self::Lsn(mine), Self::Lsn(theirs)) => mine.0.saturating_sub(theirs.0),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lsn(lsn) => lsn.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PG-54, PG-69: text order of LSNs is not their order, and they exceed 2^42.
    #[test]
    fn lsns_are_numbers() {
        let at = |high: u64, low: u64| Position::Lsn(Lsn(high << 32 | low));
        for (smaller, larger) in [
            (at(0x9, 0xFFFF_FFFF), at(0x10, 0)),
            (at(0xF, 1), at(0x10, 0)),
            (at(0xFF, 0xFFFF_FFFF), at(0x100, 0)),
            (at(0x3D7, 0x4576_7D50), at(0x3D7, 0x4576_7D51)),
        ] {
            assert!(larger.contains(&smaller), "{larger} holds {smaller}");
            assert!(!smaller.contains(&larger), "{smaller} lacks part of {larger}");
        }
        assert_eq!(at(0x3D7, 0x4576_7D50).to_string(), "3D7/45767D50");
    }

    #[test]
    fn a_position_contains_itself() {
        let p = Position::Lsn(Lsn(7));
        assert!(p.contains(&p));
        assert_eq!(p.ahead_of(&p), 0);
    }

    /// PG-72 and the page-header rule of the design: what lies just behind a header is reached without its bytes.
    #[test]
    fn headers_need_not_be_replayed() {
        let g = WalGeometry::DEFAULT;
        let segment = 3 * g.segment;
        for (insert, reachable) in [
            (segment + 40, segment),
            (segment + 41, segment + 41),
            (segment + 24, segment + 24 - 24),
            (segment + g.page + 24, segment + g.page),
            (segment + g.page + 40, segment + g.page + 40),
            (segment + g.page + 23, segment + g.page + 23),
            (segment, segment),
        ] {
            assert_eq!(g.reachable(Lsn(insert)), Lsn(reachable), "insert {insert}");
        }
    }

    #[test]
    fn an_unknown_geometry_changes_nothing() {
        let unknown = WalGeometry { page: 0, segment: 0 };
        assert_eq!(unknown.reachable(Lsn(24)), Lsn(24));
    }
}
