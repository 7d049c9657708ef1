//! What readers of a record rely on: refusals, exports, the documented schema, the chain of hashes.

mod documented;
mod exports;
mod refuses;
mod sample;
mod sealed;
