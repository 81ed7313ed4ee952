//! The screen as a person meets it: the real binary in a real terminal, with a scripted model
//! behind real HTTP.
//!
//! [`place`] is where it is tried. Texts on the screen are looked for, not whole frames: those are
//! held by the snapshots of the crate `tui`.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

#[path = "../yard/mod.rs"]
mod yard;

mod asked;
mod endings;
mod first;
mod ground;
mod hostile;
mod linear;
mod place;
mod shots;
mod sizes;
mod speed;
mod story;
mod talk;
mod work;
