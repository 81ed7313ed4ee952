//! The Google Gemini API (`streamGenerateContent`).

mod decoder;
mod request;

pub use decoder::GeminiDecoder;
pub(super) use request::{envelope, turn_content};

#[cfg(test)]
mod tests;
