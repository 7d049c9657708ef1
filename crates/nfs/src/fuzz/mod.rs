//! Where fuzzers enter: each target feeds one message to decoders of what the wire brings, and panics when one does what it must not.
//!
//! Not for users: built for tests, and with the feature `fuzz` for the programs in `fuzz/` (`cargo x fuzz`).

pub mod decoders;

use crate::client::{Version, landing};
use crate::oranfstab::{find, parse};
use crate::rpc::record::Records;
use crate::rpc::reply::{self, Message};
use crate::v4::callback::BackChannel;
use crate::v4::session::SessionId;
use crate::xdr::{Reader, Writer};
use crate::{Handle, Url, rpc};
use decoders::Decoder;

/// Something to be fuzzed.
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// Good messages, to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Takes a message.
    pub run: fn(&[u8]),
    /// Most memory that a message of so many bytes may take, bytes.
    pub memory: fn(usize) -> usize,
}

/// All of this crate.
pub const TARGETS: &[Target] = &[
    Target {
        name: "records",
        seeds: streams,
        run: |message| assert!(stream(message) <= message.len()),
        memory: |_| 1 << 20,
    },
    Target {
        name: "v3",
        seeds: || good(decoders::V3),
        run: |message| feed(decoders::V3, message),
        memory: names,
    },
    Target {
        name: "v4",
        seeds: || good(decoders::V4),
        run: |message| feed(decoders::V4, message),
        memory: names,
    },
    Target {
        name: "layout",
        seeds: || good(decoders::LAYOUTS),
        run: |message| feed(decoders::LAYOUTS, message),
        // 256 stripes of 16 addresses each, and as many servers.
        memory: |_| 1 << 20,
    },
    Target {
        name: "callback",
        seeds: callback_streams,
        run: callbacks,
        memory: |bytes| (64 << 10) + 64 * bytes,
    },
    Target { name: "text", seeds: texts, run: text, memory: |bytes| (64 << 10) + 256 * bytes },
];

/// Of listings and attributes: a name takes 20 bytes on the wire, and a text with its place in memory.
fn names(bytes: usize) -> usize {
    (8 << 10) + 16 * bytes
}

/// What fuzzers kept for target `name`: a message in hexadecimal on each line.
///
/// # Panics
/// When there is no such file, or it cannot be read: a bug.
pub fn kept(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/../../fuzz/corpus/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("hexadecimal");
        u8::from_str_radix(pair, 16).unwrap_or_else(|_| panic!("{path}: {pair:?}"))
    };
    text.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn good(decoders: &[Decoder]) -> Vec<Vec<u8>> {
    decoders.iter().map(|decoder| words(decoder.good)).collect()
}

/// The same bytes to each: what is good for one is another call's reply to the next.
fn feed(decoders: &[Decoder], message: &[u8]) {
    for decoder in decoders {
        (decoder.read)(&mut Reader::new(message));
    }
}

/// A stream from a server, with payloads of reads that go elsewhere (of which version, or none):
/// `| longest message, 2^(6 + n) | bytes that arrive at once | version | KiB of zeroes | behind how many bytes (2) | stream … |`. The result is how
/// many payloads went elsewhere.
fn stream(message: &[u8]) -> usize {
    let [longest, piece, version, zeroes, high, low, stream @ ..] = message else { return 0 };
    let longest = 64 << (longest % 13);
    let version = [Version::V3, Version::V40, Version::V41].get(usize::from(*version)).copied();
    let at = usize::from(u16::from_be_bytes([*high, *low])).min(stream.len());
    let zeroes = usize::from(zeroes & 0x7f) << 10;
    let stream = [&stream[..at], &vec![0; zeroes], &stream[at..]].concat();
    let piece = if zeroes > 0 { 64 * (1 + usize::from(*piece)) } else { 1 + usize::from(*piece) };
    let (mut records, mut elsewhere) = (Records::new(longest), 0);
    for piece in stream.chunks(piece) {
        let mut rest = piece;
        while !rest.is_empty() {
            let missing = records.missing().min(rest.len());
            let room = records.room();
            // Marks of fragments stay where they are until a message is whole.
            let most = 2 * (longest + 4) + 4 * 4096;
            assert!((1..=most).contains(&room.len()), "room for {} bytes", room.len());
            let length = rest.len().min(missing + room.len());
            room[..length - missing].copy_from_slice(&rest[missing..length]);
            records.received(length);
            rest = &rest[length..];
            loop {
                match records.message() {
                    Ok(Some(message)) => {
                        assert!(message.len() <= longest);
                        feed(decoders::HEADS, message);
                        if let Ok(Message::Reply { result: Ok(results), .. }) = reply::decode(message) {
                            feed(decoders::HEADS, results.rest());
                        }
                    }
                    Ok(None) => break,
                    Err(_) => return elsewhere,
                }
            }
            let Some((begun, whole)) = records.beginning() else { continue };
            let payload =
                version.and_then(|version| landing::payload(version, begun, whole, |_| Some((0, ASKED))));
            if let Some((_, range)) = payload {
                let (length, missing) = (range.len(), records.divert(range).len());
                assert!(length <= ASKED as usize && records.missing() == length - missing);
                elsewhere += 1;
            }
        }
    }
    elsewhere
}

/// Bytes of a read.
const ASKED: u32 = 100_000;

fn streams() -> Vec<Vec<u8>> {
    let mark = |last: bool, bytes: usize| (bytes as u32 | if last { 1 << 31 } else { 0 }).to_be_bytes();
    let record = |last: bool, message: &[u8]| [&mark(last, message.len())[..], message].concat();
    let all: Vec<Vec<u8>> = good(decoders::HEADS);
    let mut streams: Vec<Vec<u8>> =
        all.iter().map(|message| [&[4, 255, 3, 0, 0, 0][..], &record(true, message)].concat()).collect();
    let whole = |message: &[u8]| record(true, &[&words(&[9, 1, 0, 0, 0, 0])[..], message].concat());
    streams.extend(all.iter().map(|message| [&[5, 15, 3, 0, 0, 0][..], &whole(message)].concat()));
    let pieces: Vec<u8> =
        all.iter().flat_map(|m| [record(false, &m[..4]), record(true, &m[4..])].concat()).collect();
    streams.push([&[3, 6, 3, 0, 0, 0][..], &pieces].concat());
    let reads: [&[u32]; 3] = [
        &[0, 0, 98_304, 1, 98_304],
        &[0, 0, 2, 22, 0, 25, 0, 1, 98_304],
        &[0, 0, 3, 53, 0, 1, 2, 3, 4, 1, 0, 3, 3, 0, 22, 0, 25, 0, 1, 98_304],
    ];
    for (version, read) in reads.into_iter().enumerate() {
        let head = words(&[&[9, 1, 0, 0, 0, 0], read].concat());
        let message = [&mark(true, head.len() + 98_304)[..], &head].concat();
        let header = [12, 3, version as u8, 96, 0, message.len() as u8];
        streams.push([&header[..], &message, &record(true, &all[0])].concat());
    }
    streams
}

const SESSION: SessionId = SessionId([7; 16]);

/// Calls of a server, one after the other, on one back channel: `| bytes (2) | arguments … |`, without arguments CB_NULL.
fn callbacks(message: &[u8]) {
    let mut back = BackChannel::new(SESSION);
    back.hold(Handle::new(b"file").expect("it is short"));
    let (mut rest, mut xid, mut longest) = (message, 0, 0);
    while let [high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (arguments, next) = behind.split_at(length);
        (rest, xid, longest) = (next, xid + 1, longest.max(length));
        let mut w = Writer::new();
        let number = u32::from(length > 0);
        let procedure = rpc::Procedure { program: 0x4000_0000, version: 1, number };
        back.answer(&mut w, xid, procedure, Reader::new(arguments));
        // A repetition gets the answer of the first.
        assert!(w.len() < longest + 600, "an answer of {} bytes to {longest}", w.len());
        match reply::decode(&w.bytes()[4..]) {
            Ok(Message::Reply { xid: of, .. }) => assert_eq!(of, xid),
            other => panic!("no answer: {other:?}"),
        }
        if xid % 5 == 0 {
            assert!(back.take_asked().len() <= message.len());
        }
    }
}

fn callback_streams() -> Vec<Vec<u8>> {
    let call = |sequence: u32, ops: &[u32]| {
        let head = [0, 1, 1, 2, 11, 0x0707_0707, 0x0707_0707, 0x0707_0707, 0x0707_0707, sequence, 0, 0, 0, 0];
        let call = words(&[&head, ops].concat());
        [&(call.len() as u16).to_be_bytes()[..], &call].concat()
    };
    let file = u32::from_be_bytes(*b"file");
    let ops: [&[u32]; 9] = [
        &[8, 1, 1, 2],
        &[5, 1, 3, 1, 1, 4, file, 0, 0, 0, 9, 1, 2, 3, 4],
        &[5, 1, 3, 1, 2, 0, 5],
        &[5, 4, 3, 0, 3],
        &[14, 1, 1, 2, 24, 1, 7, 7, 7, 7, 1],
        &[14, 2, 1, 2, 20, 1, 7, 7, 7, 7, 1, 4, 20, 1, 8, 8, 8, 8],
        &[10, 5],
        &[4, 1, 2, 3, 4, 0, 4, file],
        &[99],
    ];
    let mut streams: Vec<Vec<u8>> = ops.iter().map(|ops| call(1, ops)).collect();
    streams.push(ops.iter().enumerate().flat_map(|(index, ops)| call(1 + index as u32, ops)).collect());
    streams.push([call(1, ops[0]), call(1, ops[0]), vec![0, 0], call(2, ops[1])].concat());
    let referring =
        words(&[0, 1, 1, 1, 11, 0x0707_0707, 0x0707_0707, 0x0707_0707, 0x0707_0707, 1, 0, 0, 0, 1]);
    let referring = [referring, words(&[1, 2, 3, 4, 1, 5, 6])].concat();
    streams.push([&(referring.len() as u16).to_be_bytes()[..], &referring].concat());
    streams
}

/// What administrators write: an oranfstab, a URL.
fn text(message: &[u8]) {
    let text = String::from_utf8_lossy(message);
    if let Ok(servers) = parse(&text) {
        for server in &servers {
            assert!(server.paths.len() <= 4, "{server:?}");
            let _ = server.options();
            for export in &server.exports {
                let file = format!("{}/file", export.mount.trim_end_matches('/'));
                assert!(find(&servers, &file).is_some(), "{file} in {servers:?}");
            }
        }
    }
    if let Ok(url) = text.parse::<Url>() {
        let _ = url.options();
        assert_eq!(url.to_string().parse(), Ok(url.clone()), "what is printed is read again");
    }
}

fn texts() -> Vec<Vec<u8>> {
    let texts = [
        "nfs://server/export/path",
        "nfs://[fd00::1]:20049/vol/data?version=v4.1&layout_refresh=5",
        "nfs://192.0.2.1/?version=pnfs&mountport=635",
        "server: a\nlocal: 192.0.2.0\npath: 192.0.2.1\nnfs_version: nfsv4.1\nexport: /vol/a mount: /mnt/a\n",
        "server: b # two\npath: b1\npath: b2\ndontroute\nmnt_timeout: 60\nsecurity_default: sys\n\
         management: host\ncommunity: public\nuid: 1 gid: 1\nexport: /x mount: /y security: sys\n\
         server: c\nnfs_version: pNFS\nport: 1\nmountport: 2\nlayout_refresh: 3\nexport: / mount: /\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_go_elsewhere_in_each_version() {
        assert_eq!(streams().iter().map(|message| stream(message)).sum::<usize>(), 3);
    }
}
