//! pNFS on the wire: layouts say which servers have the parts of a file, devices say where those servers are. Layouts of files (RFC 8881, 13) and
//! flexible files (RFC 8435); other kinds are not asked for.

use super::compound::{Compound, Op, Results};
use super::open::StateId;
use super::{HANDLE_BYTES_MAX, OPAQUE_BYTES_MAX};
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Fault, Handle, Status};
use std::net::{IpAddr, SocketAddr};

/// Longest body of a layout or device, bytes: what we say in LAYOUTGET and GETDEVICEINFO.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Most stripes of a file, and addresses of a server.
const STRIPES_MAX: usize = 256;
const ADDRESSES_MAX: usize = 16;
/// Notifications that we want of a device: changed, deleted. RFC 8881, 20.12.
const NOTIFICATIONS: u32 = 6;

/// A kind of layout, with its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// `LAYOUT4_NFSV4_1_FILES`.
    Files = 1,
    /// `LAYOUT4_FLEX_FILES`.
    Flexible = 4,
}

impl LayoutKind {
    /// As people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Flexible => "flexible files",
        }
    }
}

/// What a server calls a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceId(pub [u8; 16]);

/// Where the parts of a file are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the server calls it; the first word goes up with each change.
    pub state: StateId,
    /// Of which kind.
    pub kind: LayoutKind,
    /// The part of the file that it is about: first byte, and bytes (all ones: to the end).
    pub range: (u64, u64),
    /// Bytes in a row on one server.
    pub unit: u64,
    /// Files: bytes before the pattern begins, and the stripe it begins with.
    pub pattern: (u64, u32),
    /// Files: a server has the bytes of its stripe without gaps, not where they are in the file.
    pub dense: bool,
    /// Files: COMMIT goes to the server of the layout.
    pub commit_through_server: bool,
    /// Who has the stripes. Files: one for all, the device says how many there are; flexible files: one for each.
    pub stripes: Vec<Stripe>,
}

/// A stripe of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Which device has it.
    pub device: DeviceId,
    /// By which handle; none: by that of the file.
    pub handle: Option<Handle>,
    /// As which state; none: as the file is open.
    pub state: Option<StateId>,
}

/// Where a byte of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// On which stripe.
    pub stripe: usize,
    /// At which byte of what its server has of the file.
    pub offset: u64,
    /// So many bytes of the file are in a row from there on.
    pub left: u64,
}

impl Layout {
    /// Where the byte at `offset` of the file is, on a device of `stripes` stripes; none outside of the layout. RFC 8881, 13.4.4.
    pub fn spot(&self, offset: u64, stripes: usize) -> Option<Spot> {
        let end = self.range.0.saturating_add(self.range.1);
        if offset < self.range.0 || offset >= end || offset < self.pattern.0 || stripes == 0 {
            return None;
        }
        let (relative, unit) = (offset - self.pattern.0, self.unit);
        let (number, within, count) = (relative / unit, relative % unit, stripes as u64);
        let stripe = (number % count + u64::from(self.pattern.1)) % count;
        let there = if self.dense { number / count * unit + within } else { offset };
        Some(Spot { stripe: stripe as usize, offset: there, left: (unit - within).min(end - offset) })
    }

    /// For each stripe of `device`, which of the layout's stripes has its handle. RFC 8881, 13.4.2 and 13.4.3.
    ///
    /// # Errors
    /// `BADLAYOUT`: they do not belong together.
    pub fn handles(&self, device: &Device) -> Result<Vec<usize>, Fault> {
        let (stripes, handles) = (device.stripes.len(), self.stripes.len());
        let begins = (self.pattern.1 as usize) < stripes;
        match handles {
            _ if !begins => Err(Fault::Refused { status: Status::BADLAYOUT, call: "GETDEVICEINFO" }),
            _ if self.dense && handles == stripes => Ok((0..stripes).collect()),
            1 if !self.dense => Ok(vec![0; stripes]),
            _ if !self.dense && handles == device.servers => Ok(device.indices.clone()),
            _ => Err(Fault::Refused { status: Status::BADLAYOUT, call: "GETDEVICEINFO" }),
        }
    }
}

/// A device: servers, and in which version they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// For each stripe, in order, the addresses of its server.
    pub stripes: Vec<Vec<SocketAddr>>,
    /// And which of them that is.
    pub indices: Vec<usize>,
    /// How many servers there are.
    pub servers: usize,
    /// Whether they are asked in v3; else v4.1.
    pub v3: bool,
}

/// What a data server refused: `ff_ioerr4`. RFC 8435, 9.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoFault {
    /// First byte, and bytes.
    pub range: (u64, u64),
    /// The stripe's state.
    pub state: StateId,
    /// Which device.
    pub device: DeviceId,
    /// What it said; `NXIO` where it said nothing.
    pub status: Status,
    /// What it was asked.
    pub op: Op,
}

impl IoFault {
    fn encode(&self, w: &mut Writer) {
        w.u64(self.range.0);
        w.u64(self.range.1);
        w.fixed(&self.state.0);
        w.u32(1);
        w.fixed(&self.device.0);
        w.u32(self.status.0);
        w.u32(self.op as u32);
    }
}

fn unusable(what: &'static str, seen: u32) -> Fault {
    Malformed::Unknown { what, seen }.into()
}

impl Compound<'_> {
    /// Asks for a layout of `file`: as `state` of the open file the first time, then as the layout's own: [`Results::layout_got`].
    pub fn layout_get(&mut self, file: &Handle, kind: LayoutKind, write: bool, state: StateId) {
        self.put(file);
        let w = self.op(Op::LayoutGet);
        w.bool(false);
        w.u32(kind as u32);
        w.u32(if write { 2 } else { 1 });
        w.u64(0);
        w.u64(u64::MAX);
        w.u64(0);
        w.fixed(&state.0);
        w.u32(BODY_BYTES_MAX as u32);
    }

    /// Asks what `device` is: [`Results::device`].
    pub fn device_info(&mut self, device: DeviceId, kind: LayoutKind) {
        let w = self.op(Op::GetDeviceInfo);
        w.fixed(&device.0);
        w.u32(kind as u32);
        w.u32(BODY_BYTES_MAX as u32);
        w.u32(1);
        w.u32(NOTIFICATIONS);
    }

    /// Tells of writes to data servers, the last of which ended at byte `end`: [`Results::layout_committed`].
    pub fn layout_commit(&mut self, file: &Handle, kind: LayoutKind, state: StateId, end: u64) {
        self.put(file);
        let w = self.op(Op::LayoutCommit);
        w.u64(0);
        w.u64(end);
        w.bool(false);
        w.fixed(&state.0);
        w.bool(end > 0);
        if end > 0 {
            w.u64(end - 1);
        }
        w.bool(false);
        w.u32(kind as u32);
        w.opaque(&[]);
    }

    /// Gives the layout of `file` back, and tells what data servers refused, as far as the kind of layout has words for it (RFC 8435, 9.1.1):
    /// [`Results::layout_returned`].
    pub fn layout_return(&mut self, file: &Handle, kind: LayoutKind, state: StateId, faults: &[IoFault]) {
        self.put(file);
        let w = self.op(Op::LayoutReturn);
        w.bool(false);
        w.u32(kind as u32);
        w.u32(3); // To read and to write.
        w.u32(1);
        w.u64(0);
        w.u64(u64::MAX);
        w.fixed(&state.0);
        let mut body = Writer::new();
        if kind == LayoutKind::Flexible {
            body.u32(faults.len() as u32);
            faults.iter().for_each(|fault| fault.encode(&mut body));
            body.u32(0); // No statistics.
        }
        w.opaque(body.bytes());
    }
}

impl Results<'_> {
    /// Result of [`Compound::layout_get`]. Of several pieces, the first is taken.
    ///
    /// # Errors
    /// As [`Results::next_op`]; mirrors, which this client does not use, are malformed.
    pub fn layout_got(&mut self) -> Result<Layout, Fault> {
        self.done(Op::PutFh)?;
        let r = self.next_op(Op::LayoutGet)?;
        r.bool()?;
        let state = StateId(r.fixed()?);
        if r.count("pieces of a layout", STRIPES_MAX)? == 0 {
            return Err(unusable("the number of a layout's pieces", 0));
        }
        let range = (r.u64()?, r.u64()?);
        r.u32()?;
        let kind = r.u32()?;
        let mut body = Reader::new(r.opaque("a layout", BODY_BYTES_MAX)?);
        match kind {
            1 => files(&mut body, state, range),
            4 => flexible(&mut body, state, range),
            seen => Err(unusable("the kind of layout", seen)),
        }
    }

    /// Result of [`Compound::device_info`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn device(&mut self) -> Result<Device, Fault> {
        let r = self.next_op(Op::GetDeviceInfo)?;
        let kind = r.u32()?;
        let mut body = Reader::new(r.opaque("a device", BODY_BYTES_MAX)?);
        let words = r.count("notifications", 8)?;
        r.skip(4 * words)?;
        match kind {
            1 => files_device(&mut body),
            4 => flexible_device(&mut body),
            seen => Err(unusable("the kind of device", seen)),
        }
    }

    /// Result of [`Compound::layout_commit`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn layout_committed(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        self.done(Op::LayoutCommit)
    }

    /// Result of [`Compound::layout_return`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn layout_returned(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        self.done(Op::LayoutReturn)
    }
}

/// RFC 8881, 13.3.
fn files(r: &mut Reader<'_>, state: StateId, range: (u64, u64)) -> Result<Layout, Fault> {
    let device = DeviceId(r.fixed()?);
    let word = r.u32()?;
    let (first, begin) = (r.u32()?, r.u64()?);
    let mut handles = Vec::new();
    for _ in 0..r.count("handles of a layout", STRIPES_MAX)? {
        handles.push(Handle::decode(r, HANDLE_BYTES_MAX)?);
    }
    let (unit, dense) = (u64::from(word & !0x3f), word & 1 != 0);
    // Of dense stripes, each has a handle of its own.
    if unit == 0 || (dense && handles.is_empty()) {
        return Err(unusable("the stripe unit", word));
    }
    let stripe = |handle| Stripe { device, handle, state: None };
    let stripes = match handles[..] {
        [] => vec![stripe(None)],
        _ => handles.into_iter().map(|handle| stripe(Some(handle))).collect(),
    };
    let commit_through_server = word & 2 != 0;
    let kind = LayoutKind::Files;
    Ok(Layout { state, kind, range, unit, pattern: (begin, first), dense, commit_through_server, stripes })
}

/// RFC 8435, 5.1.
fn flexible(r: &mut Reader<'_>, state: StateId, range: (u64, u64)) -> Result<Layout, Fault> {
    let unit = r.u64()?;
    match r.u32()? {
        1 => {}
        seen => return Err(unusable("the number of mirrors", seen)),
    }
    let mut stripes = Vec::new();
    for _ in 0..r.count("data servers of a mirror", STRIPES_MAX)? {
        let device = DeviceId(r.fixed()?);
        r.u32()?;
        let its = StateId(r.fixed()?);
        let mut handle = None;
        for _ in 0..r.count("handles of a data server", ADDRESSES_MAX)? {
            handle = handle.or(Some(Handle::decode(r, HANDLE_BYTES_MAX)?));
        }
        r.opaque("a user", OPAQUE_BYTES_MAX)?;
        r.opaque("a group", OPAQUE_BYTES_MAX)?;
        stripes.push(Stripe { device, handle, state: Some(its) });
    }
    if stripes.is_empty() || (unit == 0 && stripes.len() > 1) {
        return Err(unusable("the number of data servers", stripes.len() as u32));
    }
    let unit = if unit == 0 { u64::MAX } else { unit };
    let kind = LayoutKind::Flexible;
    Ok(Layout {
        state,
        kind,
        range,
        unit,
        pattern: (0, 0),
        dense: false,
        commit_through_server: false,
        stripes,
    })
}

/// RFC 8881, 13.3.
fn files_device(r: &mut Reader<'_>) -> Result<Device, Fault> {
    let mut indices = Vec::new();
    for _ in 0..r.count("stripes of a device", STRIPES_MAX)? {
        indices.push(r.u32()? as usize);
    }
    let mut servers = Vec::new();
    for _ in 0..r.count("servers of a device", STRIPES_MAX)? {
        servers.push(addresses(r)?);
    }
    let stripes = indices.iter().map(|&index| servers.get(index).cloned()).collect::<Option<Vec<_>>>();
    match stripes {
        Some(stripes) if !stripes.is_empty() => {
            Ok(Device { stripes, indices, servers: servers.len(), v3: false })
        }
        _ => Err(unusable("the stripes of a device, their number", indices.len() as u32)),
    }
}

/// RFC 8435, 4.1. The first of its versions that we speak is taken.
fn flexible_device(r: &mut Reader<'_>) -> Result<Device, Fault> {
    let stripes = vec![addresses(r)?];
    let mut v3 = None;
    for _ in 0..r.count("versions of a device", ADDRESSES_MAX)? {
        let (version, minor) = (r.u32()?, r.u32()?);
        r.skip(2 * 4)?;
        r.bool()?;
        v3 = v3.or(match (version, minor) {
            (3, _) => Some(true),
            (4, 1..) => Some(false),
            _ => None,
        });
    }
    let v3 = v3.ok_or_else(|| unusable("the number of versions of a device that we speak,", 0))?;
    Ok(Device { stripes, indices: vec![0], servers: 1, v3 })
}

fn addresses(r: &mut Reader<'_>) -> Result<Vec<SocketAddr>, Fault> {
    let mut found = Vec::new();
    for _ in 0..r.count("addresses of a server", ADDRESSES_MAX)? {
        let network = r.opaque("a network", OPAQUE_BYTES_MAX)?;
        let address = r.opaque("an address", OPAQUE_BYTES_MAX)?;
        if matches!(network, b"tcp" | b"tcp6") {
            found.extend(std::str::from_utf8(address).ok().and_then(universal));
        }
    }
    if found.is_empty() {
        return Err(unusable("the number of a server's addresses over TCP,", 0));
    }
    Ok(found)
}

/// `192.0.2.1.8.1` is port 2049 of 192.0.2.1. RFC 5665, 5.2.3.
fn universal(text: &str) -> Option<SocketAddr> {
    let (rest, low) = text.rsplit_once('.')?;
    let (host, high) = rest.rsplit_once('.')?;
    let (high, low): (u8, u8) = (high.parse().ok()?, low.parse().ok()?);
    Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_universal() {
        for (text, expected) in [
            ("192.0.2.1.8.1", Some("192.0.2.1:2049")),
            ("fd00::1.0.20", Some("[fd00::1]:20")),
            ("192.0.2.1", None),
            ("192.0.2.1.8.256", None),
            ("", None),
        ] {
            assert_eq!(universal(text), expected.map(|e| e.parse().expect("an address")), "{text}");
        }
    }

    const UNIT: u64 = 100;

    fn layout(pattern: (u64, u32), dense: bool, handles: usize) -> Layout {
        let stripe = Stripe { device: DeviceId([1; 16]), handle: None, state: None };
        Layout {
            state: StateId([1; 16]),
            kind: LayoutKind::Files,
            range: (0, 100_000),
            unit: UNIT,
            pattern,
            dense,
            commit_through_server: false,
            stripes: vec![stripe; handles],
        }
    }

    fn device(indices: &[usize], servers: usize) -> Device {
        let addresses = vec![SocketAddr::from(([127, 0, 0, 1], 2049))];
        Device { stripes: vec![addresses; indices.len()], indices: indices.to_vec(), servers, v3: false }
    }

    /// Byte for byte as the RFC writes it: `SUi`, `j`, and `data_file_offset`.
    #[test]
    fn bytes_are_where_the_rfc_says() {
        for (count, begin, first, dense) in
            [(1, 0, 0, true), (3, 0, 0, true), (3, 0, 2, true), (4, 70, 3, true), (3, 70, 1, false)]
        {
            let layout = layout((begin, first), dense, count as usize);
            let stripe_width = UNIT * count;
            for offset in 0..3_000 {
                let spot = layout.spot(offset, count as usize);
                if offset < begin {
                    assert_eq!(spot, None, "before the pattern");
                    continue;
                }
                let relative_offset = offset - begin;
                let stripe = (relative_offset / UNIT + u64::from(first)) % count;
                let data_file_offset = relative_offset / stripe_width * UNIT + relative_offset % UNIT;
                let expected = Spot {
                    stripe: stripe as usize,
                    offset: if dense { data_file_offset } else { offset },
                    left: UNIT - relative_offset % UNIT,
                };
                assert_eq!(spot, Some(expected), "byte {offset} of {layout:?}");
            }
            assert_eq!(layout.spot(99_999, count as usize).map(|spot| spot.left), Some(1), "its end");
            assert_eq!(layout.spot(100_000, count as usize), None);
        }
    }

    /// What is dense has no gap and no byte twice: servers' parts put together are the file.
    #[test]
    fn dense_stripes_hold_each_byte_once() {
        let (layout, count) = (layout((50, 1), true, 3), 3);
        let mut parts = vec![Vec::new(); count];
        for offset in 50..50 + 3 * UNIT * 5 {
            let spot = layout.spot(offset, count).expect("a place");
            assert_eq!(spot.offset, parts[spot.stripe].len() as u64, "byte {offset}");
            parts[spot.stripe].push(offset);
        }
        assert!(parts.iter().all(|part| part.len() as u64 == UNIT * 5));
    }

    #[test]
    fn each_stripe_has_its_handle() {
        let swapped = device(&[1, 0, 1], 2);
        for (dense, first, handles, expected) in [
            (false, 0, 1, Some(vec![0, 0, 0])),
            (false, 2, 2, Some(vec![1, 0, 1])),
            (false, 0, 3, None),
            (true, 0, 3, Some(vec![0, 1, 2])),
            (true, 0, 2, None),
            (true, 0, 1, None),
            (true, 3, 3, None),
        ] {
            let found = layout((0, first), dense, handles).handles(&swapped);
            assert_eq!(found.ok(), expected, "dense {dense}, begins with {first}, {handles} handles");
        }
        assert_eq!(layout((0, 0), true, 1).handles(&device(&[0], 1)), Ok(vec![0]));
    }

    #[test]
    fn what_cannot_be_used_is_told_from_what_can() {
        let mut good = Writer::new();
        good.fixed(&[7; 16]);
        good.u32(1 << 16);
        good.u32(0);
        good.u64(0);
        good.u32(1);
        good.opaque(b"file");
        let read = |w: &Writer| files(&mut Reader::new(w.bytes()), StateId([1; 16]), (0, u64::MAX));
        let layout = read(&good).expect("a layout of files");
        assert_eq!((layout.unit, layout.stripes.len()), (1 << 16, 1));
        for (at, word) in [(16, 0), (16, 1), (32, 1000)] {
            let mut bad = good.clone();
            bad.set_u32(at, word);
            assert!(read(&bad).is_err(), "{word} at byte {at}");
        }
        let mut dense = good.clone();
        dense.set_u32(16, 1 << 16 | 1);
        assert!(read(&dense).expect("dense stripes").dense && !layout.dense);
        dense.set_u32(32, 0);
        assert!(read(&dense).is_err(), "no handle for its stripes");
        for end in 0..good.len() {
            assert!(files(&mut Reader::new(&good.bytes()[..end]), StateId([1; 16]), (0, 1)).is_err());
        }
    }
}
