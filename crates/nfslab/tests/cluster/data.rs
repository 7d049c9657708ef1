//! Stamped data written and read back, through the right node and the wrong one.

use crate::stand::{Blocks, mount, start};
use io::Action;
use nfs::{Open, QueueOptions, Version};
use nfslab::{ClusterOptions, Layouts};

const BLOCKS: u64 = 400;

#[test]
fn stamped_blocks_come_back_over_each_version() {
    let cluster = start(ClusterOptions { layouts: Layouts::None, ..ClusterOptions::default() });
    for (number, version) in [Version::V3, Version::V40, Version::V41].into_iter().enumerate() {
        for export in ["/a", "/b", "/striped"] {
            let mount = mount(&cluster, 0, export, version);
            let file = mount.file(&format!("data {version}"), Open::New { mode: 0o640 }).expect("a new file");
            let blocks = Blocks::new(number as u64, BLOCKS);
            let before = [0, 1].map(|node| cluster.counters(node));
            let mut queue = mount.queue(QueueOptions::new(16, 8192), &[&file]).expect("a queue");
            blocks.write_all(&mut queue, 1, Action::Write);
            blocks.read_all(&mut queue, 1);
            let [a, b] = [0, 1].map(|node| cluster.counters(node).since(&before[node]));
            assert_eq!((a.reads, a.writes, a.commits), (BLOCKS, BLOCKS, 1), "{version} {export}: {a:?}");
            assert_eq!((b.reads, b.writes, b.commits), (0, 0, 0), "{b:?}");
            let elsewhere = match export {
                "/a" => 0,
                "/b" => 2 * BLOCKS,
                _ => BLOCKS,
            };
            assert_eq!((a.forwarded, b.served), (elsewhere, elsewhere), "{version} {export}");
            let attributes = mount.attributes(&file).expect("attributes");
            assert_eq!(attributes.size, BLOCKS * 8192);
            mount.set_size(&file, 1000).expect("a new size");
            assert_eq!(mount.attributes(&file).expect("attributes").size, 1000);
            mount.remove(&format!("data {version}")).expect("it goes");
        }
    }
}
