//! Search engines as data: request templates, and JSON pointers to the results in an answer.
//!
//! An engine has a base URL, a way to send its API key, and request templates. A template string
//! that is exactly one placeholder becomes the value with its type, and is left out if there is no
//! value. This module performs no I/O: it builds requests and parses answers, and `search` sends
//! them. Start reading at [`SearchEngine`].

use crate::url_host::parse_url;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;
use windlass_toolkit::CallFailure;

/// Returns the built-in engines without API keys, in order of preference.
pub fn built_in_engines() -> Vec<SearchEngine> {
    serde_json::from_str(include_str!("engines.json")).unwrap_or_default()
}

/// A search engine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchEngine {
    /// Name of the engine.
    pub name: String,
    /// Base URL; `None` until the user configures one.
    pub base: Option<String>,
    /// Address where the user gets an API key.
    pub keys_at: Option<String>,
    /// Environment variables that may contain the API key.
    #[serde(default)]
    pub env: Vec<String>,
    /// Way to send the API key.
    pub auth: SearchAuth,
    /// API key. It is sent to this engine's address only.
    #[serde(skip)]
    pub key: Option<SecretString>,
    /// Request template for web pages.
    pub web: Option<SearchRequestTemplate>,
    /// Request template for code.
    pub code: Option<SearchRequestTemplate>,
}

/// Way to send an API key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchAuth {
    /// No API key.
    None,
    /// As a bearer token in `Authorization`.
    Bearer,
    /// In the header with this name.
    Header(String),
}

impl SearchEngine {
    /// Copies the engine under the user's own name and base URL, without an API key.
    #[must_use]
    pub fn copy_as(&self, name: String, base: Option<String>) -> SearchEngine {
        let base = base.or_else(|| self.base.clone());
        SearchEngine { name, base, key: None, env: Vec::new(), ..self.clone() }
    }

    /// Returns true if the engine has a valid base URL, and an API key if it needs one.
    pub fn is_ready(&self) -> bool {
        let has_key = match self.auth {
            SearchAuth::None => true,
            SearchAuth::Bearer | SearchAuth::Header(_) => self.key.is_some(),
        };
        has_key && self.base.is_some() && self.host().is_ok()
    }

    /// Returns the host of `base` in the form that permission rules use.
    pub fn host(&self) -> Result<String, CallFailure> {
        let base = self.base.as_deref().unwrap_or_default();
        parse_url(base).map(|(_, host)| host)
    }
}

/// HTTP method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// GET: everything is in the URL.
    Get,
    /// POST: the query is in the body.
    Post,
}

/// Template for a request, and pointers into its answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequestTemplate {
    /// HTTP method.
    pub method: HttpMethod,
    /// URL, which begins with `{base}`.
    pub url: String,
    /// Query parameters added to `url`.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// JSON body.
    pub body: Option<Value>,
    /// JSON pointer to the results in the answer.
    pub results: Option<String>,
    /// JSON pointer to the title in a result.
    pub title: Option<String>,
    /// JSON pointer to the URL in a result.
    pub link: Option<String>,
    /// JSON pointer to the excerpt in a result.
    pub text: Option<String>,
    /// JSON pointer to the date or age in a result.
    pub date: Option<String>,
    /// JSON pointer to the text, for an engine that answers with one text.
    pub answer: Option<String>,
}

/// A search query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Query text.
    pub text: String,
    /// Maximum number of results.
    pub max_results: u32,
    /// `auto`, `fast` or `deep`.
    pub effort: Option<String>,
    /// `fallback` or `preferred`.
    pub livecrawl: Option<String>,
    /// Maximum length of all excerpts together, in characters.
    pub max_characters: u32,
    /// Maximum length of an answer, in tokens.
    pub max_tokens: u32,
}

impl SearchQuery {
    /// Returns the value of a placeholder such as `{query}`.
    fn placeholder_value(&self, name: &str) -> Option<Value> {
        let deep = self.effort.as_deref() == Some("deep");
        match name {
            "query" => Some(self.text.clone().into()),
            "results" => Some(self.max_results.into()),
            "type" => self.effort.clone().map(Value::from),
            "livecrawl" => self.livecrawl.clone().map(Value::from),
            "characters" => Some((self.max_characters / self.max_results.max(1)).into()),
            "tokens" => Some(self.max_tokens.into()),
            "depth" => Some(if deep { "advanced" } else { "basic" }.into()),
            _ => None,
        }
    }

    /// Fills in the placeholders of a template part; `None` if the part is a placeholder without a
    /// value.
    fn fill_placeholders(&self, part: &Value) -> Option<Value> {
        match part {
            Value::String(text) => {
                match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                    Some(name) => self.placeholder_value(name),
                    None => Some(part.clone()),
                }
            }
            Value::Object(fields) => {
                let fields = fields.iter().filter_map(|(name, part)| {
                    self.fill_placeholders(part).map(|part| (name.clone(), part))
                });
                Some(Value::Object(fields.collect()))
            }
            Value::Array(parts) => {
                Some(parts.iter().filter_map(|part| self.fill_placeholders(part)).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(part.clone()),
        }
    }
}

impl SearchRequestTemplate {
    /// Builds URL and body of a request.
    pub(crate) fn build_request(
        &self,
        base: &str,
        query: &SearchQuery,
    ) -> Result<(Url, Option<Value>), CallFailure> {
        let text = self.url.replace("{base}", base.trim_end_matches('/'));
        let (mut url, _) = parse_url(&text)?;
        for (name, part) in &self.query {
            let value = match query.fill_placeholders(part) {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => continue,
            };
            url.query_pairs_mut().append_pair(name, &value);
        }
        Ok((url, self.body.as_ref().and_then(|body| query.fill_placeholders(body))))
    }

    /// Formats an answer for the model; `None` if it does not have the expected form.
    pub(crate) fn format_answer(&self, answer: &Value, query: &SearchQuery) -> Option<String> {
        if let Some(pointer) = &self.answer {
            let text = answer.pointer(pointer)?.as_str()?.trim();
            return Some(text.to_owned());
        }
        let results = answer.pointer(self.results.as_deref()?)?.as_array()?;
        let max_results = query.max_results.max(1);
        let max_chars = (query.max_characters / max_results).max(1) as usize;
        let formatted = results.iter().take(max_results as usize).enumerate();
        let formatted =
            formatted.map(|(index, result)| self.format_result(index + 1, result, max_chars));
        Some(formatted.collect::<Vec<_>>().join("\n\n"))
    }

    fn format_result(&self, number: usize, result: &Value, max_chars: usize) -> String {
        let field = |pointer: &Option<String>| {
            let text = pointer.as_deref().and_then(|pointer| result.pointer(pointer)?.as_str());
            let text = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            text.filter(|text| !text.is_empty())
        };
        let title = field(&self.title).unwrap_or_else(|| "(untitled)".to_owned());
        let mut lines = vec![format!("{number}. {}", truncate(&title, 200))];
        let date = field(&self.date).map(|date| format!(" ({})", truncate(&date, 40)));
        if let Some(link) = field(&self.link) {
            lines.push(format!("   {}{}", truncate(&link, 500), date.unwrap_or_default()));
        }
        if let Some(text) = field(&self.text) {
            lines.push(format!("   {}", truncate(&text, max_chars)));
        }
        lines.join("\n")
    }
}

fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn search_query() -> SearchQuery {
        SearchQuery {
            text: "a & b".into(),
            max_results: 2,
            max_characters: 20,
            max_tokens: 500,
            ..SearchQuery::default()
        }
    }

    fn engine(name: &str) -> SearchEngine {
        built_in_engines().into_iter().find(|engine| engine.name == name).unwrap()
    }

    #[test]
    fn built_in_engines_are_valid() {
        let engines = built_in_engines();
        assert_eq!(
            engines.iter().map(|engine| engine.name.as_str()).collect::<Vec<_>>(),
            ["exa", "brave", "tavily", "searxng"]
        );
        for engine in engines {
            assert!(engine.key.is_none() && !engine.is_ready(), "{}", engine.name);
            assert_eq!(engine.auth == SearchAuth::None, engine.env.is_empty(), "{}", engine.name);
            for template in [engine.web, engine.code].into_iter().flatten() {
                assert!(template.url.starts_with("{base}/"));
                assert_eq!(template.method == HttpMethod::Post, template.body.is_some());
                assert!(template.answer.is_some() ^ template.results.is_some());
                let (url, _) =
                    template.build_request("https://x.example/", &search_query()).unwrap();
                assert!(!url.as_str().contains(['{', '}']), "{url}");
            }
        }
    }

    #[test]
    fn values_keep_their_types_and_missing_values_are_omitted() {
        let exa = engine("exa").web.unwrap();
        let (url, body) = exa.build_request("https://api.exa.ai", &search_query()).unwrap();
        assert_eq!(url.as_str(), "https://api.exa.ai/search");
        let expected =
            json!({"query": "a & b", "numResults": 2, "contents": {"text": {"maxCharacters": 10}}});
        assert_eq!(body, Some(expected));
        let brave = engine("brave").web.unwrap();
        let (url, body) =
            brave.build_request("https://api.search.brave.com", &search_query()).unwrap();
        assert_eq!(url.query(), Some("q=a+%26+b&count=2"));
        assert_eq!(body, None);
    }

    #[test]
    fn a_copied_engine_has_its_own_address_and_no_key() {
        let mut exa = engine("exa");
        exa.key = Some("secret".into());
        let copied = exa.copy_as("mine".into(), Some("http://127.0.0.1:8888".into()));
        assert!(copied.key.is_none() && copied.env.is_empty() && !copied.is_ready());
        assert_eq!(copied.host().unwrap(), "127.0.0.1:8888");
        let home = engine("searxng").copy_as("home".into(), Some("http://127.0.0.1:8888/".into()));
        assert!(home.is_ready());
    }

    #[test]
    fn results_are_truncated_and_limited() {
        let brave = engine("brave").web.unwrap();
        let answer = json!({"web": {"results": [
            {"title": "One\n two", "url": "https://a.example", "description": "0123456789abc", "age": "2 days ago"},
            {"title": 7, "url": "https://b.example"},
            {"title": "Three"},
        ]}});
        let text = brave.format_answer(&answer, &search_query()).unwrap();
        assert_eq!(
            text,
            "1. One two\n   https://a.example (2 days ago)\n   0123456789 …\n\n\
             2. (untitled)\n   https://b.example"
        );
        assert_eq!(brave.format_answer(&json!({"web": {}}), &search_query()), None);
        assert_eq!(
            brave.format_answer(&json!({"web": {"results": []}}), &search_query()),
            Some(String::new())
        );
    }
}
