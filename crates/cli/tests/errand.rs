//! The text of PDF files, taken out by a process of its own that bad files cannot hurt.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the errand says to a PDF, and how it ended.
fn told(pdf: &[u8]) -> (Option<i32>, String) {
    let start = Instant::now();
    let mut child = windlass(&["errand", "pdf"]).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(pdf);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "it took {:?}", start.elapsed());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// A file of these objects, numbered from 1, of which the first is its catalogue.
fn written(objects: &[&str]) -> Vec<u8> {
    let mut file = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        file += &format!("{number} 0 obj\n{object}\nendobj\n");
    }
    let table = file.len();
    let size = objects.len() + 1;
    file += &format!("xref\n0 {size}\n0000000000 65535 f \n");
    for place in places {
        file += &format!("{place:010} 00000 n \n");
    }
    file += &format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    file.into_bytes()
}

fn stream(content: &str) -> String {
    format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
}

const CATALOGUE: &str = "<< /Type /Catalog /Pages 2 0 R >>";
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
    written(&[CATALOGUE, pages, FONT, &page(5), &content])
}

#[test]
fn a_page_gives_its_text() {
    assert_eq!(told(&one_page("A winch of oak.")), (Some(0), "A winch of oak.\n".to_owned()));
}

#[test]
fn pages_are_told_apart_and_a_bad_one_spoils_no_other() {
    let pages = "<< /Type /Pages /Kids [4 0 R 6 0 R 8 0 R] /Count 3 >>";
    let first = stream("BT /F1 12 Tf 72 700 Td (First) Tj ET");
    let third = stream("BT /F1 12 Tf 72 700 Td (Third) Tj ET");
    let nowhere = "<< /Type /Page /Parent 2 0 R /Contents 99 0 R >>";
    let file =
        written(&[CATALOGUE, pages, FONT, &page(5), &first, nowhere, "null", &page(9), &third]);
    let (code, text) = told(&file);
    assert_eq!(code, Some(0), "{text}");
    let expected = "--- page 1 ---\nFirst\n--- page 2 ---\n(this page could not be read)\n\
                    --- page 3 ---\nThird\n";
    assert_eq!(text, expected);
}

#[test]
fn a_file_without_text_says_so() {
    let content = stream("0 0 m 10 10 l S");
    let pages = "<< /Type /Pages /Kids [4 0 R] /Count 1 >>";
    let (code, words) = told(&written(&[CATALOGUE, pages, FONT, &page(5), &content]));
    assert_eq!(code, Some(1));
    assert!(words.contains("scan"), "{words}");
}

#[test]
fn damage_is_told_in_words() {
    let whole = one_page("A winch of oak.");
    for cut in [0, 1, 8, 60, whole.len() / 2, whole.len() - 40] {
        let (code, words) = told(&whole[..cut]);
        assert!(matches!(code, Some(0 | 1)) && !words.is_empty(), "{cut}: {code:?} {words}");
    }
    let (code, words) = told(&whole[..whole.len() / 3]);
    assert_eq!(code, Some(1));
    assert!(words.contains("damaged") || words.contains("no pages"), "{words}");

    let mut state = 7u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let random: Vec<u8> = b"%PDF-1.7\n".iter().copied().chain(noise.take(20_000)).collect();
    let (code, words) = told(&random);
    assert_eq!(code, Some(1));
    assert!(words.contains("damaged"), "{words}");
}

/// A loop ends with words, or with a crash that whoever started it puts into words.
#[test]
fn a_loop_comes_to_an_end() {
    let font = FONT;
    let text = stream("BT /F1 12 Tf (x) Tj ET");
    let kids = "<< /Type /Pages /Kids [2 0 R] /Count 1 >>";
    let parents = "<< /Type /Pages /Parent 2 0 R /Kids [4 0 R] /Count 1 >>";
    let bare = "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>";
    let itself = stream("/X Do");
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 5 \
                /Resources << /XObject << /X 6 0 R >> >> >>\nstream\n/X Do\nendstream";
    let drawing = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R \
                   /Resources << /XObject << /X 6 0 R >> >> >>";
    let one = "<< /Type /Pages /Kids [4 0 R] /Count 1 >>";
    for objects in [
        vec![CATALOGUE, kids, font],
        vec![CATALOGUE, parents, font, bare, &text],
        vec![CATALOGUE, one, font, drawing, &itself, form],
        vec![CATALOGUE, "2 0 R", font],
        vec![CATALOGUE, one, font, "4 0 R"],
    ] {
        let (code, words) = told(&written(&objects));
        assert_ne!(code, Some(0), "{words}");
        assert!(code != Some(1) || !words.is_empty());
    }
}

#[test]
fn it_cannot_open_or_make_anything() {
    let mut child = windlass(&["errand", "pdf"]).spawn().unwrap();
    let limits = loop {
        // The limits are there before it reads, and it reads until its input ends.
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id()));
        match limits {
            Ok(limits) if limits.contains("Max open files            0 ") => break limits,
            Ok(_) if child.try_wait().unwrap().is_none() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(limits) => panic!("it ended: {limits}"),
            // No such folder: not Linux.
            Err(_) => return child.kill().unwrap(),
        }
    };
    for (name, most) in [
        ("Max cpu time", "10"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max address space", "1073741824"),
        ("Max processes", "0"),
    ] {
        let row = limits.lines().find(|row| row.starts_with(name)).unwrap();
        let values: Vec<&str> = row[name.len()..].split_whitespace().take(2).collect();
        assert_eq!(values, [most, most], "{row}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An update puts another file in the place of the one that runs.
#[test]
fn a_binary_that_was_replaced_while_it_runs_still_reads_pdfs() {
    let yard = yard::Yard::new(&["call read {\"filePath\": \"a.pdf\"}", "say Done."], "");
    std::fs::write(yard.root().join("a.pdf"), one_page("A winch of oak.")).unwrap();
    let binary = yard.home().join("windlass");
    std::fs::copy(env!("CARGO_BIN_EXE_windlass"), &binary).unwrap();
    let mut child = Command::new(&binary)
        .args(["run", "-"])
        .current_dir(yard.root())
        .env_clear()
        .env("HOME", yard.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It waits to be told what to do.
    std::fs::remove_file(&binary).unwrap();
    child.stdin.take().unwrap().write_all(b"Read it.").unwrap();
    let (code, _, notes) = yard::told(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{notes}");
    let answer = yard.model.requests()[1].to_string();
    assert!(answer.contains("A winch of oak."), "{answer}");
}

#[test]
fn an_unknown_errand_says_so() {
    for arguments in [&["errand"][..], &["errand", "nonsense"], &["errand", "pdf", "more"]] {
        let output = windlass(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(output.stdout, b"there is no such errand");
    }
}

#[test]
fn nobody_is_told_of_errands() {
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let completions = shells.iter().map(|shell| vec!["completions", *shell]);
    for arguments in [vec!["--help"], vec!["man"], vec!["help"]].into_iter().chain(completions) {
        let output = windlass(&arguments).stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.len() > 100, "{arguments:?}");
        assert!(!text.contains("pdf") && !text.contains("errand"), "{arguments:?}: {text}");
    }
}
