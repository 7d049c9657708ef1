//! Target `layout`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nfs::fuzz::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| fuzz::target("layout"));

fuzz_target!(|message: &[u8]| fuzz::feed(&TARGET, message));
