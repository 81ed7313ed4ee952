//! Capabilities of a server: those of its `initialize` answer, and those it registered later.

use crate::connection::server_requests::CapabilityRegistration;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
use url::Url;

const MAX_REGISTRATIONS: usize = 256;
const MAX_WATCHERS: usize = 256;
const MAX_GLOB_BYTES: usize = 1_024;
/// Limit for the compiled regex of one glob.
const MAX_COMPILED_GLOB_BYTES: usize = 64 << 10;
/// Limit for the serialized options of one registration.
const MAX_OPTIONS_BYTES: usize = 64 << 10;

pub(crate) const DID_CHANGE_WATCHED_FILES: &str = "workspace/didChangeWatchedFiles";

/// Capabilities that a server registered with `client/registerCapability`.
#[derive(Default)]
pub(crate) struct RegisteredCapabilities {
    registered: Vec<CapabilityRegistration>,
    /// Watchers, each with the id of its registration.
    watchers: Vec<(String, FileWatchGlob)>,
}

/// A glob of `workspace/didChangeWatchedFiles`.
struct FileWatchGlob {
    /// Folder that the glob is relative to, with a trailing slash. Without one, the glob is an
    /// absolute path or relative to the server's root.
    base: Option<String>,
    glob: Regex,
}

impl RegisteredCapabilities {
    /// Adds registrations; those beyond `MAX_REGISTRATIONS` and the other limits are dropped.
    pub(crate) fn register(&mut self, registrations: Vec<CapabilityRegistration>) {
        for registration in registrations {
            self.unregister(std::slice::from_ref(&registration.id));
            if self.registered.len() >= MAX_REGISTRATIONS
                || registration.id.len() > 256
                || registration.method.len() > 256
            {
                return;
            }
            if registration.method == DID_CHANGE_WATCHED_FILES {
                let room = MAX_WATCHERS.saturating_sub(self.watchers.len());
                let watchers = parse_watchers(&registration.options).take(room);
                self.watchers.extend(watchers.map(|watcher| (registration.id.clone(), watcher)));
                self.registered
                    .push(CapabilityRegistration { options: Value::Null, ..registration });
            } else if registration.options.to_string().len() <= MAX_OPTIONS_BYTES {
                self.registered.push(registration);
            }
        }
    }

    /// Removes the registrations with these `ids`.
    pub(crate) fn unregister(&mut self, ids: &[String]) {
        self.registered.retain(|registration| !ids.contains(&registration.id));
        self.watchers.retain(|(id, _)| !ids.contains(id));
    }

    /// Returns the options of the last registration of a method.
    pub(crate) fn options(&self, method: &str) -> Option<&Value> {
        let mut registrations = self.registered.iter().rev();
        registrations
            .find(|registration| registration.method == method)
            .map(|registration| &registration.options)
    }

    /// Returns true if a watcher matches a file: `absolute` is its absolute path, `in_root` its
    /// path from the server's root, if it is there.
    pub(crate) fn is_watched(&self, absolute: &str, in_root: Option<&str>) -> bool {
        self.watchers.iter().any(|(_, watcher)| match &watcher.base {
            Some(base) => {
                let rest = absolute.strip_prefix(base.as_str());
                rest.is_some_and(|rest| watcher.glob.is_match(rest.as_bytes()))
            }
            None => {
                let matches = |path: &str| watcher.glob.is_match(path.as_bytes());
                matches(absolute) || in_root.is_some_and(matches)
            }
        })
    }
}

/// Returns the `initialize` capability for a method; `None` if it is not supported.
pub(crate) fn static_capability<'a>(capabilities: &'a Value, method: &str) -> Option<&'a Value> {
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
    let capability = capabilities.pointer(pointer)?;
    (!capability.is_null() && *capability != Value::Bool(false)).then_some(capability)
}

/// Returns the method under which a server registers the given one.
pub(crate) fn registration_method(method: &str) -> &str {
    match method {
        "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls" => {
            "textDocument/prepareCallHierarchy"
        }
        other => other,
    }
}

fn parse_watchers(options: &Value) -> impl Iterator<Item = FileWatchGlob> + '_ {
    let watchers = options.get("watchers").and_then(Value::as_array);
    watchers.into_iter().flatten().filter_map(|item| {
        let pattern = item.get("globPattern")?;
        if let Some(text) = pattern.as_str() {
            return Some(FileWatchGlob { base: None, glob: compile_glob(text)? });
        }
        let base = pattern.get("baseUri")?;
        let base = base.as_str().or_else(|| base.get("uri")?.as_str())?;
        let path = Url::parse(base).ok()?.to_file_path().ok()?;
        let base = format!("{}/", path.to_str()?.trim_end_matches('/'));
        Some(FileWatchGlob {
            base: Some(base),
            glob: compile_glob(pattern.get("pattern")?.as_str()?)?,
        })
    })
}

/// Compiles an LSP glob into a regex; `None` if it is invalid.
fn compile_glob(text: &str) -> Option<Regex> {
    if text.len() > MAX_GLOB_BYTES {
        return None;
    }
    let mut out = String::from("^(?:");
    let mut rest = text.chars().peekable();
    let mut open_braces = 0_usize;
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                let folders = rest.next_if_eq(&'/').is_some();
                out.push_str(if folders { "(?:.*/)?" } else { ".*" });
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                open_braces += 1;
                out.push_str("(?:");
            }
            '}' => {
                open_braces = open_braces.checked_sub(1)?;
                out.push(')');
            }
            ',' if open_braces > 0 => out.push('|'),
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
    builder
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(MAX_COMPILED_GLOB_BYTES)
        .dfa_size_limit(MAX_COMPILED_GLOB_BYTES);
    if open_braces == 0 { builder.build().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn registrations(watchers: Value) -> RegisteredCapabilities {
        let mut registrations = RegisteredCapabilities::default();
        let options = json!({"watchers": watchers});
        registrations.register(vec![CapabilityRegistration {
            id: "w".into(),
            method: DID_CHANGE_WATCHED_FILES.into(),
            options,
        }]);
        registrations
    }

    #[test]
    fn globs_match_as_the_protocol_defines() {
        for (text, matching, other) in [
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
            let glob = compile_glob(text).unwrap();
            matching
                .iter()
                .for_each(|path| assert!(glob.is_match(path.as_bytes()), "{text}: {path}"));
            other
                .iter()
                .for_each(|path| assert!(!glob.is_match(path.as_bytes()), "{text}: {path}"));
        }
        for invalid in ["{a", "a}", "[", "[a", &"*".repeat(MAX_GLOB_BYTES + 1)] {
            assert!(compile_glob(invalid).is_none(), "{invalid}");
        }
    }

    #[test]
    fn a_watcher_matches_relative_to_its_base() {
        let registrations = registrations(json!([
            {"globPattern": {"baseUri": "file:///w/sub", "pattern": "*.toml"}},
            {"globPattern": {"baseUri": {"uri": "file:///w/deep/", "name": "d"}, "pattern": "**/*.c"}},
            {"globPattern": "**/go.mod"}, {"globPattern": "/w/x.lock", "kind": 1},
            {"globPattern": {"baseUri": "https://a.test", "pattern": "*"}}, {}, 3,
        ]));
        for path in ["/w/sub/a.toml", "/w/deep/a/b.c", "/w/x/go.mod", "/w/x.lock"] {
            assert!(registrations.is_watched(path, path.strip_prefix("/w/")), "{path}");
        }
        for path in ["/w/a.toml", "/w/sub/x/a.toml", "/w/sub.toml", "/w/b.c", "/w/y.lock"] {
            assert!(!registrations.is_watched(path, path.strip_prefix("/w/")), "{path}");
        }
    }

    #[test]
    fn the_last_registration_wins_and_is_removed_by_id() {
        let one = |id: &str, n: u64| CapabilityRegistration {
            id: id.into(),
            method: "textDocument/diagnostic".into(),
            options: json!({"n": n}),
        };
        let mut registrations = registrations(json!([{"globPattern": "**"}]));
        registrations.register(vec![one("a", 1), one("b", 2), one("a", 3)]);
        assert_eq!(registrations.options("textDocument/diagnostic"), Some(&json!({"n": 3})));
        registrations.unregister(&["a".into(), "w".into()]);
        assert_eq!(registrations.options("textDocument/diagnostic"), Some(&json!({"n": 2})));
        assert!(!registrations.is_watched("/w/a", Some("a")));
        registrations.register((0..10_000).map(|n| one(&n.to_string(), n)).collect());
        assert!(registrations.registered.len() <= MAX_REGISTRATIONS);
    }

    #[test]
    fn false_and_null_capabilities_do_not_count() {
        let all = json!({"hoverProvider": false, "definitionProvider": null,
            "referencesProvider": true, "callHierarchyProvider": {},
            "diagnosticProvider": {"workspaceDiagnostics": false}});
        for (method, supported) in [
            ("textDocument/hover", false),
            ("textDocument/definition", false),
            ("textDocument/references", true),
            ("callHierarchy/incomingCalls", true),
            ("textDocument/diagnostic", true),
            ("workspace/diagnostic", false),
            ("something/else", false),
        ] {
            assert_eq!(static_capability(&all, method).is_some(), supported, "{method}");
        }
    }

    proptest! {
        #[test]
        fn any_glob_compiles_or_is_rejected(
            text in r"[a-c*?{},\[\]!/.\\^$|()+-]{0,60}", path in "[a-c/.]{0,40}"
        ) {
            if let Some(glob) = compile_glob(&text) {
                glob.is_match(path.as_bytes());
            }
        }
    }
}
