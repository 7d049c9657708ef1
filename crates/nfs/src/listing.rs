//! A part of a directory's names, as READDIR gives it.

use crate::Fault;
use crate::xdr::{Malformed, Reader};

/// Longest name, bytes. No file system that servers export has longer ones.
pub const NAME_BYTES_MAX: usize = 255;

/// Names from a directory, and where to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names, without `.` and `..`; bytes that are no text are replaced.
    pub names: Vec<String>,
    /// Where the next part begins.
    pub next: Place,
    /// Nothing comes behind these.
    pub end: bool,
}

/// A place between two names of a directory; the default is its beginning. Only the server understands it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the name before it.
    pub cookie: u64,
    /// Of the directory; a server for which cookies have lost their meaning refuses an old one.
    pub verifier: [u8; 8],
}

impl Listing {
    /// Takes a verifier and then entries, each read by `entry` as cookie and name. A list is no longer than its message, so that needs no
    /// bound of its own.
    ///
    /// # Errors
    /// [`Fault::Malformed`]; so is a name that leads elsewhere.
    pub(crate) fn read<'m>(
        r: &mut Reader<'m>,
        entry: impl Fn(&mut Reader<'m>) -> Result<(u64, &'m [u8]), Malformed>,
    ) -> Result<Self, Fault> {
        let mut listing = Self::default();
        listing.next.verifier = r.fixed()?;
        while r.bool()? {
            let (cookie, name) = entry(r)?;
            listing.next.cookie = cookie;
            match name {
                b"." | b".." => {}
                _ if name.is_empty() || name.iter().any(|&byte| byte == b'/' || byte == 0) => {
                    return Err(Malformed::Unknown {
                        what: "a name in a directory, of length",
                        seen: name.len() as u32,
                    }
                    .into());
                }
                _ => listing.names.push(String::from_utf8_lossy(name).into_owned()),
            }
        }
        listing.end = r.bool()?;
        Ok(listing)
    }
}
