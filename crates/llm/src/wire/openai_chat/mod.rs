//! OpenAI Chat Completions, which most servers speak in some dialect.

mod body;
mod details;
mod step;

pub use body::body;
pub use step::Step;

#[cfg(test)]
mod tests;
