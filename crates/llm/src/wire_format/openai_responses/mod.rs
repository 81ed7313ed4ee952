//! The OpenAI Responses API.

mod decoder;
mod request;

pub use decoder::ResponsesDecoder;
pub(super) use request::{envelope, write_turn};

#[cfg(test)]
mod tests;
