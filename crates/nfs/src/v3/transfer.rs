//! READ, WRITE and COMMIT of NFSv3: templates of their calls, and their results. Source: RFC 1813, 3.3.6, 3.3.7, 3.3.21.

use super::{COMMIT, READ, WRITE};
use crate::attributes::Attributes;
use crate::rpc::call::{self, Credential};
use crate::transfer::{ReadResult, Stability, Template, Verifier, WriteResult};
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Fault, Handle, Status};

/// A READ of `file`.
pub fn read(file: &Handle, credential: &Credential) -> Template {
    let mut w = Writer::new();
    call::begin(&mut w, 0, READ, credential);
    file.encode(&mut w);
    let offset_at = w.len();
    w.u64(0);
    w.u32(0);
    Template::new(&w, offset_at, offset_at + 8)
}

/// A WRITE to `file`.
pub fn write(file: &Handle, stability: Stability, credential: &Credential) -> Template {
    let mut w = Writer::new();
    call::begin(&mut w, 0, WRITE, credential);
    file.encode(&mut w);
    let offset_at = w.len();
    w.u64(0);
    w.u32(0);
    w.u32(stability as u32);
    w.u32(0);
    Template::new(&w, offset_at, offset_at + 8).with_payload(offset_at + 16)
}

/// A COMMIT of `file`; offset 0 and 0 bytes mean all of it.
pub fn commit(file: &Handle, credential: &Credential) -> Template {
    let mut w = Writer::new();
    call::begin(&mut w, 0, COMMIT, credential);
    file.encode(&mut w);
    let offset_at = w.len();
    w.u64(0);
    w.u32(0);
    Template::new(&w, offset_at, offset_at + 8)
}

/// Results of READ, at most `bytes_max` bytes.
///
/// # Errors
/// [`Fault`]; a count that is not the length of the data is malformed.
pub fn read_read<'m>(r: &mut Reader<'m>, bytes_max: u32) -> Result<ReadResult<'m>, Fault> {
    Status::read(r, "READ")?;
    Attributes::read_optional_v3(r)?;
    let count = r.u32()?;
    let end_of_file = r.bool()?;
    let bytes = r.count("the data of a READ", bytes_max as usize)? as u32;
    if bytes != count {
        return Err(Malformed::Unknown { what: "the count of a READ", seen: count }.into());
    }
    Ok(ReadResult { bytes, end_of_file, behind: *r })
}

/// Results of WRITE of `bytes_max` bytes.
///
/// # Errors
/// [`Fault`]; more bytes than were sent are malformed.
pub fn read_write(r: &mut Reader<'_>, bytes_max: u32) -> Result<WriteResult, Fault> {
    Status::read(r, "WRITE")?;
    skip_wcc(r)?;
    let bytes = r.count("the count of a WRITE", bytes_max as usize)? as u32;
    let seen = r.u32()?;
    let stability =
        Stability::from_wire(seen).ok_or(Malformed::Unknown { what: "the stability of a WRITE", seen })?;
    Ok(WriteResult { bytes, stability, verifier: Verifier(r.fixed()?) })
}

/// Results of COMMIT.
///
/// # Errors
/// [`Fault`].
pub fn read_commit(r: &mut Reader<'_>) -> Result<Verifier, Fault> {
    Status::read(r, "COMMIT")?;
    skip_wcc(r)?;
    Ok(Verifier(r.fixed()?))
}

/// Attributes before and after. RFC 1813, 2.6.
fn skip_wcc(r: &mut Reader<'_>) -> Result<(), Malformed> {
    if r.bool()? {
        r.skip(3 * 8)?;
    }
    Attributes::read_optional_v3(r).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::reply::{Message, decode};
    use crate::transfer::SlotCall;

    const NOWHERE: SlotCall = SlotCall { slot: 0, sequence: 0 };

    #[test]
    fn templates_make_whole_calls() {
        let credential = Credential::sys("here", 0, 0, &[]);
        let file = Handle::new(b"abcdef").expect("short enough");
        let mut w = Writer::new();
        read(&file, &credential).append(&mut w, 5, NOWHERE, 1 << 33, 8192);
        let first = w.len();
        write(&file, Stability::File, &credential).append(&mut w, 6, NOWHERE, 4096, 5);
        w.raw(b"hello\0\0\0");

        let mark = u32::from_be_bytes(*w.bytes().first_chunk().expect("a mark"));
        assert_eq!((mark & !(1 << 31)) as usize, first - 4);
        let Ok(Message::Call { xid: 5, procedure, arguments: mut r }) = decode(&w.bytes()[4..first]) else {
            panic!("{w:?}");
        };
        assert_eq!((procedure, Handle::decode(&mut r, 64)), (READ, Ok(file)));
        assert_eq!((r.u64(), r.u32(), r.rest().len()), (Ok(1 << 33), Ok(8192), 0));

        let second = &w.bytes()[first..];
        let mark = u32::from_be_bytes(*second.first_chunk().expect("a mark"));
        assert_eq!((mark & !(1 << 31)) as usize, second.len() - 4, "the payload and its padding count");
        let Ok(Message::Call { xid: 6, procedure, arguments: mut r }) = decode(&second[4..]) else {
            panic!("{w:?}");
        };
        assert_eq!((procedure, Handle::decode(&mut r, 64)), (WRITE, Ok(file)));
        assert_eq!((r.u64(), r.u32(), r.u32()), (Ok(4096), Ok(5), Ok(2)));
        assert_eq!((r.opaque("data", 5), r.rest().len()), (Ok(&b"hello"[..]), 0));
    }
}
