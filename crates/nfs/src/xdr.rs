//! External data representation: big-endian words, and everything padded to four bytes. Source: RFC 4506.
//!
//! [`Writer`] appends to bytes that it keeps; [`Reader`] borrows what was received, so that a payload is looked at where it lies.

use thiserror::Error;

/// What is wrong with a message. It was not sent by a server that keeps to the protocol, or it was damaged on the way.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// It ends in the middle of a value.
    #[error("a message ends {missing} bytes too early")]
    Short {
        /// Bytes that were wanted and not there.
        missing: usize,
    },
    /// A length above what the protocol, or this client, allows.
    #[error("{what} of {seen}, where at most {max} is allowed")]
    TooLong {
        /// Of what.
        what: &'static str,
        /// The length in the message.
        seen: u64,
        /// The bound.
        max: u64,
    },
    /// A value that has no meaning in its place.
    #[error("{what} {seen} has no meaning here")]
    Unknown {
        /// Of what.
        what: &'static str,
        /// The value in the message.
        seen: u32,
    },
}

/// Bytes up to the next multiple of four.
const fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() & 3
}

/// Appends values to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes so far: the place of the next value, for [`Writer::set_u32`].
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// An unsigned integer, an enumeration. RFC 4506, 4.2.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// An unsigned hyper integer. RFC 4506, 4.5.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A boolean. RFC 4506, 4.4.
    pub fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    /// Opaque data whose length both sides know. RFC 4506, 4.9.
    pub fn fixed(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        self.bytes.resize(self.bytes.len() + padding(data.len()), 0);
    }

    /// Opaque data behind its length, or a string. RFC 4506, 4.10 and 4.11.
    ///
    /// # Panics
    /// With 4 GiB or more: a bug.
    pub fn opaque(&mut self, data: &[u8]) {
        self.u32(u32::try_from(data.len()).expect("opaque data is below 4 GiB"));
        self.fixed(data);
    }

    /// Messages or values that are encoded already.
    pub fn raw(&mut self, encoded: &[u8]) {
        self.bytes.extend_from_slice(encoded);
    }

    /// Writes over the word at byte `at`.
    ///
    /// # Panics
    /// When nothing was written there: a bug.
    pub fn set_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// Writes over the two words at byte `at`.
    ///
    /// # Panics
    /// When nothing was written there: a bug.
    pub fn set_u64(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
}

/// Takes values from the front of a received message. A failed call leaves it where it was.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'m> {
    rest: &'m [u8],
}

impl<'m> Reader<'m> {
    /// All of `message`.
    pub const fn new(message: &'m [u8]) -> Self {
        Self { rest: message }
    }

    /// What was not taken yet.
    pub const fn rest(&self) -> &'m [u8] {
        self.rest
    }

    fn take(&mut self, bytes: usize) -> Result<&'m [u8], Malformed> {
        let Some((taken, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(Malformed::Short { missing: bytes - self.rest.len() });
        };
        self.rest = rest;
        Ok(taken)
    }

    /// An unsigned integer, an enumeration.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// An unsigned hyper integer.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.fixed().map(u64::from_be_bytes)
    }

    /// A boolean: 0 or 1, nothing else.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Unknown`].
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            seen => Err(Malformed::Unknown { what: "the boolean", seen }),
        }
    }

    /// Opaque data of `N` bytes; `N` is a multiple of four for everything in NFS.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        const { assert!(N.is_multiple_of(4), "no padding is skipped here") };
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// Goes past `bytes` bytes, which are a multiple of four.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.take(bytes).map(drop)
    }

    /// Opaque data behind its length, at most `max` bytes, where it lies. What pads it is not looked at.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::TooLong`] names it `what`.
    pub fn opaque(&mut self, what: &'static str, max: usize) -> Result<&'m [u8], Malformed> {
        let mut ahead = *self;
        let length = ahead.count(what, max)?;
        let data = ahead.padded(length)?;
        *self = ahead;
        Ok(data)
    }

    /// Opaque data of `bytes` bytes whose length was read before, where it lies. What pads it is not looked at.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn padded(&mut self, bytes: usize) -> Result<&'m [u8], Malformed> {
        let mut ahead = *self;
        let data = ahead.take(bytes)?;
        ahead.take(padding(bytes))?;
        *self = ahead;
        Ok(data)
    }

    /// A count of what follows, at most `max`.
    ///
    /// # Errors
    /// [`Malformed::Short`]; [`Malformed::TooLong`] names it `what`.
    pub fn count(&mut self, what: &'static str, max: usize) -> Result<usize, Malformed> {
        let seen = self.u32()?;
        let count = seen as usize;
        if count > max {
            return Err(Malformed::TooLong { what, seen: u64::from(seen), max: max as u64 });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut w = Writer::new();
        w.u32(7);
        w.u64(1 << 40);
        w.bool(true);
        w.opaque(b"abcde");
        w.fixed(b"wxyz");
        w.opaque(b"");
        w.set_u32(0, 8);
        w.set_u64(4, 3 << 40);
        assert_eq!(w.len(), 4 + 8 + 4 + (4 + 8) + 4 + 4);
        let mut r = Reader::new(w.bytes());
        assert_eq!((r.u32(), r.u64(), r.bool()), (Ok(8), Ok(3 << 40), Ok(true)));
        assert_eq!(r.opaque("a name", 5), Ok(&b"abcde"[..]));
        assert_eq!(r.fixed::<4>(), Ok(*b"wxyz"));
        assert_eq!(r.opaque("a name", 0), Ok(&b""[..]));
        assert!(r.rest().is_empty());
    }

    #[test]
    fn what_does_not_hold_together_is_an_error_and_moves_nothing() {
        let mut w = Writer::new();
        w.opaque(b"abcde");
        let whole = w.bytes();
        for end in 0..whole.len() {
            let mut r = Reader::new(&whole[..end]);
            assert!(matches!(r.opaque("a name", 5), Err(Malformed::Short { .. })), "{end}");
            assert_eq!(r.rest().len(), end);
        }
        let too_long = Malformed::TooLong { what: "a name", seen: 5, max: 4 };
        assert_eq!(Reader::new(whole).opaque("a name", 4), Err(too_long));
        assert_eq!(too_long.to_string(), "a name of 5, where at most 4 is allowed");
        let huge = u32::MAX.to_be_bytes();
        assert!(matches!(Reader::new(&huge).opaque("a name", usize::MAX), Err(Malformed::Short { .. })));
        assert!(matches!(Reader::new(&[0, 0, 0, 2]).bool(), Err(Malformed::Unknown { seen: 2, .. })));
    }
}
