//! Captures on loopback, and what tshark says of them.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};
use tempfile::TempDir;
use units::{Nanos, clock};

const INSTALL: &str = "type: sudo apt install tshark";
/// What is asked of each frame; a list with bars where it has several messages.
const FIELDS: [&str; 11] = [
    "tcp.dstport",
    "nfs.procedure_v3",
    "nfs.opcode",
    "nfs.cb.operation",
    "mount.procedure_v3",
    "portmap.procedure_v2",
    "_ws.expert.group",
    "_ws.expert.message",
    "frame.number",
    "rpc.program",
    "rpc.procedure",
];
/// The program of callbacks, as our client calls it. tshark has no field for its procedures.
const CALLBACKS: &str = "1073741824";
/// `PI_SEQUENCE`: connections begin and end.
const OF_TCP: &str = "33554432";
/// Remarks on replies that are as they have to be: a state that means nothing any more after CLOSE (RFC 7530, 16.2.5), and a READDIR that was asked for names alone.
const AS_ASKED: [&str; 2] = [
    "State ID deprecated in CLOSE responses",
    "Per RFCs 3530 and 5661 an attribute mask is required but was not provided",
];

/// Whose operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    V3,
    V4,
    Callback,
    Mount,
    Portmap,
    /// Procedures of callbacks.
    Back,
}

impl Kind {
    fn is_called_by_servers(self) -> bool {
        matches!(self, Self::Callback | Self::Back)
    }
}

/// Operations in frames to a server, and in frames from it.
#[derive(Default)]
pub struct Seen {
    there: [BTreeSet<u32>; 6],
    back: [BTreeSet<u32>; 6],
}

impl Seen {
    pub fn calls(&self, kind: Kind) -> &BTreeSet<u32> {
        if kind.is_called_by_servers() { &self.back[kind as usize] } else { &self.there[kind as usize] }
    }

    pub fn replies(&self, kind: Kind) -> &BTreeSet<u32> {
        if kind.is_called_by_servers() { &self.there[kind as usize] } else { &self.back[kind as usize] }
    }
}

/// A capture of everything on loopback that goes on.
pub struct Capture {
    dumpcap: Child,
    said: BufReader<ChildStderr>,
    folder: TempDir,
}

impl Capture {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut dumpcap = Command::new("dumpcap")
            .args(["-q", "-i", "lo", "-B", "64", "-s", "0", "-w"])
            .arg(folder.path().join("frames"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("dumpcap: {error}; {INSTALL}"));
        let mut said = BufReader::new(dumpcap.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.starts_with("File: ") {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "dumpcap ended; {INSTALL}");
        }
        Self { dumpcap, said, folder }
    }

    /// Ends it; `ports`: where servers are.
    pub fn end(self, ports: &[u16]) -> Seen {
        let (seen, objections) = self.judged(ports);
        assert!(objections.is_empty(), "tshark objects:\n{}", objections.join("\n"));
        seen
    }

    /// The same, with the frames that tshark objects to.
    pub fn judged(mut self, ports: &[u16]) -> (Seen, Vec<String>) {
        // What is still in the kernel's buffer.
        clock::sleep(Nanos::millis(1_200));
        let pid = Pid::from_child(&self.dumpcap);
        kill_process(pid, Signal::INT).expect("it runs");
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("text");
        assert!(self.dumpcap.wait().expect("it ran").success(), "{said}");
        assert!(said.contains("/0 (pcap:0/"), "frames are missing: {said}");
        let text = self.dissected(ports);
        let (mut seen, mut objections) = (Seen::default(), Vec::new());
        for line in text.lines() {
            let fields: Vec<&str> = line.split(';').collect();
            assert_eq!(fields.len(), FIELDS.len(), "{line}");
            let remarks = fields[6].split('|').zip(fields[7].split('|'));
            let objects = |(group, message): (&str, &str)| {
                !group.is_empty()
                    && group != OF_TCP
                    && !AS_ASKED.iter().any(|remark| message.starts_with(remark))
            };
            if remarks.into_iter().any(objects) {
                objections.push(line.to_owned());
            }
            let Ok(port) = fields[0].parse::<u16>() else { continue };
            let to_server = ports.contains(&port) || port == nfs::portmap::PORT;
            let side = if to_server { &mut seen.there } else { &mut seen.back };
            for (kind, list) in fields[1..6].iter().enumerate() {
                side[kind].extend(list.split('|').filter_map(|number| number.parse::<u32>().ok()));
            }
            let calls = fields[9].split('|').zip(fields[10].split('|'));
            let of_callbacks = calls.filter(|(program, _)| *program == CALLBACKS);
            side[Kind::Back as usize]
                .extend(of_callbacks.filter_map(|(_, number)| number.parse::<u32>().ok()));
        }
        (seen, objections)
    }

    /// [`FIELDS`] of each frame.
    fn dissected(&self, ports: &[u16]) -> String {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(self.folder.path().join("frames")).args([
            "-n",
            "-T",
            "fields",
            "-E",
            "separator=;",
            "-E",
            "aggregator=|",
        ]);
        tshark.args(["-o", "tcp.desegment_tcp_streams:TRUE", "-o", "rpc.desegment_rpc_over_tcp:TRUE"]);
        tshark.args(["-o", "rpc.defragment_rpc_over_tcp:TRUE"]);
        for port in ports {
            tshark.arg("-d").arg(format!("tcp.port=={port},rpc"));
        }
        FIELDS.iter().for_each(|field| _ = tshark.args(["-e", field]));
        let output = tshark.output().unwrap_or_else(|error| panic!("tshark: {error}; {INSTALL}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
