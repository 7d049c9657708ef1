//! What servers have lost is written again, and what takes too much memory here is committed: one call at a time by the server that was mounted.

use super::caller::Trouble;
use super::control::Control;
use super::error::NfsError;
use super::file::{FileState, Place};
use super::mount::{Shared, refused};
use super::target::Version;
use super::uncommitted::Lost;
use crate::transfer::{Stability, Verifier, WriteResult};
use crate::v3;
use crate::v3::transfer::{read_commit, read_write};
use crate::v4::compound::{Compound, Op};
use crate::v4::recovery::{Remedy, remedy};
use crate::xdr::Writer;
use crate::{Fault, Status};
use std::sync::atomic::Ordering;
use units::Nanos;

impl Shared {
    /// Writes again, on stable storage, what servers have lost of `file`. What cannot be written now is kept for the next time.
    pub(super) fn mend(&self, file: &FileState) -> Result<(), NfsError> {
        let lost = file.uncommitted.take_lost();
        if lost.is_empty() {
            return Ok(());
        }
        let taken: Vec<_> = lost.iter().map(Lost::range).collect();
        let mut left = lost.into_iter();
        let mut result = Ok(());
        while result.is_ok()
            && let Some(piece) = left.next()
        {
            result = self.write_again(file, &piece);
            if result.is_err() {
                left = std::iter::once(piece).chain(left).collect::<Vec<_>>().into_iter();
            }
        }
        let written = taken.len() - left.len();
        file.uncommitted.mended(&taken, left.collect());
        self.way.alerts.say(match &result {
            Ok(()) => format!("{}: {written} writes that a server had lost were written again", file.path),
            Err(error) => format!(
                "{}: of {} writes that a server had lost, {written} were written again: {error}",
                file.path,
                taken.len()
            ),
        });
        result
    }

    /// Commits what the server that was mounted has of `file`: to have memory for more, or to know whether it is still there. What is not is
    /// written again before this returns, or stays lost.
    pub(super) fn commit(&self, file: &FileState) {
        let era = self.era.load(Ordering::Acquire);
        let due = file.uncommitted.commits();
        if let Some((place, covers)) = due.into_iter().find(|(place, _)| *place == Place::Server) {
            let verifier = self.on_file(file, "COMMIT", |control, deadline| control.commit(file, deadline));
            file.uncommitted.committed(&place, verifier.ok(), covers);
        }
        file.uncommitted.is_there(era);
        let _ = self.mend(file);
    }

    fn write_again(&self, file: &FileState, piece: &Lost) -> Result<(), NfsError> {
        let most = self.root.write_max as usize;
        let mut done = 0;
        while done < piece.data.len() {
            let data = &piece.data[done..piece.data.len().min(done + most)];
            let at = piece.offset + done as u64;
            let wrote = self
                .on_file(file, "WRITE", |control, deadline| control.write_stable(file, at, data, deadline))?;
            if wrote.bytes == 0 || wrote.stability == Stability::Unstable {
                let fault = Fault::Refused { status: Status::IO, call: "WRITE" };
                return Err(refused(&file.path, fault));
            }
            done += wrote.bytes as usize;
        }
        Ok(())
    }

    /// A call about an open file; it is opened again once where the server dropped its state.
    fn on_file<T>(
        &self,
        file: &FileState,
        what: &'static str,
        mut attempt: impl FnMut(&mut Control, Nanos) -> Result<T, Trouble>,
    ) -> Result<T, NfsError> {
        let mut reopened = false;
        let result = self.control().perform(what, self.way.limit, |control, deadline| {
            match attempt(control, deadline) {
                Err(Trouble::Fault(fault))
                    if !reopened && fault.status().is_some_and(|status| remedy(status) == Remedy::Open) =>
                {
                    reopened = true;
                    control.reopen_by_name(file, deadline)?;
                    attempt(control, deadline)
                }
                other => other,
            }
        })?;
        result.map_err(|fault| refused(&file.path, fault))
    }
}

impl Control {
    fn write_stable(
        &mut self,
        file: &FileState,
        offset: u64,
        data: &[u8],
        deadline: Nanos,
    ) -> Result<WriteResult, Trouble> {
        let bytes = data.len() as u32;
        let place = |w: &mut Writer| {
            w.u64(offset);
            if self.way.target.version == Version::V3 {
                w.u32(bytes);
            }
            w.u32(Stability::File as u32);
            w.opaque(data);
        };
        if self.way.target.version == Version::V3 {
            let mut arguments = Writer::new();
            file.handle.encode(&mut arguments);
            place(&mut arguments);
            return self.call(v3::WRITE, |w| w.raw(arguments.bytes()), |r| read_write(r, bytes), deadline);
        }
        let (state, _) = file.state();
        let mut arguments = Writer::new();
        arguments.fixed(&state.0);
        place(&mut arguments);
        let build = |c: &mut Compound<'_>| {
            c.put(&file.handle);
            c.op(Op::Write).raw(arguments.bytes());
        };
        self.compound(deadline, build, |results| results.written(bytes))
    }

    fn commit(&mut self, file: &FileState, deadline: Nanos) -> Result<Verifier, Trouble> {
        let all = |w: &mut Writer| {
            w.u64(0);
            w.u32(0);
        };
        if self.way.target.version == Version::V3 {
            let encode = |w: &mut Writer| {
                file.handle.encode(w);
                all(w);
            };
            return self.call(v3::COMMIT, encode, read_commit, deadline);
        }
        let build = |c: &mut Compound<'_>| {
            c.put(&file.handle);
            all(c.op(Op::Commit));
        };
        self.compound(deadline, build, |results| results.committed())
    }
}
