//! Rows of the views of files: data and temp files, tablespaces, redo groups, I/O per file.

use super::{null_or, number, path, text, yes_no};
use engine::files::control::FileState;
use engine::files::iostat::Sum;
use engine::{Core, Row, Value};
use units::Nanos;

/// `v$datafile`.
pub fn datafile(core: &Core) -> Vec<Row> {
    let row = |file: engine::instance::DatafileRow| {
        vec![
            number(file.number),
            number(file.tablespace),
            number(file.number),
            text(file.status),
            text("READ WRITE"),
            number(file.checkpoint.0),
            number(file.bytes),
            number(file.blocks),
            number(file.block_bytes),
            path(&file.name),
        ]
    };
    core.datafile().into_iter().map(row).collect()
}

/// `v$tempfile`.
pub fn tempfile(core: &Core) -> Vec<Row> {
    let row = |file: engine::instance::TempfileRow| {
        vec![
            number(file.number),
            number(file.tablespace),
            number(file.number),
            text("ONLINE"),
            text("READ WRITE"),
            number(file.bytes),
            number(file.blocks),
            number(file.block_bytes),
            path(&file.name),
        ]
    };
    core.tempfile().into_iter().map(row).collect()
}

/// `v$tablespace`.
pub fn tablespace(core: &Core) -> Vec<Row> {
    let row =
        |space: engine::instance::TablespaceRow| vec![number(space.number), text(space.name), text("NO")];
    core.tablespace().into_iter().map(row).collect()
}

/// `v$flashfilestat`.
pub fn flashfilestat(core: &Core) -> Vec<Row> {
    let row = |file: engine::flash::FlashFileRow| {
        vec![
            number(file.number),
            path(&file.name),
            number(file.bytes),
            number(u8::from(file.enabled)),
            number(file.single_block_reads),
            number(file.single_block_time.0 / 1_000),
        ]
    };
    core.cache.flash().map(|flash| flash.file_rows()).into_iter().flatten().map(row).collect()
}

/// `dba_tablespaces`.
pub fn dba_tablespaces(core: &Core) -> Vec<Row> {
    let block_bytes = core.files.block_bytes();
    let row = |space: engine::instance::TablespaceRow| {
        vec![
            text(space.name),
            number(block_bytes),
            text("ONLINE"),
            text(space.contents),
            text("LOCAL"),
            text("SYSTEM"),
            text(if space.contents == "PERMANENT" { "AUTO" } else { "MANUAL" }),
            text("NO"),
        ]
    };
    core.tablespace().into_iter().map(row).collect()
}

/// `dba_data_files` and `dba_temp_files`, which are alike but for the last column.
pub fn dba_files(core: &Core, temporary: bool) -> Vec<Row> {
    let content = core.control.content();
    let block_bytes = u64::from(core.files.block_bytes());
    let files = content.files.iter();
    let files = files.filter(|file| file.state == FileState::Online && file.temporary == temporary);
    files
        .map(|file| {
            let tablespace = content.tablespace(file.tablespace).map(|space| space.name.clone());
            let grows = file.next_blocks > 0;
            let most = if grows { file.max_blocks } else { 0 };
            // Block 0 is the file's header.
            let usable = file.blocks.saturating_sub(1);
            let mut row = vec![
                path(&file.path),
                number(file.number),
                null_or(tablespace, text),
                number(u64::from(file.blocks) * block_bytes),
                number(file.blocks),
                text(if temporary { "ONLINE" } else { "AVAILABLE" }),
                number(file.number),
                yes_no(grows, "YES", "NO"),
                number(u64::from(most) * block_bytes),
                number(most),
                number(file.next_blocks),
                number(u64::from(usable) * block_bytes),
                number(usable),
            ];
            if !temporary {
                row.push(text(if file.tablespace == 0 { "SYSTEM" } else { "ONLINE" }));
            }
            row
        })
        .collect()
}

/// `v$log`.
pub fn log(core: &Core) -> Vec<Row> {
    let row = |group: engine::redo::Log| {
        vec![
            number(group.group),
            number(1),
            number(group.sequence),
            number(group.bytes),
            number(group.block_bytes),
            number(group.members),
            text("NO"),
            text(group.status.name()),
            number(group.first_lsn.0),
            null_or(Some(group.first_time).filter(|&time| time > 0), |time| {
                text(crate::function::sysdate(time, 0.0))
            }),
            null_or(group.next_lsn, |lsn| number(lsn.0)),
        ]
    };
    core.redo.log().into_iter().map(row).collect()
}

/// `v$logfile`.
pub fn logfile(core: &Core) -> Vec<Row> {
    let row = |file: engine::redo::Logfile| {
        let status = file.invalid.then_some("INVALID");
        vec![number(file.group), null_or(status, text), text("ONLINE"), path(&file.path)]
    };
    core.redo.logfile().into_iter().map(row).collect()
}

/// `v$iostat_file`.
pub fn iostat_file(core: &Core) -> Vec<Row> {
    let megabytes = |sum: Sum| number(sum.bytes >> 20);
    let row = |file: engine::instance::IostatRow| {
        let io = file.io;
        vec![
            number(file.number),
            number(file.file_type as u8),
            text(file.file_type.name()),
            megabytes(io.small_read),
            megabytes(io.small_write),
            megabytes(io.large_read),
            megabytes(io.large_write),
            number(io.small_read.requests),
            number(io.small_write.requests),
            number(io.small_sync_read.requests),
            number(io.large_read.requests),
            number(io.large_write.requests),
            millis(io.small_read.time),
            millis(io.small_write.time),
            millis(io.small_sync_read.time),
            millis(io.large_read.time),
            millis(io.large_write.time),
            yes_no(file.asynchronous, "ASYNC_ON", "ASYNC_OFF"),
            text(file.access_method),
            number(io.errors),
        ]
    };
    core.iostat_file().into_iter().map(row).collect()
}

/// Milliseconds with three digits behind the point: Oracle has whole ones, but our files are faster than that.
fn millis(time: Nanos) -> Value {
    Value::Real((time.0 / 1_000) as f64 / 1_000.0)
}
