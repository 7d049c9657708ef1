//! How a read or write comes to the node that keeps its data.

use crate::cluster::{Shared, WrongNode};
use crate::counters::count;
use crate::node::Node;
use crate::store::lock;
use crate::tree::Inode;
use crate::wire::{FILE_BYTES_MAX, Grant};
use nfs::Status;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A client's transfer: at which node, of which file, and the layout that it came by.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) node: &'a Node,
    pub(crate) file: &'a Inode,
    pub(crate) grant: Grant,
}

impl Shared {
    fn unit(&self) -> u64 {
        u64::from(self.options.stripe_bytes)
    }

    /// Goes through the parts of a transfer, each on one node: `here` does those that this node keeps, `there` the others. No move of the
    /// file comes in between.
    fn parts(
        &self,
        access: Access<'_>,
        offset: u64,
        bytes: u64,
        mut part: impl FnMut(usize, u64, u64) -> Result<(), Status>,
    ) -> Result<(), Status> {
        access.node.suffer()?;
        // A layout that is back, or was taken away, allows nothing: what was asked by it and comes late is not done.
        if access.grant.number != 0 && !self.is_granted(access.grant.number) {
            return Err(Status::STALE);
        }
        loop {
            let device = access.file.device();
            let mapping = device.mapping();
            // It may have been moved to a device of its own before the mapping was held.
            if !Arc::ptr_eq(&device, &access.file.device()) {
                continue;
            }
            let (mut at, end) = (offset, offset + bytes);
            while at < end {
                let now = (self.unit() - at % self.unit()).min(end - at);
                let owner = mapping.owner(at, self.unit());
                if owner != access.node.index {
                    if access.grant.number != 0
                        && let WrongNode::Refuse(status) =
                            *self.wrong_node.read().unwrap_or_else(PoisonError::into_inner)
                    {
                        return Err(status);
                    }
                    count(&access.node.counters.forwarded);
                }
                part(owner, at, now)?;
                at += now;
            }
            return Ok(());
        }
    }

    /// What `bytes` bytes at `offset` are of the file, by whichever handle: first byte, and bytes.
    fn ranges(&self, grant: Grant, offset: u64, bytes: u64) -> Result<Vec<(u64, u64)>, Status> {
        let Some(part) = grant.part else { return Ok(vec![(offset, bytes)]) };
        let end = offset.checked_add(bytes).ok_or(Status::FBIG)?;
        let (mut at, mut ranges) = (offset, Vec::new());
        while at < end || ranges.is_empty() {
            let now = (self.unit() - at % self.unit()).min(end - at);
            ranges.push((part.offset(at, self.unit()).ok_or(Status::FBIG)?, now));
            at += now;
        }
        Ok(ranges)
    }

    /// Reads up to `bytes` bytes at `offset`; whether the file, or what the node of a layout has of it, ends there.
    pub(crate) fn read(
        &self,
        access: Access<'_>,
        offset: u64,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<bool, Status> {
        let mut ends = false;
        for (offset, bytes) in self.ranges(access.grant, offset, bytes.into())? {
            ends = self.read_range(access, offset, bytes, out)?;
            if ends {
                break;
            }
        }
        Ok(ends)
    }

    fn read_range(
        &self,
        access: Access<'_>,
        offset: u64,
        bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool, Status> {
        let size = access.file.size();
        let bytes = size.saturating_sub(offset).min(bytes);
        // As a server that keeps its part of the data in a file: behind what it has, that ends, whether or not others have more.
        let (by_layout, mut ends) = (access.grant.number != 0, false);
        self.parts(access, offset, bytes, |owner, at, now| {
            let here = owner == access.node.index;
            ends |= by_layout && here && access.node.store.ends_before(access.file.id, at);
            if ends {
                Ok(())
            } else if here {
                access.node.store.read(access.file.id, at, now as usize, out);
                Ok(())
            } else {
                access.node.interconnect.read(&self.nodes[owner], access.file.id, at, now as u32, out)
            }
        })?;
        Ok(ends || offset + bytes >= size)
    }

    /// Writes `data` at `offset`, as far as `stable` says; whether all of it is stable then: what another node keeps always is, because this
    /// one's verifier says nothing of its restarts.
    pub(crate) fn write(
        &self,
        access: Access<'_>,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<bool, Status> {
        let (mut from, mut all_stable) = (0, true);
        for (offset, bytes) in self.ranges(access.grant, offset, data.len() as u64)? {
            let to = from + bytes as usize;
            all_stable &= self.write_range(access, offset, &data[from..to], stable)?;
            from = to;
        }
        Ok(all_stable)
    }

    fn write_range(
        &self,
        access: Access<'_>,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<bool, Status> {
        let end = offset.checked_add(data.len() as u64).filter(|&end| end <= FILE_BYTES_MAX);
        let end = end.ok_or(Status::FBIG)?;
        let mut all_stable = true;
        self.parts(access, offset, data.len() as u64, |owner, at, now| {
            let from = (at - offset) as usize;
            let piece = &data[from..from + now as usize];
            if owner == access.node.index {
                all_stable &= stable;
                access.node.store.write(access.file.id, at, piece, stable)
            } else {
                access.node.interconnect.write(&self.nodes[owner], access.file.id, at, piece)
            }
        })?;
        access.file.grow(end);
        Ok(all_stable)
    }

    /// Makes what `access.node` has of the file stable; the result is the node's verifier.
    pub(crate) fn commit(&self, access: Access<'_>) -> Result<u64, Status> {
        access.node.suffer()?;
        access.node.store.commit(access.file.id);
        Ok(access.node.verifier.load(Ordering::Acquire))
    }

    /// Sets the size of `file`.
    pub(crate) fn truncate(&self, file: &Inode, size: u64) -> Result<(), Status> {
        if size > FILE_BYTES_MAX {
            return Err(Status::FBIG);
        }
        let device = file.device();
        // Nobody reads or writes meanwhile.
        let mapping = device.mapping.write().unwrap_or_else(PoisonError::into_inner);
        for &node in &mapping.nodes {
            self.nodes[node].store.truncate(file.id, size);
        }
        file.size.store(size, Ordering::Release);
        file.change.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A number for the handles of a new layout.
    pub(crate) fn grant(&self) -> Arc<u64> {
        let grant = Arc::new(self.next_grant.fetch_add(1, Ordering::Relaxed));
        let mut grants = lock(&self.grants);
        grants.retain(|_, grant| grant.strong_count() > 0);
        grants.insert(*grant, Arc::downgrade(&grant));
        grant
    }

    fn is_granted(&self, grant: u64) -> bool {
        lock(&self.grants).get(&grant).is_some_and(|grant| grant.strong_count() > 0)
    }

    /// All space and what is free, bytes.
    pub(crate) fn space(&self) -> (u64, u64) {
        let total = self.options.bytes_max;
        (total, total.saturating_sub(self.budget.used.load(Ordering::Relaxed)))
    }

    /// Forgets the data of a file that has no name any more.
    pub(crate) fn forget(&self, file: u64) {
        self.nodes.iter().for_each(|node| node.store.remove(file));
    }
}
