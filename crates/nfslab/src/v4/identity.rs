//! Client ids, sessions, leases.

use super::Run;
use super::state::{Begun, SLOTS_MAX, Session};
use crate::store::lock;
use crate::wire::{MESSAGE_BYTES_MAX, Stop};
use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OPAQUE_BYTES_MAX: usize = 1024;
/// `EXCHGID4_FLAG_…`: confirmed, and that this node serves metadata and data. RFC 8881, 18.35.
const CONFIRMED: u32 = 1 << 31;
const PNFS: u32 = 0x2_0000 | 0x4_0000;
/// Callbacks come over the connection. RFC 8881, 18.36.
const BACK_CHANNEL: u32 = 2;
/// No way back to a client that has layouts. RFC 8881, 18.46.3.
pub(super) const CB_PATH_DOWN: u32 = 1;

/// Limits of a channel, as the client wants them.
struct Channel([u32; 6]);

impl Channel {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut words = [0; 6];
        for word in &mut words {
            *word = r.u32()?;
        }
        let rdma = r.count("RDMA limits", 1)?;
        r.skip(4 * rdma)?;
        Ok(Self(words))
    }

    fn encode(&self, w: &mut Writer) {
        self.0.iter().for_each(|&word| w.u32(word));
        w.u32(0);
    }
}

impl Run<'_> {
    pub(super) fn exchange_id(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let verifier = r.fixed()?;
        let owner = r.opaque("a client's name", OPAQUE_BYTES_MAX)?;
        r.u32()?;
        match r.u32()? {
            0 => {}
            _ => return Err(Status::ENCR_ALG_UNSUPP.into()),
        }
        for _ in 0..r.count("what a client is built of", 1)? {
            r.opaque("a domain", OPAQUE_BYTES_MAX)?;
            r.opaque("a product", OPAQUE_BYTES_MAX)?;
            r.skip(12)?;
        }
        let (client, _) = self.cx.node.v4.introduce(owner, verifier, self.cx.shared.options.lease_seconds)?;
        let sequence = lock(&client.created).0;
        w.u64(client.id);
        w.u32(sequence.wrapping_add(1));
        w.u32(PNFS | if sequence > 0 { CONFIRMED } else { 0 });
        w.u32(0);
        w.u64(0);
        let name = format!("nfslab {}", crate::cluster::name(self.cx.node.index));
        w.opaque(name.as_bytes());
        w.opaque(b"nfslab");
        w.u32(0);
        Ok(())
    }

    pub(super) fn create_session(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (id, sequence, flags) = (r.u64()?, r.u32()?, r.u32()?);
        let (mut fore, back) = (Channel::decode(r)?, Channel::decode(r)?);
        let program = r.u32()?;
        let client = self.cx.node.v4.client(id)?;
        let mut created = lock(&client.created);
        if sequence == created.0 && !created.1.is_empty() {
            w.raw(&created.1);
            return Ok(());
        }
        if sequence != created.0.wrapping_add(1) {
            return Err(Status::SEQ_MISORDERED.into());
        }
        let most = MESSAGE_BYTES_MAX as u32;
        fore.0[1] = fore.0[1].min(most);
        fore.0[2] = fore.0[2].min(most);
        fore.0[4] = fore.0[4].clamp(1, super::OPERATIONS_MAX as u32);
        fore.0[5] = fore.0[5].clamp(1, SLOTS_MAX);
        let session = self.cx.node.v4.new_session(&client, fore.0[5])?;
        if flags & BACK_CHANNEL != 0 {
            let mut back = lock(&session.back);
            (back.line, back.program) = (Some(Arc::downgrade(self.cx.line)), program);
            drop(back);
            self.probe(&session);
        }
        client.alive();
        let mut given = Writer::new();
        given.fixed(&session.id);
        given.u32(sequence);
        given.u32(flags & BACK_CHANNEL);
        fore.encode(&mut given);
        back.encode(&mut given);
        w.raw(given.bytes());
        *created = (sequence, given.bytes().to_vec());
        Ok(())
    }

    /// Result: the reply that is kept of the same call; or the call's begin.
    pub(super) fn sequence(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer,
    ) -> Result<(Option<Vec<u8>>, Option<Begun>), Stop> {
        let (id, sequence, slot) = (r.fixed()?, r.u32()?, r.u32()?);
        r.u32()?;
        let keep = r.bool()?;
        let session = self.cx.node.v4.session(&id, self.cx.shared.options.lease_seconds)?;
        let begun = session.begin(slot, sequence, keep)?;
        if begun.1.is_none() {
            return Ok(begun);
        }
        session.client.alive();
        let highest = session.slots() - 1;
        w.fixed(&id);
        for word in [sequence, slot, highest, highest, session.client.flags.load(Ordering::Relaxed)] {
            w.u32(word);
        }
        self.session = Some(session);
        Ok(begun)
    }

    pub(super) fn bind_connection(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let (id, direction) = (r.fixed()?, r.u32()?);
        r.bool()?;
        let session = self.cx.node.v4.session(&id, self.cx.shared.options.lease_seconds)?;
        if direction & 2 != 0 {
            lock(&session.back).line = Some(Arc::downgrade(self.cx.line));
            session.client.flags.fetch_and(!CB_PATH_DOWN, Ordering::Relaxed);
            self.probe(&session);
        }
        session.client.alive();
        w.fixed(&id);
        w.u32(direction & 3);
        w.bool(false);
        Ok(())
    }

    fn probe(&self, session: &Arc<Session>) {
        if self.cx.shared.options.probe {
            self.cx.node.probe(session);
        }
    }

    pub(super) fn destroy_session(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        Ok(self.cx.node.v4.end_session(&r.fixed()?)?)
    }

    pub(super) fn destroy_client_id(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        Ok(self.cx.node.v4.end_client(r.u64()?)?)
    }

    /// There is no grace period, so nothing is to be reclaimed.
    pub(super) fn reclaim_complete(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        r.bool()?;
        Ok(())
    }

    pub(super) fn set_client_id(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let verifier = r.fixed()?;
        let owner = r.opaque("a client's name", OPAQUE_BYTES_MAX)?;
        r.u32()?;
        r.opaque("a network", OPAQUE_BYTES_MAX)?;
        r.opaque("an address", OPAQUE_BYTES_MAX)?;
        r.u32()?;
        let (client, _) = self.cx.node.v4.introduce(owner, verifier, self.cx.shared.options.lease_seconds)?;
        w.u64(client.id);
        w.fixed(&verifier);
        Ok(())
    }

    pub(super) fn confirm_client_id(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        let (id, _) = (r.u64()?, r.fixed::<8>()?);
        self.cx.node.v4.client(id)?.alive();
        Ok(())
    }

    pub(super) fn renew(&mut self, r: &mut Reader<'_>) -> Result<(), Stop> {
        self.cx.node.v4.client(r.u64()?)?.alive();
        Ok(())
    }
}
