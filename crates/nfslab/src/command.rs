//! Commands to a cluster, one a line.

use crate::cluster::{Cluster, DataServer, Delegations, LabError, Layouts, WrongNode, name};
use crate::moves::Tell;
use nfs::Status;
use std::fmt::Write;
use std::str::FromStr;
use units::Nanos;

/// What can be typed.
pub const HELP: &str = "move PATH NODES [recall|notify|flags|silent]   a volume or file goes to nodes, in the order of stripes: move /a B
layouts none|files|dense|flex-v3|flex-v4.1      layouts that are given from now on
wrong-node forward|STATUS                       what a data server does with data that another keeps: wrong-node 10080
cut NODE [PATH], restore NODE [PATH]            connections are broken; taken again: by one path (1 first), or by all
restart NODE                                    everything about clients is forgotten
expire NODE                                     leases of all clients end now
fail NODE STATUS TIMES                          the next transfers fail: fail A 70 5
delay NODE MICROSECONDS                         each transfer takes longer; 0 ends it
lose NODE on|off                                replies are lost
delegate NODE none|given|recalled               OPEN gives a delegation that nobody asked for; recalled: asks for it back at once
show                                            what each node did";

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// [`Cluster::move_to`].
    Move {
        /// What.
        path: String,
        /// To which nodes.
        nodes: Vec<usize>,
        /// Who is told.
        tell: Tell,
    },
    /// [`Cluster::set_layouts`].
    Layouts(Layouts),
    /// [`Cluster::set_wrong_node`].
    WrongNode(WrongNode),
    /// [`Cluster::cut`], or [`Cluster::cut_path`].
    Cut(usize, Option<usize>),
    /// [`Cluster::restore`], or [`Cluster::restore_path`].
    Restore(usize, Option<usize>),
    /// [`Cluster::restart`].
    Restart(usize),
    /// [`Cluster::expire`].
    Expire(usize),
    /// [`Cluster::fail`].
    Fail {
        /// Where.
        node: usize,
        /// With what.
        status: Status,
        /// How often.
        times: u32,
    },
    /// [`Cluster::delay`].
    Delay {
        /// Where.
        node: usize,
        /// How long.
        delay: Nanos,
    },
    /// [`Cluster::lose_replies`].
    Lose {
        /// Where.
        node: usize,
        /// Whether.
        lost: bool,
    },
    /// [`Cluster::delegate`].
    Delegate {
        /// Where.
        node: usize,
        /// What.
        what: Delegations,
    },
    /// Counters of all nodes.
    Show,
    /// What can be typed.
    Help,
}

impl FromStr for Command {
    type Err = LabError;

    fn from_str(line: &str) -> Result<Self, LabError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = || LabError::Command(format!("{line:?} is no command; these are:\n{HELP}"));
        Ok(match words[..] {
            ["move", path, nodes] => {
                Self::Move { path: path.into(), nodes: several(nodes)?, tell: Tell::Recall }
            }
            ["move", path, nodes, tell] => {
                let tell = match tell {
                    "recall" => Tell::Recall,
                    "notify" => Tell::Notify,
                    "flags" => Tell::Flags,
                    "silent" => Tell::Nobody,
                    _ => return Err(wrong()),
                };
                Self::Move { path: path.into(), nodes: several(nodes)?, tell }
            }
            ["layouts", kind] => Self::Layouts(match kind {
                "none" => Layouts::None,
                "files" => Layouts::Files,
                "dense" => Layouts::Dense,
                "flex-v3" => Layouts::Flexible(DataServer::V3),
                "flex-v4.1" => Layouts::Flexible(DataServer::V41),
                _ => return Err(wrong()),
            }),
            ["wrong-node", "forward"] => Self::WrongNode(WrongNode::Forward),
            ["wrong-node", status] => Self::WrongNode(WrongNode::Refuse(Status(number(status)?))),
            ["cut", node] => Self::Cut(one(node)?, None),
            ["cut", node, path] => Self::Cut(one(node)?, Some(nth(path)?)),
            ["restore", node] => Self::Restore(one(node)?, None),
            ["restore", node, path] => Self::Restore(one(node)?, Some(nth(path)?)),
            ["restart", node] => Self::Restart(one(node)?),
            ["expire", node] => Self::Expire(one(node)?),
            ["fail", node, status, times] => {
                Self::Fail { node: one(node)?, status: Status(number(status)?), times: number(times)? }
            }
            ["delay", node, us] => {
                Self::Delay { node: one(node)?, delay: Nanos(u64::from(number(us)?) * 1000) }
            }
            ["lose", node, how @ ("on" | "off")] => Self::Lose { node: one(node)?, lost: how == "on" },
            ["delegate", node, what] => {
                let what = match what {
                    "none" => Delegations::None,
                    "given" => Delegations::Given,
                    "recalled" => Delegations::Recalled,
                    _ => return Err(wrong()),
                };
                Self::Delegate { node: one(node)?, what }
            }
            ["show"] => Self::Show,
            ["help"] => Self::Help,
            _ => return Err(wrong()),
        })
    }
}

fn number(word: &str) -> Result<u32, LabError> {
    word.parse().map_err(|_| LabError::Command(format!("{word:?} is no number")))
}

/// From 1 as typed, from 0 as counted.
fn nth(word: &str) -> Result<usize, LabError> {
    let path = number(word)?.checked_sub(1);
    path.map(|path| path as usize).ok_or_else(|| LabError::Command("the first path is 1".into()))
}

/// A node's letter.
fn one(word: &str) -> Result<usize, LabError> {
    match several(word)?[..] {
        [node] => Ok(node),
        _ => Err(LabError::Command(format!(
            "{word:?} is more than one node; one is a letter, A for the first"
        ))),
    }
}

/// Letters in a row.
fn several(word: &str) -> Result<Vec<usize>, LabError> {
    let index = |letter: char| {
        let upper = letter.to_ascii_uppercase();
        upper.is_ascii_uppercase().then(|| upper as usize - 'A' as usize)
    };
    let nodes: Option<Vec<usize>> = word.chars().map(index).collect();
    nodes.ok_or_else(|| LabError::Command(format!("{word:?} is no node; nodes are letters, A for the first")))
}

impl Cluster {
    /// Carries out a command. Result: what there is to say about it.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn command(&self, command: &Command) -> Result<String, LabError> {
        match command {
            Command::Move { path, nodes, tell } => {
                let moved = self.move_to(path, nodes, *tell)?;
                let late =
                    if moved.revoked { "; layouts that did not come back were taken away" } else { "" };
                return Ok(format!(
                    "moved {} pieces of 64 KiB, told {}, frozen {}{late}",
                    moved.pieces, moved.told, moved.frozen
                ));
            }
            Command::Layouts(layouts) => self.set_layouts(*layouts),
            Command::WrongNode(what) => self.set_wrong_node(*what),
            Command::Cut(node, None) => self.cut(*node)?,
            Command::Cut(node, Some(path)) => self.cut_path(*node, *path)?,
            Command::Restore(node, None) => self.restore(*node)?,
            Command::Restore(node, Some(path)) => self.restore_path(*node, *path)?,
            Command::Restart(node) => self.restart(*node)?,
            Command::Expire(node) => self.expire(*node)?,
            Command::Fail { node, status, times } => self.fail(*node, *status, *times)?,
            Command::Delay { node, delay } => self.delay(*node, *delay)?,
            Command::Lose { node, lost } => self.lose_replies(*node, *lost)?,
            Command::Delegate { node, what } => self.delegate(*node, *what)?,
            Command::Show => return Ok(self.show()),
            Command::Help => return Ok(HELP.into()),
        }
        Ok("done".into())
    }

    /// A table of what each node did.
    pub fn show(&self) -> String {
        let mut text = format!(
            "{:4} {:>20} {:>9} {:>9} {:>8} {:>9} {:>10} {:>10} {:>10}",
            "node", "address", "reads", "writes", "commits", "forwarded", "served", "callbacks", "CPU"
        );
        for node in 0..self.nodes() {
            let it = self.counters(node);
            let address = self.address(node).to_string();
            let _ = write!(
                text,
                "\n{:4} {address:>20} {:>9} {:>9} {:>8} {:>9} {:>10} {:>10} {:>10}",
                name(node),
                it.reads,
                it.writes,
                it.commits,
                it.forwarded,
                it.served,
                it.callbacks,
                it.cpu.to_string()
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands() {
        let move_to = |nodes: &[usize], tell| Command::Move { path: "/a".into(), nodes: nodes.into(), tell };
        for (line, expected) in [
            ("move /a B", move_to(&[1], Tell::Recall)),
            ("move /a BA silent", move_to(&[1, 0], Tell::Nobody)),
            (" move /a b notify ", move_to(&[1], Tell::Notify)),
            ("fail A 70 5", Command::Fail { node: 0, status: Status::STALE, times: 5 }),
            ("delay C 250", Command::Delay { node: 2, delay: Nanos(250_000) }),
            ("wrong-node 10080", Command::WrongNode(WrongNode::Refuse(Status::PNFS_NO_LAYOUT))),
            ("cut A 2", Command::Cut(0, Some(1))),
            ("restore b", Command::Restore(1, None)),
            ("delegate B recalled", Command::Delegate { node: 1, what: Delegations::Recalled }),
            ("layouts flex-v3", Command::Layouts(Layouts::Flexible(DataServer::V3))),
        ] {
            assert_eq!(line.parse::<Command>().expect(line), expected);
        }
        for line in ["", "move /a", "move /a 7", "fail A x 5", "cut AB", "cut A 0", "move /a B loudly"] {
            assert!(line.parse::<Command>().is_err(), "{line}");
        }
    }
}
