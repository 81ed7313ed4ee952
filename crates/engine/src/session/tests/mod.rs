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
mod compact;
mod crash;
mod doom;
mod generated;
mod hooked;
mod inquire;
mod interleave;
mod render;
mod spawn;
mod stop;
mod world;

use super::{Limits, Terms};
use render::{render_log, render_requests};
use windlass_testkit::Case;
use windlass_testkit::case::Section;
use windlass_testkit::grammar;
use world::World;

fn terms(limits: Limits) -> Terms {
    Terms { model: "p/m".into(), limits, ..Terms::default() }
}

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
    a_prompt_steers_the_turn_under_way,
    several_prompts_steer_in_their_order,
    a_prompt_that_comes_too_late_begins_the_next_turn,
    a_new_mode_is_told_before_the_next_step,
    a_mode_set_while_idle_is_told_in_the_next_turn,
    a_turn_ends_at_its_token_limit_before_its_calls_run,
    a_turn_ends_when_its_money_is_spent,
    a_turn_whose_time_is_up_is_stopped,
    the_same_call_again_and_again_is_asked_about,
    a_loop_that_is_let_go_on_goes_on,
    a_loop_of_two_is_a_loop,
    a_loop_of_three_is_a_loop,
    a_loop_ends_the_turn_where_it_is_denied,
    a_loop_goes_on_where_it_is_allowed,
    a_call_that_never_runs_loops_too,
    a_poll_is_not_a_loop,
    an_empty_answer_is_asked_for_again,
    two_empty_answers_end_the_turn,
    a_withheld_answer_ends_the_turn,
    calls_behind_a_stop_are_not_made,
    old_outputs_are_pruned_first,
    a_long_conversation_is_summed_up,
    a_refused_conversation_is_summed_up,
    what_must_not_be_lost_is_in_the_summary,
    a_summary_that_fails_twice_ends_the_turn,
    a_prompt_no_model_takes_ends_the_turn,
    a_person_has_a_conversation_summed_up,
    a_small_window_is_summed_up_in_pieces,
    a_failed_summary_is_made_again,
    a_call_may_ask_the_person,
    nobody_answers_a_call,
    a_yes_to_a_plan_changes_the_mode,
    a_no_to_a_plan_keeps_the_mode,
    an_interrupt_while_a_call_asks,
    a_hooks_no_is_told_to_the_model,
    a_hook_withholds_what_a_call_gave,
    a_hook_has_a_person_asked,
    a_prompt_that_waits_is_withdrawn,
    a_step_back_takes_out_what_came_after,
    a_step_back_over_a_step_back,
    a_step_back_over_a_summary,
    a_step_back_tells_the_mode_again,
);

windlass_testkit::cases!(generated::trace, "session/traces": the_same_seed_leaves_the_same_trace);

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
