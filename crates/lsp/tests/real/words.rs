//! What we say, word by word: a server that records everything hears only what the protocol knows.
//!
//! Types of the protocol itself are the judge: each message has to be one, and nothing of it may be
//! lost on the way through the type.

use crate::site::{Site, run};
use gen_lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Fails unless a value is of a type, and of nothing else.
fn is<T: DeserializeOwned + Serialize>(method: &str, said: &Value) {
    let read: T = serde_json::from_value(said.clone())
        .unwrap_or_else(|error| panic!("{method}: {error}: {said}"));
    assert_eq!(&serde_json::to_value(read).unwrap(), said, "{method}");
}

fn check(method: &str, params: &Value) {
    match method {
        "initialize" => is::<lsp::InitializeParams>(method, params),
        "initialized" => is::<lsp::InitializedParams>(method, params),
        "textDocument/didOpen" => is::<lsp::DidOpenTextDocumentParams>(method, params),
        "textDocument/didChange" => is::<lsp::DidChangeTextDocumentParams>(method, params),
        "textDocument/didSave" => is::<lsp::DidSaveTextDocumentParams>(method, params),
        "textDocument/didClose" => is::<lsp::DidCloseTextDocumentParams>(method, params),
        "textDocument/diagnostic" => is::<lsp::DocumentDiagnosticParams>(method, params),
        "textDocument/definition" => is::<lsp::DefinitionParams>(method, params),
        "textDocument/references" => is::<lsp::ReferenceParams>(method, params),
        "textDocument/hover" => is::<lsp::HoverParams>(method, params),
        "textDocument/implementation" => is::<lsp::ImplementationParams>(method, params),
        "textDocument/documentSymbol" => is::<lsp::DocumentSymbolParams>(method, params),
        "workspace/symbol" => is::<lsp::WorkspaceSymbolParams>(method, params),
        "textDocument/prepareCallHierarchy" => {
            is::<lsp::CallHierarchyPrepareParams>(method, params);
        }
        "callHierarchy/incomingCalls" => {
            is::<lsp::CallHierarchyIncomingCallsParams>(method, params)
        }
        "callHierarchy/outgoingCalls" => {
            is::<lsp::CallHierarchyOutgoingCallsParams>(method, params)
        }
        "workspace/didChangeWatchedFiles" => is::<lsp::DidChangeWatchedFilesParams>(method, params),
        "workspace/didChangeConfiguration" => {
            is::<lsp::DidChangeConfigurationParams>(method, params);
        }
        "$/cancelRequest" => is::<lsp::CancelParams>(method, params),
        other => panic!("{other} is no word of ours"),
    }
}

/// Answers to what a server asks, by what it asked.
fn check_answer(question: &str, result: &Value) {
    match question {
        "client/registerCapability" | "window/workDoneProgress/create" => {
            assert_eq!(*result, Value::Null);
        }
        "workspace/workspaceFolders" => is::<Vec<lsp::WorkspaceFolder>>(question, result),
        "workspace/configuration" => assert_eq!(*result, json!([{"a": 1}])),
        "workspace/applyEdit" => is::<lsp::ApplyWorkspaceEditResult>(question, result),
        "window/showDocument" => is::<lsp::ShowDocumentResult>(question, result),
        other => panic!("{other} was not asked"),
    }
}

/// A project with a server that behaves in a way.
fn served(way: &str) -> Site {
    let row = serde_json::from_value(json!({
        "name": "rogue", "language": "x", "command": ["python3", "rogue.py", way, "words"],
        "extensions": {".x": "x"}, "alone": true, "settings": {"rogue": {"a": 1}},
        "initialization": {"b": 2}, "install": "`get it`",
    }));
    let site = Site::new(Path::new("/"), "sh", vec![row.unwrap()]);
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rogue.py");
    std::fs::copy(rogue, site.root.join("rogue.py")).unwrap();
    for name in ["a.x", "b.x"] {
        std::fs::write(site.root.join(name), "some text\n").unwrap();
    }
    site
}

/// What a compiler finds long after a change is told once, and not if the file was changed again.
pub fn what_comes_after_the_wait_is_told_between_steps() {
    run(async {
        let mut site = served("late");
        site.ask("hover a.x:1:1").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (review, took) = site.timed("a.x", "more text\n").await;
        assert!(review.is_none() && took < Duration::from_millis(3_400), "{took:?} {review:?}");
        let told = site.told(Duration::from_secs(3)).await.expect("it comes later");
        assert!(told.starts_with("After your change of a.x, rogue reports 1 new error"), "{told}");
        assert!(told.contains("a.x:1:1: it is late"), "{told}");
        // The next change of the file drops what was owed of the one before.
        site.edit("a.x", "text again\n").await;
        site.edit("a.x", "text at last\n").await;
        let told = site.told(Duration::from_secs(5)).await.expect("it comes later");
        assert!(told.contains("\n    text at last"), "{told}");
        let more = site.told(Duration::from_secs(1)).await;
        assert!(more.is_none(), "{more:?}");
        site.code.close().await;
    });
}

pub fn everything_we_say_is_of_the_protocol() {
    run(async {
        let site = served("records");
        site.ask("documentSymbol a.x").await;
        for operation in [
            "goToDefinition",
            "findReferences",
            "hover",
            "goToImplementation",
            "prepareCallHierarchy",
            "incomingCalls",
            "outgoingCalls",
        ] {
            site.ask(&format!("{operation} a.x:1:2")).await;
        }
        site.ask("workspaceSymbol a.x? text").await;
        site.ask("documentSymbol b.x").await;
        site.edit("a.x", "other text\n").await;
        let world = site.world("b.x");
        std::fs::remove_file(site.root.join("b.x")).unwrap();
        site.code.changed(&world, vec![("b.x".into(), None)]);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let limits = (Duration::from_secs(10), Duration::from_secs(5));
        let heard = site.code.probe(&site.world("a.x"), "a.x", "heard", json!({}), limits).await;
        let heard = heard.unwrap();
        let mut said = BTreeSet::new();
        for message in heard.as_array().unwrap() {
            match (message["method"].as_str(), message["id"].as_str()) {
                (Some(method), _) => {
                    check(method, message.get("params").unwrap_or(&Value::Null));
                    said.insert(method.to_owned());
                }
                (None, Some(question)) => {
                    check_answer(question, &message["result"]);
                    said.insert(question.to_owned());
                }
                (None, None) => panic!("{message}"),
            }
        }
        assert!(said.len() >= 22, "much was never said: {said:?}");
        site.code.close().await;
    });
}
