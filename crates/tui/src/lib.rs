//! The terminal front end, which depends only on the protocol.
//!
//! [`App`] is pure: key presses and host messages go in through [`App::update`], requests and
//! [`UiEffect`]s come out, and [`App::draw`] writes a frame into a buffer. It opens no file, starts
//! no process and reads no clock; [`terminal`] is the only part that touches the terminal. Start
//! reading at [`app`], then [`transcript`] for the display of a session.
//!
//! It keeps the invariant I-TEXT: text from a model, a tool or a file name reaches the terminal only
//! through [`safe_line`], which removes all control characters.

pub mod app;
mod error_hints;
pub mod keys;
pub mod layout_settings;
pub mod linear;
mod name_suggestion;
pub mod panel;
pub mod prompt;
pub mod questions;
pub mod render;
pub mod safe_line;
pub mod session_state;
pub mod terminal;
#[cfg(test)]
mod test_call_descriptions;
pub(crate) mod text_input;
pub mod theme;
pub mod transcript;
pub mod ui_context;
pub mod wrap;

pub use app::{App, AppEvent, TuiOptions};
pub use name_suggestion::closest_name;
pub use prompt::missing_command_tip;
pub use terminal::run;
pub use ui_context::{UiContext, UiEffect};
