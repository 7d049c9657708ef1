//! A mount's calls in NFSv3, with MOUNT and the port mapper.

use super::caller::{Caller, Trouble};
use super::control::{Control, Root};
use super::error::NfsError;
use super::file::How;
use crate::rpc::Procedure;
use crate::v3::{self, Create};
use crate::xdr::{Reader, Writer};
use crate::{Attributes, Fault, Handle, Kind, Status, mount, portmap};
use units::{Nanos, clock};

/// `NFS_PROGRAM` of MOUNT.
const MOUNT_PROGRAM: u32 = 100_005;
const MOUNT_VERSION: u32 = 3;

impl Control {
    /// 1. the port of MOUNT, 2. the root's handle, 3. its limits.
    pub(super) fn attach_v3(&mut self) -> Result<Root, NfsError> {
        let way = self.way.clone();
        let limit = way.limit;
        mount::check_path(&way.target.export)
            .map_err(|malformed| NfsError::Malformed { server: way.target.server.clone(), malformed })?;
        let port = match way.target.mount_port {
            Some(port) => port,
            None => self
                .beside(
                    portmap::PORT,
                    portmap::GET_PORT,
                    |w| portmap::get_port(w, MOUNT_PROGRAM, MOUNT_VERSION),
                    |r| Ok(portmap::read_get_port(r)?),
                )?
                .map_err(|fault| way.of_export(fault))?
                .ok_or_else(|| {
                    way.unreachable("the port mapper knows no MOUNT, version 3, over TCP".into())
                })?,
        };
        let path = |w: &mut Writer| mount::path(w, &way.target.export);
        let mounted = self.beside(port, mount::MNT, path, mount::read_mnt)?.map_err(|f| way.of_export(f))?;
        if !mounted.auth_sys {
            let fault = Fault::Refused { status: Status::WRONGSEC, call: "MNT" };
            return Err(way.of_export(fault));
        }
        let limits = self
            .perform("FSINFO", limit, |control, deadline| {
                control.call(v3::FSINFO, |w| v3::of(w, &mounted.root), v3::read_fsinfo, deadline)
            })?
            .map_err(|fault| way.of_export(fault))?;
        let most = way.payload_bytes_max;
        let (read_max, write_max) = (limits.read_max.min(most), limits.write_max.min(most));
        Ok(Root { handle: mounted.root, read_max, write_max, layouts: None })
    }

    /// A call of another program, over a connection of its own.
    fn beside<T>(
        &mut self,
        port: u16,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer),
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault>,
    ) -> Result<Result<T, Fault>, NfsError> {
        let deadline = clock::now() + self.way.limit;
        let (_, connection) =
            self.way.connect(0, port, deadline).map_err(|tried| self.way.unreachable(tried))?;
        let mut arguments = Writer::new();
        encode(&mut arguments);
        if procedure == mount::MNT {
            self.way.seen.called("MOUNT");
        }
        match Caller::new(connection).call(procedure, &self.way.credential, arguments.bytes(), deadline) {
            Ok(results) => Ok(read(&mut Reader::new(&results))),
            Err(Trouble::Lost(why)) => Err(self.way.unreachable(why)),
            Err(Trouble::Fault(fault)) => Ok(Err(fault)),
            Err(Trouble::Rpc(refusal)) => {
                Err(NfsError::Rpc { server: self.way.target.server.clone(), refusal })
            }
        }
    }

    pub(super) fn lookup_v3(
        &mut self,
        directory: &Handle,
        name: &str,
        deadline: Nanos,
    ) -> Result<Handle, Trouble> {
        let found = self.call(v3::LOOKUP, |w| v3::named(w, directory, name), v3::read_lookup, deadline)?;
        found.handle.ok_or(Trouble::Lost("LOOKUP without a handle".into()))
    }

    /// Finds or makes a file, and asks whether it may be used: version 3 has no open that could refuse.
    pub(super) fn open_v3(
        &mut self,
        directory: &Handle,
        name: &str,
        how: How,
        deadline: Nanos,
    ) -> Result<Handle, Trouble> {
        let create = match how {
            How::Read | How::Write => None,
            How::Create { mode } => Some(Create::Unchecked { mode }),
            How::New { verifier, .. } => Some(Create::Exclusive { verifier }),
        };
        let mut handle = None;
        if let Some(create) = create {
            let encode = |w: &mut Writer| v3::create(w, directory, name, create);
            handle = match self.call(v3::CREATE, encode, v3::read_create, deadline) {
                Ok(made) => made.handle,
                // `nfs3_server` refuses any name that exists. Where that may be, the file that has it is meant.
                Err(trouble @ Trouble::Fault(Fault::Refused { status: Status::EXIST, .. }))
                    if matches!(how, How::Create { .. }) =>
                {
                    let found = self.lookup_v3(directory, name, deadline)?;
                    let is_file = self.attributes_v3(&found, deadline)?.kind == Kind::Regular;
                    if !is_file {
                        return Err(trouble);
                    }
                    Some(found)
                }
                Err(trouble) => return Err(trouble),
            };
        }
        let handle = match handle {
            Some(handle) => handle,
            None => self.lookup_v3(directory, name, deadline)?,
        };
        if let How::New { mode, .. } = how {
            let encode = |w: &mut Writer| v3::setattr(w, &handle, Some(mode), None);
            self.call(v3::SETATTR, encode, v3::read_setattr, deadline)?;
        }
        let access = self.call(v3::ACCESS, |w| v3::access(w, &handle), v3::read_access, deadline)?;
        if !access.read || (how.writes() && !access.write) {
            return Err(Fault::Refused { status: Status::ACCESS, call: "ACCESS" }.into());
        }
        Ok(handle)
    }

    pub(super) fn attributes_v3(&mut self, handle: &Handle, deadline: Nanos) -> Result<Attributes, Trouble> {
        self.call(v3::GETATTR, |w| v3::of(w, handle), v3::read_getattr, deadline)
    }

    pub(super) fn set_size_v3(&mut self, handle: &Handle, size: u64, deadline: Nanos) -> Result<(), Trouble> {
        self.call(v3::SETATTR, |w| v3::setattr(w, handle, None, Some(size)), v3::read_setattr, deadline)
    }

    pub(super) fn remove_v3(
        &mut self,
        directory: &Handle,
        name: &str,
        deadline: Nanos,
    ) -> Result<(), Trouble> {
        self.call(v3::REMOVE, |w| v3::named(w, directory, name), v3::read_remove, deadline)
    }
}
