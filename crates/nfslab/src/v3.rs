//! NFSv3 and MOUNT, as a server speaks them. Source: RFC 1813.

use crate::connection::{Context, Refused};
use crate::counters::{add, count};
use crate::transfer::Access;
use crate::tree::{Inode, ROOT};
use crate::wire::{FILE_BYTES_MAX, Grant, Place, Stop, TRANSFER_BYTES_MAX, name};
use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};
use std::sync::atomic::Ordering;

/// Longest path that is mounted, bytes.
const PATH_BYTES_MAX: usize = 1024;
/// Most bytes of a directory in one reply.
const READDIR_BYTES_MAX: usize = 32 << 10;

/// Answers a call of MOUNT.
pub(crate) fn mount(cx: Context<'_>, number: u32, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Refused> {
    count(&cx.node.counters.others);
    match number {
        0 | 4 => {}
        1 => {
            let path = r.opaque("a path", PATH_BYTES_MAX)?;
            let found = std::str::from_utf8(path).map_err(|_| Status::NOENT);
            match found.and_then(|path| cx.shared.tree.walk(path)) {
                Ok(inode) if inode.entries.is_some() => {
                    w.u32(0);
                    Place::of(inode.id).encode(w);
                    w.u32(1);
                    w.u32(1); // AUTH_SYS.
                }
                Ok(_) => w.u32(Status::NOTDIR.0),
                Err(status) => w.u32(status.0),
            }
        }
        3 => r.opaque("a path", PATH_BYTES_MAX).map(drop)?,
        // Everything is one export, to everybody.
        5 => {
            w.bool(true);
            w.opaque(b"/");
            w.bool(false);
            w.bool(false);
        }
        _ => return Err(Refused::NoProcedure),
    }
    Ok(())
}

/// Answers a call of NFS.
pub(crate) fn call(
    mut cx: Context<'_>,
    number: u32,
    r: &mut Reader<'_>,
    w: &mut Writer,
) -> Result<(), Refused> {
    let counters = &cx.node.counters;
    count(match number {
        6 => &counters.reads,
        7 => &counters.writes,
        21 => &counters.commits,
        _ => &counters.others,
    });
    let result = match number {
        0 => Ok(()),
        1 => getattr(&cx, r, w),
        2 => setattr(&cx, r, w),
        3 => lookup(&cx, r, w),
        4 => access(&cx, r, w),
        6 => read(&mut cx, r, w),
        7 => write(&cx, r, w),
        8 => create(&cx, r, w),
        9 => mkdir(&cx, r, w),
        12 => remove(&cx, r, w, false),
        13 => remove(&cx, r, w, true),
        14 => rename(&cx, r, w),
        16 => readdir(&cx, r, w),
        18..=20 => limits(&cx, number, r, w),
        21 => commit(&cx, r, w),
        _ => return Err(Refused::NoProcedure),
    };
    match result {
        Ok(()) => Ok(()),
        Err(Stop::Malformed) => Err(Refused::Garbage),
        Err(Stop::Status(status)) => {
            w.u32(status.0);
            // Attributes that are left out: after, before and after, or that of two directories.
            let absent = match number {
                1 => 0,
                3 | 4 | 6 | 16 | 18..=20 => 1,
                14 => 4,
                _ => 2,
            };
            (0..absent).for_each(|_| w.bool(false));
            Ok(())
        }
    }
}

/// A `fattr3`.
fn attributes(w: &mut Writer, inode: &Inode) {
    let directory = inode.entries.is_some();
    let size = if directory { 4096 } else { inode.size() };
    for word in [if directory { 2 } else { 1 }, inode.mode.load(Ordering::Relaxed), 1, 0, 0] {
        w.u32(word);
    }
    w.u64(size);
    w.u64(size);
    w.u64(0); // Device.
    w.u64(1); // File system.
    w.u64(inode.id);
    let change = inode.change.load(Ordering::Relaxed);
    w.u64(0);
    w.u64(change);
    w.u64(change);
}

fn some_attributes(w: &mut Writer, inode: &Inode) {
    w.bool(true);
    attributes(w, inode);
}

/// `wcc_data` without what was before.
fn after(w: &mut Writer, inode: &Inode) {
    w.bool(false);
    some_attributes(w, inode);
}

fn inode(cx: &Context<'_>, r: &mut Reader<'_>) -> Result<std::sync::Arc<Inode>, Stop> {
    Ok(cx.shared.tree.get(Place::decode(r)?.id)?)
}

/// A regular file, and the layout that its handle came by.
fn file(cx: &Context<'_>, r: &mut Reader<'_>) -> Result<(std::sync::Arc<Inode>, Grant), Stop> {
    let place = Place::decode(r)?;
    let inode = cx.shared.tree.get(place.id)?;
    if inode.entries.is_some() {
        return Err(Status::ISDIR.into());
    }
    Ok((inode, place.grant))
}

fn getattr(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let inode = inode(cx, r)?;
    w.u32(0);
    attributes(w, &inode);
    Ok(())
}

/// A `sattr3`: mode and size; the rest is taken for said.
fn changes(r: &mut Reader<'_>) -> Result<(Option<u32>, Option<u64>), Malformed> {
    let mode = if r.bool()? { Some(r.u32()?) } else { None };
    for _ in 0..2 {
        if r.bool()? {
            r.u32()?;
        }
    }
    let size = if r.bool()? { Some(r.u64()?) } else { None };
    for _ in 0..2 {
        match r.u32()? {
            0 | 1 => {}
            2 => r.skip(8)?,
            seen => return Err(Malformed::Unknown { what: "how to set a time", seen }),
        }
    }
    Ok((mode, size))
}

fn setattr(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let inode = inode(cx, r)?;
    let (mode, size) = changes(r)?;
    if r.bool()? {
        r.skip(8)?;
    }
    mode.into_iter().for_each(|mode| inode.mode.store(mode & 0o7777, Ordering::Relaxed));
    if let Some(size) = size {
        cx.shared.truncate(&inode, size)?;
    }
    w.u32(0);
    after(w, &inode);
    Ok(())
}

fn lookup(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let directory = inode(cx, r)?;
    let found = cx.shared.tree.lookup(directory.id, &name(r)?)?;
    w.u32(0);
    Place::of(found.id).encode(w);
    some_attributes(w, &found);
    some_attributes(w, &directory);
    Ok(())
}

fn access(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let inode = inode(cx, r)?;
    let wanted = r.u32()?;
    w.u32(0);
    some_attributes(w, &inode);
    w.u32(wanted & 0x3f);
    Ok(())
}

fn read(cx: &mut Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let (file, grant) = file(cx, r)?;
    let (offset, bytes) = (r.u64()?, r.u32()?.min(TRANSFER_BYTES_MAX));
    cx.scratch.clear();
    let access = Access { node: cx.node, file: &file, grant };
    let end = cx.shared.read(access, offset, bytes, cx.scratch)?;
    add(&cx.node.counters.bytes_read, cx.scratch.len() as u64);
    w.u32(0);
    some_attributes(w, &file);
    w.u32(cx.scratch.len() as u32);
    w.bool(end);
    w.opaque(cx.scratch);
    Ok(())
}

fn write(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let (file, grant) = file(cx, r)?;
    let (offset, _, stability) = (r.u64()?, r.u32()?, r.u32()?);
    let bytes = r.opaque("the data of a WRITE", TRANSFER_BYTES_MAX as usize)?;
    let verifier = cx.node.verifier.load(Ordering::Acquire);
    let access = Access { node: cx.node, file: &file, grant };
    let stable = cx.shared.write(access, offset, bytes, stability > 0)?;
    add(&cx.node.counters.bytes_written, bytes.len() as u64);
    w.u32(0);
    after(w, &file);
    w.u32(bytes.len() as u32);
    w.u32(if stable { 2 } else { 0 });
    w.u64(verifier);
    Ok(())
}

fn commit(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let (file, grant) = file(cx, r)?;
    let verifier = cx.shared.commit(Access { node: cx.node, file: &file, grant })?;
    w.u32(0);
    after(w, &file);
    w.u64(verifier);
    Ok(())
}

fn create(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let directory = inode(cx, r)?;
    let name = name(r)?;
    let how = r.u32()?;
    let (mut mode, mut size, mut verifier) = (None, None, 0);
    match how {
        0 | 1 => (mode, size) = changes(r)?,
        2 => verifier = r.u64()?,
        seen => return Err(Malformed::Unknown { what: "the way to create", seen }.into()),
    }
    let (file, made) = cx.shared.tree.create(directory.id, &name, mode.unwrap_or(0o600) & 0o7777, false)?;
    if made {
        file.verifier.store(verifier, Ordering::Release);
    } else if how == 1 || (how == 2 && file.verifier.load(Ordering::Acquire) != verifier) {
        return Err(Status::EXIST.into());
    } else if file.entries.is_some() {
        return Err(Status::ISDIR.into());
    }
    if let Some(size) = size {
        cx.shared.truncate(&file, size)?;
    }
    created(w, &file, &directory);
    Ok(())
}

fn created(w: &mut Writer, made: &Inode, directory: &Inode) {
    w.u32(0);
    w.bool(true);
    Place::of(made.id).encode(w);
    some_attributes(w, made);
    after(w, directory);
}

fn mkdir(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let directory = inode(cx, r)?;
    let name = name(r)?;
    let (mode, _) = changes(r)?;
    let (made, new) = cx.shared.tree.create(directory.id, &name, mode.unwrap_or(0o755) & 0o7777, true)?;
    if !new {
        return Err(Status::EXIST.into());
    }
    created(w, &made, &directory);
    Ok(())
}

fn remove(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer, is_directory: bool) -> Result<(), Stop> {
    let directory = inode(cx, r)?;
    let id = cx.shared.tree.remove(directory.id, &name(r)?, Some(is_directory))?;
    cx.shared.forget(id);
    w.u32(0);
    after(w, &directory);
    Ok(())
}

fn rename(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let source = inode(cx, r)?;
    let from = name(r)?;
    let target = inode(cx, r)?;
    let to = name(r)?;
    if let Some(id) = cx.shared.tree.rename((source.id, &from), (target.id, &to))? {
        cx.shared.forget(id);
    }
    w.u32(0);
    after(w, &source);
    after(w, &target);
    Ok(())
}

fn readdir(cx: &Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let directory = inode(cx, r)?;
    let (cookie, _, bytes) = (r.u64()?, r.u64()?, r.u32()?);
    let entries = crate::store::lock(directory.entries()?).clone();
    let limit = w.len() + (bytes as usize).clamp(512, READDIR_BYTES_MAX);
    w.u32(0);
    some_attributes(w, &directory);
    w.u64(0);
    let (mut last, mut end) = (cookie, true);
    // Entries by number: a name that comes or goes meanwhile moves no other.
    let mut rest: Vec<_> =
        entries.iter().map(|(name, &id)| (id, name)).filter(|&(id, _)| id > cookie).collect();
    rest.sort_unstable();
    for (id, name) in rest {
        if w.len() + name.len() + 64 > limit {
            end = false;
            break;
        }
        w.bool(true);
        w.u64(id);
        w.opaque(name.as_bytes());
        w.u64(id);
        last = id;
    }
    debug_assert!(last >= cookie);
    w.bool(false);
    w.bool(end);
    Ok(())
}

/// FSSTAT, FSINFO, PATHCONF.
fn limits(cx: &Context<'_>, number: u32, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let inode = inode(cx, r)?;
    w.u32(0);
    some_attributes(w, &inode);
    match number {
        18 => {
            let (total, free) = cx.shared.space();
            for value in [total, free, free, 1 << 20, 1 << 20, 1 << 20] {
                w.u64(value);
            }
            w.u32(0);
        }
        19 => {
            let most = TRANSFER_BYTES_MAX;
            for word in [most, most, 1, most, most, 1, READDIR_BYTES_MAX as u32] {
                w.u32(word);
            }
            w.u64(FILE_BYTES_MAX);
            w.u64(1);
            w.u32(0x1b); // Links, homogeneous, times can be set.
        }
        _ => {
            w.u32(1);
            w.u32(crate::wire::NAME_BYTES_MAX as u32);
            for flag in [true, true, false, true] {
                w.bool(flag);
            }
        }
    }
    debug_assert!(inode.id >= ROOT);
    Ok(())
}
