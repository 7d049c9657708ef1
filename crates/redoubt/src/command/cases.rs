//! `redoubt cases`

/// The questions that this version answers: name, question, command.
const CASES: [(&str, &str, &str); 7] = [
    (
        "io modes",
        "Cached, asynchronous, direct, both, or concurrent I/O: which should the database use here?",
        "redoubt compare",
    ),
    (
        "growth",
        "How fast does a table grow and how fast is it scanned, cold and warm, in each I/O mode?",
        "redoubt compare    (rows `growth: …`)",
    ),
    (
        "commit",
        "How many commits per second do concurrent sessions get through one log writer?",
        "redoubt compare    (row `redo commits`), redoubt calibrate (group commit)",
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
    for (name, question, command) in CASES {
        anstream::println!("{name}\n  {question}\n  $ {command}\n");
    }
}
