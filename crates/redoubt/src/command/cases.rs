//! `redoubt cases`

/// The questions that this version answers: name, question, command.
const CASES: [(&str, &str, &str); 10] = [
    (
        "io modes",
        "Cached, asynchronous, direct, both, or concurrent I/O: which should the database use here?",
        "redoubt compare",
    ),
    (
        "growth",
        "How fast does a table grow, and how fast is it counted, cold and warm?",
        "redoubt compare, redoubt run growth",
    ),
    (
        "commit",
        "How many rows per second can sessions insert when each row is committed?",
        "redoubt run commit --sessions 10",
    ),
    (
        "order-entry",
        "How many business transactions per minute does this storage carry, and how long do they take?",
        "redoubt run order-entry --sessions 15 --minutes 5",
    ),
    (
        "scan",
        "How fast is a large table scanned past the cache, into the cache, and from the cache?",
        "redoubt run scan --scale 0.1",
    ),
    (
        "random-read",
        "How many single blocks per second does the database read that its cache does not hold?",
        "redoubt run random-read --sessions 32",
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
