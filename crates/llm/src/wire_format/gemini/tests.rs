//! Stream decoding and the request body of the Gemini format.

use crate::catalog;
use crate::wire_format::WireFormat;
use crate::wire_format::tests::{check_case, conversation_body};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire_format/gemini/cases":
    text_arrives_in_chunks,
    reasoning_and_signatures_keep_their_order,
    parallel_calls_are_decoded,
    the_output_limit_ends_the_stream,
    a_content_filter_ends_the_stream,
    a_blocked_prompt_is_a_refusal,
    a_malformed_call_is_a_provider_fault,
    an_error_in_the_stream_ends_it,
    a_rate_limit_may_have_a_retry_delay,
    too_many_tokens_is_a_context_overflow,
    a_stream_that_stops_early_is_a_fault,
);

fn check(case: Case) {
    check_case(WireFormat::Gemini, case);
}

#[test]
fn the_request_body_matches_the_snapshot() {
    let quirks = catalog::generic_provider(WireFormat::Gemini, false).quirks;
    expect_test::expect_file!["body.json"]
        .assert_eq(&conversation_body(WireFormat::Gemini, quirks));
}
