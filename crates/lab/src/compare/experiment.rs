//! A comparison written down: `experiment.toml` says what the command line says, in the same words.
//!
//! ```toml
//! case = "filesystem"
//! dir = "/data"
//! minutes = 20
//! baseline = "xfs none"
//!
//! [vary]
//! fs = ["ext4:data=writeback", "xfs"]
//! io = ["none", "setall"]
//! sessions = [1, 10]
//! place.redo = ["here", "/ssd"]
//! ```

use super::Case;
use crate::factor::{Factor, Vary, nearest};
use std::fmt;
use toml::{Table, Value};

/// What a file says; what it leaves open is for the command line, or has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experiment {
    /// `case`
    pub case: Option<Case>,
    /// `[vary]`, in the order of the factors.
    pub vary: Vec<Vary>,
    /// Every other key with its value as it would be typed behind `--KEY`.
    pub options: Vec<(String, String)>,
}

/// Keys beside `case` and `vary`: options of the command line, with `_` for `-`.
const OPTIONS: [&str; 18] = [
    "dir",
    "target",
    "pg_bin",
    "mariadb_bin",
    "patience",
    "minutes",
    "size",
    "sessions",
    "block",
    "read_share",
    "hit_ratio",
    "commits_per_tx",
    "awr",
    "like",
    "mix_from",
    "baseline",
    "slow",
    "fast",
];

/// Why a file was refused; a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl Experiment {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is no TOML, with line and column; a key that is none, with the nearest that is; a level that is none.
    pub fn read(text: &str) -> Result<Self, Refused> {
        let table: Table = text.parse().map_err(|error| Refused(format!("not TOML: {error}")))?;
        let mut experiment = Self::default();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("case", value) => experiment.case = Some(plain(key, value)?.parse().map_err(Refused)?),
                ("vary", Value::Table(vary)) => {
                    experiment.vary(vary, "")?;
                    experiment.vary.sort_by_key(|v| v.factor.rank());
                }
                ("vary", _) => {
                    return Err(Refused(
                        "vary is a table: write [vary] and a line for each factor below it".into(),
                    ));
                }
                (name, value) if OPTIONS.contains(&name) => {
                    experiment.options.push((key.clone(), plain(key, value)?));
                }
                (name, _) => {
                    let keys: Vec<&str> = OPTIONS.into_iter().chain(["case", "vary"]).collect();
                    let meant = match (name.parse::<Factor>(), nearest(name, &keys)) {
                        (Ok(factor), _) => format!("{factor} is a factor: write it below [vary]"),
                        (_, Some(meant)) => format!("did you mean {meant}?"),
                        _ => format!("keys: {}", keys.join(", ")),
                    };
                    return Err(Refused(format!("{name} is no key of an experiment; {meant}")));
                }
            }
        }
        Ok(experiment)
    }

    /// Factors below `prefix`; `place.redo = …` is a table inside the table.
    fn vary(&mut self, table: &Table, prefix: &str) -> Result<(), Refused> {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            if let Value::Table(inner) = value {
                self.vary(inner, &format!("{name}."))?;
                continue;
            }
            let factor: Factor = name.parse().map_err(Refused)?;
            let levels = match value {
                Value::Array(levels) => {
                    levels.iter().map(|level| plain(&name, level)).collect::<Result<_, _>>()?
                }
                one => vec![plain(&name, one)?],
            };
            self.vary.push(Vary::new(factor, &levels).map_err(Refused)?);
        }
        Ok(())
    }
}

/// A value as it would be typed.
fn plain(key: &str, value: &Value) -> Result<String, Refused> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            Err(Refused(format!("{key} = {value}: write a text in quotes, or a number")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_the_command_line_says() {
        let text = r#"
            case = "filesystem"
            minutes = 20
            read_share = 0.7
            slow = "throttled:hdd-7200"
            [vary]
            sessions = [1, 10]
            fs = ["ext4:data=writeback+noatime", "xfs"]
            io = "setall"
            place.redo = ["here", "/ssd"]
        "#;
        let experiment = Experiment::read(text).unwrap();
        assert_eq!(experiment.case, Some(Case::Filesystem));
        let vary: Vec<_> = experiment.vary.iter().map(ToString::to_string).collect();
        assert_eq!(
            vary,
            ["fs=ext4:data=writeback+noatime,xfs", "place.redo=here,/ssd", "io=setall", "sessions=1,10"]
        );
        let option = |key: &str| experiment.options.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        assert_eq!((option("minutes"), option("read_share")), (Some("20"), Some("0.7")));
        assert_eq!(option("slow"), Some("throttled:hdd-7200"));
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_nearest() {
        for (text, words) in [
            ("minuts = 3", "did you mean minutes?"),
            ("fs = \"xfs\"", "below [vary]"),
            ("[vary]\nsesions = [1]", "Did you mean sessions?"),
            ("[vary]\nplace.rdo = [\"here\"]", "Did you mean place.redo?"),
            ("[vary]\nio = [\"turbo\"]", "setall"),
            ("[vary]\nio = [true]", "in quotes"),
            ("vary = 3", "[vary]"),
            ("case = \"filesytem\"", "Did you mean filesystem?"),
            ("case = ", "line 1"),
        ] {
            let error = Experiment::read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
