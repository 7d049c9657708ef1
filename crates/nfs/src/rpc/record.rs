//! How a stream is cut into messages: each is one or more fragments behind a word of length. Source: RFC 5531, 11.
//!
//! ```text
//! | last? (1 bit) | length (31 bits) | fragment … | last? | length | fragment … |
//! ```

use crate::xdr::{Malformed, Writer};
use std::ops::Range;

const LAST: u32 = 1 << 31;
const MARK_BYTES: usize = 4;
/// Memory of a connection at rest.
const RESTING_BYTES: usize = 256 << 10;
/// From this length on, a fragment is received to its end and no further.
const LONG_BYTES: usize = 64 << 10;
/// From this length on, the payload of a message can be diverted. With 64 KiB that costs more (the system calls) than the copy that it saves, from 128 KiB on less.
const DIVERTED_BYTES: usize = 96 << 10;
/// Where payloads are diverted: enough for what stands before one, and not much of the payload, which would be copied.
const HEAD_BYTES: usize = 1 << 10;
/// More fragments than this in one message, and somebody sends marks without content.
const FRAGMENTS_MAX: u32 = 4096;

/// Leaves room for the mark of a record; the result goes to [`seal`].
pub fn open(writer: &mut Writer) -> usize {
    let at = writer.len();
    writer.u32(0);
    at
}

/// Closes the record that begins at `at`; `behind` bytes of it are sent from elsewhere, after what was written.
///
/// # Panics
/// With 2 GiB or more: a bug.
pub fn seal(writer: &mut Writer, at: usize, behind: usize) {
    let length = u32::try_from(writer.len() - at - MARK_BYTES + behind).expect("a record is below 2 GiB");
    assert!(length < LAST, "a record of {length} bytes");
    writer.set_u32(at, LAST | length);
}

/// What was received of a stream, and where its messages are in it.
///
/// The memory is one piece: what the socket gives is written behind what is there, and messages are looked at where they lie.
/// Only one that came in several fragments is moved together. Memory grows as bytes really arrive, to at most twice the longest
/// message allowed and the marks of its fragments; a length that is only claimed costs nothing.
///
/// The payload of a long message can be received elsewhere, as soon as the message has begun to arrive ([`Records::divert`]). What stands before it and behind
/// it then lies side by side here, as one message without it:
/// ```text
/// stream   | mark | head | payload …………………………………… | tail | mark | …
///            here   here   here  elsewhere            here   here
///                          (copied)
/// ```
#[derive(Debug)]
pub struct Records {
    buffer: Vec<u8>,
    /// Of the message that is being put together: what is contiguous of it.
    partial: Range<usize>,
    fragments: u32,
    /// Where the next mark is; behind `partial`.
    mark: usize,
    /// End of what was received.
    end: usize,
    /// Of a payload that goes elsewhere: bytes that have not arrived.
    diverted: Option<usize>,
    /// The latest message was one without its payload, and the next one may be.
    expects_payload: bool,
    message_bytes_max: usize,
}

impl Records {
    /// For messages of at most `message_bytes_max` bytes.
    pub fn new(message_bytes_max: usize) -> Self {
        let buffer = vec![0; RESTING_BYTES.min(message_bytes_max + MARK_BYTES)];
        Self {
            buffer,
            partial: 0..0,
            fragments: 0,
            mark: 0,
            end: 0,
            diverted: None,
            expects_payload: false,
            message_bytes_max,
        }
    }

    /// Forgets what was received: a new stream begins.
    pub fn clear(&mut self) {
        (self.partial, self.fragments, self.mark, self.end) = (0..0, 0, 0, 0);
        (self.diverted, self.expects_payload) = (None, false);
    }

    /// Room for what the socket gives behind a diverted payload; never empty. [`Records::received`] says how much it was.
    pub fn room(&mut self) -> &mut [u8] {
        // Half is free, or the front is not worth moving: the copy is paid by what was consumed.
        let front = self.partial.start;
        if self.end == front && self.mark == front {
            (self.partial, self.fragments, self.mark, self.end) = (0..0, 0, 0, 0);
        } else if front > 0 && self.buffer.len() - self.end < self.buffer.len() / 2 {
            self.compact();
        }
        if self.end == self.buffer.len() {
            let most = 2 * (self.message_bytes_max + MARK_BYTES);
            self.buffer.resize((2 * self.buffer.len()).min(most).max(self.end + MARK_BYTES), 0);
        }
        // Behind a long fragment the next message then begins at the front again: nothing is moved, and the processor still has that memory in
        // its cache.
        let begins = self.end - self.mark < HEAD_BYTES;
        let most = match self.long_rest() {
            _ if self.diverted.is_some() || (self.expects_payload && begins) => HEAD_BYTES,
            _ if self.end == 0 => RESTING_BYTES,
            rest => rest.unwrap_or(usize::MAX),
        };
        let room = &mut self.buffer[self.end..];
        let most = most.min(room.len());
        &mut room[..most]
    }

    /// What has not arrived yet of a long fragment.
    fn long_rest(&self) -> Option<usize> {
        let mark = u32::from_be_bytes(*self.buffer[self.mark..self.end].first_chunk::<MARK_BYTES>()?);
        let length = (mark & !LAST) as usize;
        let missing = (self.mark + MARK_BYTES + length).saturating_sub(self.end);
        (length >= LONG_BYTES && missing > 0).then_some(missing)
    }

    /// `bytes` were received: first those that miss of a diverted payload, then those put into [`Records::room`].
    ///
    /// # Panics
    /// When that is more than the room had: a bug.
    pub fn received(&mut self, bytes: usize) {
        let elsewhere = bytes.min(self.missing());
        self.diverted = self.diverted.map(|missing| missing - elsewhere);
        self.end += bytes - elsewhere;
        assert!(self.end <= self.buffer.len(), "more was received than there was room");
    }

    /// Of a long message in one fragment whose end is missing: what has arrived, and how long it will be, bytes. To be asked for when there is no whole
    /// [`Records::message`].
    pub fn beginning(&self) -> Option<(&[u8], usize)> {
        let mark = u32::from_be_bytes(*self.buffer[self.mark..self.end].first_chunk::<MARK_BYTES>()?);
        let (length, begun) = ((mark & !LAST) as usize, &self.buffer[self.mark + MARK_BYTES..self.end]);
        let whole_in_one = mark & LAST != 0 && self.fragments == 0 && self.diverted.is_none();
        let long = (DIVERTED_BYTES..=self.message_bytes_max).contains(&length);
        (whole_in_one && long && begun.len() < length).then_some((begun, length))
    }

    /// The bytes `payload` of the message that [`Records::beginning`] showed go elsewhere: it will come without them. The result is what has
    /// arrived of them; the stream goes on with the [missing](Records::missing) ones.
    ///
    /// # Panics
    /// When they are no bytes of that message, or are here already: a bug.
    pub fn divert(&mut self, payload: Range<usize>) -> &[u8] {
        let (begun, length) = self.beginning().expect("a long message has begun");
        assert!(payload.start <= begun.len() && begun.len() < payload.end && payload.end <= length);
        let here = self.mark + MARK_BYTES + payload.start..self.end;
        let mark = LAST | (length - payload.len()) as u32;
        self.buffer[self.mark..self.mark + MARK_BYTES].copy_from_slice(&mark.to_be_bytes());
        self.end = here.start;
        self.diverted = Some(payload.len() - here.len());
        &self.buffer[here]
    }

    /// Bytes of a diverted payload that come next in the stream.
    pub fn missing(&self) -> usize {
        self.diverted.unwrap_or(0)
    }

    fn compact(&mut self) {
        let length = self.partial.len();
        self.buffer.copy_within(self.partial.clone(), 0);
        self.buffer.copy_within(self.mark..self.end, length);
        (self.partial, self.end, self.mark) = (0..length, self.end - self.mark + length, length);
    }

    /// The next whole message, without its marks, and without a payload that was diverted; `None` until more was received.
    ///
    /// # Errors
    /// [`Malformed::TooLong`]: the stream cannot be read any further.
    pub fn message(&mut self) -> Result<Option<&[u8]>, Malformed> {
        if self.missing() > 0 {
            return Ok(None);
        }
        while let Some(mark) = self.buffer[self.mark..self.end].first_chunk::<MARK_BYTES>() {
            let mark = u32::from_be_bytes(*mark);
            let length = (mark & !LAST) as usize;
            let whole = self.partial.len() + length;
            if whole > self.message_bytes_max {
                let max = self.message_bytes_max as u64;
                return Err(Malformed::TooLong { what: "a message", seen: whole as u64, max });
            }
            if self.fragments >= FRAGMENTS_MAX {
                let (seen, max) = (u64::from(self.fragments) + 1, u64::from(FRAGMENTS_MAX));
                return Err(Malformed::TooLong { what: "a message's number of fragments", seen, max });
            }
            let fragment = self.mark + MARK_BYTES..self.mark + MARK_BYTES + length;
            if fragment.end > self.end {
                break;
            }
            self.mark = fragment.end;
            self.fragments += 1;
            if self.partial.is_empty() {
                self.partial = fragment;
            } else {
                self.buffer.copy_within(fragment, self.partial.end);
                self.partial.end += length;
            }
            if mark & LAST != 0 {
                let message = std::mem::replace(&mut self.partial, self.mark..self.mark);
                self.fragments = 0;
                self.expects_payload = self.diverted.take().is_some();
                return Ok(Some(&self.buffer[message]));
            }
        }
        if self.partial.is_empty() {
            self.partial = self.mark..self.mark;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Seed};

    /// Cuts `message` into fragments at random places.
    fn cut(message: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut stream = Vec::new();
        let mut rest = message;
        loop {
            let length =
                if rng.below(2) == 0 { rest.len() } else { rng.below(rest.len() as u64 + 1) as usize };
            let last = length == rest.len();
            stream.extend_from_slice(&(length as u32 | if last { LAST } else { 0 }).to_be_bytes());
            stream.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
            if last {
                return stream;
            }
        }
    }

    #[test]
    fn messages_come_out_however_they_were_cut() {
        let mut rng = Rng::new(Seed(11));
        for _ in 0..200 {
            let messages: Vec<Vec<u8>> = (0..rng.below(20) + 1)
                .map(|_| (0..rng.below(3000)).map(|_| rng.next_u64() as u8).collect())
                .collect();
            let stream: Vec<u8> = messages.iter().flat_map(|m| cut(m, &mut rng)).collect();
            let mut records = Records::new(3000);
            let (mut rest, mut found) = (stream.as_slice(), Vec::new());
            while !rest.is_empty() {
                let room = records.room();
                let take = (rng.below(700) as usize + 1).min(room.len()).min(rest.len());
                room[..take].copy_from_slice(&rest[..take]);
                records.received(take);
                rest = &rest[take..];
                while let Some(message) = records.message().expect("a good stream") {
                    found.push(message.to_vec());
                }
            }
            assert_eq!(found, messages);
            assert!(records.buffer.len() <= 2 * (3000 + MARK_BYTES));
        }
    }

    #[test]
    fn a_claimed_length_allocates_nothing_and_too_much_ends_the_stream() {
        let feed = |bytes: &[u8]| {
            let mut records = Records::new(1 << 20);
            records.room()[..bytes.len()].copy_from_slice(bytes);
            records.received(bytes.len());
            let result = records.message().map(|m| m.map(<[u8]>::len));
            (result, records.room().len())
        };
        let (result, room) = feed(&(LAST | 1 << 20).to_be_bytes());
        assert_eq!(result, Ok(None));
        assert!(room < RESTING_BYTES, "nothing grew: {room}");
        assert!(matches!(feed(&(LAST | 1 << 20 | 1).to_be_bytes()).0, Err(Malformed::TooLong { .. })));
        assert!(matches!(feed(&[0xff; 4]).0, Err(Malformed::TooLong { .. })));
        let empty = vec![0; 4 * (FRAGMENTS_MAX as usize + 1)];
        assert!(matches!(feed(&empty).0, Err(Malformed::TooLong { .. })));
    }

    #[test]
    fn a_sealed_record_carries_its_length() {
        let mut w = Writer::new();
        let at = open(&mut w);
        w.u32(5);
        seal(&mut w, at, 100);
        assert_eq!(w.bytes(), [0x80, 0, 0, 104, 0, 0, 0, 5]);
    }
}
