//! The cases of `todoread`.

use crate::harness;

windlass_testkit::cases!(harness::run, "todoread/cases":
    the_last_list_is_given,
    before_the_first_list_there_is_none,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::TodoRead, expect_test::expect_file!["schema.json"]);
}
