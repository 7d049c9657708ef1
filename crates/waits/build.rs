//! Makes the enum `Event` and its tables from `events.txt`, so that the catalogue is written once and read by all.
//!
//! The grammar is told at the top of `events.txt`. What does not follow it stops the build, with the line.

use std::fmt::Write as _;
use std::path::Path;

/// In the order of `WaitClass`; its variants are the names without what is no letter.
const CLASSES: [&str; 11] = [
    "Scheduler",
    "User I/O",
    "System I/O",
    "Concurrency",
    "Application",
    "Commit",
    "Configuration",
    "Administrative",
    "Network",
    "Other",
    "Idle",
];
const GRADES: [&str; 4] = ["exact", "approximate", "inferred", "none"];
/// Who may have an event for himself that the embedded database does not wait for.
const RESERVED: [&str; 3] = ["flash cache", "nfs", "servers"];
const PARAMETERS: usize = 3;

#[derive(Default)]
struct Entry {
    name: String,
    class: String,
    means: String,
    parameters: Vec<String>,
    postgres: Option<Mapping>,
    mariadb: Option<Mapping>,
}

#[derive(Default)]
struct Mapping {
    grade: String,
    kind: Option<String>,
    names: Vec<String>,
    note: String,
}

fn main() {
    println!("cargo::rerun-if-changed=events.txt");
    println!("cargo::rerun-if-changed=build.rs");
    let text = std::fs::read_to_string("events.txt").expect("events.txt lies beside build.rs");
    let code = generate(&parse(&text));
    let folder = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    std::fs::write(Path::new(&folder).join("events.rs"), code).expect("OUT_DIR can be written");
}

/// # Panics
/// Where the text does not follow the grammar: the build stops there.
fn parse(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut class = String::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| -> ! { panic!("events.txt line {}: {what}: {line:?}", index + 1) };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if !CLASSES.contains(&name) {
                wrong("no such wait class");
            }
            class = name.to_owned();
        } else if !line.starts_with(' ') {
            if class.is_empty() {
                wrong("an event before the first class");
            }
            entries.push(Entry {
                name: line.trim_end().to_owned(),
                class: class.clone(),
                ..Entry::default()
            });
        } else {
            let (key, value) = line.trim().split_once(':').unwrap_or_else(|| wrong("no `key: value`"));
            let entry = entries.last_mut().unwrap_or_else(|| wrong("a line before the first event"));
            set(entry, key, value.trim()).unwrap_or_else(|what| wrong(&what));
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        let same = |other: &Entry| identifier(&other.name) == identifier(&entry.name);
        assert!(!entry.means.is_empty(), "events.txt: {:?} has no `means:`", entry.name);
        assert!(!entries[..index].iter().any(same), "events.txt: {:?} stands there twice", entry.name);
    }
    entries
}

fn set(entry: &mut Entry, key: &str, value: &str) -> Result<(), String> {
    match key {
        "means" if entry.means.is_empty() => entry.means = value.to_owned(),
        "p" if entry.parameters.is_empty() => {
            entry.parameters = value.split(',').map(|name| name.trim().to_owned()).collect();
            if entry.parameters.len() > PARAMETERS {
                return Err(format!("more than {PARAMETERS} parameters"));
            }
        }
        // Who it is for is read by the house rules (`xtask/src/tidy/events.rs`).
        "reserved" if RESERVED.contains(&value) => {}
        "postgres" if entry.postgres.is_none() => entry.postgres = Some(mapping(value)?),
        "mariadb" if entry.mariadb.is_none() => entry.mariadb = Some(mapping(value)?),
        key => return Err(format!("{key:?} is no key, stands there twice, or cannot be {value:?}")),
    }
    Ok(())
}

/// `GRADE [foreground|background] NAME … ; words`
fn mapping(text: &str) -> Result<Mapping, String> {
    let (names, note) = text.split_once(" ; ").unwrap_or((text, ""));
    let mut words = names.split_whitespace().peekable();
    let grade = words.next().unwrap_or_default();
    if !GRADES.contains(&grade) {
        return Err(format!("the grade is one of {GRADES:?}"));
    }
    let kind = words.next_if(|word| ["foreground", "background"].contains(word)).map(str::to_owned);
    let names: Vec<String> = words.map(str::to_owned).collect();
    if (grade == "none") != names.is_empty() {
        return Err("a grade needs names, and `none` has none".to_owned());
    }
    Ok(Mapping { grade: grade.to_owned(), kind, names, note: note.trim().to_owned() })
}

/// `log file switch (checkpoint incomplete)` → `LogFileSwitchCheckpointIncomplete`; `I/O` is one word.
fn identifier(name: &str) -> String {
    let joined = name.replace("I/O", "Io").replace("PL/SQL", "Plsql");
    let words = joined.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..].to_ascii_lowercase()).collect()
}

fn generate(entries: &[Entry]) -> String {
    let mut code = String::from(
        "/// What is waited for: made from `events.txt`. [`Event::info`] has its class, its sentence and its parameters.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u8)]\npub enum Event {\n",
    );
    for entry in entries {
        let parameters = match entry.parameters.len() {
            0 => String::new(),
            _ => format!(" Parameters: `{}`.", entry.parameters.join("`, `")),
        };
        let _ = writeln!(code, "    /// `{}` ({}): {}{parameters}", entry.name, entry.class, entry.means);
        let _ = writeln!(code, "    {},", identifier(&entry.name));
    }
    let _ = writeln!(code, "}}\n\nimpl Event {{");
    let _ = writeln!(code, "    /// How many there are.\n    pub const COUNT: usize = {};", entries.len());
    let _ = writeln!(code, "    /// All of them, in the order of the catalogue.");
    let _ = writeln!(code, "    pub const ALL: [Self; Self::COUNT] = [");
    for entry in entries {
        let _ = writeln!(code, "        Self::{},", identifier(&entry.name));
    }
    let _ = writeln!(code, "    ];\n}}\n\nstatic INFO: [EventInfo; Event::COUNT] = [");
    for entry in entries {
        let mut parameters = entry.parameters.clone();
        parameters.resize(PARAMETERS, String::new());
        let _ = writeln!(
            code,
            "    EventInfo {{ name: {:?}, class: WaitClass::{}, means: {:?}, parameters: {parameters:?}, postgres: {}, mariadb: {} }},",
            entry.name,
            identifier(&entry.class),
            entry.means,
            mapping_code(entry.postgres.as_ref()),
            mapping_code(entry.mariadb.as_ref()),
        );
    }
    let idle = entries.iter().filter(|entry| entry.class == "Idle");
    let idle: Vec<_> = idle.map(|entry| format!("Event::{}", identifier(&entry.name))).collect();
    let _ = writeln!(
        code,
        "];\n\nconst fn idle(event: Event) -> bool {{\n    matches!(event, {})\n}}",
        idle.join(" | ")
    );
    code
}

fn mapping_code(mapping: Option<&Mapping>) -> String {
    let nothing = Mapping { grade: "none".to_owned(), ..Mapping::default() };
    let mapping = mapping.unwrap_or(&nothing);
    let kind = mapping.kind.as_ref().map(|kind| format!("SessionKind::{}", identifier(kind)));
    format!(
        "Mapping {{ grade: Grade::{}, kind: {}, names: &{:?}, note: {:?} }}",
        identifier(&mapping.grade),
        kind.map_or_else(|| "None".to_owned(), |kind| format!("Some({kind})")),
        mapping.names,
        mapping.note
    )
}
