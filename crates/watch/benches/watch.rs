//! Eight hours of watching, simulated: memory below 300 MiB, and below 2 % of a CPU for the terminal as for a page, on a usual server, a
//! busy one, and one in trouble.
#![forbid(unsafe_code)]

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use std::hint::black_box;
use units::{Nanos, Rng, Seed};
use waits::Grade;
use watch::board::Boards;
use watch::class;
use watch::draw::{Plan, Scene, Subject, Theme, Times, draw};
use watch::history::{Active, Bounds, Device, History, Look, Work};
use watch::view::{Key, View};
use watch::web;

/// Seconds of a day at work; a look in each.
const LOOKS: u64 = 8 * 3600;
/// All are kept. Of each hour the last seconds are also shown, look by look: enough to say what showing costs, and a tenth of the time.
const HOUR: u64 = 3600;
const SHOWN: u64 = 360;
/// Looks that are made up at a time.
const BATCH: u64 = 10;
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
    let looks = if full { LOOKS } else { 6 * BATCH };
    if full {
        println!(
            "8 hours at a look a second, shown each second over a window of 8 hours with background: most memory of\n\
             the process, and share of a CPU\n"
        );
    }
    let mut failed = false;
    for case in CASES {
        let mut line = format!("{:<66}", case.name);
        for front in [Front::Terminal, Front::Page] {
            let used = run(&case, &front, looks);
            let percent = used.cpu_seconds / used.looks as f64 * 100.0;
            failed |= used.memory_mib >= MEMORY_MAX_MIB || percent >= CPU_MAX_PERCENT;
            line += &format!("  {front:?} {:>3.0} MiB {percent:>4.2} %", used.memory_mib);
        }
        if full {
            println!("{line}");
        }
    }
    assert!(!(full && failed), "beyond {MEMORY_MAX_MIB} MiB or {CPU_MAX_PERCENT} % of a CPU");
}

/// Where it is shown.
#[derive(Debug)]
enum Front {
    /// 200 × 60.
    Terminal,
    /// Gets each board as text.
    Page,
}

impl Front {
    fn show(&self, boards: &mut Boards, history: &History, view: &View, now: Nanos) {
        let subject = &Subject {
            title: "PostgreSQL".into(),
            state: "live".into(),
            trouble: false,
            cpus: Some(16.0),
            no_devices: String::new(),
            times: Times::Since,
            doubts: Vec::new(),
        };
        match self {
            Self::Terminal => {
                let area = Rect::new(0, 0, 200, 60);
                let board = &boards.board(history, view, Plan::columns(area), now);
                let mut buffer = Buffer::empty(area);
                draw(&Scene { subject, history, view, board, theme: Theme::Colour }, &mut buffer);
            }
            Self::Page => {
                let board = boards.board(history, view, web::COLUMNS, now);
                black_box(web::board(&board, subject, history, view));
            }
        }
    }
}

/// What a case took.
#[derive(Default)]
struct Used {
    /// Most that this process had at a time.
    memory_mib: f64,
    /// Of keeping and showing so many looks, all together.
    cpu_seconds: f64,
    looks: u64,
}

fn run(case: &Case, front: &Front, looks: u64) -> Used {
    let mut history = History::new(Bounds::default());
    let mut boards = Boards::default();
    let mut view = View::of_length(Nanos::secs(LOOKS as f64));
    let first = boards.board(&history, &view, 1, Nanos(0));
    view.press(Key::Letter('b'), &first);
    let mut rng = Rng::new(Seed(1));
    let mut used = Used::default();
    for first in (0..looks).step_by(BATCH as usize) {
        let batch: Vec<Look> = (first + 1..=first + BATCH).map(|t| look(case, t, &mut rng)).collect();
        let shown_for = (first % HOUR + SHOWN).checked_sub(HOUR.min(looks));
        let began = cpu_seconds();
        for look in &batch {
            history.add(look);
            if shown_for.is_some() {
                front.show(&mut boards, &history, &view, look.t);
            }
        }
        // The first ones catch up with the hour.
        if shown_for.is_some_and(|seconds| seconds > 0) {
            used.cpu_seconds += cpu_seconds() - began;
            used.looks += BATCH;
        }
        used.memory_mib = used.memory_mib.max(resident_mib());
    }
    used
}

/// CPU that this thread has had, as the scheduler counts it: by its ticks, so only sums of many readings mean something.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
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
