//! Hostile servers: whatever one does, callers wait no longer than their time limit, memory is
//! bounded, no process is left, and other servers keep answering.

use crate::support::{
    RESPONSE_TIMEOUT, START_TIMEOUT, TIMEOUT_SLACK, TestWorkspace, health_state, run,
};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_lsp::LanguageServers;
use windlass_protocol::SessionId;
use windlass_sandbox::{SandboxBackend, SandboxMode};
use windlass_testkit::peak_memory;
use windlass_toolkit::process_health::ProcessHealthState;

/// Modes of `rogue.py` with the expected response, alternatives separated by `|`.
const CALL_CASES: &[(&str, &str)] = &[
    ("good", "alive"),
    ("talks", "alive"),
    ("dies", "exited with code 9: the license has run out"),
    ("half_header", "TimedOut"),
    ("half_body", "TimedOut"),
    ("hangs", "TimedOut"),
    ("huge_header", "too much invalid output"),
    ("many_lines", "a header of more than 4 kB"),
    ("announced", "a message of more than 16 MB"),
    ("sent", "a message of more than 16 MB"),
    ("many_parts", "too large"),
    ("deep", "alive"),
    ("floods", "alive"),
    ("odd_diagnostics", "alive"),
    ("asks", "200 requests in a second"),
    ("twice", "alive"),
    ("unknown", "too much invalid output"),
    ("forks", "exited with code 3"),
    // The sandbox process may hold the pipe open.
    ("closes", "closed its output|TimedOut"),
];

/// Modes of `rogue.py` that fail at the start, with the expected error.
const START_CASES: &[(&str, &str)] = &[
    ("exits", "exited with code 7: the license has run out"),
    ("silent", "did not answer `initialize` within 1"),
    ("garbage", "too much invalid output"),
];

/// Asserts that the good server answers quickly until the given time.
async fn assert_keeps_answering(env: &TestWorkspace, servers: &LanguageServers, until: Instant) {
    while Instant::now() < until {
        let started_at = Instant::now();
        assert!(env.can_echo(servers, "a.good").await, "the good server stopped answering");
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
            "{:?}",
            started_at.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The result of a call to a hostile server.
struct HostileCallResult {
    response: String,
    elapsed: Duration,
    /// Growth of our own peak memory.
    memory_growth_mb: u64,
}

/// Calls a server in this mode while the good server keeps answering.
async fn call_rogue(
    mode: &str,
    limit: Duration,
    env: &TestWorkspace,
    good: &LanguageServers,
    sandbox_mode: SandboxMode,
) -> HostileCallResult {
    let other = TestWorkspace::with_sandbox(sandbox_mode);
    let servers = other.open(vec![other.server_config("rogue", mode, ".x")]);
    assert!(other.can_echo(&servers, "a.x").await, "{mode}");
    let (before, started_at) = (peak_memory::reset_peak(), Instant::now());
    let request = async {
        let limits = (START_TIMEOUT, limit);
        let response =
            servers.send_raw_request(&other.world, "a.x", "hostile", json!({}), limits).await;
        (
            response.map_or_else(|reason| reason, |response| response.to_string()),
            started_at.elapsed(),
        )
    };
    let until = started_at + Duration::from_millis(300);
    let ((response, elapsed), ()) = tokio::join!(request, assert_keeps_answering(env, good, until));
    let memory_growth_mb = peak_memory::peak_kb().saturating_sub(before) >> 10;
    println!("{mode}: {elapsed:?}, {memory_growth_mb} MB: {response}");
    let started_at = Instant::now();
    servers.close().await;
    assert!(
        started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
        "{mode}: {:?}",
        started_at.elapsed()
    );
    assert!(other.wait_until_all_exited().await, "{mode}");
    HostileCallResult { response, elapsed, memory_growth_mb }
}

pub fn a_misbehaving_call_affects_no_other_server() {
    run(async {
        let env = TestWorkspace::new();
        let good = env.open(vec![env.server_config("good", "good", ".good")]);
        assert!(env.can_echo(&good, "a.good").await);
        let limit = Duration::from_secs(1);
        for (mode, expected) in CALL_CASES {
            let mut report = call_rogue(mode, limit, &env, &good, SandboxMode::Best).await;
            // Other load on the machine only adds to the time.
            for _ in 0..2 {
                if report.elapsed >= limit + TIMEOUT_SLACK {
                    report = call_rogue(mode, limit, &env, &good, SandboxMode::Best).await;
                }
            }
            let HostileCallResult { response, elapsed, memory_growth_mb } = report;
            assert!(
                expected.split('|').any(|expected| response.contains(expected)),
                "{mode}: {response}"
            );
            assert!(
                elapsed < windlass_testkit::time_limits::limit(limit + TIMEOUT_SLACK),
                "{mode}: {elapsed:?}"
            );
            assert!(memory_growth_mb < 64, "{mode}: {memory_growth_mb} MB");
        }
        assert!(env.can_echo(&good, "a.good").await);
        good.close().await;
    });
}

/// Landlock has no PID namespace that would end all processes.
pub fn no_process_is_left_in_the_landlock_sandbox() {
    run(async {
        let env = TestWorkspace::new();
        let good = env.open(vec![env.server_config("good", "good", ".good")]);
        assert!(env.can_echo(&good, "a.good").await);
        for (mode, expected) in [
            ("good", "alive"),
            ("dies", "exited with code 9"),
            ("closes", "closed its output"),
            ("forks", "exited with code 3"),
            ("stubborn", "alive"),
        ] {
            let sandbox_mode = SandboxMode::Exactly(SandboxBackend::Landlock);
            let report = call_rogue(mode, Duration::from_secs(1), &env, &good, sandbox_mode).await;
            assert!(report.response.contains(expected), "{mode}: {}", report.response);
        }
        good.close().await;
    });
}

/// An edit does not wait at all for a server that failed to start.
pub fn an_edit_waits_no_longer_than_the_review_timeout() {
    run(async {
        for mode in ["silent", "good", "odd_diagnostics", "exits"] {
            let mut env = TestWorkspace::new();
            env.timeouts.review = Duration::from_millis(500);
            let servers = env.open(vec![env.server_config("rogue", mode, ".x")]);
            for round in 0..3 {
                let started_at = Instant::now();
                let before = servers.snapshot_before(&env.world, &["a.x".into()]);
                assert!(
                    started_at.elapsed() < windlass_testkit::time_limits::limit(TIMEOUT_SLACK),
                    "{mode} {round}: {:?}",
                    started_at.elapsed()
                );
                let now = vec![("a.x".into(), Some("text".into()))];
                let (session, cancel) = (SessionId(Default::default()), CancellationToken::new());
                let review = servers.review_after(&env.world, session, before, now, &cancel).await;
                let elapsed = started_at.elapsed();
                println!("{mode} {round}: {elapsed:?} {review:?}");
                assert!(review.is_none(), "{mode} {round}: {review:?}");
                assert!(
                    elapsed
                        < windlass_testkit::time_limits::limit(env.timeouts.review + TIMEOUT_SLACK),
                    "{mode} {round}: {elapsed:?}"
                );
                if (mode, round) == ("exits", 2) {
                    assert!(
                        elapsed < windlass_testkit::time_limits::limit(TIMEOUT_SLACK / 4),
                        "the server is not restarted yet: {elapsed:?}"
                    );
                }
            }
            servers.close().await;
            assert!(env.wait_until_all_exited().await, "{mode}");
        }
    });
}

/// Measures an edit whose server is missing or does not start.
pub fn a_missing_server_does_not_delay_edits() {
    run(async {
        let env = TestWorkspace::new();
        let mut missing = env.server_config("missing", "good", ".x");
        missing.command = vec!["no-such-program-anywhere".into()];
        for server_config in [missing, env.server_config("rogue", "exits", ".x")] {
            let name = server_config.name.clone();
            let servers = env.open(vec![server_config]);
            let mut costs = Vec::new();
            for _ in 0..200 {
                let started_at = Instant::now();
                let before = servers.snapshot_before(&env.world, &["a.x".into()]);
                let now = vec![("a.x".into(), Some("text".into()))];
                let (session, cancel) = (SessionId(Default::default()), CancellationToken::new());
                assert!(
                    servers.review_after(&env.world, session, before, now, &cancel).await.is_none()
                );
                costs.push(started_at.elapsed());
            }
            costs.sort();
            let (median, slowest) = (costs[costs.len() / 2], costs[costs.len() - 2]);
            println!("{name}: {median:?} median, {slowest:?} second slowest");
            assert!(median < Duration::from_millis(5), "{name}: {median:?}");
            servers.close().await;
        }
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn a_flood_of_notifications_slows_no_other_server() {
    run(async {
        let env = TestWorkspace::new();
        let configs = vec![
            env.server_config("rogue", "floods", ".x"),
            env.server_config("good", "good", ".good"),
        ];
        let servers = env.open(configs);
        assert!(env.can_echo(&servers, "a.good").await && env.can_echo(&servers, "a.x").await);
        let before = peak_memory::reset_peak();
        assert_eq!(env.request(&servers, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let until = Instant::now() + Duration::from_millis(2_500);
        let request = async {
            let limits = (START_TIMEOUT, Duration::from_millis(300));
            while Instant::now() < until {
                let started_at = Instant::now();
                let _ =
                    servers.send_raw_request(&env.world, "a.x", "echo", json!({}), limits).await;
                assert!(
                    started_at.elapsed()
                        < windlass_testkit::time_limits::limit(limits.1 + TIMEOUT_SLACK),
                    "{:?}",
                    started_at.elapsed()
                );
            }
        };
        tokio::join!(request, assert_keeps_answering(&env, &servers, until));
        let memory_growth_mb = peak_memory::peak_kb().saturating_sub(before) >> 10;
        assert!(memory_growth_mb < 64, "{memory_growth_mb} MB");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(env.can_echo(&servers, "a.x").await, "the flood has ended");
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn a_misbehaving_start_affects_no_other_server() {
    run(async {
        let env = TestWorkspace::new();
        let good = env.open(vec![env.server_config("good", "good", ".good")]);
        assert!(env.can_echo(&good, "a.good").await);
        for (mode, expected) in START_CASES {
            let mut other = TestWorkspace::new();
            other.timeouts.start = Duration::from_secs(1);
            let servers = other.open(vec![other.server_config("rogue", mode, ".x")]);
            let started_at = Instant::now();
            let first_call = other.request(&servers, "a.x", "echo", json!({}));
            let first_call = async { (first_call.await, started_at.elapsed()) };
            let read_files = async {
                let mut shortest = Duration::MAX;
                for _ in 0..5 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let started_at = Instant::now();
                    servers.open_for_read(&other.world, "a.x");
                    let short_timeouts = (Duration::from_millis(20), RESPONSE_TIMEOUT);
                    let response = servers
                        .send_raw_request(&other.world, "b.x", "echo", json!({}), short_timeouts)
                        .await;
                    assert!(response.is_err(), "{mode}: {response:?}");
                    shortest = shortest.min(started_at.elapsed());
                }
                shortest
            };
            let until = started_at + Duration::from_millis(500);
            let ((response, elapsed), shortest, ()) =
                tokio::join!(first_call, read_files, assert_keeps_answering(&env, &good, until));
            let response = response.unwrap_err();
            println!("{mode}: {elapsed:?}, others {shortest:?}: {response}");
            assert!(shortest < Duration::from_millis(50), "{mode}: {shortest:?}");
            assert!(
                response.contains(expected) && response.contains("rogue is not running"),
                "{mode}: {response}"
            );
            assert!(
                elapsed
                    < windlass_testkit::time_limits::limit(
                        other.timeouts.start + 2 * TIMEOUT_SLACK
                    ),
                "{mode}: {elapsed:?}"
            );
            let again = other.request(&servers, "a.x", "echo", json!({})).await.unwrap_err();
            assert!(again.contains("it can be retried in"), "{mode}: {again}");
            assert!(other.wait_until_all_exited().await, "{mode}");
        }
        good.close().await;
    });
}

pub fn a_server_that_ignores_shutdown_is_terminated() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open(vec![env.server_config("rogue", "stubborn", ".x")]);
        assert!(env.can_echo(&servers, "a.x").await);
        let started_at = Instant::now();
        servers.close().await;
        let elapsed = started_at.elapsed();
        assert!(
            elapsed > Duration::from_secs(2)
                && elapsed < windlass_testkit::time_limits::limit(Duration::from_millis(4_500)),
            "{elapsed:?}"
        );
        assert_eq!(env.process_count(), 0);
    });
}

pub fn a_server_that_does_not_read_is_restarted() {
    run(async {
        let env = TestWorkspace::new();
        let configs = vec![
            env.server_config("rogue", "never_reads", ".x"),
            env.server_config("good", "good", ".good"),
        ];
        let servers = env.open(configs);
        assert!(env.can_echo(&servers, "a.good").await);
        assert_eq!(env.request(&servers, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let before = peak_memory::reset_peak();
        let text = "x".repeat(1 << 20);
        let started_at = Instant::now();
        let notified = env.request(&servers, "a.x", "notify:big", json!({"text": text})).await;
        assert!(
            notified.is_ok()
                && started_at.elapsed() < windlass_testkit::time_limits::limit(TIMEOUT_SLACK),
            "{:?}",
            started_at.elapsed()
        );
        let started_at = Instant::now();
        let limits = (START_TIMEOUT, Duration::from_millis(300));
        let response = servers.send_raw_request(&env.world, "a.x", "echo", json!({}), limits).await;
        assert_eq!(response, Err("TimedOut".into()));
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(limits.1 + TIMEOUT_SLACK),
            "{:?}",
            started_at.elapsed()
        );
        assert_keeps_answering(&env, &servers, Instant::now() + Duration::from_millis(5_500)).await;
        let ProcessHealthState::Lost { reason } = health_state(&servers, "rogue") else {
            panic!("{:?}", servers.states())
        };
        assert!(reason.contains("did not read its input"), "{reason}");
        assert!(peak_memory::peak_kb().saturating_sub(before) >> 10 < 64);
        assert_eq!(
            env.request(&servers, "a.x", "echo", json!(1)).await,
            Ok(json!(1)),
            "the server is restarted"
        );
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn a_server_that_uses_too_much_memory_is_stopped() {
    run(async {
        let env = TestWorkspace::new();
        let mut rogue = env.server_config("rogue", "grows", ".x");
        rogue.memory = 100;
        let servers = env.open(vec![rogue, env.server_config("good", "good", ".good")]);
        assert!(env.can_echo(&servers, "a.good").await);
        assert_eq!(env.request(&servers, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let one = env.process_count() / 2;
        assert!(env.wait_for_process_count(one, Duration::from_secs(9)).await);
        let ProcessHealthState::StartFailed { reason, .. } = health_state(&servers, "rogue") else {
            panic!("{:?}", servers.states())
        };
        assert_eq!(reason, "it used more than 100 MB of memory");
        assert!(env.can_echo(&servers, "a.good").await);
        servers.close().await;
    });
}

pub fn an_unresponsive_server_is_restarted() {
    run(async {
        let mut env = TestWorkspace::new();
        env.timeouts.answer = Duration::from_millis(500);
        let servers = env.open(vec![env.server_config("rogue", "hangs", ".x")]);
        assert!(env.can_echo(&servers, "a.x").await);
        let limits = (START_TIMEOUT, Duration::from_millis(300));
        let _ = servers.send_raw_request(&env.world, "a.x", "hostile", json!({}), limits).await;
        for _ in 0..2 {
            let response =
                servers.send_raw_request(&env.world, "a.x", "echo", json!({}), limits).await;
            assert_eq!(response, Err("TimedOut".into()));
        }
        let ProcessHealthState::Lost { reason } = health_state(&servers, "rogue") else {
            panic!("{:?}", servers.states())
        };
        assert!(reason.contains("3 requests in a row unanswered"), "{reason}");
        assert!(env.can_echo(&servers, "a.x").await);
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}
