//! Tests of the server and its client over real connections.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests open connections themselves, and fail by panicking"
)]

mod byte_limits;
mod client_requests;
mod connection_cuts;
mod event_streams;
mod memory_host;
mod page_login;
mod route_access;
mod test_server;
