//! Parameters with Oracle's names.
