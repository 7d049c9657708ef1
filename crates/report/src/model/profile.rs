//! The mix that `redoubt profile` derived, from its file.

use super::given::{Given, Metric, Rates};
use crate::words;
use record::json::{self, Value};

impl Given {
    /// From the file that `redoubt profile` wrote.
    ///
    /// # Errors
    /// The sentence that says what is wrong with it, and what to type.
    pub fn profile(text: &str) -> Result<Self, String> {
        let other = || {
            "it is no profile. Make one of a server that runs: redoubt profile postgres://user@host/database; an AWR report or a table of metrics \
             is given with --awr"
                .to_owned()
        };
        let file: Value = json::from_str(text).map_err(|_| other())?;
        if file["redoubt_profile"] != 1 {
            return Err(other());
        }
        let mut rates = Rates::new();
        let (mut guessed, mut block) = (Vec::new(), None);
        for metric in file["metrics"].as_array().into_iter().flatten() {
            let (Some(name), Some(value)) = (metric["name"].as_str(), metric["value"].as_f64()) else {
                continue;
            };
            if name == "block size" {
                block = Some(value);
            }
            let Some(known) = Metric::named(name) else { continue };
            rates.insert(known, value);
            if let Some(grade @ ("approximate" | "inferred")) = metric["grade"].as_str() {
                guessed.push(format!("{name} ({grade})"));
            }
        }
        let text = |key: &str| file[key].as_str().unwrap_or("?").to_owned();
        let seconds = file["seconds"].as_f64().unwrap_or(0.0);
        let source = format!("The profile of {} ({seconds:.0} s from {})", text("server"), text("begun_utc"));
        let mut given = Self::of_rates(&rates, &source)?;
        if !guessed.is_empty() {
            given.said.push(format!("Not counted by the server as such: {}.", words::list(&guessed)));
        }
        if let Some(block) = block {
            given.said.push(format!("Its block is {}.", units::Bytes(block as u64)));
        }
        Ok(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_mix() {
        let text = r#"{ "redoubt_profile": 1, "server": "PostgreSQL 15.20", "begun_utc": "2026-11-22T17:00:00Z", "seconds": 300.1,
            "metrics": [
              { "name": "logical reads", "value": 42000.0, "unit": "/s", "grade": "exact" },
              { "name": "block changes", "value": 4200.0, "unit": "/s", "grade": "approximate" },
              { "name": "physical reads", "value": 840.0, "unit": "/s", "grade": "exact" },
              { "name": "transactions", "value": 300.0, "unit": "/s", "grade": "exact" },
              { "name": "user commits", "value": 150.0, "unit": "/s", "grade": "approximate" },
              { "name": "active sessions", "value": 3.6, "unit": "", "grade": "approximate" },
              { "name": "hit ratio", "value": 0.98, "unit": "share", "grade": "exact" },
              { "name": "block size", "value": 8192.0, "unit": "bytes", "grade": "exact" } ] }"#;
        let given = Given::profile(text).expect("a profile");
        for (key, want) in [
            ("read_share", 0.9),
            ("hit_ratio", 0.98),
            ("gets_per_transaction", 140.0),
            ("commits_per_transaction", 0.5),
            ("sessions", 4.0),
        ] {
            let got = given.get(key).unwrap_or(f64::NAN);
            assert!((got - want).abs() < 1e-9, "{key}: {got}");
        }
        let said = given.said.join(" ");
        for word in ["PostgreSQL 15.20 (300 s", "block changes (approximate)", "8 KiB"] {
            assert!(said.contains(word), "{said}");
        }
        for (text, word) in [("", "no profile"), ("{}", "no profile"), ("metric,value", "--awr")] {
            assert!(Given::profile(text).expect_err("no profile").contains(word));
        }
    }
}
