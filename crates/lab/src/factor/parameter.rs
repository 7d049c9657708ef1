//! Parameters of databases as factors: `set.wal_sync_method=fdatasync,open_datasync`.

use super::Factor;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Before the name of a parameter.
pub(super) const PREFIX: &str = "set.";

/// The factor of the parameter `name`. A name is kept for as long as the program runs: factors are plain values, and people type few.
pub(super) fn named(name: &str) -> Result<Factor, String> {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!(
            "{PREFIX}{name} names no parameter of a database; type its name, such as {PREFIX}wal_sync_method=fdatasync,open_datasync"
        ));
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = known.get(name).copied().unwrap_or_else(|| Box::leak(name.to_owned().into_boxed_str()));
    known.insert(kept);
    Ok(Factor::Parameter(kept))
}

#[cfg(test)]
mod tests {
    use crate::factor::{Factor, Setup, Vary};

    #[test]
    fn a_parameter_is_a_factor_like_others() {
        let vary: Vary = "set.wal_sync_method=fdatasync,open_datasync".parse().expect("a variation");
        assert_eq!(vary.to_string(), "set.wal_sync_method=fdatasync,open_datasync");
        assert_eq!(vary.factor, Factor::Parameter("wal_sync_method"));
        let setups = Vary::combine(&Setup::default(), std::slice::from_ref(&vary)).expect("two setups");
        let names: Vec<String> = setups.iter().map(|setup| setup.name(&[vary.factor])).collect();
        assert_eq!(names, ["wal_sync_method fdatasync", "wal_sync_method open_datasync"]);
        let held: Vary = "set.work_mem=default,8MB".parse().expect("a variation");
        assert_eq!(held.levels, ["default", "8MB"]);
        assert!("set.a;b=1".parse::<Vary>().unwrap_err().contains("no parameter"));
    }
}
