//! From counters at two moments to the figures of a mix; pure.

use super::Figure;
use super::counters::Counters;
use crate::LabError;
use crate::server::Kind;
use units::Bytes;
use waits::Grade;

/// Fewer transactions of others are nobody's load: monitoring, a look of an administrator.
const TRANSACTIONS_MIN: f64 = 20.0;
/// MariaDB: with more statements than that to a COMMIT, most of them commit by themselves. An order of TPC-C has about 50.
const STATEMENTS_MAX: f64 = 100.0;

/// What follows from the counters.
#[derive(Debug)]
pub(super) struct Derived {
    pub(super) figures: Vec<Figure>,
    pub(super) assumed: Vec<String>,
    pub(super) block: Bytes,
}

/// What grew, and in what time.
struct Grown<'a> {
    before: &'a Counters,
    after: &'a Counters,
    seconds: f64,
}

impl Grown<'_> {
    /// By how much, or none where the server does not count it.
    fn by(&self, name: &str) -> Option<f64> {
        let (before, after) = (self.before.values.get(name)?, self.after.values.get(name)?);
        Some(after - before)
    }

    fn sum(&self, names: &[&str]) -> Option<f64> {
        let known: Vec<f64> = names.iter().filter_map(|name| self.by(name)).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }
}

/// The counters that both products have under names of their own, as numbers of the window.
struct Counts {
    gets: f64,
    reads: f64,
    changes: (f64, Grade, &'static str),
    /// None: not told, or not in this window.
    writes: Option<(f64, &'static str)>,
    redo: f64,
    redo_source: &'static str,
    transactions: (f64, Grade, &'static str),
    commits: (f64, Grade, &'static str),
    syncs: Option<(f64, &'static str)>,
    scans: Option<(f64, Grade, &'static str)>,
    sources: [&'static str; 2],
}

/// The figures. `active`: mean number of sessions that worked; `own`: statements of ours meanwhile.
///
/// # Errors
/// The counters fell, or nothing happened.
pub(super) fn derive(
    kind: Kind,
    before: &Counters,
    after: &Counters,
    active: f64,
    own: u64,
) -> Result<Derived, LabError> {
    let grown = Grown { before, after, seconds: (after.at - before.at).as_secs().max(1e-9) };
    let mut assumed = Vec::new();
    let counts = match kind {
        Kind::Postgres => postgres(&grown, own as f64, &mut assumed),
        Kind::Mariadb => mariadb(&grown, own as f64, &mut assumed),
    };
    let seconds = grown.seconds;
    let Some(counts) = counts else {
        return Err(LabError::Target(format!(
            "{kind} does not tell how many blocks it got or how many transactions it ended; is that user allowed to see them? PostgreSQL: GRANT \
             pg_monitor TO user; MariaDB: GRANT PROCESS ON *.* TO user"
        )));
    };
    if counts.gets < 0.0 || counts.redo < 0.0 || counts.transactions.0 < -(own as f64) - 1.0 {
        return Err(LabError::Target(format!(
            "{kind}'s counters fell while they were watched: somebody reset its statistics, or it was restarted. Type the same again"
        )));
    }
    if counts.transactions.0 < TRANSACTIONS_MIN || counts.gets <= 0.0 {
        return Err(LabError::Target(format!(
            "nothing happened: in {seconds:.0} s {kind} ended {:.0} transactions beside ours, and the mix cannot be derived. Type the same \
             while the application works, or watch longer: --minutes 30",
            counts.transactions.0.max(0.0)
        )));
    }
    let block = after.values.get("block").copied().unwrap_or(8192.0);
    Ok(Derived {
        figures: figures(kind, &counts, active, block, seconds),
        assumed,
        block: Bytes(block as u64),
    })
}

fn figures(kind: Kind, counts: &Counts, active: f64, block: f64, seconds: f64) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: f64, unit, grade, source: &str| {
        all.push(Figure { name: name.into(), value, unit, grade, source: source.into() });
    };
    let rate = |count: f64| count / seconds;
    let (transactions, commits) = (counts.transactions, counts.commits);
    // The share of reads and the hit ratio follow from these; who reads the file computes them again.
    let changes = counts.changes.0.clamp(0.0, counts.gets);
    add("logical reads", rate(counts.gets), "/s", Grade::Exact, counts.sources[0]);
    add("block changes", rate(changes), "/s", counts.changes.1, counts.changes.2);
    add("physical reads", rate(counts.reads), "/s", Grade::Exact, counts.sources[1]);
    if let Some((writes, source)) = counts.writes {
        add("physical writes", rate(writes), "/s", Grade::Exact, source);
    }
    add("transactions", rate(transactions.0), "/s", transactions.1, transactions.2);
    add("user commits", rate(commits.0), "/s", commits.1, commits.2);
    add("redo size", rate(counts.redo), "bytes/s", Grade::Exact, counts.redo_source);
    let looked = match kind {
        Kind::Postgres => "pg_stat_activity, looked at twice a second",
        Kind::Mariadb => "information_schema.processlist, looked at twice a second",
    };
    add("active sessions", active, "", Grade::Approximate, looked);
    add(
        "read share",
        1.0 - changes / counts.gets,
        "share",
        counts.changes.1,
        "1 − block changes / logical reads",
    );
    let hit_ratio = (1.0 - counts.reads / counts.gets).clamp(0.0, 1.0);
    add(
        "hit ratio",
        hit_ratio,
        "share",
        Grade::Exact,
        "1 − physical / logical reads, of the server's own cache",
    );
    if commits.0 > 0.0 {
        add("redo per commit", counts.redo / commits.0, "bytes", commits.1, "redo size / user commits");
    }
    if let Some((syncs, source)) = counts.syncs.filter(|(syncs, _)| *syncs > 0.0 && commits.0 > 0.0) {
        add("commits per log sync", commits.0 / syncs, "", Grade::Approximate, source);
    }
    if let Some((share, grade, source)) = counts.scans {
        let name = if grade == Grade::Inferred { "rows by scans" } else { "reads of scans" };
        add(name, share.clamp(0.0, 1.0), "share", grade, source);
    }
    add("block size", block, "bytes", Grade::Exact, "the server's setting");
    all
}

fn postgres(grown: &Grown<'_>, own: f64, assumed: &mut Vec<String>) -> Option<Counts> {
    let (hits, reads) = (grown.by("hits")?, grown.by("reads")?);
    let transactions = grown.by("commits")? + grown.by("rollbacks")? - own;
    let numbers = grown.by("numbers")?.max(0.0).min(transactions.max(0.0));
    let records = grown.by("pg_stat_wal.wal_records")?;
    assumed.push(
        "Each redo record but that of a commit was taken for the change of one block; physical reads are those that the server asked for, and the \
         page cache of the system may have served some."
            .into(),
    );
    let checkpoints = grown.sum(&[
        "pg_stat_bgwriter.checkpoints_timed",
        "pg_stat_bgwriter.checkpoints_req",
        "pg_stat_checkpointer.num_timed",
        "pg_stat_checkpointer.num_requested",
    ]);
    let writes = grown
        .by("pg_stat_io.relation.write_bytes")
        .map(|bytes| {
            (bytes / grown.after.values.get("block").copied().unwrap_or(8192.0), "pg_stat_io.write_bytes")
        })
        .or_else(|| Some((grown.by("pg_stat_io.relation.writes")?, "pg_stat_io.writes")))
        .or_else(|| {
            let buffers = ["buffers_checkpoint", "buffers_clean", "buffers_backend"];
            let names = buffers.map(|name| format!("pg_stat_bgwriter.{name}"));
            Some((grown.sum(&names.each_ref().map(String::as_str))?, "pg_stat_bgwriter.buffers_*"))
        });
    let writes = writes.filter(|_| checkpoints.is_some_and(|n| n > 0.0));
    if writes.is_none() {
        assumed.push(
            "No checkpoint began in the window, so block writes were not counted: the verdict takes those that leave the cache changed. Longer than \
             checkpoint_timeout would tell."
                .into(),
        );
    }
    let scans = match (grown.by("bulk reads"), grown.by("all reads")) {
        (Some(bulk), Some(all)) if all > 0.0 => Some((
            bulk / all,
            Grade::Approximate,
            "pg_stat_io, context bulkread: tables larger than a quarter of shared_buffers",
        )),
        _ => grown.by("scanned rows").zip(grown.by("fetched rows")).filter(|(s, f)| s + f > 0.0).map(
            |(scanned, fetched)| {
                (scanned / (scanned + fetched), Grade::Inferred, "seq_tup_read against idx_tup_fetch")
            },
        ),
    };
    let syncs = (grown.by("pg_stat_wal.wal_sync").map(|n| (n, "user commits / pg_stat_wal.wal_sync")))
        .or_else(|| Some((grown.by("pg_stat_io.wal.fsyncs")?, "user commits / pg_stat_io.fsyncs of wal")));
    Some(Counts {
        gets: hits + reads,
        reads,
        changes: (
            (records - numbers).max(0.0),
            Grade::Approximate,
            "pg_stat_wal.wal_records without those of commits",
        ),
        writes,
        redo: grown.by("pg_stat_wal.wal_bytes")?,
        redo_source: "pg_stat_wal.wal_bytes",
        transactions: (
            transactions,
            Grade::Exact,
            "pg_stat_database.xact_commit + xact_rollback, without ours",
        ),
        commits: (
            numbers,
            Grade::Approximate,
            "transaction numbers drawn: commits that wrote; savepoints draw one, too",
        ),
        syncs,
        scans,
        sources: ["pg_stat_database.blks_hit + blks_read", "pg_stat_database.blks_read"],
    })
}

fn mariadb(grown: &Grown<'_>, own: f64, assumed: &mut Vec<String>) -> Option<Counts> {
    let gets = grown.by("Innodb_buffer_pool_read_requests")?;
    let reads = grown.by("Innodb_pages_read").or_else(|| grown.by("Innodb_buffer_pool_reads"))?;
    let statements = grown.sum(&[
        "Com_select",
        "Com_insert",
        "Com_update",
        "Com_delete",
        "Com_replace",
        "Com_insert_select",
        "Com_update_multi",
        "Com_delete_multi",
    ])? - own;
    let told = grown.sum(&["Com_commit", "Com_rollback"])?;
    // Every statement ends with one such call, and a COMMIT with one more; prepared ones are in no other counter.
    let beyond = grown.by("Handler_commit").map_or(0.0, |calls| calls - statements);
    let ended = told.max(beyond);
    // Each transaction that writes draws two numbers, one when it begins to write and one when it commits.
    let numbers = grown.by("numbers").map(|n| (n / 2.0).max(0.0));
    let commits = match numbers {
        Some(numbers) => {
            (numbers, Grade::Approximate, "half of the transaction numbers drawn: commits that wrote")
        }
        None => {
            assumed.push(
                "Transaction numbers cannot be seen (GRANT PROCESS ON *.* TO user): every COMMIT was taken for one that wrote.".into(),
            );
            (grown.by("Com_commit")?, Grade::Inferred, "Com_commit")
        }
    };
    // Statements outside a transaction commit by themselves, and are not counted apart.
    let transactions = if ended * STATEMENTS_MAX >= statements {
        assumed.push(
            "Each COMMIT and ROLLBACK was taken for a transaction: statements that commit by themselves beside them are not counted apart.".into(),
        );
        (
            ended.max(commits.0),
            Grade::Approximate,
            if beyond > told { "Handler_commit beyond one a statement" } else { "Com_commit + Com_rollback" },
        )
    } else {
        assumed.push(
            "Almost no COMMIT was seen, so every statement was taken for a transaction that commits by itself.".into(),
        );
        (
            statements.max(commits.0),
            Grade::Inferred,
            "statements (Com_select, Com_insert …), which commit by themselves",
        )
    };
    let ahead = grown.by("Innodb_buffer_pool_read_ahead").filter(|_| reads > 0.0);
    let rows = || {
        let key =
            grown.sum(&["Handler_read_key", "Handler_read_next", "Handler_read_prev", "Handler_read_rnd"])?;
        let scanned = grown.by("Handler_read_rnd_next")?;
        let share = scanned / (scanned + key).max(1.0);
        Some((share, Grade::Inferred, "Handler_read_rnd_next against reads by key"))
    };
    let scans = match ahead {
        Some(ahead) => {
            Some((ahead / reads, Grade::Approximate, "Innodb_buffer_pool_read_ahead / Innodb_pages_read"))
        }
        None => rows(),
    };
    let redo = (grown.by("Innodb_lsn_current").map(|n| (n, "Innodb_lsn_current")))
        .or_else(|| Some((grown.by("Innodb_os_log_written")?, "Innodb_os_log_written")))?;
    let commits = (commits.0.min(transactions.0), commits.1, commits.2);
    Some(Counts {
        gets,
        reads,
        changes: (
            grown.by("Innodb_buffer_pool_write_requests")?,
            Grade::Exact,
            "Innodb_buffer_pool_write_requests",
        ),
        writes: grown.by("Innodb_pages_written").map(|n| (n, "Innodb_pages_written")),
        redo: redo.0,
        redo_source: redo.1,
        transactions,
        commits,
        syncs: grown
            .by("Innodb_os_log_fsyncs")
            .map(|n| (n, "user commits / Innodb_os_log_fsyncs"))
            .or_else(|| Some((grown.by("Innodb_log_writes")?, "user commits / Innodb_log_writes"))),
        scans,
        sources: ["Innodb_buffer_pool_read_requests", "Innodb_pages_read"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn value(derived: &Derived, name: &str) -> f64 {
        derived.figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
    }

    /// Counters from nothing to `grown` in ten seconds.
    fn derived(kind: Kind, grown: &[(&str, f64)]) -> Result<Derived, LabError> {
        let zero: Vec<_> =
            grown.iter().map(|(name, _)| (*name, if *name == "block" { 8192.0 } else { 0.0 })).collect();
        let (before, after) = (Counters::of(Nanos(0), &zero), Counters::of(Nanos::secs(10.0), grown));
        derive(kind, &before, &after, 2.5, 10)
    }

    const POSTGRES: [(&str, f64); 12] = [
        ("hits", 95_000.0),
        ("reads", 5_000.0),
        ("commits", 1_010.0),
        ("rollbacks", 0.0),
        ("numbers", 400.0),
        ("block", 8192.0),
        ("pg_stat_wal.wal_records", 10_400.0),
        ("pg_stat_wal.wal_bytes", 2_000_000.0),
        ("pg_stat_wal.wal_sync", 200.0),
        ("pg_stat_bgwriter.checkpoints_timed", 1.0),
        ("pg_stat_bgwriter.buffers_checkpoint", 700.0),
        ("pg_stat_bgwriter.buffers_backend", 300.0),
    ];

    #[test]
    fn counters_of_postgresql_become_a_mix() {
        let found = derived(Kind::Postgres, &POSTGRES).expect("a mix");
        for (name, want) in [
            ("logical reads", 10_000.0),
            ("physical reads", 500.0),
            ("block changes", 1_000.0),
            ("physical writes", 100.0),
            ("transactions", 100.0),
            ("user commits", 40.0),
            ("read share", 0.9),
            ("hit ratio", 0.95),
            ("redo per commit", 5_000.0),
            ("commits per log sync", 2.0),
            ("active sessions", 2.5),
        ] {
            assert!((value(&found, name) / want - 1.0).abs() < 1e-9, "{name}: {}", value(&found, name));
        }
        assert_eq!(found.block, Bytes::kib(8));
        // Without a checkpoint nobody knows what is written in the long run.
        let without: Vec<_> =
            POSTGRES.into_iter().filter(|(name, _)| !name.contains("checkpoints_timed")).collect();
        let found = derived(Kind::Postgres, &without).expect("a mix");
        assert!(value(&found, "physical writes").is_nan());
        assert!(found.assumed.iter().any(|sentence| sentence.contains("No checkpoint")));
    }

    #[test]
    fn counters_of_mariadb_become_a_mix() {
        let common = [
            ("Innodb_buffer_pool_read_requests", 100_000.0),
            ("Innodb_pages_read", 2_000.0),
            ("Innodb_buffer_pool_read_ahead", 500.0),
            ("Innodb_buffer_pool_write_requests", 20_000.0),
            ("Innodb_pages_written", 1_000.0),
            ("Innodb_lsn_current", 4e6),
            ("Innodb_log_writes", 250.0),
            ("Com_select", 510.0),
            ("Com_insert", 500.0),
            ("numbers", 1_000.0),
            ("block", 16_384.0),
        ];
        let explicit = [&common[..], &[("Com_commit", 600.0), ("Com_rollback", 0.0)]].concat();
        let found = derived(Kind::Mariadb, &explicit).expect("a mix");
        for (name, want) in [
            ("read share", 0.8),
            ("hit ratio", 0.98),
            ("transactions", 60.0),
            ("user commits", 50.0),
            ("reads of scans", 0.25),
            ("commits per log sync", 2.0),
        ] {
            assert!((value(&found, name) / want - 1.0).abs() < 1e-9, "{name}: {}", value(&found, name));
        }
        let prepared =
            [&common[..], &[("Com_commit", 0.0), ("Com_rollback", 0.0), ("Handler_commit", 1_700.0)]]
                .concat();
        let found = derived(Kind::Mariadb, &prepared).expect("a mix");
        assert!((value(&found, "transactions") - 70.0).abs() < 1e-9, "COMMITs that were prepared");
        let alone = [&common[..], &[("Com_commit", 0.0), ("Com_rollback", 0.0)]].concat();
        let found = derived(Kind::Mariadb, &alone).expect("a mix");
        assert!((value(&found, "transactions") - 100.0).abs() < 1e-9, "statements commit by themselves");
    }

    #[test]
    fn a_server_that_rests_or_was_reset_is_refused() {
        let with = |name: &str, value: f64| -> Vec<_> {
            POSTGRES.into_iter().map(|(n, v)| (n, if n == name { value } else { v })).collect()
        };
        let check = |grown: &[(&str, f64)], word: &str| {
            let error = derived(Kind::Postgres, grown).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        };
        check(&with("commits", 15.0), "nothing happened: in 10 s PostgreSQL ended 5 transactions");
        check(&with("hits", -9e6), "reset its statistics");
        check(&POSTGRES[..3], "GRANT pg_monitor");
    }
}
