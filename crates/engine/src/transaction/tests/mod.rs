//! Tests of what transactions know in memory.

mod table;
