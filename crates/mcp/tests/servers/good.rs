//! Calls, elicitations, resources and prompts of well-behaved servers.

use crate::support::{ApprovingTestUser, TestWorkspace, run};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_mcp::ProtocolRevision;
use windlass_protocol::{CallOutcome, PermissionMode};

pub fn tools_of_both_revisions_are_called() {
    run(async {
        for (mode, revision) in [
            ("good", ProtocolRevision::Initialize),
            ("modern", ProtocolRevision::Discover),
            ("odd_discover", ProtocolRevision::Initialize),
        ] {
            let env = TestWorkspace::new();
            let servers = env.open(vec![env.server_spec("r", mode)]);
            let listing = servers.inspect("r").await.unwrap();
            assert_eq!(listing.revision, revision, "{mode}");
            assert!(listing.changed.is_empty() && listing.tools.len() == 10, "{listing:?}");
            let outcome = env.call("r_echo", json!({"text": "hello"})).await;
            assert_eq!(outcome.text(), "echo: hello", "{mode}");
            assert!(matches!(outcome, CallOutcome::Completed { .. }));
            assert_eq!(
                env.log_count("start"),
                if mode == "odd_discover" { 2 } else { 1 },
                "{mode}"
            );
        }
        let env = TestWorkspace::in_mode(PermissionMode::Plan);
        let _servers = env.open_server("good").await;
        assert_eq!(env.log_count("start"), 0, "in mode `plan` the server cannot write its log");
    });
}

pub fn all_kinds_of_result_content_are_converted() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("good").await;
        let outcome = env.call("r_picture", json!({})).await;
        assert_eq!(outcome.attachments().len(), 1, "{outcome:?}");
        for expected in [
            "audio/wav, 1 kB: read blob:",
            "[resource one: test://one]",
            "test://two\n```\ntwo\n```",
            "image/png: invalid base64",
        ] {
            assert!(outcome.text().contains(expected), "{expected}: {}", outcome.text());
        }
        let outcome = env.call("r_structured", json!({})).await;
        let CallOutcome::Completed { output } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(output.metadata["structured"], json!({"degrees": 12}));
        assert_eq!(output.text, r#"{"degrees":12}"#);
        let outcome = env.call("r_fail", json!({})).await;
        assert!(
            matches!(&outcome, CallOutcome::Failed { .. })
                && outcome.text().contains("did not work"),
            "{outcome:?}"
        );
        let wrong = env.call("r_echo", json!({"text": 7})).await;
        assert!(
            !matches!(wrong, CallOutcome::Completed { .. }) || wrong.text() == "echo: 7",
            "{wrong:?}"
        );
        let user = ApprovingTestUser::default();
        env.call_as("r_work", json!({}), &user, CancellationToken::new()).await;
        assert_eq!(*user.progress.lock().unwrap(), ["1 of 2: step", "2 of 2: step"]);
    });
}

pub fn an_elicitation_asks_the_user() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("good").await;
        let ask = |user: ApprovingTestUser| {
            let env = &env;
            async move {
                let outcome =
                    env.call_as("r_ask", json!({}), &user, CancellationToken::new()).await;
                (outcome.text().to_owned(), user)
            }
        };
        let replies = Some(vec![vec!["Ann".to_owned()], vec!["No".to_owned()]]);
        let (text, user) = ask(ApprovingTestUser { replies, ..ApprovingTestUser::default() }).await;
        assert_eq!(text, r#"{"action": "accept", "content": {"name": "Ann", "sure": false}}"#);
        let questions = user.questions.lock().unwrap().clone();
        assert!(
            questions[0].question.starts_with("Who are you?\nname") && questions[0].allow_custom,
            "{questions:?}"
        );
        assert_eq!(questions[1].options[0].label, "Yes", "the default comes first");
        assert_eq!(questions[0].headline(), "The MCP server r asks, and gets your answer");
        for replies in [None, Some(vec![vec![], vec![]])] {
            let (text, _) =
                ask(ApprovingTestUser { replies, ..ApprovingTestUser::default() }).await;
            assert_eq!(text, r#"{"action": "decline"}"#);
        }
    });
}

pub fn resources_and_prompts_are_read() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open_server("good").await;
        let pinned = env.store.pins.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(pinned.prompts[0].arguments, ["who*"]);
        let text = servers.get_prompt("r", "greet", "who=Ann B").await.unwrap();
        assert_eq!(text, "Greet Ann B. !`rm -rf x` @file");
        let mut spec = env.server_spec("r", "good");
        spec.pins = Some(pinned);
        let _again = env.open(vec![spec]);
        let list = env.call("list_mcp_resources", json!({})).await;
        assert_eq!(list.text(), "r:\n  test://one — The first.");
        let resource =
            env.call("read_mcp_resource", json!({"server": "r", "uri": "test://one"})).await;
        assert!(resource.text().contains("contents of it"), "{resource:?}");
        let unknown = env.call("read_mcp_resource", json!({"server": "x", "uri": "y"})).await;
        assert!(unknown.text().contains("Available: r."), "{unknown:?}");
    });
}

pub fn a_server_learns_the_workspace_folder() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("roots").await;
        let outcome = env.call("r_hostile", json!({})).await;
        let folder = env.path("").to_str().unwrap().trim_end_matches('/').to_owned();
        let expected = format!(r#"{{}} {{"roots": [{{"uri": "file://{folder}"}}]}}"#);
        assert_eq!(outcome.text(), expected);
    });
}

pub fn a_canceled_call_ends_at_once() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("good").await;
        let cancel = CancellationToken::new();
        let cancel_later = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        };
        let user = ApprovingTestUser::default();
        let started_at = Instant::now();
        let call = env.call_as("r_slow", json!({"seconds": 30}), &user, cancel.clone());
        let (outcome, ()) = tokio::join!(call, cancel_later);
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
            "{outcome:?}"
        );
        assert!(!matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    });
}
