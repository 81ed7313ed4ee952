//! The cases of `question`.

use crate::harness;

windlass_testkit::cases!(harness::run, "question/cases":
    what_was_chosen_is_told,
    a_question_without_an_answer_says_so,
    nobody_is_there_to_answer,
    an_answer_that_is_there_twice_is_refused,
    a_single_answer_is_no_choice,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Question, expect_test::expect_file!["schema.json"]);
}
