//! When servers run, and when they do not.

use crate::site::{ANSWER, START, Site, run, state};
use serde_json::json;
use std::time::{Duration, Instant};
use windlass_toolkit::health::State;

pub fn a_server_is_started_once_when_it_is_wanted_and_not_before() {
    run(async {
        let site = Site::new();
        let code = site.open(vec![site.row("s", "talks", ".x")]);
        assert!(code.states().is_empty() && site.processes() == 0);
        let began = Instant::now();
        for _ in 0..10 {
            code.warm(&site.world, "a.x");
        }
        assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
        assert_eq!(state(&code, "s"), State::Starting);
        let all = (0..10).map(|_| {
            let (code, world) = (code.clone(), site.world.clone());
            let ask =
                async move { code.probe(&world, "a.x", "echo", json!(1), (START, ANSWER)).await };
            tokio::spawn(ask)
        });
        for each in all.collect::<Vec<_>>() {
            assert_eq!(each.await.unwrap(), Ok(json!(1)));
        }
        assert!(matches!(state(&code, "s"), State::Ready { .. }));
        let one = site.processes();
        assert!(site.echoes(&code, "b.x").await);
        assert_eq!(site.processes(), one, "another file has the same server");
        assert!(
            site.ask(&code, "a.y", "echo", json!(1)).await.unwrap_err().contains("no language")
        );
        code.close().await;
        assert!(site.is_quiet().await);
    });
}

pub fn it_sees_its_root_and_its_cache_and_changes_nothing_else() {
    run(async {
        let site = Site::new();
        std::fs::create_dir_all(site.path("sub/deep")).unwrap();
        std::fs::write(site.path("sub/root.toml"), "").unwrap();
        let code = site.open(vec![site.row("s", "good", ".x")]);
        let said = site.ask(&code, "sub/deep/a.x", "pid", json!({})).await.unwrap();
        assert_eq!(said["cwd"], site.path("sub").to_str().unwrap());
        let cache = site.workspace.servant_folder("lsp/s").unwrap();
        assert_eq!(said["cache"], format!("{}/inner", cache.to_str().unwrap()));
        let touch = async |path: std::path::PathBuf| {
            site.ask(&code, "sub/deep/a.x", "touch", json!({"path": path})).await.unwrap()
        };
        assert_eq!(touch(cache.join("mine")).await, "written");
        for path in [site.path("sub/new"), site.path("../home/new"), site.path("root.toml")] {
            let said = touch(path.clone()).await;
            assert_ne!(said, "written", "{path:?}");
            assert!(!path.exists());
        }
        let roots: Vec<_> = code.states().into_iter().map(|(_, root, _)| root).collect();
        assert_eq!(roots, ["sub"]);
        code.close().await;
    });
}

pub fn nobody_wants_it_and_it_ends_until_somebody_does() {
    run(async {
        let mut site = Site::new();
        site.patience.idle = Duration::from_millis(400);
        let code = site.open(vec![site.row("s", "good", ".x")]);
        assert!(site.echoes(&code, "a.x").await && site.processes() > 0);
        assert!(site.comes_to(0, Duration::from_secs(6)).await);
        assert_eq!(state(&code, "s"), State::Idle);
        assert!(site.echoes(&code, "a.x").await, "it is started again");
        let began = Instant::now();
        let slow = site.ask(&code, "a.x", "notify:nothing", json!({})).await;
        assert!(slow.is_ok() && began.elapsed() < Duration::from_millis(400));
        code.close().await;
        assert!(site.is_quiet().await);
    });
}

pub fn it_ends_with_the_last_who_has_it() {
    run(async {
        let site = Site::new();
        let code = site.open(vec![site.row("s", "good", ".x"), site.row("z", "silent", ".z")]);
        let second = code.clone();
        assert!(site.echoes(&code, "a.x").await);
        code.warm(&site.world, "a.z");
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(code);
        assert!(site.echoes(&second, "a.x").await, "somebody still has it");
        drop(second);
        assert!(site.is_quiet().await, "also one that is being started");
    });
}

pub fn once_all_are_closed_nothing_is_started() {
    run(async {
        let site = Site::new();
        let code = site.open(vec![site.row("s", "good", ".x"), site.row("z", "silent", ".z")]);
        assert!(site.echoes(&code, "a.x").await);
        code.warm(&site.world, "a.z");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let began = Instant::now();
        code.close().await;
        assert_eq!(site.processes(), 0, "nothing of them runs");
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        code.warm(&site.world, "a.x");
        assert!(site.ask(&code, "a.x", "echo", json!(1)).await.unwrap_err().contains("was ended"));
        assert!(site.ask(&code, "b.z", "echo", json!(1)).await.unwrap_err().contains("was ended"));
        assert_eq!(site.processes(), 0);
    });
}

pub fn no_more_than_eight_run() {
    run(async {
        let site = Site::new();
        for number in 0..10 {
            let folder = format!("p{number}");
            std::fs::create_dir_all(site.path(&folder)).unwrap();
            std::fs::write(site.path(&folder).join("root.toml"), "").unwrap();
        }
        let code = site.open(vec![site.row("s", "good", ".x")]);
        assert!(site.echoes(&code, "p0/a.x").await);
        let one = site.processes();
        for number in 1..8 {
            assert!(site.echoes(&code, &format!("p{number}/a.x")).await);
        }
        assert!(site.echoes(&code, "p0/a.x").await, "it is wanted again");
        assert_eq!(site.processes(), 8 * one);
        assert!(site.echoes(&code, "p8/a.x").await);
        let ready = |states: Vec<(String, String, State)>| {
            let ready = states.into_iter().filter(|(.., it)| matches!(it, State::Ready { .. }));
            ready.map(|(_, root, _)| root).collect::<Vec<_>>()
        };
        let left = ready(code.states());
        assert_eq!(left, ["p0", "p2", "p3", "p4", "p5", "p6", "p7", "p8"], "p1 made room");
        assert!(site.comes_to(8 * one, Duration::from_secs(4)).await);
        code.close().await;
        assert!(site.is_quiet().await);
    });
}

pub fn one_that_is_not_installed_is_no_failure() {
    run(async {
        let site = Site::new();
        let mut missing = site.row("m", "good", ".m");
        missing.command = vec!["no-such-program-here".into()];
        let code = site.open(vec![missing, site.row("h", "shim", ".h")]);
        let said = site.ask(&code, "a.m", "echo", json!(1)).await.unwrap_err();
        assert!(said.contains("m is not installed. The person can get it: `get it`"), "{said}");
        let said = site.ask(&code, "a.h", "echo", json!(1)).await.unwrap_err();
        assert!(said.contains("h is not installed"), "{said}");
        assert_eq!(state(&code, "h"), State::Idle, "it has not failed");
        let began = Instant::now();
        for _ in 0..100 {
            let said = site.ask(&code, "a.h", "echo", json!(1)).await.unwrap_err();
            assert!(said.contains("h is not installed"), "{said}");
        }
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        assert!(site.is_quiet().await, "nobody tried again");
    });
}
