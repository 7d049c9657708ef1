//! What an administrator does: ALTER SYSTEM, tablespaces and their files, redo groups.

use super::{Call, Session};
use crate::files::admin::FileSpec;
use crate::files::control::TablespaceKind;
use crate::instance::Applied;
use crate::parameter::{Parameter, Scope};
use crate::redo::GroupSpec;
use crate::space::Table;
use crate::{EngineError, Result};
use std::sync::Arc;

/// `ALTER SYSTEM …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterSystem {
    /// `FLUSH BUFFER_CACHE`.
    FlushBufferCache,
    /// `FLUSH FLASH_CACHE`.
    FlushFlashCache,
    /// `SWITCH LOGFILE`.
    SwitchLogfile,
    /// `CHECKPOINT`.
    Checkpoint,
    /// `SET name = value SCOPE = …`.
    Set {
        /// A parameter.
        name: String,
        /// As it is typed.
        value: String,
        /// Where it counts; when none, now if it can, else from the next start on.
        scope: Option<Scope>,
    },
}

impl Session {
    /// `SHUTDOWN ABORT`: the instance stops at once, for everybody. Nothing is rolled back; the next open recovers.
    pub fn shutdown_abort(&self) {
        self.core.health.abort();
    }

    /// Does it. The result says when a parameter counts; anything else counts now.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] and [`EngineError::Invalid`] for parameters, what storage says.
    pub fn alter_system(&mut self, what: &AlterSystem) -> Result<Applied> {
        self.call(|call| call.alter_system(what))
    }

    /// Adds a redo group, of this number or the next free one; its number.
    ///
    /// # Errors
    /// [`EngineError::Exists`], [`EngineError::Invalid`], what storage says.
    pub fn add_logfile_group(&mut self, group: Option<u32>, spec: &GroupSpec) -> Result<u32> {
        self.call(|call| call.core.redo.add_group(call.context, group, spec))
    }

    /// Drops a redo group; refused when it is in use.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], [`EngineError::Invalid`], what storage says.
    pub fn drop_logfile_group(&mut self, group: u32) -> Result<()> {
        self.call(|call| call.core.redo.drop_group(call.context, group))
    }

    /// Makes a tablespace: for tables and indexes, for undo (with its undo segments), or for sorts.
    ///
    /// # Errors
    /// [`EngineError::Exists`], [`EngineError::Invalid`], what storage says; nothing is left behind then.
    pub fn create_tablespace(&mut self, name: &str, kind: TablespaceKind, files: &[FileSpec]) -> Result<()> {
        self.call(|call| call.create_tablespace(name, kind, files))
    }

    /// Makes an undo tablespace. New transactions go there after `ALTER SYSTEM SET undo_tablespace`.
    ///
    /// # Errors
    /// As [`Session::create_tablespace`].
    pub fn create_undo_tablespace(&mut self, name: &str, files: &[FileSpec]) -> Result<()> {
        self.create_tablespace(name, TablespaceKind::Undo, files)
    }

    /// Adds a file to a tablespace: a data file, or a temp file to one for sorts.
    ///
    /// # Errors
    /// As [`Session::create_tablespace`].
    pub fn add_datafile(&mut self, tablespace: &str, file: &FileSpec) -> Result<()> {
        self.call(|call| call.core.add_file(call.context, tablespace, file).map(|_| ()))
    }

    /// Drops a tablespace and its files. What is in it is dropped too when `including_contents`. Commits.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`]; [`EngineError::Invalid`] when it is not empty or still needed; what storage says.
    pub fn drop_tablespace(&mut self, name: &str, including_contents: bool) -> Result<()> {
        self.call(|call| call.drop_tablespace(name, including_contents))
    }
}

impl Call<'_> {
    fn alter_system(&mut self, what: &AlterSystem) -> Result<Applied> {
        let (core, context) = (&**self.core, self.context);
        match what {
            AlterSystem::FlushBufferCache => core.cache.flush(core, context)?,
            AlterSystem::FlushFlashCache => core.cache.flash().into_iter().for_each(|flash| flash.flush()),
            AlterSystem::SwitchLogfile => core.redo.switch_logfile(core, context)?,
            AlterSystem::Checkpoint => core.cache.checkpoint(core, context)?,
            AlterSystem::Set { name, value, scope } => {
                let applied = core.set_parameter(context, name, value, *scope)?;
                if Parameter::named(name)? == Parameter::UndoTablespace && applied == Applied::Now {
                    let content = core.control.content();
                    let tablespace = content.tablespace_named(value).map(|tablespace| tablespace.number);
                    core.transactions.use_tablespace(tablespace.expect("checked when it was set"))?;
                }
                return Ok(applied);
            }
        }
        Ok(Applied::Now)
    }

    /// An undo tablespace is announced, with its files, before its segments are made. When that fails it is dropped again.
    fn create_tablespace(&mut self, name: &str, kind: TablespaceKind, files: &[FileSpec]) -> Result<()> {
        let (core, context) = (&**self.core, self.context);
        let number = core.create_tablespace(context, name, kind, files)?;
        if kind == TablespaceKind::Undo
            && let Err(error) = core.transactions.create(core, context, number)
        {
            core.drop_tablespace(context, name)?;
            core.space.forget_tablespace(number);
            return Err(error);
        }
        Ok(())
    }

    /// With the catalog locked, no segment is made in the tablespace between the last look and its end.
    fn drop_tablespace(&mut self, name: &str, including_contents: bool) -> Result<()> {
        self.commit()?;
        let number = self.named(name)?;
        if including_contents {
            self.drop_contents(number)?;
        }
        let (core, context) = (&**self.core, self.context);
        let _ddl = core.space.catalog.lock(context);
        let content = core.control.content();
        let tablespace = content.tablespace(number).expect("looked up above");
        match tablespace.kind {
            TablespaceKind::Permanent => {
                if core.space.has_segments(core, context, number)? {
                    return Err(EngineError::Invalid(format!(
                        "tablespace {name} is not empty; drop its tables and indexes first, or type INCLUDING CONTENTS"
                    )));
                }
            }
            TablespaceKind::Undo => core.transactions.detach(core, context, number)?,
            TablespaceKind::Temporary => {
                let others = content.tablespaces.iter().filter(|t| t.kind == TablespaceKind::Temporary);
                if others.count() == 1 {
                    return Err(EngineError::Invalid(format!("{name} is the only tablespace for sorts")));
                }
            }
        }
        core.drop_tablespace(context, name)?;
        core.space.forget_tablespace(number);
        Ok(())
    }

    fn named(&self, name: &str) -> Result<u16> {
        let content = self.core.control.content();
        let tablespace = content.tablespace_named(name).ok_or_else(|| EngineError::NoSuch {
            kind: "tablespace",
            name: name.to_owned(),
            hint: String::new(),
        })?;
        if tablespace.number == crate::space::SYSTEM {
            return Err(EngineError::Invalid(
                "tablespace SYSTEM holds the catalog and cannot be dropped".into(),
            ));
        }
        Ok(tablespace.number)
    }

    fn drop_contents(&mut self, tablespace: u16) -> Result<()> {
        let tables: Vec<Arc<Table>> = self.core.space.catalog.tables();
        for table in tables {
            if table.segment.tablespace == tablespace {
                self.drop_table(&table.name)?;
                continue;
            }
            for index in table.indexes.iter().filter(|index| index.segment.tablespace == tablespace) {
                self.drop_index(&index.name)?;
            }
        }
        Ok(())
    }
}
