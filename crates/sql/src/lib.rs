//! SQLite as the SQL front end of the engine.
#![forbid(unsafe_code)]
