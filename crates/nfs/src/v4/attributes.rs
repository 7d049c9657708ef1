//! Attributes of NFSv4: a set of numbers asks for them, the same set says what came. Source: RFC 8881, 3.3.7 and 5.

use super::compound::{Compound, Op, Results};
use super::open::StateId;
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Attributes, Fault, Handle, Kind};

/// A set of attributes, those of numbers 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set(u64);

const TYPE: u32 = 1;
const SIZE: u32 = 4;
const LEASE_TIME: u32 = 10;
const FILE_ID: u32 = 20;
const FILE_MAX: u32 = 27;
const READ_MAX: u32 = 30;
const WRITE_MAX: u32 = 31;
const MODE: u32 = 33;
const SPACE_AVAILABLE: u32 = 42;
const SPACE_TOTAL: u32 = 44;
const SPACE_USED: u32 = 45;
const LAYOUT_TYPES: u32 = 62;
/// Kinds of layouts in a list.
const LAYOUT_TYPES_MAX: usize = 64;

/// Words in a set; what this client asks for needs two.
const WORDS_MAX: usize = 8;
/// Longest values of a set, bytes.
const VALUES_BYTES_MAX: usize = 4096;

impl Set {
    /// None at all.
    pub const NONE: Self = Self(0);
    /// Of a file: kind, size, permissions, space, number.
    pub const FILE: Self = Self::of(&[TYPE, SIZE, FILE_ID, MODE, SPACE_USED]);
    /// Of a server and file system: limits, lease, space.
    pub const SERVER: Self =
        Self::of(&[LEASE_TIME, FILE_MAX, READ_MAX, WRITE_MAX, SPACE_AVAILABLE, SPACE_TOTAL]);

    /// The same, and which layouts it gives: [`Answer::layout_kinds`].
    pub const LAYOUT_SERVER: Self =
        Self::of(&[LEASE_TIME, FILE_MAX, READ_MAX, WRITE_MAX, SPACE_AVAILABLE, SPACE_TOTAL, LAYOUT_TYPES]);

    const fn of(numbers: &[u32]) -> Self {
        let (mut set, mut index) = (0, 0);
        while index < numbers.len() {
            set |= 1 << numbers[index];
            index += 1;
        }
        Self(set)
    }

    pub(super) fn encode(self, w: &mut Writer) {
        w.u32(2);
        w.u32(self.0 as u32);
        w.u32((self.0 >> 32) as u32);
    }

    /// Takes one; an attribute above 63 was not asked for.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut set = 0;
        for index in 0..r.count("a set of attributes", WORDS_MAX)? {
            let word = r.u32()?;
            match index {
                0 => set |= u64::from(word),
                1 => set |= u64::from(word) << 32,
                _ if word == 0 => {}
                _ => return Err(Malformed::Unknown { what: "the set of attributes", seen: word }),
            }
        }
        Ok(Self(set))
    }

    /// Goes past one.
    pub(super) fn skip(r: &mut Reader<'_>) -> Result<(), Malformed> {
        let words = r.count("a set of attributes", WORDS_MAX)?;
        r.skip(4 * words)
    }
}

/// What came of the attributes that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What kind of file.
    pub kind: Option<Kind>,
    /// Size, bytes.
    pub size: Option<u64>,
    /// How long the server keeps what it knows of a silent client, seconds.
    pub lease_seconds: Option<u32>,
    /// Number of the file.
    pub file_id: Option<u64>,
    /// Largest file, bytes.
    pub file_max: Option<u64>,
    /// Longest READ, bytes.
    pub read_max: Option<u64>,
    /// Longest WRITE, bytes.
    pub write_max: Option<u64>,
    /// Permissions.
    pub mode: Option<u32>,
    /// Free for this caller, bytes.
    pub space_available: Option<u64>,
    /// Of the file system, bytes.
    pub space_total: Option<u64>,
    /// Taken by the file, bytes.
    pub space_used: Option<u64>,
    /// Kinds of layouts, by their numbers.
    pub layout_kinds: Vec<u32>,
}

impl Answer {
    /// Takes a `fattr4`. Values lie in the order of their numbers, so one that was not asked for ends it.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Set(mut set) = Set::decode(r)?;
        let mut values = Reader::new(r.opaque("values of attributes", VALUES_BYTES_MAX)?);
        let mut answer = Self::default();
        while set != 0 {
            let number = set.trailing_zeros();
            set &= set - 1;
            match number {
                TYPE => answer.kind = Some(values.u32()?.into()),
                SIZE => answer.size = Some(values.u64()?),
                LEASE_TIME => answer.lease_seconds = Some(values.u32()?),
                FILE_ID => answer.file_id = Some(values.u64()?),
                FILE_MAX => answer.file_max = Some(values.u64()?),
                READ_MAX => answer.read_max = Some(values.u64()?),
                WRITE_MAX => answer.write_max = Some(values.u64()?),
                MODE => answer.mode = Some(values.u32()?),
                SPACE_AVAILABLE => answer.space_available = Some(values.u64()?),
                SPACE_TOTAL => answer.space_total = Some(values.u64()?),
                SPACE_USED => answer.space_used = Some(values.u64()?),
                LAYOUT_TYPES => {
                    for _ in 0..values.count("kinds of layouts", LAYOUT_TYPES_MAX)? {
                        answer.layout_kinds.push(values.u32()?);
                    }
                }
                seen => return Err(Malformed::Unknown { what: "the attribute", seen }),
            }
        }
        Ok(answer)
    }

    /// As of a file.
    ///
    /// # Errors
    /// [`Malformed`] when kind or size are missing, which every server has to know.
    pub fn file(&self) -> Result<Attributes, Malformed> {
        let (Some(kind), Some(size)) = (self.kind, self.size) else {
            return Err(Malformed::Unknown { what: "the set of attributes, without kind or size,", seen: 0 });
        };
        let file_id = self.file_id.unwrap_or(0);
        Ok(Attributes {
            kind,
            mode: self.mode.unwrap_or(0),
            size,
            used: self.space_used.unwrap_or(0),
            file_id,
        })
    }
}

impl Compound<'_> {
    /// Asks for `set` of the current file: [`Results::attributes`].
    pub fn get_attributes(&mut self, set: Set) {
        set.encode(self.op(Op::GetAttr));
    }

    /// Gives `handle`, open as `state`, a new size in bytes: [`Results::size_set`].
    pub fn set_size(&mut self, handle: &Handle, state: StateId, size: u64) {
        self.put(handle);
        let w = self.op(Op::SetAttr);
        w.fixed(&state.0);
        Set::of(&[SIZE]).encode(w);
        w.u32(8);
        w.u64(size);
    }
}

/// Attributes of a new file: its permissions alone.
pub(super) fn encode_mode(w: &mut Writer, mode: u32) {
    Set::of(&[MODE]).encode(w);
    w.u32(4);
    w.u32(mode);
}

impl Results<'_> {
    /// Result of [`Compound::get_attributes`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn attributes(&mut self) -> Result<Answer, Fault> {
        Ok(Answer::decode(self.next_op(Op::GetAttr)?)?)
    }

    /// Result of [`Compound::set_size`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn size_set(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        Ok(Set::skip(self.next_op(Op::SetAttr)?)?)
    }
}
