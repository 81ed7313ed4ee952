//! OpenAI Chat Completions, which most servers speak in some dialect.

mod body;
mod details;
mod step;

pub(super) use body::{frame, mark_last, opening, write};
pub use step::Step;

#[cfg(test)]
mod tests;
