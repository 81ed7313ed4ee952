//! The cases of `question`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "question/cases":
    answers_are_returned,
    an_unknown_field_is_ignored,
    a_question_may_have_no_answer,
    without_a_user_the_call_fails,
    duplicate_options_are_refused,
    a_single_option_is_refused,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::QuestionTool, expect_test::expect_file!["schema.json"]);
}
