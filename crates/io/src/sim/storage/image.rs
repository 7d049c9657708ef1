//! The bytes of a simulated file, cheap to copy as a whole.

use std::sync::Arc;

const CHUNK: usize = 16 << 10;

/// Chunks shared with copies until one of them writes; a chunk that was never written is not there and reads as zeroes.
#[derive(Clone, Default)]
pub(super) struct Image {
    bytes: u64,
    chunks: Vec<Option<Arc<Vec<u8>>>>,
}

impl Image {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Longer: zeroes follow. Shorter: what is cut off is zero when it comes back.
    pub(super) fn resize(&mut self, bytes: u64) {
        if bytes < self.bytes {
            let tail = (self.bytes - bytes) as usize;
            self.write(&vec![0; tail], bytes);
        }
        self.bytes = bytes;
        self.chunks.resize((bytes as usize).div_ceil(CHUNK), None);
    }

    /// Fills `buffer` from `offset` on as far as there is something; the result is how far.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let length = self.clip(buffer.len(), offset);
        for (chunk, inside, piece) in pieces(offset, length) {
            match &self.chunks[chunk] {
                Some(data) => buffer[piece.clone()].copy_from_slice(&data[inside..inside + piece.len()]),
                None => buffer[piece].fill(0),
            }
        }
        length
    }

    /// Writes what fits; the result is how much.
    pub(super) fn write(&mut self, data: &[u8], offset: u64) -> usize {
        let length = self.clip(data.len(), offset);
        for (chunk, inside, piece) in pieces(offset, length) {
            let chunk = self.chunks[chunk].get_or_insert_with(|| Arc::new(vec![0; CHUNK]));
            Arc::make_mut(chunk)[inside..inside + piece.len()].copy_from_slice(&data[piece]);
        }
        length
    }

    fn clip(&self, length: usize, offset: u64) -> usize {
        length.min(self.bytes.saturating_sub(offset) as usize)
    }
}

/// Where `offset..offset + length` lies: chunk, place in it, and which part of the caller's bytes.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset as usize + done;
        let inside = at % CHUNK;
        let part = (CHUNK - inside).min(length - done);
        let piece = done..done + part;
        done += part;
        Some((at / CHUNK, inside, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_until_one_writes() {
        let mut image = Image::default();
        image.resize(3 * CHUNK as u64 + 100);
        assert_eq!(image.write(&[7; 200], CHUNK as u64 - 100), 200);
        let copy = image.clone();
        assert_eq!(image.write(&[9; 300], 3 * CHUNK as u64), 100, "only what fits");
        let mut seen = [1; 300];
        assert_eq!(copy.read(&mut seen, 3 * CHUNK as u64), 100);
        assert!(seen[..100].iter().all(|byte| *byte == 0));
        assert_eq!(copy.read(&mut seen, CHUNK as u64 - 150), 300);
        assert!(
            seen[50..250].iter().all(|b| *b == 7) && seen[..50].iter().chain(&seen[250..]).all(|b| *b == 0)
        );
        image.resize(CHUNK as u64);
        image.resize(2 * CHUNK as u64);
        assert_eq!(image.read(&mut seen, CHUNK as u64 - 100), 300);
        assert!(seen[100..].iter().all(|byte| *byte == 0), "what was cut off stays lost");
    }
}
