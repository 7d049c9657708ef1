//! Writes the good messages that fuzzing begins with: `seeds FOLDER` makes a folder for each target in it.
#![forbid(unsafe_code)]

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).ok_or(std::io::ErrorKind::InvalidInput)?;
    for target in fuzz::targets() {
        let folder = Path::new(&folder).join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (index, message) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index}")), message)?;
        }
    }
    Ok(())
}
