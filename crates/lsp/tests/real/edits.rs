//! Reviews of edits: new errors and fixed errors are in the result of the edit.

use crate::queries::has_rust_analyzer;
use crate::support::{TestProject, built_in_config, run, servers_folder};
use std::time::Duration;
use windlass_lsp::DiagnosticsReport;

/// Edits a file so that it has an error, reverts the edit, and checks both reviews.
fn check_review(
    project: &str,
    name: &str,
    path: &str,
    (good, bad): (&str, &str),
    expected: &[&str],
) {
    let Some(servers_folder) = servers_folder(name) else { return };
    run(async {
        let env = TestProject::new(
            &servers_folder,
            project,
            vec![built_in_config(&servers_folder, name)],
        );
        let good_text = env.read_file(path);
        let bad_text = good_text.replacen(good, bad, 1);
        assert_ne!(good_text, bad_text);
        warm_up(&env, path).await;
        let no_review = env.edit(path, &(good_text.clone() + "\n")).await;
        assert_eq!(no_review, None, "there is no error yet\n{}", env.server_log());
        tokio::time::sleep(PAUSE_BETWEEN_STEPS).await;
        let review = env.edit(path, &bad_text).await;
        let review =
            review.unwrap_or_else(|| panic!("{name} reported nothing\n{}", env.server_log()));
        let DiagnosticsReport { text, new_errors: new, .. } = &review;
        assert!(*new >= 1 && text.starts_with("This introduces"), "{review:?}");
        for expected in expected {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        tokio::time::sleep(PAUSE_BETWEEN_STEPS).await;
        let review = env.edit(path, &good_text).await;
        let text = review.map(|review| review.text).unwrap_or_default();
        assert_eq!(text, format!("{path} no longer has errors ({name})."));
        assert_eq!(env.edit(path, &(good_text + "\n")).await, None, "the fix is reported once");
        env.servers.close().await;
    });
}

/// Changes with a shorter pause between them wait together.
const PAUSE_BETWEEN_STEPS: Duration = Duration::from_millis(400);

/// Opens the file for reading some time before the edit.
async fn warm_up(env: &TestProject, path: &str) {
    let _ = env.query(&format!("hover {path}:1:1")).await;
    for _ in 0..10 {
        env.servers.open_for_read(&env.world(path), path);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub fn typescript_reports_an_error_and_its_fix() {
    let expected = [
        "src/main.ts:5:28: ",
        "[2345]",
        "\n    return total([new Square(\"1\")]);",
        "(typescript)",
    ];
    check_review("ts", "typescript", "src/main.ts", ("Square(1)", "Square(\"1\")"), &expected);
}

pub fn pyright_reports_an_error_and_its_fix() {
    let expected =
        ["main.py:6:26: ", "[reportArgumentType]", "\n    return total([Square(\"1\")])"];
    check_review("py", "pyright", "main.py", ("Square(1)", "Square(\"1\")"), &expected);
}

pub fn clangd_reports_an_error_and_its_fix() {
    let expected = ["shapes.cpp:13:", "No matching conversion"];
    check_review("cpp", "clangd", "shapes.cpp", ("Square(1)", "Square(\"1\")"), &expected);
}

pub fn yaml_reports_an_error_and_its_fix() {
    let expected = ["shapes.yaml:"];
    check_review("yaml", "yaml-language-server", "shapes.yaml", ("side: 1", "side: [1"), &expected);
}

pub fn shellcheck_reports_an_error_and_its_fix() {
    let expected = ["shapes.sh:8:"];
    check_review(
        "sh",
        "bash-language-server",
        "shapes.sh",
        ("  total 1 4\n", "  if total 1 4\n"),
        &expected,
    );
}

pub fn ruff_reports_lint_errors() {
    let expected = ["main.py:1:8: ", "[F401]"];
    check_review("py", "ruff", "main.py", ("from shape", "import os\nfrom shape"), &expected);
}

pub fn rust_analyzer_reports_an_error_in_time_or_later() {
    let Some(servers_folder) =
        servers_folder("rust-analyzer").filter(|servers_folder| has_rust_analyzer(servers_folder))
    else {
        return;
    };
    run(async {
        let mut env = TestProject::new(
            &servers_folder,
            "rs",
            vec![built_in_config(&servers_folder, "rust-analyzer")],
        );
        let good_text = env.read_file("src/main.rs");
        let _ = env.query("hover src/main.rs:18:5").await;
        let review =
            env.edit("src/main.rs", &good_text.replacen("Square(1)", "Square(\"1\")", 1)).await;
        let text = match review {
            Some(review) => review.text,
            None => env.next_notice(Duration::from_secs(100)).await.unwrap_or_default(),
        };
        assert!(text.contains("src/main.rs:18:"), "{text}\n{}", env.server_log());
        env.servers.close().await;
    });
}

pub fn new_errors_in_other_files_are_reported() {
    let Some(servers_folder) = servers_folder("other files") else { return };
    run(async {
        let env = TestProject::new(
            &servers_folder,
            "ts",
            vec![built_in_config(&servers_folder, "typescript")],
        );
        warm_up(&env, "src/main.ts").await;
        assert_eq!(env.edit("src/main.ts", &(env.read_file("src/main.ts") + "\n")).await, None);
        let total = env.read_file("src/total.ts");
        let review = env
            .edit(
                "src/total.ts",
                &total.replacen("shapes: Shape[]", "shapes: Shape[], unit: string", 1),
            )
            .await;
        let text = review.map(|review| review.text).unwrap_or_default();
        assert!(
            text.starts_with(
                "This introduces new errors in other files (typescript):\nsrc/main.ts:5:"
            ),
            "{text}"
        );
        assert_eq!(text.matches("src/main.ts:").count(), 2, "{text}");
        env.servers.close().await;
    });
}

pub fn existing_diagnostics_are_not_repeated() {
    let Some(servers_folder) = servers_folder("existing diagnostics") else { return };
    run(async {
        let env = TestProject::new(
            &servers_folder,
            "py",
            vec![built_in_config(&servers_folder, "pyright")],
        );
        let first = env.read_file("main.py").replacen("Square(1)", "Square(\"1\")", 1);
        std::fs::write(env.root.join("main.py"), &first).unwrap();
        let _ = env.query("hover main.py:6:12").await;
        // The old error has moved by one line, and there is a new one.
        let second = first.replacen("Square(9)", "Square(\"9\")", 1);
        let review = env.edit("main.py", &format!("# Moved.\n{second}")).await.unwrap();
        assert_eq!((review.new_errors, review.remaining_errors), (1, 1), "{}", review.text);
        assert!(
            review.text.contains("main.py:11:26") && !review.text.contains("main.py:7:"),
            "{}",
            review.text
        );
        assert!(
            review.text.ends_with("1 error that existed before is not shown."),
            "{}",
            review.text
        );
        assert_eq!(env.edit("main.py", &second).await, None, "both errors are known");
        env.servers.close().await;
    });
}

pub fn external_changes_are_noticed() {
    let Some(servers_folder) = servers_folder("external changes") else { return };
    run(async {
        let env = TestProject::new(
            &servers_folder,
            "ts",
            vec![built_in_config(&servers_folder, "typescript")],
        );
        let answer = env.query("goToDefinition src/main.ts:5:10").await;
        assert!(answer.starts_with("src/total.ts:3:17"), "{answer}");
        let _ = env.query("documentSymbol src/total.ts").await;
        let total = env.read_file("src/total.ts");
        std::fs::write(env.root.join("src/total.ts"), format!("// One.\n// Two.\n{total}"))
            .unwrap();
        let answer = env.query("goToDefinition src/main.ts:5:10").await;
        assert!(answer.starts_with("src/total.ts:5:17"), "{answer}");
        env.servers.close().await;
    });
}
