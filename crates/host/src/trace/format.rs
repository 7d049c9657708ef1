//! How this kernel lays its events out: `events/…/format`, and the decoder that is made of them.

use super::event::{Call, Event, Request, What};
use std::collections::BTreeMap;
use units::Nanos;

/// Flag of `clone`: the child is a thread of the same process.
const CLONE_THREAD: u64 = 0x1_0000;
/// `IOSQE_FIXED_FILE` of a request's flags.
const FIXED_FILE: u64 = 1;

/// Events beside those of system calls: folder and name.
pub(super) const OTHERS: [(&str, &str); 8] = [
    ("io_uring", "io_uring_submit_req"),
    ("io_uring", "io_uring_file_get"),
    ("io_uring", "io_uring_queue_async_work"),
    ("io_uring", "io_uring_complete"),
    ("io_uring", "io_uring_cqring_wait"),
    ("io_uring", "io_uring_local_work_run"),
    ("io_uring", "io_uring_task_work_run"),
    ("task", "task_newtask"),
];

/// Where a number is in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

/// An event as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads `events/…/format`; none when it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok())?;
        let field = |line: &str| {
            let mut parts = line.trim().split(';').map(str::trim);
            let declared = parts.next()?.strip_prefix("field:")?;
            // `char comm[16]`, `struct iocb * * iocbpp`
            let name = declared.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
            let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse::<usize>().ok();
            let (offset, size) = (number("offset:")?, number("size:")?);
            Some((name, Field { offset, size, signed: number("signed:")? == 1 }))
        };
        Some(Self { id, fields: text.lines().filter_map(field).collect() })
    }

    fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }

    /// The arguments of a call, in order.
    fn arguments(&self) -> Vec<Field> {
        let own = |name: &str| !name.starts_with("common_") && name != "__syscall_nr" && name != "nr";
        // io_submit has an argument of that name, as old kernels call the call's number.
        let all = self.fields.iter().filter(|(name, field)| own(name) || name == "nr" && field.offset > 8);
        all.map(|(_, field)| *field).take(6).collect()
    }
}

impl Field {
    /// Its value in an event, sign extended.
    fn of(self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset + self.size)?;
        let mut wide = [if self.signed && bytes.last()? >> 7 == 1 { 0xff } else { 0 }; 8];
        wide.get_mut(..self.size)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(wide))
    }
}

/// What an event means.
#[derive(Debug)]
enum Meaning {
    Enter { call: Call, arguments: Vec<Field> },
    Exit { call: Call, result: Field },
    Submitted { request: (Field, Field), opcode: Field, flags: Option<Field> },
    FileTaken { request: (Field, Field), fd: Field },
    ToWorker { request: (Field, Field) },
    Completed { request: (Field, Field), result: Field },
    WaitBegun,
    WorkRun { count: Field },
    Born { tid: Field, flags: Field },
}

/// Decodes payloads of the events that it was told of.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    meanings: BTreeMap<u16, Meaning>,
}

impl Decoder {
    /// Whether `format` of `folder/name` has everything that is needed; it is decoded from now on.
    pub(super) fn learn(&mut self, name: &str, format: &Format) -> bool {
        let meaning = Self::meaning(name, format);
        let known = meaning.is_some();
        self.meanings.extend(meaning.map(|meaning| (format.id, meaning)));
        known
    }

    fn meaning(name: &str, format: &Format) -> Option<Meaning> {
        let field = |name: &str| format.field(name);
        let request = || Some((field("ctx")?, field("req")?));
        if let Some(call) = name.strip_prefix("sys_enter_") {
            return Some(Meaning::Enter { call: Call::named(call)?, arguments: format.arguments() });
        }
        if let Some(call) = name.strip_prefix("sys_exit_") {
            return Some(Meaning::Exit { call: Call::named(call)?, result: field("ret")? });
        }
        Some(match name {
            "io_uring_submit_req" => {
                Meaning::Submitted { request: request()?, opcode: field("opcode")?, flags: field("flags") }
            }
            "io_uring_file_get" => Meaning::FileTaken { request: request()?, fd: field("fd")? },
            "io_uring_queue_async_work" => Meaning::ToWorker { request: request()? },
            "io_uring_complete" => Meaning::Completed { request: request()?, result: field("res")? },
            "io_uring_cqring_wait" => Meaning::WaitBegun,
            "io_uring_local_work_run" | "io_uring_task_work_run" => {
                Meaning::WorkRun { count: field("count")? }
            }
            "task_newtask" => Meaning::Born { tid: field("pid")?, flags: field("clone_flags")? },
            _ => return None,
        })
    }

    /// One event; none for those that were not asked for.
    pub(super) fn decode(&self, at: u64, payload: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(payload.get(..2)?.try_into().ok()?);
        let tid = u32::from_ne_bytes(payload.get(4..8)?.try_into().ok()?);
        let request = |(ring, address): &(Field, Field)| {
            Some(Request { ring: ring.of(payload)?, address: address.of(payload)? })
        };
        let what = match self.meanings.get(&id)? {
            Meaning::Enter { call, arguments } => {
                let mut values = [0; 6];
                for (value, field) in values.iter_mut().zip(arguments) {
                    *value = field.of(payload)?;
                }
                What::Enter { call: *call, arguments: values }
            }
            Meaning::Exit { call, result } => What::Exit { call: *call, result: result.of(payload)? as i64 },
            Meaning::Submitted { request: of, opcode, flags } => What::Submitted {
                request: request(of)?,
                opcode: opcode.of(payload)? as u8,
                registered: flags.and_then(|flags| flags.of(payload)).unwrap_or(0) & FIXED_FILE != 0,
            },
            Meaning::FileTaken { request: of, fd } => {
                What::FileTaken { request: request(of)?, fd: fd.of(payload)? as i32 }
            }
            Meaning::ToWorker { request: of } => What::ToWorker { request: request(of)? },
            Meaning::Completed { request: of, result } => {
                What::Completed { request: request(of)?, result: result.of(payload)? as i32 }
            }
            Meaning::WaitBegun => What::WaitBegun,
            Meaning::WorkRun { count } => What::WorkRun { count: count.of(payload)? as u32 },
            Meaning::Born { tid, flags } => {
                What::Born { tid: tid.of(payload)? as u32, is_thread: flags.of(payload)? & CLONE_THREAD != 0 }
            }
        };
        Some(Event { at: Nanos(at), tid, what })
    }
}
