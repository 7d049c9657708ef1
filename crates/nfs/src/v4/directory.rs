//! Directories in NFSv4: made, listed, and names that are given to other files. Source: RFC 8881, 18.4, 18.23, 18.26.

use super::attributes::{Set, encode_mode};
use super::compound::{Compound, Op, Results, skip_change};
use crate::listing::{Listing, NAME_BYTES_MAX, Place};
use crate::{Fault, Handle};

/// `NF4DIR`. RFC 8881, 3.3.13.
const DIRECTORY: u32 = 2;
/// Longest attributes of an entry, bytes; none are asked for.
const ENTRY_VALUES_BYTES_MAX: usize = 64;

impl Compound<'_> {
    /// Makes a directory `name` in `directory` with permissions `mode`: [`Results::directory_made`].
    pub fn make_directory(&mut self, directory: &Handle, name: &str, mode: u32) {
        self.put(directory);
        let w = self.op(Op::Create);
        w.u32(DIRECTORY);
        w.opaque(name.as_bytes());
        encode_mode(w, mode);
    }

    /// Gives a file another name, at once and over whatever file had it: [`Results::renamed`].
    pub fn rename(&mut self, old: (&Handle, &str), new: (&Handle, &str)) {
        self.put(old.0);
        self.op(Op::SaveFh);
        self.put(new.0);
        let w = self.op(Op::Rename);
        w.opaque(old.1.as_bytes());
        w.opaque(new.1.as_bytes());
    }

    /// Lists `directory` from `place` on, at most `bytes_max` bytes of results: [`Results::listed`].
    pub fn list(&mut self, directory: &Handle, place: Place, bytes_max: u32) {
        self.put(directory);
        let w = self.op(Op::ReadDir);
        w.u64(place.cookie);
        w.fixed(&place.verifier);
        w.u32(bytes_max); // Names and cookies alone, a hint.
        w.u32(bytes_max);
        Set::NONE.encode(w);
    }
}

impl Results<'_> {
    /// Result of [`Compound::make_directory`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn directory_made(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        let r = self.next_op(Op::Create)?;
        skip_change(r)?;
        Ok(Set::skip(r)?)
    }

    /// Result of [`Compound::rename`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn renamed(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        self.done(Op::SaveFh)?;
        self.done(Op::PutFh)?;
        let r = self.next_op(Op::Rename)?;
        skip_change(r)?;
        Ok(skip_change(r)?)
    }

    /// Result of [`Compound::list`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn listed(&mut self) -> Result<Listing, Fault> {
        self.done(Op::PutFh)?;
        Listing::read(self.next_op(Op::ReadDir)?, |r| {
            let cookie = r.u64()?;
            let name = r.opaque("a name in a directory", NAME_BYTES_MAX)?;
            Set::skip(r)?;
            r.opaque("attributes of a name", ENTRY_VALUES_BYTES_MAX)?;
            Ok((cookie, name))
        })
    }
}
