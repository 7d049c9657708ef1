//! Attributes: which are known, and how they lie on the wire. Source: RFC 8881, 5.

use super::Run;
use crate::cluster::{Layouts, Shared};
use crate::tree::Inode;
use crate::wire::{FILE_BYTES_MAX, Stop, TRANSFER_BYTES_MAX};
use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

const TYPE: u32 = 1;
const CHANGE: u32 = 3;
const SIZE: u32 = 4;
const FSID: u32 = 8;
const LEASE_TIME: u32 = 10;
const FILE_ID: u32 = 20;
const FILE_MAX: u32 = 27;
const READ_MAX: u32 = 30;
const WRITE_MAX: u32 = 31;
const MODE: u32 = 33;
const LINKS: u32 = 35;
const OWNER: u32 = 36;
const GROUP: u32 = 37;
const RAW_DEVICE: u32 = 41;
const SPACE_AVAILABLE: u32 = 42;
const SPACE_TOTAL: u32 = 44;
const SPACE_USED: u32 = 45;
const TIME_READ: u32 = 47;
const TIME_OF_METADATA: u32 = 52;
const TIME_WRITTEN: u32 = 53;
const LAYOUT_TYPES: u32 = 62;
/// Words of a set.
const WORDS_MAX: usize = 8;
/// Bytes of values that are set.
const VALUES_BYTES_MAX: usize = 4096;

const KNOWN: [u32; 22] = [
    0,
    TYPE,
    CHANGE,
    SIZE,
    FSID,
    LEASE_TIME,
    FILE_ID,
    FILE_MAX,
    READ_MAX,
    WRITE_MAX,
    MODE,
    LINKS,
    OWNER,
    GROUP,
    RAW_DEVICE,
    SPACE_AVAILABLE,
    SPACE_TOTAL,
    SPACE_USED,
    TIME_READ,
    TIME_OF_METADATA,
    TIME_WRITTEN,
    LAYOUT_TYPES,
];

/// A set of the attributes 0 to 63; higher ones are not known here.
pub(super) fn set(r: &mut Reader<'_>) -> Result<u64, Malformed> {
    let mut set = 0;
    for index in 0..r.count("a set of attributes", WORDS_MAX)? {
        let word = u64::from(r.u32()?);
        set |= match index {
            0 => word,
            1 => word << 32,
            _ => 0,
        };
    }
    Ok(set)
}

fn write_set(w: &mut Writer, set: u64) {
    w.u32(2);
    w.u32(set as u32);
    w.u32((set >> 32) as u32);
}

/// A `fattr4` of those of `wanted` that are known.
pub(super) fn attributes(shared: &Shared, inode: &Inode, wanted: u64, w: &mut Writer) {
    let known: u64 = KNOWN.iter().map(|&number| 1 << number).sum();
    write_set(w, wanted & known);
    let mut values = Writer::new();
    let directory = inode.entries.is_some();
    let size = if directory { 4096 } else { inode.size() };
    let (total, free) = shared.space();
    for number in KNOWN.into_iter().filter(|&number| wanted >> number & 1 == 1) {
        let v = &mut values;
        match number {
            0 => write_set(v, known),
            TYPE => v.u32(if directory { 2 } else { 1 }),
            CHANGE => v.u64(inode.change.load(Ordering::Relaxed)),
            SIZE | SPACE_USED => v.u64(size),
            FSID => {
                v.u64(1);
                v.u64(1);
            }
            LEASE_TIME => v.u32(shared.options.lease_seconds),
            FILE_ID => v.u64(inode.id),
            FILE_MAX => v.u64(FILE_BYTES_MAX),
            READ_MAX | WRITE_MAX => v.u64(TRANSFER_BYTES_MAX.into()),
            MODE => v.u32(inode.mode.load(Ordering::Relaxed)),
            LINKS => v.u32(1),
            // Nobody is told apart here.
            OWNER | GROUP => v.opaque(b"0"),
            RAW_DEVICE => v.u64(0),
            TIME_READ => {
                v.u64(0);
                v.u32(0);
            }
            SPACE_AVAILABLE => v.u64(free),
            SPACE_TOTAL => v.u64(total),
            // As in version 3: later is more.
            TIME_OF_METADATA | TIME_WRITTEN => {
                let change = inode.change.load(Ordering::Relaxed);
                v.u64(change >> 32);
                v.u32(change as u32);
            }
            _ => match *shared.layouts.read().unwrap_or_else(PoisonError::into_inner) {
                Layouts::None => v.u32(0),
                Layouts::Files | Layouts::Dense => [1, 1].iter().for_each(|&word| v.u32(word)),
                Layouts::Flexible(_) => [1, 4].iter().for_each(|&word| v.u32(word)),
            },
        }
    }
    w.opaque(values.bytes());
}

/// What is to be set: mode and size.
pub(super) fn changes(r: &mut Reader<'_>) -> Result<(u64, Option<u32>, Option<u64>), Stop> {
    let set = set(r)?;
    let mut values = Reader::new(r.opaque("values of attributes", VALUES_BYTES_MAX)?);
    if set & !(1 << SIZE | 1 << MODE) != 0 {
        return Err(Status::ATTRNOTSUPP.into());
    }
    let size = if set >> SIZE & 1 == 1 { Some(values.u64()?) } else { None };
    let mode = if set >> MODE & 1 == 1 { Some(values.u32()? & 0o7777) } else { None };
    Ok((set, mode, size))
}

impl Run<'_> {
    pub(super) fn getattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        let wanted = set(r)?;
        attributes(self.cx.shared, self.current()?, wanted, w);
        Ok(())
    }

    pub(super) fn setattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        r.skip(16)?; // A state; nobody is kept out.
        let (set, mode, size) = changes(r)?;
        let inode = self.current()?;
        mode.into_iter().for_each(|mode| inode.mode.store(mode, Ordering::Relaxed));
        if let Some(size) = size {
            self.file()?;
            self.cx.shared.truncate(self.current()?, size)?;
        }
        write_set(w, set);
        Ok(())
    }
}
