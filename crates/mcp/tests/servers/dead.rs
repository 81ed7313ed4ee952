//! Servers that are not there, or not for long.

use crate::site::{Site, run};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_protocol::Outcome;

pub fn one_that_exits_at_its_start_says_why() {
    run(async {
        let site = Site::new();
        // What else the machine does only adds to it.
        let mut least = Duration::MAX;
        for _ in 0..3 {
            let servers = site.open(vec![site.spec("r", "exit_at_start")]);
            let began = Instant::now();
            servers.look("r").await.unwrap_err();
            least = least.min(began.elapsed());
        }
        assert!(least < Duration::from_secs(1), "{least:?}");
        let servers = site.open(vec![site.spec("r", "exit_at_start"), site.spec("s", "good")]);
        let why = servers.look("r").await.unwrap_err().text;
        assert!(why.contains("exited with code 7") && why.contains("licence has run out"), "{why}");
        let starts = site.logged("start");
        let why = servers.look("r").await.unwrap_err().text;
        assert!(why.contains("it is tried again in 1 s"), "{why}");
        assert_eq!(site.logged("start"), starts, "nothing was started for that");
        servers.look("s").await.unwrap();
        assert_eq!(site.call("s_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn one_that_was_killed_between_calls_is_started_again() {
    run(async {
        let site = Site::new();
        let servers = site.with("good").await;
        assert!(servers.look("r").await.unwrap().pid.is_some());
        site.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(site.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert_eq!((site.logged("start"), site.logged("call echo")), (2, 1));
    });
}

pub fn one_that_dies_in_a_call_is_not_called_again() {
    run(async {
        let site = Site::new();
        let _servers = site.with("good").await;
        let said = site.call("r_die", json!({})).await;
        assert!(matches!(said, Outcome::Failed { .. }), "{said:?}");
        assert!(
            said.text().contains("It may have run") && said.text().contains("code 9"),
            "{said:?}"
        );
        assert_eq!(site.logged("call die"), 1);
        assert_eq!(site.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn what_may_be_repeated_is_repeated_once() {
    run(async {
        let site = Site::new();
        let _servers = site.with("good").await;
        let said = site.call("r_die_again", json!({})).await;
        assert_eq!(said.text(), "alive");
        assert_eq!((site.logged("start"), site.logged("call die_again")), (2, 2));
    });
}

pub fn one_that_sleeps_holds_up_nobody() {
    run(async {
        let site = Site::new();
        let mut slow = site.spec("z", "sleeps");
        slow.timeout = Duration::from_secs(2);
        let began = Instant::now();
        let servers = site.open(vec![slow, site.spec("s", "good")]);
        servers.begin();
        servers.look("s").await.unwrap();
        assert_eq!(site.call("s_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let missing = site.runtime.registry.arrivals(Duration::from_secs(10)).await;
        assert!(
            missing.len() == 1 && missing[0].contains("did not answer within 2"),
            "{missing:?}"
        );
    });
}
