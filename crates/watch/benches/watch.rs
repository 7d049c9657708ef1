//! Eight hours of watching, simulated: memory below 300 MiB and drawing below 2 % of a CPU, on a busy server and on one in trouble.
#![forbid(unsafe_code)]

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::time::Instant;
use units::{Nanos, Rng, Seed};
use waits::Grade;
use watch::board::Board;
use watch::class;
use watch::draw::{Plan, Scene, Subject, Theme, Times, draw};
use watch::history::{Active, Bounds, Device, History, Look, Work};
use watch::view::{Key, View};
use watch::web;

/// Seconds of a day at work; a look in each.
const LOOKS: u64 = 8 * 3600;
const MEMORY_MAX_MIB: f64 = 300.0;
const CPU_MAX_PERCENT: f64 = 2.0;

/// A server.
struct Case {
    name: &'static str,
    /// Sessions at work at a time.
    active: u32,
    /// Sessions in all; each look shows others of them.
    sessions: u32,
    /// Different statements.
    statements: u64,
}

const CASES: [Case; 3] = [
    Case { name: "usual: 10 active of 100, 200 statements", active: 10, sessions: 100, statements: 200 },
    Case {
        name: "busy: 100 active of 1,000, 5,000 statements",
        active: 100,
        sessions: 1_000,
        statements: 5_000,
    },
    Case {
        name: "in trouble: 1,000 active of 1,000,000, statements without end",
        active: 1_000,
        sessions: 1_000_000,
        statements: 1 << 40,
    },
];

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let looks = if full { LOOKS } else { 60 };
    if full {
        println!(
            "8 hours at 1 s: memory of the process, CPU of keeping and drawing (200 × 60, window of 8 h, background on)\n"
        );
    }
    let mut failed = false;
    for case in CASES {
        let (memory, per_look, json) = run(&case, looks);
        let percent = per_look * 100.0;
        let held = memory < MEMORY_MAX_MIB && percent < CPU_MAX_PERCENT;
        failed |= full && !held;
        if full {
            let word = if held { "holds" } else { "FAILS" };
            println!(
                "{:<66} {memory:>6.0} MiB  {percent:>5.2} % of a CPU  page {json:>4} KiB  {word}",
                case.name
            );
        }
    }
    assert!(!failed, "beyond {MEMORY_MAX_MIB} MiB or {CPU_MAX_PERCENT} %");
}

/// MiB of this process at the end, CPU seconds for a look, and the KiB that a page gets each time.
fn run(case: &Case, looks: u64) -> (f64, f64, usize) {
    let mut history = History::new(Bounds::default());
    let mut view = View::of_length(Nanos::secs(LOOKS as f64));
    let area = Rect::new(0, 0, 200, 60);
    let subject = Subject {
        title: "PostgreSQL".into(),
        state: "live".into(),
        trouble: false,
        cpus: Some(16.0),
        no_devices: String::new(),
        times: Times::Since,
        doubts: Vec::new(),
    };
    let mut rng = Rng::new(Seed(1));
    let (mut spent, mut json) = (0.0, 0);
    for t in 1..=looks {
        let look = look(case, t, &mut rng);
        let began = Instant::now();
        history.add(&look);
        let board = Board::of(&history, &view, Plan::columns(area), look.t);
        if t == 1 {
            view.press(Key::Letter('b'), &board);
        }
        let mut buffer = Buffer::empty(area);
        draw(
            &Scene { subject: &subject, history: &history, view: &view, board: &board, theme: Theme::Colour },
            &mut buffer,
        );
        spent += began.elapsed().as_secs_f64();
        if t == looks {
            json = web::board(&board, &subject, &history, &view).len() >> 10;
        }
    }
    (resident_mib(), spent / looks as f64, json)
}

fn look(case: &Case, t: u64, rng: &mut Rng) -> Look {
    let active = (0..case.active).map(|_| {
        let session = rng.below(u64::from(case.sessions)) as u32;
        let class = class::ALL[rng.below(class::COUNT as u64) as usize];
        let statement = rng.below(case.statements);
        Active {
            class,
            event: format!("event {}", rng.below(60)),
            native: Some(format!("native {}", rng.below(60))),
            grade: Some(Grade::Approximate),
            foreground: !session.is_multiple_of(10),
            session,
            program: format!("application {}", session % 40),
            statement: Some(format!(
                "select o.id, o.customer, o.total from orders o join customers c on c.id = o.customer where c.region_{statement} = ? order by 1"
            )),
            file: session.is_multiple_of(3).then(|| format!("/data/base/5/{}", rng.below(500))),
        }
    });
    let work = Work {
        reads: 900.0,
        writes: 300.0,
        megabytes: 12.0,
        read_seconds: 0.4,
        write_seconds: 0.3,
        in_flight_seconds: 0.7,
    };
    let devices = (0..8).map(|n| Device { name: format!("nvme{n}n1"), work });
    Look {
        t: Nanos::secs(t as f64),
        weight: Nanos::secs(1.0),
        cost: Nanos::millis(2),
        active: active.collect(),
        devices: devices.collect(),
    }
}

/// What the kernel says that this process has in memory.
fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kib: f64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(f64::NAN);
    kib / 1024.0
}
