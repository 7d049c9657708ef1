//! Pages of the kernel's trace buffer, as `trace_pipe_raw` gives them: times and payloads, nothing decoded further.
//!
//! ```text
//! byte 0         8           16
//!      time u64  commit u64  entries …
//! commit: bits 0–29 bytes of entries, bit 30: the number of lost events follows the entries, bit 31: events were lost
//! entry: u32, type in bits 0–4, time since the entry before in bits 5–31; then
//!   1 … 28  type × 4 bytes of payload
//!   0       u32 length of the payload + 4, payload
//!   29      padding: to the end of the page where the time is 0, else as type 0
//!   30      u32: upper bits of a time that did not fit
//!   31      u32: upper bits of a time that stands for itself
//! ```
//! Source: kernel `Documentation/trace/ring-buffer-design.rst`, `include/linux/ring_buffer.h`, `events/header_page`.

const HEAD: usize = 16;
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
const LENGTH: u64 = LOST_COUNTED - 1;

/// Bits of the time in an entry's head.
const TIME_BITS: u32 = 27;

/// What a page says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// Events that were lost before it, as far as it knows.
    pub(super) lost: u64,
}

/// Hands every payload of `page` to `sink` with its time, nanoseconds of the trace clock. What is not whole at its end is left out.
pub(super) fn entries(page: &[u8], sink: &mut dyn FnMut(u64, &[u8])) -> Summary {
    let (Some(first), Some(commit)) = (word64(page, 0), word64(page, 8)) else { return Summary::default() };
    let length = ((commit & LENGTH) as usize).min(page.len() - HEAD);
    let data = &page[HEAD..HEAD + length];
    let counted = || word64(page, HEAD + length).filter(|_| commit & LOST_COUNTED != 0);
    let lost = if commit & LOST != 0 { counted().unwrap_or(1).max(1) } else { 0 };
    walk(data, first, sink);
    Summary { lost }
}

/// None at the end, or where the bytes make no sense.
fn walk(data: &[u8], first: u64, sink: &mut dyn FnMut(u64, &[u8])) -> Option<()> {
    let (mut at, mut time) = (0, first);
    loop {
        let head = word32(data, at)?;
        let (kind, delta) = ((head & 31) as usize, u64::from(head >> 5));
        at += 4;
        let (skip, payload) = match kind {
            0 => {
                let length = (word32(data, at)? as usize).checked_sub(4)?;
                (4 + length, at + 4..at + 4 + length)
            }
            29 if delta == 0 => return None,
            29 => (word32(data, at)? as usize, 0..0),
            30 => {
                time += delta + (u64::from(word32(data, at)?) << TIME_BITS);
                at += 4;
                continue;
            }
            31 => {
                // The five upper bits are those of the page's time.
                let low = delta + (u64::from(word32(data, at)?) << TIME_BITS);
                time = low | (first & !((1 << 59) - 1));
                at += 4;
                continue;
            }
            words => (words * 4, at..at + words * 4),
        };
        time += delta;
        if !payload.is_empty() {
            sink(time, data.get(payload)?);
        }
        at += skip;
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
