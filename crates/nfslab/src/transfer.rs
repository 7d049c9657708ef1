//! How a read or write comes to the node that keeps its data.

use crate::cluster::{Shared, WrongNode};
use crate::counters::count;
use crate::node::Node;
use crate::tree::Inode;
use crate::wire::FILE_BYTES_MAX;
use nfs::Status;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A client's transfer: at which node, of which file, and whether it came by a layout.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) node: &'a Node,
    pub(crate) file: &'a Inode,
    pub(crate) data: bool,
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
                    if access.data
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

    /// Reads up to `bytes` bytes at `offset`; whether the file ends there.
    pub(crate) fn read(
        &self,
        access: Access<'_>,
        offset: u64,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<bool, Status> {
        let size = access.file.size();
        let bytes = size.saturating_sub(offset).min(bytes.into());
        self.parts(access, offset, bytes, |owner, at, now| {
            if owner == access.node.index {
                access.node.store.read(access.file.id, at, now as usize, out);
                Ok(())
            } else {
                access.node.interconnect.read(&self.nodes[owner], access.file.id, at, now as u32, out)
            }
        })?;
        Ok(offset + bytes >= size)
    }

    /// Writes `data` at `offset`. Everything is as stable as it gets here.
    pub(crate) fn write(&self, access: Access<'_>, offset: u64, data: &[u8]) -> Result<(), Status> {
        let end = offset.checked_add(data.len() as u64).filter(|&end| end <= FILE_BYTES_MAX);
        let end = end.ok_or(Status::FBIG)?;
        self.parts(access, offset, data.len() as u64, |owner, at, now| {
            let from = (at - offset) as usize;
            let piece = &data[from..from + now as usize];
            if owner == access.node.index {
                access.node.store.write(access.file.id, at, piece)
            } else {
                access.node.interconnect.write(&self.nodes[owner], access.file.id, at, piece)
            }
        })?;
        access.file.grow(end);
        Ok(())
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
