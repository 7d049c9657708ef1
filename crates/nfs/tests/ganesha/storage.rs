//! Directories, names and files as the engine uses them, over each version.

use crate::stand::{Conf, Server, VERSIONS, alone, mount};
use io::stamp::{self, Stamp, Stamper};
use io::{Access, Action, Api, IoError, Outcome, Request, Storage as _};
use nfs::{Status, Storage};
use std::path::Path;
use units::Seed;

const BLOCK: u32 = 8192;
const PREFIX: &str = "nfs://here/vfs";
const ACCESS: Access = Access { read: true, write: true, direct: true, dsync: true };

#[test]
fn names_are_made_listed_changed_and_removed() {
    alone("storage::names_are_made_listed_changed_and_removed", || {
        let server = Server::start(&Conf::default());
        for version in VERSIONS {
            let (mount, top) = (mount(version), format!("names {version}"));
            mount.make_directory(&top, 0o750).expect("a directory");
            let taken = mount.make_directory(&top, 0o750).expect_err("it is there");
            assert_eq!(taken.status(), Some(Status::EXIST), "{version}: {taken}");
            // More than one reply holds.
            let mut names: Vec<String> =
                (0..400).map(|n| format!("{n:03} {}", "a long name ".repeat(15))).collect();
            for name in &names {
                std::fs::write(server.export().join(&top).join(name), "").expect("a file");
            }
            let mut listed = mount.list(&top).expect("names");
            listed.sort();
            assert_eq!(listed, names, "{version}");
            mount
                .rename(&format!("{top}/{}", names[0]), &format!("{top}/{}", names[1]))
                .expect("over another");
            let gone = mount.rename(&format!("{top}/{}", names[0]), "x").expect_err("it is gone");
            assert_eq!(gone.status(), Some(Status::NOENT), "{version}: {gone}");
            let full = mount.remove_directory(&top).expect_err("it is not empty");
            assert_eq!(full.status(), Some(Status::NOTEMPTY), "{version}: {full}");
            for name in names.drain(1..) {
                mount.remove(&format!("{top}/{name}")).expect("it goes");
            }
            assert_eq!(mount.list(&top).expect("names"), Vec::<String>::new());
            assert!(mount.list("").expect("the export").contains(&top));
            assert!(mount.exists(&top).expect("an answer"));
            mount.remove_directory(&top).expect("it is empty");
            assert!(!mount.exists(&top).expect("an answer"), "{version}");
        }
    });
}

#[test]
fn files_hold_what_a_database_puts_into_them() {
    alone("storage::files_hold_what_a_database_puts_into_them", || {
        let server = Server::start(&Conf::default());
        for version in VERSIONS {
            let storage = Storage::new(mount(version), PREFIX);
            let folder = Path::new(PREFIX).join(format!("{version}/data"));
            storage.create_directory(&folder).expect("directories");
            storage.create_directory(&folder).expect("they are there");
            let path = folder.join("data.dbf");
            let disk = storage.create(&path, (5 << 20) + 77, ACCESS).expect("a file");
            assert_eq!(disk.bytes(), (5 << 20) + 77);
            let again = storage.create(&path, 1, ACCESS).err().expect("it exists");
            assert!(matches!(again, IoError::Exists { .. }), "{again}");
            stamped(&storage, &disk);
            storage.extend(&path, 5 << 20, 7 << 20).expect("more");
            assert_eq!(disk.bytes(), 7 << 20);
            let mut end = vec![1; 1000];
            assert_eq!(disk.read_at(&mut end, (5 << 20) + 1), Outcome::Full);
            assert!(end.iter().all(|byte| *byte == 0));
            assert_eq!(disk.read_at(&mut end, (7 << 20) - 10), Outcome::Short(10));

            let small = folder.join("control");
            for content in ["one", "another, longer", ""] {
                storage.replace(&small, content.as_bytes()).expect("a new content");
                assert_eq!(storage.read(&small).expect("content"), content.as_bytes(), "{version}");
            }
            let log = folder.join("alert.log");
            (0..3).for_each(|n| storage.append_line(&log, &format!("line {n}")));
            assert_eq!(storage.read(&log).expect("lines"), b"line 0\nline 1\nline 2\n");
            assert_eq!(
                storage.list(&folder).expect("names"),
                ["alert.log", "control", "data.dbf"].map(|name| folder.join(name))
            );
            storage.remove(&path).expect("it goes");
            assert!(!storage.exists(&path) && storage.exists(&log));
            let missing = storage.open(&path, ACCESS).err().expect("it is gone");
            assert!(matches!(missing, IoError::NoSuchFile { .. }), "{missing}");
            locks(&storage, &server, &folder.join("lock"));
        }
    });
}

fn stamped(storage: &Storage, disk: &std::sync::Arc<dyn io::sim::Disk>) {
    let stamper = Stamper::new(Seed(5));
    let mut queue = storage.open_queue(Api::Threads, 4, BLOCK, std::slice::from_ref(disk)).expect("a queue");
    let mut done = Vec::new();
    for slot in 0..4 {
        let offset = u64::from(slot * BLOCK);
        stamper.fill(queue.buffer_mut(slot), Stamp { file_id: 1, offset, generation: 2 });
        queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action: Action::Write });
    }
    queue.submit_and_reap(4, &mut done).expect("a queue that works");
    assert!(done.iter().all(|completion| completion.outcome.is_full()), "{done:?}");
    assert_eq!(disk.sync(), Outcome::Full);
    // By calls of several threads at once.
    std::thread::scope(|scope| {
        for block in 0..4 {
            scope.spawn(move || {
                let (mut buffer, offset) = (vec![0; BLOCK as usize], block * u64::from(BLOCK));
                assert_eq!(disk.read_at(&mut buffer, offset), Outcome::Full);
                stamp::verify(&buffer, 1, offset, Some(2)).expect("what was written");
            });
        }
    });
}

fn locks(storage: &Storage, server: &Server, path: &Path) {
    let held = storage.lock(path).expect("nobody has it");
    let refused = storage.lock(path).err().expect("somebody has it");
    assert!(
        matches!(refused, IoError::Locked { holder: Some(pid), .. } if pid == std::process::id()),
        "{refused}"
    );
    drop(held);
    assert!(!storage.exists(path), "it was given back");
    // Of a process that was killed, and of another machine.
    let held = storage.lock(path).expect("nobody has it");
    let below = server.export().join(path.strip_prefix(PREFIX).expect("below"));
    let line = std::fs::read_to_string(&below).expect("a line");
    let killed = line.replace(", begun ", ", begun 7");
    std::fs::write(&below, &killed).expect("a line");
    let other = storage.lock(path).expect("its owner is gone");
    drop((held, other));
    std::fs::write(&below, killed.replace("machine ", "machine not-")).expect("a line");
    let refused = storage.lock(path).err().expect("nobody can tell").to_string();
    assert!(
        refused.contains("another machine") && refused.contains("remove the file nfs://here"),
        "{refused}"
    );
}
