//! Sessions from outside, over whole instances: on a simulated machine, where the power can be cut at any call, and with threads on
//! a real directory.

mod basics;
mod copy;
mod machine;
mod model;
mod random;
mod room;
mod threads;
mod waiting;
mod world;
