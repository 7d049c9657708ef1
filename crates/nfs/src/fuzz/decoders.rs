//! Each decoder of what a server sends, with a good message of its kind.

use crate::rpc::reply::{self, Message};
use crate::transfer::ReadResult;
use crate::v4::callback::BackChannel;
use crate::v4::compound::{Op, Results};
use crate::v4::layout::{Device, Layout};
use crate::xdr::{Reader, Writer};
use crate::{Fault, Listing, mount, portmap, rpc, v3};

/// Reads one kind of message.
pub struct Decoder {
    /// Of which.
    pub name: &'static str,
    /// A good one, in words.
    pub good: &'static [u32],
    /// Whether it was understood.
    pub read: fn(&mut Reader<'_>) -> bool,
}

/// Heads of messages, and what is asked before a mount.
pub const HEADS: &[Decoder] = &[
    Decoder { name: "reply", good: &[9, 1, 0, 0, 0, 0], read: is_message },
    Decoder { name: "denial", good: &[9, 1, 1, 1, 5], read: is_message },
    Decoder { name: "call", good: &[9, 0, 2, 0x4000_0000, 1, 0, 1, 4, 5, 0, 0], read: is_message },
    Decoder { name: "portmap", good: &[2049], read: |r| portmap::read_get_port(r).is_ok() },
    Decoder {
        name: "mnt",
        good: &[0, 5, 0x0102_0304, 0x0500_0000, 2, 390_003, 1],
        read: |r| mount::read_mnt(r).is_ok(),
    },
    Decoder { name: "mnt refused", good: &[13], read: |r| mount::read_mnt(r).is_err() },
];

/// Version 3.
pub const V3: &[Decoder] = &[
    Decoder {
        name: "GETATTR of v3",
        good: &[0, 1, 0o644, 1, 0, 0, 0, 8192, 0, 8192, 0, 0, 0, 1, 0, 7, 1, 0, 1, 0, 1, 0],
        read: |r| v3::read_getattr(r).is_ok_and(|a| a.size == 8192 && a.file_id == 7),
    },
    Decoder { name: "LOOKUP of v3", good: &[0, 4, 0x0102_0304, 0, 0], read: |r| v3::read_lookup(r).is_ok() },
    Decoder { name: "no name", good: &[2, 0], read: |r| v3::read_lookup(r).is_err() },
    Decoder {
        name: "ACCESS of v3",
        good: &[0, 0, 0x0d],
        read: |r| v3::read_access(r).is_ok_and(|a| a.read && a.write),
    },
    Decoder { name: "CREATE of v3", good: &[0, 1, 4, 9, 0, 0, 0], read: |r| v3::read_create(r).is_ok() },
    Decoder { name: "SETATTR of v3", good: &[0, 0, 0], read: |r| v3::read_setattr(r).is_ok() },
    Decoder { name: "REMOVE of v3", good: &[0, 0, 0], read: |r| v3::read_remove(r).is_ok() },
    Decoder {
        name: "MKDIR of v3",
        good: &[0, 1, 4, 9, 0, 0, 0],
        read: |r| v3::directory::read_mkdir(r).is_ok(),
    },
    Decoder { name: "RMDIR of v3", good: &[0, 0, 0], read: |r| v3::directory::read_rmdir(r).is_ok() },
    Decoder { name: "RENAME of v3", good: &[0, 0, 0, 0, 0], read: |r| v3::directory::read_rename(r).is_ok() },
    Decoder {
        name: "READDIR of v3",
        good: &[0, 0, 1, 2, 1, 0, 7, 1, 0x2e00_0000, 0, 1, 1, 0, 8, 2, 0x6162_0000, 0, 2, 0, 1],
        read: |r| is_listing(r, v3::directory::read_readdir),
    },
    Decoder {
        name: "FSSTAT of v3",
        good: &[0, 0, 0, 100, 0, 60, 0, 50, 0, 9, 0, 9, 0, 9, 0],
        read: |r| v3::read_fsstat(r).is_ok_and(|s| s.total == 100 && s.available == 50),
    },
    Decoder {
        name: "FSINFO of v3",
        good: &[0, 0, 1 << 20, 1 << 20, 1, 1 << 19, 1 << 19, 1, 8192, 1, 0, 0, 1, 27],
        read: |r| v3::read_fsinfo(r).is_ok_and(|l| l.read_max == 1 << 20 && l.write_max == 1 << 19),
    },
    Decoder {
        name: "PATHCONF of v3",
        good: &[0, 0, 32_000, 255, 1, 0, 0, 1],
        read: |r| v3::read_pathconf(r).is_ok_and(|f| f.name_max == 255 && f.no_truncation),
    },
    Decoder {
        name: "READ of v3",
        good: &[0, 0, 5, 1, 5, 0x6865_6c6c, 0x6f00_0000],
        read: |r| v3::transfer::read_read(r, 8192).is_ok_and(is_bounded),
    },
    Decoder {
        name: "WRITE of v3",
        good: &[0, 1, 0, 1, 2, 2, 3, 3, 0, 5, 2, 8, 9],
        read: |r| v3::transfer::read_write(r, 8192).is_ok_and(|written| written.bytes <= 8192),
    },
    Decoder { name: "COMMIT of v3", good: &[0, 0, 0, 8, 9], read: |r| v3::transfer::read_commit(r).is_ok() },
];

/// Versions 4.0 and 4.1, but for pNFS.
pub const V4: &[Decoder] = &[
    Decoder {
        name: "handle of v4",
        good: &[0, 0, 2, 24, 0, 10, 0, 4, 7],
        read: |r| results(r, |all| all.done(Op::PutRootFh).and_then(|()| all.handle()).is_ok()),
    },
    Decoder {
        name: "GETATTR of v4",
        good: &[0, 0, 1, 9, 0, 2, 0x0010_0012, 0x2002, 32, 1, 0, 8192, 0, 7, 0o644, 0, 8192],
        read: |r| results(r, |all| all.attributes().is_ok_and(|a| a.file().is_ok_and(|f| f.size == 8192))),
    },
    Decoder {
        name: "SETATTR of v4",
        good: &[0, 0, 2, 22, 0, 34, 0, 1, 16],
        read: |r| results(r, |all| all.size_set().is_ok()),
    },
    Decoder {
        name: "OPEN without a delegation",
        good: &[0, 0, 1, 18, 0, 1, 2, 3, 4, 1, 0, 1, 0, 2, 4, 0, 3, 1, 0],
        read: |r| results(r, |all| all.opened().is_ok_and(|open| open.delegation.is_none())),
    },
    Decoder {
        name: "OPEN with a delegation",
        good: &[0, 0, 1, 18, 0, 1, 2, 3, 4, 1, 0, 1, 0, 2, 6, 0, 2, 5, 6, 7, 8, 0, 1, 0, 9, 0, 0, 0, 0],
        read: |r| results(r, |all| all.opened().is_ok_and(|open| open.delegation.is_some() && open.confirm)),
    },
    Decoder {
        name: "OPEN_CONFIRM",
        good: &[0, 0, 2, 22, 0, 20, 0, 1, 2, 3, 4],
        read: |r| results(r, |all| all.confirmed().is_ok()),
    },
    Decoder {
        name: "CLOSE",
        good: &[0, 0, 2, 22, 0, 4, 0, 1, 2, 3, 4],
        read: |r| results(r, |all| all.closed().is_ok()),
    },
    Decoder {
        name: "REMOVE of v4",
        good: &[0, 0, 1, 28, 0, 1, 0, 1, 0, 2],
        read: |r| results(r, |all| all.removed().is_ok()),
    },
    Decoder {
        name: "CREATE of v4",
        good: &[0, 0, 2, 22, 0, 6, 0, 1, 0, 1, 0, 2, 2, 0, 2],
        read: |r| results(r, |all| all.directory_made().is_ok()),
    },
    Decoder {
        name: "RENAME of v4",
        good: &[0, 0, 4, 22, 0, 32, 0, 22, 0, 29, 0, 1, 0, 1, 0, 2, 1, 0, 1, 0, 2],
        read: |r| results(r, |all| all.renamed().is_ok()),
    },
    Decoder {
        name: "READDIR of v4",
        good: &[0, 0, 2, 22, 0, 26, 0, 1, 2, 1, 0, 2, 2, 0x6162_0000, 0, 0, 0, 1],
        read: |r| is_listing(r, |r| Results::new(*r)?.listed()),
    },
    Decoder {
        name: "SETCLIENTID",
        good: &[0, 0, 1, 35, 0, 0, 1, 8, 9],
        read: |r| results(r, |all| all.client_id_set().is_ok()),
    },
    Decoder {
        name: "EXCHANGE_ID",
        good: &[0, 0, 1, 42, 0, 0, 1, 1, 0x2_0000, 0, 0, 0, 4, 7, 4, 8, 1, 0, 0, 0, 0, 0],
        read: |r| results(r, |all| all.exchanged().is_ok()),
    },
    Decoder {
        name: "CREATE_SESSION",
        good: &[0, 0, 1, 43, 0, 1, 2, 3, 4, 1, 2, 0, 9, 9, 9, 8, 16, 0, 0, 9, 9, 9, 8, 1, 1, 5],
        read: |r| results(r, |all| all.created().is_ok_and(|made| made.fore.slots > 0)),
    },
    Decoder {
        name: "SEQUENCE and READ of v4",
        good: &[0, 0, 3, 53, 0, 1, 2, 3, 4, 1, 0, 3, 3, 0, 22, 0, 25, 0, 1, 5, 0x6865_6c6c, 0x6f00_0000],
        read: |r| results(r, |all| all.sequenced().is_ok() && all.read(8192).is_ok_and(is_bounded)),
    },
    Decoder {
        name: "WRITE of v4",
        good: &[0, 0, 2, 22, 0, 38, 0, 5, 2, 8, 9],
        read: |r| results(r, |all| all.written(8192).is_ok_and(|written| written.bytes <= 8192)),
    },
    Decoder {
        name: "COMMIT of v4",
        good: &[0, 0, 2, 22, 0, 5, 0, 8, 9],
        read: |r| results(r, |all| all.committed().is_ok()),
    },
    Decoder {
        name: "BIND_CONN_TO_SESSION",
        good: &[0, 0, 1, 41, 0, 1, 2, 3, 4, 3, 0],
        read: |r| results(r, |all| all.bound() == Ok(true)),
    },
    Decoder {
        name: "DELEGRETURN",
        good: &[0, 0, 2, 22, 0, 8, 0],
        read: |r| results(r, |all| all.returned().is_ok()),
    },
    Decoder {
        name: "ACCESS of v4",
        good: &[0, 0, 1, 3, 0, 0x0d, 0x0d],
        read: |r| results(r, |all| all.access() == Ok(0x0d)),
    },
];

/// pNFS.
pub const LAYOUTS: &[Decoder] = &[
    Decoder {
        name: "a layout of files",
        good: &[
            0,
            0,
            2,
            22,
            0,
            50,
            0,
            0,
            1,
            2,
            3,
            4,
            1,
            0,
            0,
            MAX,
            MAX,
            2,
            1,
            44,
            1,
            2,
            3,
            4,
            1 << 16,
            0,
            0,
            0,
            1,
            4,
            9,
        ],
        read: |r| results(r, |all| all.layout_got().is_ok_and(|layout| is_usable(&layout))),
    },
    Decoder {
        name: "a layout of flexible files",
        good: &[
            0,
            0,
            2,
            22,
            0,
            50,
            0,
            0,
            1,
            2,
            3,
            4,
            1,
            0,
            0,
            MAX,
            MAX,
            2,
            4,
            88,
            0,
            1 << 16,
            1,
            1,
            1,
            2,
            3,
            4,
            1,
            5,
            6,
            7,
            8,
            1,
            4,
            9,
            1,
            ZERO,
            1,
            ZERO,
            0,
            0,
        ],
        read: |r| results(r, |all| all.layout_got().is_ok_and(|layout| is_usable(&layout))),
    },
    Decoder {
        name: "a device of files",
        good: &[0, 0, 1, 47, 0, 1, 44, 1, 0, 1, 1, 3, TCP, 13, HERE[0], HERE[1], HERE[2], HERE[3], 1, 6],
        read: |r| results(r, |all| all.device().is_ok_and(|device| has_addresses(&device))),
    },
    Decoder {
        name: "a device of flexible files",
        good: &[
            0,
            0,
            1,
            47,
            0,
            4,
            56,
            1,
            3,
            TCP,
            13,
            HERE[0],
            HERE[1],
            HERE[2],
            HERE[3],
            1,
            3,
            0,
            1 << 20,
            1 << 20,
            0,
            1,
            6,
        ],
        read: |r| results(r, |all| all.device().is_ok_and(|device| has_addresses(&device))),
    },
    Decoder {
        name: "LAYOUTCOMMIT",
        good: &[0, 0, 2, 22, 0, 49, 0, 1, 0, 5],
        read: |r| results(r, |all| all.layout_committed().is_ok()),
    },
    Decoder {
        name: "LAYOUTRETURN",
        good: &[0, 0, 2, 22, 0, 51, 0, 0],
        read: |r| results(r, |all| all.layout_returned().is_ok()),
    },
];

/// What a server asks of us.
pub const CALLBACKS: &[Decoder] = &[Decoder {
    name: "callback",
    good: &[0, 1, 1, 3, 11, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 1, 5, 6, 8, 1, 1, 2, 10, 5],
    read: |r| {
        let mut w = Writer::new();
        let procedure = rpc::Procedure { program: 0x4000_0000, version: 1, number: 1 };
        BackChannel::default().answer(&mut w, 1, procedure, *r);
        assert!(w.len() < r.rest().len() + 600, "an answer is no longer than its question, and a head");
        matches!(reply::decode(&w.bytes()[4..]), Ok(Message::Reply { result: Ok(_), .. }))
    },
}];

const MAX: u32 = u32::MAX;
/// `"0"`, `"tcp"`, `"127.0.0.1.8.1"`.
const ZERO: u32 = 0x3000_0000;
const TCP: u32 = 0x7463_7000;
const HERE: [u32; 4] = [0x3132_372e, 0x302e_302e, 0x312e_382e, 0x3100_0000];

/// Whoever divides by its numbers finds none that is 0.
fn is_usable(layout: &Layout) -> bool {
    assert!(layout.unit > 0 && (1..=256).contains(&layout.stripes.len()), "{layout:?}");
    true
}

fn has_addresses(device: &Device) -> bool {
    let stripes = &device.stripes;
    assert!((1..=256).contains(&stripes.len()) && stripes.iter().all(|addresses| !addresses.is_empty()));
    true
}

fn is_bounded(read: ReadResult<'_>) -> bool {
    read.data().is_ok_and(|data| data.len() == read.bytes as usize && data.len() <= 8192)
}

fn results(r: &mut Reader<'_>, read: fn(&mut Results<'_>) -> bool) -> bool {
    Results::new(*r).is_ok_and(|mut all| read(&mut all))
}

/// Whether it is a listing; no hostile one has more names than would fit.
fn is_listing(r: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Result<Listing, Fault>) -> bool {
    let bytes = r.rest().len();
    read(r).is_ok_and(|listing| {
        let whole = |name: &String| !name.is_empty() && !name.contains(['/', '\0']) && name != "..";
        assert!(listing.names.len() <= bytes / 20 && listing.names.iter().all(whole), "{listing:?}");
        true
    })
}

fn is_message(r: &mut Reader<'_>) -> bool {
    match reply::decode(r.rest()) {
        Ok(Message::Call { arguments, .. } | Message::Reply { result: Ok(arguments), .. }) => {
            assert!(arguments.rest().len() < r.rest().len());
            true
        }
        Ok(_) => true,
        Err(_) => false,
    }
}
