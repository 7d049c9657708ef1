//! A mount's calls in NFSv4: the export's root, and its files; as whom they are made is in [`super::identity`].

use super::caller::Trouble;
use super::control::{Control, Root};
use super::error::NfsError;
use super::file::{FileState, How, lock};
use super::target::Version;
use crate::v3::Space;
use crate::v4::Minor;
use crate::v4::attributes::Set;
use crate::v4::compound::{Compound, Op};
use crate::v4::open::{Claim, Open, StateId};
use crate::v4::recovery::{Lease, Remedy, remedy};
use crate::{Attributes, Fault, Handle, Status};
use units::{Nanos, clock};

/// What is taken where a server does not say how long a transfer may be.
const TRANSFER_DEFAULT: u64 = 1 << 16;

impl Control {
    /// 1. client id and session, 2. nothing is left to reclaim: before that, a 4.1 server opens nothing, 3. the export's root.
    pub(super) fn attach_v4(&mut self) -> Result<Root, NfsError> {
        let way = self.way.clone();
        self.perform("EXCHANGE_ID", way.limit, Self::introduce)?.map_err(|fault| way.of_export(fault))?;
        let names: Vec<&str> = way.target.export.split('/').filter(|name| !name.is_empty()).collect();
        let mut directory = None;
        for name in names {
            let found = self.perform("LOOKUP", way.limit, |control, deadline| {
                control.lookup_v4(directory.as_ref(), name, deadline)
            })?;
            directory = Some(found.map_err(|fault| way.of_export(fault))?);
        }
        let wants_layouts = way.target.version == Version::Pnfs;
        let (handle, answer) = self
            .perform("GETATTR", way.limit, |control, deadline| {
                let build = |c: &mut Compound<'_>| {
                    start_at(c, directory.as_ref());
                    c.get_handle();
                    c.get_attributes(if wants_layouts { Set::LAYOUT_SERVER } else { Set::SERVER });
                };
                control.compound(deadline, build, |results| {
                    results.done(if directory.is_some() { Op::PutFh } else { Op::PutRootFh })?;
                    Ok((results.handle()?, results.attributes()?))
                })
            })?
            .map_err(|fault| way.of_export(fault))?;
        self.identity.lease = Lease::new(answer.lease_seconds, clock::now());
        let most = |told: Option<u64>| {
            let told = told.filter(|&bytes| bytes > 0).unwrap_or(TRANSFER_DEFAULT);
            told.min(u64::from(way.payload_bytes_max)) as u32
        };
        let layouts = wants_layouts.then(|| self.layout_kind(&answer.layout_kinds)).transpose()?;
        Ok(Root { handle, read_max: most(answer.read_max), write_max: most(answer.write_max), layouts })
    }

    pub(super) fn reclaim_complete(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        if self.identity.minor == Minor::V0 {
            return Ok(());
        }
        let build = |c: &mut Compound<'_>| c.reclaim_complete();
        match self.compound(deadline, build, |results| results.done(Op::ReclaimComplete)) {
            Err(Trouble::Fault(Fault::Refused { status: Status::COMPLETE_ALREADY, .. })) => Ok(()),
            other => other,
        }
    }

    pub(super) fn lookup_v4(
        &mut self,
        directory: Option<&Handle>,
        name: &str,
        deadline: Nanos,
    ) -> Result<Handle, Trouble> {
        let build = |c: &mut Compound<'_>| {
            start_at(c, directory);
            c.lookup(name);
            c.get_handle();
        };
        self.compound(deadline, build, |results| {
            results.done(if directory.is_some() { Op::PutFh } else { Op::PutRootFh })?;
            results.done(Op::Lookup)?;
            results.handle()
        })
    }

    /// Opens or makes a file in `directory`.
    pub(super) fn open_v4(
        &mut self,
        directory: &Handle,
        name: &str,
        how: How,
        deadline: Nanos,
    ) -> Result<(Handle, StateId, u32), Trouble> {
        let claim = match how {
            How::Read | How::Write => Claim::Name(name),
            How::Create { mode } => Claim::CreateName(name, mode),
            How::New { verifier, mode } => Claim::CreateNew(name, verifier, mode),
        };
        self.open_claim(directory, claim, how.writes(), deadline)
    }

    /// Result: handle, state, and how many calls its owner has made.
    fn open_claim(
        &mut self,
        start: &Handle,
        claim: Claim<'_>,
        write: bool,
        deadline: Nanos,
    ) -> Result<(Handle, StateId, u32), Trouble> {
        self.introduce(deadline)?;
        let client_id = self.identity.client_id.unwrap_or_default();
        let (minor, owner) = (self.identity.minor, self.identity.owner());
        let open = Open { client_id, owner: &owner, sequence: 0, write, claim };
        let build = |c: &mut Compound<'_>| {
            c.put(start);
            c.open(minor, &open);
            c.get_handle();
        };
        lock(&self.identity.back).opening(true);
        let opened = self.compound(deadline, build, |results| {
            results.done(Op::PutFh)?;
            Ok((results.opened()?, results.handle()?))
        });
        lock(&self.identity.back).opening(false);
        if !matches!(opened, Err(Trouble::Lost(_))) {
            self.identity.next_owner();
        }
        let (opened, handle) = opened?;
        if let Some(delegation) = opened.delegation {
            lock(&self.identity.back).delegated(handle, delegation);
        }
        let (mut state, mut calls) = (opened.state, 1);
        if opened.confirm {
            let build = |c: &mut Compound<'_>| c.open_confirm(&handle, state, calls);
            state = self.compound(deadline, build, |results| results.confirmed())?;
            calls += 1;
        }
        if opened.delegation.is_some() && !self.return_delegations(deadline) {
            // The file is open all the same.
            self.bell.iter().for_each(|bell| bell.ring());
        }
        Ok((handle, state, calls))
    }

    /// Gives back the delegations that came unasked; whether none is left. Each is tried once: what is in the way is made anew with the next call.
    pub(super) fn return_delegations(&mut self, deadline: Nanos) -> bool {
        loop {
            let next = lock(&self.identity.back).delegation();
            let Some((file, state)) = next else { return true };
            let build = |c: &mut Compound<'_>| c.return_delegation(&file, state);
            match self.compound(deadline, build, |results| results.returned()) {
                Err(Trouble::Lost(why)) => {
                    self.hang_up(&why);
                    return false;
                }
                Err(Trouble::Fault(fault)) => match fault.status().map(remedy) {
                    // One that the server does not know any more is back.
                    None | Some(Remedy::None | Remedy::Open) => {}
                    Some(remedy) => {
                        self.identity.lose(remedy);
                        return false;
                    }
                },
                Ok(()) | Err(Trouble::Rpc(_)) => {}
            }
            lock(&self.identity.back).undelegated(state);
        }
    }

    /// Opens again what the server has forgotten: by reclaiming while it is in its grace, else by name. Then says that this was all.
    pub(super) fn reopen_all(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let files = self.files.clone();
        let mut by_name = Vec::new();
        let generation = self.identity.generation;
        for file in files.iter().filter(|file| file.generation() != generation) {
            match self.open_claim(&file.handle, Claim::Previous, file.write, deadline) {
                Ok((_, state, calls)) => file.reopened(state, calls, self.identity.generation),
                Err(Trouble::Fault(Fault::Refused { status, .. })) if is_too_late(status) => {
                    by_name.push(file)
                }
                Err(other) => return Err(other),
            }
        }
        self.reclaim_complete(deadline)?;
        by_name.into_iter().try_for_each(|file| self.reopen_by_name(file, deadline))
    }

    /// Opens one file again by its name; it must still be the same file.
    pub(super) fn reopen_by_name(&mut self, file: &FileState, deadline: Nanos) -> Result<(), Trouble> {
        let claim = Claim::Name(&file.name);
        let (handle, state, calls) = self.open_claim(&file.directory, claim, file.write, deadline)?;
        if handle != file.handle {
            return Err(Fault::Refused { status: Status::STALE, call: "OPEN" }.into());
        }
        file.reopened(state, calls, self.identity.generation);
        Ok(())
    }

    pub(super) fn close_v4(&mut self, file: &FileState, deadline: Nanos) -> Result<(), Trouble> {
        let (state, calls) = file.state();
        self.compound(deadline, |c| c.close(&file.handle, state, calls), |results| results.closed())
    }

    pub(super) fn attributes_v4(&mut self, handle: &Handle, deadline: Nanos) -> Result<Attributes, Trouble> {
        let build = |c: &mut Compound<'_>| {
            c.put(handle);
            c.get_attributes(Set::FILE);
        };
        self.compound(deadline, build, |results| {
            results.done(Op::PutFh)?;
            Ok(results.attributes()?.file()?)
        })
    }

    pub(super) fn space_v4(&mut self, handle: &Handle, deadline: Nanos) -> Result<Space, Trouble> {
        let build = |c: &mut Compound<'_>| {
            c.put(handle);
            c.get_attributes(Set::SERVER);
        };
        self.compound(deadline, build, |results| {
            results.done(Op::PutFh)?;
            let answer = results.attributes()?;
            // A server need not say: then nothing speaks against writing.
            let most = u64::MAX >> 1;
            let (total, available) =
                (answer.space_total.unwrap_or(most), answer.space_available.unwrap_or(most));
            Ok(Space { total, available })
        })
    }

    pub(super) fn set_size_v4(
        &mut self,
        file: &FileState,
        size: u64,
        deadline: Nanos,
    ) -> Result<(), Trouble> {
        let (state, _) = file.state();
        self.compound(deadline, |c| c.set_size(&file.handle, state, size), |results| results.size_set())
    }

    pub(super) fn remove_v4(
        &mut self,
        directory: &Handle,
        name: &str,
        deadline: Nanos,
    ) -> Result<(), Trouble> {
        let build = |c: &mut Compound<'_>| {
            c.put(directory);
            c.remove(name);
        };
        self.compound(deadline, build, |results| {
            results.done(Op::PutFh)?;
            results.removed()
        })
    }
}

fn start_at(compound: &mut Compound<'_>, directory: Option<&Handle>) {
    match directory {
        Some(handle) => compound.put(handle),
        None => compound.put_root(),
    }
}

/// The server does not know the file as open before, or no longer asks.
fn is_too_late(status: Status) -> bool {
    matches!(
        status,
        Status::NO_GRACE | Status::RECLAIM_BAD | Status::RECLAIM_CONFLICT | Status::INVAL | Status::NOTSUPP
    )
}
