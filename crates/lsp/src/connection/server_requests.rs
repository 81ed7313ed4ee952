//! Answers requests that a server sends to the client, and returns their effects. Performs no I/O.
//!
//! Servers request settings, register file watchers and try to edit files. Edits are refused:
//! changes go through tools, which record them. Start reading at [`answer_request`].

use serde_json::{Map, Value, json};

/// Limit for the items of one `workspace/configuration` request.
const MAX_CONFIGURATION_ITEMS: usize = 64;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Settings and location of the workspace, as the server may know them.
#[derive(Clone, Debug)]
pub(crate) struct ServerWorkspaceInfo {
    pub(crate) settings: Value,
    pub(crate) root_uri: String,
    pub(crate) root_name: String,
}

/// A capability that a server registered after its start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CapabilityRegistration {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) options: Value,
}

/// Effect of a server's request, in addition to the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServerRequestEffect {
    None,
    /// `client/registerCapability`: adds registrations.
    Register(Vec<CapabilityRegistration>),
    /// `client/unregisterCapability`: removes the registrations with these ids.
    Unregister(Vec<String>),
    /// `workspace/diagnostic/refresh`: marks pulled diagnostics as stale.
    RefreshDiagnostics,
    /// `window/showMessageRequest`: logs the message for the user.
    Log(String),
}

/// Answer to a server's request: a result, or an error code and message.
pub(crate) type ServerRequestResult = Result<Value, (i64, &'static str)>;

impl ServerWorkspaceInfo {
    /// Returns the `workspaceFolders` of the protocol: the project root.
    pub(crate) fn workspace_folders(&self) -> Value {
        json!([{"uri": self.root_uri, "name": self.root_name}])
    }
}

/// Returns the answer to a server's request, and its effect.
pub(crate) fn answer_request(
    method: &str,
    params: &Value,
    workspace_info: &ServerWorkspaceInfo,
) -> (ServerRequestResult, ServerRequestEffect) {
    let null = || Ok(Value::Null);
    match method {
        "workspace/configuration" => {
            (answer_configuration(params, &workspace_info.settings), ServerRequestEffect::None)
        }
        "workspace/workspaceFolders" => {
            (Ok(workspace_info.workspace_folders()), ServerRequestEffect::None)
        }
        "client/registerCapability" => {
            let items = list_items(params, &["registrations"]).filter_map(parse_registration);
            (null(), ServerRequestEffect::Register(items.collect()))
        }
        "client/unregisterCapability" => {
            // The protocol misspells the name as `unregisterations`; some servers spell it
            // correctly.
            let items = list_items(params, &["unregisterations", "unregistrations"]);
            let ids = items.filter_map(|item| string_field(item, "id"));
            (null(), ServerRequestEffect::Unregister(ids.collect()))
        }
        "workspace/diagnostic/refresh" => (null(), ServerRequestEffect::RefreshDiagnostics),
        "window/workDoneProgress/create"
        | "workspace/semanticTokens/refresh"
        | "workspace/inlayHint/refresh"
        | "workspace/inlineValue/refresh"
        | "workspace/codeLens/refresh"
        | "workspace/foldingRange/refresh"
        | "workspace/textDocumentContent/refresh" => (null(), ServerRequestEffect::None),
        "workspace/applyEdit" => {
            let reason = "only the agent's tools may edit files";
            (Ok(json!({"applied": false, "failureReason": reason})), ServerRequestEffect::None)
        }
        "window/showMessageRequest" => (
            null(),
            string_field(params, "message")
                .map_or(ServerRequestEffect::None, ServerRequestEffect::Log),
        ),
        "window/showDocument" => (Ok(json!({"success": false})), ServerRequestEffect::None),
        _ => (Err((METHOD_NOT_FOUND, "method not supported")), ServerRequestEffect::None),
    }
}

fn list_items<'a>(params: &'a Value, names: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    let items = names.iter().find_map(|name| params.get(name)?.as_array());
    items.into_iter().flatten()
}

fn string_field(item: &Value, name: &str) -> Option<String> {
    item.get(name)?.as_str().map(str::to_owned)
}

fn parse_registration(item: &Value) -> Option<CapabilityRegistration> {
    let options = item.get("registerOptions").cloned().unwrap_or_default();
    Some(CapabilityRegistration {
        id: string_field(item, "id")?,
        method: string_field(item, "method")?,
        options,
    })
}

fn answer_configuration(params: &Value, settings: &Value) -> ServerRequestResult {
    let items: Vec<&Value> =
        list_items(params, &["items"]).take(MAX_CONFIGURATION_ITEMS + 1).collect();
    if items.len() > MAX_CONFIGURATION_ITEMS {
        return Err((INVALID_PARAMS, "too many items at once"));
    }
    let section = |item: &&Value| match item.get("section").and_then(Value::as_str) {
        None | Some("") => settings.clone(),
        Some(section) => lookup_section(settings, section).cloned().unwrap_or_default(),
    };
    Ok(items.iter().map(section).collect())
}

/// Looks up a dotted section name. A dot is either a level of nesting or part of a key.
fn lookup_section<'a>(settings: &'a Value, section: &str) -> Option<&'a Value> {
    let map: &Map<String, Value> = settings.as_object()?;
    if let Some(value) = map.get(section) {
        return Some(value);
    }
    let mut dots = section.match_indices('.').take(16);
    dots.find_map(|(dot, _)| {
        let (name, rest) = section.split_at_checked(dot)?;
        lookup_section(map.get(name)?, rest.strip_prefix('.')?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace_info() -> ServerWorkspaceInfo {
        let settings = json!({
            "python": {"analysis": {"mode": "strict"}},
            "ruff.lint": {"on": true},
            "yaml": {"schema.store": {"on": false}},
        });
        ServerWorkspaceInfo { settings, root_uri: "file:///w".into(), root_name: "w".into() }
    }

    fn answer(method: &str, params: Value) -> (ServerRequestResult, ServerRequestEffect) {
        answer_request(method, &params, &workspace_info())
    }

    #[test]
    fn settings_are_found_by_their_section() {
        let items = json!({"items": [
            {"section": "python"}, {"section": "python.analysis.mode"}, {"section": "ruff.lint.on"},
            {"section": "yaml.schema.store"}, {"section": "python.analysis.mode.deeper"},
            {"section": "nothing"}, {"section": ".."}, {"section": 7}, {}, "odd",
        ]});
        let all = workspace_info().settings;
        let result = answer("workspace/configuration", items).0.unwrap();
        assert_eq!(
            result,
            json!([{"analysis": {"mode": "strict"}}, "strict", true, {"on": false}, null,
                   null, null, all.clone(), all.clone(), all])
        );
        assert_eq!(answer("workspace/configuration", json!(3)).0, Ok(json!([])));
        let many = json!({"items": vec![json!({}); MAX_CONFIGURATION_ITEMS + 1]});
        assert_eq!(answer("workspace/configuration", many).0.unwrap_err().0, INVALID_PARAMS);
    }

    #[test]
    fn no_server_request_changes_anything() {
        let edit = json!({"edit": {"changes": {"file:///w/a": []}}});
        let (result, effect) = answer("workspace/applyEdit", edit);
        assert_eq!(
            (result.unwrap()["applied"].clone(), effect),
            (json!(false), ServerRequestEffect::None)
        );
        let (result, _) = answer("window/showDocument", json!({"uri": "https://a.test"}));
        assert_eq!(result.unwrap(), json!({"success": false}));
        assert_eq!(
            answer("workspace/executeCommand", json!({})).0.unwrap_err().0,
            METHOD_NOT_FOUND
        );
        let (result, effect) = answer("window/showMessageRequest", json!({"message": "Update?"}));
        assert_eq!((result, effect), (Ok(Value::Null), ServerRequestEffect::Log("Update?".into())));
    }

    #[test]
    fn registrations_are_parsed_in_both_spellings() {
        let (result, effect) = answer(
            "client/registerCapability",
            json!({"registrations": [
                {"id": "1", "method": "textDocument/diagnostic", "registerOptions": {"a": 1}},
                {"id": 2, "method": "x"}, {"id": "3"}, null,
            ]}),
        );
        let (id, method) = ("1".to_owned(), "textDocument/diagnostic".to_owned());
        let one = CapabilityRegistration { id, method, options: json!({"a": 1}) };
        assert_eq!((result, effect), (Ok(Value::Null), ServerRequestEffect::Register(vec![one])));
        for name in ["unregisterations", "unregistrations"] {
            let params = json!({name: [{"id": "1", "method": "m"}, {}]});
            let effect = answer("client/unregisterCapability", params).1;
            assert_eq!(effect, ServerRequestEffect::Unregister(vec!["1".into()]));
        }
        assert_eq!(
            answer("workspace/diagnostic/refresh", Value::Null).1,
            ServerRequestEffect::RefreshDiagnostics
        );
    }
}
