//! Stream decoding and the request body of the OpenAI Responses format.

use crate::catalog;
use crate::wire_format::WireFormat;
use crate::wire_format::tests::{check_case, conversation_body};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire_format/openai_responses/cases":
    text_arrives_in_deltas,
    encrypted_reasoning_is_kept_byte_for_byte,
    reasoning_without_content_is_dropped,
    reasoning_without_a_summary_keeps_its_position,
    parallel_calls_are_decoded,
    a_refusal_is_text,
    the_output_limit_ends_the_stream,
    a_content_filter_ends_the_stream,
    a_failed_response_ends_the_stream,
    an_error_event_may_be_a_context_overflow,
    an_error_event_may_be_a_rate_limit,
    all_output_may_be_in_the_last_event,
    items_of_provider_tools_are_ignored,
    a_stream_that_stops_early_is_a_fault,
);

fn check(case: Case) {
    check_case(WireFormat::OpenaiResponses, case);
}

#[test]
fn the_request_body_matches_the_snapshot() {
    let quirks = catalog::generic_provider(WireFormat::OpenaiResponses, false).quirks;
    expect_test::expect_file!["body.json"]
        .assert_eq(&conversation_body(WireFormat::OpenaiResponses, quirks));
}
