//! Rows of the views of the instance itself: parameters, counters, memory, statements.

use super::objects::pool;
use super::{null_or, number, text, yes_no};
use crate::link::Inner;
use engine::cache::{BufferHeader, BufferStatus};
use engine::parameter::{Parameter, ParameterRow};
use engine::statistics::Statistic;
use engine::{Core, Row, Value};
use std::collections::BTreeMap;
use waits::{Registry, SessionKind};

/// `v$parameter`.
pub fn parameter(core: &Core) -> Vec<Row> {
    let row = |parameter: ParameterRow| {
        vec![
            number(parameter.number),
            text(parameter.name),
            number(parameter.kind),
            text(parameter.value),
            text(parameter.display_value),
            yes_no(parameter.is_default, "TRUE", "FALSE"),
            yes_no(parameter.is_modified, "MODIFIED", "FALSE"),
            text(parameter.system_modifiable),
            text(parameter.description),
        ]
    };
    core.parameters().into_iter().map(row).collect()
}

/// `v$sysstat`.
pub fn sysstat(core: &Core) -> Vec<Row> {
    let row = |statistic: engine::instance::SysstatRow| {
        vec![number(statistic.number), text(statistic.name), number(statistic.class), number(statistic.value)]
    };
    core.sysstat().into_iter().map(row).collect()
}

/// `v$statname`.
pub fn statname() -> Vec<Row> {
    let row = |(at, statistic): (usize, &Statistic)| {
        vec![number(at as u64), text(statistic.name()), number(statistic.class() as u8)]
    };
    Statistic::ALL.iter().enumerate().map(row).collect()
}

/// `v$mystat`.
pub fn mystat(inner: &Inner) -> Vec<Row> {
    let context = inner.session.context();
    let row = |(at, statistic): (usize, &Statistic)| {
        vec![number(context.session), number(at as u64), number(context.counters.value(*statistic))]
    };
    Statistic::ALL.iter().enumerate().map(row).collect()
}

/// `v$sys_time_model`: DB time is of users' sessions, background time of the others. Microseconds.
///
/// CPU is what is left of the time when the waits are taken away, so time in the run queue is in it. The scheduler's own count of a
/// thread's CPU is not here: a session does not know its thread. A run's record has it.
pub fn time_model(registry: &Registry) -> Vec<Row> {
    let users = registry.time_model(SessionKind::Foreground);
    let others = registry.time_model(SessionKind::Background);
    [
        (3_649_082_374_u64, "DB time", users.elapsed),
        (2_748_282_437, "DB CPU", users.cpu()),
        (4_157_170_894, "background elapsed time", others.elapsed),
        (2_451_517_896, "background cpu time", others.cpu()),
    ]
    .into_iter()
    .map(|(id, name, time)| vec![number(id), text(name), number(time.0 / 1_000)])
    .collect()
}

/// `v$sql`: statements that somebody has run, by what v$session and v$active_session_history call them.
pub fn sql(registry: &Registry) -> Vec<Row> {
    registry.texts().into_iter().map(|(id, sql)| vec![text(id.to_string()), text(&*sql)]).collect()
}

/// `v$bh`: one row for each frame.
pub fn bh(core: &Core) -> Vec<Row> {
    let content = core.control.content();
    let files: BTreeMap<u16, (u16, bool)> =
        content.files.iter().map(|file| (file.number, (file.tablespace, file.temporary))).collect();
    let row = |buffer: BufferHeader| {
        let used = buffer.status != BufferStatus::Free;
        let file = files.get(&buffer.id.file).filter(|_| used);
        vec![
            number(if used { buffer.id.file } else { 0 }),
            number(if used { buffer.id.block } else { 0 }),
            text(buffer.status.name()),
            yes_no(buffer.dirty, "Y", "N"),
            yes_no(file.is_some_and(|(_, temporary)| *temporary), "Y", "N"),
            null_or((used && buffer.object > 0).then_some(buffer.object), number),
            null_or(file, |(tablespace, _)| number(*tablespace)),
            text(pool(buffer.pool)),
            number(buffer.touches),
        ]
    };
    core.cache.headers().map(row).collect()
}

/// `v$sgastat`.
pub fn sgastat(core: &Core) -> Vec<Row> {
    let cache = core.cache.frame_count() as u64 * core.cache.block_bytes() as u64;
    let log = core.parameters.number(Parameter::LogBuffer);
    [("buffer_cache", cache), ("log_buffer", log)]
        .into_iter()
        .map(|(name, bytes)| vec![Value::Null, text(name), number(bytes)])
        .collect()
}

/// `v$instance`.
pub fn instance(core: &Core) -> Vec<Row> {
    let name = core.directory.file_name().map_or_else(|| "redoubt".into(), |name| name.to_string_lossy());
    let status = match core.health.crashed() {
        Some(_) => "CRASHED",
        None => "OPEN",
    };
    vec![vec![number(1), text(&*name), text(env!("CARGO_PKG_VERSION")), text(status)]]
}
