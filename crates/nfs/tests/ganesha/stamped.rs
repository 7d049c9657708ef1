//! What any server has to do for a file: stamped blocks, transfers of odd lengths, names. Tests of other crates include this file.

use io::stamp::{self, Stamp, Stamper};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{File, Mount, NfsError, Open, QueueOptions, Status, Version};
use units::Seed;

const BLOCK: u32 = 8192;
const BLOCKS: u64 = 400;
/// Of the stamped blocks.
pub const BYTES: u64 = BLOCKS * BLOCK as u64;

/// Everything of a new `file` called `name`, which is gone at the end.
pub fn check(mount: &Mount, file: &File, name: &str) {
    blocks(mount, file, mount.facts().version);
    large_and_odd(mount, file);
    names(mount, file, name);
}

fn blocks(mount: &Mount, file: &File, version: Version) {
    let stamper = Stamper::new(Seed(5));
    let stamp = |block: u64| Stamp { file_id: 9, offset: block * u64::from(BLOCK), generation: 3 };
    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[file]).expect("a queue");
    assert!(queue.describe().contains(&version.to_string()), "{}", queue.describe());
    let request =
        |block: u64, action| Request { file: 0, offset: block * u64::from(BLOCK), bytes: BLOCK, action };
    each(&mut queue, |queue, slot, block| {
        stamper.fill(queue.buffer_mut(slot), stamp(block));
        // Half of them are left to the commit.
        request(block, if block % 2 == 0 { Action::Write } else { Action::WriteDsync })
    });
    sync(&mut queue);
    drop(queue);
    assert_eq!(mount.attributes(file).expect("attributes").size, BYTES);

    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[file]).expect("another queue");
    let mut found = Vec::new();
    each_with(
        &mut queue,
        |_, _, block| request(block, Action::Read),
        |buffer, block| {
            let Stamp { file_id, offset, generation } = stamp(block);
            assert_eq!(
                stamp::verify(buffer, file_id, offset, Some(generation)),
                Ok(stamp(block)),
                "{version}, block {block}"
            );
            found.push(block);
        },
    );
    found.sort_unstable();
    assert_eq!(found, (0..BLOCKS).collect::<Vec<_>>(), "each once");
    let network = queue.network();
    assert_eq!((network.sends, network.receives, network.replays), (BLOCKS, BLOCKS, 0), "{network:?}");
}

/// Transfers above the server's longest, and of lengths that have to be padded.
fn large_and_odd(mount: &Mount, file: &File) {
    let bytes = 3 * (1 << 20) + 4097;
    let mut queue = mount.queue(QueueOptions::new(1, bytes), &[file]).expect("a queue");
    let data: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8 ^ (n >> 13) as u8).collect();
    queue.buffer_mut(0).copy_from_slice(&data);
    let outcome = one(&mut queue, Request { file: 0, offset: 77, bytes, action: Action::WriteDsync });
    assert_eq!(outcome, Outcome::Full, "{}: {:?}, {:?}", queue.describe(), queue.network(), queue.trouble());
    queue.buffer_mut(0).fill(0);
    assert_eq!(one(&mut queue, Request { file: 0, offset: 77, bytes, action: Action::Read }), Outcome::Full);
    assert!(queue.buffer(0) == data, "what was written");
    let end = mount.attributes(file).expect("attributes").size;
    let beyond = Request { file: 0, offset: end - 5, bytes: 100, action: Action::Read };
    assert_eq!(one(&mut queue, beyond), Outcome::Short(5));
    mount.set_size(file, 1000).expect("a new size");
    assert_eq!(
        one(&mut queue, Request { file: 0, offset: 1000, bytes: 1, action: Action::Read }),
        Outcome::Short(0)
    );
    assert_eq!(mount.attributes(file).expect("attributes").size, 1000);
}

fn names(mount: &Mount, file: &File, name: &str) {
    let taken = mount.file(name, Open::New { mode: 0o600 }).expect_err("it exists");
    assert!(
        matches!(&taken, NfsError::Refused { fault, .. } if fault.status() == Some(Status::EXIST)),
        "{taken}"
    );
    let again = mount.file(name, Open::Create { mode: 0o600 }).expect("it exists, and may");
    assert_eq!(
        mount.attributes(&again).expect("attributes").file_id,
        mount.attributes(file).expect("same").file_id
    );
    mount.remove(name).expect("it goes");
    let gone = mount.file(name, Open::Read).expect_err("it is gone");
    assert!(gone.to_string().contains("no such file"), "{gone}");
    let nowhere = mount.file("no/such", Open::Read).expect_err("there is no such folder");
    assert!(gone.errno() == 2 && nowhere.errno() == 2, "{nowhere}");
    assert!(matches!(mount.file("../etc/passwd", Open::Read), Err(NfsError::Name(_))));
}

fn one(queue: &mut nfs::Queue, request: Request) -> Outcome {
    queue.stage(0, request);
    let mut done = Vec::new();
    queue.submit_and_reap(1, &mut done).expect("a queue that works");
    done[0].outcome
}

fn sync(queue: &mut nfs::Queue) {
    assert_eq!(one(queue, Request { file: 0, offset: 0, bytes: 0, action: Action::Sync }), Outcome::Full);
}

fn each(queue: &mut nfs::Queue, stage: impl FnMut(&mut nfs::Queue, u32, u64) -> Request) {
    each_with(queue, stage, |_, _| {});
}

/// One request for each block, as many at once as there are slots.
fn each_with(
    queue: &mut nfs::Queue,
    mut stage: impl FnMut(&mut nfs::Queue, u32, u64) -> Request,
    mut see: impl FnMut(&[u8], u64),
) {
    let mut of_slot = vec![None; queue.depth() as usize];
    let mut free: Vec<u32> = (0..queue.depth()).collect();
    let (mut next, mut ended, mut done) = (0, 0, Vec::new());
    while ended < BLOCKS {
        while next < BLOCKS
            && let Some(slot) = free.pop()
        {
            let request = stage(queue, slot, next);
            queue.stage(slot, request);
            of_slot[slot as usize] = Some(next);
            next += 1;
        }
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full, "slot {slot}");
            see(queue.buffer(slot), of_slot[slot as usize].take().expect("it was in flight"));
            free.push(slot);
            ended += 1;
        }
    }
}
