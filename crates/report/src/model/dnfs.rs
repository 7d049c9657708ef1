//! What our own NFS client saw of its servers: the version in use, calls and latency by node, where files were and when they moved.

use crate::ReportError;
use record::{DnfsChannelRow, DnfsFileRow, DnfsMoveRow, DnfsServerRow, Reader};
use std::collections::{BTreeMap, HashMap};

/// Rows of the record, read once.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// One for each mount.
    pub servers: Vec<DnfsServerRow>,
    /// The last of each channel.
    pub channels: Vec<DnfsChannelRow>,
    /// The last of each file.
    pub files: Vec<DnfsFileRow>,
    /// All moves.
    pub moves: Vec<DnfsMoveRow>,
}

impl Rows {
    /// Reads those of `reader`.
    ///
    /// # Errors
    /// [`ReportError::Record`].
    pub fn read(reader: &Reader) -> Result<Self, ReportError> {
        fn rows<T>(numbered: Vec<(i64, T)>) -> impl Iterator<Item = T> {
            numbered.into_iter().map(|(_, row)| row)
        }
        let mut channels: BTreeMap<(u32, u32), DnfsChannelRow> = BTreeMap::new();
        for row in rows(reader.sampled::<DnfsChannelRow>(0)?) {
            channels.insert((row.mount, row.channel), row);
        }
        let mut files: BTreeMap<(u32, String), DnfsFileRow> = BTreeMap::new();
        for row in rows(reader.sampled::<DnfsFileRow>(0)?) {
            files.insert((row.mount, row.path.clone()), row);
        }
        Ok(Self {
            servers: rows(reader.sampled(0)?).collect(),
            channels: channels.into_values().collect(),
            files: files.into_values().collect(),
            moves: rows(reader.sampled(0)?).collect(),
        })
    }
}

/// All of it; an export that was mounted several times in one version is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dnfs {
    /// By server, export and version, in the order of their first mount.
    pub exports: Vec<Export>,
}

/// An export in one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// What the server is called.
    pub server: String,
    /// The exported directory.
    pub directory: String,
    /// The version in use.
    pub version: String,
    /// The ways to it.
    pub paths: String,
    /// Longest READ and WRITE, bytes.
    pub transfer_max: (u64, u64),
    /// How often it was mounted.
    pub mounts: usize,
    /// Where calls went: by the mount first, then by layouts; the busiest first.
    pub nodes: Vec<Node>,
    /// Files by where their data was at last.
    pub layouts: Vec<Layout>,
    /// Moves from one place to another, by what made the client look.
    pub moves: Vec<Move>,
}

/// One address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Address and port.
    pub address: String,
    /// Whether calls went there by a layout.
    pub data_server: bool,
    /// Channels of workers.
    pub channels: usize,
    /// Those that were down when last seen.
    pub down: usize,
    /// READs and WRITEs.
    pub reads: Transfers,
    /// See `reads`.
    pub writes: Transfers,
    /// Calls that were lost there and sent again.
    pub replays: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Times that requests waited for a connection or a layout.
    pub stalls: u64,
    /// The longest, nanoseconds.
    pub stall_max_ns: u64,
}

/// READs or WRITEs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfers {
    /// Sent, repetitions included.
    pub sent: u64,
    /// Done, bytes.
    pub bytes: u64,
    /// Answered.
    pub done: u64,
    /// Time from sending to reply, together, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
}

impl Transfers {
    fn add(&mut self, (sent, bytes, done, sum_ns, max_ns): (u64, u64, u64, u64, u64)) {
        self.sent += sent;
        self.bytes += bytes;
        self.done += done;
        self.sum_ns += sum_ns;
        self.max_ns = self.max_ns.max(max_ns);
    }

    /// Mean, nanoseconds; none where nothing was answered.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.done > 0).then(|| self.sum_ns as f64 / self.done as f64)
    }
}

/// Files in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Kind of the layouts; none: everything went by the server that was mounted.
    pub kind: Option<String>,
    /// The data servers.
    pub nodes: String,
    /// How many files.
    pub files: usize,
    /// The newest of them came there, nanoseconds of the run's clock.
    pub since_ns: u64,
    /// Recalls, looks because it was time, and looks for other reasons.
    pub looks: (u64, u64, u64),
}

/// Files that moved together.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// From where.
    pub old: String,
    /// To where.
    pub new: String,
    /// What made the client look.
    pub cause: String,
    /// How many files.
    pub files: usize,
    /// The first, nanoseconds of the run's clock.
    pub t_ns: u64,
    /// Longest that requests of one of them waited, nanoseconds.
    pub stall_max_ns: u64,
    /// Bytes that went by the old layouts since they were last known to be right.
    pub unsure_bytes: u64,
}

impl Dnfs {
    /// None where no export was used.
    pub fn of(rows: &Rows) -> Option<Self> {
        let mut all = Self::default();
        let mut of_mount: HashMap<u32, usize> = HashMap::new();
        for row in &rows.servers {
            let is_it = |it: &Export| {
                (&it.server, &it.directory, &it.version) == (&row.server, &row.export, &row.version)
            };
            let at = all.exports.iter().position(is_it).unwrap_or_else(|| {
                all.exports.push(Export::of(row));
                all.exports.len() - 1
            });
            all.exports[at].mounts += 1;
            of_mount.insert(row.mount, at);
        }
        for row in &rows.channels {
            let Some(&at) = of_mount.get(&row.mount) else { continue };
            all.exports[at].add_channel(row);
        }
        for row in &rows.files {
            let Some(&at) = of_mount.get(&row.mount) else { continue };
            all.exports[at].add_file(row);
        }
        for row in &rows.moves {
            let Some(&at) = of_mount.get(&row.mount) else { continue };
            all.exports[at].add_move(row);
        }
        for export in &mut all.exports {
            export
                .nodes
                .sort_by_key(|it| (it.data_server, std::cmp::Reverse(it.reads.sent + it.writes.sent)));
        }
        (!all.exports.is_empty()).then_some(all)
    }
}

impl Export {
    fn of(row: &DnfsServerRow) -> Self {
        Self {
            server: row.server.clone(),
            directory: row.export.clone(),
            version: row.version.clone(),
            paths: row.paths.clone(),
            transfer_max: (row.read_max, row.write_max),
            mounts: 0,
            nodes: Vec::new(),
            layouts: Vec::new(),
            moves: Vec::new(),
        }
    }

    /// `A:/vol/data by pNFS`.
    pub fn title(&self) -> String {
        format!("{}:{} by {}", self.server, self.directory, self.version)
    }

    fn add_channel(&mut self, row: &DnfsChannelRow) {
        let is_it = |it: &Node| it.address == row.address && it.data_server == row.data_server;
        let at = self.nodes.iter().position(is_it).unwrap_or_else(|| {
            let address = row.address.clone();
            self.nodes.push(Node { address, data_server: row.data_server, ..Node::default() });
            self.nodes.len() - 1
        });
        let node = &mut self.nodes[at];
        node.channels += 1;
        node.down += usize::from(row.state == "DOWN");
        node.reads.add((row.reads, row.read_bytes, row.reads_done, row.read_ns, row.read_max_ns));
        node.writes.add((row.writes, row.written_bytes, row.writes_done, row.write_ns, row.write_max_ns));
        node.replays += row.replays;
        node.reconnects += row.reconnects;
        node.stalls += row.stalls;
        node.stall_max_ns = node.stall_max_ns.max(row.stall_max_ns);
    }

    fn add_file(&mut self, row: &DnfsFileRow) {
        let is_it = |it: &Layout| (&it.kind, &it.nodes) == (&row.layout, &row.nodes);
        let at = self.layouts.iter().position(is_it).unwrap_or_else(|| {
            let (kind, nodes) = (row.layout.clone(), row.nodes.clone());
            self.layouts.push(Layout { kind, nodes, files: 0, since_ns: 0, looks: (0, 0, 0) });
            self.layouts.len() - 1
        });
        let layout = &mut self.layouts[at];
        layout.files += 1;
        layout.since_ns = layout.since_ns.max(row.since_ns.unwrap_or(0));
        let (recalls, refreshes, doubts) = layout.looks;
        layout.looks = (recalls + row.recalls, refreshes + row.refreshes, doubts + row.doubts);
    }

    fn add_move(&mut self, row: &DnfsMoveRow) {
        /// Files of one volume move within this.
        const TOGETHER_NS: u64 = 2_000_000_000;
        let is_it = |it: &Move| {
            (&it.old, &it.new, &it.cause) == (&row.old_nodes, &row.new_nodes, &row.cause)
                && row.t_ns.abs_diff(it.t_ns) < TOGETHER_NS
        };
        let at = self.moves.iter().position(is_it).unwrap_or_else(|| {
            self.moves.push(Move {
                old: row.old_nodes.clone(),
                new: row.new_nodes.clone(),
                cause: row.cause.clone(),
                files: 0,
                t_ns: row.t_ns,
                stall_max_ns: 0,
                unsure_bytes: 0,
            });
            self.moves.len() - 1
        });
        let moved = &mut self.moves[at];
        moved.files += 1;
        moved.stall_max_ns = moved.stall_max_ns.max(row.stall_ns);
        moved.unsure_bytes += row.unsure_bytes;
    }

    /// Where files are, and their moves, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        use crate::words;
        let mut out = Vec::new();
        for it in &self.layouts {
            let files = words::count(it.files, "file");
            let (recalls, refreshes, doubts) = it.looks;
            out.push(match &it.kind {
                None => format!("{files}: no layout, everything goes by {}.", self.server),
                Some(kind) => format!(
                    "{files} by a layout of {kind} on {}, since {:.1} s of the run; layouts recalled {recalls} times, looked at again {refreshes} times because \
                     it was time, {doubts} times in doubt.",
                    it.nodes,
                    it.since_ns as f64 / 1e9
                ),
            });
        }
        // Without pNFS there is nothing to tell.
        if self.version != "pNFS" {
            out.clear();
        }
        for it in &self.moves {
            let waited = match it.stall_max_ns {
                0 => "no request waited".to_owned(),
                longest => format!("requests waited {} at most", words::latency(longest as f64)),
            };
            // Who is told of a move is told when it happens: until then the old layout was right.
            let unsure = match it.cause.as_str() {
                "recall" | "notification" => String::new(),
                _ => format!(
                    ", and {} may have gone to the wrong node before that was seen",
                    units::Bytes(it.unsure_bytes)
                ),
            };
            out.push(format!(
                "At {:.1} s {} moved from {} to {}, seen by {}: {waited}{unsure}.",
                it.t_ns as f64 / 1e9,
                words::count(it.files, "file"),
                it.old,
                it.new,
                it.cause,
            ));
        }
        for node in &self.nodes {
            let mut told = Vec::new();
            let several = |n: u64, one: &str| words::count(usize::try_from(n).unwrap_or(usize::MAX), one);
            if node.down > 0 {
                told.push(format!("{} DOWN at the end", words::count(node.down, "channel")));
            }
            if node.reconnects > 0 {
                told.push(several(node.reconnects, "new connection"));
            }
            if node.replays > 0 {
                told.push(format!("{} sent again", several(node.replays, "call")));
            }
            if node.stalls > 0 {
                let longest = words::latency(node.stall_max_ns as f64);
                told.push(format!("{}, the longest {longest}", several(node.stalls, "stall")));
            }
            if !told.is_empty() {
                out.push(format!("{}: {}.", node.address, told.join(", ")));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let server = |mount, version: &str| DnfsServerRow {
            mount,
            server: "filer".into(),
            export: "/vol".into(),
            version: version.into(),
            ..DnfsServerRow::default()
        };
        let channel = |mount, address: &str, data_server, reads: u64| DnfsChannelRow {
            mount,
            address: address.into(),
            data_server,
            state: "UP".into(),
            reads,
            reads_done: reads,
            read_ns: reads * 400_000,
            read_bytes: reads * 8192,
            replays: 2,
            ..DnfsChannelRow::default()
        };
        let moved = |path: &str, t_ns| DnfsMoveRow {
            mount: 1,
            path: path.into(),
            t_ns,
            cause: "recall".into(),
            old_nodes: "A".into(),
            new_nodes: "B".into(),
            stall_ns: t_ns / 1000,
            ..DnfsMoveRow::default()
        };
        Rows {
            servers: vec![server(0, "NFSv3"), server(1, "pNFS"), server(2, "NFSv3")],
            channels: vec![
                channel(0, "A", false, 10),
                channel(2, "A", false, 30),
                channel(1, "B", true, 5),
                channel(1, "A", false, 0),
            ],
            files: Vec::new(),
            moves: vec![moved("x", 1_000_000_000), moved("y", 1_000_500_000), moved("x", 9_000_000_000)],
        }
    }

    #[test]
    fn mounts_of_one_export_and_version_are_one() {
        assert_eq!(Dnfs::of(&Rows::default()), None);
        let all = Dnfs::of(&rows()).expect("exports");
        let [v3, pnfs] = &all.exports[..] else { panic!("{all:?}") };
        assert_eq!((v3.mounts, v3.nodes.len(), v3.nodes[0].reads.sent, v3.nodes[0].channels), (2, 1, 40, 2));
        assert_eq!(v3.nodes[0].reads.mean_ns(), Some(400_000.0));
        assert_eq!(pnfs.nodes.iter().map(|it| it.data_server).collect::<Vec<_>>(), [false, true]);
        assert_eq!(
            pnfs.moves.iter().map(|it| (it.files, it.stall_max_ns)).collect::<Vec<_>>(),
            [(2, 1_000_500), (1, 9_000_000)]
        );
        assert!(v3.sentences()[0].contains("4 calls sent again"), "{:?}", v3.sentences());
    }
}
