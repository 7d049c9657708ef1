//! Tests of the parent module, on real files, file systems and a loop device. Mounts and loop devices need root.

use super::*;
use crate::file::File;
use crate::queue::{Action, Request};
use crate::testing::{Loop, Mount, folder};
use rustix::fs::fallocate;

const MIB: u64 = 1 << 20;

fn access(direct: bool) -> Access {
    Access { read: true, write: true, direct, dsync: true }
}

fn written_bytes(path: &Path) -> u64 {
    let file = File::open(path, access(false)).unwrap();
    let extents = file.extents().unwrap();
    assert_eq!(extents.not_on_device(), 0, "{extents:?}");
    extents.mapped_bytes
}

fn is_zero(path: &Path) -> bool {
    std::fs::read(path).unwrap().iter().all(|byte| *byte == 0)
}

#[test]
fn a_new_file_is_zeroes_on_the_device() {
    let folder = folder();
    for (name, bytes, direct) in
        [("a", 3 * MIB, true), ("b", 5 * MIB + 4096, false), ("c", 1000, true), ("d", 40 * MIB, true)]
    {
        let path = folder.path().join(name);
        let disk = RealStorage.create(&path, bytes, access(direct)).unwrap();
        assert_eq!(disk.bytes(), bytes);
        assert!(written_bytes(&path) >= bytes && is_zero(&path), "{name}");
        let any = disk.clone().as_any().unwrap().downcast::<File>().unwrap();
        let flags = any.flags_in_force().unwrap();
        assert!(flags.dsync && flags.direct == direct, "{}", flags.text);
        let again = RealStorage.create(&path, bytes, access(direct)).err().unwrap();
        assert!(matches!(again, IoError::Exists { .. }), "{again}");
    }
}

#[test]
fn an_extension_is_zeroes_on_the_device_whatever_was_there() {
    let folder = folder();
    let path = folder.path().join("a");
    let disk = RealStorage.create(&path, MIB, access(true)).unwrap();
    // What an extension that the power ended may leave: a longer file, not all of it written.
    let file = File::open(&path, access(false)).unwrap();
    fallocate(file.as_fd(), rustix::fs::FallocateFlags::empty(), 0, 3 * MIB).unwrap();
    RealStorage.extend(&path, MIB, 2 * MIB + 8192).unwrap();
    RealStorage.extend(&path, 2 * MIB + 8192, 4 * MIB).unwrap();
    assert_eq!(disk.bytes(), 4 * MIB);
    assert!(written_bytes(&path) >= 4 * MIB && is_zero(&path));
}

#[test]
fn a_full_disk_is_found_before_anything_is_left() {
    let folder = folder();
    let image = folder.path().join("image");
    RealStorage.create(&image, 32 * MIB, access(false)).unwrap();
    crate::testing::run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
    let point = folder.path().join("mount");
    let device = Loop::over(&image, &[]);
    let _mount = Mount::new("ext4", device.text(), "rw", &point);
    let (small, large) = (point.join("small"), point.join("large"));
    RealStorage.create(&small, 4 * MIB, access(true)).unwrap();
    let refused = RealStorage.create(&large, 64 * MIB, access(true)).err().unwrap();
    assert!(matches!(refused, IoError::NoSpace { .. }) && !RealStorage.exists(&large), "{refused}");
    let refused = RealStorage.extend(&small, 4 * MIB, 64 * MIB).err().unwrap();
    assert!(matches!(refused, IoError::NoSpace { .. }), "{refused}");
    assert_eq!(std::fs::metadata(&small).unwrap().len(), 4 * MIB);
    assert_eq!(written_bytes(&small), 4 * MIB);
    RealStorage.extend(&small, 4 * MIB, 8 * MIB).unwrap();
}

#[test]
fn a_device_is_taken_blank_and_given_back_blank() {
    let folder = folder();
    let image = folder.path().join("image");
    RealStorage.create(&image, 8 * MIB, access(false)).unwrap();
    std::fs::write(folder.path().join("x"), "not a device").unwrap();
    let device = Loop::over(&image, &[]);
    assert!(RealStorage.is_device(&device.0) && !RealStorage.is_device(&folder.path().join("x")));
    let too_large = RealStorage.create(&device.0, 9 * MIB, access(true)).err().unwrap();
    assert!(matches!(too_large, IoError::NoSpace { .. }), "{too_large}");
    {
        let disk = RealStorage.create(&device.0, 2 * MIB, access(true)).unwrap();
        assert!(disk.write_at(&crate::Buffer::new(4096).unwrap(), 0).is_full());
        let mut data = crate::Buffer::new(4096).unwrap();
        data.fill(7);
        assert!(disk.write_at(&data, 8192).is_full());
        RealStorage.extend(&device.0, 2 * MIB, 3 * MIB).unwrap();
        assert!(RealStorage.extend(&device.0, 3 * MIB, 9 * MIB).is_err());
        let busy = RealStorage.open(&device.0, access(true)).err().unwrap();
        assert!(matches!(busy, IoError::Busy { .. }), "claimed: {busy}");
    }
    let refused = RealStorage.create(&device.0, 2 * MIB, access(true)).err().unwrap();
    assert!(matches!(refused, IoError::NotBlank { offset: 8192, .. }), "{refused}");
    RealStorage.remove(&device.0).unwrap();
    RealStorage.create(&device.0, 2 * MIB, access(true)).unwrap();
    assert!(RealStorage.exists(&device.0));
}

#[test]
fn names_do_what_they_promise() {
    let folder = folder();
    let deep = folder.path().join("a/b/c");
    RealStorage.create_directory(&deep).unwrap();
    RealStorage.create_directory(&deep).unwrap();
    let small = deep.join("small");
    assert!(matches!(RealStorage.read(&small), Err(IoError::NoSuchFile { .. })));
    RealStorage.replace(&small, b"one").unwrap();
    RealStorage.replace(&small, b"three").unwrap();
    assert_eq!(RealStorage.read(&small).unwrap(), b"three");
    let log = deep.join("alert.log");
    RealStorage.append_line(&log, "first");
    RealStorage.append_line(&log, "second");
    assert_eq!(RealStorage.read(&log).unwrap(), b"first\nsecond\n");
    RealStorage.append_line(&deep.join("no/such/place"), "lost, and nobody is told");
    assert_eq!(RealStorage.list(&deep).unwrap(), [log, small.clone()], "no draft is left");
    RealStorage.remove(&small).unwrap();
    assert!(!RealStorage.exists(&small));
    assert!(matches!(RealStorage.remove(&small), Err(IoError::NoSuchFile { .. })));
    let file_in_the_way = deep.join("alert.log/sub");
    assert!(RealStorage.create_directory(&file_in_the_way).is_err());
}

#[test]
fn one_lock_one_owner() {
    let folder = folder();
    let path = folder.path().join("lock");
    let held = RealStorage.lock(&path).unwrap();
    match RealStorage.lock(&path) {
        Err(IoError::Locked { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
        other => panic!("{:?}", other.err()),
    }
    // Another process: a child that tries to take the same lock.
    let child = std::process::Command::new("flock").args(["-n"]).arg(&path).arg("true").status().unwrap();
    assert!(!child.success(), "install util-linux if flock is missing");
    RealStorage.remove(&path).unwrap();
    drop(held);
    let again = RealStorage.lock(&path).unwrap();
    assert!(RealStorage.lock(&path).is_err());
    drop(again);
    RealStorage.lock(&path).unwrap();
}

#[test]
fn queues_run_over_files_of_the_storage() {
    let folder = folder();
    let disk = RealStorage.create(&folder.path().join("a"), MIB, access(true)).unwrap();
    for api in Api::ALL {
        let mut queue = RealStorage.open_queue(api, 4, 8192, std::slice::from_ref(&disk)).unwrap();
        let mut done = Vec::new();
        for (action, byte) in [(Action::Write, 5), (Action::Read, 0)] {
            queue.buffer_mut(1).fill(byte);
            queue.stage(1, Request { file: 0, offset: 16384, bytes: 8192, action });
            done.clear();
            queue.submit_and_reap(1, &mut done).unwrap();
            assert!(done.len() == 1 && done[0].outcome.is_full(), "{api}: {done:?}");
        }
        assert!(queue.buffer(1).iter().all(|byte| *byte == 5), "{api}");
    }
}
