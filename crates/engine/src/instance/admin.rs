//! `ALTER SYSTEM SET`.

use super::Core;
use crate::parameter::{Modifiable, Parameter, Scope};
use crate::{Context, EngineError, Result};

/// When a changed parameter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It does already.
    Now,
    /// From the next start on.
    AtNextStart,
}

impl Core {
    /// Sets a parameter. Without `scope`: at once and for later starts when it can change at once, for later starts
    /// otherwise. What an instance is started with beats what is kept.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] with the nearest name, [`EngineError::Invalid`] with what may be typed, what storage says.
    pub fn set_parameter(
        &self,
        context: &Context,
        name: &str,
        value: &str,
        scope: Option<Scope>,
    ) -> Result<Applied> {
        let parameter = Parameter::named(name)?;
        let (_, text) = parameter.parse(value)?;
        let definition = parameter.definition();
        if parameter == Parameter::UndoTablespace {
            self.check_undo_tablespace(&text)?;
        }
        let now = definition.modifiable == Modifiable::Now;
        let scope = scope.unwrap_or(if now { Scope::Both } else { Scope::Spfile });
        if definition.modifiable == Modifiable::Creation || (scope != Scope::Spfile && !now) {
            // It says why, and what to type.
            self.parameters.set(parameter, value)?;
        }
        if scope != Scope::Memory {
            self.control.update(context, |content| {
                content.parameters.insert(definition.name.to_owned(), text.clone());
                Ok(())
            })?;
        }
        if scope != Scope::Spfile {
            self.parameters.set(parameter, value)?;
        }
        self.alert.line(&format!("ALTER SYSTEM SET {} = {text} SCOPE = {scope:?}", definition.name));
        Ok(if scope == Scope::Spfile { Applied::AtNextStart } else { Applied::Now })
    }

    fn check_undo_tablespace(&self, name: &str) -> Result<()> {
        use crate::files::control::TablespaceKind;
        let content = self.control.content();
        match content.tablespace_named(name) {
            Some(tablespace) if tablespace.kind == TablespaceKind::Undo => Ok(()),
            Some(_) => Err(EngineError::Invalid(format!(
                "{name} is no undo tablespace; make one with CREATE UNDO TABLESPACE"
            ))),
            None => Err(EngineError::NoSuch {
                kind: "tablespace",
                name: name.to_owned(),
                hint: "; make it with CREATE UNDO TABLESPACE".into(),
            }),
        }
    }
}
