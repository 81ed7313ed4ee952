//! `windlass serve --fleet` with the real binary and a real PostgreSQL server: sessions that go on at
//! another node when theirs is killed, paused or stopped.
//!
//! These tests need the programs of PostgreSQL and are run with `--run-ignored`. Start reading at
//! [`takeover`].
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

#[path = "../server/session_client.rs"]
#[allow(dead_code, reason = "the clients of the tests of one server have other needs")]
mod session_client;

mod checkouts;
mod clocks_and_limits;
mod database_failures;
mod failover;
mod killed_nodes;
mod load;
mod operations;
mod other_nodes;
mod patroni;
mod takeover;
mod tenants;
mod test_fleet;
mod upgrade;
