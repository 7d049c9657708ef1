//! Tests of the parent module, on the disk, on tmpfs, and on loop devices with awkward blocks.

use super::*;
use crate::buffer::Buffer;
use crate::testing::{Loop, Mount, folder, run};
use rustix::fs::FallocateFlags;
use std::os::unix::fs::symlink;

const CACHED: Access = Access { read: true, write: true, direct: false, dsync: false };
const DIRECT: Access = Access { direct: true, ..CACHED };
const READ: Access = Access { write: false, ..CACHED };

fn message(error: IoError) -> String {
    error.to_string()
}

/// A file of `bytes`, written and synced.
fn written(path: &Path, bytes: usize) {
    let file = File::create_new(path, CACHED).unwrap();
    assert_eq!(file.write_at(&vec![0xA5; bytes], 0), Outcome::Full);
    file.fdatasync().unwrap();
}

#[test]
fn opens_files_and_devices_and_nothing_else() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    assert!(matches!(File::open(&at("none"), READ), Err(IoError::NoSuchFile { .. })));
    assert!(matches!(File::open(folder.path(), READ), Err(IoError::NotAFile { what: "a directory", .. })));
    let null = File::open(Path::new("/dev/null"), READ);
    assert!(matches!(null, Err(IoError::NotAFile { what: "a character device", .. })));
    run("mkfifo", &[at("pipe").to_str().unwrap()]);
    assert!(matches!(File::open(&at("pipe"), READ), Err(IoError::NotAFile { what: "a pipe", .. })));
}

#[test]
fn creating_never_touches_what_is_there() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("precious"), "data").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for name in ["precious", "link", "dangling"] {
        let error = File::create_new(&at(name), CACHED).unwrap_err();
        assert!(matches!(error, IoError::Exists { .. }), "{name}: {error}");
    }
    assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "data");
    assert!(!at("nowhere").exists());
}

#[test]
fn flags_are_read_back_from_the_kernel() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 8192);
    for (access, text) in [
        (READ, "O_RDONLY"),
        (CACHED, "O_RDWR"),
        (DIRECT, "O_RDWR|O_DIRECT"),
        (Access { dsync: true, ..DIRECT }, "O_RDWR|O_DIRECT|O_DSYNC"),
        (Access { read: false, dsync: true, ..CACHED }, "O_WRONLY|O_DSYNC"),
    ] {
        let flags = File::open(&path, access).unwrap().flags_in_force().unwrap();
        assert_eq!(flags.text, text);
        assert_eq!((flags.direct, flags.dsync), (access.direct, access.dsync));
    }
}

#[test]
fn transfers_are_full_short_or_an_errno() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 10_000);
    let file = File::open(&path, CACHED).unwrap();
    let mut buffer = [0; 4096];
    assert_eq!(file.read_at(&mut buffer, 0), Outcome::Full);
    assert_eq!(file.read_at(&mut buffer, 8192), Outcome::Short(1808));
    let short = message(file.check("pread", 8192, 4096, Outcome::Short(1808)).unwrap_err());
    assert!(short.contains("transferred 1808 of 4096 bytes"), "{short}");
    let reader = File::open(&path, READ).unwrap();
    assert_eq!(reader.write_at(&buffer, 0), Outcome::Errno(libc::EBADF));
    let (mut a, mut b) = ([0; 100], [0; 200]);
    assert_eq!(file.write_at_dsync(&[7; 300], 50), Outcome::Full);
    assert_eq!(file.read_vectored_at(&mut [&mut a, &mut b], 50), Outcome::Full);
    assert!(a.iter().chain(&b).all(|&byte| byte == 7));
}

#[test]
fn a_misaligned_direct_transfer_says_what_is_needed() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 65_536);
    let file = File::open(&path, DIRECT).unwrap();
    let needed = file.alignment();
    assert!(needed.offset.is_power_of_two() && needed.offset >= 512, "{needed:?}");
    let mut buffer = Buffer::new(8192).unwrap();
    let outcome = file.read_at(&mut buffer, 100);
    assert_eq!(outcome, Outcome::Errno(libc::EINVAL));
    let error = message(file.check("pread", 100, 8192, outcome).unwrap_err());
    assert!(error.contains(&format!("needs offsets of {}", needed.offset)), "{error}");
    file.probe_direct().unwrap();
    assert_eq!(File::open(&path, CACHED).unwrap().alignment(), Alignment::NONE);
}

/// A disk with blocks of 4096 bytes that does not emulate smaller ones.
#[test]
fn a_4kn_device_refuses_512_and_says_so() {
    let folder = folder();
    let backing = folder.path().join("backing");
    written(&backing, 1 << 20);
    let device = Loop::over(&backing, &["--sector-size", "4096"]);
    let file = File::open(&device.0, DIRECT).unwrap();
    assert!(file.is_block_device());
    assert_eq!((file.logical_block(), file.size().unwrap()), (Some(4096), 1 << 20));
    assert!(file.physical_block().unwrap() >= 4096);
    assert_eq!(file.alignment().offset, 4096);
    let mut buffer = Buffer::new(4096).unwrap();
    let outcome = file.read_at(&mut buffer[..512], 512);
    assert_eq!(outcome, Outcome::Errno(libc::EINVAL));
    let error = file.check("pread", 512, 512, outcome).unwrap_err();
    assert!(matches!(&error, IoError::Misaligned { needed, .. } if needed.length == 4096), "{error}");
    assert_eq!(file.read_at(&mut buffer, 4096), Outcome::Full);
    file.probe_direct().unwrap();
    assert_eq!(file.extents().unwrap().not_on_device(), 0);
}

#[test]
fn a_mounted_device_cannot_be_opened_for_writing() {
    let folder = folder();
    let backing = folder.path().join("backing");
    written(&backing, 16 << 20);
    let device = Loop::over(&backing, &[]);
    run("mkfs.ext4", &["-q", device.text()]);
    let mount = Mount::new("ext4", device.text(), "defaults", &folder.path().join("mounted"));
    let error = File::open(&device.0, DIRECT).unwrap_err();
    assert!(matches!(error, IoError::Busy { .. }), "{error}");
    File::open(&device.0, READ).unwrap();
    drop(mount);
    File::open(&device.0, DIRECT).unwrap();
}

#[test]
fn o_direct_is_refused_at_open_or_works() {
    let error = File::open(Path::new("/proc/self/status"), Access { direct: true, ..READ }).unwrap_err();
    assert!(matches!(error, IoError::DirectRefusedAtOpen { errno: libc::EINVAL, .. }), "{error}");

    // tmpfs refuses before Linux 6.6 and accepts since; either way it is memory, and nothing is left behind.
    let folder = folder();
    let mount = Mount::tmpfs("size=1m", &folder.path().join("memory"));
    let path = mount.0.join("file");
    match File::create_new(&path, DIRECT) {
        Ok(file) => {
            file.probe_direct().unwrap();
            assert_eq!(file.size().unwrap(), 0, "the probe gives its block back");
        }
        Err(IoError::DirectRefusedAtOpen { .. }) => assert!(!path.exists()),
        Err(error) => panic!("{error}"),
    }
}

/// ramfs has no direct I/O: the file is made, O_DIRECT refused, and what was made taken back. Nothing else is.
#[test]
fn a_refused_file_is_taken_back_and_no_other() {
    let folder = folder();
    let mount = Mount::new("ramfs", "none", "defaults", &folder.path().join("memory"));
    let path = mount.0.join("file");
    let error = File::create_new(&path, DIRECT).unwrap_err();
    assert!(matches!(error, IoError::DirectRefusedAtOpen { .. }), "{error}");
    assert!(!path.exists());
    written(&path, 100);
    let error = File::create_new(&path, DIRECT).unwrap_err();
    assert!(matches!(error, IoError::Exists { .. }), "{error}");
    assert!(path.exists());

    let made = File::open(&path, CACHED).unwrap();
    assert!(open::is_at(&path, &made.fd));
    std::fs::rename(&path, mount.0.join("elsewhere")).unwrap();
    written(&path, 100);
    assert!(!open::is_at(&path, &made.fd), "another file has its name now");
}

#[test]
fn a_refused_probe_is_named() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 4096);
    let file = File::open(&path, DIRECT).unwrap();
    for errno in [libc::EINVAL, libc::EOPNOTSUPP] {
        let error = file.judge_probe(Outcome::Errno(errno)).unwrap_err();
        assert!(matches!(error, IoError::DirectRefusedAtTransfer { .. }), "{error}");
    }
    assert!(matches!(file.judge_probe(Outcome::Errno(libc::EIO)), Err(IoError::Medium { .. })));
    file.judge_probe(Outcome::Short(0)).unwrap();
}

#[test]
fn no_space_and_read_only_are_what_they_are() {
    let folder = folder();
    let mount = Mount::tmpfs("size=64k", &folder.path().join("small"));
    let file = File::create_new(&mount.0.join("file"), CACHED).unwrap();
    let mut outcome = Outcome::Full;
    for block in 0..64 {
        outcome = file.write_at(&[1; 4096], block * 4096);
        if !outcome.is_full() {
            break;
        }
    }
    assert_eq!(outcome, Outcome::Errno(libc::ENOSPC));
    let error = file.check("pwrite", 0, 4096, outcome).unwrap_err();
    assert!(message(error).contains("df -h"));
    drop(file);
    run("mount", &["-o", "remount,ro", mount.0.to_str().unwrap()]);
    let error = File::open(&mount.0.join("file"), CACHED).unwrap_err();
    assert!(matches!(error, IoError::ReadOnly { .. }), "{error}");
}

/// A real device that fails: a loop device over a sparse file on a full tmpfs takes writes into the page cache and cannot
/// keep them. The first sync fails; a second one would succeed and lie.
#[test]
fn a_failed_sync_poisons_the_file() {
    let folder = folder();
    let mount = Mount::tmpfs("size=1m", &folder.path().join("small"));
    let backing = mount.0.join("backing");
    let sparse = File::create_new(&backing, CACHED).unwrap();
    rustix::fs::ftruncate(sparse.as_fd(), 32 << 20).unwrap();
    let device = Loop::over(&backing, &[]);
    let file = File::open(&device.0, CACHED).unwrap();
    assert_eq!(file.write_at(&vec![1; 8 << 20], 0), Outcome::Full, "the page cache takes everything");
    let error = file.fdatasync().unwrap_err();
    assert!(matches!(error, IoError::Medium { .. } | IoError::NoSpace { .. }), "{error}");
    assert!(matches!(file.fdatasync(), Err(IoError::Poisoned { .. })), "and says so from then on");
    let outcome = file.read_at(&mut [0; 512], 0);
    assert_eq!(outcome, Outcome::Errno(libc::EIO));
    assert!(message(file.check("pread", 0, 512, outcome).unwrap_err()).contains("a sync failed before"));
    assert!(matches!(file.drop_cache(), Err(IoError::Poisoned { .. })));
}

#[test]
fn a_refusal_before_the_medium_does_not_poison() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 65_536);
    let file = File::open(&path, Access { dsync: true, ..DIRECT }).unwrap();
    let buffer = Buffer::new(8192).unwrap();
    assert_eq!(file.write_at(&buffer, 100), Outcome::Errno(libc::EINVAL));
    assert_eq!(file.write_at(&buffer, 0), Outcome::Full);
    let _ = file.judge_write(Outcome::Errno(libc::EIO), true);
    assert_eq!(file.write_at(&buffer, 0), Outcome::Errno(libc::EIO));
}

#[test]
fn extents_tell_written_from_the_rest() {
    const MIB: u64 = 1 << 20;
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), CACHED).unwrap();
    rustix::fs::ftruncate(file.as_fd(), 4 * MIB).unwrap();
    assert_eq!(file.extents().unwrap().hole_bytes, 4 * MIB);
    rustix::fs::fallocate(file.as_fd(), FallocateFlags::empty(), MIB, MIB).unwrap();
    assert_eq!(file.write_at(&vec![1; MIB as usize], 2 * MIB), Outcome::Full);
    file.fdatasync().unwrap();
    let extents = file.extents().unwrap();
    assert_eq!(extents.total_bytes, 4 * MIB);
    assert_eq!(
        (extents.mapped_bytes, extents.unwritten_bytes, extents.hole_bytes),
        (MIB, MIB, 2 * MIB),
        "{extents:?}"
    );
    assert_eq!(extents.not_on_device(), 3 * MIB);
}

#[test]
fn extents_of_many_pieces_take_many_calls() {
    let folder = folder();
    let file = File::create_new(&folder.path().join("file"), CACHED).unwrap();
    for piece in 0..200 {
        assert_eq!(file.write_at(&[1; 4096], piece * 65_536), Outcome::Full);
    }
    file.fdatasync().unwrap();
    let extents = file.extents().unwrap();
    assert_eq!((extents.mapped_bytes, extents.count), (200 * 4096, 200), "{extents:?}");
}

#[test]
fn extents_without_fiemap_come_from_seeking() {
    let folder = folder();
    let mount = Mount::tmpfs("size=1m", &folder.path().join("memory"));
    let file = File::create_new(&mount.0.join("file"), CACHED).unwrap();
    rustix::fs::ftruncate(file.as_fd(), 64 << 10).unwrap();
    assert_eq!(file.write_at(&[1; 8192], 16_384), Outcome::Full);
    let extents = file.extents().unwrap();
    assert_eq!((extents.mapped_bytes, extents.hole_bytes, extents.count), (8192, 57_344, 1), "{extents:?}");
}

#[test]
fn the_page_cache_is_seen_filled_and_emptied() {
    let folder = folder();
    let path = folder.path().join("file");
    written(&path, 1 << 20);
    let file = File::open(&path, CACHED).unwrap();
    file.advise_random().unwrap();
    file.drop_cache().unwrap();
    assert_eq!(file.residency().unwrap(), Residency { pages: 256, resident: 0 });
    assert_eq!(file.read_at(&mut [0; 65_536], 65_536), Outcome::Full);
    let whole = file.residency().unwrap();
    assert!(whole.resident >= 16 && whole.resident < 256, "{whole:?}");
    assert_eq!(file.residency_of(65_536..131_072).unwrap().share(), 1.0);
    assert_eq!(file.residency_of(70_000..70_001).unwrap(), Residency { pages: 1, resident: 1 });
    assert_eq!(file.residency_of(5..5).unwrap().share(), 0.0);
    assert_eq!(file.mincore(&(0..1 << 20), 4096).unwrap(), whole.resident, "both sources agree");
    file.advise_sequential().unwrap();
    let direct = File::open(&path, DIRECT).unwrap();
    file.drop_cache().unwrap();
    assert_eq!(direct.read_at(&mut Buffer::new(65_536).unwrap(), 0), Outcome::Full);
    assert_eq!(file.residency().unwrap().resident, 0, "a direct read leaves no page");
}
