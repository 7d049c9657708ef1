//! Formats: what is written is read back; hostile bytes are refused and never panic.

use super::*;
use crate::redo::chunk::{self, Content, Place};
use crate::redo::header::{self, Header};

/// Pages that differ only in checksum and LSN are the same page.
fn same(a: &[u8], b: &[u8]) -> bool {
    a[4..16] == b[4..16] && a[24..] == b[24..]
}

#[test]
fn records_make_the_same_pages_from_the_old_ones() {
    for seed in 0..300 {
        let mut rng = Rng::new(Seed(seed));
        let mut pages = BTreeMap::new();
        for _ in 0..20 {
            let old = pages.clone();
            let (bytes, ids) = random_change(&mut rng, &mut pages, 5);
            let (record, length) = record::decode(&bytes).unwrap();
            assert_eq!(length, bytes.len());
            let parts: Vec<_> = record.parts().map(std::result::Result::unwrap).collect();
            for (at, part) in &parts {
                assert_eq!(record::part(&bytes[*at..]), Ok(*part));
            }
            let parts: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
            assert_eq!(parts.iter().map(|p| p.id).collect::<Vec<_>>(), ids);
            for part in parts {
                let mut page = old.get(&part.id).cloned().unwrap_or_else(|| vec![0; PAGE]);
                if part.is_whole() {
                    page.fill(0xee);
                }
                part.apply(&mut page).unwrap();
                assert!(same(&page, &pages[&part.id]), "seed {seed}, {}", part.id);
            }
        }
    }
}

/// Whatever the bytes are: an answer, no panic.
fn swallow(bytes: &[u8], page: &mut [u8]) {
    let mut rest = bytes;
    while let Ok((record, length)) = record::decode(rest) {
        for (_, part) in record.parts().flatten() {
            let _ = part.apply(page);
        }
        rest = &rest[length..];
    }
}

#[test]
fn hostile_records_never_panic() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(Seed(seed));
        let (mut pages, mut page) = (BTreeMap::new(), vec![0; PAGE]);
        let (mut bytes, _) = random_change(&mut rng, &mut pages, 5);
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = match rng.below(3) {
                0 => 0xff,
                1 => bytes[at] ^ (1 << rng.below(8)),
                _ => rng.next_u64() as u8,
            };
        }
        bytes.truncate(1 + rng.below(bytes.len() as u64) as usize);
        swallow(&bytes, &mut page);
        // The length made right again, so that damage further in is reached.
        if bytes.len() >= 4 {
            let length = (bytes.len() as u32).to_le_bytes();
            bytes[..4].copy_from_slice(&length);
            swallow(&bytes, &mut page);
        }
        let noise: Vec<u8> = (0..rng.below(200)).map(|_| rng.next_u64() as u8).collect();
        swallow(&noise, &mut page);
    }
}

#[test]
fn an_image_leaves_its_hole_out() {
    let id = PageId { file: 1, block: 3 };
    let mut page = vec![0; 8192];
    page::format(&mut page, id, PageKind::Heap, 7);
    page[32..100].fill(1);
    page[8000..].fill(2);
    let mut out = Vec::new();
    record::begin_record(&mut out);
    record::push_image(&mut out, id, &page);
    record::end_record(&mut out);
    assert!(out.len() < 400, "{} bytes", out.len());
    let (record, _) = record::decode(&out).unwrap();
    let mut other = vec![9; 8192];
    record.parts().next().unwrap().unwrap().1.apply(&mut other).unwrap();
    assert!(same(&page, &other));
}

#[test]
fn a_chunk_is_believed_only_in_its_place_and_whole() {
    let place = Place { database: DATABASE, sequence: 7, start: Lsn(65_536) };
    let content = Content { records: 700, count: 3 };
    let mut bytes = vec![0xaa; content.chunk_bytes(512) as usize];
    assert_eq!(bytes.len(), 1024);
    chunk::seal(&mut bytes, place, content);
    assert_eq!(chunk::content(&bytes, place), Some(content));
    assert!(chunk::is_intact(&bytes, content));
    assert!(bytes[732..].iter().all(|&b| b == 0), "padding tells nothing of older redo");
    for wrong in [
        Place { database: DATABASE + 1, ..place },
        Place { sequence: 6, ..place },
        Place { start: Lsn(66_048), ..place },
    ] {
        assert_eq!(chunk::content(&bytes, wrong), None, "{wrong:?}");
    }
    for at in 0..732 {
        bytes[at] ^= 1;
        let believed = chunk::content(&bytes, place).is_some_and(|content| chunk::is_intact(&bytes, content));
        assert!(!believed, "byte {at}");
        bytes[at] ^= 1;
    }
    for length in 0..732 {
        let cut = &bytes[..length];
        assert!(
            !chunk::content(cut, place).is_some_and(|content| chunk::is_intact(cut, content)),
            "{length}"
        );
    }
}

#[test]
fn headers_are_read_back_and_damage_is_seen() {
    let header = Header {
        database: DATABASE,
        group: 3,
        sequence: 9,
        block: 512,
        first: Lsn(1 << 20),
        bytes: 1 << 20,
        first_time: 77,
    };
    let mut block = vec![7; 512];
    header::encode(&header, &mut block);
    assert_eq!(header::decode(&block), Ok(header));
    for at in 0..60 {
        block[at] ^= 0x10;
        assert!(header::decode(&block).is_err(), "byte {at}");
        block[at] ^= 0x10;
    }
    assert!(header::decode(&block[..59]).is_err());
    header::encode(&Header { block: 3, ..header }, &mut block);
    assert!(header::decode(&block).is_err(), "a checksum that is right makes no sense of nonsense");
}
