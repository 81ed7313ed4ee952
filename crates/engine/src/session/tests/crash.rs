//! A crash before, during and after every effect of every case, with the process killed and with
//! the power cut. Afterwards everything is opened again and runs to its end.

use super::world::{Crash, Disk, Moment, NOT_APPLIED, World};
use std::collections::BTreeMap;
use std::path::Path;
use windlass_protocol::{CallId, Fact, Outcome, Part, Transcript};
use windlass_testkit::{Case, grammar};

#[allow(clippy::disallowed_methods, reason = "the test lists its own cases")]
fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/session/cases");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(Case::load).collect()
}

/// What a transcript says, without ids and positions. Outcomes stand apart, because a crash may
/// turn one into `Unknown`.
fn told(transcript: &Transcript) -> (Vec<String>, Vec<Outcome>) {
    let mut outcomes = Vec::new();
    let mut lines = vec![format!("{:?}", transcript.end)];
    for message in &transcript.messages {
        for part in &message.parts {
            lines.push(match part {
                Part::Text { text, .. } => format!("{:?}: {text}", message.role),
                Part::Reasoning { text, .. } => format!("{:?} ({text})", message.role),
                Part::File(file) => format!("{:?} <{}>", message.role, file.name),
                Part::Call(call) => {
                    outcomes.extend(call.outcome.clone());
                    format!("{:?} {} {}", message.role, call.tool, call.arguments)
                }
            });
        }
    }
    (lines, outcomes)
}

/// How much of a session a crash may change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Same {
    /// Nothing but outcomes that are unknown.
    Everything,
    /// When the model hears what a person says while it works. All of it is heard, once.
    WhatWasSaid,
}

fn check(case: &Case, crash: Crash, expected: &Transcript, same: Same) -> usize {
    let at = format!("{}\n{crash:?}", case.sentence);
    let mut world = World::of(case);
    world.run_with(Some(crash));
    let log = world.facts();
    grammar::check_settled(log).unwrap_or_else(|why| panic!("{at}\n{why}"));

    let mut runs: BTreeMap<CallId, usize> = BTreeMap::new();
    for call in &world.journal {
        *runs.entry(*call).or_default() += 1;
    }
    assert!(runs.values().all(|count| *count == 1), "{at}\na call ran twice: {runs:?}");
    for call in runs.keys() {
        let started = |fact: &&Fact| matches!(fact, Fact::Started { call: id, .. } if id == call);
        assert_eq!(log.iter().filter(started).count(), 1, "{at}\na change without its Started");
    }

    let (lines, outcomes) = told(&world.transcript());
    let (expected_lines, expected_outcomes) = told(expected);
    if same == Same::WhatWasSaid {
        // In which turn and order they are heard may differ, and so how many turns there are.
        let prompted = |fact: &Fact| match fact {
            Fact::Prompted { text, .. } => Some(format!("User: {text}")),
            _ => None,
        };
        let mut said: Vec<String> = log.iter().filter_map(prompted).collect();
        let mut heard = lines;
        heard.retain(|line| line.starts_with("User: "));
        said.sort_unstable();
        heard.sort_unstable();
        assert_eq!(heard, said, "{at}");
        return outcomes.iter().filter(|outcome| **outcome == Outcome::Unknown).count();
    }
    assert_eq!(lines, expected_lines, "{at}");
    let mut unknown = 0;
    for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
        let unapplied = Outcome::Failed { text: NOT_APPLIED.into() };
        if *outcome == Outcome::Unknown || *outcome == unapplied {
            unknown += 1;
        } else {
            assert_eq!(outcome, expected, "{at}");
        }
    }
    assert_eq!(outcomes.len(), expected_outcomes.len(), "{at}");
    // What became of a call has a length, too.
    if unknown == 0 {
        assert_eq!(world.transcript().usage, expected.usage, "{at}");
    }
    unknown
}

/// Crashes a session wherever that is possible: how often, and how often it is not known what
/// became of a call.
pub(super) fn everywhere(case: &Case, same: Same) -> (usize, usize) {
    let mut calm = World::of(case);
    let points = calm.run();
    let expected = calm.transcript();
    let (mut crashes, mut unknown) = (0, 0);
    for point in 0..points {
        for moment in [Moment::Before, Moment::During, Moment::After] {
            for disk in [Disk::Kept, Disk::Lost] {
                unknown += check(case, Crash { point, moment, disk }, &expected, same);
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
        let (tried, lost) = everywhere(case, Same::Everything);
        (crashes, unknown) = (crashes + tried, unknown + lost);
    }
    assert!(crashes > 2_500, "only {crashes} crashes");
    assert!(unknown > 0, "no crash ever met a change under way");
    assert!(unknown < crashes / 6, "{unknown} of {crashes} ended as unknown");
}

/// A second crash while the first is being recovered from.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    for case in cases() {
        let mut calm = World::of(&case);
        let points = calm.run();
        let expected = calm.transcript();
        for point in (0..points).step_by(3) {
            let first = Crash { point, moment: Moment::During, disk: Disk::Kept };
            let mut crashed = World::of(&case);
            if !crashed.stop_at(first) {
                continue;
            }
            for second in 0..6 {
                for disk in [Disk::Kept, Disk::Lost] {
                    let mut world = crashed.clone();
                    world.go_on_with(Crash { point: second, moment: Moment::During, disk });
                    grammar::check_settled(world.facts()).unwrap();
                    let mut journal = world.journal.clone();
                    journal.sort_unstable();
                    journal.dedup();
                    assert_eq!(journal.len(), world.journal.len(), "a call ran twice");
                    assert_eq!(told(&world.transcript()).0, told(&expected).0, "{}", case.sentence);
                }
            }
        }
    }
}
