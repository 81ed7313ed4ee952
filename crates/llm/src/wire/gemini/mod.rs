//! Google Gemini, `streamGenerateContent`.

mod body;
mod step;

pub(super) use body::{content, frame};
pub use step::Step;

#[cfg(test)]
mod tests;
