//! Tests of the payloads that hooks receive and of the interpretation of their output, in both
//! formats.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use super::{ClaudeHookFormat, claude_format, native_payload, response};
use proptest::prelude::{any, prop_assert_eq, proptest};
use serde_json::{Value, json};
use windlass_protocol::{
    ClaudeToolName, ClaudeToolNames, HookPoint, PermissionMode, SessionId, ToolOutput,
};
use windlass_toolkit::{HookContext, HookError, HookPayload, HookReply};

const CONTEXT: HookContext<'static> = HookContext {
    session: SessionId(uuid::Uuid::nil()),
    call: None,
    folder: "/w",
    mode: PermissionMode::Auto,
    agent: None,
    judge: None,
};

fn before_call() -> HookPayload {
    let arguments = json!({"filePath": "src/a.rs", "oldString": "a", "newString": "b"});
    HookPayload::BeforeCall { tool: "edit".into(), arguments }
}

fn after_call() -> HookPayload {
    let output = ToolOutput { text: "secret".into(), ..ToolOutput::default() };
    HookPayload::AfterCall { tool: "bash".into(), arguments: json!({"command": "env"}), output }
}

fn all_payloads() -> Vec<HookPayload> {
    let event = |point| HookPayload::Event { point, details: json!({"source": "startup"}) };
    vec![
        before_call(),
        after_call(),
        HookPayload::PermissionAsked {
            tool: "bash".into(),
            accesses: Vec::new(),
            reason: "no rule".into(),
        },
        HookPayload::UserPrompt { text: "do it".into() },
        event(HookPoint::SessionStart),
        event(HookPoint::SessionEnd),
        event(HookPoint::TurnEnd),
        event(HookPoint::Compaction),
    ]
}

fn failed(result: Result<HookReply, HookError>) -> String {
    match result {
        Err(HookError::Failed { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn claude_with_edit() -> ClaudeHookFormat {
    let edit = ClaudeToolName {
        tool: "edit".into(),
        claude_names: &["Edit", "MultiEdit"],
        arguments: &[
            ("filePath", "file_path"),
            ("oldString", "old_string"),
            ("newString", "new_string"),
        ],
    };
    ClaudeHookFormat { tools: ClaudeToolNames::new(vec![edit]), servers: Vec::new() }
}

#[test]
fn empty_output_and_pass_change_nothing() {
    for hook_payload in all_payloads() {
        for output in ["", " \n", "{}", r#"{"verdict": "pass"}"#, r#"{"reason": "fine"}"#] {
            assert_eq!(
                response::interpret_output(output, hook_payload.clone()),
                Ok(HookReply::Continue(hook_payload.clone())),
                "{output}"
            );
        }
    }
}

#[test]
fn output_cannot_grant_and_invalid_output_is_a_failure() {
    for hook_payload in all_payloads() {
        for output in [
            r#"{"verdict": "allow"}"#,
            r#"{"verdict": "approve"}"#,
            r#"{"verdict": true}"#,
            r#"{"verdict": null}"#,
            r#"{"permission": "allow"}"#,
            r#"{"verdict": "pass", "verdict2": 1}"#,
            r#"{"verdict": "pass"} {"verdict": "pass"}"#,
            r#"{"arguments": "x"}"#,
            r#"{"output": {}}"#,
            r#"{"reason": 7}"#,
            "[]",
            "[\"pass\"]",
            "\"pass\"",
            "null",
            "true",
            "pass",
            "{",
            "\u{0}",
        ] {
            let error = failed(response::interpret_output(output, hook_payload.clone()));
            assert!(!error.is_empty(), "{output}");
        }
    }
}

#[test]
fn only_the_fields_of_a_point_can_be_changed() {
    let fields = [
        ("arguments", json!({})),
        ("output", json!("x")),
        ("prompt", json!("x")),
        ("description", json!("x")),
        ("parameters", json!({})),
        ("params", json!({})),
        ("system", json!("x")),
        ("context", json!("x")),
    ];
    for hook_payload in all_payloads() {
        let allowed: &[&str] = match hook_payload.point() {
            HookPoint::BeforeTool => &["arguments"],
            HookPoint::AfterTool => &["output"],
            HookPoint::Prompt => &["prompt", "context"],
            HookPoint::SessionStart | HookPoint::Compaction => &["context"],
            _ => &[],
        };
        for (field, value) in &fields {
            let result = response::interpret_output(
                &json!({ *field: value }).to_string(),
                hook_payload.clone(),
            );
            assert_eq!(
                result.is_ok(),
                allowed.contains(field),
                "{field} at {}",
                hook_payload.point()
            );
        }
        let ask = response::interpret_output(r#"{"verdict": "ask"}"#, hook_payload.clone());
        let can_ask = matches!(hook_payload.point(), HookPoint::BeforeTool | HookPoint::Permission);
        assert_eq!(matches!(ask, Ok(HookReply::AskUser(..))), can_ask, "{}", hook_payload.point());
        let refusal =
            response::interpret_output(r#"{"verdict": "refuse", "reason": "never"}"#, hook_payload);
        assert_eq!(refusal, Err(HookError::denied("never")));
    }
}

#[test]
fn the_native_payload_has_the_point_and_its_fields() {
    let payload = native_payload("guard", &CONTEXT, &before_call());
    assert_eq!(payload["point"], "before_tool");
    assert_eq!(payload["tool"], "edit");
    assert_eq!(payload["arguments"]["filePath"], "src/a.rs");
    assert_eq!((&payload["hook"], &payload["mode"]), (&json!("guard"), &json!("auto")));
    assert_eq!(native_payload("g", &CONTEXT, &after_call())["output"], "secret");
    assert_eq!(
        native_payload("g", &CONTEXT, &HookPayload::UserPrompt { text: "p".into() })["prompt"],
        "p"
    );
}

#[test]
fn claude_payloads_and_output_use_claude_names() {
    let payload = claude_format::build_payload(&claude_with_edit(), &CONTEXT, &before_call());
    let expected = json!({"file_path": "/w/src/a.rs", "old_string": "a", "new_string": "b"});
    assert_eq!((&payload["tool_name"], &payload["tool_input"]), (&json!("Edit"), &expected));
    assert_eq!(payload["hook_event_name"], "PreToolUse");
    let output = |updated: Value| {
        json!({
            "hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": updated},
        })
    };
    let mut updated = expected.clone();
    updated["new_string"] = json!("c");
    let reply = claude_format::interpret_output(
        &claude_with_edit(),
        &output(updated).to_string(),
        &payload,
        before_call(),
    )
    .unwrap();
    let HookReply::Continue(HookPayload::BeforeCall { arguments, .. }) = reply else {
        panic!("{reply:?}")
    };
    let expected_arguments = json!({"filePath": "src/a.rs", "oldString": "a", "newString": "c"});
    assert_eq!(arguments, expected_arguments, "the path keeps its original form");
    let unchanged = claude_format::interpret_output(
        &claude_with_edit(),
        &output(expected).to_string(),
        &payload,
        before_call(),
    )
    .unwrap();
    assert_eq!(unchanged, HookReply::Continue(before_call()), "an allow changes nothing");
}

#[test]
fn claude_denials_and_asks_apply_and_approvals_do_not() {
    let payload = claude_format::build_payload(&claude_with_edit(), &CONTEXT, &before_call());
    let interpret = |output: Value| {
        claude_format::interpret_output(
            &claude_with_edit(),
            &output.to_string(),
            &payload,
            before_call(),
        )
    };
    let permission_decision =
        |decision: &str| json!({"hookSpecificOutput": {"permissionDecision": decision}});
    for denial in [
        json!({"continue": false, "stopReason": "x"}),
        json!({"decision": "block", "reason": "x"}),
        json!({"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}),
        json!({"hookSpecificOutput": {"decision": {"behavior": "deny"}}}),
        permission_decision("deny"),
    ] {
        assert!(matches!(interpret(denial.clone()), Err(HookError::Denied { .. })), "{denial}");
    }
    for decision in ["ask", "defer"] {
        assert!(
            matches!(interpret(permission_decision(decision)), Ok(HookReply::AskUser(..))),
            "{decision}"
        );
    }
    for decision in ["allow", "approve"] {
        assert_eq!(
            interpret(json!({ "decision": decision })),
            Ok(HookReply::Continue(before_call()))
        );
    }
    for invalid in [
        permission_decision("grant"),
        json!({"decision": "maybe"}),
        json!({"decision": 1}),
        json!({"hookSpecificOutput": []}),
    ] {
        failed(interpret(invalid));
    }
    failed(claude_format::interpret_output(&claude_with_edit(), "{", &payload, before_call()));
    assert_eq!(
        claude_format::interpret_output(&claude_with_edit(), "all fine", &payload, before_call()),
        Ok(HookReply::Continue(before_call()))
    );
    let prompt = HookPayload::UserPrompt { text: "p".into() };
    let reply = claude_format::interpret_output(
        &claude_with_edit(),
        "it is late",
        &payload,
        prompt.clone(),
    );
    assert_eq!(reply, Ok(HookReply::AddContext(prompt, "it is late".into())));
}

#[test]
fn mcp_tools_have_claude_names() {
    let servers = vec!["git".to_owned(), "git_hub".to_owned()];
    let format = ClaudeHookFormat { servers, ..claude_with_edit() };
    assert_eq!(format.tool_names("edit"), ["Edit", "MultiEdit"]);
    assert_eq!(format.tool_names("git_status"), ["mcp__git__status"]);
    assert_eq!(format.tool_names("git_hub_x"), ["mcp__git_hub__x", "mcp__git__hub_x"]);
    assert!(format.tool_names("weather").is_empty());
}

proptest! {
    /// No output changes the point or the tool of a payload, and none causes a panic.
    #[test]
    fn no_output_changes_the_point_or_the_tool(output in any::<String>(), index in 0_usize..8) {
        let original = all_payloads().remove(index);
        let claude = claude_with_edit();
        let sent = claude_format::build_payload(&claude, &CONTEXT, &original);
        for reply in [
            response::interpret_output(&output, original.clone()),
            claude_format::interpret_output(&claude, &output, &sent, original.clone()),
        ] {
            if let Ok(
                HookReply::Continue(payload)
                | HookReply::AskUser(payload, _)
                | HookReply::AddContext(payload, _),
            ) = reply
            {
                prop_assert_eq!(payload.point(), original.point());
                prop_assert_eq!(payload.tool(), original.tool());
            }
        }
    }
}
