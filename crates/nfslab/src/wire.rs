//! What several protocols here have in common on the wire: handles, names, and how a call ends early.

use nfs::Status;
use nfs::xdr::{Malformed, Reader, Writer};

/// Longest name, bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// Longest transfer, bytes.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Longest message, bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + (64 << 10);
/// What is told of the largest file, bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 50;
const MAGIC: u32 = u32::from_be_bytes(*b"NLAB");

/// Why a call has no result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// It is refused.
    Status(Status),
    /// It cannot be read.
    Malformed,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u64,
    pub(crate) grant: Grant,
}

/// The layout that gave a handle: it ends with the layout, and a node may insist on keeping its data itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grant {
    /// 0 for none.
    pub(crate) number: u64,
    /// Of a dense layout: the part that it is of.
    pub(crate) part: Option<Part>,
}

impl Grant {
    pub(crate) fn of(number: u64) -> Self {
        Self { number, part: None }
    }
}

/// A part of a file without what is between its stripes: one of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) stripe: u32,
    pub(crate) count: u32,
}

impl Part {
    /// Where the byte at `offset` of the part is in the file, with stripes of `unit` bytes.
    pub(crate) fn offset(self, offset: u64, unit: u64) -> Option<u64> {
        let row = (offset / unit).checked_mul(u64::from(self.count))?;
        row.checked_add(u64::from(self.stripe))?.checked_mul(unit)?.checked_add(offset % unit)
    }
}

impl Place {
    /// The handle of a file or directory that came by no layout.
    pub(crate) fn of(id: u64) -> Self {
        Self { id, grant: Grant::default() }
    }

    pub(crate) fn encode(self, w: &mut Writer) {
        let mut inner = Writer::new();
        inner.u32(MAGIC);
        inner.u64(self.grant.number);
        inner.u64(self.id);
        if let Some(Part { stripe, count }) = self.grant.part {
            inner.u32(stripe);
            inner.u32(count);
        }
        w.opaque(inner.bytes());
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, Stop> {
        let mut inner = Reader::new(r.opaque("a file handle", 128)?);
        let mut read = || {
            let (magic, number, id) = (inner.u32()?, inner.u64()?, inner.u64()?);
            let is_whole = inner.rest().is_empty();
            let part = if is_whole { None } else { Some(Part { stripe: inner.u32()?, count: inner.u32()? }) };
            Ok::<_, Malformed>((magic, Self { id, grant: Grant { number, part } }))
        };
        match read() {
            Ok((MAGIC, place)) if place.grant.part.is_none_or(|part| part.stripe < part.count) => Ok(place),
            _ => Err(Status::BADHANDLE.into()),
        }
    }
}

/// A name of a directory's entry.
pub(crate) fn name(r: &mut Reader<'_>) -> Result<String, Stop> {
    let bytes = r.opaque("a name", 4096)?;
    if bytes.len() > NAME_BYTES_MAX {
        return Err(Status::NAMETOOLONG.into());
    }
    let name = std::str::from_utf8(bytes).map_err(|_| Status::INVAL)?;
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Status::INVAL.into());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_file_are_the_file() {
        let (unit, count) = (100, 3);
        let mut found: Vec<u64> = (0..count)
            .flat_map(|stripe| {
                (0..500).map(move |offset| Part { stripe, count }.offset(offset, unit).expect("near"))
            })
            .collect();
        assert_eq!(found[..3], [0, 1, 2]);
        assert_eq!(found[100], 300, "behind the stripes of the others");
        found.sort_unstable();
        assert!(found.into_iter().eq(0..1500));
        assert_eq!(Part { stripe: 0, count: 2 }.offset(u64::MAX, unit), None);
    }

    #[test]
    fn a_handle_says_which_part_it_is_of() {
        let decode = |w: &Writer| Place::decode(&mut Reader::new(w.bytes()));
        for part in [None, Some(Part { stripe: 2, count: 3 })] {
            let place = Place { id: 7, grant: Grant { number: 9, part } };
            let mut w = Writer::new();
            place.encode(&mut w);
            assert!(matches!(decode(&w), Ok(found) if found == place));
        }
        let mut w = Writer::new();
        Place { id: 7, grant: Grant { number: 9, part: Some(Part { stripe: 3, count: 3 }) } }.encode(&mut w);
        assert!(matches!(decode(&w), Err(Stop::Status(Status::BADHANDLE))));
    }
}
