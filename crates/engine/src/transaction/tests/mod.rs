//! Tests of transactions and rows, on a whole instance over a simulated storage; and of what transactions know in memory.

mod audit;
mod model;
mod stories;
mod table;
mod threads;
mod world;
