//! What servers hear when they ask something of us, and what comes of it. Pure: nothing is sent here.
//!
//! Servers ask for settings, want to be told of files, and would like to change some. The last they
//! may not: changes go through tools, on record. Start reading at [`reply`].

use serde_json::{Map, Value, json};

/// So many settings may be asked for at once.
const ITEMS: usize = 64;

/// No such method.
const UNKNOWN: i64 = -32601;
/// The request makes no sense.
const INVALID: i64 = -32602;

/// What a server may know of where it is.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Its settings.
    pub(crate) settings: Value,
    /// Its root, as an address.
    pub(crate) uri: String,
    /// Its root, as a name.
    pub(crate) name: String,
}

/// Something that a server offers since it started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Registration {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) options: Value,
}

/// What comes of a request, besides its answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// It offers more.
    Register(Vec<Registration>),
    /// It no longer offers what has these names.
    Unregister(Vec<String>),
    /// What was pulled from it no longer counts.
    Stale,
    /// Somebody may read this.
    Journal(String),
}

/// An answer: a result, or the number and words of an error.
pub(crate) type Said = Result<Value, (i64, &'static str)>;

impl Terms {
    /// The folder that it works in, as the protocol spells it.
    pub(crate) fn folders(&self) -> Value {
        json!([{"uri": self.uri, "name": self.name}])
    }
}

/// What a server hears that asks this.
pub(crate) fn reply(method: &str, params: &Value, terms: &Terms) -> (Said, Effect) {
    let null = || Ok(Value::Null);
    match method {
        "workspace/configuration" => (configuration(params, &terms.settings), Effect::None),
        "workspace/workspaceFolders" => (Ok(terms.folders()), Effect::None),
        "client/registerCapability" => {
            let wanted = list(params, &["registrations"]).filter_map(registration);
            (null(), Effect::Register(wanted.collect()))
        }
        "client/unregisterCapability" => {
            // The protocol itself spells it wrongly; some servers do not.
            let wanted = list(params, &["unregisterations", "unregistrations"]);
            let ids = wanted.filter_map(|item| text(item, "id"));
            (null(), Effect::Unregister(ids.collect()))
        }
        "workspace/diagnostic/refresh" => (null(), Effect::Stale),
        "window/workDoneProgress/create"
        | "workspace/semanticTokens/refresh"
        | "workspace/inlayHint/refresh"
        | "workspace/inlineValue/refresh"
        | "workspace/codeLens/refresh"
        | "workspace/foldingRange/refresh"
        | "workspace/textDocumentContent/refresh" => (null(), Effect::None),
        "workspace/applyEdit" => {
            let why = "changes go through the agent's tools";
            (Ok(json!({"applied": false, "failureReason": why})), Effect::None)
        }
        "window/showMessageRequest" => {
            (null(), text(params, "message").map_or(Effect::None, Effect::Journal))
        }
        "window/showDocument" => (Ok(json!({"success": false})), Effect::None),
        _ => (Err((UNKNOWN, "this is not known here")), Effect::None),
    }
}

fn list<'a>(params: &'a Value, names: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    let found = names.iter().find_map(|name| params.get(name)?.as_array());
    found.into_iter().flatten()
}

fn text(item: &Value, name: &str) -> Option<String> {
    item.get(name)?.as_str().map(str::to_owned)
}

fn registration(item: &Value) -> Option<Registration> {
    let options = item.get("registerOptions").cloned().unwrap_or_default();
    Some(Registration { id: text(item, "id")?, method: text(item, "method")?, options })
}

fn configuration(params: &Value, settings: &Value) -> Said {
    let items: Vec<&Value> = list(params, &["items"]).take(ITEMS + 1).collect();
    if items.len() > ITEMS {
        return Err((INVALID, "that is too much at once"));
    }
    let section = |item: &&Value| match item.get("section").and_then(Value::as_str) {
        None | Some("") => settings.clone(),
        Some(section) => at(settings, section).cloned().unwrap_or_default(),
    };
    Ok(items.iter().map(section).collect())
}

/// What stands under a name with dots, which are steps or parts of a name.
fn at<'a>(settings: &'a Value, section: &str) -> Option<&'a Value> {
    let folder: &Map<String, Value> = settings.as_object()?;
    if let Some(found) = folder.get(section) {
        return Some(found);
    }
    let mut dots = section.match_indices('.').take(16);
    dots.find_map(|(dot, _)| {
        let (name, rest) = section.split_at_checked(dot)?;
        at(folder.get(name)?, rest.strip_prefix('.')?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let settings = json!({
            "python": {"analysis": {"mode": "strict"}},
            "ruff.lint": {"on": true},
            "yaml": {"schema.store": {"on": false}},
        });
        Terms { settings, uri: "file:///w".into(), name: "w".into() }
    }

    fn hear(method: &str, params: Value) -> (Said, Effect) {
        reply(method, &params, &terms())
    }

    #[test]
    fn settings_are_found_by_their_section() {
        let items = json!({"items": [
            {"section": "python"}, {"section": "python.analysis.mode"}, {"section": "ruff.lint.on"},
            {"section": "yaml.schema.store"}, {"section": "python.analysis.mode.deeper"},
            {"section": "nothing"}, {"section": ".."}, {"section": 7}, {}, "odd",
        ]});
        let all = terms().settings;
        let said = hear("workspace/configuration", items).0.unwrap();
        assert_eq!(
            said,
            json!([{"analysis": {"mode": "strict"}}, "strict", true, {"on": false}, null,
                   null, null, all.clone(), all.clone(), all])
        );
        assert_eq!(hear("workspace/configuration", json!(3)).0, Ok(json!([])));
        let many = json!({"items": vec![json!({}); ITEMS + 1]});
        assert_eq!(hear("workspace/configuration", many).0.unwrap_err().0, INVALID);
    }

    #[test]
    fn nothing_that_it_asks_for_changes_anything() {
        let edit = json!({"edit": {"changes": {"file:///w/a": []}}});
        let (said, effect) = hear("workspace/applyEdit", edit);
        assert_eq!((said.unwrap()["applied"].clone(), effect), (json!(false), Effect::None));
        let (said, _) = hear("window/showDocument", json!({"uri": "https://a.test"}));
        assert_eq!(said.unwrap(), json!({"success": false}));
        assert_eq!(hear("workspace/executeCommand", json!({})).0.unwrap_err().0, UNKNOWN);
        let (said, effect) = hear("window/showMessageRequest", json!({"message": "Update?"}));
        assert_eq!((said, effect), (Ok(Value::Null), Effect::Journal("Update?".into())));
    }

    #[test]
    fn what_it_offers_later_is_told_by_both_spellings() {
        let (said, effect) = hear(
            "client/registerCapability",
            json!({"registrations": [
                {"id": "1", "method": "textDocument/diagnostic", "registerOptions": {"a": 1}},
                {"id": 2, "method": "x"}, {"id": "3"}, null,
            ]}),
        );
        let (id, method) = ("1".to_owned(), "textDocument/diagnostic".to_owned());
        let one = Registration { id, method, options: json!({"a": 1}) };
        assert_eq!((said, effect), (Ok(Value::Null), Effect::Register(vec![one])));
        for name in ["unregisterations", "unregistrations"] {
            let gone = json!({name: [{"id": "1", "method": "m"}, {}]});
            let effect = hear("client/unregisterCapability", gone).1;
            assert_eq!(effect, Effect::Unregister(vec!["1".into()]));
        }
        assert_eq!(hear("workspace/diagnostic/refresh", Value::Null).1, Effect::Stale);
    }
}
