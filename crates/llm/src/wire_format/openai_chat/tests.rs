//! Stream decoding and the request body of the OpenAI Chat Completions format.

use crate::ModelEvent;
use crate::catalog;
use crate::wire_format::WireFormat;
use crate::wire_format::tests::{check_case, conversation_body, decode_chunks, full_conversation};
use windlass_protocol::FinishReason;
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire_format/openai_chat/cases":
    text_arrives_in_deltas,
    a_call_is_assembled_from_its_deltas,
    two_calls_keep_their_order,
    calls_without_an_index_are_distinguished_by_id,
    a_call_at_the_output_limit_is_not_emitted,
    reasoning_is_separate_and_a_refusal_is_text,
    cached_tokens_are_counted,
    reasoning_under_two_names_is_emitted_once,
    an_error_in_the_stream_ends_it,
    invalid_json_is_a_provider_fault,
    a_stream_that_stops_early_is_a_fault,
    a_stream_with_a_finish_reason_needs_no_done,
    events_after_the_end_are_ignored,
    comments_bom_and_crlf_are_framing,
    done_without_a_finish_reason_is_a_fault,
    an_id_may_change_with_every_delta,
    calls_with_the_same_id_are_distinguished_by_index,
    reasoning_details_are_kept_as_a_signature,
    content_may_be_a_list_of_blocks,
    arguments_may_be_an_object,
    usage_may_be_in_several_fields,
    an_upstream_error_may_be_in_the_choice,
    a_content_filter_ends_the_stream,
    an_error_in_the_stream_may_be_a_context_overflow,
);

fn check(case: Case) {
    check_case(WireFormat::OpenaiChat, case);
}

#[test]
fn hostile_streams_are_faults() {
    let deep = format!("data: {}\n\n", "[".repeat(200_000));
    let long = format!("data: {}\n\n", "x".repeat(17 << 20));
    for stream in [deep.as_bytes(), long.as_bytes(), b"\xff\xfe\x00\n\ndata: \xff\n\n", b""] {
        let events = decode_chunks(WireFormat::OpenaiChat, &[stream]);
        assert!(matches!(events.as_slice(), [ModelEvent::Failed(_)]), "{:?}", events.last());
    }
}

#[test]
fn the_request_body_matches_the_snapshot() {
    let quirks = catalog::generic_provider(WireFormat::OpenaiChat, false).quirks;
    expect_test::expect_file!["body.json"]
        .assert_eq(&conversation_body(WireFormat::OpenaiChat, quirks));
}

#[test]
fn provider_quirks_change_the_request_body() {
    let mut summary = String::new();
    for name in ["deepseek", "mistral", "openrouter", "groq", "ollama"] {
        let row = catalog::find_provider(name).unwrap();
        let body = WireFormat::OpenaiChat.body(&full_conversation(), &row.quirks);
        let messages = body["messages"].as_array().unwrap();
        let summaries = messages.iter().map(|message| {
            let id = message.pointer("/tool_calls/0/id").or(message.get("tool_call_id"));
            let id = id.map(|id| format!(" {id}")).unwrap_or_default();
            let reasoning = message.get("reasoning_content").map(|t| format!(" thought {t}"));
            format!("{}{id}{}", message["role"], reasoning.unwrap_or_default())
        });
        let summaries: Vec<String> = summaries.collect();
        summary +=
            &format!("{name}: {}; usage asked: {}\n", summaries.join(", "), body["stream_options"]);
    }
    expect_test::expect![[r#"
        deepseek: "system", "user", "assistant" "call_1" thought "hm", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!" thought "hm", "tool" "so odd an id!", "assistant" thought "", "user"; usage asked: {"include_usage":true}
        mistral: "system", "user", "assistant" "95ovbf5j4", "tool" "95ovbf5j4", "tool" "95ovbf5j2", "assistant", "user", "assistant" "1rfkoit7h", "tool" "1rfkoit7h", "assistant", "user"; usage asked: null
        openrouter: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
        groq: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
        ollama: "system", "user", "assistant" "call_1", "tool" "call_1", "tool" "call_12", "user", "assistant" "so odd an id!", "tool" "so odd an id!", "assistant", "user"; usage asked: {"include_usage":true}
    "#]].assert_eq(&summary);
}

#[test]
fn an_unknown_finish_reason_is_a_stop() {
    let stream =
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos\"}]}\n\ndata: [DONE]\n\n";
    let finish = match decode_chunks(WireFormat::OpenaiChat, &[stream]).as_slice() {
        [ModelEvent::Ended { finish, .. }] => finish.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(finish, FinishReason::Stop);
}
