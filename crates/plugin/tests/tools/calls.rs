//! What a custom tool can do.

use crate::yard::{Person, Yard, output, python, run, text};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{Access, Mode, Outcome};

fn looking(name: &str) -> serde_json::Value {
    json!({"name": name, "description": "Looks.", "access": {"read": []}})
}

fn changing(name: &str) -> serde_json::Value {
    json!({"name": name, "description": "Changes."})
}

pub fn a_tool_in_python_is_called_and_kept_running() {
    run(async {
        let definition = json!({"name": "shout", "description": "Says a text loudly.",
            "schema": {"type": "object", "properties": {"text": {"type": "string"}},
            "required": ["text"]}, "access": {"read": []}});
        let body = "say(result={'text': ask['arguments']['text'].upper() + f' {os.getpid()}', \
                    'title': 'Loud', 'metadata': {'folder': ask['context']['folder']}})";
        let yard = Yard::new("shout.py", &python(&definition, body)).await;
        let one = output(yard.call("shout", json!({"text": "hi"})).await);
        assert!(one.text.starts_with("HI ") && one.title == "Loud", "{one:?}");
        assert_eq!(
            one.metadata["folder"],
            json!(yard.path("")).as_str().unwrap().trim_end_matches('/')
        );
        let two = output(yard.call("shout", json!({"text": "hi"})).await);
        assert_eq!(one.text, two.text, "the same process");
        let wrong = yard.text("shout", json!({"text": ["no"]})).await;
        assert!(wrong.starts_with("failed: ") && wrong.contains("text"), "{wrong}");
    });
}

pub fn a_tool_in_shell_is_called() {
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
        let yard = Yard::new("count", text).await;
        assert_eq!(yard.text("count", json!({})).await, "1 files");
    });
}

pub fn one_program_brings_several_tools_of_its_own_names() {
    run(async {
        let tool = |name: &str| json!({"name": name, "description": "x", "access": {"read": []}});
        let tools = ["math_add", "math", "read", "mathematics", "math_add"].map(tool);
        let definition = json!({"tools": tools});
        let yard = Yard::new("math", &python(&definition, "say(result=ask['tool'])")).await;
        assert_eq!(yard.text("math_add", json!({})).await, "math_add");
        assert_eq!(yard.text("math", json!({})).await, "math");
        assert_eq!(yard.runtime.registry.ids(), ["math", "math_add"]);
        let notes = yard.notes.join("\n");
        for says in ["\"read\"", "\"mathematics\"", "described twice"] {
            assert!(notes.contains(says), "{notes}");
        }
    });
}

pub fn what_is_declared_is_what_rules_are_asked_about() {
    run(async {
        let path = |access: serde_json::Value| {
            let definition = json!({"name": "t", "description": "x", "access": access,
                "schema": {"type": "object", "properties": {"path": {"type": "string"}}}});
            python(&definition, "say(result='done')")
        };
        let used = Access::Use { tool: "t".into() };
        let read = Access::Read { path: "a.txt".into() };
        for (access, expected, asks) in [
            (json!({"read": ["{path}"]}), vec![read.clone()], 0),
            (json!({"read": []}), vec![Access::Search { path: ".".into() }], 0),
            (
                json!({"edit": ["{path}"]}),
                vec![Access::Edit { path: "a.txt".into() }, used.clone()],
                1,
            ),
            (json!({"read": ["{path}"], "network": ["example.org"]}), vec![read, used.clone()], 1),
            (json!(null), vec![used], 1),
        ] {
            let yard = Yard::new("t", &path(access.clone())).await;
            let person = Person::default();
            let cancel = CancellationToken::new();
            let arguments = json!({"path": "a.txt"});
            let outcome = yard.call_as(Mode::Ask, "t", arguments, &person, cancel).await;
            assert_eq!(text(outcome), "done", "{access}");
            assert_eq!(*person.accesses.lock().unwrap(), expected, "{access}");
            assert_eq!(*person.asked.lock().unwrap(), asks, "{access}");
        }
        // A rule on paths holds for what a custom tool names.
        let yard = Yard::new("t", &path(json!({"read": ["{path}"]}))).await;
        let denied = yard.text("t", json!({"path": ".env"})).await;
        assert!(denied.starts_with("denied: "), "{denied}");
    });
}

const TRIES: &str = "
try:
    open('made', 'w').write('x')
    say(result='wrote')
except OSError as error:
    say(result=str(error))
";

pub fn who_only_looks_cannot_change_anything() {
    run(async {
        for access in [json!({"read": []}), json!({"read": ["a.txt"], "network": ["example.org"]})]
        {
            let definition = json!({"name": "t", "description": "x", "access": access});
            let yard = Yard::new("t", &python(&definition, TRIES.trim())).await;
            let said = yard.text("t", json!({})).await;
            assert!(said.contains("Read-only") || said.contains("ermission"), "{said}");
            assert!(!yard.path("made").exists());
        }
    });
}

pub fn who_declares_nothing_changes_files_but_not_in_plan() {
    run(async {
        let yard = Yard::new("t", &python(&changing("t"), TRIES.trim())).await;
        let cancel = CancellationToken::new();
        let planned = yard.call_as(Mode::Plan, "t", json!({}), &Person::default(), cancel).await;
        assert!(!text(planned).contains("wrote") && !yard.path("made").exists());
        assert_eq!(yard.text("t", json!({})).await, "wrote");
        assert!(yard.path("made").exists());
    });
}

pub fn progress_is_shown_and_questions_are_answered() {
    run(async {
        let body = "say(progress='half\\nway')\n\
                    say(ask={'question': 'Which?', 'options': [{'label': 'C'}, 'F']})\n\
                    answer = json.loads(sys.stdin.readline())\n\
                    say(result=json.dumps(answer['answer']))";
        let yard = Yard::new("t", &python(&looking("t"), body)).await;
        let person = Person { replies: vec!["C".into()], ..Person::default() };
        let cancel = CancellationToken::new();
        let outcome = yard.call_as(Mode::Ask, "t", json!({}), &person, cancel).await;
        assert_eq!(text(outcome), r#"["C"]"#);
        assert_eq!(*person.progress.lock().unwrap(), ["half way"]);
        let inquired = person.inquired.lock().unwrap();
        let labels: Vec<_> = inquired[0].options.iter().map(|option| &*option.label).collect();
        assert_eq!((inquired[0].question.as_str(), labels), ("Which?", vec!["C", "F"]));
    });
}

pub fn attachments_are_kept() {
    run(async {
        let body = "say(result={'text': 'a map', 'attachments': \
                    [{'name': 'map.png', 'mime': 'image/png', 'base64': 'aGk='}]})";
        let yard = Yard::new("t", &python(&looking("t"), body)).await;
        let person = Person::default();
        let cancel = CancellationToken::new();
        let made = output(yard.call_as(Mode::Ask, "t", json!({}), &person, cancel).await);
        assert_eq!(*person.kept.lock().unwrap(), [b"hi"]);
        assert_eq!(made.attachments[0].name, "map.png");
    });
}

pub fn an_error_is_for_the_model() {
    run(async {
        let yard = Yard::new("t", &python(&looking("t"), "say(error='no such city')")).await;
        assert_eq!(yard.text("t", json!({})).await, "failed: no such city");
    });
}

pub fn a_changed_file_is_started_anew_at_the_next_call() {
    run(async {
        let yard = Yard::new("t", &python(&looking("t"), "say(result='one')")).await;
        assert_eq!(yard.text("t", json!({})).await, "one");
        yard.replace(&python(&looking("t"), "say(result='another')"));
        assert_eq!(yard.text("t", json!({})).await, "another");
        // What was broken and was mended is tried at once, whatever went wrong before.
        yard.replace("#!/bin/sh\nexit 7\n");
        assert!(yard.text("t", json!({})).await.contains("exited with code 7"));
        assert!(yard.text("t", json!({})).await.contains("tried again in 1 s"));
        yard.replace(&python(&looking("t"), "say(result='mended')"));
        assert_eq!(yard.text("t", json!({})).await, "mended");
    });
}

pub fn a_file_that_must_not_be_run_is_not() {
    run(async {
        let yard = Yard::new("t", &python(&looking("t"), "say(result='one')")).await;
        assert_eq!(yard.text("t", json!({})).await, "one");
        yard.refuse("it has changed");
        for _ in 0..2 {
            assert!(yard.text("t", json!({})).await.contains("it has changed"));
        }
    });
}

pub fn a_call_that_is_stopped_lets_the_process_live_if_it_listens() {
    run(async {
        let body = "if ask['arguments'].get('wait'):\n\
                    \x20   other = json.loads(sys.stdin.readline())\n\
                    \x20   assert other['method'] == 'cancel' and other['id'] == ask['id']\n\
                    \x20   say(error='stopped')\n\
                    else: say(result=str(os.getpid()))";
        let mut definition = changing("t");
        definition["schema"] =
            json!({"type": "object", "properties": {"wait": {"type": "boolean"}}});
        let yard = Yard::new("t", &python(&definition, body)).await;
        let before = yard.text("t", json!({})).await;
        let cancel = CancellationToken::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            cancel.cancel();
        };
        let person = Person::default();
        let call = yard.call_as(Mode::Full, "t", json!({"wait": true}), &person, cancel.clone());
        let (outcome, ()) = tokio::join!(call, stop);
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{outcome:?}");
        assert_eq!(yard.text("t", json!({})).await, before, "the same process");
    });
}

pub fn calls_are_answered_one_by_one_or_together() {
    run(async {
        let script = |parallel: bool| {
            let definition = json!({"name": "t", "description": "x", "access": {"read": []},
                "parallel": parallel});
            let head = "import threading\ndef later(ask):\n    time.sleep(0.6)\n    \
                        print(json.dumps({\"id\": ask[\"id\"], \"result\": \"done\"}), flush=True)\n";
            let body = "threading.Thread(target=later, args=[ask]).start()";
            python(&definition, body).replace("def say", &format!("{head}def say"))
        };
        for (parallel, quick) in [(true, true), (false, false)] {
            let yard = Arc::new(Yard::new("t", &script(parallel)).await);
            yard.text("t", json!({})).await;
            let since = Instant::now();
            let three = tokio::join!(
                yard.text("t", json!({})),
                yard.text("t", json!({})),
                yard.text("t", json!({}))
            );
            assert_eq!(three, ("done".into(), "done".into(), "done".into()));
            assert_eq!(since.elapsed() < Duration::from_millis(1_750), quick, "{parallel}");
        }
    });
}
