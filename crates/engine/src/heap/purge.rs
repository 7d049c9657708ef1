//! Purge of rows: those marked as deleted, with their index entries, and index entries of keys that rows had before.

use super::read::{self, Version};
use super::{malformed, take_back};
use crate::btree;
use crate::instance::Core;
use crate::row;
use crate::transaction::{Purgeable, UndoPtr, Xid};
use crate::value::RowId;
use crate::{Context, Result};

/// The keys of a version, one for each index.
fn keys(core: &Core, table: &Purgeable, row: RowId, version: &Version) -> Result<Vec<Vec<u8>>> {
    let key =
        |columns: &[usize]| row::decode_columns(&version.content, columns).map(|key| btree::encode_key(&key));
    let keys: std::result::Result<_, _> = table.indexes.iter().map(|(_, columns)| key(columns)).collect();
    keys.map_err(malformed(core, row))
}

/// Takes out the row that the undo record at `at` marked as deleted, if it is still there. First the entries, then the row: an
/// entry never points to a slot that another row may have taken.
pub(crate) fn purge_deleted(
    core: &Core,
    context: &Context,
    table: &Purgeable,
    row: RowId,
    xid: Xid,
    at: UndoPtr,
) -> Result<()> {
    let is_meant = |version: &Version| version.is_deleted() && version.is_made_by(xid, at);
    let Some(version) = read::newest_version(core, context, row)?.filter(is_meant) else { return Ok(()) };
    for ((index, _), key) in table.indexes.iter().zip(keys(core, table, row, &version)?) {
        btree::remove(core, context, index, &key, row)?;
    }
    take_back::remove_row(core, context, table.segment.object, row, false, |found| {
        let version = Version { header: found.header, content: Vec::new() };
        is_meant(&version)
    })
}

/// A version newer than the one whose keys are purged.
struct Newer {
    keys: Vec<Vec<u8>>,
    /// It may still be rolled back.
    active: bool,
}

/// Takes out the index entries of the version before the update with the undo record at `at`, those that no newer version
/// has. False when that must wait, see `transaction::purge`. The caller has set the purge mark.
pub(crate) fn purge_updated(
    core: &Core,
    context: &Context,
    table: &Purgeable,
    row: RowId,
    xid: Xid,
    at: UndoPtr,
) -> Result<bool> {
    let Some(mut version) = read::newest_version(core, context, row)? else { return Ok(true) };
    let mut newer = Vec::new();
    loop {
        let active = core.transactions.is_active(version.header.xid);
        newer.push(Newer { keys: keys(core, table, row, &version)?, active });
        if version.is_made_by(xid, at) {
            break;
        }
        if version.is_first() {
            // Purged before a restart, and the slot has another row since.
            return Ok(true);
        }
        read::step_back(core, context, row, &mut version)?;
    }
    read::step_back(core, context, row, &mut version)?;
    let mut done = true;
    for (number, old) in keys(core, table, row, &version)?.into_iter().enumerate() {
        let mut users = newer.iter().filter(|newer| newer.keys[number] == old).peekable();
        if users.peek().is_none() {
            btree::remove(core, context, &table.indexes[number].0, &old, row)?;
        } else if users.all(|newer| newer.active) {
            done = false;
        }
    }
    Ok(done)
}
