//! Where the files of a database of ours go.

use crate::export::{absolute, is_export};
use engine::Placement;
use host::workspace::Workspace;
use std::path::PathBuf;
use std::sync::Arc;

/// Directories and devices of a database.
#[derive(Clone, Debug)]
pub struct Places {
    /// Control file, SYSTEM, alert log, and every class that has no place of its own. Absolute.
    pub directory: PathBuf,
    /// The classes that have one.
    pub placement: Placement,
    /// Where a flash cache goes, when it has a place of its own.
    pub flash: Option<PathBuf>,
    /// Those of the directories in which each file is noted as ours before it is made. Files on a file system that we made ourselves
    /// need no note: they go with it.
    pub workspaces: Vec<Arc<Workspace>>,
}

impl Places {
    /// The data file of USERS, or the device that stands for it.
    pub fn data_file(&self) -> PathBuf {
        let name = "users01.dbf";
        match &self.placement.data {
            None => self.directory.join(name),
            Some(place) if place.is_dir() => place.join(name),
            Some(device) => device.clone(),
        }
    }

    /// The file of the flash cache, or the device that stands for it.
    pub fn flash_file(&self) -> PathBuf {
        let place = self.flash.as_ref().unwrap_or(&self.directory);
        let file = if place.is_dir() || is_export(place) { place.join("flash01.dat") } else { place.clone() };
        absolute(&file).unwrap_or(file)
    }
}

impl From<Arc<Workspace>> for Places {
    fn from(workspace: Arc<Workspace>) -> Self {
        Self {
            directory: workspace.path().to_owned(),
            placement: Placement::default(),
            flash: None,
            workspaces: vec![workspace],
        }
    }
}
