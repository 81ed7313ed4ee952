//! The terminal front end: a screen that knows the protocol and nothing else.
//!
//! [`App`] is pure: what was typed and what the host said go in by [`App::update`], requests and
//! acts come out, and [`App::draw`] writes a frame into a buffer. It opens no file, starts no
//! process and reads no clock; [`shell`] is the only part that touches the terminal. Start reading
//! at [`app`], then [`story`] for what a session looks like.
//!
//! It keeps the invariant I-INK: nothing that a model, a tool or a file name says reaches the
//! terminal but through [`ink`], which lets no control character pass.

pub mod app;
pub mod asked;
pub mod cx;
mod fault;
pub mod ink;
pub mod keys;
pub mod known;
pub mod lay;
pub mod linear;
pub mod panel;
pub mod prompt;
pub mod shell;
pub mod story;
pub mod theme;
pub mod wrap;

pub use app::{App, Input, Options};
pub use cx::{Act, Cx};
pub use shell::run;
