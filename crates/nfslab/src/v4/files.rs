//! Names and data.

use super::Run;
use super::attributes::{attributes, changes, set};
use super::state::node_of;
use crate::counters::{add, count};
use crate::store::lock;
use crate::transfer::Access;
use crate::tree::Inode;
use crate::wire::{Grant, Place, Stop, TRANSFER_BYTES_MAX, name};
use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OPAQUE_BYTES_MAX: usize = 1024;
/// Most bytes of a directory in one reply.
const READDIR_BYTES_MAX: usize = 32 << 10;

/// A `change_info4`.
fn change(w: &mut Writer, directory: &Inode) {
    let now = directory.change.load(Ordering::Relaxed);
    w.bool(false);
    w.u64(now.wrapping_sub(1));
    w.u64(now);
}

impl Run<'_> {
    pub(super) fn access(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let wanted = r.u32()? & 0x3f;
        self.current()?;
        w.u32(wanted);
        w.u32(wanted);
        Ok(())
    }

    pub(super) fn getfh(&mut self, w: &mut Writer) -> Result<(), Stop> {
        Place::of(self.current()?.id).encode(w);
        Ok(())
    }

    pub(super) fn putfh(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        let place = Place::decode(r)?;
        self.current = Some((self.cx.shared.tree.get(place.id)?, place.grant));
        Ok(())
    }

    pub(super) fn lookup(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        let name = name(r)?;
        let found = self.cx.shared.tree.lookup(self.current()?.id, &name)?;
        self.current = Some((found, Grant::default()));
        Ok(())
    }

    /// Makes a directory.
    pub(super) fn create(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        if r.u32()? != 2 {
            return Err(Status::BADTYPE.into());
        }
        let name = name(r)?;
        let (set, mode, _) = changes(r)?;
        let directory = self.current()?.clone();
        let made = self.cx.shared.tree.create(directory.id, &name, mode.unwrap_or(0o755), true)?;
        if !made.1 {
            return Err(Status::EXIST.into());
        }
        change(w, &directory);
        w.u32(2);
        w.u32(set as u32);
        w.u32((set >> 32) as u32);
        self.current = Some((made.0, Grant::default()));
        Ok(())
    }

    pub(super) fn remove(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let name = name(r)?;
        let directory = self.current()?;
        let id = self.cx.shared.tree.remove(directory.id, &name, None)?;
        self.cx.shared.forget(id);
        change(w, directory);
        Ok(())
    }

    /// From the saved directory into the current one.
    pub(super) fn rename(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (from, to) = (name(r)?, name(r)?);
        let source = self.saved.as_ref().ok_or(Status::NOFILEHANDLE)?.0.clone();
        let target = self.current()?;
        if let Some(id) = self.cx.shared.tree.rename((source.id, &from), (target.id, &to))? {
            self.cx.shared.forget(id);
        }
        change(w, &source);
        change(w, target);
        Ok(())
    }

    pub(super) fn readdir(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (cookie, _) = (r.u64()?, r.fixed::<8>()?);
        let (_, bytes) = (r.u32()?, r.u32()?);
        let wanted = set(r)?;
        let directory = self.current()?;
        let entries = lock(directory.entries()?).clone();
        let limit = w.len() + (bytes as usize).clamp(1024, READDIR_BYTES_MAX);
        w.u64(0);
        let mut end = true;
        // By number, so that a name that comes or goes meanwhile moves no other; behind 0 to 2, which the protocol keeps for itself.
        let mut rest: Vec<_> = entries.iter().map(|(name, &id)| (id + 2, name)).collect();
        rest.sort_unstable();
        for (at, name) in rest.into_iter().filter(|&(at, _)| at > cookie) {
            let Ok(inode) = self.cx.shared.tree.get(at - 2) else { continue };
            if w.len() + name.len() + 256 > limit {
                end = false;
                break;
            }
            w.bool(true);
            w.u64(at);
            w.opaque(name.as_bytes());
            attributes(self.cx.shared, &inode, wanted, w);
        }
        w.bool(false);
        w.bool(end);
        Ok(())
    }

    pub(super) fn open(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.u32()?; // How-manieth call of the owner: 4.0's, and replies are not kept by it.
        let write = r.u32()? & 2 != 0;
        r.skip(4)?; // Nobody is kept out.
        let mut client = r.u64()?;
        r.opaque("an owner", OPAQUE_BYTES_MAX)?;
        if let Some(session) = &self.session {
            client = session.client.id;
        }
        let client = self.cx.node.v4.client(client)?;
        client.alive();
        let how = How::decode(r)?;
        let file = match r.u32()? {
            0 => self.open_name(&name(r)?, how)?,
            // There is no grace period.
            1 => {
                r.u32()?;
                return Err(Status::NO_GRACE.into());
            }
            4 => self.current()?.clone(),
            _ => return Err(Status::NOTSUPP.into()),
        };
        if file.entries.is_some() {
            return Err(Status::ISDIR.into());
        }
        self.make_way(client.id, file.id, write)?;
        let state = self.cx.node.v4.open(client.id, file.id)?;
        w.fixed(&state);
        match &self.current {
            Some((directory, _)) => change(w, directory),
            None => return Err(Status::NOFILEHANDLE.into()),
        }
        w.u32(4); // Locks would be POSIX's.
        w.u32(0); // No attribute was set that has to be told.
        self.delegate(&client, file.id, write, w);
        self.current = Some((file, Grant::default()));
        Ok(())
    }

    fn open_name(&self, name: &str, how: How) -> Result<Arc<Inode>, Stop> {
        let (tree, directory) = (&self.cx.shared.tree, self.current()?.id);
        let How::Create { mode, size, guarded, verifier } = how else {
            return Ok(tree.lookup(directory, name)?);
        };
        let (file, made) = tree.create(directory, name, mode, false)?;
        if made {
            file.verifier.store(verifier, Ordering::Release);
        } else if guarded && (verifier == 0 || file.verifier.load(Ordering::Acquire) != verifier) {
            return Err(Status::EXIST.into());
        }
        if let Some(size) = size.filter(|_| file.entries.is_none()) {
            self.cx.shared.truncate(&file, size)?;
        }
        Ok(file)
    }

    pub(super) fn open_confirm(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let state = r.fixed::<16>()?;
        r.u32()?;
        self.cx.node.v4.check(&state, self.current()?.id)?;
        w.fixed(&state);
        Ok(())
    }

    pub(super) fn close(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.u32()?;
        let state = r.fixed::<16>()?;
        self.cx.node.v4.close(&state)?;
        w.fixed(&[0xff; 16]);
        Ok(())
    }

    /// A state is that of an open at any node, or one of those that stand for nobody.
    fn check_state(&self, state: &[u8; 16], file: u64) -> Result<(), Status> {
        if *state == [0; 16] || *state == [0xff; 16] {
            return Ok(());
        }
        let node = self.cx.shared.nodes.get(node_of(state)).ok_or(Status::BAD_STATEID)?;
        node.v4.check(state, file)
    }

    pub(super) fn read(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (state, offset, bytes) = (r.fixed()?, r.u64()?, r.u32()?.min(TRANSFER_BYTES_MAX));
        count(&self.cx.node.counters.reads);
        let (file, grant) = self.file()?;
        self.check_state(&state, file.id)?;
        self.cx.scratch.clear();
        let access = Access { node: self.cx.node, file: &file, grant };
        let end = self.cx.shared.read(access, offset, bytes, self.cx.scratch)?;
        add(&self.cx.node.counters.bytes_read, self.cx.scratch.len() as u64);
        w.bool(end);
        w.opaque(self.cx.scratch);
        Ok(())
    }

    pub(super) fn write(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (state, offset, stability) = (r.fixed()?, r.u64()?, r.u32()?);
        let bytes = r.opaque("the data of a WRITE", TRANSFER_BYTES_MAX as usize)?;
        count(&self.cx.node.counters.writes);
        let (file, grant) = self.file()?;
        self.check_state(&state, file.id)?;
        let verifier = self.cx.node.verifier.load(Ordering::Acquire);
        let access = Access { node: self.cx.node, file: &file, grant };
        let stable = self.cx.shared.write(access, offset, bytes, stability > 0)?;
        add(&self.cx.node.counters.bytes_written, bytes.len() as u64);
        w.u32(bytes.len() as u32);
        w.u32(if stable { 2 } else { 0 });
        w.u64(verifier);
        Ok(())
    }

    pub(super) fn commit(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (_, _) = (r.u64()?, r.u32()?);
        count(&self.cx.node.counters.commits);
        let (file, grant) = self.file()?;
        w.u64(self.cx.shared.commit(Access { node: self.cx.node, file: &file, grant })?);
        Ok(())
    }
}

/// Whether OPEN makes the file.
enum How {
    Find,
    Create { mode: u32, size: Option<u64>, guarded: bool, verifier: u64 },
}

impl How {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Stop> {
        if r.u32()? == 0 {
            return Ok(Self::Find);
        }
        let how = r.u32()?;
        let verifier = match how {
            0 | 1 => 0,
            2 | 3 => r.u64()?,
            seen => return Err(Malformed::Unknown { what: "the way to create", seen }.into()),
        };
        let (_, mode, size) = if how == 2 { (0, None, None) } else { changes(r)? };
        Ok(Self::Create { mode: mode.unwrap_or(0o600), size, guarded: how != 0, verifier })
    }
}
