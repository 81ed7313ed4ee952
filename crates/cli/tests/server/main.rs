//! `windlass serve` with the real binary: its socket and tokens, clients that come and go, sessions
//! that outlive terminals and crashes.
//!
//! Start reading at [`user_story`].
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod concurrent_answers;
mod connection_cuts;
mod crash_recovery;
mod figures;
mod folder_roots;
mod handover;
mod isolation;
mod long_run;
#[allow(dead_code, reason = "the tests of fleets use the rest of it")]
mod session_client;
mod socket_files;
mod token_access;
mod user_story;
