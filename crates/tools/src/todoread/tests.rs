//! The cases of `todoread`.

use crate::case_runner;

windlass_testkit::cases!(case_runner::run_case, "todoread/cases":
    the_last_list_is_returned,
    there_is_no_list_at_first,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::TodoReadTool, expect_test::expect_file!["schema.json"]);
}
