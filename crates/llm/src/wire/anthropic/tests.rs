//! Streams as the provider sends them, and a conversation as it wants it.

use crate::catalog;
use crate::wire::Format;
use crate::wire::tests::{check_case, written};
use windlass_testkit::Case;

windlass_testkit::cases!(check, "wire/anthropic/cases":
    text_comes_in_blocks,
    a_thought_keeps_its_signature,
    a_thought_that_is_not_shown_still_has_its_place,
    calls_come_side_by_side,
    arguments_may_come_at_once,
    a_call_at_the_output_limit_does_not_count,
    an_overloaded_provider_says_so_in_the_stream,
    an_error_may_be_about_the_key,
    a_refusal_is_not_an_answer,
    what_only_their_own_tools_write_is_left_out,
    a_stream_that_stops_early_is_a_fault,
    a_stream_that_said_why_is_complete,
    a_line_nobody_can_read_ends_it,
);

fn check(case: Case) {
    check_case(Format::Anthropic, case);
}

#[test]
fn a_conversation_is_written_as_the_format_wants_it() {
    let quirks = catalog::plain(Format::Anthropic, false).quirks;
    expect_test::expect_file!["body.json"].assert_eq(&written(Format::Anthropic, quirks));
}
