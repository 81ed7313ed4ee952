//! Tests of misbehaving formatters: the requested content is written nevertheless.

use crate::support::{TestProject, fake_formatter, run};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{CallAuthor, CallOutcome, PermissionMode};
use windlass_toolkit::StepContext;

/// Waits until no process runs in the project.
async fn wait_until_all_exited(project: &TestProject, behavior: &str) {
    for _ in 0..60 {
        let command_in_project = |entry: std::fs::DirEntry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(entry.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(project.path(""))).then_some(line)
        };
        let running: Vec<String> =
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(command_in_project).collect();
        if running.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{behavior} is still running");
}

pub fn a_misbehaving_formatter_cannot_prevent_a_write() {
    let large = "x=1\n".repeat(20_000);
    for (behavior, note) in [
        ("refuses", "fake did not format a.fake: error: expected one of ; or }"),
        ("half", "fake did not format a.fake: it exited with code 2"),
        ("nothing", "fake did not format a.fake: it returned no output"),
        ("hangs", "fake took longer than 0.3 s; a.fake was not formatted."),
        ("deaf", "fake took longer than 0.3 s; a.fake was not formatted."),
        ("stubborn", "fake took longer than 0.3 s; a.fake was not formatted."),
        (
            "lost",
            "fake could not be run (fake.sh: no-such-program: not found); a.fake was not \
             formatted.",
        ),
        ("endless", "fake wrote far more than it read; a.fake was not formatted."),
        ("flood", "fake wrote far more than it read; a.fake was not formatted."),
        ("binary", "fake wrote output that is not text; a.fake was not formatted."),
        ("nul", "fake wrote output that is not text; a.fake was not formatted."),
        ("killed", "fake did not format a.fake: it exited with code 137"),
    ] {
        run(async {
            let project = TestProject::with_fake_formatter(behavior);
            let started = Instant::now();
            let outcome = project.write("a.fake", "a=1\n").await;
            assert!(
                started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
                "{behavior}: {:?}",
                started.elapsed()
            );
            assert_eq!(project.read("a.fake"), "a=1\n", "{behavior}");
            let killed = "Created a.fake (1 line).\nfake was killed before it finished; a.fake \
                          was not formatted.";
            let expected = format!("Created a.fake (1 line).\n{note}");
            assert!(
                [expected.as_str(), killed].contains(&outcome.text()),
                "{behavior}: {}",
                outcome.text()
            );
            project.assert_consistent("a.fake", &outcome);
            // An existing file that is larger than a pipe buffer.
            project.create_file("b.fake", format!("y=1\n{large}"));
            let outcome = project.edit("b.fake", "y=1", "y=2").await;
            assert!(matches!(outcome, CallOutcome::Completed { .. }), "{behavior}: {outcome:?}");
            assert_eq!(project.read("b.fake"), format!("y=2\n{large}"), "{behavior}");
            wait_until_all_exited(&project, behavior).await;
        });
    }
}

pub fn child_processes_of_a_formatter_are_killed() {
    run(async {
        let project = TestProject::with_fake_formatter("forks");
        let started = Instant::now();
        project.write("a.fake", "a=1\n").await;
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(3)),
            "{:?}",
            started.elapsed()
        );
        // With a process sandbox, the child ends with the formatter; otherwise the call times out.
        assert!(["a = 1\n", "a=1\n"].contains(&project.read("a.fake").as_str()));
        wait_until_all_exited(&project, "forks").await;
    });
}

pub fn a_missing_formatter_is_reported_once() {
    run(async {
        let mut formatter = fake_formatter("good");
        formatter.command = vec!["no-such-formatter".into()];
        let project =
            TestProject::new(vec![formatter], json!({"edit": "ask"}), PermissionMode::Ask);
        let outcome = project.write("a.fake", "a=1\n").await;
        let expected = "Created a.fake (1 line).\na.fake was not formatted: format/fake was not \
                        started: no-such-formatter is not installed, or not in PATH. To install \
                        it: `make fake`. From now on, fake is disabled.";
        assert_eq!(outcome.text(), expected, "the preview already reported it");
        let outcome = project.write("b.fake", "a=1\n").await;
        assert_eq!(outcome.text(), "Created b.fake (1 line).");
        assert_eq!(project.read("a.fake") + &project.read("b.fake"), "a=1\na=1\n");
    });
}

pub fn a_rule_may_deny_a_formatter() {
    run(async {
        let rules = json!({"process": {"format/*": "deny"}});
        let project = TestProject::new(vec![fake_formatter("good")], rules, PermissionMode::Auto);
        let outcome = project.write("a.fake", "a=1\n").await;
        assert!(outcome.text().contains("format/fake was not started"), "{}", outcome.text());
        assert_eq!(project.read("a.fake"), "a=1\n");
    });
}

pub fn a_formatter_that_fails_three_times_is_disabled() {
    run(async {
        let project = TestProject::with_fake_formatter("binary");
        for number in 1..=3 {
            let outcome = project.write(&format!("{number}.fake"), "a=1\n").await;
            let disabled = outcome.text().contains("From now on, fake is disabled.");
            assert_eq!(disabled, number == 3, "{}", outcome.text());
        }
        let outcome = project.write("4.fake", "a=1\n").await;
        assert_eq!(outcome.text(), "Created 4.fake (1 line).");
        // A formatter that only rejects its input is not disabled.
        let project = TestProject::with_fake_formatter("refuses");
        for number in 1..=5 {
            let outcome = project.write(&format!("{number}.fake"), "a=1\n").await;
            assert!(outcome.text().contains("did not format"), "{}", outcome.text());
        }
    });
}

pub fn a_canceled_call_writes_nothing() {
    run(async {
        let mut formatter = fake_formatter("hangs");
        formatter.timeout = 5_000;
        let project = TestProject::new(vec![formatter], json!({}), PermissionMode::Auto);
        let (context, cancel) = (StepContext::default(), CancellationToken::new());
        let input = json!({"filePath": "a.fake", "content": "a=1\n"});
        let call =
            project.execute_call("write", input, (CallAuthor::Model, &context), cancel.clone());
        let cancel_later = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
            Instant::now()
        };
        let (outcome, canceled) = tokio::join!(call, cancel_later);
        assert!(
            canceled.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
            "{:?}",
            canceled.elapsed()
        );
        assert!(
            !matches!(outcome, CallOutcome::Completed { .. } | CallOutcome::ResultUnknown),
            "{outcome:?}"
        );
        assert!(!project.path("a.fake").exists());
        assert!(project.changes(0).is_empty());
        wait_until_all_exited(&project, "hangs").await;
    });
}

pub fn a_formatter_cannot_change_the_project() {
    run(async {
        let project = TestProject::with_fake_formatter("writes");
        project.create_file("kept", "");
        project.write("a.fake", "a=1\n").await;
        assert_eq!(project.read("a.fake"), "a = 1\n");
        project.edit("a.fake", "a = 1", "a=2").await;
        assert_eq!(project.read("a.fake"), "a = 2\n");
        assert!(!project.path("harm").exists() && project.path("kept").exists());
    });
}

pub fn many_files_share_one_time_limit() {
    run(async {
        let mut formatter = fake_formatter("hangs");
        formatter.timeout = 10_000;
        let project = TestProject::new(vec![formatter], json!({}), PermissionMode::Auto);
        let files: String = (0..9).map(|n| format!("*** Add File: {n}.fake\n+a=1\n")).collect();
        let patch = json!({"patchText": format!("*** Begin Patch\n{files}*** End Patch")});
        let context = StepContext { model: "openai/gpt-5".into(), ..StepContext::default() };
        let (author, cancel) = ((CallAuthor::Model, &context), CancellationToken::new());
        let started = Instant::now();
        let outcome = project.execute_call("apply_patch", patch, author, cancel).await;
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(7)),
            "{:?}",
            started.elapsed()
        );
        assert!(
            outcome
                .text()
                .contains("8.fake was not formatted: the limit of 5 s for all files was reached.")
        );
        assert_eq!(project.read("0.fake") + &project.read("8.fake"), "a=1\na=1\n");
        wait_until_all_exited(&project, "hangs").await;
    });
}
