//! Tests of the features of custom tools.

use crate::support::{TestEnv, TestUser, output, python, run, text};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{CallOutcome, PermissionMode, ToolAccess};

fn read_only_tool(name: &str) -> serde_json::Value {
    json!({"name": name, "description": "Looks.", "access": {"read": []}})
}

fn writing_tool(name: &str) -> serde_json::Value {
    json!({"name": name, "description": "Changes."})
}

pub fn a_python_tool_is_called_and_its_process_is_kept() {
    run(async {
        let definition = json!({"name": "shout", "description": "Says a text loudly.",
            "schema": {"type": "object", "properties": {"text": {"type": "string"}},
            "required": ["text"]}, "access": {"read": []}});
        let body = "say(result={'text': ask['arguments']['text'].upper() + f' {os.getpid()}', \
                    'title': 'Loud', 'metadata': {'folder': ask['context']['folder']}})";
        let env = TestEnv::new("shout.py", &python(&definition, body)).await;
        let first = output(env.call("shout", json!({"text": "hi"})).await);
        assert!(first.text.starts_with("HI ") && first.title == "Loud", "{first:?}");
        assert_eq!(
            first.metadata["folder"],
            json!(env.path("")).as_str().unwrap().trim_end_matches('/')
        );
        let second = output(env.call("shout", json!({"text": "hi"})).await);
        assert_eq!(first.text, second.text, "the process is the same");
        let invalid = env.text("shout", json!({"text": ["no"]})).await;
        assert!(invalid.starts_with("failed: ") && invalid.contains("text"), "{invalid}");
    });
}

pub fn a_shell_tool_is_called() {
    run(async {
        let text = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
    *'"method":"describe"'*) echo "{\"id\":$id,\"description\":\"Counts files.\",\"access\":{\"read\":[]}}" ;;
    *'"method":"call"'*) echo "{\"id\":$id,\"result\":\"$(ls | wc -l) files\"}" ;;
  esac
done
"#;
        let env = TestEnv::new("count", text).await;
        assert_eq!(env.text("count", json!({})).await, "1 files");
    });
}

pub fn a_program_can_provide_several_tools_with_its_prefix() {
    run(async {
        let tool = |name: &str| json!({"name": name, "description": "x", "access": {"read": []}});
        let tools = ["math_add", "math", "read", "mathematics", "math_add"].map(tool);
        let definition = json!({"tools": tools});
        let env = TestEnv::new("math", &python(&definition, "say(result=ask['tool'])")).await;
        assert_eq!(env.text("math_add", json!({})).await, "math_add");
        assert_eq!(env.text("math", json!({})).await, "math");
        assert_eq!(env.runtime.registry.names(), ["math", "math_add"]);
        let notes = env.notes.join("\n");
        for expected in ["\"read\"", "\"mathematics\"", "defined twice"] {
            assert!(notes.contains(expected), "{notes}");
        }
    });
}

pub fn rules_apply_to_the_declared_access() {
    run(async {
        let program = |access: serde_json::Value| {
            let definition = json!({"name": "t", "description": "x", "access": access,
                "schema": {"type": "object", "properties": {"path": {"type": "string"}}}});
            python(&definition, "say(result='done')")
        };
        let use_tool = ToolAccess::UseTool { tool: "t".into() };
        let read = ToolAccess::Read { path: "a.txt".into() };
        for (access, expected, request_count) in [
            (json!({"read": ["{path}"]}), vec![read.clone()], 0),
            (json!({"read": []}), vec![ToolAccess::Search { path: ".".into() }], 0),
            (
                json!({"edit": ["{path}"]}),
                vec![ToolAccess::Edit { path: "a.txt".into() }, use_tool.clone()],
                1,
            ),
            (
                json!({"read": ["{path}"], "network": ["example.org"]}),
                vec![read, use_tool.clone()],
                1,
            ),
            (json!(null), vec![use_tool], 1),
        ] {
            let env = TestEnv::new("t", &program(access.clone())).await;
            let user = TestUser::default();
            let cancel = CancellationToken::new();
            let arguments = json!({"path": "a.txt"});
            let outcome = env.call_as(PermissionMode::Ask, "t", arguments, &user, cancel).await;
            assert_eq!(text(outcome), "done", "{access}");
            assert_eq!(*user.accesses.lock().unwrap(), expected, "{access}");
            assert_eq!(*user.permission_requests.lock().unwrap(), request_count, "{access}");
        }
        // A rule on paths applies to the paths that a custom tool declares.
        let env = TestEnv::new("t", &program(json!({"read": ["{path}"]}))).await;
        let denied = env.text("t", json!({"path": ".env"})).await;
        assert!(denied.starts_with("denied: "), "{denied}");
    });
}

const TRY_TO_WRITE: &str = "
try:
    open('made', 'w').write('x')
    say(result='wrote')
except OSError as error:
    say(result=str(error))
";

pub fn a_read_only_tool_cannot_write() {
    run(async {
        for access in [json!({"read": []}), json!({"read": ["a.txt"], "network": ["example.org"]})]
        {
            let definition = json!({"name": "t", "description": "x", "access": access});
            let env = TestEnv::new("t", &python(&definition, TRY_TO_WRITE.trim())).await;
            let text = env.text("t", json!({})).await;
            assert!(text.contains("Read-only") || text.contains("ermission"), "{text}");
            assert!(!env.path("made").exists());
        }
    });
}

pub fn a_tool_without_declared_access_can_write_except_in_plan_mode() {
    run(async {
        let env = TestEnv::new("t", &python(&writing_tool("t"), TRY_TO_WRITE.trim())).await;
        let cancel = CancellationToken::new();
        let outcome =
            env.call_as(PermissionMode::Plan, "t", json!({}), &TestUser::default(), cancel).await;
        assert!(!text(outcome).contains("wrote") && !env.path("made").exists());
        assert_eq!(env.text("t", json!({})).await, "wrote");
        assert!(env.path("made").exists());
    });
}

pub fn progress_is_shown_and_questions_are_answered() {
    run(async {
        let body = "say(progress='half\\nway')\n\
                    say(ask={'question': 'Which?', 'options': [{'label': 'C'}, 'F']})\n\
                    answer = json.loads(sys.stdin.readline())\n\
                    say(result=json.dumps(answer['answer']))";
        let env = TestEnv::new("t", &python(&read_only_tool("t"), body)).await;
        let user = TestUser { replies: vec!["C".into()], ..TestUser::default() };
        let cancel = CancellationToken::new();
        let outcome = env.call_as(PermissionMode::Ask, "t", json!({}), &user, cancel).await;
        assert_eq!(text(outcome), r#"["C"]"#);
        assert_eq!(*user.progress.lock().unwrap(), ["half way"]);
        let questions = user.questions.lock().unwrap();
        let labels: Vec<_> = questions[0].options.iter().map(|option| &*option.label).collect();
        assert_eq!((questions[0].question.as_str(), labels), ("Which?", vec!["C", "F"]));
    });
}

pub fn attachments_are_stored() {
    run(async {
        let body = "say(result={'text': 'a map', 'attachments': \
                    [{'name': 'map.png', 'mime': 'image/png', 'base64': 'aGk='}]})";
        let env = TestEnv::new("t", &python(&read_only_tool("t"), body)).await;
        let user = TestUser::default();
        let cancel = CancellationToken::new();
        let tool_output =
            output(env.call_as(PermissionMode::Ask, "t", json!({}), &user, cancel).await);
        assert_eq!(*user.blobs.lock().unwrap(), [b"hi"]);
        assert_eq!(tool_output.attachments[0].name, "map.png");
    });
}

pub fn an_error_is_returned_to_the_model() {
    run(async {
        let env =
            TestEnv::new("t", &python(&read_only_tool("t"), "say(error='no such city')")).await;
        assert_eq!(env.text("t", json!({})).await, "failed: t failed: no such city");
    });
}

pub fn a_changed_file_is_restarted_at_the_next_call() {
    run(async {
        let env = TestEnv::new("t", &python(&read_only_tool("t"), "say(result='one')")).await;
        assert_eq!(env.text("t", json!({})).await, "one");
        env.replace(&python(&read_only_tool("t"), "say(result='another')"));
        assert_eq!(env.text("t", json!({})).await, "another");
        // A broken program is retried at once after its file has changed.
        env.replace("#!/bin/sh\nexit 7\n");
        assert!(env.text("t", json!({})).await.contains("exited with code 7"));
        assert!(env.text("t", json!({})).await.contains("can be retried in 1 s"));
        env.replace(&python(&read_only_tool("t"), "say(result='repaired')"));
        assert_eq!(env.text("t", json!({})).await, "repaired");
    });
}

pub fn a_refused_file_is_not_started() {
    run(async {
        let env = TestEnv::new("t", &python(&read_only_tool("t"), "say(result='one')")).await;
        assert_eq!(env.text("t", json!({})).await, "one");
        env.refuse("it has changed");
        for _ in 0..2 {
            assert!(env.text("t", json!({})).await.contains("it has changed"));
        }
    });
}

pub fn a_canceled_call_keeps_a_process_that_stops_in_time() {
    run(async {
        let body = "if ask['arguments'].get('wait'):\n\
                    \x20   other = json.loads(sys.stdin.readline())\n\
                    \x20   assert other['method'] == 'cancel' and other['id'] == ask['id']\n\
                    \x20   say(error='stopped')\n\
                    else: say(result=str(os.getpid()))";
        let mut definition = writing_tool("t");
        definition["schema"] =
            json!({"type": "object", "properties": {"wait": {"type": "boolean"}}});
        let env = TestEnv::new("t", &python(&definition, body)).await;
        let before = env.text("t", json!({})).await;
        let cancel = CancellationToken::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
        };
        let user = TestUser::default();
        let call =
            env.call_as(PermissionMode::Full, "t", json!({"wait": true}), &user, cancel.clone());
        let (outcome, ()) = tokio::join!(call, stop);
        assert!(matches!(outcome, CallOutcome::Interrupted { .. }), "{outcome:?}");
        assert_eq!(env.text("t", json!({})).await, before, "the process is the same");
    });
}

pub fn calls_run_serially_or_in_parallel() {
    run(async {
        let script = |parallel: bool| {
            let definition = json!({"name": "t", "description": "x", "access": {"read": []},
                "parallel": parallel});
            let head = "import threading\ndef later(ask):\n    time.sleep(0.6)\n    \
                        print(json.dumps({\"id\": ask[\"id\"], \"result\": \"done\"}), flush=True)\n";
            let body = "threading.Thread(target=later, args=[ask]).start()";
            python(&definition, body).replace("def say", &format!("{head}def say"))
        };
        let mut times = Vec::new();
        for parallel in [true, false] {
            let env = Arc::new(TestEnv::new("t", &script(parallel)).await);
            env.text("t", json!({})).await;
            let started = Instant::now();
            let results = tokio::join!(
                env.text("t", json!({})),
                env.text("t", json!({})),
                env.text("t", json!({}))
            );
            assert_eq!(results, ("done".into(), "done".into(), "done".into()));
            times.push(started.elapsed());
        }
        assert!(times[1] >= Duration::from_millis(1_750), "serial calls: {times:?}");
        assert!(times[0] < times[1], "parallel calls: {times:?}");
    });
}
