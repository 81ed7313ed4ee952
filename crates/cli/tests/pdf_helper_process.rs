//! The helper process that extracts the text of PDF files, with damaged and hostile files.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the helper on a PDF file and returns its exit code and output.
fn extract_text(pdf: &[u8]) -> (Option<i32>, String) {
    let start = Instant::now();
    let mut child = windlass(&["helper", "pdf"]).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(pdf);
    let output = child.wait_with_output().unwrap();
    assert!(
        start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
        "the helper took {:?}",
        start.elapsed()
    );
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Builds a PDF file of `objects`, which are numbered from 1. The first is the catalog.
fn build_pdf(objects: &[&str]) -> Vec<u8> {
    let mut file = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(file.len());
        file += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let table = file.len();
    let size = objects.len() + 1;
    file += &format!("xref\n0 {size}\n0000000000 65535 f \n");
    for offset in offsets {
        file += &format!("{offset:010} 00000 n \n");
    }
    file += &format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    file.into_bytes()
}

fn stream(content: &str) -> String {
    format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
}

const CATALOG: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const FONT: &str =
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

fn page(content: u32) -> String {
    format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R \
         /Resources << /Font << /F1 3 0 R >> >> >>"
    )
}

fn one_page(text: &str) -> Vec<u8> {
    let content = stream(&format!("BT /F1 24 Tf 72 700 Td ({text}) Tj ET"));
    let pages = "<< /Type /Pages /Kids [4 0 R] /Count 1 >>";
    build_pdf(&[CATALOG, pages, FONT, &page(5), &content])
}

#[test]
fn a_page_gives_its_text() {
    assert_eq!(
        extract_text(&one_page("A winch of oak.")),
        (Some(0), "A winch of oak.\n".to_owned())
    );
}

#[test]
fn pages_are_separated_and_a_bad_page_does_not_affect_others() {
    let pages = "<< /Type /Pages /Kids [4 0 R 6 0 R 8 0 R] /Count 3 >>";
    let first = stream("BT /F1 12 Tf 72 700 Td (First) Tj ET");
    let third = stream("BT /F1 12 Tf 72 700 Td (Third) Tj ET");
    let missing_content = "<< /Type /Page /Parent 2 0 R /Contents 99 0 R >>";
    let file = build_pdf(&[
        CATALOG,
        pages,
        FONT,
        &page(5),
        &first,
        missing_content,
        "null",
        &page(9),
        &third,
    ]);
    let (code, text) = extract_text(&file);
    assert_eq!(code, Some(0), "{text}");
    let expected = "--- page 1 ---\nFirst\n--- page 2 ---\n(this page could not be read)\n\
                    --- page 3 ---\nThird\n";
    assert_eq!(text, expected);
}

#[test]
fn a_file_without_text_is_reported() {
    let content = stream("0 0 m 10 10 l S");
    let pages = "<< /Type /Pages /Kids [4 0 R] /Count 1 >>";
    let (code, message) = extract_text(&build_pdf(&[CATALOG, pages, FONT, &page(5), &content]));
    assert_eq!(code, Some(1));
    assert!(message.contains("scan"), "{message}");
}

#[test]
fn damaged_files_are_reported_with_a_message() {
    let whole = one_page("A winch of oak.");
    for cut in [0, 1, 8, 60, whole.len() / 2, whole.len() - 40] {
        let (code, message) = extract_text(&whole[..cut]);
        assert!(matches!(code, Some(0 | 1)) && !message.is_empty(), "{cut}: {code:?} {message}");
    }
    let (code, message) = extract_text(&whole[..whole.len() / 3]);
    assert_eq!(code, Some(1));
    assert!(message.contains("damaged") || message.contains("no pages"), "{message}");

    let mut state = 7u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let random: Vec<u8> = b"%PDF-1.7\n".iter().copied().chain(noise.take(20_000)).collect();
    let (code, message) = extract_text(&random);
    assert_eq!(code, Some(1));
    assert!(message.contains("damaged"), "{message}");
}

/// A circular reference ends with a message, or with a crash that the parent process reports.
#[test]
fn circular_references_end_with_an_error() {
    let font = FONT;
    let text = stream("BT /F1 12 Tf (x) Tj ET");
    let kids = "<< /Type /Pages /Kids [2 0 R] /Count 1 >>";
    let parents = "<< /Type /Pages /Parent 2 0 R /Kids [4 0 R] /Count 1 >>";
    let bare = "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>";
    let self_reference = stream("/X Do");
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 5 \
                /Resources << /XObject << /X 6 0 R >> >> >>\nstream\n/X Do\nendstream";
    let drawing = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R \
                   /Resources << /XObject << /X 6 0 R >> >> >>";
    let one = "<< /Type /Pages /Kids [4 0 R] /Count 1 >>";
    for objects in [
        vec![CATALOG, kids, font],
        vec![CATALOG, parents, font, bare, &text],
        vec![CATALOG, one, font, drawing, &self_reference, form],
        vec![CATALOG, "2 0 R", font],
        vec![CATALOG, one, font, "4 0 R"],
    ] {
        let (code, message) = extract_text(&build_pdf(&objects));
        assert_ne!(code, Some(0), "{message}");
        assert!(code != Some(1) || !message.is_empty());
    }
}

#[test]
fn the_helper_cannot_open_files_or_start_processes() {
    let mut child = windlass(&["helper", "pdf"]).spawn().unwrap();
    let limits = loop {
        // The helper sets its limits before it reads, and reads until its input ends.
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id()));
        match limits {
            Ok(limits) if limits.contains("Max open files            0 ") => break limits,
            Ok(_) if child.try_wait().unwrap().is_none() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(limits) => panic!("the helper ended: {limits}"),
            // `/proc` does not exist: this is not Linux.
            Err(_) => return child.kill().unwrap(),
        }
    };
    for (name, limit) in [
        ("Max cpu time", "10"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max address space", "1073741824"),
        ("Max processes", "0"),
    ] {
        let row = limits.lines().find(|row| row.starts_with(name)).unwrap();
        let values: Vec<&str> = row[name.len()..].split_whitespace().take(2).collect();
        assert_eq!(values, [limit, limit], "{row}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An update replaces the file of a running binary.
#[test]
fn a_binary_that_was_replaced_while_it_runs_still_reads_pdfs() {
    let env = support::TestEnv::new(&["call read {\"filePath\": \"a.pdf\"}", "say Done."], "");
    std::fs::write(env.root().join("a.pdf"), one_page("A winch of oak.")).unwrap();
    let binary = env.home().join("windlass");
    std::fs::copy(env!("CARGO_BIN_EXE_windlass"), &binary).unwrap();
    let mut child = Command::new(&binary)
        .args(["run", "-"])
        .current_dir(env.root())
        .env_clear()
        .env("HOME", env.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The process waits for its prompt.
    std::fs::remove_file(&binary).unwrap();
    child.stdin.take().unwrap().write_all(b"Read it.").unwrap();
    let (code, _, stderr) = support::decode_output(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    let answer = env.model.requests()[1].to_string();
    assert!(answer.contains("A winch of oak."), "{answer}");
}

#[test]
fn an_unknown_helper_is_reported() {
    for arguments in [&["helper"][..], &["helper", "nonsense"], &["helper", "pdf", "more"]] {
        let output = windlass(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"unknown helper");
    }
}

#[test]
fn helpers_are_not_in_help_manual_or_completions() {
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let completions = shells.iter().map(|shell| vec!["completions", *shell]);
    for arguments in [vec!["--help"], vec!["man"], vec!["help"]].into_iter().chain(completions) {
        let output = windlass(&arguments).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.len() > 100, "{arguments:?}");
        assert!(!text.contains("pdf") && !text.contains("helper"), "{arguments:?}: {text}");
    }
}
