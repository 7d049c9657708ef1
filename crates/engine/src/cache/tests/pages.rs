//! Latches, marks and headers of single pages.
