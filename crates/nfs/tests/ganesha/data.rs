//! Stamped data written and read back over each version.

use crate::stamped;
use crate::stand::{Conf, Server, VERSIONS, alone, mount};
use nfs::Open;

#[test]
fn stamped_blocks_come_back() {
    alone("data::stamped_blocks_come_back", || {
        let server = Server::start(&Conf::default());
        for version in VERSIONS {
            let mount = mount(version);
            let facts = mount.facts();
            assert_eq!(facts.version, version);
            assert!(facts.read_max >= 1 << 16 && facts.write_max >= 1 << 16, "{facts:?}");
            let name = format!("data {version}");
            let file = mount.file(&name, Open::New { mode: 0o640 }).expect("a new file");
            stamped::check(&mount, &file, &name);
            drop(file);
            assert!(!server.export().join(&name).exists(), "{version}: it was removed");
        }
    });
}
