//! A folder, a journal and a server in it.

use engine::Placement;
use host::journal::Journal;
use host::workspace::Workspace;
use io::{Api, IoMode};
use lab::server::{Kind, Server, Settings};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use units::Bytes;

pub static GO_ON: AtomicBool = AtomicBool::new(false);

/// The smallest server, buffered and synchronous: every version can do that.
pub fn settings(connections: u32) -> Settings {
    Settings {
        cache: Bytes::mib(16),
        redo: Bytes::mib(64),
        mode: IoMode::None,
        api: Api::Threads,
        block: None,
        connections,
        parameters: Vec::new(),
    }
}

/// Something that is undone and removed at its end, with what it holds.
pub struct Stand {
    pub folder: tempfile::TempDir,
    pub journal: Option<Journal>,
    pub workspace: Workspace,
}

impl Stand {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // The server's user passes through it.
        let passable = std::fs::Permissions::from_mode(0o711);
        std::fs::set_permissions(folder.path(), passable).expect("permissions");
        let mut journal = Journal::open_in(&folder.path().join("state"), "test").expect("a journal");
        let workspace = Workspace::create(folder.path(), &mut journal).expect("a workspace");
        Self { folder, journal: Some(journal), workspace }
    }

    pub fn try_server(&mut self, kind: Kind, settings: &Settings) -> Result<Server, lab::LabError> {
        self.try_server_of(kind, None, settings)
    }

    /// With the programs in that folder.
    pub fn server_of(&mut self, kind: Kind, programs: Option<&Path>, settings: &Settings) -> Server {
        self.try_server_of(kind, programs, settings).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_server_of(
        &mut self,
        kind: Kind,
        programs: Option<&Path>,
        settings: &Settings,
    ) -> Result<Server, lab::LabError> {
        let journal = self.journal.as_mut().expect("open");
        let mut server = Server::create(
            kind,
            programs,
            (self.workspace.path(), &Placement::default()),
            settings,
            journal,
            &GO_ON,
        )?;
        server.start(&GO_ON)?;
        Ok(server)
    }

    pub fn server(&mut self, kind: Kind, settings: &Settings) -> Server {
        self.try_server(kind, settings).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Undoes everything; nothing may be left, neither file nor process.
    pub fn end(mut self) {
        let path = self.workspace.path().to_owned();
        let lines = self.journal.take().expect("open").undo_all().expect("undone");
        assert!(lines.iter().all(|line| line.result.is_settled()), "{lines:?}");
        assert!(!path.exists(), "{} is left", path.display());
        assert_eq!(processes_in(&path), Vec::<String>::new());
    }
}

/// Command lines of the processes whose working directory lies in `folder`.
pub fn processes_in(folder: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let inside = processes.filter(|process| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    let words = |process: std::fs::DirEntry| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ")
    };
    // Who is at its very end has no command line any more.
    inside.map(words).filter(|words| !words.is_empty()).collect()
}
