//! Pages that the kernel gave, and threads of our own that are watched.

use super::*;
use crate::files;
use format::{Decoder, Format};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// A page of `trace_pipe_raw` (kernel 6.18): a shell that lists itself, becomes `dd bs=8k oflag=direct,dsync`,
/// is loaded, and writes; the page ends after four blocks.
const PAGE: &[u8] = include_bytes!("samples/dd.page");

fn format_of(id: u16, fields: &str) -> Format {
    let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let number = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n";
    Format::parse(&format!("name: x\nID: {id}\nformat:\n{common}{number}{fields}\nprint fmt: \"\"\n"))
        .unwrap()
}

fn decoder() -> Decoder {
    let fields = "\tfield:unsigned int fd;\toffset:16;\tsize:8;\tsigned:0;\n\
                  \tfield:const char * buf;\toffset:24;\tsize:8;\tsigned:0;\n\
                  \tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    assert!(decoder.learn("sys_enter_write", &format_of(840, fields)));
    assert!(
        decoder
            .learn("sys_exit_write", &format_of(839, "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n"))
    );
    assert!(
        !decoder
            .learn("sys_exit_getpid", &format_of(1, "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n"))
    );
    decoder
}

#[test]
fn a_page_of_the_kernel() {
    let decoder = decoder();
    let (mut events, mut times, mut all) = (Vec::new(), Vec::new(), 0);
    let summary = page::entries(PAGE, &mut |at, payload| {
        all += 1;
        times.push(at);
        events.extend(decoder.decode(at, payload));
    });
    assert_eq!(summary.lost, 0);
    assert!(all > events.len() && times.is_sorted(), "{all}");
    let writes: Vec<(i64, u64)> = events
        .windows(2)
        .filter_map(|pair| match (&pair[0].what, &pair[1].what) {
            (What::Enter { arguments, .. }, What::Exit { result, .. }) if arguments[0] == 1 => {
                Some((*result, (pair[1].at - pair[0].at).0 / 1000))
            }
            _ => None,
        })
        .collect();
    // As the kernel prints the same page: the second write from 342538 to 342970 µs.
    assert_eq!(writes, [(5, 314), (8192, 431), (8192, 1061), (8192, 4044), (8192, 3946)]);
}

#[test]
fn pages_that_are_torn_say_less_and_never_lie() {
    let decoder = decoder();
    let count = |page: &[u8]| {
        let mut events = 0;
        page::entries(page, &mut |at, payload| events += usize::from(decoder.decode(at, payload).is_some()));
        events
    };
    let whole = count(PAGE);
    for length in 0..PAGE.len() {
        assert!(count(&PAGE[..length]) <= whole);
    }
    let mut lossy = PAGE.to_vec();
    lossy[11] |= 0x80;
    assert_eq!(page::entries(&lossy, &mut |_, _| {}).lost, 1);
}

#[test]
fn reads_what_a_kernel_says_of_an_event() {
    let fields = "\tfield:aio_context_t ctx_id;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:long nr;\toffset:24;\tsize:8;\tsigned:0;\n\
                  \tfield:struct iocb * * iocbpp;\toffset:32;\tsize:8;\tsigned:0;\n";
    let mut decoder = Decoder::default();
    assert!(decoder.learn("sys_enter_io_submit", &format_of(1099, fields)));
    let mut payload = vec![0; 40];
    payload[..2].copy_from_slice(&1099u16.to_ne_bytes());
    payload[4..8].copy_from_slice(&77u32.to_ne_bytes());
    for (at, value) in [(16, 0x7f00u64), (24, 58), (32, 0x7ffe)] {
        payload[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    let arguments = [0x7f00, 58, 0x7ffe, 0, 0, 0];
    let what = What::Enter { call: Call::IoSubmit, arguments };
    assert_eq!(decoder.decode(5, &payload), Some(Event { at: Nanos(5), tid: 77, what }));
    assert_eq!(decoder.decode(5, &payload[..20]), None);
    assert_eq!(Format::parse("no format"), None);
}

/// Needs root and tracefs, as the tests of loop devices do.
#[test]
fn sees_every_call_of_a_thread_and_leaves_nothing() {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    let mut tracer = match Tracer::open(&mut journal) {
        Ok(tracer) => tracer,
        Err(error) => {
            assert!(!files::is_root(), "root and no tracer: {error}");
            return;
        }
    };
    let instance = std::fs::read_to_string(journal.path()).unwrap();
    assert!(instance.contains("remove_trace_instance"), "{instance}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (told, tid) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let at = path.clone();
    let worker = std::thread::spawn(move || {
        told.send(own_thread()).unwrap();
        wait.recv().unwrap();
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::DSYNC.bits() as i32)
            .open(at)
            .unwrap();
        (0..1000).for_each(|_| file.write_all(&[7; 512]).unwrap());
        file.sync_data().unwrap();
    });
    let tid = tid.recv().unwrap();
    tracer.follow_threads(&[tid]).unwrap();
    go.send(()).unwrap();
    worker.join().unwrap();
    let mut events = tracer.drain().unwrap();
    events.extend(tracer.stop().unwrap());
    let lost = tracer.lost();
    assert_eq!(lost.events, 0);
    assert!(events.iter().all(|event| event.tid == tid), "only the thread that was named");
    let exits = |wanted: Call, value: i64| {
        let is = |event: &&Event| matches!(event.what, What::Exit { call, result } if call == wanted && result == value);
        events.iter().filter(is).count()
    };
    assert_eq!((exits(Call::Write, 512), exits(Call::Fdatasync, 0)), (1000, 1));
    let opened = |event: &Event| matches!(event.what, What::Enter { call: Call::Openat, arguments } if arguments[2] & 0o10000 != 0);
    assert_eq!(events.iter().filter(|event| opened(event)).count(), 1);
    tracer.remove(&mut journal).unwrap();
    let name = format!("redoubt-{}", journal.id());
    assert!(!files::names("/sys/kernel/tracing/instances").contains(&name));
}

#[test]
fn a_command_waits_until_it_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    let waiting = Waiting::start(&["touch".into(), path.clone().into()]).unwrap();
    assert_eq!(process::state(waiting.process()), Some('T'));
    assert!(!path.exists());
    assert!(waiting.go().unwrap().wait().unwrap().success());
    assert!(path.exists());
}
