//! Indexes from outside, deep ones: on a simulated machine, where the power is cut while leaves split, empty and leave the tree.

use engine::instance::process::Role;
use engine::sort::SortKey;
use engine::{
    Background, Column, ColumnKind, EngineError, Environment, IndexDef, Instance, InstanceConfig, Row,
    Session, Shutdown, TableDef, Value, btree,
};
use io::Storage;
use io::sim::{Promises, SimStorage};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex};
use units::{Clock, Rng, Seed};
use waits::Event;

const MIB: u64 = 1 << 20;

fn storage(seed: u64) -> SimStorage {
    let storage = SimStorage::new(Promises::default(), Seed(seed));
    storage.create_directory(Path::new("/db")).unwrap();
    storage
}

fn environment(storage: &SimStorage) -> Environment {
    Environment {
        storage: storage.handle(),
        clock: Clock::steps(),
        background: Background::Inline,
        seed: Seed(7),
    }
}

fn config() -> InstanceConfig {
    let mut config = InstanceConfig::new("/db")
        .with("db_block_size", "2k")
        .with("db_cache_size", "1m")
        .with("log_buffer", "256k")
        .with("fast_start_redo_target", "256k");
    (config.data_bytes, config.undo_bytes, config.temp_bytes) = (MIB, MIB, MIB);
    (config.redo_bytes, config.redo_groups) = (2 * MIB, 2);
    config
}

/// `id INTEGER, name TEXT, size INTEGER`, unique by name, and an index by size and name.
fn people(session: &mut Session) {
    let column = Column::new;
    let columns = vec![
        column("id", ColumnKind::Integer),
        column("name", ColumnKind::Text),
        column("size", ColumnKind::Integer),
    ];
    session.create_table(&TableDef::new("people", columns)).unwrap();
    for (name, columns, unique) in [("by_name", &["name"][..], true), ("by_size", &["size", "name"], false)] {
        session.create_index(&index(name, columns, unique)).unwrap();
    }
}

fn index(name: &str, columns: &[&str], unique: bool) -> IndexDef {
    IndexDef {
        name: name.into(),
        table: "people".into(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        unique,
        tablespace: None,
    }
}

/// Names are alike for long, so that branches hold few children and trees are deep.
fn row(id: u64, size: u64) -> Row {
    let name = format!("{:x<180}{id:06}", "");
    vec![Value::Integer(id as i64), Value::Text(name), Value::Integer(size as i64)]
}

/// Sizes by id.
type Model = BTreeMap<u64, u64>;

/// What the database may hold: as of the last commit, or of the one that goes on.
type MayBe = Arc<Mutex<[Model; 2]>>;

/// Commits, rollbacks, purge; rows come and go in bulk, so that trees grow and shrink.
fn work(instance: &Instance, may_be: &MayBe, seed: u64, batches: u64) {
    let mut rng = Rng::new(Seed(seed));
    let session = &mut instance.session("test").unwrap();
    let mut model = Model::new();
    for batch in 0..batches {
        let table = session.table("people").unwrap();
        let by_name = session.index("by_name").unwrap();
        let shrinking = batch % 8 >= 5;
        let mut next = model.clone();
        let first = rng.below(900);
        for id in (first..first + 10 + rng.below(60)).map(|n| n * 7 % 1009) {
            let name = &row(id, 0)[1..2];
            let there = session.lookup(&by_name, name).unwrap();
            match (there.first(), shrinking) {
                (None, false) => {
                    session.insert(&table, &row(id, rng.below(5))).unwrap();
                }
                (Some((at, _)), true) => session.delete(&table, *at).unwrap(),
                (Some((at, _)), false) => session.update(&table, *at, &row(id, 5 + batch)).unwrap(),
                (None, true) => continue,
            }
            next.remove(&id);
            if let Some((_, row)) = session.lookup(&by_name, name).unwrap().first() {
                let Value::Integer(size) = row[2] else { panic!("a size") };
                next.insert(id, size as u64);
            }
        }
        if rng.below(5) == 0 {
            session.rollback().unwrap();
        } else {
            may_be.lock().unwrap()[1] = next.clone();
            session.commit().unwrap();
            *may_be.lock().unwrap() = [next.clone(), next.clone()];
            model = next;
        }
        for role in instance.core.processes.roles() {
            if rng.below(3) == 0 {
                instance.core.processes.step(&instance.core, role).unwrap();
            }
        }
        if rng.below(4) == 0 {
            tidy(instance);
        }
    }
}

/// Purges until nothing is left to purge.
fn tidy(instance: &Instance) {
    for _ in 0..10_000 {
        if !instance.core.processes.step(&instance.core, Role::SystemMonitor).unwrap() {
            return;
        }
    }
    panic!("smon has no end");
}

/// Table and indexes agree, trees are sound, and hold nothing but the rows once all is purged.
fn check(instance: &Instance, may_be: &[Model]) -> Model {
    let session = &mut instance.session("check").unwrap();
    let table = session.table("people").unwrap();
    let mut scan = session.scan(&table).unwrap();
    let mut rows = Vec::new();
    while let Some((_, row)) = scan.next(session).unwrap() {
        rows.push(row);
    }
    drop(scan);
    let found = model_of(&rows).unwrap_or_else(|| panic!("not the rows that were put in: {rows:?}"));
    let wanted: Vec<usize> = may_be.iter().map(BTreeMap::len).collect();
    assert!(may_be.contains(&found), "{} rows, should be one of {wanted:?}", found.len());
    tidy(instance);
    for index in &table.indexes {
        let structure = btree::check(&instance.core, session.context(), &index.segment).unwrap();
        assert_eq!(structure.problems, Vec::<String>::new(), "{}", index.name);
        assert_eq!(structure.entries, rows.len() as u64, "{}: entries of rows that are gone", index.name);
        rows.sort_by_key(|row| index.key(row));
        for descending in [false, true] {
            let mut cursor = session.range(index, Bound::Unbounded, Bound::Unbounded, descending).unwrap();
            let mut ordered = Vec::new();
            while let Some((_, row)) = cursor.next(session).unwrap() {
                ordered.push(row);
            }
            if descending {
                ordered.reverse();
            }
            assert!(ordered == rows, "{}: {} of {} rows", index.name, ordered.len(), rows.len());
        }
    }
    found
}

fn model_of(rows: &[Row]) -> Option<Model> {
    let mut model = Model::new();
    for found in rows {
        let (Value::Integer(id), Value::Integer(size)) = (&found[0], &found[2]) else { return None };
        if *found != row(*id as u64, *size as u64) || model.insert(*id as u64, *size as u64).is_some() {
            return None;
        }
    }
    Some(model)
}

#[test]
fn deep_trees_survive_power_cuts() {
    for seed in 0..3 {
        let storage = storage(seed);
        let instance = Instance::create(environment(&storage), config()).unwrap();
        people(&mut instance.session("test").unwrap());
        let may_be: MayBe = Arc::default();
        let begun = storage.calls();
        let cuts = {
            let may_be = may_be.clone();
            let cuts = Arc::new(Mutex::new(Vec::new()));
            let list = cuts.clone();
            storage.on_call(Some(Arc::new(move |storage: &SimStorage, info| {
                if (info.number - begun) % 13 == seed {
                    let fork = storage.fork();
                    fork.crash(Seed(info.number));
                    list.lock().unwrap().push((info.number, fork, may_be.lock().unwrap().clone()));
                }
            })));
            cuts
        };
        work(&instance, &may_be, seed, 60);
        storage.on_call(None);
        let model = may_be.lock().unwrap().clone();
        check(&instance, &model);
        instance.shutdown(Shutdown::Immediate).unwrap();
        let cuts = std::mem::take(&mut *cuts.lock().unwrap());
        assert!(cuts.len() > 5, "{} of {} calls", cuts.len(), storage.calls() - begun);
        for (number, fork, may_be) in cuts {
            fork.on_call(None);
            let instance = Instance::open(environment(&fork), InstanceConfig::new("/db"))
                .unwrap_or_else(|error| panic!("seed {seed}, cut at call {number}: {error}"));
            let found = check(&instance, &may_be);
            if number % 4 > 0 {
                continue;
            }
            // And it goes on from there.
            let went_on: MayBe = Arc::new(Mutex::new([found.clone(), found]));
            continue_from(&instance, &went_on);
            instance.shutdown(Shutdown::Immediate).unwrap();
        }
    }
}

/// All rows go, and others come.
fn continue_from(instance: &Instance, may_be: &MayBe) {
    let session = &mut instance.session("test").unwrap();
    let table = session.table("people").unwrap();
    let mut scan = session.scan(&table).unwrap();
    let mut gone = Vec::new();
    while let Some((at, _)) = scan.next(session).unwrap() {
        gone.push(at);
    }
    drop(scan);
    gone.into_iter().for_each(|at| session.delete(&table, at).unwrap());
    session.commit().unwrap();
    tidy(instance);
    let model: Model = (0..200).map(|id| (id * 5, id)).collect();
    session.insert_many(&table, &mut model.iter().map(|(id, size)| row(*id, *size))).unwrap();
    session.commit().unwrap();
    *may_be.lock().unwrap() = [model.clone(), model.clone()];
    check(instance, &[model]);
}

#[test]
fn an_index_made_later_is_the_same() {
    let storage = storage(4);
    let instance = Instance::create(environment(&storage), config().with("sort_area_size", "64k")).unwrap();
    let session = &mut instance.session("test").unwrap();
    people(session);
    let table = session.table("people").unwrap();
    let model: Model = (0..3_000).map(|n| (n * 7919 % 100_003, n % 9)).collect();
    session.insert_many(&table, &mut model.iter().map(|(id, size)| row(*id, *size))).unwrap();
    session.commit().unwrap();
    for (name, columns, unique) in
        [("late_name", &["name"][..], true), ("late_size", &["size", "name"], false)]
    {
        session.create_index(&index(name, columns, unique)).unwrap();
    }
    check(&instance, &[model]);
    assert_eq!(instance.core.temp.used_blocks(), 0);
    let waits = instance.core.waits.totals().foreground;
    for event in [Event::DirectPathWriteTemp, Event::DirectPathReadTemp] {
        assert!(waits.event(event).waits > 0, "{event:?}");
    }
    let refused = session.create_index(&index("sizes", &["size"], true));
    assert!(matches!(refused, Err(EngineError::DuplicateKey { .. })));
}

#[test]
fn sorts_spill_in_every_mode_and_say_when_temp_is_full() {
    for mode in ["none", "asynch", "directio", "setall", "concurrent"] {
        let storage = storage(5);
        let config = config().with("sort_area_size", "64k").with("filesystemio_options", mode);
        let instance = Instance::create(environment(&storage), config).unwrap();
        let session = &mut instance.session("test").unwrap();
        let mut rng = Rng::new(Seed(5));
        let mut sorter = session
            .sorter(&[SortKey { column: 2, descending: true }, SortKey { column: 0, descending: false }]);
        let mut rows: Vec<Row> = (0..4_000).map(|_| row(rng.below(1 << 30), rng.below(50))).collect();
        rows.iter().for_each(|row| sorter.push(session.context(), row.clone()).unwrap());
        assert!(instance.core.temp.used_blocks() > 300);
        rows.sort_by_key(|row| {
            let (Value::Integer(size), Value::Integer(id)) = (&row[2], &row[0]) else { panic!("numbers") };
            (-size, *id)
        });
        let mut found = Vec::new();
        while let Some(row) = sorter.next(session.context()).unwrap() {
            found.push(row);
        }
        assert!(found == rows, "{mode}");
        drop(sorter);
        assert_eq!(instance.core.temp.used_blocks(), 0);
    }
    let storage = storage(6);
    let instance = Instance::create(environment(&storage), config().with("sort_area_size", "64k")).unwrap();
    let session = &mut instance.session("test").unwrap();
    storage.set_capacity(Some(1));
    let mut sorter = session.sorter(&[SortKey { column: 0, descending: false }]);
    let full = (0..20_000).find_map(|id| sorter.push(session.context(), row(id, 0)).err());
    assert!(matches!(full, Some(EngineError::TablespaceFull { .. })), "{full:?}");
    drop(sorter);
    assert_eq!(instance.core.temp.used_blocks(), 0);
}
