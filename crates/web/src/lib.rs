//! Web access for the model: fetches pages, converts them to text, and queries search engines.
//!
//! A fetch reaches a host only through the `HostRoute` of its call, and nothing in a response is
//! trusted: bodies are bounded on the wire and after decompression, and pages are parsed in a
//! separate process. Start reading at [`WebClient`].

mod charset;
mod content_kind;
mod fetch;
pub mod html_conversion;
mod response_body;
mod search;
mod search_engine;
mod url_host;

pub use charset::{DecodedText, decode_text};
pub use content_kind::ContentKind;
pub use fetch::{FetchError, FetchedContent};
pub use html_conversion::PageFormat;
pub use search_engine::{
    HttpMethod, SearchAuth, SearchEngine, SearchQuery, SearchRequestTemplate, built_in_engines,
};
pub use url_host::parse_url;

use std::error::Error;

/// Web client of the tools: search engines and user agent.
#[derive(Clone, Debug, Default)]
pub struct WebClient {
    engines: Vec<SearchEngine>,
    user_agent: String,
}

impl WebClient {
    /// Creates the client with its search engines, in order of preference, and the `User-Agent`
    /// that servers receive.
    pub fn new(engines: Vec<SearchEngine>, user_agent: String) -> WebClient {
        WebClient { engines, user_agent }
    }

    /// Returns all configured engines.
    pub fn engines(&self) -> &[SearchEngine] {
        &self.engines
    }

    /// Returns the first ready engine that has a `web` template.
    pub fn page_engine(&self) -> Option<&SearchEngine> {
        self.engines.iter().find(|engine| engine.web.is_some() && engine.is_ready())
    }

    /// Returns the first ready engine that has a `code` template.
    pub fn code_engine(&self) -> Option<&SearchEngine> {
        self.engines.iter().find(|engine| engine.code.is_some() && engine.is_ready())
    }
}

/// Describes an error by its innermost cause. URLs are left out because they may contain private
/// data.
fn describe_error(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn Error> = error.source();
    while let Some(next) = cause {
        causes.push(next.to_string());
        cause = next.source();
    }
    match causes.pop() {
        Some(last) => last,
        None if error.is_timeout() => "timed out".to_owned(),
        None => "the connection failed".to_owned(),
    }
}
