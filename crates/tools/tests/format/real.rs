//! Real formatters: what they make of a file is what stands on the disk, on record, in the model's
//! mind and behind an undo. All but rustfmt are only there where `WINDLASS_EYES` names their folder.

use crate::site::{Site, run};
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use windlass_protocol::{Mode, Outcome};
use windlass_tools::format::{Row, known};

/// A file that is kept formatted, and a change that leaves it otherwise.
struct Tale {
    row: &'static str,
    /// Where the program is in the folder of all of them.
    place: Option<&'static str>,
    file: &'static str,
    /// What sets the formatter up.
    setup: (&'static str, &'static str),
    content: &'static str,
    change: (&'static str, &'static str),
    /// A line as the formatter has it after the change, and another one for it.
    next: (&'static str, &'static str),
    /// What it cannot read.
    broken: Option<(&'static str, &'static str)>,
}

pub fn rustfmt_agrees() {
    check(Tale {
        row: "rustfmt",
        place: None,
        file: "src/deep/a.rs",
        setup: ("Cargo.toml", "[package]\nname = \"a\"\nedition = \"2024\"\n"),
        content: "async fn main() {\n    let a = 1;\n    drop(a);\n}\n",
        change: ("let a = 1;", "let a=vec![1,2];"),
        next: ("    let a = vec![1, 2];\n", "let a = (1,\n2);\n"),
        broken: Some(("drop(a);", "drop(a;")),
    });
}

pub fn prettier_agrees() {
    check(Tale {
        row: "prettier",
        place: Some("npm/node_modules/.bin/prettier"),
        file: "src/a.ts",
        setup: (".prettierrc", "{\"semi\": false}"),
        content: "const a = 1\nconsole.log(a)\n",
        change: ("const a = 1", "const a = {b:1,\n c:2};"),
        next: ("const a = { b: 1, c: 2 }", "const a = [1,2]"),
        broken: Some(("console.log(a)", "console.log(a")),
    });
}

pub fn ruff_agrees() {
    check(Tale {
        row: "ruff",
        place: Some("eyes/bin/ruff"),
        file: "a/b.py",
        setup: ("ruff.toml", "line-length = 60\n"),
        content: "def f(a):\n    return a\n\n\nf(1)\n",
        change: ("return a", "return {'a':a}"),
        next: ("    return {\"a\": a}", "    return [ a,a ]"),
        broken: Some(("f(1)", "f(1")),
    });
}

pub fn black_agrees() {
    check(Tale {
        row: "black",
        place: Some("eyes/bin/black"),
        file: "a/b.py",
        setup: ("pyproject.toml", "[project]\nname = \"a\"\n\n[tool.black]\nline-length = 60\n"),
        content: "def f(a):\n    return a\n\n\nf(1)\n",
        change: ("return a", "return {'a':a}"),
        next: ("    return {\"a\": a}", "    return [ a,a ]"),
        broken: Some(("f(1)", "f(1")),
    });
}

pub fn clang_format_agrees() {
    check(Tale {
        row: "clang-format",
        place: Some("eyes/bin/clang-format"),
        file: "src/a.cpp",
        setup: (".clang-format", "BasedOnStyle: LLVM\nIndentWidth: 4\n"),
        content: "int f(int a) {\n    a++;\n    return a;\n}\n",
        change: ("return a;", "if(a){return 1 ;}\nreturn a;"),
        next: ("    if (a) {\n        return 1;\n    }", "while(a)a--;"),
        broken: None,
    });
}

pub fn shfmt_agrees() {
    check(Tale {
        row: "shfmt",
        place: Some("eyes/bin/shfmt"),
        file: "bin/a.sh",
        setup: (".editorconfig", "root = true\n[*.sh]\nindent_style = space\nindent_size = 2\n"),
        content: "if true; then\n  echo a\nfi\n",
        change: ("echo a", "echo   b;echo c"),
        next: ("  echo b\n  echo c", "echo  d"),
        broken: Some(("fi", "f")),
    });
}

/// The row, with its program where it is here.
fn row(tale: &Tale) -> Option<Row> {
    let mut row = known().into_iter().find(|row| row.name == tale.row).unwrap();
    let Some(place) = tale.place else { return Some(row) };
    let Some(eyes) = std::env::var_os("WINDLASS_EYES").map(PathBuf::from) else {
        println!("{} is left out: WINDLASS_EYES does not say where it is", tale.row);
        return None;
    };
    row.command[0] = eyes.join(place).to_str().expect("a plain path").to_owned();
    let mut paths: Vec<PathBuf> = vec![eyes.join("n22")];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let paths = std::env::join_paths(paths).unwrap().into_string().unwrap();
    row.env.insert("PATH".into(), paths);
    Some(row)
}

/// What the formatter itself makes of a text, without any of us.
fn bare(site: &Site, row: &Row, file: &str, text: &str) -> String {
    let path = site.path(file);
    let arguments = row.command.iter().skip(1).map(|word| {
        OsString::from(word.replace("{file}", path.to_str().unwrap()).replace("{edition}", "2024"))
    });
    let mut child = Command::new(&row.command[0])
        .args(arguments)
        .envs(&row.env)
        .current_dir(site.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}: {text}", row.name);
    String::from_utf8(output.stdout).unwrap()
}

fn check(tale: Tale) {
    let Some(row) = row(&tale) else { return };
    run(async {
        let site = Site::of(vec![row.clone()], json!({}), Mode::Auto);
        let file = tale.file;
        site.put(tale.setup.0, tale.setup.1);
        site.put(file, tale.content);
        assert_eq!(
            bare(&site, &row, file, tale.content),
            tale.content,
            "the tale begins formatted"
        );

        let (old, new) = tale.change;
        let wanted = tale.content.replacen(old, new, 1);
        let formatted = bare(&site, &row, file, &wanted);
        assert_ne!(formatted, wanted, "there is something to format");
        let made = site.edit(file, old, new).await;
        assert_eq!(site.read(file), formatted, "{made:?}");
        site.agrees(file, &made);
        assert!(made.text().contains(&format!("Formatted by {}", row.name)), "{}", made.text());

        let (old, new) = tale.next;
        let again = bare(&site, &row, file, &formatted.replacen(old, new, 1));
        let made = site.edit(file, old, new).await;
        assert_eq!(site.read(file), again, "without reading it: {made:?}");
        site.agrees(file, &made);

        assert_eq!(site.changes(0).len(), 2, "one step a call");
        site.undo(site.changes(1)).await;
        assert_eq!(site.read(file), formatted);
        site.undo(site.changes(0)).await;
        assert_eq!(site.read(file), tale.content, "the first bytes");
        site.undo(site.changes(2)).await;
        assert_eq!(site.read(file), again, "and back");

        site.put(file, tale.content);
        if let Some((old, new)) = tale.broken {
            let made = site.edit(file, old, new).await;
            assert_eq!(site.read(file), tale.content.replacen(old, new, 1));
            assert!(made.text().contains("did not format"), "{}", made.text());
            site.put(file, tale.content);
        }

        // What was not kept formatted keeps every byte outside of the change.
        let loose = format!("\n\n\n{}", tale.content);
        let (old, new) = tale.change;
        site.put(file, &loose);
        let made = site.edit(file, old, new).await;
        assert!(matches!(made, Outcome::Completed { .. }), "{made:?}");
        assert_eq!(site.read(file), loose.replacen(old, new, 1), "{made:?}");
    });
}
