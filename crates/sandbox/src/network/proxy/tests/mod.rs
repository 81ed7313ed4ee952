//! Tests of the proxy with real clients and a fake internet.
#![allow(clippy::disallowed_methods, reason = "tests start servers and programs directly")]

mod curl;
mod http;
mod limits;
mod private_hosts;
mod socks;
pub(crate) mod test_network;
mod upstream;
