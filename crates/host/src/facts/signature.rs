//! What is written on a device? Magic numbers of the common file systems, containers and raw databases.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// (offset, magic, what). From the ends of each format's super block; `blkid -p` knows more and is asked too.
const MAGICS: &[(u64, &[u8], &str)] = &[
    (0x438, &[0x53, 0xEF], "ext2/3/4 file system"),
    (0, b"XFSB", "xfs file system"),
    (0x10040, b"_BHRfS_M", "btrfs file system"),
    (0x400, &[0x10, 0x20, 0xF5, 0xF2], "f2fs file system"),
    (0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca], "bcache or bcachefs"),
    (0x1000, b"\x0c\x05JFS1", "jfs file system"),
    (0x8000, b"JFS1", "jfs file system"),
    (0x2_0000, &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0], "zfs member"),
    (0x10034, b"ReIsEr", "reiserfs file system"),
    (3, b"NTFS    ", "ntfs file system"),
    (3, b"EXFAT   ", "exfat file system"),
    (82, b"FAT32   ", "fat file system"),
    (54, b"FAT1", "fat file system"),
    (0x8001, b"CD001", "iso9660 file system"),
    (0, b"hsqs", "squashfs file system"),
    (0x218, b"LVM2 001", "LVM physical volume"),
    (0, b"LUKS\xba\xbe", "encrypted volume (LUKS)"),
    (0x1000, &[0xfc, 0x4e, 0x2b, 0xa9], "RAID member (md 1.2)"),
    (0, &[0xfc, 0x4e, 0x2b, 0xa9], "RAID member (md 1.1)"),
    (4096 - 10, b"SWAPSPACE2", "swap space"),
    (4096 - 10, b"SWAP-SPACE", "swap space"),
    (32, b"ORCLDISK", "Oracle ASM disk"),
    (40, b"ORCLDISK", "Oracle ASM disk"),
    (510, &[0x55, 0xAA], "partition table or boot sector"),
    (512, b"EFI PART", "partition table (GPT)"),
    (4096, b"EFI PART", "partition table (GPT, 4 KiB sectors)"),
];

/// The signatures on the device or file at `path`, each `what at offset`.
///
/// # Errors
/// The device cannot be read.
pub(super) fn scan(path: &Path) -> std::io::Result<Vec<String>> {
    const HEAD: usize = 0x2_1000;
    let mut file = File::open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let mut head = vec![0; HEAD.min(size as usize)];
    file.rewind()?;
    file.read_exact(&mut head)?;
    let mut found = in_head(&head);
    // md 0.90 and 1.0, backup GPT, and firmware RAID keep their mark in the last 128 KiB.
    let tail_start = size.saturating_sub(0x2_0000);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(tail_start))?;
    file.read_to_end(&mut tail)?;
    found.extend(in_tail(&tail, tail_start));
    found.dedup();
    Ok(found)
}

fn in_head(head: &[u8]) -> Vec<String> {
    let hit = |(offset, magic, what): &(u64, &[u8], &str)| {
        let start = *offset as usize;
        (head.get(start..start + magic.len()) == Some(*magic)).then(|| format!("{what} at byte {offset}"))
    };
    MAGICS.iter().filter_map(hit).collect()
}

fn in_tail(tail: &[u8], start: u64) -> Vec<String> {
    const RAID: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
    let sectors = tail.chunks(512).enumerate();
    let hit = |(index, sector): (usize, &[u8])| {
        let at = start + index as u64 * 512;
        let what = if sector.starts_with(RAID) {
            "RAID member (md)"
        } else if sector.starts_with(b"EFI PART") {
            "backup partition table (GPT)"
        } else if sector.starts_with(b"Intel Raid ISM") {
            "RAID member (Intel firmware)"
        } else {
            return None;
        };
        Some(format!("{what} at byte {at}"))
    };
    sectors.filter_map(hit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(marks: &[(usize, &[u8])], expected: &[&str]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = vec![0u8; 4 << 20];
        for (offset, magic) in marks {
            bytes[*offset..offset + magic.len()].copy_from_slice(magic);
        }
        std::fs::write(file.path(), bytes).unwrap();
        assert_eq!(scan(file.path()).unwrap(), expected);
    }

    #[test]
    fn finds_what_is_written_at_both_ends() {
        check(&[], &[]);
        check(&[(0x438, &[0x53, 0xEF])], &["ext2/3/4 file system at byte 1080"]);
        check(&[(32, b"ORCLDISKDATA1")], &["Oracle ASM disk at byte 32"]);
        check(&[((4 << 20) - 0x1_0000, &[0xfc, 0x4e, 0x2b, 0xa9])], &["RAID member (md) at byte 4128768"]);
        check(&[((4 << 20) - 512, b"EFI PART")], &["backup partition table (GPT) at byte 4193792"]);
    }

    #[test]
    fn a_tiny_file_is_no_trouble() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"XFSB").unwrap();
        assert_eq!(scan(file.path()).unwrap(), ["xfs file system at byte 0"]);
    }
}
