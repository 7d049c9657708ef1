//! Counters with Oracle's names: `v$sysstat`, and `v$iostat_file` per file.
