//! Tests of real formatters: the formatted content is written, recorded, known to the model and
//! reverted by undo. All but rustfmt need `WINDLASS_LANGUAGE_SERVERS`, the folder with their
//! programs.

use crate::support::{TestProject, run};
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use windlass_protocol::{CallOutcome, PermissionMode};
use windlass_tools::formatters::{FormatterConfig, builtin_formatters};

/// A formatted file, and a change that is not formatted.
struct FormatterCase {
    formatter: &'static str,
    /// Path of the program in `WINDLASS_LANGUAGE_SERVERS`; `None` for a program in PATH.
    program: Option<&'static str>,
    file: &'static str,
    /// Name and content of the file that enables the formatter.
    setup: (&'static str, &'static str),
    content: &'static str,
    change: (&'static str, &'static str),
    /// A formatted line after the change, and its replacement.
    next: (&'static str, &'static str),
    /// A change that the formatter cannot parse.
    broken: Option<(&'static str, &'static str)>,
}

pub fn rustfmt_formats_edits() {
    check(FormatterCase {
        formatter: "rustfmt",
        program: None,
        file: "src/deep/a.rs",
        setup: ("Cargo.toml", "[package]\nname = \"a\"\nedition = \"2024\"\n"),
        content: "async fn main() {\n    let a = 1;\n    drop(a);\n}\n",
        change: ("let a = 1;", "let a=vec![1,2];"),
        next: ("    let a = vec![1, 2];\n", "let a = (1,\n2);\n"),
        broken: Some(("drop(a);", "drop(a;")),
    });
}

pub fn prettier_formats_edits() {
    check(FormatterCase {
        formatter: "prettier",
        program: Some("npm/node_modules/.bin/prettier"),
        file: "src/a.ts",
        setup: (".prettierrc", "{\"semi\": false}"),
        content: "const a = 1\nconsole.log(a)\n",
        change: ("const a = 1", "const a = {b:1,\n c:2};"),
        next: ("const a = { b: 1, c: 2 }", "const a = [1,2]"),
        broken: Some(("console.log(a)", "console.log(a")),
    });
}

pub fn ruff_formats_edits() {
    check(FormatterCase {
        formatter: "ruff",
        program: Some("language-servers/bin/ruff"),
        file: "a/b.py",
        setup: ("ruff.toml", "line-length = 60\n"),
        content: "def f(a):\n    return a\n\n\nf(1)\n",
        change: ("return a", "return {'a':a}"),
        next: ("    return {\"a\": a}", "    return [ a,a ]"),
        broken: Some(("f(1)", "f(1")),
    });
}

pub fn black_formats_edits() {
    check(FormatterCase {
        formatter: "black",
        program: Some("language-servers/bin/black"),
        file: "a/b.py",
        setup: ("pyproject.toml", "[project]\nname = \"a\"\n\n[tool.black]\nline-length = 60\n"),
        content: "def f(a):\n    return a\n\n\nf(1)\n",
        change: ("return a", "return {'a':a}"),
        next: ("    return {\"a\": a}", "    return [ a,a ]"),
        broken: Some(("f(1)", "f(1")),
    });
}

pub fn clang_format_formats_edits() {
    check(FormatterCase {
        formatter: "clang-format",
        program: Some("language-servers/bin/clang-format"),
        file: "src/a.cpp",
        setup: (".clang-format", "BasedOnStyle: LLVM\nIndentWidth: 4\n"),
        content: "int f(int a) {\n    a++;\n    return a;\n}\n",
        change: ("return a;", "if(a){return 1 ;}\nreturn a;"),
        next: ("    if (a) {\n        return 1;\n    }", "while(a)a--;"),
        broken: None,
    });
}

pub fn shfmt_formats_edits() {
    check(FormatterCase {
        formatter: "shfmt",
        program: Some("language-servers/bin/shfmt"),
        file: "bin/a.sh",
        setup: (".editorconfig", "root = true\n[*.sh]\nindent_style = space\nindent_size = 2\n"),
        content: "if true; then\n  echo a\nfi\n",
        change: ("echo a", "echo   b;echo c"),
        next: ("  echo b\n  echo c", "echo  d"),
        broken: Some(("fi", "f")),
    });
}

/// Returns the config of the formatter with the path of its program; `None` if it is missing.
fn formatter_config(case: &FormatterCase) -> Option<FormatterConfig> {
    let mut config =
        builtin_formatters().into_iter().find(|config| config.name == case.formatter).unwrap();
    let Some(program) = case.program else { return Some(config) };
    let Some(servers_folder) = std::env::var_os("WINDLASS_LANGUAGE_SERVERS").map(PathBuf::from)
    else {
        println!("skipped: {}: WINDLASS_LANGUAGE_SERVERS is not set", case.formatter);
        return None;
    };
    config.command[0] = servers_folder.join(program).to_str().expect("a UTF-8 path").to_owned();
    let mut paths: Vec<PathBuf> = vec![servers_folder.join("npm/node_modules/node/bin")];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let paths = std::env::join_paths(paths).unwrap().into_string().unwrap();
    config.env.insert("PATH".into(), paths);
    Some(config)
}

/// Formats a text by running the formatter directly.
fn format_directly(
    project: &TestProject,
    config: &FormatterConfig,
    file: &str,
    text: &str,
) -> String {
    let path = project.path(file);
    let arguments = config.command.iter().skip(1).map(|argument| {
        OsString::from(
            argument.replace("{file}", path.to_str().unwrap()).replace("{edition}", "2024"),
        )
    });
    let mut child = Command::new(&config.command[0])
        .args(arguments)
        .envs(&config.env)
        .current_dir(project.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}: {text}", config.name);
    String::from_utf8(output.stdout).unwrap()
}

fn check(case: FormatterCase) {
    let Some(config) = formatter_config(&case) else { return };
    run(async {
        let project = TestProject::new(vec![config.clone()], json!({}), PermissionMode::Auto);
        let file = case.file;
        project.create_file(case.setup.0, case.setup.1);
        project.create_file(file, case.content);
        assert_eq!(
            format_directly(&project, &config, file, case.content),
            case.content,
            "the content is not formatted"
        );

        let (old, new) = case.change;
        let unformatted = case.content.replacen(old, new, 1);
        let formatted = format_directly(&project, &config, file, &unformatted);
        assert_ne!(formatted, unformatted, "the change is already formatted");
        let outcome = project.edit(file, old, new).await;
        assert_eq!(project.read(file), formatted, "{outcome:?}");
        project.assert_consistent(file, &outcome);
        assert!(
            outcome.text().contains(&format!("Formatted by {}", config.name)),
            "{}",
            outcome.text()
        );

        let (old, new) = case.next;
        let again = format_directly(&project, &config, file, &formatted.replacen(old, new, 1));
        let outcome = project.edit(file, old, new).await;
        assert_eq!(project.read(file), again, "second edit without a read: {outcome:?}");
        project.assert_consistent(file, &outcome);

        assert_eq!(project.changes(0).len(), 2, "one change per call");
        project.undo(project.changes(1)).await;
        assert_eq!(project.read(file), formatted);
        project.undo(project.changes(0)).await;
        assert_eq!(project.read(file), case.content, "undo of both edits");
        project.undo(project.changes(2)).await;
        assert_eq!(project.read(file), again, "undo of the undo");

        project.create_file(file, case.content);
        if let Some((old, new)) = case.broken {
            let outcome = project.edit(file, old, new).await;
            assert_eq!(project.read(file), case.content.replacen(old, new, 1));
            assert!(outcome.text().contains("did not format"), "{}", outcome.text());
            project.create_file(file, case.content);
        }

        // A file that was not formatted keeps every byte outside the change.
        let never_formatted = format!("\n\n\n{}", case.content);
        let (old, new) = case.change;
        project.create_file(file, &never_formatted);
        let outcome = project.edit(file, old, new).await;
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
        assert_eq!(project.read(file), never_formatted.replacen(old, new, 1), "{outcome:?}");
    });
}
