//! What cannot be is said clearly, and at once.

use crate::stand::{Conf, PORT, Server, VERSIONS, alone, mount, options, target};
use nfs::rpc::call::Credential;
use nfs::{Mount, MountOptions, NfsError, Open, Target, Version};
use std::os::unix::fs::PermissionsExt;

fn refused(target: Target, options: MountOptions) -> NfsError {
    match Mount::open(target, options) {
        Ok(mount) => panic!("this must not succeed: {:?}", mount.facts()),
        Err(error) => error,
    }
}

#[test]
fn a_server_that_is_there_says_no() {
    alone("refusals::a_server_that_is_there_says_no", || {
        let server = Server::start(&Conf::default());
        let secret = server.export().join("secret");
        std::fs::write(&secret, "x").expect("a file");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        for version in VERSIONS {
            let error = refused(Target { export: "/nowhere".into(), ..target(version) }, options());
            // MOUNT of this server does not tell strangers what there is.
            let hidden = version == Version::V3 && matches!(error, NfsError::Denied { .. });
            assert!(hidden || matches!(error, NfsError::NoExport { .. }), "{version}: {error}");
            assert!(error.to_string().contains("/nowhere"), "{error}");

            let error = refused(Target { port: PORT + 7, ..target(version) }, options());
            assert!(matches!(error, NfsError::Unreachable { .. }), "{version}: {error}");
            assert!(error.to_string().contains("127.0.0.1 port 12056: Connection refused"), "{error}");

            let nobody = MountOptions { credential: Credential::sys("here", 1234, 1234, &[]), ..options() };
            let other = Mount::open(target(version), nobody).expect("the export is for all");
            let error = other.file("secret", Open::Read).expect_err("it is root's");
            assert_eq!(error.errno(), 13, "{version}: {error}");
            assert!(error.to_string().contains("does not allow it"), "{error}");
            mount(version).file("secret", Open::Read).expect("root may");
        }
    });
}

#[test]
fn no_version_falls_back_to_another() {
    alone("refusals::no_version_falls_back_to_another", || {
        for (protocols, minor, spoken) in [("4", "0", Version::V40), ("4", "1", Version::V41)] {
            let _server = Server::start(&Conf { protocols, minor, ..Conf::default() });
            for version in VERSIONS {
                if version == spoken {
                    assert_eq!(mount(version).facts().version, version);
                    continue;
                }
                let error = refused(Target { mount_port: Some(PORT), ..target(version) }, options());
                let expected = match &error {
                    NfsError::Version { wanted, .. } => *wanted == version,
                    // MOUNT is not there at all.
                    NfsError::Rpc { .. } => version == Version::V3,
                    _ => false,
                };
                assert!(expected, "only {spoken} is spoken, {version} was asked for: {error}");
            }
        }
    });
}

#[test]
fn an_export_that_is_not_for_us() {
    alone("refusals::an_export_that_is_not_for_us", || {
        let clients = "Access_Type = None; CLIENT { Clients = 192.0.2.1; Access_Type = RW; }";
        let _server = Server::start(&Conf { clients, ..Conf::default() });
        for version in VERSIONS {
            let error = refused(target(version), options());
            let said = matches!(error, NfsError::Denied { .. } | NfsError::NoExport { .. });
            assert!(said && error.to_string().contains("/vfs"), "{version}: {error}");
        }
    });
}
