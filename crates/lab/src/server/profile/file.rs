//! A profile as it is kept: JSON that says what each figure is, so that a person can read and change it.
//!
//! Who weighs a comparison by it reads `metrics` (`report::Given::profile`); the rest is for people.

use super::Profile;
use record::json::{Value, json};

/// Version of what is written.
const FORMAT: u32 = 1;

impl Profile {
    /// The whole profile.
    pub fn json(&self) -> Value {
        let metrics: Vec<Value> = self
            .figures
            .iter()
            .map(|figure| {
                json!({ "name": figure.name, "value": figure.value, "unit": figure.unit, "grade": figure.grade.name(),
                        "source": figure.source })
            })
            .collect();
        let hot: Vec<Value> = self
            .hot
            .iter()
            .map(|hot| json!({ "name": hot.name, "per_second": hot.per_second, "share": hot.share }))
            .collect();
        json!({ "redoubt_profile": FORMAT, "server": format!("{} {}", self.kind, self.version), "address": self.address,
                "begun_utc": self.begun_utc, "seconds": self.seconds, "block_bytes": self.block.0, "metrics": metrics,
                "hot": hot, "assumed": self.assumed })
    }
}
