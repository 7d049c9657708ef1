//! Making a new database.

use super::{Core, Foundation, Instance, InstanceConfig, open};
use crate::cache;
use crate::context::Environment;
use crate::files::admin::{announce_files, announce_tablespace, is_blank_or_ours, remove_if_there};
use crate::files::control::{self, Content, FileRecord, FileState, State, TablespaceKind};
use crate::flash;
use crate::page::Lsn;
use crate::parameter::{Parameter, Parameters};
use crate::redo::{GroupSpec, RedoLog};
use crate::{Context, EngineError, Result};
use io::Storage;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Rng;
use waits::SessionKind;

/// Redo goes round: with one group there would be nowhere to go.
const GROUPS_MIN: u32 = 2;

impl Instance {
    /// Makes a new database and opens it. What an earlier attempt left that the power ended is removed first.
    ///
    /// 1. lock and directories. 2. control file, saying `creating` and naming all files: from here on whoever comes after a
    ///    crash knows what to remove. 3. data files, redo groups. 4. processes. 5. space maps, undo, catalog, by redo.
    /// 6. a full checkpoint. 7. the control file says `open`: before, there is no database; from here on it is complete.
    ///
    /// # Errors
    /// [`EngineError::Exists`] when the directory has a database already, [`EngineError::Invalid`], what storage says;
    /// nothing but directories is left behind then.
    pub fn create(environment: Environment, config: InstanceConfig) -> Result<Self> {
        let storage = environment.storage.clone();
        let content = plan(&environment, &config)?;
        config.make_directories(&*storage)?;
        let lock = Arc::new(open::lock(&environment, &config.directory)?);
        make_way(&*storage, &config, &content)?;
        let source = open::Source::New(Box::new(content.clone()));
        let mut files = Vec::new();
        let made = open::foundation(environment, &config, lock.clone(), source)
            .and_then(|foundation| Self::build(foundation, &config, &mut files));
        if made.is_err() {
            // The first error is the one to tell; what cannot be removed now is removed by the next attempt.
            let ours = |file: &FileRecord, _: &Content| files.contains(&file.path);
            let _ = clean_up(&*storage, &config, &content, &ours);
            open::remove_lock_file(&*storage, &config.directory);
        }
        made
    }

    /// `files` is told each data file that was made.
    fn build(foundation: Foundation, config: &InstanceConfig, files: &mut Vec<PathBuf>) -> Result<Self> {
        let context = foundation.context(SessionKind::Foreground, "create")?;
        let content = foundation.control.content();
        for record in &content.files {
            let tablespace = content.tablespace(record.tablespace).expect("announced together");
            foundation.files.create(record, tablespace.kind, content.database_id)?;
            files.push(record.path.clone());
        }
        let paths = config.redo_paths(&*foundation.environment.storage);
        let groups: Vec<_> = paths
            .into_iter()
            .map(|path| GroupSpec { members: vec![path], bytes: config.redo_bytes })
            .collect();
        let redo = RedoLog::create(&foundation, &context, &groups)?;
        let instance = Self { core: Core::new(foundation, redo)? };
        instance.fill(&context)?;
        instance.core.alert.line("database created and open");
        Ok(instance)
    }

    fn fill(&self, context: &Context) -> Result<()> {
        let core = &self.core;
        for writer in cache::database_writers(core)? {
            core.processes.start(core, writer)?;
        }
        if core.cache.flash().is_some() {
            core.processes.start(core, flash::writer())?;
        }
        self.start_log_writer_and_checkpointer()?;
        for file in core.files.all() {
            core.space.add_file(core, context, file.number)?;
        }
        let undo = core.control.content();
        let undo = undo.tablespaces.iter().find(|t| t.kind == TablespaceKind::Undo).expect("announced");
        core.transactions.create(core, context, undo.number)?;
        core.space.create(core, context)?;
        core.cache.checkpoint(core, context)?;
        core.control.update(context, |content| {
            content.files.iter_mut().for_each(|file| file.state = FileState::Online);
            content.state = State::Open;
            content.opens = 1;
            Ok(())
        })?;
        core.processes.start(core, super::process::system_monitor())
    }
}

/// Tells this database's files from those of any other, also of one that was made with the same seed elsewhere or at another
/// time. Not 0, which would be a blank header's.
fn draw_id(environment: &Environment, directory: &Path) -> u64 {
    let place = u64::from(crc32fast::hash(directory.as_os_str().as_encoded_bytes()));
    let moment = environment.clock.unix_seconds().rotate_left(32) ^ environment.clock.now().0;
    Rng::new(environment.seed.part(place).part(moment)).next_u64() | 1
}

/// What the control file will say. Refuses what makes no sense before anything is touched.
fn plan(environment: &Environment, config: &InstanceConfig) -> Result<Content> {
    let given = Parameters::new(&BTreeMap::new(), &config.parameters)?;
    if config.redo_groups < GROUPS_MIN {
        return Err(EngineError::Invalid(format!(
            "{} redo groups: at least {GROUPS_MIN} are needed, so that one can be written while the other is emptied",
            config.redo_groups
        )));
    }
    let storage = &*environment.storage;
    let block_bytes = given.block_bytes();
    let log_block_bytes = given.number(Parameter::LogBlockSize) as u32;
    let mut content = Content::new(
        draw_id(environment, &config.directory),
        environment.clock.unix_seconds(),
        block_bytes,
        log_block_bytes,
    );
    content.copies = config.control_paths(storage);
    for (name, value) in &config.parameters {
        let parameter = Parameter::named(name)?;
        content.parameters.insert(parameter.definition().name.to_owned(), parameter.parse(value)?.1);
    }
    let files_max = given.number(Parameter::Files) as usize;
    for tablespace in config.tablespaces(storage) {
        let number = announce_tablespace(&mut content, tablespace.name, tablespace.kind)?;
        let specs = [tablespace.file];
        announce_files(&mut content, number, tablespace.kind, &specs, Lsn(0), block_bytes, files_max)?;
    }
    let redo = config.redo_paths(storage);
    let mut paths: Vec<_> =
        content.files.iter().map(|file| &file.path).chain(&content.copies).chain(&redo).collect();
    paths.sort();
    match paths.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(content),
        Some(pair) => Err(EngineError::Invalid(format!(
            "{} would hold two files; a block device holds one: place the others elsewhere",
            pair[0].display()
        ))),
    }
}

/// Nothing may be where the new database goes, but for the remains of an attempt that the power ended.
fn make_way(storage: &dyn Storage, config: &InstanceConfig, content: &Content) -> Result<()> {
    if open::is_complete(storage, &config.directory) {
        return Err(EngineError::Exists { kind: "database", name: config.directory.display().to_string() });
    }
    if storage.exists(&config.control_path()) {
        let ours = |file: &FileRecord, content: &Content| is_blank_or_ours(storage, file, content);
        clean_up(storage, config, content, &ours)?;
    }
    let redo = config.redo_paths(storage);
    let files = content.files.iter().map(|file| &file.path);
    let other = [config.directory.join(cache::DOUBLEWRITE_NAME)];
    match files.chain(&content.copies).chain(&redo).chain(&other).find(|path| is_taken(storage, path)) {
        Some(path) => Err(EngineError::Exists { kind: "file", name: path.display().to_string() }),
        None => Ok(()),
    }
}

/// A device is there before; whether it is blank is looked at when it is taken.
fn is_taken(storage: &dyn Storage, path: &Path) -> bool {
    storage.exists(path) && !storage.is_device(path)
}

/// Removes what the control file on disk names and is ours; the control file's first copy last, because it is what says that
/// there is something to remove. When it is blank still, only copies of it were made, and `planned` names them.
fn clean_up(
    storage: &dyn Storage,
    config: &InstanceConfig,
    planned: &Content,
    is_ours: &dyn Fn(&FileRecord, &Content) -> bool,
) -> Result<()> {
    let first = config.control_path();
    if !storage.exists(&first) {
        return Ok(());
    }
    let known = control::peek(storage, &first)?;
    let content = known.as_ref().unwrap_or(planned);
    if known.is_some() {
        remove_if_there(storage, &config.directory.join(cache::DOUBLEWRITE_NAME))?;
        for file in content.files.iter().filter(|file| is_ours(file, content)) {
            remove_if_there(storage, &file.path)?;
        }
        let members = content.groups.iter().flat_map(|group| &group.members);
        for member in members.filter(|member| !storage.is_device(&member.path)) {
            remove_if_there(storage, &member.path)?;
        }
    }
    for copy in content.copies.iter().skip(1) {
        let ours = match control::peek(storage, copy) {
            Ok(found) => found.is_none_or(|found| found.database_id == content.database_id),
            Err(_) => false,
        };
        if ours {
            remove_if_there(storage, copy)?;
        }
    }
    remove_if_there(storage, &config.directory.join(super::alert::FILE_NAME))?;
    remove_if_there(storage, &first)
}
