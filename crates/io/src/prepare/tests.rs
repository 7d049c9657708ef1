//! Tests of the parent module.

use super::*;
use crate::mode::Access;
use crate::outcome::Outcome;
use crate::stamp::verify;
use crate::testing::{Mount, folder};

const CACHED: Access = Access { read: true, write: true, direct: false, dsync: false };
const MIB: u64 = 1 << 20;

#[test]
fn every_block_is_there_and_ours() {
    let folder = folder();
    for direct in [false, true] {
        let path = folder.path().join(format!("direct {direct}"));
        let file = File::create_new(&path, Access { direct, ..CACHED }).unwrap();
        let bytes = 5 * MIB + 3 * 8192;
        let mut last = 0;
        write_stamped(&file, bytes + 100, 8192, 3, Seed(5), &mut |done, total| {
            assert!(done >= last && total == bytes);
            last = done;
            true
        })
        .unwrap();
        assert_eq!((last, file.size().unwrap()), (bytes, bytes), "rounded down to whole blocks");
        assert_eq!(file.extents().unwrap().mapped_bytes, bytes);
        let mut buffer = Buffer::new(8192).unwrap();
        for offset in (0..bytes).step_by(8192) {
            assert_eq!(file.read_at(&mut buffer, offset), Outcome::Full);
            verify(&buffer, 3, offset, Some(0)).unwrap_or_else(|e| panic!("offset {offset}: {e}"));
        }
    }
}

#[test]
fn what_lies_beyond_stays() {
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), CACHED).unwrap();
    assert_eq!(file.write_at(b"mine", 4 * MIB), Outcome::Full);
    write_stamped(&file, MIB, 4096, 3, Seed(5), &mut |_, _| true).unwrap();
    let mut tail = [0; 4];
    assert_eq!(file.read_at(&mut tail, 4 * MIB), Outcome::Full);
    assert_eq!(&tail, b"mine");
}

#[test]
fn stops_when_told() {
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), Access { dsync: true, ..CACHED }).unwrap();
    let error = write_stamped(&file, 4096 * MIB, 8192, 3, Seed(5), &mut |_, _| false).unwrap_err();
    assert!(matches!(error, IoError::Stopped { done, .. } if done < 4096 * MIB), "{error}");
}

#[test]
fn a_full_disk_is_seen_before_anything_is_written() {
    let folder = folder();
    let mount = Mount::tmpfs("size=1m", &folder.path().join("small"));
    assert_eq!(free_space(&mount.0).unwrap(), MIB);
    assert_eq!(file_system(&mount.0).unwrap(), "tmpfs");
    let file = File::create_new(&mount.0.join("file"), CACHED).unwrap();
    let mut calls = 0;
    let error = write_stamped(&file, 2 * MIB, 8192, 3, Seed(5), &mut |_, _| {
        calls += 1;
        true
    })
    .unwrap_err();
    assert!(matches!(error, IoError::NoSpace { call: "fallocate", .. }), "{error}");
    assert_eq!(calls, 0);
}

#[test]
fn a_failing_write_ends_it() {
    let folder = folder();
    let path = folder.path().join("file");
    File::create_new(&path, CACHED).unwrap();
    let reader = File::open(&path, Access { write: false, ..CACHED }).unwrap();
    let error = write_blocks(&reader, MIB, 8192, 3, Seed(5), &mut |_, _| true).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EBADF), "{error}");
}

#[test]
fn holes_are_found_out() {
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), CACHED).unwrap();
    reserve(&file, FallocateFlags::empty(), 0, 2 * MIB).unwrap();
    assert_eq!(file.write_at(&vec![1; MIB as usize], 0), Outcome::Full);
    file.fdatasync().unwrap();
    assert!(matches!(check_written(&file, 2 * MIB), Err(IoError::Unwritten { bytes: MIB, .. })));
    check_written(&file, MIB).unwrap();
}

#[test]
fn what_is_written_beyond_does_not_make_up_for_a_hole() {
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), CACHED).unwrap();
    assert_eq!(file.write_at(&vec![1; MIB as usize], MIB), Outcome::Full);
    rustix::fs::ftruncate(file.as_fd(), 4 * MIB).unwrap();
    file.fdatasync().unwrap();
    assert!(matches!(check_written(&file, MIB), Err(IoError::Unwritten { bytes: MIB, .. })));
    assert!(matches!(check_written(&file, 2 * MIB), Err(IoError::Unwritten { bytes: MIB, .. })));

    let mount = Mount::tmpfs("size=4m", &folder.path().join("memory"));
    let file = File::create_new(&mount.0.join("file"), CACHED).unwrap();
    assert_eq!(file.write_at(&vec![1; MIB as usize], MIB), Outcome::Full);
    assert!(matches!(check_written(&file, MIB), Err(IoError::Unwritten { bytes: MIB, .. })), "by seeking");
}

#[test]
fn knows_file_systems() {
    assert!(file_system(Path::new("/proc")).unwrap().starts_with("unknown (0x"));
    assert!(matches!(free_space(Path::new("/no/such/place")), Err(IoError::NoSuchFile { .. })));
}
