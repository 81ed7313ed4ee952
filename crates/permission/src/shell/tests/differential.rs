//! Asks bash itself: what it passes must be what was read.
//!
//! Strings full of tricks are read; those that are called plain are run by a real bash in which
//! every command is a function that writes down its words. Whatever differs is printed with the
//! seed. `WINDLASS_DIFFERENTIAL` says how many strings, 50,000 if it is not set, and
//! `WINDLASS_SEED` another seed.
#![allow(
    clippy::disallowed_methods,
    reason = "the one thing it is for is to start bash in a folder of its own"
)]

use super::super::{Item, RedirectKind, Segment, Word, read};
use super::strings::Strings;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SEED: u64 = 0x5eed_ba5e;

const PROGRAMS: [&str; 10] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"];

/// Every function writes: its name, how many words, the words, its input and two variables. A line
/// feed is written as another character, because bash writes line by line, and parts of a pipeline
/// at once. What one string can cost is bounded, so that one that never ends is found.
const SCRIPT: &str = r#"
ulimit -f 1000000 -v 4000000
exec 9>>"$OUT"
note() {
    local input= name=$1
    shift
    IFS= read -r -d '' input
    set -- "$name" "$#" "$@" "$input" "${va-unset}" "${vb-unset}"
    printf '%s\0' C "${@//$'\n'/$'\036'}" >&9
    return "$STATUS"
}
for name in p0 p1 p2 p3 p4 p5 p6 p7 p8 p9; do
    eval "$name() { note $name \"\$@\"; }"
done
command_not_found_handle() { note "$@"; }
at=0
while IFS= read -r -d '' text <&8; do
    unset va vb
    printf '%s\0' S "$at" >&9
    eval "$text"
    at=$((at + 1))
done 8<"$IN"
printf '%s\0' E >&9
"#;

/// One call that bash made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    words: Vec<String>,
    input: String,
    variables: [String; 2],
}

/// How bash is told to behave.
#[derive(Clone, Copy)]
enum Pass {
    /// Every command succeeds, and wildcards are left as they are.
    Succeed,
    /// Every command fails, and wildcards vanish: nothing is there that they could match.
    Fail,
}

#[test]
fn what_is_plain_is_what_bash_passes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let count = number("WINDLASS_DIFFERENTIAL").unwrap_or(50_000);
    let seed = number("WINDLASS_SEED").unwrap_or(SEED);
    println!("seed {seed}, {count} strings");
    let mut strings = Strings::new(seed);
    let (mut done, mut plain, mut failures) = (0_u64, 0_u64, Vec::new());
    let started = Instant::now();
    let mut reading = Duration::ZERO;
    while done < count {
        let batch = (count - done).min(25_000);
        let since = Instant::now();
        let texts = (0..batch).map(|_| strings.next());
        let texts: Vec<_> = texts
            .filter_map(|text| {
                let reading = read(&text);
                reading.doubts.is_empty().then_some((text, reading.items))
            })
            .collect();
        reading += since.elapsed();
        plain += texts.len() as u64;
        done += batch;
        let pure = |items: &[Item]| commands(items).all(|each| !touches_files(each));
        let pure: Vec<_> = texts.iter().filter(|(_, items)| pure(items)).cloned().collect();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| compare(&pure, Pass::Fail));
            failures.extend(compare(&texts, Pass::Succeed));
            failures.extend(failing.join().unwrap());
        });
        if failures.len() > 200 {
            break;
        }
    }
    println!("{plain} of {done} plain; {reading:?} of {:?} reading", started.elapsed());
    for failure in failures.iter().take(40) {
        println!("{failure}\n");
    }
    assert!(failures.is_empty(), "{} differ, with the seed {seed}", failures.len());
    assert!(plain * 5 >= done, "only {plain} of {done} are plain: too much is doubted");
}

fn compare(texts: &[(String, Vec<Item>)], pass: Pass) -> Vec<String> {
    let ran = run(texts.iter().map(|(text, _)| text.as_str()), pass);
    let mut failures = Vec::new();
    for (at, (text, items)) in texts.iter().enumerate() {
        let none = Vec::new();
        let calls = ran.get(&at).unwrap_or(&none);
        if let Err(why) = agrees(text, items, calls, pass) {
            failures.push(format!("{text:?}\n  {why}\n  read {items:?}\n  bash {calls:?}"));
        }
    }
    failures
}

fn agrees(text: &str, items: &[Item], calls: &[Call], pass: Pass) -> Result<(), String> {
    let expected: Vec<_> = commands(items).filter(|each| !each.words.is_empty()).collect();
    let piped = expected.iter().any(|each| each.piped);
    let mut from = 0;
    let mut left = expected.clone();
    for call in calls {
        let found = match piped {
            true => left.iter().position(|each| fits(each, call, pass)),
            false => (from..left.len()).find(|&at| fits(left[at], call, pass)),
        };
        match found {
            Some(at) if piped => drop(left.remove(at)),
            Some(at) => from = at + 1,
            None => return Err(format!("bash ran what was not read: {:?}", call.words)),
        }
    }
    let program = |each: &&Segment| match &each.words[0] {
        Word::Plain(word) => PROGRAMS.contains(&word.as_str()),
        _ => false,
    };
    let all_can_run =
        expected.iter().all(program) && commands(items).all(|each| !touches_files(each));
    let none_is_skipped = !text.contains("||")
        && (!text.contains("&&") || matches!(pass, Pass::Succeed) && !text.contains('!'));
    match all_can_run && none_is_skipped && calls.len() != expected.len() {
        true => Err(format!("{} were read, {} ran", expected.len(), calls.len())),
        false => Ok(()),
    }
}

fn fits(segment: &Segment, call: &Call, pass: Pass) -> bool {
    let variables = ["va", "vb"].iter().zip(&call.variables).all(|(name, value)| {
        let assigned = segment.assignments.iter().rev().find(|(each, _)| each == name);
        assigned.is_none_or(|(_, word)| matches(word, value))
    });
    pair(&segment.words, &call.words, pass)
        && variables
        && input(segment).is_none_or(|input| input == call.input)
}

/// True if these words give what was passed; a wildcard may have vanished.
fn pair(words: &[Word], passed: &[String], pass: Pass) -> bool {
    let Some((word, rest)) = words.split_first() else { return passed.is_empty() };
    let next = passed.split_first();
    let gone = matches!((word, pass), (Word::Pattern(_), Pass::Fail));
    next.is_some_and(|(next, behind)| matches(word, next) && pair(rest, behind, pass))
        || gone && pair(rest, passed, pass)
}

fn matches(word: &Word, passed: &str) -> bool {
    match word {
        Word::Plain(text) => text == passed,
        Word::Pattern(text) if text.starts_with('~') => {
            let rest = text.split_once('/').map_or("", |(_, rest)| rest);
            text == passed || passed.starts_with('/') && passed.ends_with(rest)
        }
        Word::Pattern(text) => text == passed,
        Word::Opaque(_) => panic!("an unknown word in a plain reading"),
    }
}

/// What the command must find on its input, if that can be told.
fn input(segment: &Segment) -> Option<String> {
    let numbered = |(at, _): (usize, _)| segment.text[..at].ends_with(|c: char| c.is_ascii_digit());
    if segment.text.match_indices('<').any(numbered) || segment.text.contains("<&") {
        return None;
    }
    let last = segment.redirects.iter().rev().find(|each| each.kind != RedirectKind::Write)?;
    match (&last.kind, &last.target) {
        (RedirectKind::Document { body, .. }, _) => Some(body.clone()),
        (RedirectKind::Text, Word::Plain(text)) => Some(format!("{text}\n")),
        _ => None,
    }
}

fn touches_files(segment: &Segment) -> bool {
    let file = |kind: &RedirectKind| matches!(kind, RedirectKind::Read | RedirectKind::Write);
    segment.redirects.iter().any(|redirect| file(&redirect.kind))
        || segment.text.contains(">&")
        || segment.text.contains("<&")
}

pub(super) fn commands(items: &[Item]) -> impl Iterator<Item = &Segment> {
    items.iter().filter_map(|item| match item {
        Item::Command(segment) => Some(segment),
        Item::Enter | Item::Leave => None,
    })
}

/// The calls that bash made, by the number of the string.
fn run<'a>(texts: impl Iterator<Item = &'a str>, pass: Pass) -> HashMap<usize, Vec<Call>> {
    let folder = tempfile::tempdir().unwrap();
    let yard = folder.path().join("yard");
    std::fs::create_dir(&yard).unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    std::fs::write(&input, bytes).unwrap();
    let (options, status) = match pass {
        Pass::Succeed => ("set -f\n", "0"),
        Pass::Fail => ("shopt -s nullglob\n", "1"),
    };
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join("bash"));
    let mut bash = Command::new(folders.find(|bash| bash.is_file()).expect("bash is installed"));
    bash.args(["--norc", "--noprofile", "-c"]).arg(format!("{options}{SCRIPT}"));
    bash.env_clear().env("LC_ALL", "C.UTF-8").env("HOME", "/nowhere/home").env("PATH", "/nowhere");
    bash.env("IN", &input).env("OUT", &output).env("STATUS", status).current_dir(&yard);
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = bash.spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(240);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    calls(&output)
}

fn calls(output: &Path) -> HashMap<usize, Vec<Call>> {
    let bytes = std::fs::read(output).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut fields = text.split_terminator('\0').map(|field| field.replace('\u{1e}', "\n"));
    let (mut calls, mut at): (HashMap<usize, Vec<Call>>, _) = (HashMap::new(), 0);
    while let Some(kind) = fields.next() {
        match kind.as_str() {
            "S" => at = fields.next().unwrap().parse().unwrap(),
            "C" => {
                let mut words = vec![fields.next().unwrap()];
                let count: usize = fields.next().unwrap().parse().unwrap();
                words.extend(fields.by_ref().take(count));
                let input = fields.next().unwrap();
                let variables = [fields.next().unwrap(), fields.next().unwrap()];
                calls.entry(at).or_default().push(Call { words, input, variables });
            }
            "E" => return calls,
            other => panic!("a broken record: {other:?}"),
        }
    }
    panic!("bash stopped at string {at}");
}
