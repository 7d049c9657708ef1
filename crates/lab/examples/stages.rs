//! Raises and strikes stages in a directory, one after the other, until it is killed: `cargo x crash factors` does that.
#![forbid(unsafe_code)]

use engine::Shutdown;
use lab::LabError;
use lab::bench::{Bench, Purpose};
use lab::database::{Database, Sizes};
use lab::factor::Setup;
use lab::stage::Stage;
use std::path::PathBuf;
use units::{Bytes, Seed};

/// Pairs of setups that differ in easy and medium factors only: a stage is raised for one and moves to the other.
const PAIRS: [[&[&str]; 2]; 6] = [
    [&["fs=ext4", "scheduler=kyber", "nr_requests=64"], &["fs=ext4", "scheduler=bfq", "read_ahead_kb=64"]],
    [&["fs=xfs", "throttle=3000iops+90MB/s"], &["fs=xfs", "mount=noatime", "throttle=5000iops"]],
    [&["fs=raw", "scheduler=mq-deadline"], &["fs=raw", "throttle=4000iops", "wbt_lat_usec=0"]],
    [
        &["place.redo=throttled:aws-gp3", "place.undo=throttled:aws-gp3"],
        &["place.redo=throttled:aws-gp3", "place.undo=throttled:aws-gp3"],
    ],
    [
        &["fs=ext3:data=journal"],
        &["fs=ext3:data=journal", "mount=noatime", "scheduler=none", "rq_affinity=2"],
    ],
    [
        &["fs=btrfs", "place.temp=.", "scheduler=bfq"],
        &["fs=btrfs", "place.temp=.", "scheduler=none", "nr_requests=32"],
    ],
];

fn main() -> Result<(), LabError> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let seed = Seed::draw();
    let purpose = Purpose {
        kind: "compare",
        case: None,
        command: "stages".into(),
        seed,
        budget_seconds: 60.0,
        record_path: None,
        workspace_in: Some(directory.clone()),
        is_server_ours: false,
    };
    let mut bench = Bench::open(&directory, purpose)?;
    let mut order: Vec<usize> = (0..PAIRS.len()).collect();
    units::Rng::new(seed).shuffle(&mut order);
    let result = order.into_iter().cycle().try_for_each(|index| both(&PAIRS[index], &mut bench));
    bench.finish(result).map(|_| ())
}

fn both(pair: &[&[&str]; 2], bench: &mut Bench) -> Result<(), LabError> {
    let [first, second] = pair.map(setup);
    let small = Bytes::mib(8);
    let sizes = Sizes {
        block: Bytes::kib(8),
        cache: Bytes::mib(2),
        data: small,
        undo: small,
        redo: small,
        redo_groups: 3,
        flash: small,
    };
    let mut stage = Stage::raise(&first, &sizes, bench)?;
    stage.proof(&first)?;
    let database = Database::create(stage.places(), &sizes, &[], Seed(1))?;
    for setup in [&first, &second, &first] {
        stage.remount(setup, bench)?;
        stage.proof(setup)?;
        database.open(&setup.configuration())?.shutdown(Shutdown::Immediate)?;
        stage.change(setup, bench)?;
    }
    stage.strike(bench)
}

fn setup(levels: &[&str]) -> Setup {
    let mut setup = Setup::default();
    for text in levels {
        let (factor, level) = text.split_once('=').expect("FACTOR=LEVEL");
        setup.set(factor.parse().expect("a factor"), level).expect("a level");
    }
    setup
}
