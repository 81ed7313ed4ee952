//! Servers that fail to start, exit or hang.

use crate::support::{TestWorkspace, run};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_protocol::CallOutcome;

pub fn a_failed_start_reports_exit_code_and_stderr() {
    run(async {
        let env = TestWorkspace::new();
        // Other load on the machine only adds to the time.
        let mut shortest = Duration::MAX;
        for _ in 0..3 {
            let servers = env.open(vec![env.server_spec("r", "exit_at_start")]);
            let started_at = Instant::now();
            servers.inspect("r").await.unwrap_err();
            shortest = shortest.min(started_at.elapsed());
        }
        assert!(shortest < Duration::from_secs(1), "{shortest:?}");
        let servers =
            env.open(vec![env.server_spec("r", "exit_at_start"), env.server_spec("s", "good")]);
        let error = servers.inspect("r").await.unwrap_err().text;
        assert!(
            error.contains("exited with code 7") && error.contains("license has run out"),
            "{error}"
        );
        let starts = env.log_count("start");
        let error = servers.inspect("r").await.unwrap_err().text;
        assert!(error.contains("it can be retried in 1 s"), "{error}");
        assert_eq!(env.log_count("start"), starts, "the failed server is not started again");
        servers.inspect("s").await.unwrap();
        assert_eq!(env.call("s_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn a_server_killed_between_calls_is_restarted() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open_server("good").await;
        assert!(servers.inspect("r").await.unwrap().pid.is_some());
        env.kill_server();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(env.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert_eq!((env.log_count("start"), env.log_count("call echo")), (2, 1));
    });
}

pub fn a_call_that_ends_the_server_is_not_repeated() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("good").await;
        let outcome = env.call("r_die", json!({})).await;
        assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
        assert!(
            outcome.text().contains("It may have run") && outcome.text().contains("code 9"),
            "{outcome:?}"
        );
        assert_eq!(env.log_count("call die"), 1);
        assert_eq!(env.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn an_idempotent_call_is_repeated_once() {
    run(async {
        let env = TestWorkspace::new();
        let _servers = env.open_server("good").await;
        let outcome = env.call("r_die_again", json!({})).await;
        assert_eq!(outcome.text(), "alive");
        assert_eq!((env.log_count("start"), env.log_count("call die_again")), (2, 2));
    });
}

pub fn a_slow_server_delays_no_other_server() {
    run(async {
        let env = TestWorkspace::new();
        let mut slow = env.server_spec("z", "sleeps");
        slow.start_timeout = Duration::from_secs(2);
        let started_at = Instant::now();
        let servers = env.open(vec![slow, env.server_spec("s", "good")]);
        servers.start_unknown();
        servers.inspect("s").await.unwrap();
        assert_eq!(env.call("s_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
            "{:?}",
            started_at.elapsed()
        );
        let missing = env.runtime.registry.wait_for_pending(Duration::from_secs(10)).await;
        assert!(
            missing.len() == 1 && missing[0].contains("did not answer within 2"),
            "{missing:?}"
        );
    });
}
