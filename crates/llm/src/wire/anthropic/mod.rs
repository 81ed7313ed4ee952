//! Anthropic Messages.

mod body;
mod step;

pub(super) use body::{frame, mark_last, message};
pub use step::Step;

#[cfg(test)]
mod tests;
