//! What is varied: `FACTOR=LEVEL,LEVEL…`, and all combinations.

use super::{Factor, Setup};
use std::fmt;
use std::str::FromStr;

/// A factor and its levels, at least one; with one it is held there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// What varies.
    pub factor: Factor,
    /// Its levels, as they are written; no two are the same.
    pub levels: Vec<String>,
}

impl Vary {
    /// Checks every level.
    ///
    /// # Errors
    /// A sentence that says what was seen and what to type.
    pub fn new<S: AsRef<str>>(factor: Factor, levels: &[S]) -> Result<Self, String> {
        let mut read = Vec::new();
        for typed in levels {
            let mut setup = Setup::default();
            let wrong = |error: String| format!("{factor}: {error}");
            if typed.as_ref().trim().is_empty() {
                return Err(wrong(format!("a level is missing; type {}", factor.grammar())));
            }
            setup.set(factor, typed.as_ref()).map_err(wrong)?;
            // The API of a blocking mode is not what was typed; that of a flash cache needs one.
            let level = if factor == Factor::Api { setup.api.to_string() } else { setup.typed(factor) };
            if read.contains(&level) {
                return Err(format!("{factor}: {level} stands there twice; name each level once"));
            }
            read.push(level);
        }
        if read.is_empty() {
            return Err(format!("{factor} has no levels; type {}", factor.grammar()));
        }
        Ok(Self { factor, levels: read })
    }

    /// All combinations of levels on top of `base`; what is not varied stays as it is there. The first level of each is
    /// the first configuration. Combinations that come to the same (a blocking mode with each API) are one.
    ///
    /// # Errors
    /// A factor that is named twice; levels that contradict each other.
    pub fn combine(base: &Setup, varied: &[Self]) -> Result<Vec<Setup>, String> {
        let mut setups = vec![base.clone()];
        for (index, vary) in varied.iter().enumerate() {
            if varied[..index].iter().any(|earlier| earlier.factor == vary.factor) {
                return Err(format!(
                    "{0} is varied twice; write all its levels behind one --vary {0}=",
                    vary.factor
                ));
            }
            let mut next = Vec::with_capacity(setups.len() * vary.levels.len());
            for setup in &setups {
                for level in &vary.levels {
                    let mut setup = setup.clone();
                    setup.set(vary.factor, level)?;
                    next.push(setup);
                }
            }
            setups = next;
        }
        if let Some(vary) = varied.iter().find(|vary| vary.factor.needs_flash())
            && setups.iter().all(|setup| setup.flash().is_none())
        {
            return Err(format!(
                "{0} belongs to a flash cache, and there is none; type --vary place.flash=/ssd beside --vary {vary}",
                vary.factor
            ));
        }
        let mut distinct: Vec<Setup> = Vec::new();
        for setup in setups {
            setup.check()?;
            let same = |other: &Setup| {
                other.parameters == setup.parameters
                    && Factor::ALL.iter().all(|&f| other.level(f) == setup.level(f))
            };
            if !distinct.iter().any(same) {
                distinct.push(setup);
            }
        }
        Ok(distinct)
    }
}

impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.factor, self.levels.join(","))
    }
}

impl FromStr for Vary {
    type Err = String;

    /// # Errors
    /// A sentence that says what was seen and what to type.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((factor, levels)) = text.split_once('=') else {
            return Err(match text.parse::<Factor>() {
                Ok(factor) => format!("{factor} needs levels: {factor}=…, which are {}", factor.grammar()),
                Err(_) => {
                    format!("{text:?} is not FACTOR=LEVEL,LEVEL…, such as fs=ext4,xfs or io=none,setall")
                }
            });
        };
        Self::new(factor.parse()?, &levels.split(',').collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(text: &str) -> Vary {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn names(varied: &[&str]) -> Vec<String> {
        let varied: Vec<_> = varied.iter().map(|text| vary(text)).collect();
        let factors: Vec<_> = varied.iter().map(|v| v.factor).collect();
        let setups = Vary::combine(&Setup::default(), &varied).unwrap();
        setups.iter().map(|setup| setup.name(&factors)).collect()
    }

    #[test]
    fn all_combinations_first_levels_first() {
        assert_eq!(
            names(&["fs=ext4,xfs", "io=none,setall", "sessions=1,4"]),
            [
                "ext4 none sessions 1",
                "ext4 none sessions 4",
                "ext4 setall sessions 1",
                "ext4 setall sessions 4",
                "xfs none sessions 1",
                "xfs none sessions 4",
                "xfs setall sessions 1",
                "xfs setall sessions 4",
            ]
        );
        // A blocking mode has no API, so it is there once.
        assert_eq!(
            names(&["io=none,setall", "api=io_uring,libaio"]),
            ["none", "setall io_uring", "setall libaio"]
        );
        assert_eq!(vary("fs=ext4:data=writeback,xfs").to_string(), "fs=ext4:data=writeback,xfs");
    }

    #[test]
    fn what_is_no_variation_is_refused_with_what_to_type() {
        for (text, words) in [
            ("fs", "fs needs levels"),
            ("filesystem", "FACTOR=LEVEL"),
            ("fs=", "a level is missing"),
            ("fs=ext4,,xfs", "a level is missing"),
            ("fs=ext4,ext4", "twice"),
            ("io=none,cached", "twice"),
            ("oi=none", "Did you mean io?"),
            ("io=none,turbo", "setall"),
        ] {
            let error = text.parse::<Vary>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        let twice = Vary::combine(&Setup::default(), &[vary("io=none"), vary("io=setall")]);
        assert!(twice.unwrap_err().contains("varied twice"));
        let flash = Vary::combine(&Setup::default(), &[vary("flash_policy=classic")]);
        assert!(flash.unwrap_err().contains("--vary place.flash=/ssd"));
        let alone = Vary::combine(&Setup::default(), &[vary("mount=noatime")]);
        assert!(alone.unwrap_err().contains("--vary fs=ext4"));
    }
}
