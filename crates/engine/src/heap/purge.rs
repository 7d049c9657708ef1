//! Purge of rows: those marked as deleted, with their index entries, and index entries of keys that rows had before.

use super::page::FIRST;
use super::read::{self, Version};
use super::{malformed, take_back};
use crate::btree;
use crate::instance::Core;
use crate::row;
use crate::transaction::{Purgeable, UndoPtr, Xid};
use crate::value::RowId;
use crate::{Context, Result};
use std::collections::BTreeMap;

/// The keys of a version, one for each index.
fn keys(core: &Core, table: &Purgeable, row: RowId, version: &Version) -> Result<Vec<Vec<u8>>> {
    let key =
        |columns: &[usize]| row::decode_columns(&version.content, columns).map(|key| btree::encode_key(&key));
    let keys: std::result::Result<_, _> = table.indexes.iter().map(|(_, columns)| key(columns)).collect();
    keys.map_err(malformed(core, row))
}

/// Takes out the row that the undo record at `at` marked as deleted, if it is still there. First the entries, then the
/// row: an entry never points to a slot that another row may have taken.
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

/// Versions that are remembered at most.
const REMEMBERED_MAX: usize = 20_000;

/// Which version: its writer, and the undo pointer (or record number) in its header, which a writer uses once.
type VersionId = (Xid, bool, u64);

/// A version's keys.
struct Known {
    id: VersionId,
    keys: Vec<Vec<u8>>,
}

/// The keys that rows have had, newest first, as far as purge has walked. A row that changes often is purged once for
/// each change, and each time the walk begins at its newest version: without this, that would be quadratic in the changes.
#[derive(Default)]
pub(crate) struct KeyHistory {
    rows: BTreeMap<RowId, Walked>,
    versions: usize,
}

/// A row's versions.
#[derive(Default)]
struct Walked {
    /// Objects of the indexes whose keys they are.
    indexes: Vec<u32>,
    versions: Vec<Known>,
}

impl KeyHistory {
    /// What is known of a row, for these indexes.
    fn take(&mut self, row: RowId, indexes: &[u32]) -> Vec<Known> {
        if self.versions > REMEMBERED_MAX {
            *self = Self::default();
        }
        let walked = self.rows.remove(&row).unwrap_or_default();
        self.versions -= walked.versions.len();
        if walked.indexes == indexes { walked.versions } else { Vec::new() }
    }

    fn keep(&mut self, row: RowId, indexes: Vec<u32>, versions: Vec<Known>) {
        self.versions += versions.len();
        self.rows.insert(row, Walked { indexes, versions });
    }
}

/// The row's versions from the newest down to the one before the update with the undo record at `at`, or to where `known`
/// ends; nothing when the update is not among them.
fn walk(
    core: &Core,
    context: &Context,
    table: &Purgeable,
    row: RowId,
    (xid, at): (Xid, UndoPtr),
    known: Vec<Known>,
) -> Result<Vec<Known>> {
    let Some(mut version) = read::newest_version(core, context, row)? else { return Ok(Vec::new()) };
    let mut walked: Vec<Known> = Vec::new();
    let mut past = false;
    loop {
        let header = version.header;
        let id = (header.xid, header.is(FIRST), header.undo);
        if let Some(from) = known.iter().position(|known| known.id == id) {
            walked.extend(known.into_iter().skip(from));
            return Ok(walked);
        }
        walked.push(Known { id, keys: keys(core, table, row, &version)? });
        if past {
            return Ok(walked);
        }
        if header.is(FIRST) {
            // Purged before a restart, and the slot has another row since.
            return Ok(Vec::new());
        }
        past = version.is_made_by(xid, at);
        read::step_back(core, context, row, &mut version)?;
    }
}

/// Takes out the index entries of the version before the update with the undo record at `at`, those that no newer version
/// has. False when that must wait, see `transaction::purge`. The caller has set the purge mark.
pub(crate) fn purge_updated(
    core: &Core,
    context: &Context,
    history: &mut KeyHistory,
    table: &Purgeable,
    row: RowId,
    record: (Xid, UndoPtr),
) -> Result<bool> {
    let indexes: Vec<u32> = table.indexes.iter().map(|(index, _)| index.object).collect();
    let known = history.take(row, &indexes);
    let made = (record.0, false, record.1.0);
    let find = |versions: &[Known]| versions.iter().rposition(|version| version.id == made);
    let mut versions = walk(core, context, table, row, record, known)?;
    if find(&versions).is_none_or(|at| at + 1 == versions.len()) {
        // What is known does not go back as far.
        versions = walk(core, context, table, row, record, Vec::new())?;
    }
    let Some(at) = find(&versions) else { return Ok(true) };
    // Records yet to come are of newer versions, and go back as far as this one; the one before it is for another try.
    versions.truncate(at + 2);
    let done = remove_old_keys(core, context, table, row, versions.split_at(at + 1))?;
    history.keep(row, indexes, versions);
    Ok(done)
}

/// Of a version, given with those newer than it.
fn remove_old_keys(
    core: &Core,
    context: &Context,
    table: &Purgeable,
    row: RowId,
    (newer, older): (&[Known], &[Known]),
) -> Result<bool> {
    let before = older.first().expect("a walk goes on to the version before");
    let mut done = true;
    for (number, (index, _)) in table.indexes.iter().enumerate() {
        let old = &before.keys[number];
        let mut users = newer.iter().filter(|newer| newer.keys[number] == *old).peekable();
        if users.peek().is_none() {
            btree::remove(core, context, index, old, row)?;
        } else if users.all(|newer| core.transactions.is_active(newer.id.0)) {
            done = false;
        }
    }
    Ok(done)
}
