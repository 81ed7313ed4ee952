//! What hooks are told and what is made of their words, in both forms.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use super::{claude, ours, verdict};
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::{Value, json};
use windlass_protocol::{Mode, Output, Point, SessionId};
use windlass_toolkit::{Matter, Moment, Refusal, Said};

const MOMENT: Moment<'static> =
    Moment { session: SessionId(uuid::Uuid::nil()), call: None, folder: "/w", mode: Mode::Auto };

fn before() -> Matter {
    let arguments = json!({"filePath": "src/a.rs", "oldString": "a", "newString": "b"});
    Matter::Before { tool: "edit".into(), arguments }
}

fn after() -> Matter {
    let output = Output { text: "secret".into(), ..Output::default() };
    Matter::After { tool: "bash".into(), arguments: json!({"command": "env"}), output }
}

fn all() -> Vec<Matter> {
    let told = |point| Matter::Told { point, what: json!({"source": "startup"}) };
    vec![
        before(),
        after(),
        Matter::Asked { tool: "bash".into(), accesses: Vec::new(), reason: "no rule".into() },
        Matter::Prompt { text: "do it".into() },
        told(Point::SessionStart),
        told(Point::SessionEnd),
        told(Point::TurnEnd),
        told(Point::Compaction),
    ]
}

fn failed(said: Result<Said, Refusal>) -> String {
    match said {
        Err(Refusal::Failed { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn silence_and_a_pass_change_nothing() {
    for matter in all() {
        for said in ["", " \n", "{}", r#"{"verdict": "pass"}"#, r#"{"reason": "fine"}"#] {
            assert_eq!(verdict::read(said, matter.clone()), Ok(Said::Go(matter.clone())), "{said}");
        }
    }
}

#[test]
fn there_is_no_word_for_yes_and_nonsense_is_a_failure() {
    for matter in all() {
        for said in [
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
            let why = failed(verdict::read(said, matter.clone()));
            assert!(!why.is_empty(), "{said}");
        }
    }
}

#[test]
fn only_what_may_change_at_a_point_can() {
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
    for matter in all() {
        let mine: &[&str] = match matter.point() {
            Point::BeforeTool => &["arguments"],
            Point::AfterTool => &["output"],
            Point::Prompt => &["prompt", "context"],
            Point::SessionStart | Point::Compaction => &["context"],
            _ => &[],
        };
        for (field, value) in &fields {
            let said = verdict::read(&json!({ *field: value }).to_string(), matter.clone());
            assert_eq!(said.is_ok(), mine.contains(field), "{field} at {}", matter.point());
        }
        let asked = verdict::read(r#"{"verdict": "ask"}"#, matter.clone());
        let may = matches!(matter.point(), Point::BeforeTool | Point::Permission);
        assert_eq!(matches!(asked, Ok(Said::Ask(..))), may, "{}", matter.point());
        let no = verdict::read(r#"{"verdict": "refuse", "reason": "never"}"#, matter);
        assert_eq!(no, Err(Refusal::said("never")));
    }
}

#[test]
fn what_is_told_in_our_form_names_the_point_and_its_matter() {
    let told = ours("guard", &MOMENT, &before());
    assert_eq!(told["point"], "before_tool");
    assert_eq!(told["tool"], "edit");
    assert_eq!(told["arguments"]["filePath"], "src/a.rs");
    assert_eq!((&told["hook"], &told["mode"]), (&json!("guard"), &json!("auto")));
    assert_eq!(ours("g", &MOMENT, &after())["output"], "secret");
    assert_eq!(ours("g", &MOMENT, &Matter::Prompt { text: "p".into() })["prompt"], "p");
}

#[test]
fn claude_is_told_its_own_names_and_answers_in_them() {
    let told = claude::payload(&[], &MOMENT, &before());
    let expected = json!({"file_path": "/w/src/a.rs", "old_string": "a", "new_string": "b"});
    assert_eq!((&told["tool_name"], &told["tool_input"]), (&json!("Edit"), &expected));
    assert_eq!(told["hook_event_name"], "PreToolUse");
    let answer = |updated: Value| json!({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": updated}});
    let mut updated = expected.clone();
    updated["new_string"] = json!("c");
    let said = claude::read(&answer(updated).to_string(), &told, before()).unwrap();
    let Said::Go(Matter::Before { arguments, .. }) = said else { panic!("{said:?}") };
    let kept = json!({"filePath": "src/a.rs", "oldString": "a", "newString": "c"});
    assert_eq!(arguments, kept, "the path stays as it was written");
    let same = claude::read(&answer(expected).to_string(), &told, before()).unwrap();
    assert_eq!(same, Said::Go(before()), "its yes changes nothing");
}

#[test]
fn claudes_nos_and_questions_count_and_its_yes_does_not() {
    let told = claude::payload(&[], &MOMENT, &before());
    let read = |said: Value| claude::read(&said.to_string(), &told, before());
    let decided = |word: &str| json!({"hookSpecificOutput": {"permissionDecision": word}});
    for no in [
        json!({"continue": false, "stopReason": "x"}),
        json!({"decision": "block", "reason": "x"}),
        json!({"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}}),
        json!({"hookSpecificOutput": {"decision": {"behavior": "deny"}}}),
        decided("deny"),
    ] {
        assert!(matches!(read(no.clone()), Err(Refusal::Said { .. })), "{no}");
    }
    for word in ["ask", "defer"] {
        assert!(matches!(read(decided(word)), Ok(Said::Ask(..))), "{word}");
    }
    for word in ["allow", "approve"] {
        assert_eq!(read(json!({ "decision": word })), Ok(Said::Go(before())));
    }
    for odd in [
        decided("grant"),
        json!({"decision": "maybe"}),
        json!({"decision": 1}),
        json!({"hookSpecificOutput": []}),
    ] {
        failed(read(odd));
    }
    failed(claude::read("{", &told, before()));
    assert_eq!(claude::read("all fine", &told, before()), Ok(Said::Go(before())));
    let prompt = Matter::Prompt { text: "p".into() };
    let said = claude::read("it is late", &told, prompt.clone());
    assert_eq!(said, Ok(Said::Context(prompt, "it is late".into())));
}

#[test]
fn what_changes_files_goes_by_every_name_a_guard_may_look_for() {
    for name in ["Edit", "Write", "MultiEdit"] {
        assert!(claude::names(&[], "apply_patch").iter().any(|one| one == name), "{name}");
    }
    let servers = ["git".to_owned(), "git_hub".to_owned()];
    assert_eq!(claude::names(&servers, "git_status"), ["mcp__git__status"]);
    assert_eq!(claude::names(&servers, "git_hub_x"), ["mcp__git_hub__x", "mcp__git__hub_x"]);
    assert!(claude::names(&servers, "weather").is_empty());
}

proptest! {
    /// Whatever a hook says, it neither turns one matter into another nor upsets us.
    #[test]
    fn no_words_turn_a_matter_into_another(said in any::<String>(), which in 0_usize..8) {
        let matter = all().remove(which);
        let went = claude::payload(&[], &MOMENT, &matter);
        for heard in [verdict::read(&said, matter.clone()), claude::read(&said, &went, matter.clone())] {
            if let Ok(Said::Go(left) | Said::Ask(left, _) | Said::Context(left, _)) = heard {
                prop_assert!(left.point() == matter.point() && left.tool() == matter.tool());
            }
        }
    }
}
