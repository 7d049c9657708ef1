//! Tests that need to cut the power between any two changes of a statement; all others are in `tests/session`.

mod cuts;
#[path = "../../../tests/session/machine.rs"]
#[expect(dead_code, reason = "shared with the tests from outside, which use all of it")]
mod machine;
