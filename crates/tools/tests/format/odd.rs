//! Formatters that do everything wrong: what was wanted is written all the same.

use crate::site::{Site, fake, run};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{Author, Mode, Outcome};
use windlass_toolkit::Scene;

/// Waits until no process is left that runs in the workspace.
async fn nothing_is_left(site: &Site, way: &str) {
    for _ in 0..60 {
        let here = |entry: std::fs::DirEntry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(entry.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(site.path(""))).then_some(line)
        };
        let left: Vec<String> =
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(here).collect();
        if left.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{way} is still there");
}

pub fn whatever_it_does_the_wanted_bytes_stand() {
    let large = "x=1\n".repeat(20_000);
    for (way, said) in [
        ("refuses", "fake did not format a.fake: error: expected one of ; or }"),
        ("half", "fake did not format a.fake: it exited with code 2"),
        ("nothing", "fake did not format a.fake: it gave nothing back"),
        ("hangs", "fake took longer than 0.3 s; a.fake is not formatted."),
        ("deaf", "fake took longer than 0.3 s; a.fake is not formatted."),
        ("stubborn", "fake took longer than 0.3 s; a.fake is not formatted."),
        (
            "lost",
            "fake could not be run (fake.sh: no-such-program: not found); a.fake is not formatted.",
        ),
        ("endless", "fake wrote far more than it read; a.fake is not formatted."),
        ("flood", "fake wrote far more than it read; a.fake is not formatted."),
        ("binary", "fake wrote something that is no text; a.fake is not formatted."),
        ("nul", "fake wrote something that is no text; a.fake is not formatted."),
        ("killed", "fake did not format a.fake: it exited with code 137"),
    ] {
        run(async {
            let site = Site::with(way);
            let began = Instant::now();
            let made = site.write("a.fake", "a=1\n").await;
            assert!(began.elapsed() < Duration::from_secs(3), "{way}: {:?}", began.elapsed());
            assert_eq!(site.read("a.fake"), "a=1\n", "{way}");
            let ended = "Created a.fake (1 line).\nfake was ended before it was done; a.fake is not formatted.";
            let expected = format!("Created a.fake (1 line).\n{said}");
            assert!([expected.as_str(), ended].contains(&made.text()), "{way}: {}", made.text());
            site.agrees("a.fake", &made);
            // With one that is there and larger than a pipe.
            site.put("b.fake", format!("y=1\n{large}"));
            let made = site.edit("b.fake", "y=1", "y=2").await;
            assert!(matches!(made, Outcome::Completed { .. }), "{way}: {made:?}");
            assert_eq!(site.read("b.fake"), format!("y=2\n{large}"), "{way}");
            nothing_is_left(&site, way).await;
        });
    }
}

pub fn what_it_leaves_running_is_ended() {
    run(async {
        let site = Site::with("forks");
        let began = Instant::now();
        site.write("a.fake", "a=1\n").await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        // With a sandbox of its own for processes it is over with the formatter, else it is late.
        assert!(["a = 1\n", "a=1\n"].contains(&site.read("a.fake").as_str()));
        nothing_is_left(&site, "forks").await;
    });
}

pub fn one_that_is_not_there_is_spoken_of_once() {
    run(async {
        let mut row = fake("good");
        row.command = vec!["no-such-formatter".into()];
        let site = Site::of(vec![row], json!({"edit": "ask"}), Mode::Ask);
        let made = site.write("a.fake", "a=1\n").await;
        let expected = "Created a.fake (1 line).\na.fake is not formatted: format/fake was not \
                        started: no-such-formatter is not installed, or not in PATH. To install \
                        it: `make fake`. From now on nothing is formatted by fake.";
        assert_eq!(made.text(), expected, "although the preview met it first");
        let made = site.write("b.fake", "a=1\n").await;
        assert_eq!(made.text(), "Created b.fake (1 line).");
        assert_eq!(site.read("a.fake") + &site.read("b.fake"), "a=1\na=1\n");
    });
}

pub fn a_rule_against_it_is_obeyed() {
    run(async {
        let rules = json!({"servant": {"format/*": "deny"}});
        let site = Site::of(vec![fake("good")], rules, Mode::Auto);
        let made = site.write("a.fake", "a=1\n").await;
        assert!(made.text().contains("format/fake was not started"), "{}", made.text());
        assert_eq!(site.read("a.fake"), "a=1\n");
    });
}

pub fn one_that_fails_three_times_is_left_out() {
    run(async {
        let site = Site::with("binary");
        for number in 1..=3 {
            let made = site.write(&format!("{number}.fake"), "a=1\n").await;
            let out = made.text().contains("From now on nothing is formatted by fake.");
            assert_eq!(out, number == 3, "{}", made.text());
        }
        let made = site.write("4.fake", "a=1\n").await;
        assert_eq!(made.text(), "Created 4.fake (1 line).");
        // One that only does not like what it reads is asked as long as there is something to read.
        let site = Site::with("refuses");
        for number in 1..=5 {
            let made = site.write(&format!("{number}.fake"), "a=1\n").await;
            assert!(made.text().contains("did not format"), "{}", made.text());
        }
    });
}

pub fn a_call_that_is_stopped_writes_nothing() {
    run(async {
        let mut row = fake("hangs");
        row.timeout = 5_000;
        let site = Site::of(vec![row], json!({}), Mode::Auto);
        let (scene, cancel) = (Scene::default(), CancellationToken::new());
        let input = json!({"filePath": "a.fake", "content": "a=1\n"});
        let call = site.travel("write", input, (Author::Model, &scene), cancel.clone());
        let stop = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
            Instant::now()
        };
        let (made, stopped) = tokio::join!(call, stop);
        assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
        assert!(!matches!(made, Outcome::Completed { .. } | Outcome::Unknown), "{made:?}");
        assert!(!site.path("a.fake").exists());
        assert!(site.changes(0).is_empty());
        nothing_is_left(&site, "hangs").await;
    });
}

pub fn it_cannot_change_the_project() {
    run(async {
        let site = Site::with("writes");
        site.put("kept", "");
        site.write("a.fake", "a=1\n").await;
        assert_eq!(site.read("a.fake"), "a = 1\n");
        site.edit("a.fake", "a = 1", "a=2").await;
        assert_eq!(site.read("a.fake"), "a = 2\n");
        assert!(!site.path("harm").exists() && site.path("kept").exists());
    });
}

pub fn many_files_wait_for_it_no_longer_than_one_call_may() {
    run(async {
        let mut row = fake("hangs");
        row.timeout = 10_000;
        let site = Site::of(vec![row], json!({}), Mode::Auto);
        let files: String = (0..9).map(|n| format!("*** Add File: {n}.fake\n+a=1\n")).collect();
        let patch = json!({"patchText": format!("*** Begin Patch\n{files}*** End Patch")});
        let scene = Scene { model: "openai/gpt-5".into(), ..Scene::default() };
        let (by, cancel) = ((Author::Model, &scene), CancellationToken::new());
        let began = Instant::now();
        let made = site.travel("apply_patch", patch, by, cancel).await;
        assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
        assert!(made.text().contains("8.fake is not formatted: 5 s for all files were over."));
        assert_eq!(site.read("0.fake") + &site.read("8.fake"), "a=1\na=1\n");
        nothing_is_left(&site, "hangs").await;
    });
}
