//! The statements, and how their answers are read. No value is taken for another: what is NULL is absent.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, PgLsn};

use super::super::error::{EngineError, presentable};
use super::Identity;
use crate::policy::position::{History, Lsn, Position};
use crate::policy::sighting::{ProbeFailure, Receiver, Replay, Role, Sighting, StandbyView};

/// Standbys that are kept of one answer. More directly attached ones are passed over.
const MOST_STANDBYS: usize = 256;

/// What cannot change while a connection lives.
pub(super) const IDENTIFY: &str = "\
select system_identifier, \
 (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint, \
 current_setting('server_version_num')::int, \
 current_setting('server_version'), \
 (select setting::bigint from pg_settings where name = 'wal_block_size'), \
 (select case unit when '8kB' then 8192 when 'kB' then 1024 when 'MB' then 1048576 else 1 end * setting::bigint \
  from pg_settings where name = 'wal_segment_size'), \
 (select setting::bigint from pg_settings where name = 'wal_writer_delay') \
from pg_control_system()";

/// A second net on the server, beside the deadlines of whoever asks; and no write by accident.
pub(super) const SET_UP: &str = "\
set statement_timeout = '10s'; \
set lock_timeout = '5s'; \
set idle_in_transaction_session_timeout = '10s'; \
set default_transaction_read_only = on";

/// What a primary has. Each standby is a row; a primary without one is a row of its own.
pub const SAMPLE: &str = "\
select pg_is_in_recovery(), \
 case when not pg_is_in_recovery() then pg_current_wal_insert_lsn() end, \
 case when not pg_is_in_recovery() then pg_current_wal_flush_lsn() end, \
 case when not pg_is_in_recovery() then \
  ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int end, \
 s.pid is not null, s.state, s.client_addr, s.application_name, s.replay_lsn \
from (values (1)) one \
left join pg_stat_replication s on s.state is distinct from 'backup' \
limit 257";

/// What a replica has, and how its replication is.
pub const PROBE: &str = "\
select pg_is_in_recovery(), \
 pg_last_wal_replay_lsn(), \
 pg_last_wal_receive_lsn(), \
 case when pg_is_in_recovery() then pg_get_wal_replay_pause_state() end, \
 r.pid is not null, r.status, \
 coalesce(r.received_tli, (select greatest(c.timeline_id, m.min_recovery_end_timeline) \
  from pg_control_checkpoint() c, pg_control_recovery() m)) \
from (values (1)) one \
left join pg_stat_wal_receiver r on true \
limit 1";

/// See [`super::Session::nudge`].
pub(super) const NUDGE: &str = "begin read write; select pg_current_xact_id(); commit";

/// Reads the answer to [`SAMPLE`]; nothing when the server is a replica.
pub(super) fn sampled(rows: &[Row], identity: &Identity) -> Result<Option<Sighting>, EngineError> {
    let first = rows.first().ok_or_else(|| unreadable("no row"))?;
    if get::<bool>(first, 0)? {
        return Ok(None);
    }
    let (inserted, flushed) = (get::<Option<PgLsn>>(first, 1)?, get::<Option<PgLsn>>(first, 2)?);
    let timeline = get::<Option<i32>>(first, 3)?.ok_or_else(|| unreadable("no timeline"))?;
    let mut standbys = Vec::new();
    for row in rows.iter().take(MOST_STANDBYS) {
        standbys.extend(standby(row)?);
    }
    Ok(Some(Sighting {
        role: Role::Primary,
        history: history(identity, timeline)?,
        incarnation: identity.incarnation,
        position: inserted.map(|lsn| Position::Lsn(identity.geometry.reachable(Lsn(lsn.into())))),
        flushed: flushed.map(position),
        received: None,
        replay: None,
        receiver: None,
        standbys,
    }))
}

fn standby(row: &Row) -> Result<Option<StandbyView>, EngineError> {
    if !get::<bool>(row, 4)? {
        return Ok(None);
    }
    let Some(state) = get::<Option<&str>>(row, 5)? else {
        return Err(missing_privilege("pg_stat_replication"));
    };
    Ok(Some(StandbyView {
        streaming: state == "streaming",
        address: get::<Option<IpAddr>>(row, 6)?,
        name: Arc::from(presentable(get::<Option<&str>>(row, 7)?.unwrap_or_default())),
        replayed: get::<Option<PgLsn>>(row, 8)?.map(position),
    }))
}

/// Reads the answer to [`PROBE`]; nothing when the server is a primary.
pub(super) fn probed(rows: &[Row], identity: &Identity) -> Result<Option<Sighting>, EngineError> {
    let row = rows.first().ok_or_else(|| unreadable("no row"))?;
    if !get::<bool>(row, 0)? {
        return Ok(None);
    }
    let replay = match get::<Option<&str>>(row, 3)? {
        Some("not paused") => Some(Replay::Running),
        Some("pause requested") => Some(Replay::PauseRequested),
        Some("paused") => Some(Replay::Paused),
        Some(other) => return Err(unreadable(&format!("replay is {other:?}"))),
        None => None,
    };
    let receiver = match (get::<bool>(row, 4)?, get::<Option<&str>>(row, 5)?) {
        (false, _) => Receiver::Absent,
        (true, None) => return Err(missing_privilege("pg_stat_wal_receiver")),
        (true, Some("streaming")) => Receiver::Streaming,
        (true, Some(_)) => Receiver::Waiting,
    };
    let timeline = get::<Option<i32>>(row, 6)?.ok_or_else(|| unreadable("no timeline"))?;
    Ok(Some(Sighting {
        role: Role::Replica,
        history: history(identity, timeline)?,
        incarnation: identity.incarnation,
        position: get::<Option<PgLsn>>(row, 1)?.map(position),
        flushed: None,
        received: get::<Option<PgLsn>>(row, 2)?.map(position),
        replay,
        receiver: Some(receiver),
        standbys: Vec::new(),
    }))
}

fn history(identity: &Identity, timeline: i32) -> Result<History, EngineError> {
    Ok(History {
        cluster: identity.cluster,
        timeline: u32::try_from(timeline).map_err(|_| unreadable(&format!("timeline {timeline}")))?,
    })
}

fn position(lsn: PgLsn) -> Position {
    Position::Lsn(Lsn(lsn.into()))
}

/// A column's value, or an error that says which column was not as expected.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, EngineError> {
    row.try_get(column).map_err(|e| unreadable(&e.to_string()))
}

fn unreadable(what: &str) -> EngineError {
    EngineError::new(ProbeFailure::Protocol, format!("the answer cannot be read: {what}"))
}

fn missing_privilege(view: &str) -> EngineError {
    let text = format!("the account may not see {view}: GRANT pg_read_all_stats TO it");
    EngineError::new(ProbeFailure::PermissionDenied, text)
}
