//! `redoubt cases`

use lab::compare::{Case, TargetKind};

/// The questions beside those of `compare`: name, question, command.
const OTHERS: [(&str, &str, &str); 8] = [
    (
        "one case by itself",
        "What does the database see of one case: waits, active sessions, files, buffers, redo?",
        "redoubt run order-entry --sessions 15 --minutes 5",
    ),
    (
        "what it asks of the kernel",
        "Which calls, sizes and open flags does each part of a database use: direct? truly asynchronous?",
        "redoubt trace --target postgres",
    ),
    (
        "your own factors",
        "Any factor crossed with any other: which combination is best?",
        "redoubt compare --vary fs=ext4,xfs --vary io=none,setall --vary sessions=1,10",
    ),
    (
        "a slower device",
        "What if the disk were slower?",
        "redoubt compare --vary throttle=off,azure-p10,hdd-7200",
    ),
    (
        "your own mix",
        "With my read share and hit ratio, does the winner still pay, and from where on not?",
        "redoubt compare --read-share 0.7 --hit-ratio 0.98",
    ),
    (
        "calibrate",
        "How many IOPS and MB/s at which latency, where is the knee, and what happens beyond it?",
        "redoubt calibrate /data",
    ),
    (
        "two servers",
        "Is the new server's storage faster than the old one's? Same test on both, compared later.",
        "redoubt report old.redoubt new.redoubt",
    ),
    (
        "before measuring",
        "Is anything here that would spoil a week of tests: health, fsync, noise, limits?",
        "redoubt doctor /data",
    ),
];

pub fn run() {
    for case in Case::ALL {
        let command = match case {
            Case::IoModes => "redoubt compare".to_owned(),
            Case::Placement => "redoubt compare placement --slow /hdd --fast /ssd".to_owned(),
            Case::Flash => "redoubt compare flash --slow /hdd --fast /ssd".to_owned(),
            other => format!("redoubt compare {other}"),
        };
        let titles: Vec<_> =
            case.workloads(case.target(TargetKind::Engine)).iter().map(|w| w.about().title).collect();
        let varied: Vec<_> =
            case.vary(lab::compare::TargetKind::Engine, &[]).iter().map(ToString::to_string).collect();
        anstream::println!("{case}\n  {}", case.question());
        anstream::println!("  measures {}", titles.join("; "));
        anstream::println!(
            "  varies {}",
            if varied.is_empty() {
                "place.data, undo, temp, redo, control, one move at a time".into()
            } else {
                varied.join(" ")
            }
        );
        anstream::println!("  $ {command}\n");
    }
    for (name, question, command) in OTHERS {
        anstream::println!("{name}\n  {question}\n  $ {command}\n");
    }
}
