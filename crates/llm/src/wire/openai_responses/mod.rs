//! OpenAI Responses.

mod body;
mod step;

pub(super) use body::{frame, write};
pub use step::Step;

#[cfg(test)]
mod tests;
