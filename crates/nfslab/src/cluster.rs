//! The nodes together: how they are started, and how a read or write comes to the node that keeps its data.

use crate::counters::NodeCounters;
use crate::node::{Fault, Node};
use crate::store::{Budget, PIECE_BYTES, lock};
use crate::tree::Tree;
use nfs::{Path, Status, Target, Version};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use thiserror::Error;
use units::Nanos;

/// How long ports are looked for that are free on all addresses.
const PORT_TRIES: u32 = 50;
/// 127.0.0.1 and on.
const NODES_MAX: usize = 32;
/// As many as a client takes.
const PATHS_MAX: usize = 4;

/// Which layouts the nodes give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts {
    /// None: every transfer goes to the node that was mounted.
    None,
    /// Files: the nodes that keep data are asked in v4.1. RFC 8881, 13.
    Files,
    /// Files, of which each node has its stripes without gaps between them; the pattern begins with the second stripe. RFC 8881, 13.4.4.
    Dense,
    /// Flexible files. RFC 8435.
    Flexible(DataServer),
}

/// How data is asked for in flexible files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataServer {
    /// In v3.
    V3,
    /// In v4.1.
    V41,
}

/// What a node does with a request for data that another keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongNode {
    /// Passes it on: right, and it costs both of them.
    Forward,
    /// Refuses it with this status, where the client came by a layout; who came by the mount is always served.
    Refuse(Status),
}

/// What a node does when a file is opened by somebody who wants no delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delegations {
    /// It gives none.
    None,
    /// It gives one all the same, and recalls it when somebody else opens the file.
    Given,
    /// It gives one, recalls it at once, and takes it back only then: CB_RECALL may be there before the reply to OPEN.
    Recalled,
}

/// What a cluster is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// How many nodes, 1 to 32: 127.0.0.1, 127.0.0.2 and on.
    pub nodes: usize,
    /// Addresses of each node, 1 to 4: of the first 127.0.0.1, 127.0.1.1, 127.0.2.1, 127.0.3.1.
    pub paths: usize,
    /// Port of all of them; 0: one that is free.
    pub port: u16,
    /// Directories in the root, each with the nodes that keep its data, in the order of its stripes.
    pub volumes: Vec<(String, Vec<usize>)>,
    /// Bytes in a row on one node; a multiple of 64 KiB.
    pub stripe_bytes: u32,
    /// Which layouts are given.
    pub layouts: Layouts,
    /// What becomes of a request at the wrong node.
    pub wrong_node: WrongNode,
    /// How long a silent client is remembered.
    pub lease_seconds: u32,
    /// Most memory for data, bytes.
    pub bytes_max: u64,
    /// Whether a way back to a client is tried as soon as it is there (CB_NULL), as Linux and Ganesha do.
    pub probe: bool,
}

impl Default for ClusterOptions {
    /// Two nodes A and B, volumes `/a` on A, `/b` on B and `/striped` on both, layouts of files, up to 4 GiB.
    fn default() -> Self {
        let volume = |name: &str, nodes: &[usize]| (name.to_owned(), nodes.to_vec());
        Self {
            nodes: 2,
            paths: 1,
            port: 0,
            volumes: vec![volume("a", &[0]), volume("b", &[1]), volume("striped", &[0, 1])],
            stripe_bytes: PIECE_BYTES as u32,
            layouts: Layouts::Files,
            wrong_node: WrongNode::Forward,
            lease_seconds: 90,
            bytes_max: 4 << 30,
            probe: true,
        }
    }
}

/// What a cluster cannot do.
#[derive(Debug, Error)]
pub enum LabError {
    /// Options that make no cluster.
    #[error("{0}")]
    Options(String),
    /// The machine refuses an address or a thread.
    #[error("{what}: {error}; are the addresses 127.0.0.1 and on free at this port (`ss -ltn`)?")]
    Machine {
        /// What was wanted.
        what: String,
        /// What was seen.
        error: std::io::Error,
    },
    /// There is no such file or directory.
    #[error("{path}: {status}; paths begin at the root, for example /a/file")]
    Path {
        /// Which.
        path: String,
        /// Why not.
        status: Status,
    },
    /// There is no such node.
    #[error("node {node} does not exist; nodes are named A to {last}")]
    Node {
        /// Its index.
        node: usize,
        /// Name of the last one.
        last: char,
    },
    /// A line that is no command.
    #[error("{0}")]
    Command(String),
}

/// A cluster that runs until it is dropped.
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
}

/// What all its threads share.
pub(crate) struct Shared {
    pub(crate) options: ClusterOptions,
    pub(crate) nodes: Vec<Node>,
    pub(crate) tree: Tree,
    pub(crate) budget: Arc<Budget>,
    pub(crate) layouts: RwLock<Layouts>,
    pub(crate) wrong_node: RwLock<WrongNode>,
    /// Layouts that clients hold, by the number in their handles.
    pub(crate) grants: Mutex<HashMap<u64, Weak<u64>>>,
    pub(crate) next_grant: AtomicU64,
    /// One move at a time.
    pub(crate) moving: Mutex<()>,
}

impl Cluster {
    /// Starts its nodes.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn start(options: ClusterOptions) -> Result<Self, LabError> {
        check(&options)?;
        let (listeners, port) = listen(&options)?;
        let cluster = Self::unserved(options, port)?;
        for (at, listener) in listeners.into_iter().enumerate() {
            let (node, path) = (at / cluster.shared.options.paths, at % cluster.shared.options.paths);
            cluster.shared.nodes[node].serve(&cluster.shared, path, listener)?;
        }
        Ok(cluster)
    }

    /// Its nodes, where nobody listens yet.
    pub(crate) fn unserved(options: ClusterOptions, port: u16) -> Result<Self, LabError> {
        let budget = Arc::new(Budget { bytes_max: options.bytes_max, used: 0.into() });
        let nodes = (0..options.nodes)
            .map(|index| {
                let paths = (0..options.paths).map(|path| SocketAddr::new(address(index, path), port));
                Node::new(index, &paths.collect::<Vec<_>>(), budget.clone())
            })
            .collect();
        let tree = Tree::new(vec![0]);
        for (name, nodes) in &options.volumes {
            let made = tree.create(crate::tree::ROOT, name, 0o777, true);
            let (directory, _) = made.map_err(|status| LabError::Path { path: name.clone(), status })?;
            directory.set_device(tree.new_device(nodes.clone()));
        }
        let shared = Arc::new(Shared {
            layouts: RwLock::new(options.layouts),
            wrong_node: RwLock::new(options.wrong_node),
            nodes,
            tree,
            budget,
            grants: Mutex::default(),
            next_grant: 1.into(),
            moving: Mutex::default(),
            options,
        });
        Ok(Self { shared })
    }

    /// How many nodes.
    pub fn nodes(&self) -> usize {
        self.shared.nodes.len()
    }

    /// Where node `node` listens.
    ///
    /// # Panics
    /// When there is no such node: a bug.
    pub fn address(&self, node: usize) -> SocketAddr {
        self.shared.nodes[node].address
    }

    /// How to mount directory `export` by node `node`, by all of its paths.
    ///
    /// # Panics
    /// When there is no such node: a bug.
    pub fn target(&self, node: usize, export: &str, version: Version) -> Target {
        let address = self.address(node);
        Target {
            server: name(node).to_string(),
            paths: self.shared.nodes[node]
                .addresses()
                .map(|address| Path { remote: address.ip(), local: None })
                .collect(),
            port: address.port(),
            mount_port: Some(address.port()),
            export: export.to_owned(),
            version,
        }
    }

    /// What node `node` did.
    ///
    /// # Panics
    /// When there is no such node: a bug.
    pub fn counters(&self, node: usize) -> NodeCounters {
        self.shared.nodes[node].counters.read()
    }

    /// Gives other layouts from now on; those that were given stay.
    pub fn set_layouts(&self, layouts: Layouts) {
        *self.shared.layouts.write().unwrap_or_else(std::sync::PoisonError::into_inner) = layouts;
    }

    /// Changes what becomes of requests at the wrong node.
    pub fn set_wrong_node(&self, what: WrongNode) {
        *self.shared.wrong_node.write().unwrap_or_else(std::sync::PoisonError::into_inner) = what;
    }

    /// The next `times` transfers at node `node` fail with `status`.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn fail(&self, node: usize, status: Status, times: u32) -> Result<(), LabError> {
        self.node(node)?.set_fault(|fault| *fault = Fault { status, times, ..*fault });
        Ok(())
    }

    /// Each transfer at node `node` takes at least so long from now on.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn delay(&self, node: usize, delay: Nanos) -> Result<(), LabError> {
        self.node(node)?.set_fault(|fault| fault.delay = delay);
        Ok(())
    }

    /// Breaks all connections of node `node`, and refuses new ones.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn cut(&self, node: usize) -> Result<(), LabError> {
        self.node(node)?.cut();
        Ok(())
    }

    /// Takes connections again.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn restore(&self, node: usize) -> Result<(), LabError> {
        self.node(node)?.restore(&self.shared)
    }

    /// Breaks the connections that came by path `path` of node `node`, from 0, and refuses new ones there.
    ///
    /// # Errors
    /// [`LabError::Node`], [`LabError::Options`].
    pub fn cut_path(&self, node: usize, path: usize) -> Result<(), LabError> {
        self.has_path(path)?;
        self.node(node)?.cut_path(path);
        Ok(())
    }

    /// Takes connections there again.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn restore_path(&self, node: usize, path: usize) -> Result<(), LabError> {
        self.has_path(path)?;
        self.node(node)?.restore_path(&self.shared, path)
    }

    fn has_path(&self, path: usize) -> Result<(), LabError> {
        let paths = self.shared.options.paths;
        if path < paths {
            return Ok(());
        }
        Err(LabError::Options(format!("there is no path {}; each node has {paths}", path + 1)))
    }

    /// Restarts node `node`: connections and all that it remembers of clients are gone, and so are
    /// writes that were not committed; other data stays.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn restart(&self, node: usize) -> Result<(), LabError> {
        let it = self.node(node)?;
        it.cut();
        it.forget();
        it.restore(&self.shared)
    }

    /// Ends the leases of all clients of node `node` now.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn expire(&self, node: usize) -> Result<(), LabError> {
        self.node(node)?.v4.expire_all();
        Ok(())
    }

    /// Takes replies of node `node` for lost, while `lost`: calls are carried out and not answered.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn lose_replies(&self, node: usize, lost: bool) -> Result<(), LabError> {
        self.node(node)?.mute.store(lost, Ordering::Release);
        Ok(())
    }

    /// What node `node` delegates from now on.
    ///
    /// # Errors
    /// [`LabError::Node`].
    pub fn delegate(&self, node: usize, what: Delegations) -> Result<(), LabError> {
        *lock(&self.node(node)?.delegations) = what;
        Ok(())
    }

    pub(crate) fn node(&self, node: usize) -> Result<&Node, LabError> {
        let last = name(self.shared.nodes.len() - 1);
        self.shared.nodes.get(node).ok_or(LabError::Node { node, last })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.nodes.iter().for_each(Node::cut);
    }
}

/// A for the first node, and on.
pub(crate) fn name(node: usize) -> char {
    char::from_u32('A' as u32 + node as u32).unwrap_or('?')
}

fn address(node: usize, path: usize) -> IpAddr {
    Ipv4Addr::new(127, 0, path as u8, node as u8 + 1).into()
}

fn check(options: &ClusterOptions) -> Result<(), LabError> {
    let wrong = |text: String| Err(LabError::Options(text));
    if !(1..=NODES_MAX).contains(&options.nodes) {
        return wrong(format!("{} nodes; 1 to {NODES_MAX} can be had", options.nodes));
    }
    if !(1..=PATHS_MAX).contains(&options.paths) {
        return wrong(format!("{} paths; 1 to {PATHS_MAX} can be had", options.paths));
    }
    if options.stripe_bytes == 0 || !u64::from(options.stripe_bytes).is_multiple_of(PIECE_BYTES) {
        return wrong(format!("stripes of {} bytes; multiples of 65536 can be had", options.stripe_bytes));
    }
    for (name, nodes) in &options.volumes {
        if nodes.is_empty() || nodes.iter().any(|&node| node >= options.nodes) {
            return wrong(format!("volume {name} on nodes {nodes:?} of {}", options.nodes));
        }
    }
    Ok(())
}

/// A listener for each path of each node, all at the same port.
fn listen(options: &ClusterOptions) -> Result<(Vec<TcpListener>, u16), LabError> {
    let mut tries = 0;
    loop {
        let result: std::io::Result<_> = (|| {
            let first = TcpListener::bind((address(0, 0), options.port))?;
            let port = first.local_addr()?.port();
            let mut listeners = vec![first];
            for at in 1..options.nodes * options.paths {
                let address = address(at / options.paths, at % options.paths);
                listeners.push(TcpListener::bind((address, port))?);
            }
            Ok((listeners, port))
        })();
        tries += 1;
        match result {
            Ok(found) => return Ok(found),
            Err(_) if options.port == 0 && tries < PORT_TRIES => {}
            Err(error) => {
                return Err(LabError::Machine { what: format!("listening at port {}", options.port), error });
            }
        }
    }
}
