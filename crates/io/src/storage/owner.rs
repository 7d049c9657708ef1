//! Who may do what with a file, in words: for messages that a permission is missing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who may do what with a file, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// `/dev/sdb belongs to root, group disk, mode 0660; this process runs as oracle`; of the nearest folder where there is no such file.
    pub said: String,
    /// As whom this process runs.
    pub user: String,
}

/// None where nothing can be asked.
pub(super) fn ask(path: &Path) -> Option<Ownership> {
    let (there, about) = path.ancestors().find_map(|there| Some((there, std::fs::metadata(there).ok()?)))?;
    let user = name("/etc/passwd", rustix::process::geteuid().as_raw());
    let said = format!(
        "{} belongs to {}, group {}, mode {:04o}; this process runs as {user}",
        there.display(),
        name("/etc/passwd", about.uid()),
        name("/etc/group", about.gid()),
        about.mode() & 0o7777,
    );
    Some(Ownership { said, user })
}

/// The name of a number, as the lines `name:password:number:…` of `file` have it; the number itself where they have none.
fn name(file: &str, number: u32) -> String {
    let lines = std::fs::read_to_string(file).unwrap_or_default();
    let named = lines.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("number {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn owner_and_mode_of_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o750)).expect("a mode");
        let Ownership { said, user: me } = ask(&folder.path().join("no/such/file")).expect("an answer");
        assert!(said.starts_with(&format!("{} belongs to {me}, group ", folder.path().display())), "{said}");
        assert!(said.ends_with(&format!("mode 0750; this process runs as {me}")), "{said}");
        assert_eq!(name("/etc/passwd", 4_000_000_000), "number 4000000000");
    }
}
