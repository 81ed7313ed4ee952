//! Messages that the client sends, recorded by a server and compared with the protocol.
//!
//! Each message must parse as its type of the protocol, and must be unchanged when the type is
//! serialized again.

use crate::support::{TestProject, run};
use gen_lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Asserts that a value round-trips through a type.
fn assert_is<T: DeserializeOwned + Serialize>(method: &str, value: &Value) {
    let parsed: T = serde_json::from_value(value.clone())
        .unwrap_or_else(|error| panic!("{method}: {error}: {value}"));
    assert_eq!(&serde_json::to_value(parsed).unwrap(), value, "{method}");
}

fn check_message(method: &str, params: &Value) {
    match method {
        "initialize" => assert_is::<lsp::InitializeParams>(method, params),
        "initialized" => assert_is::<lsp::InitializedParams>(method, params),
        "textDocument/didOpen" => assert_is::<lsp::DidOpenTextDocumentParams>(method, params),
        "textDocument/didChange" => assert_is::<lsp::DidChangeTextDocumentParams>(method, params),
        "textDocument/didSave" => assert_is::<lsp::DidSaveTextDocumentParams>(method, params),
        "textDocument/didClose" => assert_is::<lsp::DidCloseTextDocumentParams>(method, params),
        "textDocument/diagnostic" => assert_is::<lsp::DocumentDiagnosticParams>(method, params),
        "textDocument/definition" => assert_is::<lsp::DefinitionParams>(method, params),
        "textDocument/references" => assert_is::<lsp::ReferenceParams>(method, params),
        "textDocument/hover" => assert_is::<lsp::HoverParams>(method, params),
        "textDocument/implementation" => assert_is::<lsp::ImplementationParams>(method, params),
        "textDocument/documentSymbol" => assert_is::<lsp::DocumentSymbolParams>(method, params),
        "workspace/symbol" => assert_is::<lsp::WorkspaceSymbolParams>(method, params),
        "textDocument/prepareCallHierarchy" => {
            assert_is::<lsp::CallHierarchyPrepareParams>(method, params);
        }
        "callHierarchy/incomingCalls" => {
            assert_is::<lsp::CallHierarchyIncomingCallsParams>(method, params)
        }
        "callHierarchy/outgoingCalls" => {
            assert_is::<lsp::CallHierarchyOutgoingCallsParams>(method, params)
        }
        "workspace/didChangeWatchedFiles" => {
            assert_is::<lsp::DidChangeWatchedFilesParams>(method, params)
        }
        "workspace/didChangeConfiguration" => {
            assert_is::<lsp::DidChangeConfigurationParams>(method, params);
        }
        "$/cancelRequest" => assert_is::<lsp::CancelParams>(method, params),
        other => panic!("the client must not send {other}"),
    }
}

/// Checks the response to a request of the server.
fn check_response(method: &str, result: &Value) {
    match method {
        "client/registerCapability" | "window/workDoneProgress/create" => {
            assert_eq!(*result, Value::Null);
        }
        "workspace/workspaceFolders" => assert_is::<Vec<lsp::WorkspaceFolder>>(method, result),
        "workspace/configuration" => assert_eq!(*result, json!([{"a": 1}])),
        "workspace/applyEdit" => assert_is::<lsp::ApplyWorkspaceEditResult>(method, result),
        "window/showDocument" => assert_is::<lsp::ShowDocumentResult>(method, result),
        other => panic!("the server did not request {other}"),
    }
}

/// Creates a project with the server `rogue.py` in this mode.
fn project_with_rogue(mode: &str) -> TestProject {
    let config = serde_json::from_value(json!({
        "name": "rogue", "language": "x", "command": ["python3", "rogue.py", mode, "words"],
        "extensions": {".x": "x"}, "single_file": true, "settings": {"rogue": {"a": 1}},
        "initialization": {"b": 2}, "install": "`get it`",
    }));
    let env = TestProject::new(Path::new("/"), "sh", vec![config.unwrap()]);
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
    std::fs::copy(rogue, env.root.join("rogue.py")).unwrap();
    for name in ["a.x", "b.x"] {
        std::fs::write(env.root.join(name), "some text\n").unwrap();
    }
    env
}

/// Late diagnostics are reported once, and not if the file was changed again.
pub fn late_diagnostics_are_reported_between_steps() {
    run(async {
        let mut env = project_with_rogue("late");
        env.query("hover a.x:1:1").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (review, elapsed) = env.timed_edit("a.x", "more text\n").await;
        assert!(
            review.is_none()
                && elapsed < windlass_testkit::time_limits::limit(Duration::from_millis(3_400)),
            "{elapsed:?} {review:?}"
        );
        let notice =
            env.next_notice(Duration::from_secs(3)).await.expect("late diagnostics arrive");
        assert!(
            notice.starts_with("After your change to a.x, rogue reports 1 new error"),
            "{notice}"
        );
        assert!(notice.contains("a.x:1:1: it is late"), "{notice}");
        // The next change of the file drops the pending report of the one before.
        env.edit("a.x", "text again\n").await;
        env.edit("a.x", "text at last\n").await;
        let notice =
            env.next_notice(Duration::from_secs(5)).await.expect("late diagnostics arrive");
        assert!(notice.contains("\n    text at last"), "{notice}");
        let more = env.next_notice(Duration::from_secs(1)).await;
        assert!(more.is_none(), "{more:?}");
        env.servers.close().await;
    });
}

/// All changes of a step share one limit, and none of their late errors is lost.
pub fn the_changes_of_a_step_wait_together() {
    run(async {
        let mut env = project_with_rogue("late");
        env.query("hover a.x:1:1").await;
        env.query("hover b.x:1:1").await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        let mut total = Duration::ZERO;
        for (path, text) in [("a.x", "one\n"), ("b.x", "two\n"), ("a.x", "three\n")] {
            let (review, elapsed) = env.timed_edit(path, text).await;
            assert!(review.is_none(), "{review:?}");
            total += elapsed;
        }
        assert!(
            total < windlass_testkit::time_limits::limit(Duration::from_millis(1_400)),
            "{total:?}"
        );
        let mut notices = String::new();
        while !notices.contains("a.x:1:1") || !notices.contains("b.x:1:1") {
            let notice = env.next_notice(Duration::from_secs(5)).await;
            notices.push_str(&notice.unwrap_or_else(|| panic!("errors are missing: {notices}")));
        }
        assert!(notices.contains("\n    three") && notices.contains("\n    two"), "{notices}");
        env.servers.close().await;
    });
}

/// A change does not wait for a slow start, and errors that were there before are not called new.
pub fn a_server_that_starts_slowly_reports_later() {
    run(async {
        let mut env = project_with_rogue("slow_start");
        let (review, elapsed) = env.timed_edit("a.x", "more text\n").await;
        assert!(
            review.is_none()
                && elapsed < windlass_testkit::time_limits::limit(Duration::from_millis(1_400)),
            "{elapsed:?} {review:?}"
        );
        let (_, elapsed) = env.timed_edit("b.x", "more text\n").await;
        assert!(elapsed < windlass_testkit::time_limits::limit(Duration::from_millis(400)));
        let notice = env.next_notice(Duration::from_secs(8)).await.expect("errors arrive");
        assert!(notice.starts_with("After your change to a.x, b.x, rogue reports"), "{notice}");
        assert!(notice.contains("in files that it had not checked before:\na.x:1:1"), "{notice}");
        env.servers.close().await;
    });
}

pub fn every_message_matches_the_protocol_types() {
    run(async {
        let env = project_with_rogue("records");
        env.query("documentSymbol a.x").await;
        for operation in [
            "goToDefinition",
            "findReferences",
            "hover",
            "goToImplementation",
            "prepareCallHierarchy",
            "incomingCalls",
            "outgoingCalls",
        ] {
            env.query(&format!("{operation} a.x:1:2")).await;
        }
        env.query("workspaceSymbol a.x? text").await;
        env.query("documentSymbol b.x").await;
        env.edit("a.x", "other text\n").await;
        let world = env.world("b.x");
        std::fs::remove_file(env.root.join("b.x")).unwrap();
        env.servers.notify_changed(&world, vec![("b.x".into(), None)]);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let limits = (Duration::from_secs(10), Duration::from_secs(5));
        let received = env
            .servers
            .send_raw_request(&env.world("a.x"), "a.x", "received", json!({}), limits)
            .await;
        let received = received.unwrap();
        let mut methods = BTreeSet::new();
        for message in received.as_array().unwrap() {
            match (message["method"].as_str(), message["id"].as_str()) {
                (Some(method), _) => {
                    check_message(method, message.get("params").unwrap_or(&Value::Null));
                    methods.insert(method.to_owned());
                }
                (None, Some(method)) => {
                    check_response(method, &message["result"]);
                    methods.insert(method.to_owned());
                }
                (None, None) => panic!("{message}"),
            }
        }
        assert!(methods.len() >= 22, "some messages were never sent: {methods:?}");
        env.servers.close().await;
    });
}
