//! Who a thread is in its database: the log writer, a database writer, somebody's session.

use super::class::Product;

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Its name, at most fifteen bytes.
    pub(super) name: String,
    /// Its process's command line, where servers write what they do.
    pub(super) command_line: String,
    /// What the database itself calls it.
    pub(super) told: Option<String>,
    /// It reads from a socket: somebody's session.
    pub(super) serves: bool,
    /// It collects completions that others submitted.
    pub(super) reaps: bool,
}

/// The role of a thread, in the words of DBAs.
pub(super) fn of(product: Product, seen: &Seen) -> String {
    // Threads of the kernel that work for a ring have its maker's number in their names.
    if seen.name.starts_with("iou-wrk") {
        return "kernel workers (iou-wrk)".into();
    }
    if seen.name.starts_with("iou-sqp") {
        return "kernel submission poller".into();
    }
    match product {
        Product::Engine => engine(&seen.name),
        Product::Postgres => postgres(&seen.command_line),
        Product::Mariadb => mariadb(seen),
        Product::Other => seen.name.clone(),
    }
}

fn engine(name: &str) -> String {
    match name {
        "lgwr" => "log writer",
        "ckpt" => "checkpointer",
        "smon" => "system monitor",
        "fcw0" => "flash cache writer",
        _ if name.starts_with("dbw") => "database writer",
        _ if name.len() >= 4 && name.starts_with("io") && name[2..].bytes().all(|b| b.is_ascii_digit()) => {
            "I/O threads"
        }
        _ => "foreground",
    }
    .into()
}

/// `postgres: checkpointer`, `postgres: postgres postgres [local] INSERT`, and the first: `…/postgres -D …`.
fn postgres(command_line: &str) -> String {
    let Some((_, title)) = command_line.split_once("postgres: ") else { return "postmaster".into() };
    let has = |word: &str| title.contains(word);
    match () {
        () if has("checkpointer") => "checkpointer",
        () if has("background writer") => "background writer",
        () if has("walwriter") || has("wal writer") => "log writer (walwriter)",
        () if has("io worker") => "I/O workers",
        () if has("autovacuum") => "autovacuum",
        () if has("parallel worker") => "parallel workers",
        () if has("walsender") || has("walreceiver") => "replication",
        () if has("logical replication") || has("archiver") || has("startup") || has("logger") => {
            "other background"
        }
        () => "foreground",
    }
    .into()
}

fn mariadb(seen: &Seen) -> String {
    let told = seen.told.as_deref().unwrap_or_default();
    match () {
        () if told.contains("page_cleaner") => "database writer (page cleaner)",
        () if told.contains("log_writer") || told.contains("log_flusher") => "log writer",
        () if told.contains("one_connection") || seen.serves => "foreground",
        () if told.contains("io_handler") => "I/O completion threads",
        () if told.contains("main") => "main thread",
        () if told.contains("purge") || told.contains("srv_") => "other background",
        () if told.contains("page_cleaner") || seen.name.contains("page_clean") => {
            "database writer (page cleaner)"
        }
        () if seen.reaps => "I/O completion threads",
        // Its thread pool completes requests, purges, and makes threads as it needs them.
        () => "InnoDB thread pool",
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_each_product() {
        let named = |name: &str| Seen { name: name.into(), ..Seen::default() };
        let titled = |line: &str| Seen { command_line: line.into(), ..Seen::default() };
        for (product, seen, role) in [
            (Product::Engine, named("lgwr"), "log writer"),
            (Product::Engine, named("dbw1"), "database writer"),
            (Product::Engine, named("fcw0"), "flash cache writer"),
            (Product::Engine, named("redoubt"), "foreground"),
            (Product::Engine, named("io03"), "I/O threads"),
            (Product::Engine, named("iou-wrk-77"), "kernel workers (iou-wrk)"),
            (Product::Postgres, titled("/usr/lib/postgresql/15/bin/postgres -D /d"), "postmaster"),
            (Product::Postgres, titled("postgres: checkpointer"), "checkpointer"),
            (Product::Postgres, titled("postgres: main: walwriter"), "log writer (walwriter)"),
            (Product::Postgres, titled("postgres: io worker 2"), "I/O workers"),
            (Product::Postgres, titled("postgres: postgres bench [local] INSERT"), "foreground"),
            (Product::Mariadb, Seen { serves: true, ..Seen::default() }, "foreground"),
            (
                Product::Mariadb,
                Seen { told: Some("thread/innodb/page_cleaner_thread".into()), ..Seen::default() },
                "database writer (page cleaner)",
            ),
            (Product::Other, named("dd"), "dd"),
        ] {
            assert_eq!(of(product, &seen), role, "{seen:?}");
        }
    }
}
