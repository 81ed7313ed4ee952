//! Hostile servers: time and memory are bounded, and other servers keep working.

use crate::support::{TestWorkspace, run};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_testkit::peak_memory;

/// Modes of `rogue.py` with the expected result of a call.
const MODES: &[(&str, &str)] = &[
    ("long_line", "a line of more than 8 MB"),
    ("bad_utf8", "hostile said: x"),
    ("deep", "hostile said: x"),
    ("noise", "hostile said: x"),
    ("much_noise", "too much invalid output"),
    ("twice", "first"),
    ("wrong_id", "hostile said: x"),
    ("half_line", "It may have run"),
    ("notifications", "hostile said: x"),
    ("elicitations", "hostile said: x"),
    ("odd_result", "violates the protocol"),
    ("list_change", "hostile said: x"),
    ("remote_ref", "hostile said: x"),
    ("regex_bomb", "hostile said: x"),
    ("deep_schema", "hostile said: x"),
    ("many_tools", "hostile said: x"),
    ("endless", "hostile said: x"),
    ("same_cursor", "hostile said: x"),
];

pub fn a_hostile_server_affects_no_other_server() {
    run(async {
        let env = TestWorkspace::new();
        let good = env.open(vec![env.server_spec("s", "good")]);
        good.inspect("s").await.unwrap();
        for (mode, expected) in MODES {
            let hostile = TestWorkspace::new();
            let before = peak_memory::reset_peak();
            let started_at = Instant::now();
            let servers = hostile.open(vec![hostile.server_spec("r", mode)]);
            if let Err(failure) = servers.inspect("r").await {
                panic!("{mode}: {failure}");
            }
            let outcome = hostile.call("r_hostile", json!({"text": "x"})).await;
            let (elapsed, memory_growth_mb) =
                (started_at.elapsed(), peak_memory::peak_kb().saturating_sub(before) >> 10);
            println!("{mode}: {elapsed:?}, {memory_growth_mb} MB: {}", outcome.text());
            assert!(outcome.text().contains(expected), "{mode}: {}", outcome.text());
            assert!(
                elapsed < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
                "{mode}: {elapsed:?}"
            );
            assert!(memory_growth_mb < 64, "{mode}: {memory_growth_mb} MB");
            assert_eq!(env.call("s_echo", json!({"text": "a"})).await.text(), "echo: a", "{mode}");
        }
    });
}
