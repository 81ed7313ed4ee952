//! A proxy between real clients and a small internet of our own.
#![allow(clippy::disallowed_methods, reason = "a test arranges the world from outside")]

mod curl;
mod http;
mod limits;
mod socks;
pub(crate) mod world;
