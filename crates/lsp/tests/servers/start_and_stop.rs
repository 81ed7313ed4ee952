//! Start and stop of servers.

use crate::support::{RESPONSE_TIMEOUT, START_TIMEOUT, TestWorkspace, health_state, run};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_toolkit::process_health::ProcessHealthState;

pub fn a_server_is_started_once_on_first_use() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open(vec![env.server_config("s", "talks", ".x")]);
        assert!(servers.states().is_empty() && env.process_count() == 0);
        let started_at = Instant::now();
        for _ in 0..10 {
            servers.open_for_read(&env.world, "a.x");
        }
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(50)),
            "{:?}",
            started_at.elapsed()
        );
        assert_eq!(health_state(&servers, "s"), ProcessHealthState::Starting);
        let all = (0..10).map(|_| {
            let (servers, world) = (servers.clone(), env.world.clone());
            let request = async move {
                servers
                    .send_raw_request(
                        &world,
                        "a.x",
                        "echo",
                        json!(1),
                        (START_TIMEOUT, RESPONSE_TIMEOUT),
                    )
                    .await
            };
            tokio::spawn(request)
        });
        for each in all.collect::<Vec<_>>() {
            assert_eq!(each.await.unwrap(), Ok(json!(1)));
        }
        assert!(matches!(health_state(&servers, "s"), ProcessHealthState::Ready { .. }));
        let one = env.process_count();
        assert!(env.can_echo(&servers, "b.x").await);
        assert_eq!(env.process_count(), one, "another file uses the same server");
        assert!(
            env.request(&servers, "a.y", "echo", json!(1))
                .await
                .unwrap_err()
                .contains("no language")
        );
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn a_server_can_write_only_to_its_cache_folder() {
    run(async {
        let env = TestWorkspace::new();
        std::fs::create_dir_all(env.path("sub/deep")).unwrap();
        std::fs::write(env.path("sub/root.toml"), "").unwrap();
        let servers = env.open(vec![env.server_config("s", "good", ".x")]);
        let response = env.request(&servers, "sub/deep/a.x", "pid", json!({})).await.unwrap();
        assert_eq!(response["cwd"], env.path("sub").to_str().unwrap());
        let cache = env.workspace.process_folder("lsp/s").unwrap();
        assert_eq!(response["cache"], format!("{}/inner", cache.to_str().unwrap()));
        let touch = async |path: std::path::PathBuf| {
            env.request(&servers, "sub/deep/a.x", "touch", json!({"path": path})).await.unwrap()
        };
        assert_eq!(touch(cache.join("mine")).await, "written");
        for path in [env.path("sub/new"), env.path("../home/new"), env.path("root.toml")] {
            let response = touch(path.clone()).await;
            assert_ne!(response, "written", "{path:?}");
            assert!(!path.exists());
        }
        let roots: Vec<_> = servers.states().into_iter().map(|(_, root, _)| root).collect();
        assert_eq!(roots, ["sub"]);
        servers.close().await;
    });
}

pub fn an_idle_server_is_stopped_and_restarted_on_use() {
    run(async {
        let mut env = TestWorkspace::new();
        env.timeouts.idle = Duration::from_millis(400);
        let servers = env.open(vec![env.server_config("s", "good", ".x")]);
        assert!(env.can_echo(&servers, "a.x").await && env.process_count() > 0);
        assert!(env.wait_for_process_count(0, Duration::from_secs(6)).await);
        assert_eq!(health_state(&servers, "s"), ProcessHealthState::Idle);
        assert!(env.can_echo(&servers, "a.x").await, "the server is restarted");
        let started_at = Instant::now();
        let notified = env.request(&servers, "a.x", "notify:nothing", json!({})).await;
        assert!(
            notified.is_ok()
                && started_at.elapsed()
                    < windlass_testkit::time_limits::limit(Duration::from_millis(400))
        );
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn servers_stop_with_the_last_handle() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open(vec![
            env.server_config("s", "good", ".x"),
            env.server_config("z", "silent", ".z"),
        ]);
        let second = servers.clone();
        assert!(env.can_echo(&servers, "a.x").await);
        servers.open_for_read(&env.world, "a.z");
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(servers);
        assert!(env.can_echo(&second, "a.x").await, "a second handle keeps the server running");
        drop(second);
        assert!(env.wait_until_all_exited().await, "a starting server is stopped too");
    });
}

pub fn no_server_starts_after_close() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open(vec![
            env.server_config("s", "good", ".x"),
            env.server_config("z", "silent", ".z"),
        ]);
        assert!(env.can_echo(&servers, "a.x").await);
        servers.open_for_read(&env.world, "a.z");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started_at = Instant::now();
        servers.close().await;
        assert_eq!(env.process_count(), 0, "no process is left");
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(4)),
            "{:?}",
            started_at.elapsed()
        );
        servers.open_for_read(&env.world, "a.x");
        assert!(
            env.request(&servers, "a.x", "echo", json!(1))
                .await
                .unwrap_err()
                .contains("was stopped")
        );
        assert!(
            env.request(&servers, "b.z", "echo", json!(1))
                .await
                .unwrap_err()
                .contains("was stopped")
        );
        assert_eq!(env.process_count(), 0);
    });
}

pub fn at_most_eight_servers_run() {
    run(async {
        let env = TestWorkspace::new();
        for number in 0..10 {
            let folder = format!("p{number}");
            std::fs::create_dir_all(env.path(&folder)).unwrap();
            std::fs::write(env.path(&folder).join("root.toml"), "").unwrap();
        }
        let servers = env.open(vec![env.server_config("s", "good", ".x")]);
        assert!(env.can_echo(&servers, "p0/a.x").await);
        let one = env.process_count();
        for number in 1..8 {
            assert!(env.can_echo(&servers, &format!("p{number}/a.x")).await);
        }
        assert!(env.can_echo(&servers, "p0/a.x").await, "a used server stays");
        assert_eq!(env.process_count(), 8 * one);
        assert!(env.can_echo(&servers, "p8/a.x").await);
        let ready = |states: Vec<(String, String, ProcessHealthState)>| {
            let ready = states
                .into_iter()
                .filter(|(.., it)| matches!(it, ProcessHealthState::Ready { .. }));
            ready.map(|(_, root, _)| root).collect::<Vec<_>>()
        };
        let left = ready(servers.states());
        assert_eq!(
            left,
            ["p0", "p2", "p3", "p4", "p5", "p6", "p7", "p8"],
            "p1 was least recently used"
        );
        assert!(env.wait_for_process_count(8 * one, Duration::from_secs(4)).await);
        servers.close().await;
        assert!(env.wait_until_all_exited().await);
    });
}

pub fn a_missing_program_is_not_a_failure() {
    run(async {
        let env = TestWorkspace::new();
        let mut missing = env.server_config("m", "good", ".m");
        missing.command = vec!["no-such-program-here".into()];
        let servers = env.open(vec![missing, env.server_config("h", "shim", ".h")]);
        let response = env.request(&servers, "a.m", "echo", json!(1)).await.unwrap_err();
        assert!(
            response.contains("m is not installed. The user can install it: `get it`"),
            "{response}"
        );
        let response = env.request(&servers, "a.h", "echo", json!(1)).await.unwrap_err();
        assert!(response.contains("h is not installed"), "{response}");
        assert_eq!(
            health_state(&servers, "h"),
            ProcessHealthState::Idle,
            "a missing program does not count as a failed start"
        );
        let started_at = Instant::now();
        for _ in 0..100 {
            let response = env.request(&servers, "a.h", "echo", json!(1)).await.unwrap_err();
            assert!(response.contains("h is not installed"), "{response}");
        }
        assert!(
            started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_millis(500)),
            "{:?}",
            started_at.elapsed()
        );
        assert!(env.wait_until_all_exited().await, "no further start is attempted");
    });
}

pub fn a_server_is_restarted_on_request() {
    run(async {
        let env = TestWorkspace::new();
        let servers = env.open(vec![
            env.server_config("s", "good", ".x"),
            env.server_config("other", "good", ".y"),
        ]);
        assert!(servers.restart("s").await.unwrap_err().contains("is not running"));
        let mut changes = env.changes.subscribe();
        let started = async |path: &str| {
            env.request(&servers, path, "pid", json!({})).await.unwrap()["started"].clone()
        };
        let (first, other) = (started("a.x").await, started("a.y").await);
        assert!(changes.has_changed().unwrap(), "a start is reported");
        let count = env.process_count();
        changes.mark_unchanged();
        assert_eq!(servers.restart("s").await, Ok(()));
        assert!(changes.has_changed().unwrap(), "a restart is reported");
        assert!(matches!(health_state(&servers, "s"), ProcessHealthState::Ready { .. }));
        assert_ne!(started("a.x").await, first, "it is another process");
        assert_eq!(started("a.y").await, other, "other servers go on");
        assert!(env.wait_for_process_count(count, Duration::from_secs(6)).await);
        servers.close().await;
        assert!(servers.restart("s").await.unwrap_err().contains("was stopped"));
        assert!(env.wait_until_all_exited().await);
    });
}
