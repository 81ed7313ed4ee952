//! Streams as the provider sends them, and a conversation as it wants it.

use crate::catalog;
use crate::wire::Format;
use crate::wire::tests::{check_case, written};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire/gemini/cases":
    text_comes_in_chunks,
    thoughts_and_signatures_stay_together,
    calls_come_side_by_side,
    the_output_limit_ends_it,
    a_filter_ends_it,
    a_prompt_that_is_blocked_is_declined,
    a_call_that_came_out_wrong_can_be_tried_again,
    an_error_inside_the_stream_ends_it,
    a_limit_may_say_how_long,
    a_conversation_may_be_too_long,
    a_stream_that_stops_early_is_a_fault,
);

fn check(case: Case) {
    check_case(Format::Gemini, case);
}

#[test]
fn a_conversation_is_written_as_the_format_wants_it() {
    let quirks = catalog::plain(Format::Gemini, false).quirks;
    expect_test::expect_file!["body.json"].assert_eq(&written(Format::Gemini, quirks));
}
