//! pNFS: where the parts of a file are, told in layouts of files (RFC 8881, 13) or flexible files (RFC 8435).
//!
//! A device's name says which data it is, how often a move has changed it with a recall, and which stripe:
//! `| device (8) | published (4) | stripe (4) |`. A layout of files names one device for all stripes, 0; one of flexible files one for each, from 1.

use super::Run;
use super::state::Held;
use crate::cluster::{DataServer, Layouts};
use crate::counters::add;
use crate::store::lock;
use crate::tree::{Device, Inode, Mapping};
use crate::wire::{Grant, Part, Place, Stop, TRANSFER_BYTES_MAX};
use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// `LAYOUT4_NFSV4_1_FILES` and `LAYOUT4_FLEX_FILES`.
pub(crate) const FILES: u32 = 1;
pub(crate) const FLEXIBLE: u32 = 4;
/// Bodies of layouts that come back, bytes; and what is told in them.
const BODY_BYTES_MAX: usize = 8192;
const REPORTS_MAX: usize = 256;
/// SEQUENCE flags that a look at devices answers: changed, deleted. RFC 8881, 18.46.3.
pub(crate) const DEVICE_FLAGS: u32 = 0x800 | 0x1000;
/// Changes and deletions of devices can be told. RFC 8881, 20.12.
const NOTIFICATIONS: u32 = 6;

/// `NFL4_UFLG_DENSE`.
const DENSE: u32 = 1;

/// The index that the pattern of dense layouts begins with: clients have to look at it.
fn dense_first(count: usize) -> usize {
    1 % count
}

/// The stripe of the data, 0 for its begin, that is at `index` of a dense layout.
fn dense_stripe(index: usize, count: usize) -> usize {
    (index + count - dense_first(count)) % count
}

/// A device's name on the wire.
pub(crate) fn device_name(device: u64, published: u32, stripe: u32) -> [u8; 16] {
    let mut name = [0; 16];
    name[..8].copy_from_slice(&device.to_be_bytes());
    name[8..12].copy_from_slice(&published.to_be_bytes());
    name[12..].copy_from_slice(&stripe.to_be_bytes());
    name
}

/// The stateid of a client's layout of a file: sequence, then what tells it from those of opens.
pub(crate) fn layout_state(sequence: u32, node: usize, file: u64) -> [u8; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&sequence.to_be_bytes());
    state[4..8].copy_from_slice(&(node as u32 | 1 << 31).to_be_bytes());
    state[8..].copy_from_slice(&file.to_be_bytes());
    state
}

/// How an address is written to clients. RFC 5665, 5.2.3.3.
fn write_address(w: &mut Writer, address: SocketAddr) {
    w.opaque(b"tcp");
    let port = address.port();
    w.opaque(format!("{}.{}.{}", address.ip(), port >> 8, port & 0xff).as_bytes());
}

impl Run<'_> {
    fn layouts(&self) -> Layouts {
        *self.cx.shared.layouts.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn layout_get(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.bool()?;
        let (kind, mode) = (r.u32()?, r.u32()?);
        r.skip(3 * 8)?; // Whatever range is asked for, the whole file is given.
        let state = r.fixed::<16>()?;
        let bytes_max = r.u32()?;
        let (file, _) = self.file()?;
        let session = self.session.clone().ok_or(Status::OP_NOT_IN_SESSION)?;
        let kind_given = match self.layouts() {
            Layouts::None => return Err(Status::LAYOUTUNAVAILABLE.into()),
            Layouts::Files | Layouts::Dense => FILES,
            Layouts::Flexible(_) => FLEXIBLE,
        };
        if kind != kind_given {
            return Err(Status::UNKNOWN_LAYOUTTYPE.into());
        }
        let mut layouts = lock(&session.client.layouts);
        let device = file.device();
        if device.moving.load(Ordering::Acquire) {
            return Err(Status::RECALLCONFLICT.into());
        }
        let held = layouts.get(&file.id).cloned();
        if !is_layout(&state) {
            self.cx.node.v4.check(&state, file.id)?;
        } else if held.is_none() {
            return Err(Status::BAD_STATEID.into());
        }
        let sequence = held.as_ref().map_or(1, |held| held.sequence.wrapping_add(1));
        let grant = held.map_or_else(|| self.cx.shared.grant(), |held| held.grant);
        let mut body = Writer::new();
        let mapping = device.mapping().clone();
        match self.layouts() {
            Layouts::Files => self.files_body(&mut body, (&file, *grant), &device, &mapping),
            Layouts::Dense => self.dense_body(&mut body, (&file, *grant), &device, &mapping),
            _ => self.flexible_body(&mut body, (&file, *grant), &device, &mapping),
        }
        if body.len() + 128 > bytes_max as usize {
            return Err(Status::TOOSMALL.into());
        }
        layouts.insert(file.id, Held { sequence, device: device.id, grant });
        w.bool(false);
        w.fixed(&layout_state(sequence, self.cx.node.index, file.id));
        w.u32(1);
        w.u64(0);
        w.u64(u64::MAX);
        w.u32(mode);
        w.u32(kind);
        w.opaque(body.bytes());
        Ok(())
    }

    fn files_body(&self, w: &mut Writer, (file, grant): (&Inode, u64), device: &Device, mapping: &Mapping) {
        w.fixed(&device_name(device.id, mapping.published, 0));
        w.u32(self.cx.shared.options.stripe_bytes); // Sparse, and each node is told to commit what it has.
        w.u32(0);
        w.u64(0);
        w.u32(1);
        Place { id: file.id, grant: Grant::of(grant) }.encode(w);
    }

    /// Each stripe has a handle of its own, which says which part of the file it is of.
    fn dense_body(&self, w: &mut Writer, (file, grant): (&Inode, u64), device: &Device, mapping: &Mapping) {
        let count = mapping.nodes.len();
        w.fixed(&device_name(device.id, mapping.published, 0));
        w.u32(self.cx.shared.options.stripe_bytes | DENSE);
        w.u32(dense_first(count) as u32);
        w.u64(0);
        w.u32(count as u32);
        for index in 0..count {
            let part = Part { stripe: dense_stripe(index, count) as u32, count: count as u32 };
            Place { id: file.id, grant: Grant { part: Some(part), ..Grant::of(grant) } }.encode(w);
        }
    }

    fn flexible_body(
        &self,
        w: &mut Writer,
        (file, grant): (&Inode, u64),
        device: &Device,
        mapping: &Mapping,
    ) {
        w.u64(self.cx.shared.options.stripe_bytes.into());
        w.u32(1); // One mirror.
        w.u32(mapping.nodes.len() as u32);
        for stripe in 0..mapping.nodes.len() as u32 {
            w.fixed(&device_name(device.id, mapping.published, stripe + 1));
            w.u32(1);
            w.fixed(&[0; 16]); // Nobody's state.
            w.u32(1);
            Place { id: file.id, grant: Grant::of(grant) }.encode(w);
            w.opaque(b"0");
            w.opaque(b"0");
        }
        w.u32(0);
        w.u32(0);
    }

    pub(super) fn device_info(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (id, published, stripe) = (r.u64()?, r.u32()?, r.u32()?);
        let (kind, bytes_max) = (r.u32()?, r.u32()?);
        for _ in 0..r.count("notifications", 8)? {
            r.u32()?;
        }
        let device = self.cx.shared.tree.device(id).ok_or(Status::NOENT)?;
        let mapping = device.mapping().clone();
        if mapping.published != published || stripe as usize > mapping.nodes.len() {
            return Err(Status::NOENT.into());
        }
        let mut body = Writer::new();
        let address = |node: usize| self.cx.shared.nodes[node].address;
        match (kind, self.layouts()) {
            (FILES, Layouts::Dense) if stripe == 0 => {
                // A node that has several stripes is there once.
                let mut servers = mapping.nodes.clone();
                servers.sort_unstable();
                servers.dedup();
                let count = mapping.nodes.len();
                body.u32(count as u32);
                for index in 0..count {
                    let node = mapping.nodes[dense_stripe(index, count)];
                    body.u32(servers.partition_point(|&other| other < node) as u32);
                }
                body.u32(servers.len() as u32);
                for node in servers {
                    body.u32(1);
                    write_address(&mut body, address(node));
                }
            }
            (FILES, _) if stripe == 0 => {
                body.u32(mapping.nodes.len() as u32);
                (0..mapping.nodes.len() as u32).for_each(|index| body.u32(index));
                body.u32(mapping.nodes.len() as u32);
                for &node in &mapping.nodes {
                    body.u32(1);
                    write_address(&mut body, address(node));
                }
            }
            (FLEXIBLE, layouts) if stripe > 0 => {
                body.u32(1);
                write_address(&mut body, address(mapping.nodes[stripe as usize - 1]));
                body.u32(1);
                let v3 = layouts == Layouts::Flexible(DataServer::V3);
                for word in [if v3 { 3 } else { 4 }, u32::from(!v3), TRANSFER_BYTES_MAX, TRANSFER_BYTES_MAX] {
                    body.u32(word);
                }
                body.bool(false);
            }
            _ => return Err(Status::UNKNOWN_LAYOUTTYPE.into()),
        }
        if body.len() + 32 > bytes_max as usize {
            return Err(Status::TOOSMALL.into());
        }
        if let Some(session) = &self.session {
            session.client.flags.fetch_and(!DEVICE_FLAGS, Ordering::Relaxed);
        }
        w.u32(kind);
        w.opaque(body.bytes());
        w.u32(1);
        w.u32(NOTIFICATIONS);
        Ok(())
    }

    /// Sizes are known already: nodes tell them with each write.
    pub(super) fn layout_commit(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.skip(2 * 8)?;
        r.bool()?;
        r.skip(16)?;
        let last = if r.bool()? { Some(r.u64()?) } else { None };
        if r.bool()? {
            r.skip(12)?;
        }
        r.u32()?;
        r.opaque("a layout's update", BODY_BYTES_MAX)?;
        let (file, _) = self.file()?;
        if last.is_some_and(|last| last >= crate::wire::FILE_BYTES_MAX) {
            return Err(Status::FBIG.into());
        }
        w.bool(true);
        w.u64(file.size());
        Ok(())
    }

    pub(super) fn layout_return(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.bool()?;
        let kind = r.u32()?;
        r.skip(4)?;
        let all = r.u32()? != 1;
        let session = self.session.clone().ok_or(Status::OP_NOT_IN_SESSION)?;
        let mut layouts = lock(&session.client.layouts);
        if all {
            layouts.clear();
        } else {
            r.skip(2 * 8 + 16)?;
            let body = Reader::new(r.opaque("the body of a layout's return", BODY_BYTES_MAX)?);
            if kind == FLEXIBLE {
                add(&self.cx.node.counters.reported, reported(body)?);
            }
            let file = self.current()?.id;
            layouts.remove(&file).ok_or(Status::BAD_STATEID)?;
        }
        w.bool(false);
        Ok(())
    }
}

/// How many refusals of data servers a client tells of. RFC 8435, 9.1.1.
fn reported(mut r: Reader<'_>) -> Result<u64, Malformed> {
    let mut count = 0;
    for _ in 0..r.count("refusals of data servers", REPORTS_MAX)? {
        r.skip(2 * 8 + 16)?;
        for _ in 0..r.count("errors of a device", REPORTS_MAX)? {
            r.skip(16 + 2 * 4)?;
            count += 1;
        }
    }
    Ok(count)
}

fn is_layout(state: &[u8; 16]) -> bool {
    state[4] & 0x80 != 0 && *state != [0xff; 16]
}
