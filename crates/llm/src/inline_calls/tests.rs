//! Answers in the syntax of several model families, each parsed whole, split in two at every
//! position, and character by character.

use super::InlineCallParser;
use crate::ModelEvent;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use std::time::Duration;
use windlass_protocol::{Fault, FinishReason, TokenUsage};

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.into())
}

fn reasoning(text: &str) -> ModelEvent {
    ModelEvent::Reasoning(text.into())
}

fn call(at: usize, tool: &str, arguments: &str) -> ModelEvent {
    ModelEvent::Call {
        reference: format!("text_call_{at}"),
        tool: tool.into(),
        arguments: arguments.into(),
        provider_signature: None,
        repairs: vec!["the call was written as text".into()],
    }
}

fn native_call(tool: &str) -> ModelEvent {
    ModelEvent::Call {
        reference: "call_1".into(),
        tool: tool.into(),
        arguments: "{}".into(),
        provider_signature: None,
        repairs: Vec::new(),
    }
}

fn ended(finish: FinishReason) -> ModelEvent {
    ModelEvent::Ended { finish, usage: TokenUsage::default() }
}

fn join_deltas(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
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

fn full_parser() -> InlineCallParser {
    InlineCallParser::new(true, Some(vec!["read_file".into(), "bash".into(), "get_weather".into()]))
}

fn run_parser(
    mut parser: InlineCallParser,
    events: impl IntoIterator<Item = ModelEvent>,
) -> Vec<ModelEvent> {
    let mut out = Vec::new();
    events.into_iter().for_each(|event| parser.process_event(event, &mut out));
    join_deltas(out)
}

fn parse_pieces(
    parser: &InlineCallParser,
    pieces: &[&str],
    finish: FinishReason,
) -> Vec<ModelEvent> {
    let events = pieces.iter().map(|piece| text(piece)).chain([ended(finish)]);
    run_parser(parser.clone(), events)
}

/// Parses an answer, and checks that every split gives the same events.
fn parse_at_every_split(
    parser: &InlineCallParser,
    answer: &str,
    finish: FinishReason,
) -> Vec<ModelEvent> {
    let whole = parse_pieces(parser, &[answer], finish.clone());
    for (at, _) in answer.char_indices() {
        let (one, two) = answer.split_at(at);
        assert_eq!(
            parse_pieces(parser, &[one, two], finish.clone()),
            whole,
            "cut at {at}: {answer}"
        );
    }
    let singles: Vec<&str> = answer.split("").collect();
    assert_eq!(parse_pieces(parser, &singles, finish), whole, "character by character: {answer}");
    whole
}

/// Asserts the events of an answer with finish reason `Stop`.
fn assert_parses_to(answer: &str, expected: &[ModelEvent]) {
    let calls = expected.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
    let finish = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
    let expected: Vec<ModelEvent> = expected.iter().cloned().chain([ended(finish)]).collect();
    assert_eq!(
        parse_at_every_split(&full_parser(), answer, FinishReason::Stop),
        expected,
        "{answer}"
    );
}

/// Asserts that an answer is only text.
fn assert_is_text(answer: &str) {
    assert_parses_to(answer, &[text(answer)]);
}

#[test]
fn deepseek_thinks_in_tags() {
    assert_parses_to(
        "<think>\nThe user greets me. 1 < 2, a</b>.\n</think>\n\nHello!",
        &[reasoning("The user greets me. 1 < 2, a</b>.\n"), text("Hello!")],
    );
}

#[test]
fn other_reasoning_tags_are_recognized() {
    for (open, close) in [
        ("<thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<reasoning>", "</reasoning>"),
        ("<seed:think>", "</seed:think>"),
        ("[THINK]", "[/THINK]"),
    ] {
        assert_parses_to(&format!("{open}hm <t{close}ja"), &[reasoning("hm <t"), text("ja")]);
    }
}

#[test]
fn empty_reasoning_is_dropped() {
    assert_parses_to("<think>\n\n</think>\n\nParis.", &[text("Paris.")]);
}

#[test]
fn reasoning_is_streamed() {
    let (mut parser, mut out) = (full_parser(), Vec::new());
    for piece in ["<thi", "nk>one ", "two </", "thin", "g </think", ">three <", "b"] {
        parser.process_event(text(piece), &mut out);
    }
    let expected =
        [reasoning("one "), reasoning("two "), reasoning("</thing "), text("three "), text("<b")];
    assert_eq!(out, expected);
}

#[test]
fn reasoning_may_lack_its_closing_tag() {
    assert_parses_to("<think>and so on </thi", &[reasoning("and so on </thi")]);
}

#[test]
fn a_closing_tag_without_an_opening_tag_is_removed() {
    assert_parses_to("I should greet.\n</think>\n\nHello!", &[text("I should greet.\nHello!")]);
    assert_parses_to("I should.</think>Hello </think>", &[text("I should.Hello </think>")]);
    assert_parses_to(
        "I read it.\n</think>\n\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}",
        &[text("I read it.\n"), call(0, "read_file", "{\"path\": \"a\"}")],
    );
}

#[test]
fn later_reasoning_must_start_a_line() {
    assert_parses_to(
        "One.\n<think>two</think>\nThree.",
        &[text("One.\n"), reasoning("two"), text("Three.")],
    );
    assert_is_text("The tag <think> begins a thought.");
    assert_parses_to("<think>a</think>b </think>", &[reasoning("a"), text("b </think>")]);
}

#[test]
fn a_tag_in_code_is_text() {
    assert_is_text(
        "So:\n```xml\n<think>\nx</think>\n<tool_call>{\"name\":\"bash\"}</tool_call>\n```\n",
    );
    assert_is_text("Use `</think>` and `` ` <tool_call>{\"name\":\"a\"}</tool_call> ``.");
    assert_is_text("````\n```\n<think>a</think>\n````");
    assert_parses_to("```\na\n```\n<think>b</think>", &[text("```\na\n```\n"), reasoning("b")]);
    assert_parses_to("```a``` b\n<think>c</think>", &[text("```a``` b\n"), reasoning("c")]);
}

#[test]
fn hermes_calls_in_a_tag() {
    assert_parses_to(
        "I will look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"src/main.rs\"}}\n</tool_call>",
        &[text("I will look.\n"), call(0, "read_file", "{\"path\": \"src/main.rs\"}")],
    );
}

#[test]
fn qwen_thinks_and_calls_twice() {
    assert_parses_to(
        "<think>\nTwo cities.\n</think>\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Zürich\"}}\n</tool_call>\n",
        &[
            reasoning("Two cities.\n"),
            call(0, "get_weather", "{\"city\": \"Oslo\"}"),
            call(1, "get_weather", "{\"city\": \"Zürich\"}"),
        ],
    );
}

#[test]
fn parameters_is_an_alias_of_arguments() {
    assert_parses_to(
        "<tool_call>{\"parameters\": {\"command\":\"ls\"}, \"name\": \"bash\"}</tool_call>",
        &[call(0, "bash", "{\"command\":\"ls\"}")],
    );
}

#[test]
fn a_call_may_be_wrapped_as_a_function() {
    assert_parses_to(
        "<tool_call>{\"type\":\"function\",\"function\":{\"name\":\"bash\",\"arguments\":{}}}</tool_call>",
        &[call(0, "bash", "{}")],
    );
    assert_parses_to(
        "<|python_tag|>{\"type\": \"function\", \"function\": \"bash\", \"parameters\": {\"n\": 1}}",
        &[call(0, "bash", "{\"n\": 1}")],
    );
    assert_parses_to("<tool_call>{\"name\": \"bash\"}</tool_call>", &[call(0, "bash", "{}")]);
}

#[test]
fn several_calls_may_share_a_tag() {
    let calls = [call(0, "a", "{}"), call(1, "b", "{}")];
    let (a, b) = ("{\"name\":\"a\",\"arguments\":{}}", "{\"name\":\"b\",\"arguments\":{}}");
    assert_parses_to(&format!("<tool_call>\n{a}\n{b}\n</tool_call>"), &calls);
    assert_parses_to(&format!("<tool_call>[{a}, {b}]</tool_call>"), &calls);
    assert_parses_to(&format!("<tool_call>\n{a}\n<tool_call>\n{b}\n</tool_call>"), &calls);
    assert_parses_to(
        &format!("<tool_call>\n<tool_call>\n{a}\n</tool_call>{b}"),
        &[text(&format!("<tool_call>\n{b}")), call(0, "a", "{}")],
    );
}

#[test]
fn qwen_coder_calls_in_function_tags() {
    assert_parses_to(
        "Let me see.\n\n<tool_call>\n<function=bash>\n<parameter=command>\ncat <<'E' > a\n\"x\" </b>\n\nE\n</parameter>\n<parameter=timeout>\n30\n</parameter>\n</function>\n</tool_call>",
        &[
            text("Let me see.\n\n"),
            call(0, "bash", r#"{"command":"cat <<'E' > a\n\"x\" </b>\n\nE","timeout":"30"}"#),
        ],
    );
    assert_parses_to("<tool_call><function=list></function></tool_call>", &[call(0, "list", "{}")]);
}

#[test]
fn qwen_coder_may_omit_the_outer_tag() {
    assert_parses_to(
        "I'll list.\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>\nDone",
        &[text("I'll list.\nDone"), call(0, "bash", r#"{"command":"ls"}"#)],
    );
}

#[test]
fn a_parameter_may_contain_a_call() {
    assert_parses_to(
        "<tool_call><function=write><parameter=text><tool_call><function=a><parameter=b>c</parameter></function></tool_call></parameter></function></tool_call>",
        &[call(
            0,
            "write",
            r#"{"text":"<tool_call><function=a><parameter=b>c</parameter></function></tool_call>"}"#,
        )],
    );
}

#[test]
fn a_call_with_an_unclosed_parameter_is_text() {
    let broken = "<tool_call><function=bash><parameter=command>rm -r a</function></tool_call>";
    let sound = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    assert_is_text(broken);
    assert_is_text(&format!("{broken}\n{sound}"));
    assert_is_text(
        "<tool_call><function=a><parameter=b>c</parameter> d</parameter></function></tool_call>",
    );
}

#[test]
fn an_argument_may_contain_a_closing_tag() {
    assert_parses_to(
        r#"<tool_call>{"name":"write","arguments":{"text":"a</tool_call>\"b"}}</tool_call>ok"#,
        &[text("ok"), call(0, "write", r#"{"text":"a</tool_call>\"b"}"#)],
    );
    assert_parses_to(
        r#"<function=write>{"text":"</function>"}</function>"#,
        &[call(0, "write", r#"{"text":"</function>"}"#)],
    );
}

#[test]
fn mistral_calls_in_a_list() {
    assert_parses_to(
        r#"[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "bash", "arguments": {"command": "ls [a]"}}]"#,
        &[
            call(0, "get_weather", r#"{"city": "Paris"}"#),
            call(1, "bash", r#"{"command": "ls [a]"}"#),
        ],
    );
    assert_parses_to(
        "Let me.[TOOL_CALLS] [{\"name\": \"bash\", \"arguments\": {}, \"id\": \"9Ae3bDc2F\"}]</s>",
        &[text("Let me."), call(0, "bash", "{}")],
    );
}

#[test]
fn mistral_calls_by_name() {
    assert_parses_to(
        r#"[TOOL_CALLS]get_weather{"city": "Paris"}"#,
        &[call(0, "get_weather", r#"{"city": "Paris"}"#)],
    );
    assert_parses_to(
        r#"[THINK]Hm.[/THINK][TOOL_CALLS]bash[ARGS]{"a": 1}[TOOL_CALLS]read_file[CALL_ID]x1[ARGS]{}"#,
        &[reasoning("Hm."), call(0, "bash", r#"{"a": 1}"#), call(1, "read_file", "{}")],
    );
}

#[test]
fn llama_calls_after_the_python_tag() {
    assert_parses_to(
        r#"<|python_tag|>{"type": "function", "name": "bash", "parameters": {"command": "ls"}}<|eom_id|>"#,
        &[call(0, "bash", r#"{"command": "ls"}"#)],
    );
    assert_parses_to(
        r#"<|python_tag|>{"name": "a", "parameters": {}}; {"name": "b", "parameters": {}}"#,
        &[call(0, "a", "{}"), call(1, "b", "{}")],
    );
    assert_is_text("<|python_tag|>get_weather.call(city=\"Paris\")");
}

#[test]
fn llama_calls_a_function() {
    let expected = [call(0, "get_weather", r#"{"city": "Paris"}"#)];
    assert_parses_to(r#"<function=get_weather>{"city": "Paris"}</function>"#, &expected);
    assert_parses_to(r#"<function=get_weather{"city": "Paris"}</function>"#, &expected);
    assert_parses_to(r#"<function=get_weather>{"city": "Paris"}"#, &expected);
}

#[test]
fn an_answer_that_is_only_a_call_of_a_known_tool_is_a_call() {
    let expected = [call(0, "readFile", "{\n  \"path\": \"a\"\n}")];
    let object = "{\"name\": \"readFile\", \"parameters\": {\n  \"path\": \"a\"\n}}";
    assert_parses_to(object, &expected);
    assert_parses_to(&format!("\n {object}\n\n"), &expected);
    assert_parses_to(&format!("```json\n{object}\n```"), &expected);
    assert_parses_to(&format!("\n```\n{object}\n```\n"), &expected);
    assert_parses_to(
        &format!("<think>so</think>\n\n{object}"),
        &[reasoning("so"), expected[0].clone()],
    );
    assert_parses_to(
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
            "" => assert_parses_to(answer, &[]),
            _ => assert_is_text(answer),
        }
    }
}

#[test]
fn text_that_cannot_become_a_call_is_emitted_at_once() {
    for answer in ["{ a", "[1", "```py", "``a", "[TOOL_CALLS]", "{\"a\": 1} b", "<function=a b"] {
        let (mut parser, mut out) = (full_parser(), Vec::new());
        parser.process_event(text(answer), &mut out);
        let shown = if answer == "[TOOL_CALLS]" { vec![] } else { vec![text(answer)] };
        assert_eq!(out, shown, "{answer}");
    }
    let (mut parser, mut out) = (full_parser(), Vec::new());
    parser.process_event(text("a <tool"), &mut out);
    parser.process_event(text("box> <tool_call> is a tag"), &mut out);
    assert_eq!(out, [text("a "), text("<toolbox> <tool_call> is a tag")]);
}

#[test]
fn a_tagged_call_may_have_an_unknown_tool_and_invalid_json() {
    assert_parses_to(
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
        assert_parses_to(
            &format!("<tool_call>\n{{\"name\": \"bash\", \"arguments\": {written}\n</tool_call>"),
            &[call(0, "bash", arguments)],
        );
    }
    assert_parses_to("<function=bash>{\"a\": oh}x</function>", &[call(0, "bash", "{\"a\": oh}x")]);
}

#[test]
fn a_call_without_a_name_is_text() {
    assert_is_text("<tool_call>{\"tool\": \"bash\", \"arguments\": {}}</tool_call> so");
    assert_is_text("<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>");
    assert_is_text("<tool_call>[]</tool_call>");
    assert_is_text("<tool_call>bash</tool_call>");
    assert_is_text("[TOOL_CALLS] is a mark.");
}

#[test]
fn a_complete_call_may_lack_its_closing_tag() {
    assert_parses_to(
        "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": \"</tool_call>\"}}\n",
        &[call(0, "bash", "{\"a\": \"</tool_call>\"}")],
    );
    assert_parses_to(
        "<tool_call>\n<function=bash>\n<parameter=a>\n1\n</parameter>\n</function>",
        &[call(0, "bash", r#"{"a":"1"}"#)],
    );
}

#[test]
fn a_call_that_was_cut_off_is_text() {
    assert_is_text("<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": \"rm -rf /tmp");
    assert_is_text("<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"a\": 1}");
    assert_is_text("<tool_call>\n<function=bash>\n<parameter=a>\n1\n</parameter>\n");
    assert_is_text("<tool_call>\n<function=bash>\n<parameter=a>\nrm -r");
    assert_is_text("[TOOL_CALLS][{\"name\": \"bash\", \"arguments\": {}}, {\"na");
    assert_is_text("[TOOL_CALLS]bash{\"a\": \"}");
    assert_is_text("<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"a\": 1}");
    assert_is_text("<function=bash>{\"a\": ");
    assert_is_text("<function=ba");
    assert_is_text("<tool_call");
}

#[test]
fn an_answer_that_did_not_end_properly_has_no_calls() {
    for answer in [
        "So:\n<tool_call>{\"name\": \"bash\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\"",
        "[TOOL_CALLS]bash{}",
        "<|python_tag|>{\"name\": \"bash\", \"parameters\": {}}",
        "{\"name\": \"bash\", \"arguments\": {}}",
        "\n<function=bash>{}</function>\n\n</tool_call>\n",
    ] {
        for finish in
            [FinishReason::Length, FinishReason::ContentFiltered, FinishReason::Interrupted]
        {
            let expected = [text(answer), ended(finish.clone())];
            assert_eq!(parse_at_every_split(&full_parser(), answer, finish), expected, "{answer}");
        }
    }
}

#[test]
fn calls_come_after_all_text() {
    assert_parses_to(
        "A<tool_call>{\"name\":\"a\"}</tool_call>\n\nB [TOOL_CALLS]b{}",
        &[text("AB "), call(0, "a", "{}"), call(1, "b", "{}")],
    );
}

#[test]
fn a_closing_tag_in_an_unclosed_string_ends_the_call() {
    let broken = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"a\": \"b}}</tool_call>";
    assert_parses_to(
        &format!("{broken}\nand <tool_call>{{\"name\": \"a\"}}</tool_call>"),
        &[text("\nand <tool_call>{\"name\": \"a\"}</tool_call>"), call(0, "bash", "{\"a\": \"b}}")],
    );
}

/// An argument may quote a call, for example in a file about agents.
#[test]
fn a_call_quoted_in_an_argument_is_text() {
    let quoted =
        "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"rm -rf build\"}}</tool_call>";
    assert_is_text(&format!(
        "<tool_call><function=write><parameter=path>n.md</parameter><parameter=content>The mark \
         <parameter= opens one. </tool_call>\n{quoted}\n</parameter></function></tool_call>"
    ));
}

/// The prompt template may have opened the reasoning; a call inside it is not executed.
#[test]
fn a_call_inside_reasoning_is_not_emitted() {
    let quoted_call = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    let real_call = "<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>";
    let answer = format!("I could {quoted_call} but no.\n</think>\nLet me look first.{real_call}");
    let events = parse_at_every_split(&full_parser(), &answer, FinishReason::Stop);
    let calls: Vec<&ModelEvent> =
        events.iter().filter(|event| matches!(event, ModelEvent::Call { .. })).collect();
    assert_eq!(calls, [&call(0, "read", "{}")]);
}

#[test]
fn a_call_in_a_quotation_or_a_code_block_is_text() {
    let real_call = "<tool_call>{\"name\":\"bash\",\"arguments\":{}}</tool_call>";
    for quoted in [
        format!("The file says:\n> {real_call}\n"),
        format!("1. ```xml\n   {real_call}\n   ```\n"),
        format!("- ```\n{real_call}\n```\n"),
        format!("> ```\n> {real_call}\n> ```\n"),
        format!("~~~\n{real_call}\n~~~\n"),
        format!("Like so:\n\n    {real_call}\n"),
        format!("Like so:\n\n\t{real_call}\n"),
    ] {
        assert_is_text(&quoted);
        // The text after the quotation is parsed again.
        let events = parse_at_every_split(
            &full_parser(),
            &format!("{quoted}{real_call}"),
            FinishReason::Stop,
        );
        assert!(events.contains(&call(0, "bash", "{}")), "{quoted}: {events:?}");
    }
}

#[test]
fn native_events_keep_their_order() {
    let events = || {
        [
            reasoning("hm"),
            ModelEvent::ProviderSignature("s".into()),
            text("a <thi"),
            ModelEvent::ProviderSignature("t".into()),
            text("nk> <tool_call>{\"name\":"),
            native_call("bash"),
            text("\"b\"}</tool_call>"),
            ended(FinishReason::ToolCalls),
        ]
    };
    let expected = [
        reasoning("hm"),
        ModelEvent::ProviderSignature("s".into()),
        text("a <thi"),
        ModelEvent::ProviderSignature("t".into()),
        text("nk> "),
        native_call("bash"),
        text("<tool_call>{\"name\":\"b\"}</tool_call>"),
        ended(FinishReason::ToolCalls),
    ];
    assert_eq!(run_parser(full_parser(), events()), expected);
    assert_eq!(run_parser(InlineCallParser::new(false, None), events()), events());
    let json = "{\"name\": \"bash\", \"arguments\": {}}";
    let expected = [text(json), native_call("bash"), ended(FinishReason::ToolCalls)];
    assert_eq!(
        run_parser(
            full_parser(),
            [text(json), native_call("bash"), ended(FinishReason::ToolCalls)]
        ),
        expected
    );
}

#[test]
fn held_back_text_of_a_failed_answer_is_dropped() {
    let failed = ModelEvent::Failed(Fault::Network { message: "gone".into() });
    let events = [text("a <tool_call>{\"name\":\"b\"}</tool_call> <thi"), failed.clone()];
    assert_eq!(run_parser(full_parser(), events), [text("a "), failed]);
}

#[test]
fn only_the_enabled_syntax_is_parsed() {
    let call_text = "<tool_call>{\"name\": \"a\"}</tool_call>";
    let answer = format!("<think>t</think>{call_text}");
    let stop = ended(FinishReason::Stop);
    let reasoning_only =
        parse_at_every_split(&InlineCallParser::new(true, None), &answer, FinishReason::Stop);
    assert_eq!(reasoning_only, [reasoning("t"), text(call_text), stop]);
    let calls = parse_at_every_split(
        &InlineCallParser::new(false, Some(Vec::new())),
        &answer,
        FinishReason::Stop,
    );
    assert_eq!(
        calls,
        [text("<think>t</think>"), call(0, "a", "{}"), ended(FinishReason::ToolCalls)]
    );
}

#[test]
fn too_many_calls_are_text() {
    let one = "<tool_call>{\"name\":\"a\"}</tool_call>\n";
    let events = parse_pieces(&full_parser(), &[&one.repeat(1_002)], FinishReason::Stop);
    assert_eq!(events.len(), 1_002);
    assert_eq!(events[0], text(&one.repeat(2)));
}

#[test]
fn a_call_over_the_size_limit_is_text() {
    let answer = format!("<tool_call>{{\"name\":\"a\",\"arguments\":\"{}", "x".repeat(9 << 20));
    let (mut parser, mut out) = (full_parser(), Vec::new());
    parser.process_event(text(&answer), &mut out);
    assert_eq!(join_deltas(out), [text(&answer)]);
    let whole = format!("{{\"name\":\"{}", "x".repeat(70_000));
    let (mut parser, mut out) = (full_parser(), Vec::new());
    parser.process_event(text(&whole), &mut out);
    assert_eq!(join_deltas(out), [text(&whole)]);
}

/// Repeating any of the work for every character would take hours.
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
            let (mut parser, mut out) = (full_parser(), Vec::new());
            for c in answer.chars() {
                parser.process_event(text(c.encode_utf8(&mut [0; 4])), &mut out);
            }
            parser.process_event(ended(FinishReason::Stop), &mut out);
        }
    }
    assert!(
        started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(60)),
        "{:?}",
        started.elapsed()
    );
}

/// Text made of fragments of tags, JSON and code.
fn any_answer() -> impl Strategy<Value = String> {
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

fn content_length(events: &[ModelEvent]) -> usize {
    let event_length = |event: &ModelEvent| match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::Call { tool, arguments, .. }
        | ModelEvent::CallDelta { tool, arguments, .. } => tool.len() + arguments.len(),
        _ => 0,
    };
    events.iter().map(event_length).sum()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn splitting_an_answer_changes_nothing(
        answer in any_answer(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..5),
        finish in select(vec![FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Length]),
    ) {
        let whole = parse_pieces(&full_parser(), &[&answer], finish.clone());
        let singles: Vec<&str> = answer.split("").collect();
        prop_assert_eq!(&parse_pieces(&full_parser(), &singles, finish.clone()), &whole);
        let mut ends: Vec<usize> = cuts
            .iter()
            .map(|cut| answer.floor_char_boundary(cut.index(answer.len() + 1)))
            .collect();
        ends.sort_unstable();
        ends.push(answer.len());
        let mut from = 0;
        let some: Vec<&str> =
            ends.iter().map(|end| &answer[std::mem::replace(&mut from, *end)..*end]).collect();
        prop_assert_eq!(&parse_pieces(&full_parser(), &some, finish.clone()), &whole);
        // A parameter in tags becomes JSON, where escaping may double its length.
        prop_assert!(content_length(&whole) <= 2 * answer.len(), "{:?}", whole);
        let calls = whole.iter().any(|event| matches!(event, ModelEvent::Call { .. }));
        prop_assert!(!(calls && finish == FinishReason::Length));
        let untouched: Vec<ModelEvent> =
            [text(&answer), ended(finish.clone())].into_iter().collect();
        let disabled = InlineCallParser::new(false, None);
        prop_assert_eq!(parse_pieces(&disabled, &[&answer], finish), untouched);
    }

    #[test]
    fn no_text_is_lost_without_calls_or_reasoning(answer in "[a-z<>{}\\[\\]`\"\n /=|_]{0,40}") {
        let shown = parse_pieces(&full_parser(), &[&answer], FinishReason::Stop);
        prop_assert!(shown.len() <= 2);
        prop_assert_eq!(content_length(&shown), answer.len());
    }
}
