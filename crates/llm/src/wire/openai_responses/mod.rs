//! OpenAI Responses.

mod body;
mod step;

pub use body::body;
pub use step::Step;

#[cfg(test)]
mod tests;
