//! Ctrl-C: the first asks the run to stop and clean up, the second stops at once.

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit code of a run that was stopped by the user.
pub const INTERRUPTED: u8 = 130;

/// A flag that rises at Ctrl-C, SIGTERM and SIGHUP. A second signal ends the process at once; `redoubt cleanup` then
/// removes what the run left.
///
/// # Errors
/// When the system refuses the handlers.
pub fn on_signal() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the shutdown looks at the flag before this same signal raises it.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), asked.clone())?;
        flag::register(signal, asked.clone())?;
    }
    Ok(asked)
}
