//! Calls, elicitations, resources and prompts of well-behaved servers.

use crate::support::{ApprovingTestUser, TestWorkspace, run};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_mcp::{PinnedServerDefinitions, ProtocolRevision};
use windlass_permission::{PermissionRules, Policy};
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
        let names: Vec<&str> = outcome.attachments().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["1.png", "map.png", "3.png"], "{outcome:?}");
        // A request says of a file what becomes of it: it is sent, or the model cannot view it.
        assert!(!outcome.text().contains(".png"), "{outcome:?}");
        for expected in [
            "audio/wav, 1 kB: read blob:",
            "[resource one: test://one]",
            "<resource uri=\"test://two\">\n# two\n```\nx\n```\n< /resource>\n</resource>",
            "image/png: invalid base64",
            // Parts are separated by an empty line.
            "\n\n[resource one: test://one]\n\n",
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
        for (replies, action) in [
            (None, "cancel"),
            (Some(Vec::new()), "cancel"),
            (Some(vec![vec![], vec![]]), "decline"),
        ] {
            let (text, _) =
                ask(ApprovingTestUser { replies, ..ApprovingTestUser::default() }).await;
            assert_eq!(text, format!(r#"{{"action": "{action}"}}"#));
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
        let expected = "r:\n  test://one — The first.\n  test://day/{date} (template) — A day.";
        assert_eq!(list.text(), expected);
        let resource =
            env.call("read_mcp_resource", json!({"server": "r", "uri": "test://one"})).await;
        assert!(resource.text().contains("contents of it"), "{resource:?}");
        let unknown = env.call("read_mcp_resource", json!({"server": "x", "uri": "y"})).await;
        assert!(unknown.text().contains("no server `x`; there are: r"), "{unknown:?}");
    });
}

pub fn resources_are_listed_of_the_servers_that_rules_allow() {
    run(async {
        let mut env = TestWorkspace::new();
        let rules = json!({"r_resources": "allow", "closed_*": "deny"});
        let rules = PermissionRules::parse(&rules).unwrap();
        env.runtime.policy = Policy::new(rules).with_mode(PermissionMode::Auto);
        let _servers = env.open_server("good").await;
        let pinned = env.store.pins.lock().unwrap().last().unwrap().1.clone();
        let spec = |name: &str| {
            let mut spec = env.server_spec(name, "good");
            spec.pins = Some(pinned.clone());
            spec
        };
        let _again = env.open(["r", "other", "closed"].map(spec).to_vec());
        let user = ApprovingTestUser::default();
        let cancel = CancellationToken::new;
        let list = env.call_as("list_mcp_resources", json!({}), &user, cancel()).await;
        assert!(list.text().starts_with("r:\n  test://one"), "{list:?}");
        assert!(
            list.text().contains("other:\n  (needs approval; list it by its name)")
                && list.text().contains("closed:\n  (a rule denies it)"),
            "{list:?}"
        );
        assert!(user.previews.lock().unwrap().is_empty(), "the user was not asked");
        let arguments = json!({"server": "other"});
        let list = env.call_as("list_mcp_resources", arguments, &user, cancel()).await;
        assert!(list.text().starts_with("other:\n  test://one"), "{list:?}");
        assert_eq!(user.previews.lock().unwrap().len(), 1, "the user was asked");
        for tool in ["list_mcp_resources", "read_mcp_resource"] {
            let arguments = json!({"server": "closed", "uri": "test://one"});
            let outcome = env.call(tool, arguments).await;
            assert!(matches!(outcome, CallOutcome::Denied { .. }), "{outcome:?}");
        }
    });
}

pub fn instructions_of_a_server_are_pinned_and_bounded() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("instructions").await;
        let pinned = env.store.pins.lock().unwrap().last().unwrap().1.clone();
        assert!(pinned.instructions.starts_with("Call echo first."), "{pinned:?}");
        assert!(pinned.instructions.len() <= 1_100, "{}", pinned.instructions.len());
        // Other instructions are used only once the user has accepted them.
        let mut spec = env.server_spec("r", "instructions");
        let instructions = "Call nothing.".to_owned();
        spec.pins = Some(PinnedServerDefinitions { instructions, ..pinned.clone() });
        let servers = env.open(vec![spec]);
        let inventory = servers.inspect("r").await.unwrap();
        let change = inventory.instructions_change.unwrap();
        assert!(change.contains("-Call nothing."), "{change}");
        assert!(change.contains("+Call echo first."), "{change}");
        assert_eq!(servers.instructions(|_| true), [("r".to_owned(), "Call nothing.".to_owned())]);
        // Without a tool that the model may call, there is nothing to instruct.
        assert_eq!(servers.instructions(|_| false), []);
        let notices = env.store.notices.lock().unwrap().join("\n");
        assert!(notices.contains("r has other instructions for the model"), "{notices}");
        servers.accept_server("r").await.unwrap();
        assert_eq!(servers.instructions(|_| true), [("r".to_owned(), pinned.instructions)]);
        assert_eq!(servers.inspect("r").await.unwrap().instructions_change, None);
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
