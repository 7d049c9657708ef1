//! Parameters with Oracle's names: what there is, what is set, and what may be typed.
//!
//! A value comes from (later wins) the [`Definition`]'s default, what `ALTER SYSTEM SET` or the database's creation left in
//! the control file, and what the instance was started with. Reading a number is one relaxed load; who needs a value that
//! cannot change while the instance runs keeps a copy of its own.

mod catalogue;

pub use catalogue::Parameter;

use crate::flash::Policy;
use crate::{EngineError, Result};
use catalogue::DEFINITIONS;
use io::{Api, IoMode};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Bytes;

/// What may be typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number in this range.
    Integer {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
    },
    /// A number of bytes, with or without unit.
    Size {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of something in the database.
    Name,
    /// Paths, by comma; nothing for none.
    Paths,
    /// Numbers of bytes, by comma.
    Sizes,
}

/// When it may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifiable {
    /// Chosen when the database is created.
    Creation,
    /// In force from the next start.
    Restart,
    /// In force at once.
    Now,
}

/// Where `ALTER SYSTEM SET` applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Until the instance stops.
    Memory,
    /// From the next start.
    Spfile,
    /// Now and after the next start.
    Both,
}

/// A parameter as the catalogue has it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Its name; those with an underscore in front are for experiments.
    pub name: &'static str,
    /// What may be typed.
    pub kind: Kind,
    /// As it would be typed.
    pub default: &'static str,
    /// When it may be changed.
    pub modifiable: Modifiable,
    /// One sentence.
    pub description: &'static str,
}

impl Parameter {
    /// What the catalogue says.
    pub fn definition(self) -> &'static Definition {
        &DEFINITIONS[self as usize]
    }

    /// By name, in any case.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] with the nearest name.
    pub fn named(name: &str) -> Result<Self> {
        let wanted = name.trim().to_ascii_lowercase();
        Self::ALL.iter().copied().find(|p| p.definition().name == wanted).ok_or_else(|| {
            let nearest = DEFINITIONS.iter().map(|d| d.name).min_by_key(|name| distance(name, &wanted));
            let hint = nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"));
            EngineError::NoSuch { kind: "parameter", name: wanted.clone(), hint }
        })
    }

    /// Reads what was typed: the number that stands for it (0 for a name), and the text as the control file keeps it.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with what may be typed.
    pub fn parse(self, text: &str) -> Result<(u64, String)> {
        let definition = self.definition();
        let typed = text.trim().trim_matches('\'');
        let lower = typed.to_ascii_lowercase();
        let wrong = |expected: String| {
            EngineError::Invalid(format!(
                "{} = {typed}: {expected}; {}",
                definition.name, definition.description
            ))
        };
        match definition.kind {
            Kind::Boolean => match lower.as_str() {
                "true" => Ok((1, lower)),
                "false" => Ok((0, lower)),
                _ => Err(wrong("type true or false".into())),
            },
            Kind::Integer { min, max } => match lower.parse() {
                Ok(n) if (min..=max).contains(&n) => Ok((n, lower)),
                _ => Err(wrong(format!("type a whole number from {min} to {max}"))),
            },
            Kind::Size { min, max } => match lower.parse() {
                Ok(Bytes(n)) if (min..=max).contains(&n) && self.is_fit(n) => Ok((n, n.to_string())),
                _ => Err(wrong(format!(
                    "type a size from {} to {}{}",
                    Bytes(min),
                    Bytes(max),
                    if self.is_power_of_two() { ", a power of two" } else { "" }
                ))),
            },
            Kind::Choice(words) => match words.iter().position(|word| *word == lower) {
                Some(index) => Ok((index as u64, lower)),
                None => Err(wrong(format!("type one of {}", words.join(", ")))),
            },
            Kind::Name if typed.is_empty() || typed.len() > 30 => {
                Err(wrong("type a name of 1 to 30 characters".into()))
            }
            Kind::Name => Ok((0, typed.to_ascii_uppercase())),
            Kind::Paths => match list(typed).count() {
                n if n <= PATHS_MAX => Ok((n as u64, list(typed).collect::<Vec<_>>().join(","))),
                _ => Err(wrong(format!("type at most {PATHS_MAX} paths, by comma"))),
            },
            Kind::Sizes => {
                let sizes: std::result::Result<Vec<Bytes>, _> = list(&lower).map(str::parse).collect();
                let sizes = sizes.map_err(|_| wrong("type sizes such as 10g, by comma".into()))?;
                let texts: Vec<String> = sizes.iter().map(|size| size.0.to_string()).collect();
                Ok((sizes.iter().map(|size| size.0).sum(), texts.join(",")))
            }
        }
    }

    const fn is_power_of_two(self) -> bool {
        matches!(self, Self::BlockSize | Self::LogBlockSize)
    }

    const fn is_fit(self, n: u64) -> bool {
        !self.is_power_of_two() || n.is_power_of_two()
    }
}

/// Paths of one parameter at most, as in Oracle.
const PATHS_MAX: usize = 16;

/// What stands between the commas, without the quotes that each may have.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(|part| part.trim().trim_matches('\'')).filter(|part| !part.is_empty())
}

/// A value with where it came from.
#[derive(Default)]
struct Cell {
    number: AtomicU64,
    text: RwLock<String>,
    /// Not the default.
    set: AtomicBool,
    /// Changed since the instance started.
    modified: AtomicBool,
}

/// A row of `v$parameter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterRow {
    /// `NUM`.
    pub number: u32,
    /// `NAME`.
    pub name: &'static str,
    /// `TYPE`: 1 boolean, 2 text, 3 integer, 6 big integer.
    pub kind: u8,
    /// `VALUE`: sizes in bytes.
    pub value: String,
    /// `DISPLAY_VALUE`: sizes with a unit.
    pub display_value: String,
    /// `ISDEFAULT`.
    pub is_default: bool,
    /// `ISMODIFIED`: by `ALTER SYSTEM`.
    pub is_modified: bool,
    /// `ISSYS_MODIFIABLE`: `IMMEDIATE` or `FALSE`.
    pub system_modifiable: &'static str,
    /// `DESCRIPTION`.
    pub description: &'static str,
}

/// The values in force.
pub struct Parameters {
    cells: Vec<Cell>,
}

impl Parameters {
    /// Defaults, then `persisted` (from the control file), then `given` (at the start).
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], [`EngineError::Invalid`]: the first that is wrong.
    pub fn new(persisted: &BTreeMap<String, String>, given: &[(String, String)]) -> Result<Self> {
        let cells: Vec<Cell> = DEFINITIONS.iter().map(|_| Cell::default()).collect();
        let parameters = Self { cells };
        for parameter in Parameter::ALL {
            let (number, text) = parameter.parse(parameter.definition().default)?;
            parameters.store(*parameter, number, text);
        }
        let given = given.iter().map(|(name, value)| (name, value));
        for (name, value) in persisted.iter().chain(given) {
            let parameter = Parameter::named(name)?;
            let (number, text) = parameter.parse(value)?;
            parameters.store(parameter, number, text);
            parameters.cells[parameter as usize].set.store(true, Ordering::Relaxed);
        }
        Ok(parameters)
    }

    /// Defaults.
    pub fn defaults() -> Self {
        Self::new(&BTreeMap::new(), &[]).expect("the catalogue's defaults fit their ranges (tested)")
    }

    fn store(&self, parameter: Parameter, number: u64, text: String) {
        let cell = &self.cells[parameter as usize];
        *cell.text.write() = text;
        cell.number.store(number, Ordering::Relaxed);
    }

    /// A number, a size in bytes, or the index of a choice.
    #[inline]
    pub fn number(&self, parameter: Parameter) -> u64 {
        self.cells[parameter as usize].number.load(Ordering::Relaxed)
    }

    /// A switch.
    #[inline]
    pub fn boolean(&self, parameter: Parameter) -> bool {
        self.number(parameter) != 0
    }

    /// The word of a choice.
    ///
    /// # Panics
    /// When the parameter is no choice: a bug.
    pub fn choice(&self, parameter: Parameter) -> &'static str {
        match parameter.definition().kind {
            Kind::Choice(words) => words[self.number(parameter) as usize],
            kind => panic!("{} is a {kind:?}, not a choice", parameter.definition().name),
        }
    }

    /// As the control file keeps it.
    pub fn text(&self, parameter: Parameter) -> String {
        self.cells[parameter as usize].text.read().clone()
    }

    /// `db_block_size`.
    pub fn block_bytes(&self) -> u32 {
        self.number(Parameter::BlockSize) as u32
    }

    /// `filesystemio_options`.
    pub fn io_mode(&self) -> IoMode {
        IoMode::ALL[self.number(Parameter::IoMode) as usize]
    }

    /// `filesystemio_api`, `auto` resolved to the first that this kernel offers.
    pub fn api(&self) -> Api {
        match self.choice(Parameter::IoApi) {
            "io_uring" => Api::IoUring,
            "libaio" => Api::Libaio,
            "threads" => Api::Threads,
            _ => [Api::IoUring, Api::Libaio]
                .into_iter()
                .find(|api| api.available().is_ok())
                .unwrap_or(Api::Threads),
        }
    }

    /// `db_flash_cache_file` with `db_flash_cache_size`: the files of the flash cache, relative ones in `directory`, and their bytes. Empty
    /// when either says nothing.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when there are not as many sizes as files.
    pub fn flash_files(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        let (paths, sizes) = (self.text(Parameter::FlashCacheFile), self.text(Parameter::FlashCacheSize));
        if self.number(Parameter::FlashCacheFile) == 0 || self.number(Parameter::FlashCacheSize) == 0 {
            return Ok(Vec::new());
        }
        if list(&paths).count() != list(&sizes).count() {
            return Err(EngineError::Invalid(format!(
                "db_flash_cache_file = {paths} and db_flash_cache_size = {sizes}: type one size for each file, by comma"
            )));
        }
        let file = |(path, size): (&str, &str)| Some((directory.join(path), size.parse().ok()?));
        Ok(list(&paths).zip(list(&sizes)).filter_map(file).collect())
    }

    /// `db_flash_cache_policy`.
    pub fn flash_policy(&self) -> Policy {
        match self.choice(Parameter::FlashCachePolicy) {
            "classic" => Policy::Classic,
            _ => Policy::ScanResistant,
        }
    }

    /// Changes the value in memory.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when it cannot be changed while the instance runs, or the value is wrong.
    pub fn set(&self, parameter: Parameter, value: &str) -> Result<()> {
        let (number, text) = parameter.parse(value)?;
        let definition = parameter.definition();
        if definition.modifiable != Modifiable::Now {
            return Err(EngineError::Invalid(match definition.modifiable {
                Modifiable::Creation => {
                    format!("{} is chosen when the database is created", definition.name)
                }
                _ => format!(
                    "{name} cannot be changed while the instance runs; type ALTER SYSTEM SET {name} = {value} SCOPE = SPFILE and start again",
                    name = definition.name
                ),
            }));
        }
        self.store(parameter, number, text);
        self.cells[parameter as usize].set.store(true, Ordering::Relaxed);
        self.cells[parameter as usize].modified.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// `v$parameter`.
    pub fn rows(&self) -> Vec<ParameterRow> {
        Parameter::ALL.iter().map(|parameter| self.row(*parameter)).collect()
    }

    fn row(&self, parameter: Parameter) -> ParameterRow {
        let (definition, cell) = (parameter.definition(), &self.cells[parameter as usize]);
        let value = cell.text.read().clone();
        let display_value = match definition.kind {
            Kind::Size { .. } => Bytes(self.number(parameter)).to_string(),
            _ => value.clone(),
        };
        ParameterRow {
            number: parameter as u32 + 1,
            name: definition.name,
            kind: match definition.kind {
                Kind::Boolean => 1,
                Kind::Choice(_) | Kind::Name | Kind::Paths | Kind::Sizes => 2,
                Kind::Integer { .. } => 3,
                Kind::Size { .. } => 6,
            },
            value,
            display_value,
            is_default: !cell.set.load(Ordering::Relaxed),
            is_modified: cell.modified.load(Ordering::Relaxed),
            system_modifiable: if definition.modifiable == Modifiable::Now { "IMMEDIATE" } else { "FALSE" },
            description: definition.description,
        }
    }
}

/// Edits that make `a` into `b` (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: &str) -> Result<Parameters> {
        Parameters::new(&BTreeMap::new(), &[(name.into(), value.into())])
    }

    fn refusal(name: &str, value: &str) -> String {
        given(name, value).err().expect("refused").to_string()
    }

    #[test]
    fn the_catalogue_is_sorted_and_its_defaults_fit() {
        let defaults = Parameters::defaults();
        assert!(defaults.rows().iter().all(|row| row.is_default && !row.is_modified));
        let names: Vec<_> = DEFINITIONS.iter().map(|d| d.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(defaults.block_bytes(), 8192);
        assert_eq!(defaults.io_mode(), IoMode::None);
    }

    #[test]
    fn what_is_given_beats_what_is_kept() {
        let kept = BTreeMap::from([("db_cache_size".to_owned(), "64m".to_owned())]);
        let parameters = Parameters::new(&kept, &[("DB_CACHE_SIZE".into(), "1.5m".into())]).unwrap();
        assert_eq!(parameters.number(Parameter::CacheSize), 3 << 19);
        assert_eq!(parameters.text(Parameter::CacheSize), (3 << 19).to_string());
        let row = &parameters.rows()[Parameter::CacheSize as usize];
        assert_eq!((row.display_value.as_str(), row.is_default), ("1.5 MiB", false));
    }

    #[test]
    fn a_refusal_says_what_to_type() {
        for (name, value, words) in [
            ("db_block_sise", "8k", "did you mean db_block_size?"),
            ("filesystemio_option", "none", "did you mean filesystemio_options?"),
            ("db_block_size", "3000", "a power of two"),
            ("db_block_size", "64k", "from 2 KiB to 32 KiB"),
            ("db_writer_processes", "0", "whole number from 1 to 36"),
            ("filesystemio_options", "fast", "none, asynch, directio, setall, concurrent"),
            ("log_checkpoints_to_alert", "yes", "true or false"),
            ("undo_tablespace", "''", "1 to 30 characters"),
        ] {
            let message = refusal(name, value);
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn only_what_may_change_changes() {
        let parameters = Parameters::defaults();
        parameters.set(Parameter::CommitWait, "NOWAIT").unwrap();
        assert_eq!(parameters.choice(Parameter::CommitWait), "nowait");
        assert!(parameters.rows()[Parameter::CommitWait as usize].is_modified);
        let refused = parameters.set(Parameter::CacheSize, "1g").unwrap_err().to_string();
        assert!(refused.contains("SCOPE = SPFILE"), "{refused}");
        let refused = parameters.set(Parameter::BlockSize, "4k").unwrap_err().to_string();
        assert!(refused.contains("created"), "{refused}");
        assert_eq!(parameters.block_bytes(), 8192);
    }

    #[test]
    fn modes_and_apis_are_the_words_of_crate_io() {
        for mode in IoMode::ALL {
            assert_eq!(given("filesystemio_options", &mode.to_string()).unwrap().io_mode(), mode);
        }
        for api in Api::ALL {
            assert_eq!(given("filesystemio_api", &api.to_string()).unwrap().api(), api);
        }
    }
}
