//! Streams as servers send them, and a conversation as they want it.

use crate::ModelEvent;
use crate::catalog;
use crate::wire::Format;
use crate::wire::tests::{check_case, conversation, read, written};
use windlass_protocol::Finish;
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire/openai_chat/cases":
    text_comes_in_pieces,
    a_call_is_gathered_from_its_pieces,
    two_calls_keep_their_order,
    calls_without_an_index_are_told_apart_by_id,
    a_call_at_the_output_limit_is_not_handed_on,
    reasoning_and_refusals_are_text_of_their_own,
    cached_tokens_are_counted,
    a_thought_under_two_names_is_one_thought,
    an_error_inside_the_stream_ends_it,
    a_line_nobody_can_read_ends_it,
    a_stream_that_stops_early_is_a_fault,
    a_stream_without_done_is_complete_when_it_said_why,
    nothing_follows_the_end,
    comments_marks_and_foreign_line_ends_are_framing,
    an_end_without_a_reason_does_not_count_calls,
    an_id_may_change_with_every_piece,
    one_id_may_stand_for_two_calls,
    reasoning_details_go_back_as_they_came,
    thoughts_may_be_blocks_of_the_content,
    arguments_may_be_an_object,
    usage_may_stand_in_many_places,
    a_host_may_break_off_with_a_reason,
    a_filter_ends_it,
    an_overflow_is_recognised_inside_the_stream,
);

fn check(case: Case) {
    check_case(Format::OpenaiChat, case);
}

#[test]
fn a_stream_may_be_hostile() {
    let deep = format!("data: {}\n\n", "[".repeat(200_000));
    let long = format!("data: {}\n\n", "x".repeat(17 << 20));
    for stream in [deep.as_bytes(), long.as_bytes(), b"\xff\xfe\x00\n\ndata: \xff\n\n", b""] {
        let events = read(Format::OpenaiChat, &[stream]);
        assert!(matches!(events.as_slice(), [ModelEvent::Failed(_)]), "{:?}", events.last());
    }
}

#[test]
fn a_conversation_is_written_as_the_format_wants_it() {
    let quirks = catalog::plain(Format::OpenaiChat, false).quirks;
    expect_test::expect_file!["body.json"].assert_eq(&written(Format::OpenaiChat, quirks));
}

#[test]
fn dialects_differ_where_their_servers_do() {
    let mut changes = String::new();
    for name in ["deepseek", "mistral", "openrouter", "groq", "ollama"] {
        let row = catalog::provider(name).unwrap();
        let body = Format::OpenaiChat.body(&conversation(), &row.quirks);
        let messages = body["messages"].as_array().unwrap();
        let told = messages.iter().map(|message| {
            let id = message.pointer("/tool_calls/0/id").or(message.get("tool_call_id"));
            let id = id.map(|id| format!(" {id}")).unwrap_or_default();
            let thought = message.get("reasoning_content").map(|t| format!(" thought {t}"));
            format!("{}{id}{}", message["role"], thought.unwrap_or_default())
        });
        let told: Vec<String> = told.collect();
        changes +=
            &format!("{name}: {}; usage asked: {}\n", told.join(", "), body["stream_options"]);
    }
    expect_test::expect![[r#"
        deepseek: "system", "user", "assistant" "call_1" thought "hm", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!" thought "hm", "tool" "so odd an id!", "assistant" thought "", "user"; usage asked: {"include_usage":true}
        mistral: "system", "user", "assistant" "95ovbf5j4", "tool" "95ovbf5j4", "tool" "95ovbf5j2", "assistant", "user", "assistant" "1rfkoit7h", "tool" "1rfkoit7h", "assistant", "user"; usage asked: null
        openrouter: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
        groq: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
        ollama: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
    "#]].assert_eq(&changes);
}

#[test]
fn a_finish_nobody_knows_is_a_stop() {
    let stream =
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos\"}]}\n\ndata: [DONE]\n\n";
    let finish = match read(Format::OpenaiChat, &[stream]).as_slice() {
        [ModelEvent::Ended { finish, .. }] => finish.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(finish, Finish::Stop);
}
