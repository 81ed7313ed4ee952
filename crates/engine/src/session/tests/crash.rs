//! A crash before, during and after every effect of every case, with the process killed and with
//! the power cut. Afterwards the session is opened again and runs to its end.

use super::simulation::{
    NOT_APPLIED, SessionSimulation, SimulatedCrash, SimulatedCrashMoment, SimulatedDiskState,
};
use std::collections::BTreeMap;
use std::path::Path;
use windlass_protocol::{CallId, CallOutcome, Fact, MessagePart, Transcript};
use windlass_testkit::{Case, log_grammar};

#[allow(clippy::disallowed_methods, reason = "the test lists its own cases")]
pub(super) fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/session/cases");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(Case::load).collect()
}

/// Renders a transcript without ids and positions. Outcomes are separate, because a crash may turn
/// one into `ResultUnknown`.
fn render_transcript(transcript: &Transcript) -> (Vec<String>, Vec<CallOutcome>) {
    let mut outcomes = Vec::new();
    let mut lines = vec![format!("{:?}", transcript.last_turn_end)];
    for message in &transcript.messages {
        for part in &message.parts {
            lines.push(match part {
                MessagePart::Text { text, .. } => format!("{:?}: {text}", message.role),
                MessagePart::Reasoning { text, .. } => format!("{:?} ({text})", message.role),
                MessagePart::File(file) => format!("{:?} <{}>", message.role, file.name),
                MessagePart::Call(call) => {
                    outcomes.extend(call.outcome.clone());
                    format!("{:?} {} {}", message.role, call.tool, call.arguments)
                }
            });
        }
    }
    (lines, outcomes)
}

/// The part of a session that a crash must not change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashInvariant {
    /// The whole transcript, except for outcomes that become unknown.
    Transcript,
    /// The set of prompts that reach the model: each once, in any turn and order.
    Prompts,
}

fn check(
    case: &Case,
    crash: SimulatedCrash,
    expected: &Transcript,
    invariant: CrashInvariant,
) -> usize {
    let at = format!("{}\n{crash:?}", case.sentence);
    let mut simulation = SessionSimulation::new(case);
    simulation.run_with(Some(crash));
    let log = simulation.facts();
    log_grammar::check_settled(log).unwrap_or_else(|error| panic!("{at}\n{error}"));

    let mut runs: BTreeMap<CallId, usize> = BTreeMap::new();
    for call in &simulation.journal {
        *runs.entry(*call).or_default() += 1;
    }
    assert!(runs.values().all(|count| *count == 1), "{at}\na call ran twice: {runs:?}");
    for call in runs.keys() {
        let is_start =
            |fact: &&Fact| matches!(fact, Fact::CallStarted { call: id, .. } if id == call);
        assert_eq!(log.iter().filter(is_start).count(), 1, "{at}\na change without `CallStarted`");
    }

    let (lines, outcomes) = render_transcript(&simulation.transcript());
    let (expected_lines, expected_outcomes) = render_transcript(expected);
    if invariant == CrashInvariant::Prompts {
        // The turn and order of prompts may differ, and so may the number of turns.
        let prompt_line = |fact: &Fact| match fact {
            Fact::PromptSubmitted { text, .. } => Some(format!("User: {text}")),
            _ => None,
        };
        let mut submitted: Vec<String> = log.iter().filter_map(prompt_line).collect();
        let mut delivered = lines;
        delivered.retain(|line| line.starts_with("User: "));
        submitted.sort_unstable();
        delivered.sort_unstable();
        assert_eq!(delivered, submitted, "{at}");
        return outcomes.iter().filter(|outcome| **outcome == CallOutcome::ResultUnknown).count();
    }
    assert_eq!(lines, expected_lines, "{at}");
    let mut unknown = 0;
    for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
        let not_applied = CallOutcome::Failed { text: NOT_APPLIED.into() };
        if *outcome == CallOutcome::ResultUnknown || *outcome == not_applied {
            unknown += 1;
        } else {
            assert_eq!(outcome, expected, "{at}");
        }
    }
    assert_eq!(outcomes.len(), expected_outcomes.len(), "{at}");
    // The length of an outcome affects the usage.
    if unknown == 0 {
        assert_eq!(simulation.transcript().usage, expected.usage, "{at}");
    }
    unknown
}

/// Crashes a session at every point. Returns the number of crashes and of unknown outcomes.
pub(super) fn crash_everywhere(case: &Case, invariant: CrashInvariant) -> (usize, usize) {
    let mut undisturbed = SessionSimulation::new(case);
    let points = undisturbed.run();
    let expected = undisturbed.transcript();
    let (mut crashes, mut unknown) = (0, 0);
    for point in 0..points {
        for moment in [
            SimulatedCrashMoment::Before,
            SimulatedCrashMoment::During,
            SimulatedCrashMoment::After,
        ] {
            for disk in [SimulatedDiskState::Kept, SimulatedDiskState::Lost] {
                unknown +=
                    check(case, SimulatedCrash { point, moment, disk }, &expected, invariant);
                crashes += 1;
            }
        }
    }
    (crashes, unknown)
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    let cases = cases();
    assert!(cases.len() >= 10);
    let (mut crashes, mut unknown) = (0, 0);
    for case in &cases {
        let (case_crashes, case_unknown) = crash_everywhere(case, CrashInvariant::Transcript);
        crashes += case_crashes;
        unknown += case_unknown;
    }
    assert!(crashes > 2_500, "only {crashes} crashes");
    assert!(unknown > 0, "no crash happened during a change");
    assert!(unknown < crashes / 6, "{unknown} of {crashes} ended as unknown");
}

/// A second crash during the recovery from the first.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    for case in cases() {
        let mut undisturbed = SessionSimulation::new(&case);
        let points = undisturbed.run();
        let expected = undisturbed.transcript();
        for point in (0..points).step_by(3) {
            let first = SimulatedCrash {
                point,
                moment: SimulatedCrashMoment::During,
                disk: SimulatedDiskState::Kept,
            };
            let mut crashed = SessionSimulation::new(&case);
            if !crashed.run_to_crash(first) {
                continue;
            }
            for second in 0..6 {
                for disk in [SimulatedDiskState::Kept, SimulatedDiskState::Lost] {
                    let mut simulation = crashed.clone();
                    simulation.recover_with_crash(SimulatedCrash {
                        point: second,
                        moment: SimulatedCrashMoment::During,
                        disk,
                    });
                    log_grammar::check_settled(simulation.facts()).unwrap();
                    let mut journal = simulation.journal.clone();
                    journal.sort_unstable();
                    journal.dedup();
                    assert_eq!(journal.len(), simulation.journal.len(), "a call ran twice");
                    assert_eq!(
                        render_transcript(&simulation.transcript()).0,
                        render_transcript(&expected).0,
                        "{}",
                        case.sentence
                    );
                }
            }
        }
    }
}
