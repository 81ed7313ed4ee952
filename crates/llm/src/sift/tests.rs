//! Answers in the shapes that families of models write, each read whole, in every way it can be
//! cut in two, and character by character.

use super::Sift;
use crate::ModelEvent;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use std::time::Duration;
use windlass_protocol::{Fault, Finish, Usage};

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.into())
}

fn thought(text: &str) -> ModelEvent {
    ModelEvent::Reasoning(text.into())
}

fn call(at: usize, tool: &str, arguments: &str) -> ModelEvent {
    ModelEvent::Call {
        reference: format!("text_call_{at}"),
        tool: tool.into(),
        arguments: arguments.into(),
        seal: None,
        repaired: vec!["the call was written as text".into()],
    }
}

fn native(tool: &str) -> ModelEvent {
    ModelEvent::Call {
        reference: "call_1".into(),
        tool: tool.into(),
        arguments: "{}".into(),
        seal: None,
        repaired: Vec::new(),
    }
}

fn ended(finish: Finish) -> ModelEvent {
    ModelEvent::Ended { finish, usage: Usage::default() }
}

fn joined(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut joined: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more)) => text.push_str(&more),
            (Some(ModelEvent::Reasoning(text)), ModelEvent::Reasoning(more)) => {
                text.push_str(&more)
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

fn both() -> Sift {
    Sift::new(true, Some(vec!["read_file".into(), "bash".into(), "get_weather".into()]))
}

fn sift(mut sift: Sift, events: impl IntoIterator<Item = ModelEvent>) -> Vec<ModelEvent> {
    let mut out = Vec::new();
    events.into_iter().for_each(|event| sift.take(event, &mut out));
    joined(out)
}

fn pieces(of: &Sift, pieces: &[&str], finish: Finish) -> Vec<ModelEvent> {
    let events = pieces.iter().map(|piece| text(piece)).chain([ended(finish)]);
    sift(of.clone(), events)
}

/// Reads an answer, cut in every way.
fn cut(of: &Sift, answer: &str, finish: Finish) -> Vec<ModelEvent> {
    let whole = pieces(of, &[answer], finish.clone());
    for (at, _) in answer.char_indices() {
        let (one, two) = answer.split_at(at);
        assert_eq!(pieces(of, &[one, two], finish.clone()), whole, "cut at {at}: {answer}");
    }
    let singles: Vec<&str> = answer.split("").collect();
    assert_eq!(pieces(of, &singles, finish), whole, "character by character: {answer}");
    whole
}

/// Asserts what an answer that stopped properly means.
fn means(answer: &str, expected: &[ModelEvent]) {
    let calls = expected.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
    let finish = if calls { Finish::Calls } else { Finish::Stop };
    let expected: Vec<ModelEvent> = expected.iter().cloned().chain([ended(finish)]).collect();
    assert_eq!(cut(&both(), answer, Finish::Stop), expected, "{answer}");
}

/// Asserts that an answer is only text.
fn is_text(answer: &str) {
    means(answer, &[text(answer)]);
}

#[test]
fn deepseek_thinks_in_tags() {
    means(
        "<think>\nThe user greets me. 1 < 2, a</b>.\n</think>\n\nHello!",
        &[thought("The user greets me. 1 < 2, a</b>.\n"), text("Hello!")],
    );
}

#[test]
fn other_tags_are_thoughts_too() {
    for (open, close) in [
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("<seed:think>", "</seed:think>"),
        ("[THINK]", "[/THINK]"),
    ] {
        means(&format!("{open}hm <t{close}ja"), &[thought("hm <t"), text("ja")]);
    }
}

#[test]
fn a_thought_of_nothing_is_no_thought() {
    means("<think>\n\n</think>\n\nParis.", &[text("Paris.")]);
}

#[test]
fn a_thought_is_handed_on_as_it_comes() {
    let (mut sift, mut out) = (both(), Vec::new());
    for piece in ["<thi", "nk>one ", "two </", "thin", "g </think", ">three <", "b"] {
        sift.take(text(piece), &mut out);
    }
    let expected =
        [thought("one "), thought("two "), thought("</thing "), text("three "), text("<b")];
    assert_eq!(out, expected);
}

#[test]
fn a_thought_without_an_end_is_still_one() {
    means("<think>and so on </thi", &[thought("and so on </thi")]);
}

#[test]
fn a_thought_whose_beginning_was_in_the_template_only_loses_its_tag() {
    means("I should greet.\n</think>\n\nHello!", &[text("I should greet.\nHello!")]);
    means("I should.</think>Hello </think>", &[text("I should.Hello </think>")]);
    means(
        "I read it.\n</think>\n\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
        &[text("I read it.\n"), call(0, "read_file", "{\"path\": \"a\"}")],
    );
}

#[test]
fn a_later_thought_begins_a_line() {
    means("One.\n<think>two</think>\nThree.", &[text("One.\n"), thought("two"), text("Three.")]);
    is_text("The tag <think> begins a thought.");
    means("<think>a</think>b </think>", &[thought("a"), text("b </think>")]);
}

#[test]
fn in_code_a_tag_is_text() {
    is_text("So:\n```xml\n<think>\nx</think>\n<tool_call>{\"name\":\"bash\"}</tool_call>\n```\n");
    is_text("Use `</think>` and `` ` <tool_call>{\"name\":\"a\"}</tool_call> ``.");
    is_text("````\n```\n<think>a</think>\n````");
    means("```\na\n```\n<think>b</think>", &[text("```\na\n```\n"), thought("b")]);
    means("```a``` b\n<think>c</think>", &[text("```a``` b\n"), thought("c")]);
}

#[test]
fn hermes_calls_in_a_tag() {
    means(
        "I will look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"src/main.rs\"}}\n</tool_call>",
        &[text("I will look.\n"), call(0, "read_file", "{\"path\": \"src/main.rs\"}")],
    );
}

#[test]
fn qwen_thinks_and_calls_twice() {
    means(
        "<think>\nTwo cities.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\"}}\n</tool_call>\n",
        &[
            thought("Two cities.\n"),
            call(0, "get_weather", "{\"city\": \"Oslo\"}"),
            call(1, "get_weather", "{\"city\": \"Zürich\"}"),
        ],
    );
}

#[test]
fn parameters_are_arguments() {
    means(
        "<tool_call>{\"parameters\": {\"command\":\"ls\"}, \"name\": \"bash\"}</tool_call>",
        &[call(0, "bash", "{\"command\":\"ls\"}")],
    );
}

#[test]
fn a_call_may_be_wrapped_as_a_function() {
    means(
        "<tool_call>{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":{}}}</tool_call>",
        &[call(0, "bash", "{}")],
    );
    means(
        "<|python_tag|>{\"type\": \"function\", \"function\": \"bash\", \"parameters\": {\"n\": 1}}",
        &[call(0, "bash", "{\"n\": 1}")],
    );
    means("<tool_call>{\"name\": \"bash\"}</tool_call>", &[call(0, "bash", "{}")]);
}

#[test]
fn several_calls_may_share_a_tag() {
    let calls = [call(0, "a", "{}"), call(1, "b", "{}")];
    let (a, b) = ("{\"name\":\"a\",\"arguments\":{}}", "{\"name\":\"b\",\"arguments\":{}}");
    means(&format!("<tool_call>\n{a}\n{b}\n</tool_call>"), &calls);
    means(&format!("<tool_call>[{a}, {b}]</tool_call>"), &calls);
    means(&format!("<tool_call>\n{a}\n<tool_call>\n{b}\n</tool_call>"), &calls);
    means(
        &format!("<tool_call>\n<tool_call>\n{a}\n</tool_call>{b}"),
        &[text(&format!("<tool_call>\n{b}")), call(0, "a", "{}")],
    );
}

#[test]
fn qwen_coder_calls_in_tags_of_its_own() {
    means(
        "Let me see.\n\n<tool_call>\n<function=bash>\n<parameter=command>\ncat <<'E' > a\n\"x\" </b>\n\nE\n</parameter>\n<parameter=timeout>\n30\n</parameter>\n</function>\n</tool_call>",
        &[
            text("Let me see.\n\n"),
            call(0, "bash", r#"{"command":"cat <<'E' > a\n\"x\" </b>\n\nE","timeout":"30"}"#),
        ],
    );
    means("<tool_call><function=list></function></tool_call>", &[call(0, "list", "{}")]);
}

#[test]
fn qwen_coder_may_forget_the_tag_around_it() {
    means(
        "I'll list.\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>\nDone",
        &[text("I'll list.\nDone"), call(0, "bash", r#"{"command":"ls"}"#)],
    );
}

#[test]
fn a_parameter_may_hold_a_call() {
    means(
        "<tool_call><function=write><parameter=text><tool_call><function=a><parameter=b>c</parameter></function></tool_call></parameter></function></tool_call>",
        &[call(
            0,
            "write",
            r#"{"text":"<tool_call><function=a><parameter=b>c</parameter></function></tool_call>"}"#,
        )],
    );
}

#[test]
fn a_parameter_without_an_end_is_not_run() {
    let broken = "<tool_call><function=bash><parameter=command>rm -r a</function></tool_call>";
    let sound = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    is_text(broken);
    is_text(&format!("{broken}\n{sound}"));
    is_text(
        "<tool_call><function=a><parameter=b>c</parameter> d</parameter></function></tool_call>",
    );
}

#[test]
fn an_argument_may_hold_a_closing_tag() {
    means(
        r#"<tool_call>{"name":"write","arguments":{"text":"a</tool_call>\"b"}}</tool_call>ok"#,
        &[text("ok"), call(0, "write", r#"{"text":"a</tool_call>\"b"}"#)],
    );
    means(
        r#"<function=write>{"text":"</function>"}</function>"#,
        &[call(0, "write", r#"{"text":"</function>"}"#)],
    );
}

#[test]
fn mistral_calls_in_a_list() {
    means(
        r#"[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "bash", "arguments": {"command": "ls [a]"}}]"#,
        &[
            call(0, "get_weather", r#"{"city": "Paris"}"#),
            call(1, "bash", r#"{"command": "ls [a]"}"#),
        ],
    );
    means(
        "Let me.[TOOL_CALLS] [{\"name\": \"bash\", \"arguments\": {}, \"id\": \"9Ae3bDc2F\"}]</s>",
        &[text("Let me."), call(0, "bash", "{}")],
    );
}

#[test]
fn mistral_calls_by_name() {
    means(
        r#"[TOOL_CALLS]get_weather{"city": "Paris"}"#,
        &[call(0, "get_weather", r#"{"city": "Paris"}"#)],
    );
    means(
        r#"[THINK]Hm.[/THINK][TOOL_CALLS]bash[ARGS]{"a": 1}[TOOL_CALLS]read_file[CALL_ID]x1[ARGS]{}"#,
        &[thought("Hm."), call(0, "bash", r#"{"a": 1}"#), call(1, "read_file", "{}")],
    );
}

#[test]
fn llama_calls_after_the_python_tag() {
    means(
        r#"<|python_tag|>{"type": "function", "name": "bash", "parameters": {"command": "ls"}}<|eom_id|>"#,
        &[call(0, "bash", r#"{"command": "ls"}"#)],
    );
    means(
        r#"<|python_tag|>{"name": "a", "parameters": {}}; {"name": "b", "parameters": {}}"#,
        &[call(0, "a", "{}"), call(1, "b", "{}")],
    );
    is_text("<|python_tag|>get_weather.call(city=\"Paris\")");
}

#[test]
fn llama_calls_a_function() {
    let expected = [call(0, "get_weather", r#"{"city": "Paris"}"#)];
    means(r#"<function=get_weather>{"city": "Paris"}</function>"#, &expected);
    means(r#"<function=get_weather{"city": "Paris"}</function>"#, &expected);
    means(r#"<function=get_weather>{"city": "Paris"}"#, &expected);
}

#[test]
fn an_answer_that_is_nothing_but_a_known_call_is_one() {
    let expected = [call(0, "readFile", "{\n  \"path\": \"a\"\n}")];
    let object = "{\"name\": \"readFile\", \"parameters\": {\n  \"path\": \"a\"\n}}";
    means(object, &expected);
    means(&format!("\n {object}\n\n"), &expected);
    means(&format!("```json\n{object}\n```"), &expected);
    means(&format!("\n```\n{object}\n```\n"), &expected);
    means(&format!("<think>so</think>\n\n{object}"), &[thought("so"), expected[0].clone()]);
    means(
        r#"[{"id": "1", "type": "function", "name": "bash", "arguments": {"a": "<tool_call>"}}, {"name": "bash", "arguments": {}}]"#,
        &[call(0, "bash", r#"{"a": "<tool_call>"}"#), call(1, "bash", "{}")],
    );
}

#[test]
fn other_json_is_text() {
    for answer in [
        r#"{"name": "unknown", "arguments": {}}"#,
        r#"{"name": "bash", "arguments": {}, "more": 1}"#,
        r#"{"name": "bash"}"#,
        r#"{"name": "bash", "arguments": [1]}"#,
        r#"{"name": "bash", "arguments": {}, "parameters": {}}"#,
        r#"{"name": "bash", "arguments": {"a": }}"#,
        r#"{"name": "bash", "arguments": {"a": 1}"#,
        r#"{"name": "bash", "arguments": {}} is how to call it."#,
        r#"[{"name": "bash", "arguments": {}}, {"name": "unknown", "arguments": {}}]"#,
        "```json\n{\"name\": \"bash\", \"arguments\": {}}\n```\nis how.",
        "```json\n{\"name\": \"bash\", \"arguments\": {}}\n",
        "Like this: {\"name\": \"bash\", \"arguments\": {}}",
        "```python\nprint(1)\n```",
        "[]",
        "[1] See below.",
        "[T",
        "{",
        "``",
        "\n",
        "",
    ] {
        match answer {
            "" => means(answer, &[]),
            _ => is_text(answer),
        }
    }
}

#[test]
fn what_cannot_be_a_call_any_more_is_handed_on_at_once() {
    for answer in ["{ a", "[1", "```py", "``a", "[TOOL_CALLS]", "{\"a\": 1} b", "<function=a b"] {
        let (mut sift, mut out) = (both(), Vec::new());
        sift.take(text(answer), &mut out);
        let shown = if answer == "[TOOL_CALLS]" { vec![] } else { vec![text(answer)] };
        assert_eq!(out, shown, "{answer}");
    }
    let (mut sift, mut out) = (both(), Vec::new());
    sift.take(text("a <tool"), &mut out);
    sift.take(text("box> <tool_call> is a tag"), &mut out);
    assert_eq!(out, [text("a "), text("<toolbox> <tool_call> is a tag")]);
}

#[test]
fn a_marked_call_may_be_of_no_known_tool_and_no_valid_json() {
    means(
        "<tool_call>{\"name\": \"fly\", \"arguments\": {\"to\": \"Oslo\",}}</tool_call>",
        &[call(0, "fly", "{\"to\": \"Oslo\",}")],
    );
    for (written, arguments) in [
        (r#"{"a": 1}"#, r#"{"a": 1}"#),
        (r#"{"a": 1}}}"#, r#"{"a": 1}"#),
        (r#"{"a": "b"#, r#"{"a": "b"#),
        (r#"{"a": "say "}} b"}}"#, r#"{"a": "say "}} b"}"#),
        ("{'a': True}}", "{'a': True}"),
        (r#""{\"a\": 1}"}"#, r#""{\"a\": 1}""#),
    ] {
        means(
            &format!("<tool_call>\n{{\"name\": \"bash\", \"arguments\": {written}\n</tool_call>"),
            &[call(0, "bash", arguments)],
        );
    }
    means("<function=bash>{\"a\": oh}x</function>", &[call(0, "bash", "{\"a\": oh}x")]);
}

#[test]
fn a_call_without_a_name_is_text() {
    is_text("<tool_call>{\"tool\": \"bash\", \"arguments\": {}}</tool_call> so");
    is_text("<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>");
    is_text("<tool_call>[]</tool_call>");
    is_text("<tool_call>bash</tool_call>");
    is_text("[TOOL_CALLS] is a mark.");
}

#[test]
fn a_call_may_lack_its_closing_tag_if_it_is_whole() {
    means(
        "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": \"</tool_call>\"}}\n",
        &[call(0, "bash", "{\"a\": \"</tool_call>\"}")],
    );
    means(
        "<tool_call>\n<function=bash>\n<parameter=a>\n1\n</parameter>\n</function>",
        &[call(0, "bash", r#"{"a":"1"}"#)],
    );
}

#[test]
fn a_call_that_was_cut_off_is_text() {
    is_text("<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": \"rm -rf /tmp");
    is_text("<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": 1}");
    is_text("<tool_call>\n<function=bash>\n<parameter=a>\n1\n</parameter>\n");
    is_text("<tool_call>\n<function=bash>\n<parameter=a>\nrm -r");
    is_text("[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {}}, {\"na");
    is_text("[TOOL_CALLS]bash{\"a\": \"}");
    is_text("<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"a\": 1}");
    is_text("<function=bash>{\"a\": ");
    is_text("<function=ba");
    is_text("<tool_call");
}

#[test]
fn an_answer_that_did_not_end_properly_runs_nothing() {
    for answer in [
        "So:\n<tool_call>{\"name\": \"bash\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\"",
        "[TOOL_CALLS]bash{}",
        "<|python_tag|>{\"name\": \"bash\", \"parameters\": {}}",
        "{\"name\": \"bash\", \"arguments\": {}}",
        "\n<function=bash>{}</function>\n\n</tool_call>\n",
    ] {
        for finish in [Finish::Length, Finish::Filtered, Finish::Interrupted] {
            let expected = [text(answer), ended(finish.clone())];
            assert_eq!(cut(&both(), answer, finish), expected, "{answer}");
        }
    }
}

#[test]
fn calls_come_after_all_text() {
    means(
        "A<tool_call>{\"name\":\"a\"}</tool_call>\n\nB [TOOL_CALLS]b{}",
        &[text("AB "), call(0, "a", "{}"), call(1, "b", "{}")],
    );
}

#[test]
fn a_closing_tag_in_a_broken_string_ends_a_call_after_all() {
    let broken = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"a\": \"b}}</tool_call>";
    means(
        &format!("{broken}\nand <tool_call>{{\"name\": \"a\"}}</tool_call>"),
        &[text("\nand <tool_call>{\"name\": \"a\"}</tool_call>"), call(0, "bash", "{\"a\": \"b}}")],
    );
}

/// What a call holds may be a call: a file about agents, say.
#[test]
fn a_call_quoted_in_an_argument_is_not_made() {
    let quoted =
        "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"rm -rf build\"}}</tool_call>";
    is_text(&format!(
        "<tool_call><function=write><parameter=path>n.md</parameter><parameter=content>The mark \
         <parameter= opens one. </tool_call>\n{quoted}\n</parameter></function></tool_call>"
    ));
}

/// A template may have opened the thought; what is drafted in it is not made.
#[test]
fn a_call_before_the_end_of_a_thought_is_not_made() {
    let draft = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    let made = "<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>";
    let answer = format!("I could {draft} but no.\n</think>\nLet me look first.{made}");
    let events = cut(&both(), &answer, Finish::Stop);
    let calls: Vec<&ModelEvent> =
        events.iter().filter(|event| matches!(event, ModelEvent::Call { .. })).collect();
    assert_eq!(calls, [&call(0, "read", "{}")]);
}

#[test]
fn a_call_in_a_quotation_or_a_list_of_code_is_not_made() {
    let made = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    for quoted in [
        format!("The file says:\n> {made}\n"),
        format!("1. ```xml\n   {made}\n   ```\n"),
        format!("- ```\n{made}\n```\n"),
        format!("> ```\n> {made}\n> ```\n"),
        format!("~~~\n{made}\n~~~\n"),
        format!("Like so:\n\n    {made}\n"),
        format!("Like so:\n\n\t{made}\n"),
    ] {
        is_text(&quoted);
        // And what follows is not code for ever.
        let events = cut(&both(), &format!("{quoted}{made}"), Finish::Stop);
        assert!(events.contains(&call(0, "bash", "{}")), "{quoted}: {events:?}");
    }
}

#[test]
fn native_events_keep_their_place() {
    let events = || {
        [
            thought("hm"),
            ModelEvent::Sealed("s".into()),
            text("a <thi"),
            ModelEvent::Sealed("t".into()),
            text("nk> <tool_call>{\"name\":"),
            native("bash"),
            text("\"b\"}</tool_call>"),
            ended(Finish::Calls),
        ]
    };
    let expected = [
        thought("hm"),
        ModelEvent::Sealed("s".into()),
        text("a <thi"),
        ModelEvent::Sealed("t".into()),
        text("nk> "),
        native("bash"),
        text("<tool_call>{\"name\":\"b\"}</tool_call>"),
        ended(Finish::Calls),
    ];
    assert_eq!(sift(both(), events()), expected);
    assert_eq!(sift(Sift::new(false, None), events()), events());
    let json = "{\"name\": \"bash\", \"arguments\": {}}";
    let expected = [text(json), native("bash"), ended(Finish::Calls)];
    assert_eq!(sift(both(), [text(json), native("bash"), ended(Finish::Calls)]), expected);
}

#[test]
fn what_a_failed_answer_held_back_is_dropped() {
    let failed = ModelEvent::Failed(Fault::Network { message: "gone".into() });
    let events = [text("a <tool_call>{\"name\":\"b\"}</tool_call> <thi"), failed.clone()];
    assert_eq!(sift(both(), events), [text("a "), failed]);
}

#[test]
fn only_what_was_asked_for_is_looked_for() {
    let call_text = "<tool_call>{\"name\": \"a\"}</tool_call>";
    let answer = format!("<think>t</think>{call_text}");
    let stop = ended(Finish::Stop);
    let thoughts = cut(&Sift::new(true, None), &answer, Finish::Stop);
    assert_eq!(thoughts, [thought("t"), text(call_text), stop]);
    let calls = cut(&Sift::new(false, Some(Vec::new())), &answer, Finish::Stop);
    assert_eq!(calls, [text("<think>t</think>"), call(0, "a", "{}"), ended(Finish::Calls)]);
}

#[test]
fn too_many_calls_are_text() {
    let one = "<tool_call>{\"name\":\"a\"}</tool_call>\n";
    let events = pieces(&both(), &[&one.repeat(1_002)], Finish::Stop);
    assert_eq!(events.len(), 1_002);
    assert_eq!(events[0], text(&one.repeat(2)));
}

#[test]
fn a_call_without_bounds_is_text() {
    let answer = format!("<tool_call>{{\"name\":\"a\",\"arguments\":\"{}", "x".repeat(9 << 20));
    let (mut sift, mut out) = (both(), Vec::new());
    sift.take(text(&answer), &mut out);
    assert_eq!(joined(out), [text(&answer)]);
    let whole = format!("{{\"name\":\"{}", "x".repeat(70_000));
    let (mut sift, mut out) = (both(), Vec::new());
    sift.take(text(&whole), &mut out);
    assert_eq!(joined(out), [text(&whole)]);
}

/// Doing any of the work again for every character would take hours.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test measures itself")]
fn hostile_answers_take_linear_time() {
    let started = std::time::Instant::now();
    for unit in [
        "<",
        "[",
        "`",
        " ",
        "\n",
        "{",
        "{\"",
        "<tool_call>",
        "<tool_call>{",
        "<tool_call>{\\\"</tool_call>",
        "<tool_call>{\"a\":\"</tool_call>",
        "<tool_call><function=a><parameter=b>",
        "</parameter>",
        "<function=a",
        "[TOOL_CALLS]a",
        "[TOOL_CALLS]{\"name\":\"a\"}",
        "<|python_tag|>{\"function\":",
        "</tool_call>",
        "<think>",
        "</think>",
        "<tool_call>{\"name\":\"a\"}</tool_call>",
        "</th",
    ] {
        for before in
            ["", "<tool_call>{\"function\":", "<think>", "[{", "x <tool_call><function=a>"]
        {
            let answer = before.to_owned() + &unit.repeat(100_000 / unit.len());
            let (mut sift, mut out) = (both(), Vec::new());
            for c in answer.chars() {
                sift.take(text(c.encode_utf8(&mut [0; 4])), &mut out);
            }
            sift.take(ended(Finish::Stop), &mut out);
        }
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// Text made of pieces of marks and what stands between them.
fn answers() -> impl Strategy<Value = String> {
    let fragments = vec![
        "<think>",
        "</think>",
        "<th",
        "ink>",
        "[THINK]",
        "[/THINK]",
        "<tool_call>",
        "</tool_call>",
        "<tool_",
        "call>",
        "<function=bash>",
        "</function>",
        "<function=",
        "<parameter=a>",
        "</parameter>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "<|python_tag|>",
        "{\"name\": \"bash\", ",
        "\"arguments\": {\"a\": 1}}",
        "{\"name\": \"bash\", \"arguments\": {}}",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ",",
        ":",
        ";",
        "bash",
        "```",
        "```json\n",
        "`",
        "\n",
        " ",
        "x",
        "é",
        "<",
        ">",
    ];
    proptest::collection::vec(select(fragments), 0..24).prop_map(|parts| parts.concat())
}

fn length(events: &[ModelEvent]) -> usize {
    let of = |event: &ModelEvent| match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::Call { tool, arguments, .. } => tool.len() + arguments.len(),
        _ => 0,
    };
    events.iter().map(of).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_an_answer_is_cut_changes_nothing(
        answer in answers(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..5),
        finish in select(vec![Finish::Stop, Finish::Calls, Finish::Length]),
    ) {
        let whole = pieces(&both(), &[&answer], finish.clone());
        let singles: Vec<&str> = answer.split("").collect();
        prop_assert_eq!(&pieces(&both(), &singles, finish.clone()), &whole);
        let mut ends: Vec<usize> =
            cuts.iter().map(|cut| answer.floor_char_boundary(cut.index(answer.len() + 1))).collect();
        ends.sort_unstable();
        ends.push(answer.len());
        let mut from = 0;
        let some: Vec<&str> =
            ends.iter().map(|end| &answer[std::mem::replace(&mut from, *end)..*end]).collect();
        prop_assert_eq!(&pieces(&both(), &some, finish.clone()), &whole);
        // A parameter in tags becomes JSON, where a character may take two.
        prop_assert!(length(&whole) <= 2 * answer.len(), "{:?}", whole);
        let calls = whole.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
        prop_assert!(!(calls && finish == Finish::Length));
        let untouched: Vec<ModelEvent> =
            [text(&answer), ended(finish.clone())].into_iter().collect();
        prop_assert_eq!(pieces(&Sift::new(false, None), &[&answer], finish), untouched);
    }

    #[test]
    fn without_calls_or_thoughts_nothing_is_lost(answer in "[a-z<>{}\\[\\]`\"\n /=|_]{0,40}") {
        let shown = pieces(&both(), &[&answer], Finish::Stop);
        prop_assert!(shown.len() <= 2);
        prop_assert_eq!(length(&shown), answer.len());
    }
}
