//! What a server says of a call that it understood and did not, or could not, carry out.

use crate::xdr::{Malformed, Reader};
use std::fmt;
use thiserror::Error;

/// A status of NFS or MOUNT other than 0. Those of all versions share one list of numbers. RFC 1813, 2.6; RFC 8881, 15.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $number:literal, $errno:literal;)*) => {
        impl Status {
            $(#[doc = concat!("`", stringify!($name), "`")] pub const $name: Self = Self($number);)*

            /// As RFC 8881 names it, without its prefix; none for a number that is not in it.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// The error number of Linux that is closest; `EIO` where there is none.
            pub const fn errno(self) -> i32 {
                match self.0 {
                    $($number => $errno,)*
                    _ => 5,
                }
            }
        }
    };
}

statuses! {
    PERM = 1, 1;
    NOENT = 2, 2;
    IO = 5, 5;
    NXIO = 6, 6;
    ACCESS = 13, 13;
    EXIST = 17, 17;
    XDEV = 18, 18;
    NODEV = 19, 19;
    NOTDIR = 20, 20;
    ISDIR = 21, 21;
    INVAL = 22, 22;
    FBIG = 27, 27;
    NOSPC = 28, 28;
    ROFS = 30, 30;
    MLINK = 31, 31;
    NAMETOOLONG = 63, 36;
    NOTEMPTY = 66, 39;
    DQUOT = 69, 122;
    STALE = 70, 116;
    REMOTE = 71, 66;
    BADHANDLE = 10001, 116;
    NOT_SYNC = 10002, 5;
    BAD_COOKIE = 10003, 5;
    NOTSUPP = 10004, 95;
    TOOSMALL = 10005, 5;
    SERVERFAULT = 10006, 5;
    BADTYPE = 10007, 22;
    DELAY = 10008, 11;
    SAME = 10009, 5;
    DENIED = 10010, 11;
    EXPIRED = 10011, 5;
    LOCKED = 10012, 11;
    GRACE = 10013, 11;
    FHEXPIRED = 10014, 116;
    SHARE_DENIED = 10015, 13;
    WRONGSEC = 10016, 1;
    CLID_INUSE = 10017, 16;
    RESOURCE = 10018, 105;
    MOVED = 10019, 66;
    NOFILEHANDLE = 10020, 5;
    MINOR_VERS_MISMATCH = 10021, 93;
    STALE_CLIENTID = 10022, 5;
    STALE_STATEID = 10023, 5;
    OLD_STATEID = 10024, 5;
    BAD_STATEID = 10025, 5;
    BAD_SEQID = 10026, 5;
    NOT_SAME = 10027, 5;
    LOCK_RANGE = 10028, 5;
    SYMLINK = 10029, 40;
    RESTOREFH = 10030, 5;
    LEASE_MOVED = 10031, 5;
    ATTRNOTSUPP = 10032, 22;
    NO_GRACE = 10033, 5;
    RECLAIM_BAD = 10034, 5;
    RECLAIM_CONFLICT = 10035, 5;
    BADXDR = 10036, 5;
    LOCKS_HELD = 10037, 5;
    OPENMODE = 10038, 9;
    BADOWNER = 10039, 22;
    BADCHAR = 10040, 22;
    BADNAME = 10041, 22;
    BAD_RANGE = 10042, 22;
    LOCK_NOTSUPP = 10043, 95;
    OP_ILLEGAL = 10044, 95;
    DEADLOCK = 10045, 35;
    FILE_OPEN = 10046, 16;
    ADMIN_REVOKED = 10047, 5;
    CB_PATH_DOWN = 10048, 5;
    BADIOMODE = 10049, 5;
    BADLAYOUT = 10050, 5;
    BAD_SESSION_DIGEST = 10051, 5;
    BADSESSION = 10052, 5;
    BADSLOT = 10053, 5;
    COMPLETE_ALREADY = 10054, 5;
    CONN_NOT_BOUND_TO_SESSION = 10055, 5;
    DELEG_ALREADY_WANTED = 10056, 5;
    BACK_CHAN_BUSY = 10057, 5;
    LAYOUTTRYLATER = 10058, 11;
    LAYOUTUNAVAILABLE = 10059, 5;
    NOMATCHING_LAYOUT = 10060, 5;
    RECALLCONFLICT = 10061, 11;
    UNKNOWN_LAYOUTTYPE = 10062, 5;
    SEQ_MISORDERED = 10063, 5;
    SEQUENCE_POS = 10064, 5;
    REQ_TOO_BIG = 10065, 90;
    REP_TOO_BIG = 10066, 90;
    REP_TOO_BIG_TO_CACHE = 10067, 90;
    RETRY_UNCACHED_REP = 10068, 5;
    UNSAFE_COMPOUND = 10069, 5;
    TOO_MANY_OPS = 10070, 5;
    OP_NOT_IN_SESSION = 10071, 5;
    HASH_ALG_UNSUPP = 10072, 5;
    CLIENTID_BUSY = 10074, 16;
    PNFS_IO_HOLE = 10075, 5;
    SEQ_FALSE_RETRY = 10076, 5;
    BAD_HIGH_SLOT = 10077, 5;
    DEADSESSION = 10078, 5;
    ENCR_ALG_UNSUPP = 10079, 5;
    PNFS_NO_LAYOUT = 10080, 5;
    NOT_ONLY_OP = 10081, 5;
    WRONG_CRED = 10082, 1;
    WRONG_TYPE = 10083, 22;
    DIRDELEG_UNAVAIL = 10084, 5;
    REJECT_DELEG = 10085, 5;
    RETURNCONFLICT = 10086, 5;
    DELEG_REVOKED = 10087, 5;
}

impl Status {
    /// Takes the status in front of a result.
    ///
    /// # Errors
    /// [`Fault::Refused`] unless it is 0; [`Fault::Malformed`].
    pub(crate) fn read(reader: &mut Reader<'_>, call: &'static str) -> Result<(), Fault> {
        match reader.u32()? {
            0 => Ok(()),
            number => Err(Fault::Refused { status: Self(number), call }),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "NFSERR {} ({name})", self.0),
            None => write!(f, "NFSERR {}", self.0),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a reply has no result.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Fault {
    /// The server says no.
    #[error("{call}: {status}")]
    Refused {
        /// What it says.
        status: Status,
        /// To which call or operation, as the RFC names it.
        call: &'static str,
    },
    /// The reply does not hold together.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Fault {
    /// What the server said; none when it is the reply that is wrong.
    pub const fn status(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Malformed(_) => None,
        }
    }
}
