//! Pinned tool definitions, and approval of changed ones.

use crate::support::{ApprovingTestUser, TestWorkspace, run};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{McpServers, PinnedServerDefinitions};
use windlass_protocol::{CallOutcome, PermissionMode, ToolAccess};

/// Returns the pins of a server in mode `good`.
async fn pins_of_good_server(env: &TestWorkspace) -> PinnedServerDefinitions {
    let other = TestWorkspace::new();
    other.open_server("good").await;
    let pins = other.store.pins.lock().unwrap();
    assert!(env.store.pins.lock().unwrap().is_empty());
    pins.last().unwrap().1.clone()
}

async fn open_pinned(env: &TestWorkspace, mode: &str) -> McpServers {
    let mut spec = env.server_spec("r", mode);
    spec.pins = Some(pins_of_good_server(env).await);
    env.open(vec![spec])
}

pub fn pinned_tools_are_registered_before_the_server_starts() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = open_pinned(&env, "good").await;
        assert!(env.runtime.registry.names().contains(&"r_echo".to_owned()));
        assert_eq!(env.log_count("start"), 0);
        assert_eq!(env.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert_eq!(env.log_count("start"), 1);
    });
}

pub fn a_changed_definition_needs_approval_once() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = open_pinned(&env, "renamed").await;
        let first = env.call("r_echo", json!({"text": "a"})).await;
        assert!(first.text().contains("changed the definition of r_echo"), "{first:?}");
        assert_eq!(env.log_count("call echo"), 0);
        let user = ApprovingTestUser::default();
        let outcome = env.call_as("r_echo", json!({"text": "a"}), &user, CancellationToken::new());
        assert_eq!(outcome.await.text(), "echo: a");
        let preview = user.previews.lock().unwrap()[0].clone().unwrap();
        assert!(preview.contains("-  \"description\": \"Says it again.\""), "{preview}");
        assert!(preview.contains("+  \"description\": \"Sends it to another host.\""), "{preview}");
        let accepts_definition = |user: &ApprovingTestUser| {
            let intents = user.intents.lock().unwrap();
            intents[0]
                .accesses
                .iter()
                .any(|access| matches!(access, ToolAccess::AcceptDefinition { .. }))
        };
        assert!(accepts_definition(&user));
        let again = ApprovingTestUser::default();
        let outcome = env.call_as("r_echo", json!({"text": "b"}), &again, CancellationToken::new());
        assert_eq!(outcome.await.text(), "echo: b");
        assert!(!accepts_definition(&again), "the change was approved before");
        let saved = env.store.pins.lock().unwrap().last().unwrap().1.clone();
        let echo = saved.tools.iter().find(|tool| tool.name == "echo").unwrap();
        assert_eq!(echo.definition["description"], "Sends it to another host.");

        let full_mode = TestWorkspace::in_mode(PermissionMode::Full);
        let servers = open_pinned(&full_mode, "renamed").await;
        servers.inspect("r").await.unwrap();
        let outcome = full_mode.call("r_echo", json!({"text": "a"})).await;
        assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}");
        assert_eq!(full_mode.log_count("call echo"), 0);
        servers.accept_server("r").await.unwrap();
        assert_eq!(full_mode.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn a_new_tool_needs_approval() {
    run(async {
        let env = TestWorkspace::in_mode(PermissionMode::Full);
        let servers = open_pinned(&env, "grown").await;
        let listing = servers.inspect("r").await.unwrap();
        assert_eq!(listing.changed.len(), 1, "{listing:?}");
        assert_eq!(listing.changed[0].name, "extra");
        assert!(listing.changed[0].difference.contains("extra"), "{listing:?}");
        let outcome = env.call("r_extra", json!({})).await;
        assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}");
        assert_eq!(env.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn pins_of_another_command_do_not_apply() {
    run(async {
        let env = TestWorkspace::new();
        let mut spec = env.server_spec("r", "renamed");
        spec.pins = Some(pins_of_good_server(&env).await);
        spec.digest = "other".into();
        let servers = env.open(vec![spec]);
        assert!(env.runtime.registry.names().is_empty());
        assert!(servers.inspect("r").await.unwrap().changed.is_empty());
    });
}

pub fn a_tool_name_collision_is_reported() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("twins").await;
        let notices = env.store.notices.lock().unwrap().clone();
        assert!(notices.iter().any(|text| text.contains("both get the name r_a_b")), "{notices:?}");
    });
}
