//! Private PostgreSQL and MariaDB servers, the real ones from Debian's packages: started, asked, killed, removed.
//!
//! A missing server is a failure with the command that installs it.
#![forbid(unsafe_code)]

mod life;
mod login;
mod names;
mod stand;
mod tls;
