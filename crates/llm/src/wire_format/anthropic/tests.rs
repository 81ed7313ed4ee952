//! Stream decoding and the request body of the Anthropic format.

use crate::catalog;
use crate::wire_format::WireFormat;
use crate::wire_format::tests::{check_case, conversation_body};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire_format/anthropic/cases":
    text_arrives_in_blocks,
    reasoning_keeps_its_signature,
    hidden_reasoning_keeps_its_position,
    parallel_calls_are_decoded,
    arguments_may_be_in_the_block_start,
    a_call_at_the_output_limit_is_not_emitted,
    an_overloaded_error_ends_the_stream,
    an_error_event_may_be_an_auth_fault,
    a_refusal_is_content_filtered,
    blocks_of_provider_tools_are_ignored,
    a_stream_that_stops_early_is_a_fault,
    a_stream_with_a_stop_reason_is_complete,
    invalid_json_is_a_provider_fault,
);

fn check(case: Case) {
    check_case(WireFormat::Anthropic, case);
}

#[test]
fn the_request_body_matches_the_snapshot() {
    let quirks = catalog::generic_provider(WireFormat::Anthropic, false).quirks;
    expect_test::expect_file!["body.json"]
        .assert_eq(&conversation_body(WireFormat::Anthropic, quirks));
}
