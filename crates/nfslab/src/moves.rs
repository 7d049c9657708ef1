//! Moves of data between nodes, and how clients learn of them.

use crate::cluster::{Cluster, LabError, Layouts, Shared};
use crate::store::{PIECE_BYTES, lock};
use crate::tree::{Device, Inode};
use crate::v4::layout as layouts;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use units::{Nanos, clock};

/// Longest that clients are waited for before their layouts are taken away.
const RETURN_MAX: Nanos = Nanos::millis(5_000);
/// How often it is looked whether they came back.
const LOOK: Nanos = Nanos(200_000);

/// How clients learn of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// Layouts are recalled first, and given anew after it (CB_LAYOUTRECALL).
    Recall,
    /// Layouts stay; the device's new address is told (CB_NOTIFY_DEVICEID).
    Notify,
    /// Layouts stay; a flag in each reply says that devices have changed.
    Flags,
    /// Nobody is told.
    Nobody,
}

/// What a move did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Pieces of 64 KiB that went from one node to another.
    pub pieces: usize,
    /// Layouts or clients that were told.
    pub told: usize,
    /// Layouts that did not come back in time, and were taken away.
    pub revoked: bool,
    /// How long the data was not to be used, at the nodes.
    pub frozen: Nanos,
}

impl Cluster {
    /// Moves what is at `path`, `/volume` with all its files or one file, to `nodes` in the order of stripes.
    ///
    /// # Errors
    /// [`LabError`]; a file that shares its volume's device cannot be told of as a device ([`Tell::Notify`], [`Tell::Flags`]).
    pub fn move_to(&self, path: &str, nodes: &[usize], tell: Tell) -> Result<Moved, LabError> {
        nodes.iter().try_for_each(|&node| self.node(node).map(drop))?;
        if nodes.is_empty() {
            return Err(LabError::Options("a move needs a node to go to".into()));
        }
        let shared = &self.shared;
        let _one = lock(&shared.moving);
        let found = shared.tree.walk(path);
        let inode = found.map_err(|status| LabError::Path { path: path.to_owned(), status })?;
        let device = inode.device();
        let on_device = |other: &Arc<Inode>| Arc::ptr_eq(&other.device(), &device);
        let files: Vec<_> =
            shared.tree.all().into_iter().filter(|file| file.entries.is_none() && on_device(file)).collect();
        let alone = inode.entries.is_none() && files.len() > 1;
        if inode.entries.is_none() && matches!(tell, Tell::Notify | Tell::Flags) && alone {
            return Err(LabError::Options(format!(
                "{path} shares the device of its volume; move the volume, or the file with a recall or silently first"
            )));
        }
        let only = (inode.entries.is_none()).then_some(inode.id);
        let files = if only.is_some() { vec![inode] } else { files };
        Ok(shared.move_files(&device, &files, only, nodes, tell))
    }

    /// The nodes that keep what is at `path`, in the order of stripes.
    ///
    /// # Errors
    /// [`LabError::Path`].
    pub fn nodes_of(&self, path: &str) -> Result<Vec<usize>, LabError> {
        let found = self.shared.tree.walk(path);
        let inode = found.map_err(|status| LabError::Path { path: path.to_owned(), status })?;
        Ok(inode.device().mapping().nodes.clone())
    }
}

impl Shared {
    fn layout_kind(&self) -> u32 {
        match *self.layouts.read().unwrap_or_else(PoisonError::into_inner) {
            Layouts::Flexible(_) => layouts::FLEXIBLE,
            _ => layouts::FILES,
        }
    }

    /// 1. layouts come back, where they are recalled, 2. the data goes over, 3. whoever is to be told is told.
    fn move_files(
        &self,
        device: &Arc<Device>,
        files: &[Arc<Inode>],
        only: Option<u64>,
        nodes: &[usize],
        tell: Tell,
    ) -> Moved {
        let kind = self.layout_kind();
        let mut moved = Moved { pieces: 0, told: 0, revoked: false, frozen: Nanos(0) };
        if tell == Tell::Recall {
            device.moving.store(true, Ordering::Release);
            (moved.told, moved.revoked) = self.recall(device, kind, only);
        }
        let start = clock::now();
        // Nobody reads or writes while this is held.
        let mut mapping = device.mapping.write().unwrap_or_else(PoisonError::into_inner);
        moved.pieces = files.iter().map(|file| self.carry(file.id, &mapping.nodes, nodes)).sum();
        if only.is_some() {
            let own = self.tree.new_device(nodes.to_vec());
            files.iter().for_each(|file| file.set_device(own.clone()));
        } else {
            mapping.nodes = nodes.to_vec();
            mapping.published += u32::from(tell == Tell::Recall);
        }
        let published = mapping.published;
        drop(mapping);
        moved.frozen = clock::now() - start;
        device.moving.store(false, Ordering::Release);
        for node in &self.nodes {
            moved.told += match tell {
                Tell::Notify => node.notify(device.id, published, nodes.len(), kind),
                Tell::Flags => node.flag(device.id),
                Tell::Recall | Tell::Nobody => 0,
            };
        }
        moved
    }

    /// How many layouts there were; and whether some had to be taken away.
    fn recall(&self, device: &Device, kind: u32, only: Option<u64>) -> (usize, bool) {
        let told = self.nodes.iter().map(|node| node.recall(device.id, kind, only)).sum();
        let deadline = clock::now() + RETURN_MAX;
        let held = || self.nodes.iter().any(|node| node.is_held(device.id, only));
        while held() {
            if clock::now() >= deadline {
                self.nodes.iter().for_each(|node| node.revoke(device.id, only));
                return (told, true);
            }
            clock::sleep(LOOK);
        }
        (told, false)
    }

    /// Gives the pieces of `file` to the nodes that are to keep them; how many went.
    fn carry(&self, file: u64, old: &[usize], new: &[usize]) -> usize {
        let unit = u64::from(self.options.stripe_bytes);
        let mut sources = old.to_vec();
        sources.sort_unstable();
        sources.dedup();
        let mut pieces: Vec<Vec<(u64, Box<[u8]>)>> = self.nodes.iter().map(|_| Vec::new()).collect();
        let mut went = 0;
        for source in sources {
            for (index, piece) in self.nodes[source].store.take(file) {
                let target = new[(index * PIECE_BYTES / unit) as usize % new.len()];
                went += usize::from(target != source);
                pieces[target].push((index, piece));
            }
        }
        for (node, pieces) in self.nodes.iter().zip(pieces) {
            if !pieces.is_empty() {
                node.store.put(file, pieces.into_iter());
            }
        }
        went
    }
}
