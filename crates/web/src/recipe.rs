//! Engines that search, as data: how a question is put, and where in the answer the results stand.
//!
//! A row names an address, a way to show a key, and recipes. A string of a recipe that is one
//! placeholder becomes the value with its type, and is left out where there is no value. Pure: it
//! makes requests and reads answers, and `search` carries them. Start reading at [`Engine`].

use crate::address::address;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;
use windlass_toolkit::Failure;

/// The rows there are, without keys, in the order in which they are tried.
pub fn engines() -> Vec<Engine> {
    serde_json::from_str(include_str!("engines.json")).unwrap_or_default()
}

/// An engine that searches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Where it is; nowhere until somebody says where theirs is.
    pub base: Option<String>,
    /// Where a person gets a key.
    pub keys_at: Option<String>,
    /// Variables that may hold the key.
    #[serde(default)]
    pub env: Vec<String>,
    /// How the key is shown.
    pub auth: Auth,
    /// The key. It goes to this engine's address only.
    #[serde(skip)]
    pub key: Option<SecretString>,
    /// How pages are searched for.
    pub web: Option<Recipe>,
    /// How code is searched for.
    pub code: Option<Recipe>,
}

/// How a key is shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// There is none.
    None,
    /// As a bearer token.
    Bearer,
    /// In a header of this name.
    Header(String),
}

impl Engine {
    /// A row of somebody's own that is asked as this one is. It has no key yet.
    #[must_use]
    pub fn like(&self, name: String, base: Option<String>) -> Engine {
        let base = base.or_else(|| self.base.clone());
        Engine { name, base, key: None, env: Vec::new(), ..self.clone() }
    }

    /// True if it can be asked: it is somewhere, and there is a key if it wants one.
    pub fn ready(&self) -> bool {
        let known = match self.auth {
            Auth::None => true,
            Auth::Bearer | Auth::Header(_) => self.key.is_some(),
        };
        known && self.base.is_some() && self.host().is_ok()
    }

    /// The host that is asked, as rules know it.
    pub fn host(&self) -> Result<String, Failure> {
        let base = self.base.as_deref().unwrap_or_default();
        address(base).map(|(_, host)| host)
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Everything stands in the address.
    Get,
    /// The question stands in the body.
    Post,
}

/// How a question is put and its answer is read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The method.
    pub method: Method,
    /// The address, from `{base}`.
    pub url: String,
    /// What is added to the address.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// The body, as JSON.
    pub body: Option<Value>,
    /// Where the results stand in the answer, as a JSON pointer.
    pub results: Option<String>,
    /// Where a result's title stands in it; and so below.
    pub title: Option<String>,
    /// Its address.
    pub link: Option<String>,
    /// Some of its text.
    pub text: Option<String>,
    /// How old it is.
    pub date: Option<String>,
    /// Where the answer stands, for an engine that answers by a text.
    pub answer: Option<String>,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// In words.
    pub query: String,
    /// How many results are wanted.
    pub results: u32,
    /// `auto`, `fast` or `deep`.
    pub effort: Option<String>,
    /// `fallback` or `preferred`.
    pub livecrawl: Option<String>,
    /// How long all texts may be together, in characters.
    pub characters: u32,
    /// How long an answer may be, in tokens.
    pub tokens: u32,
}

impl Lookup {
    /// The value of a placeholder.
    fn value(&self, name: &str) -> Option<Value> {
        let deep = self.effort.as_deref() == Some("deep");
        match name {
            "query" => Some(self.query.clone().into()),
            "results" => Some(self.results.into()),
            "type" => self.effort.clone().map(Value::from),
            "livecrawl" => self.livecrawl.clone().map(Value::from),
            "characters" => Some((self.characters / self.results.max(1)).into()),
            "tokens" => Some(self.tokens.into()),
            "depth" => Some(if deep { "advanced" } else { "basic" }.into()),
            _ => None,
        }
    }

    /// A part of a recipe with its placeholders filled in; none if it was only one without a value.
    fn fill(&self, part: &Value) -> Option<Value> {
        match part {
            Value::String(text) => {
                match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                    Some(name) => self.value(name),
                    None => Some(part.clone()),
                }
            }
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .filter_map(|(name, part)| self.fill(part).map(|part| (name.clone(), part)));
                Some(Value::Object(fields.collect()))
            }
            Value::Array(parts) => Some(parts.iter().filter_map(|part| self.fill(part)).collect()),
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(part.clone()),
        }
    }
}

impl Recipe {
    /// The address and the body of a request.
    pub(crate) fn request(
        &self,
        base: &str,
        lookup: &Lookup,
    ) -> Result<(Url, Option<Value>), Failure> {
        let text = self.url.replace("{base}", base.trim_end_matches('/'));
        let (mut url, _) = address(&text)?;
        for (name, part) in &self.query {
            let value = match lookup.fill(part) {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => continue,
            };
            url.query_pairs_mut().append_pair(name, &value);
        }
        Ok((url, self.body.as_ref().and_then(|body| lookup.fill(body))))
    }

    /// What an answer says, for a model; none if it is not of the form that was expected.
    pub(crate) fn read(&self, answer: &Value, lookup: &Lookup) -> Option<String> {
        if let Some(place) = &self.answer {
            let text = answer.pointer(place)?.as_str()?.trim();
            return Some(text.to_owned());
        }
        let results = answer.pointer(self.results.as_deref()?)?.as_array()?;
        let most = lookup.results.max(1);
        let length = (lookup.characters / most).max(1) as usize;
        let shown = results.iter().take(most as usize).enumerate();
        let shown = shown.map(|(index, result)| self.result(index + 1, result, length));
        Some(shown.collect::<Vec<_>>().join("\n\n"))
    }

    fn result(&self, number: usize, result: &Value, length: usize) -> String {
        let part = |place: &Option<String>| {
            let text = place.as_deref().and_then(|place| result.pointer(place)?.as_str());
            let text = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            text.filter(|text| !text.is_empty())
        };
        let title = part(&self.title).unwrap_or_else(|| "(without a title)".to_owned());
        let mut lines = vec![format!("{number}. {}", cut(&title, 200))];
        let date = part(&self.date).map(|date| format!(" ({})", cut(&date, 40)));
        if let Some(link) = part(&self.link) {
            lines.push(format!("   {}{}", cut(&link, 500), date.unwrap_or_default()));
        }
        if let Some(text) = part(&self.text) {
            lines.push(format!("   {}", cut(&text, length)));
        }
        lines.join("\n")
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{} …", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lookup() -> Lookup {
        Lookup {
            query: "a & b".into(),
            results: 2,
            characters: 20,
            tokens: 500,
            ..Lookup::default()
        }
    }

    fn row(name: &str) -> Engine {
        engines().into_iter().find(|row| row.name == name).unwrap()
    }

    #[test]
    fn rows_are_sound() {
        let rows = engines();
        assert_eq!(
            rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
            ["exa", "brave", "tavily", "searxng"]
        );
        for row in rows {
            assert!(row.key.is_none() && !row.ready(), "{}", row.name);
            assert_eq!(row.auth == Auth::None, row.env.is_empty(), "{}", row.name);
            for recipe in [row.web, row.code].into_iter().flatten() {
                assert!(recipe.url.starts_with("{base}/"));
                assert_eq!(recipe.method == Method::Post, recipe.body.is_some());
                assert!(recipe.answer.is_some() ^ recipe.results.is_some());
                let (url, _) = recipe.request("https://x.example/", &lookup()).unwrap();
                assert!(!url.as_str().contains(['{', '}']), "{url}");
            }
        }
    }

    #[test]
    fn values_keep_their_types_and_what_is_not_given_is_left_out() {
        let exa = row("exa").web.unwrap();
        let (url, body) = exa.request("https://api.exa.ai", &lookup()).unwrap();
        assert_eq!(url.as_str(), "https://api.exa.ai/search");
        let plain =
            json!({"query": "a & b", "numResults": 2, "contents": {"text": {"maxCharacters": 10}}});
        assert_eq!(body, Some(plain));
        let brave = row("brave").web.unwrap();
        let (url, body) = brave.request("https://api.search.brave.com", &lookup()).unwrap();
        assert_eq!(url.query(), Some("q=a+%26+b&count=2"));
        assert_eq!(body, None);
    }

    #[test]
    fn somebodys_own_row_has_its_own_address_and_no_key() {
        let mut exa = row("exa");
        exa.key = Some("secret".into());
        let mine = exa.like("mine".into(), Some("http://127.0.0.1:8888".into()));
        assert!(mine.key.is_none() && mine.env.is_empty() && !mine.ready());
        assert_eq!(mine.host().unwrap(), "127.0.0.1:8888");
        let home = row("searxng").like("home".into(), Some("http://127.0.0.1:8888/".into()));
        assert!(home.ready());
    }

    #[test]
    fn results_are_cut_and_counted() {
        let brave = row("brave").web.unwrap();
        let answer = json!({"web": {"results": [
            {"title": "One\n two", "url": "https://a.example", "description": "0123456789abc", "age": "2 days ago"},
            {"title": 7, "url": "https://b.example"},
            {"title": "Three"},
        ]}});
        let text = brave.read(&answer, &lookup()).unwrap();
        assert_eq!(
            text,
            "1. One two\n   https://a.example (2 days ago)\n   0123456789 …\n\n\
             2. (without a title)\n   https://b.example"
        );
        assert_eq!(brave.read(&json!({"web": {}}), &lookup()), None);
        assert_eq!(brave.read(&json!({"web": {"results": []}}), &lookup()), Some(String::new()));
    }
}
