//! NFSv4.0 and 4.1 with pNFS, as a server speaks them: a compound is carried out operation by operation. Sources: RFC 7530, RFC 8881.
//!
//! [`state`] (clients, sessions, open files, layouts), [`identity`] (the operations that make them), [`files`] (names and data), [`attributes`],
//! [`delegation`], [`layout`] (pNFS), [`callback`] (calls to clients).

mod attributes;
pub(crate) mod callback;
mod delegation;
mod files;
mod identity;
pub(crate) mod layout;
pub(crate) mod state;

use self::state::{Begun, Session};
use crate::connection::{Context, Refused};
use crate::counters::count;
use crate::tree::Inode;
use crate::wire::{Grant, Stop};
use nfs::Status;
use nfs::xdr::{Reader, Writer};
use std::sync::Arc;

/// Longest tag, bytes.
const TAG_BYTES_MAX: usize = 1024;
/// Most operations in a compound.
const OPERATIONS_MAX: usize = 64;
/// Replies up to this length are kept for a repetition, whether or not that was asked for.
const KEPT_BYTES_MAX: usize = 2048;

/// A compound while it is carried out.
struct Run<'a> {
    cx: Context<'a>,
    minor: u32,
    session: Option<Arc<Session>>,
    /// The current file, and the layout that its handle came by.
    current: Option<(Arc<Inode>, Grant)>,
    saved: Option<(Arc<Inode>, Grant)>,
}

/// Carries out a COMPOUND.
pub(crate) fn compound(cx: Context<'_>, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Refused> {
    let tag = r.opaque("a tag", TAG_BYTES_MAX)?;
    let (minor, number) = (r.u32()?, r.count("operations", OPERATIONS_MAX)?);
    let node = cx.node;
    let start = w.len();
    w.u32(0);
    w.opaque(tag);
    let count_at = w.len();
    w.u32(0);
    if minor > 1 {
        w.set_u32(start, Status::MINOR_VERS_MISMATCH.0);
        return Ok(());
    }
    let mut run = Run { cx, minor, session: None, current: None, saved: None };
    let mut begun: Option<Begun> = None;
    let (mut status, mut done, mut other) = (0, 0, true);
    while status == 0 && done < number {
        let Ok(op) = r.u32() else {
            // What was done before counts, and so do its results.
            status = Status::BADXDR.0;
            break;
        };
        let known = matches!(op, 3..=11 | 15..=18 | 20 | 22..=44 | 46..=51 | 53..=59);
        w.u32(if known { op } else { Status::OP_ILLEGAL.0 });
        let at = w.len();
        w.u32(0);
        let result = if op == 53 && done == 0 && minor == 1 {
            match run.sequence(r, w) {
                Ok((Some(kept), _)) => {
                    // The same call again: the same reply, and nothing is done.
                    count(&node.counters.replayed);
                    return replace(w, start, &kept);
                }
                Ok((None, it)) => {
                    begun = it;
                    Ok(())
                }
                Err(stop) => Err(stop),
            }
        } else if known {
            if matches!(op, 5 | 25 | 38) {
                other = false;
            }
            run.operation(op, done == 0, r, w)
        } else {
            Err(Status::OP_ILLEGAL.into())
        };
        if let Err(stop) = result {
            status = match stop {
                Stop::Status(status) => status.0,
                Stop::Malformed => Status::BADXDR.0,
            };
            w.set_u32(at, status);
        }
        done += 1;
    }
    if other {
        count(&node.counters.others);
    }
    w.set_u32(start, status);
    w.set_u32(count_at, done as u32);
    if let Some(begun) = begun {
        let reply = &w.bytes()[start..];
        begun.end((begun.keep || reply.len() <= KEPT_BYTES_MAX).then(|| reply.to_vec()));
    }
    Ok(())
}

/// Writes `kept` in place of what was appended since `start`.
fn replace(w: &mut Writer, start: usize, kept: &[u8]) -> Result<(), Refused> {
    let mut whole = Writer::new();
    whole.raw(&w.bytes()[..start]);
    whole.raw(kept);
    *w = whole;
    Ok(())
}

impl Run<'_> {
    fn current(&self) -> Result<&Arc<Inode>, Status> {
        self.current.as_ref().map(|(inode, _)| inode).ok_or(Status::NOFILEHANDLE)
    }

    /// The current file, which is a regular one, and the layout that its handle came by.
    fn file(&self) -> Result<(Arc<Inode>, Grant), Status> {
        let (inode, grant) = self.current.as_ref().ok_or(Status::NOFILEHANDLE)?;
        if inode.entries.is_some() {
            return Err(Status::ISDIR);
        }
        Ok((inode.clone(), *grant))
    }

    /// Results are appended only by what succeeds.
    fn operation(&mut self, op: u32, first: bool, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
        match op {
            41..=44 | 57 if self.minor == 0 => return Err(Status::OP_ILLEGAL.into()),
            // Those that make and end sessions come without one.
            41..=44 | 57 => {}
            30 | 35 | 36 | 20 if self.minor == 1 => return Err(Status::NOTSUPP.into()),
            _ if self.minor == 1 && self.session.is_none() => {
                let status = if first { Status::OP_NOT_IN_SESSION } else { Status::SEQUENCE_POS };
                return Err(status.into());
            }
            _ => {}
        }
        match op {
            3 => self.access(r, w),
            4 => self.close(r, w),
            5 => self.commit(r, w),
            6 => self.create(r, w),
            8 => self.delegreturn(r),
            9 => self.getattr(r, w),
            10 => self.getfh(w),
            15 => self.lookup(r),
            18 => self.open(r, w),
            20 => self.open_confirm(r, w),
            22 => self.putfh(r),
            23 | 24 => self.putrootfh(),
            25 => self.read(r, w),
            26 => self.readdir(r, w),
            28 => self.remove(r, w),
            29 => self.rename(r, w),
            30 => self.renew(r),
            31 => self.restorefh(),
            32 => self.savefh(),
            34 => self.setattr(r, w),
            35 => self.set_client_id(r, w),
            36 => self.confirm_client_id(r),
            38 => self.write(r, w),
            41 => self.bind_connection(r, w),
            42 => self.exchange_id(r, w),
            43 => self.create_session(r, w),
            44 => self.destroy_session(r),
            45 => Err(Status::NOTSUPP.into()),
            47 => self.device_info(r, w),
            49 => self.layout_commit(r, w),
            50 => self.layout_get(r, w),
            51 => self.layout_return(r, w),
            53 => Err(Status::SEQUENCE_POS.into()),
            57 => self.destroy_client_id(r),
            58 => self.reclaim_complete(r),
            _ => Err(Status::NOTSUPP.into()),
        }
    }

    fn putrootfh(&mut self) -> Result<(), Stop> {
        self.current = Some((self.cx.shared.tree.get(crate::tree::ROOT)?, Grant::default()));
        Ok(())
    }

    fn savefh(&mut self) -> Result<(), Stop> {
        self.current()?;
        self.saved = self.current.clone();
        Ok(())
    }

    fn restorefh(&mut self) -> Result<(), Stop> {
        self.current = Some(self.saved.clone().ok_or(Status::RESTOREFH)?);
        Ok(())
    }
}
