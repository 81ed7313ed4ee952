//! What servers make of edits: errors that are new, errors that are gone, in the result of the edit.

use crate::nine::has_rust;
use crate::site::{Site, eyes, row, run};
use std::time::Duration;
use windlass_lsp::Review;

/// Breaks a file by an edit and mends it again, and looks at what is said both times.
fn story(project: &str, name: &str, path: &str, (good, bad): (&str, &str), words: &[&str]) {
    let Some(eyes) = eyes(name) else { return };
    run(async {
        let site = Site::new(&eyes, project, vec![row(&eyes, name)]);
        let sound = site.text(path);
        let broken = sound.replacen(good, bad, 1);
        assert_ne!(sound, broken);
        warm(&site, path).await;
        let quiet = site.edit(path, &(sound.clone() + "\n")).await;
        assert_eq!(quiet, None, "nothing is wrong yet\n{}", site.journal());
        let review = site.edit(path, &broken).await;
        let review = review.unwrap_or_else(|| panic!("{name} said nothing\n{}", site.journal()));
        let Review { text, new, .. } = &review;
        assert!(*new >= 1 && text.starts_with("This brings"), "{review:?}");
        for words in words {
            assert!(text.contains(words), "{words}: {text}");
        }
        let review = site.edit(path, &sound).await;
        let text = review.map(|review| review.text).unwrap_or_default();
        assert_eq!(text, format!("{path} has no errors any more ({name})."));
        assert_eq!(site.edit(path, &(sound + "\n")).await, None, "it is said once");
        site.code.close().await;
    });
}

/// Somebody reads the file, some time before it is changed.
async fn warm(site: &Site, path: &str) {
    let _ = site.ask(&format!("hover {path}:1:1")).await;
    for _ in 0..10 {
        site.code.warm(&site.world(path), path);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub fn typescript_tells_an_error_and_that_it_is_gone() {
    let words = [
        "src/main.ts:5:28: ",
        "[2345]",
        "\n    return total([new Square(\"1\")]);",
        "(typescript)",
    ];
    story("ts", "typescript", "src/main.ts", ("Square(1)", "Square(\"1\")"), &words);
}

pub fn pyright_tells_an_error_and_that_it_is_gone() {
    let words = ["main.py:6:26: ", "[reportArgumentType]", "\n    return total([Square(\"1\")])"];
    story("py", "pyright", "main.py", ("Square(1)", "Square(\"1\")"), &words);
}

pub fn clangd_tells_an_error_and_that_it_is_gone() {
    let words = ["shapes.cpp:13:", "No matching conversion"];
    story("cpp", "clangd", "shapes.cpp", ("Square(1)", "Square(\"1\")"), &words);
}

pub fn yaml_tells_an_error_and_that_it_is_gone() {
    let words = ["shapes.yaml:"];
    story("yaml", "yaml-language-server", "shapes.yaml", ("side: 1", "side: [1"), &words);
}

pub fn shellcheck_tells_an_error_and_that_it_is_gone() {
    let words = ["shapes.sh:8:"];
    story("sh", "bash-language-server", "shapes.sh", ("  total 1 4\n", "  if total 1 4\n"), &words);
}

pub fn ruff_tells_what_it_counts_as_an_error() {
    let words = ["main.py:1:8: ", "[F401]"];
    story("py", "ruff", "main.py", ("from shape", "import os\nfrom shape"), &words);
}

pub fn rust_analyzer_tells_an_error_in_time_or_later() {
    let Some(eyes) = eyes("rust-analyzer").filter(|eyes| has_rust(eyes)) else { return };
    run(async {
        let mut site = Site::new(&eyes, "rs", vec![row(&eyes, "rust-analyzer")]);
        let sound = site.text("src/main.rs");
        let _ = site.ask("hover src/main.rs:18:5").await;
        let review =
            site.edit("src/main.rs", &sound.replacen("Square(1)", "Square(\"1\")", 1)).await;
        let text = match review {
            Some(review) => review.text,
            None => site.told(Duration::from_secs(100)).await.unwrap_or_default(),
        };
        assert!(text.contains("src/main.rs:18:"), "{text}\n{}", site.journal());
        site.code.close().await;
    });
}

pub fn other_files_that_break_are_told_of() {
    let Some(eyes) = eyes("other files") else { return };
    run(async {
        let site = Site::new(&eyes, "ts", vec![row(&eyes, "typescript")]);
        warm(&site, "src/main.ts").await;
        assert_eq!(site.edit("src/main.ts", &(site.text("src/main.ts") + "\n")).await, None);
        let total = site.text("src/total.ts");
        let review = site
            .edit(
                "src/total.ts",
                &total.replacen("shapes: Shape[]", "shapes: Shape[], unit: string", 1),
            )
            .await;
        let text = review.map(|review| review.text).unwrap_or_default();
        assert!(
            text.starts_with("This brings new errors in other files (typescript):\nsrc/main.ts:5:"),
            "{text}"
        );
        assert_eq!(text.matches("src/main.ts:").count(), 2, "{text}");
        site.code.close().await;
    });
}

pub fn what_was_there_before_is_not_told_again() {
    let Some(eyes) = eyes("what was there before") else { return };
    run(async {
        let site = Site::new(&eyes, "py", vec![row(&eyes, "pyright")]);
        let first = site.text("main.py").replacen("Square(1)", "Square(\"1\")", 1);
        std::fs::write(site.root.join("main.py"), &first).unwrap();
        let _ = site.ask("hover main.py:6:12").await;
        // The old error has moved by a line, and there is another one.
        let second = first.replacen("Square(9)", "Square(\"9\")", 1);
        let review = site.edit("main.py", &format!("# Moved.\n{second}")).await.unwrap();
        assert_eq!((review.new, review.left), (1, 1), "{}", review.text);
        assert!(
            review.text.contains("main.py:11:26") && !review.text.contains("main.py:7:"),
            "{}",
            review.text
        );
        assert!(
            review.text.ends_with("1 error that was there before is not shown."),
            "{}",
            review.text
        );
        assert_eq!(site.edit("main.py", &second).await, None, "both are known");
        site.code.close().await;
    });
}

pub fn a_file_that_changed_behind_our_back_is_seen() {
    let Some(eyes) = eyes("changes behind our back") else { return };
    run(async {
        let site = Site::new(&eyes, "ts", vec![row(&eyes, "typescript")]);
        let place = site.ask("goToDefinition src/main.ts:5:10").await;
        assert!(place.starts_with("src/total.ts:3:17"), "{place}");
        let _ = site.ask("documentSymbol src/total.ts").await;
        let total = site.text("src/total.ts");
        std::fs::write(site.root.join("src/total.ts"), format!("// One.\n// Two.\n{total}"))
            .unwrap();
        let place = site.ask("goToDefinition src/main.ts:5:10").await;
        assert!(place.starts_with("src/total.ts:5:17"), "{place}");
        site.code.close().await;
    });
}
