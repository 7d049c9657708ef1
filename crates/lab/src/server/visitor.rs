//! One case on a server that was there before: `redoubt run CASE --target postgres://…`.
//!
//! Nothing of it is changed, stopped or emptied: cases that need that are refused in [`check`]. A schema of our own holds the tables
//! ([`super::existing`]); it is dropped however the case ends.

use super::existing::{self, Existing, Facts};
use super::run::Stay;
use super::sampler;
use super::site::Site;
use super::url::Address;
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::run::{Case, Options, Plan};

/// Cases that need no restart, and no cache emptied.
const CASES: [Case; 3] = [Case::Commit, Case::OrderEntry, Case::RandomRead];

/// What cannot be asked of a server of somebody else's, said before anything is done.
///
/// # Errors
/// A sentence with what to type.
pub(crate) fn check(options: &Options, address: &Address, allow_writes: bool) -> Result<(), LabError> {
    let refuse = |text: String| Err(LabError::Target(text));
    let kind = address.kind;
    let case = options.case;
    if !CASES.contains(&case) {
        return refuse(format!(
            "{case} empties the caches, which takes a restart, and {address} is not ours to restart. Type one of commit, order-entry, \
             random-read; or play it on a private server: redoubt run {case} --target {}",
            kind.name()
        ));
    }
    if !options.parameters.is_empty() {
        return refuse(format!(
            "--set changes how a server is started, and {address} was started by somebody else. Leave --set out, or use a private \
             server: --target {}",
            kind.name()
        ));
    }
    if options.cache.is_some() {
        return refuse(format!(
            "--cache is set when a server is started, and {address} was. Leave it out, or use a private server: --target {}",
            kind.name()
        ));
    }
    if !allow_writes {
        return refuse(format!(
            "{case} makes tables of its own in {address}, in a schema redoubt_… that is dropped afterwards, and loads the server for {:.0} s; \
             without your word an existing server is only looked at. Type --allow-writes; to look only: redoubt watch '{address}'",
            options.seconds
        ));
    }
    Ok(())
}

/// Runs the case in a schema of our own.
///
/// # Errors
/// What the server says; [`LabError::Cancelled`].
pub(crate) fn measure(
    options: &Options,
    address: &Address,
    facts: &Facts,
    plan: &Plan,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    let kind = address.kind;
    let mut site = Existing::open(address.clone(), facts, options.patience, bench.journal())?;
    let promise = facts.promise(kind);
    control.progress.say(&format!(
        "{kind} {} at {address}, as it is; in the schema {}, dropped at the end; durable: {promise}. Its caches are not emptied, and what others do \
         there meanwhile is in the figures.",
        site.version(),
        site.schema()
    ));
    if site.settings().iter().any(|(name, value)| name == "performance_schema" && value == "OFF") {
        control.progress.say("performance_schema is OFF there: what sessions wait for cannot be seen.");
    }
    if let Err(error) = sampler::look(kind, &mut *site.connect("sampler")?) {
        control.progress.say(&format!("What its sessions wait for cannot be seen: {error}"));
    }
    if !site.is_local() {
        control.progress.say(
            "It is another machine: devices and processors of this one say nothing of it, and are left out.",
        );
    }
    let local = site.is_local();
    let result = Stay { options, plan, site: &mut site, promise, local }.visit(bench, control);
    let closed = site.close(bench.journal());
    result.and(closed)
}

/// Looks at the server before anything is made.
///
/// # Errors
/// As [`existing::look`].
pub(crate) fn look(address: &Address) -> Result<Facts, LabError> {
    existing::look(address)
}
