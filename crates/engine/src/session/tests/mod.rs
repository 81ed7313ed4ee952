//! The session against a simulated world: golden logs, a crash at every point, and any
//! interleaving of inputs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod approve;
mod crash;
mod interleave;
mod render;
mod stop;
mod world;

use render::{render_log, render_requests};
use windlass_testkit::Case;
use windlass_testkit::case::Section;
use windlass_testkit::grammar;
use world::World;

windlass_testkit::cases!(golden, "session/cases":
    an_answer_without_calls,
    a_call_then_an_answer,
    calls_that_look_run_side_by_side,
    a_change_runs_alone_and_in_order,
    a_change_goes_on_record_before_it_is_made,
    a_yes_lets_a_call_go_on,
    a_yes_for_the_session_is_asked_once,
    a_no_ends_the_turn,
    a_no_stops_the_calls_behind_it,
    a_no_with_a_reason_goes_on,
    a_call_nobody_can_run_is_told_to_the_model,
    a_failed_request_is_made_again,
    a_request_that_keeps_failing_ends_the_turn,
    a_wrong_key_is_not_tried_again,
    an_interrupt_while_the_model_speaks,
    an_interrupt_while_a_call_runs,
    an_interrupt_while_somebody_is_asked,
    a_prompt_waits_for_the_turn_before_it,
    a_second_turn_sees_the_first,
    an_answer_cut_at_the_limit_runs_no_call,
    a_person_may_make_a_call,
    too_many_calls_are_turned_back,
);

/// Runs a case without a crash and compares its log and what the model was told.
fn golden(case: Case) {
    let mut world = World::of(&case);
    world.run();
    grammar::check_settled(world.facts()).unwrap();
    let actual = [
        Section::new("log", "", &render_log(world.facts())),
        Section::new("told", "", &render_requests(&world.requests)),
    ];
    case.check(&["log", "told"], &actual);
}
