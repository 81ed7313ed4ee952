//! The TUI of the real binary in a real terminal, with a scripted model behind real HTTP.
//!
//! Start reading at [`screen`]. These tests look for texts on the screen; whole frames are in the
//! snapshots of the crate `tui`.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod background_color_query;
mod exit;
mod failures;
mod habits;
mod hostile_text;
mod interrupt_and_steering;
mod jobs_and_agents;
mod keyboard_and_mouse;
mod linear_mode;
mod onboarding;
mod panels;
mod permission_questions;
mod resize;
mod screenshots;
mod speed;
mod transcript;
mod trust_question;
mod tui_driver;
mod wide_screen;
