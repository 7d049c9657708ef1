//! What a server can do of a configuration, said before anything is made.

use super::find::Named;
use super::{Kind, ServerError, Settings, can, find, version};
use crate::database::Sizes;
use crate::factor::{FileClass, Fs, Setup};
use crate::stage::Obstacle;
use units::Bytes;

/// PostgreSQL's block, as everybody compiles it.
const POSTGRES_BLOCK: Bytes = Bytes::kib(8);
/// Connections beside those of the sessions: for preparing, looking, and a user who looks in.
pub(crate) const SPARE_CONNECTIONS: u32 = 16;

impl Settings {
    /// What `setup` says of a server, with a cache and a redo log as in `sizes`.
    pub fn of(kind: Kind, setup: &Setup, sizes: &Sizes) -> Self {
        let configuration = setup.configuration();
        let parameters = setup.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Self {
            cache: sizes.cache,
            redo: Bytes(sizes.redo.0 * u64::from(sizes.redo_groups)),
            mode: configuration.mode,
            api: configuration.api,
            block: (kind == Kind::Mariadb).then_some(setup.block),
            connections: setup.sessions + SPARE_CONNECTIONS,
            parameters: parameters.collect(),
        }
    }
}

/// Whether a server of `kind` can do what `setup` says.
///
/// # Errors
/// What it cannot do, and why; what to type where that is known.
pub fn possible(kind: Kind, setup: &Setup, named: &Named) -> Result<(), Obstacle> {
    let refuse = |reason: String, command: &str| Err(Obstacle { reason, command: command.into() });
    let programs = find::programs(kind, named.of(kind)).map_err(|e| told(&e))?;
    let version =
        version(kind, &programs).map_err(|e| Obstacle { reason: e.to_string(), command: String::new() })?;
    let nothing = Bytes(1 << 20);
    let sizes = Sizes {
        block: setup.block,
        cache: nothing,
        data: nothing,
        undo: nothing,
        redo: nothing,
        redo_groups: 3,
        flash: Bytes(0),
    };
    let settings = Settings::of(kind, setup, &sizes);
    can(kind, &programs, &version, &settings).map_err(|e| told(&e))?;
    if setup.fs == Fs::Raw {
        return refuse(format!("{kind} keeps its files on a file system, and fs is raw"), "--vary fs=ext4");
    }
    if kind == Kind::Postgres && setup.block != POSTGRES_BLOCK {
        return refuse("PostgreSQL's block is 8 KiB, chosen when it was compiled".into(), "--block 8k");
    }
    if setup.writers.is_some() {
        return refuse(format!("{kind} has no number of database writers"), "");
    }
    if setup.flash().is_some() {
        return refuse(format!("{kind} has no flash cache of its own"), "--target engine");
    }
    match FileClass::ALL.into_iter().find(|class| alone(setup, *class) && kind.cannot_place(*class).is_some())
    {
        Some(class) => refuse(kind.cannot_place(class).unwrap_or_default().to_owned(), ""),
        None => Ok(()),
    }
}

/// Whether files of `class` lie where no others do.
fn alone(setup: &Setup, class: FileClass) -> bool {
    let mut others = FileClass::ALL.into_iter().filter(|other| *other != class);
    !others.any(|other| setup.storage(other) == setup.storage(class))
}

fn told(error: &ServerError) -> Obstacle {
    match error {
        ServerError::Unable { kind, version, why, .. } => {
            Obstacle { reason: format!("{kind} {version}: {why}"), command: String::new() }
        }
        other => Obstacle { reason: other.to_string(), command: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Factor;
    use io::IoMode;

    fn said(kind: Kind, levels: &[(Factor, &str)]) -> String {
        let block = if kind == Kind::Postgres { 8 } else { 16 };
        let mut setup = Setup { mode: IoMode::None, block: Bytes::kib(block), ..Setup::default() };
        for (factor, level) in levels {
            setup.set(*factor, level).expect("a level");
        }
        possible(kind, &setup, &Named::default())
            .map_or_else(|obstacle| obstacle.to_string(), |()| String::new())
    }

    #[test]
    fn what_cannot_be_had_is_told_with_the_reason() {
        let place = Factor::Place;
        for (kind, levels, word) in [
            (Kind::Postgres, &[(place(FileClass::Redo), "/ssd")][..], ""),
            (Kind::Postgres, &[(place(FileClass::Undo), "/ssd")], "no undo"),
            (Kind::Postgres, &[(Factor::Places, "/ssd")], ""),
            (Kind::Postgres, &[(Factor::BlockSize, "16k")], "--block 8k"),
            (Kind::Postgres, &[(Factor::Fs, "raw")], "fs=ext4"),
            (Kind::Postgres, &[(Factor::Io, "concurrent")], "no lock"),
            (Kind::Mariadb, &[(place(FileClass::Undo), "/ssd")], ""),
            (Kind::Mariadb, &[(place(FileClass::Control), "/ssd")], "no control file"),
            (Kind::Mariadb, &[(Factor::Writers, "2")], "database writers"),
        ] {
            let said = said(kind, levels);
            assert!(said.contains(word) && (word.is_empty() == said.is_empty()), "{kind} {levels:?}: {said}");
        }
    }
}
