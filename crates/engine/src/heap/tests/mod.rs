//! Tests of heap pages against plain byte arrays.

mod layout;
