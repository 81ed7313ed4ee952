//! Streams as the provider sends them, and a conversation as it wants it.

use crate::catalog;
use crate::wire::Format;
use crate::wire::tests::{check_case, written};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire/openai_responses/cases":
    text_comes_in_pieces,
    a_thought_comes_encrypted,
    a_thought_that_is_kept_there_is_not_sent_back,
    a_silent_thought_still_has_its_place,
    calls_come_side_by_side,
    a_refusal_is_text,
    the_output_limit_ends_it,
    a_filter_ends_it,
    a_failure_ends_it,
    an_error_event_may_mean_overflow,
    a_limit_of_requests_is_one,
    everything_may_come_at_the_end,
    what_only_their_own_tools_write_is_left_out,
    a_stream_that_stops_early_is_a_fault,
);

fn check(case: Case) {
    check_case(Format::OpenaiResponses, case);
}

#[test]
fn a_conversation_is_written_as_the_format_wants_it() {
    let quirks = catalog::plain(Format::OpenaiResponses, false).quirks;
    expect_test::expect_file!["body.json"].assert_eq(&written(Format::OpenaiResponses, quirks));
}
