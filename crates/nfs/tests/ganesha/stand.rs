//! A namespace with a server in it, and a way to its export. Tests and the benchmark include this file.
#![allow(dead_code, reason = "each of them uses its part")]

use nfs::{Mount, MountOptions, NfsError, Path, Target, Version};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use units::{Nanos, clock};

pub const VERSIONS: [Version; 3] = [Version::V3, Version::V40, Version::V41];
pub const PORT: u16 = 12_049;
pub const MOUNT_PORT: u16 = 12_050;
const INSIDE: &str = "REDOUBT_TEST_IN_NAMESPACE";
const PLUGINS: &str = "/usr/lib/x86_64-linux-gnu/ganesha";
/// An address that is not loopback's: without one Ganesha resolves nothing.
const SETUP: &str =
    "ip link set lo up && ip addr add 10.99.0.1/32 dev lo && mount -t tmpfs tmpfs /run && exec \"$@\"";

/// This program once more, in a network of its own: version 3 needs the one port of the port mapper. None when this is it.
pub fn inside(arguments: &[String]) -> Option<Command> {
    if std::env::var_os(INSIDE).is_some() {
        return None;
    }
    assert!(rustix::process::geteuid().is_root(), "a server of version 3 needs root");
    let mut command = Command::new("unshare");
    // Whatever is started in there ends with it.
    // What is unmounted outside is not held on to in there.
    let namespaces =
        ["--net", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"];
    command.args(namespaces).args(["--", "sh", "-c", SETUP, "sh"]);
    command.arg(std::env::current_exe().expect("this very program")).args(arguments).env(INSIDE, "1");
    Some(command)
}

/// Runs `test`, whose name is `name`, in a network of its own.
pub fn alone(name: &str, test: impl FnOnce()) {
    let Some(mut command) = inside(&["--exact", name, "--nocapture"].map(str::to_owned)) else {
        return test();
    };
    let output = command.output().expect("unshare is in package util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Ganesha and a port mapper, killed at the end.
pub struct Server {
    pub folder: tempfile::TempDir,
    mapper: Child,
    ganesha: Child,
}

/// What differs between tests.
pub struct Conf {
    pub protocols: &'static str,
    pub minor: &'static str,
    /// Of the block NFSv4.
    pub grace: &'static str,
    /// Of the export.
    pub clients: &'static str,
}

impl Default for Conf {
    fn default() -> Self {
        Self { protocols: "3,4", minor: "0,1,2", grace: "Graceless = true;", clients: "Access_Type = RW;" }
    }
}

fn start(program: &str, package: &str, arguments: &[&str]) -> Child {
    let started = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.unwrap_or_else(|error| panic!("{program}: {error}; type: sudo apt install {package}"))
}

fn wait_for_port(port: u16) {
    let deadline = clock::now() + Nanos::millis(20_000);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(clock::now() < deadline, "nothing listens on port {port}");
        clock::sleep(Nanos::millis(20));
    }
}

/// It listens before it has told the port mapper where it mounts. What it says to a mount is not asked here.
fn wait_for_mount() {
    let deadline = clock::now() + Nanos::millis(20_000);
    while let Err(error @ NfsError::Unreachable { .. }) = Mount::open(target(Version::V3), options()) {
        assert!(clock::now() < deadline, "{error}");
        clock::sleep(Nanos::millis(20));
    }
}

impl Server {
    pub fn start(conf: &Conf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = conf.text(&folder.path().display().to_string());
        std::fs::write(folder.path().join("ganesha.conf"), text).expect("a configuration");
        for name in ["export", "recovery"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mapper = start("rpcbind", "rpcbind", &["-f"]);
        wait_for_port(nfs::portmap::PORT);
        let ganesha = Self::ganesha(&folder);
        wait_for_port(PORT);
        if conf.protocols.contains('3') {
            wait_for_mount();
        }
        Self { folder, mapper, ganesha }
    }

    fn ganesha(folder: &tempfile::TempDir) -> Child {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (log, conf, pid) = (at("log"), at("ganesha.conf"), at("pid"));
        let arguments = ["-F", "-L", &log, "-f", &conf, "-p", &pid, "-N", "NIV_EVENT"];
        start("ganesha.nfsd", "nfs-ganesha nfs-ganesha-vfs", &arguments)
    }

    /// Kills it with -9, and leaves it dead for a moment.
    pub fn restart(&mut self) {
        self.ganesha.kill().expect("it ran");
        self.ganesha.wait().expect("it ran");
        clock::sleep(Nanos::millis(100));
        let _ = std::fs::remove_file(self.folder.path().join("pid"));
        self.ganesha = Self::ganesha(&self.folder);
    }

    pub fn export(&self) -> PathBuf {
        self.folder.path().join("export")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in [&mut self.ganesha, &mut self.mapper] {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}

impl Conf {
    fn text(&self, folder: &str) -> String {
        let Self { protocols, minor, grace, clients } = self;
        format!(
            "NFS_CORE_PARAM {{ Bind_addr = 0.0.0.0; NFS_Port = {PORT}; MNT_Port = {MOUNT_PORT}; Protocols = {protocols};
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true; Plugins_Dir = \"{PLUGINS}\"; }}
NFSv4 {{ Minor_Versions = {minor}; PNFS_MDS = false; PNFS_DS = false; {grace} Only_Numeric_Owners = true;
    RecoveryRoot = \"{folder}/recovery\"; RecoveryBackend = fs; }}
EXPORT {{ Export_Id = 1; Path = {folder}/export; Pseudo = /vfs; Protocols = {protocols}; Transports = TCP;
    Squash = no_root_squash; SecType = sys; {clients} FSAL {{ Name = VFS; }} }}
"
        )
    }
}

pub fn target(version: Version) -> Target {
    Target {
        server: "here".into(),
        paths: vec![Path { remote: IpAddr::V4(Ipv4Addr::LOCALHOST), local: None }],
        port: PORT,
        mount_port: None,
        export: "/vfs".into(),
        version,
    }
}

pub fn options() -> MountOptions {
    MountOptions { limit: Nanos::millis(30_000), ..MountOptions::default() }
}

pub fn mount(version: Version) -> Mount {
    Mount::open(target(version), options()).unwrap_or_else(|error| panic!("{version}: {error}"))
}
