//! Tests of the session in a simulated environment: golden logs, a crash at every point, and any
//! interleaving of inputs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod approvals;
mod compaction;
mod crash;
mod generated_sessions;
mod hooks;
mod interleave;
mod interrupts;
mod loops;
mod lost_facts;
mod op_answers;
mod partial_calls;
mod questions;
mod render_log;
mod simulation;
mod subagents;

use super::{CallDescriber, Session, SessionConfig, TurnLimits};
use render_log::{render_log, render_requests};
use simulation::SessionSimulation;
use windlass_protocol::{CallDescription, Fact, FactRecord, SessionId, UnixMillis};
use windlass_testkit::Case;
use windlass_testkit::case_file::CaseSection;
use windlass_testkit::log_grammar;

fn config(limits: TurnLimits) -> SessionConfig {
    let call_describer = CallDescriber::from_fn(|tool, arguments| {
        let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
        let command = value.get("command").and_then(serde_json::Value::as_str);
        let description = CallDescription::new(tool, tool, command.unwrap_or(arguments));
        CallDescription { is_polling: tool == "job", ..description }
    });
    SessionConfig { model: "p/m".into(), limits, call_describer, ..SessionConfig::default() }
}

/// Returns a session as it is opened from its log.
fn replay(log: &[Fact]) -> Session {
    let session = SessionId(uuid::Uuid::nil());
    let record =
        |(seq, fact): (u64, &Fact)| FactRecord::new(session, seq, UnixMillis(0), fact.clone());
    let records: Vec<FactRecord> = (1..).zip(log).map(record).collect();
    Session::replay(&records, config(TurnLimits::default()))
}

windlass_testkit::cases!(golden, "session/cases":
    an_answer_without_calls,
    a_call_then_an_answer,
    read_only_calls_run_concurrently,
    a_call_that_changes_something_runs_alone,
    a_file_change_is_recorded_before_it_is_made,
    an_approved_call_runs,
    an_approval_for_the_session_is_asked_for_once,
    a_denial_ends_the_turn,
    a_denial_stops_the_calls_after_it,
    a_denial_with_a_reason_continues_the_turn,
    a_call_that_fails_before_its_start_is_settled,
    a_failed_request_is_retried,
    a_request_that_keeps_failing_ends_the_turn,
    a_wrong_api_key_is_not_retried,
    a_fallback_answers_for_the_rest_of_the_turn,
    an_overloaded_model_is_replaced_after_its_retries,
    a_wrong_api_key_is_not_replaced,
    a_fallback_with_a_larger_window_takes_over,
    an_interrupt_while_the_model_answers,
    an_interrupt_while_a_call_runs,
    an_interrupt_during_a_permission_request,
    a_queued_prompt_waits_for_the_current_turn,
    a_second_turn_sees_the_first,
    an_answer_cut_at_the_output_limit_runs_no_call,
    the_user_can_call_a_tool,
    calls_over_the_limit_are_not_run,
    a_prompt_steers_the_current_turn,
    several_prompts_steer_in_order,
    a_late_steering_prompt_starts_the_next_turn,
    a_mode_change_is_announced_before_the_next_step,
    a_mode_set_while_idle_is_announced_in_the_next_turn,
    a_turn_ends_at_its_token_limit_before_its_calls_run,
    a_turn_ends_at_its_cost_limit,
    a_turn_ends_at_its_time_limit,
    a_repeated_call_requires_permission,
    an_approved_loop_continues,
    a_loop_of_two_calls_is_detected,
    a_loop_of_three_calls_is_detected,
    a_loop_ends_the_turn_if_the_policy_denies_it,
    a_loop_of_a_tool_continues_if_its_rule_allows_it,
    a_loop_continues_if_the_policy_allows_it,
    a_loop_of_calls_that_never_start_ends_the_turn,
    polling_is_not_a_loop,
    an_empty_answer_is_requested_again,
    two_empty_answers_end_the_turn,
    a_filtered_answer_ends_the_turn,
    calls_of_an_answer_with_finish_reason_stop_are_ignored,
    old_outputs_are_pruned_first,
    a_long_conversation_is_summarized,
    a_conversation_that_the_provider_rejects_is_summarized,
    a_summary_contains_the_state_of_the_session,
    a_summary_that_fails_twice_ends_the_turn,
    a_prompt_over_the_context_window_ends_the_turn,
    the_small_model_writes_a_summary,
    a_summary_that_the_small_model_fails_is_written_by_the_main_model,
    a_summary_that_does_not_fit_the_small_model,
    the_user_can_compact_a_conversation,
    a_small_window_is_summarized_in_parts,
    a_failed_summary_is_retried,
    a_call_can_ask_the_user,
    a_question_can_stay_unanswered,
    an_approved_plan_changes_the_mode,
    a_rejected_plan_keeps_the_mode,
    an_interrupt_during_a_user_question,
    a_hook_denies_a_call,
    a_failed_hook_withholds_the_result,
    a_hook_requires_permission,
    a_hook_continues_a_turn,
    a_turn_continues_until_its_goal_is_reached,
    a_queued_prompt_is_withdrawn,
    a_rewind_removes_later_messages,
    a_rewind_can_go_back_past_an_earlier_rewind,
    a_rewind_past_a_summary_restores_the_one_before,
    a_rewind_announces_the_mode_again,
);

windlass_testkit::cases!(generated_sessions::trace, "session/traces": the_same_seed_gives_the_same_trace);

/// Runs a case without a crash, and compares its log and the requests to the model.
fn golden(case: Case) {
    let mut simulation = SessionSimulation::new(&case);
    simulation.run();
    log_grammar::check_settled(simulation.facts()).unwrap();
    let actual = [
        CaseSection::new("log", "", &render_log(simulation.facts())),
        CaseSection::new("requests", "", &render_requests(&simulation.requests)),
    ];
    case.check(&["log", "requests"], &actual);
}
