//! The web for a model: pages fetched and made readable, and engines that search.
//!
//! It reaches a host only by the passage that its call was given, and believes nothing that comes
//! back: bodies are bounded on the wire and when they are unpacked, and pages are read in a process
//! of its own. Start reading at [`Web`].

mod address;
mod body;
mod charset;
mod fetch;
mod kind;
pub mod page;
mod recipe;
mod search;

pub use address::address;
pub use charset::{Decoded, decode};
pub use fetch::{Fetched, Stop};
pub use kind::Kind;
pub use page::Format;
pub use recipe::{Auth, Engine, Lookup, Method, Recipe, engines};

use std::error::Error;

/// What calls know of the web.
#[derive(Clone, Debug, Default)]
pub struct Web {
    engines: Vec<Engine>,
    agent: String,
}

impl Web {
    /// The web, with the engines that may be asked, the first choice first, and what servers are
    /// told of who asks.
    pub fn new(engines: Vec<Engine>, agent: String) -> Web {
        Web { engines, agent }
    }

    /// The engines there are.
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// The engine that is asked for pages.
    pub fn pages(&self) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.web.is_some() && engine.ready())
    }

    /// The engine that is asked for code.
    pub fn code(&self) -> Option<&Engine> {
        self.engines.iter().find(|engine| engine.code.is_some() && engine.ready())
    }
}

/// What went wrong, from its causes; addresses are left out, as they may hold what is nobody's
/// business.
fn words(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    match causes.pop() {
        Some(last) => last,
        None if error.is_timeout() => "it took too long".to_owned(),
        None => "the connection failed".to_owned(),
    }
}
