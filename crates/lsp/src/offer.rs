//! What a server offers: by what it said of itself when it started, and by what it registered since.

use crate::reply::Registration;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
use url::Url;

/// So many registrations are kept.
const MOST: usize = 256;
/// So many globs are looked at.
const WATCHERS: usize = 256;
/// How long a glob may be.
const LONGEST: usize = 1_024;
/// How large a glob may become when it is worked out.
const SIZE: usize = 64 << 10;
/// How large its options may be, as text.
const OPTIONS: usize = 64 << 10;

pub(crate) const WATCHED: &str = "workspace/didChangeWatchedFiles";

/// What a server registered.
#[derive(Default)]
pub(crate) struct Offers {
    registered: Vec<Registration>,
    /// Each with the name of its registration.
    watchers: Vec<(String, Watcher)>,
}

/// Files that a server wants to hear of.
struct Watcher {
    /// The folder that the glob begins at, with a slash at its end; without one it is a whole path,
    /// or begins at the server's root.
    base: Option<String>,
    glob: Regex,
}

impl Offers {
    /// Keeps what was registered; what is too much is not.
    pub(crate) fn register(&mut self, all: Vec<Registration>) {
        for new in all {
            self.unregister(std::slice::from_ref(&new.id));
            if self.registered.len() >= MOST || new.id.len() > 256 || new.method.len() > 256 {
                return;
            }
            if new.method == WATCHED {
                let room = WATCHERS.saturating_sub(self.watchers.len());
                let found = watchers(&new.options).take(room);
                self.watchers.extend(found.map(|watcher| (new.id.clone(), watcher)));
                self.registered.push(Registration { options: Value::Null, ..new });
            } else if new.options.to_string().len() <= OPTIONS {
                self.registered.push(new);
            }
        }
    }

    /// Forgets what has these names.
    pub(crate) fn unregister(&mut self, ids: &[String]) {
        self.registered.retain(|known| !ids.contains(&known.id));
        self.watchers.retain(|(id, _)| !ids.contains(id));
    }

    /// What was registered for a method.
    pub(crate) fn options(&self, method: &str) -> Option<&Value> {
        let mut known = self.registered.iter().rev();
        known.find(|known| known.method == method).map(|known| &known.options)
    }

    /// True if somebody wants to hear of this file: a whole path, and what it is from the server's
    /// root, if it lies there.
    pub(crate) fn watches(&self, whole: &str, inner: Option<&str>) -> bool {
        self.watchers.iter().any(|(_, watcher)| match &watcher.base {
            Some(base) => {
                let rest = whole.strip_prefix(base.as_str());
                rest.is_some_and(|rest| watcher.glob.is_match(rest.as_bytes()))
            }
            None => {
                let fits = |path: &str| watcher.glob.is_match(path.as_bytes());
                fits(whole) || inner.is_some_and(fits)
            }
        })
    }
}

/// What the capabilities of a server say of a method; `None` if nothing.
pub(crate) fn said<'a>(capabilities: &'a Value, method: &str) -> Option<&'a Value> {
    let pointer = match method {
        "textDocument/definition" => "/definitionProvider",
        "textDocument/references" => "/referencesProvider",
        "textDocument/hover" => "/hoverProvider",
        "textDocument/implementation" => "/implementationProvider",
        "textDocument/documentSymbol" => "/documentSymbolProvider",
        "workspace/symbol" => "/workspaceSymbolProvider",
        "textDocument/prepareCallHierarchy"
        | "callHierarchy/incomingCalls"
        | "callHierarchy/outgoingCalls" => "/callHierarchyProvider",
        "textDocument/diagnostic" => "/diagnosticProvider",
        "workspace/diagnostic" => "/diagnosticProvider/workspaceDiagnostics",
        "textDocument/didSave" => "/textDocumentSync/save",
        _ => return None,
    };
    let found = capabilities.pointer(pointer)?;
    (!found.is_null() && *found != Value::Bool(false)).then_some(found)
}

/// The method that others are registered by.
pub(crate) fn registered_as(method: &str) -> &str {
    match method {
        "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls" => {
            "textDocument/prepareCallHierarchy"
        }
        other => other,
    }
}

fn watchers(options: &Value) -> impl Iterator<Item = Watcher> + '_ {
    let all = options.get("watchers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|item| {
        let pattern = item.get("globPattern")?;
        if let Some(text) = pattern.as_str() {
            return Some(Watcher { base: None, glob: glob(text)? });
        }
        let base = pattern.get("baseUri")?;
        let base = base.as_str().or_else(|| base.get("uri")?.as_str())?;
        let path = Url::parse(base).ok()?.to_file_path().ok()?;
        let base = format!("{}/", path.to_str()?.trim_end_matches('/'));
        Some(Watcher { base: Some(base), glob: glob(pattern.get("pattern")?.as_str()?)? })
    })
}

/// A glob of the protocol; `None` if it is none.
fn glob(text: &str) -> Option<Regex> {
    if text.len() > LONGEST {
        return None;
    }
    let mut out = String::from("^(?:");
    let mut rest = text.chars().peekable();
    let mut open = 0_usize;
    while let Some(each) = rest.next() {
        match each {
            '*' if rest.next_if_eq(&'*').is_some() => {
                let folders = rest.next_if_eq(&'/').is_some();
                out.push_str(if folders { "(?:.*/)?" } else { ".*" });
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                open += 1;
                out.push_str("(?:");
            }
            '}' => {
                open = open.checked_sub(1)?;
                out.push(')');
            }
            ',' if open > 0 => out.push('|'),
            '[' => {
                out.push('[');
                if rest.next_if(|next| matches!(next, '!' | '^')).is_some() {
                    out.push_str("^/");
                }
                loop {
                    match rest.next()? {
                        ']' => break,
                        '-' => out.push('-'),
                        other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
                    }
                }
                out.push(']');
            }
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push_str(")$");
    let mut builder = RegexBuilder::new(&out);
    builder.unicode(false).dot_matches_new_line(true).size_limit(SIZE).dfa_size_limit(SIZE);
    if open == 0 { builder.build().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn offers(watchers: Value) -> Offers {
        let mut offers = Offers::default();
        let options = json!({"watchers": watchers});
        offers.register(vec![Registration { id: "w".into(), method: WATCHED.into(), options }]);
        offers
    }

    #[test]
    fn globs_fit_what_the_protocol_says() {
        for (text, fits, misses) in [
            ("**/*.rs", vec!["a.rs", "x/y/a.rs"], vec!["a.rsx", "a/b"]),
            ("**/*.{ts,tsx}", vec!["a.ts", "b/c.tsx"], vec!["a.js"]),
            ("src/?.c", vec!["src/a.c"], vec!["src/ab.c", "src//.c", "a.c"]),
            ("*", vec!["a"], vec!["a/b"]),
            ("**", vec!["a", "a/b"], vec![]),
            ("a[0-9].x", vec!["a3.x"], vec!["ab.x"]),
            ("a[!0-9].x", vec!["ab.x"], vec!["a3.x", "a/.x"]),
            ("a.b+c", vec!["a.b+c"], vec!["axb+c", "a.bbc"]),
            ("ä/*.md", vec!["ä/x.md"], vec!["a/x.md"]),
        ] {
            let glob = glob(text).unwrap();
            fits.iter().for_each(|path| assert!(glob.is_match(path.as_bytes()), "{text}: {path}"));
            misses
                .iter()
                .for_each(|path| assert!(!glob.is_match(path.as_bytes()), "{text}: {path}"));
        }
        for odd in ["{a", "a}", "[", "[a", &"*".repeat(LONGEST + 1)] {
            assert!(glob(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn a_watcher_begins_where_it_says() {
        let offers = offers(json!([
            {"globPattern": {"baseUri": "file:///w/sub", "pattern": "*.toml"}},
            {"globPattern": {"baseUri": {"uri": "file:///w/deep/", "name": "d"}, "pattern": "**/*.c"}},
            {"globPattern": "**/go.mod"}, {"globPattern": "/w/x.lock", "kind": 1},
            {"globPattern": {"baseUri": "https://a.test", "pattern": "*"}}, {}, 3,
        ]));
        for path in ["/w/sub/a.toml", "/w/deep/a/b.c", "/w/x/go.mod", "/w/x.lock"] {
            assert!(offers.watches(path, path.strip_prefix("/w/")), "{path}");
        }
        for path in ["/w/a.toml", "/w/sub/x/a.toml", "/w/sub.toml", "/w/b.c", "/w/y.lock"] {
            assert!(!offers.watches(path, path.strip_prefix("/w/")), "{path}");
        }
    }

    #[test]
    fn the_last_registration_counts_and_goes_by_its_name() {
        let one = |id: &str, n: u64| Registration {
            id: id.into(),
            method: "textDocument/diagnostic".into(),
            options: json!({"n": n}),
        };
        let mut offers = offers(json!([{"globPattern": "**"}]));
        offers.register(vec![one("a", 1), one("b", 2), one("a", 3)]);
        assert_eq!(offers.options("textDocument/diagnostic"), Some(&json!({"n": 3})));
        offers.unregister(&["a".into(), "w".into()]);
        assert_eq!(offers.options("textDocument/diagnostic"), Some(&json!({"n": 2})));
        assert!(!offers.watches("/w/a", Some("a")));
        offers.register((0..10_000).map(|n| one(&n.to_string(), n)).collect());
        assert!(offers.registered.len() <= MOST);
    }

    #[test]
    fn capabilities_that_are_false_or_null_are_none() {
        let all = json!({"hoverProvider": false, "definitionProvider": null,
            "referencesProvider": true, "callHierarchyProvider": {},
            "diagnosticProvider": {"workspaceDiagnostics": false}});
        for (method, offered) in [
            ("textDocument/hover", false),
            ("textDocument/definition", false),
            ("textDocument/references", true),
            ("callHierarchy/incomingCalls", true),
            ("textDocument/diagnostic", true),
            ("workspace/diagnostic", false),
            ("something/else", false),
        ] {
            assert_eq!(said(&all, method).is_some(), offered, "{method}");
        }
    }

    proptest! {
        #[test]
        fn no_glob_is_too_much(text in r"[a-c*?{},\[\]!/.\\^$|()+-]{0,60}", path in "[a-c/.]{0,40}") {
            if let Some(glob) = glob(&text) {
                glob.is_match(path.as_bytes());
            }
        }
    }
}
