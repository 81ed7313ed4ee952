//! Differential test against bash: the words that bash passes must be the words that were parsed.
//!
//! Random command lines are parsed; those without ambiguities are run by a real bash in which every
//! command is a function that records its words. Differences are printed with the seed.
//! `WINDLASS_DIFFERENTIAL` sets the number of command lines (default 50,000), and `WINDLASS_SEED`
//! sets the seed.
#![allow(clippy::disallowed_methods, reason = "the test starts bash in a temporary folder")]

use super::super::{
    CommandOrScopeBoundary, RedirectKind, ShellWord, SimpleShellCommand, parse_command_line,
};
use super::command_line_generator::TestCommandLineGenerator;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SEED: u64 = 0x5eed_ba5e;

const PROGRAMS: [&str; 10] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"];

/// Every function records its name, the number of words, the words, its input and two variables. A
/// line feed is recorded as another character, because bash writes line by line, and the parts of a
/// pipeline run concurrently. The limits make a command line that never ends visible.
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

/// A call that bash made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BashTestCall {
    words: Vec<String>,
    input: String,
    variables: [String; 2],
}

/// The behavior of commands and wildcards in bash.
#[derive(Clone, Copy)]
enum BashTestBehavior {
    /// Every command succeeds, and wildcards are left as they are.
    Succeed,
    /// Every command fails, and wildcards vanish, because there are no files to match.
    Fail,
}

#[test]
fn unambiguous_words_are_what_bash_passes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let count = number("WINDLASS_DIFFERENTIAL").unwrap_or(50_000);
    let seed = number("WINDLASS_SEED").unwrap_or(SEED);
    println!("seed {seed}, {count} command lines");
    let mut generator = TestCommandLineGenerator::new(seed);
    let (mut done, mut plain, mut failures) = (0_u64, 0_u64, Vec::new());
    let started = Instant::now();
    let mut parsing = Duration::ZERO;
    while done < count {
        let batch = (count - done).min(25_000);
        let since = Instant::now();
        let texts = (0..batch).map(|_| generator.next());
        let texts: Vec<_> = texts
            .filter_map(|text| {
                let parsed = parse_command_line(&text);
                parsed.ambiguities.is_empty().then_some((text, parsed.items))
            })
            .collect();
        parsing += since.elapsed();
        plain += texts.len() as u64;
        done += batch;
        let pure = |items: &[CommandOrScopeBoundary]| {
            command_segments(items).all(|each| !touches_files(each))
        };
        let pure: Vec<_> = texts.iter().filter(|(_, items)| pure(items)).cloned().collect();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| compare(&pure, BashTestBehavior::Fail));
            failures.extend(compare(&texts, BashTestBehavior::Succeed));
            failures.extend(failing.join().unwrap());
        });
        if failures.len() > 200 {
            break;
        }
    }
    println!("{plain} of {done} unambiguous; parsing took {parsing:?} of {:?}", started.elapsed());
    for failure in failures.iter().take(40) {
        println!("{failure}\n");
    }
    assert!(failures.is_empty(), "{} differ, with the seed {seed}", failures.len());
    assert!(plain * 5 >= done, "only {plain} of {done} are unambiguous");
}

fn compare(
    texts: &[(String, Vec<CommandOrScopeBoundary>)],
    behavior: BashTestBehavior,
) -> Vec<String> {
    let calls_by_index = run_bash(texts.iter().map(|(text, _)| text.as_str()), behavior);
    let mut failures = Vec::new();
    for (at, (text, items)) in texts.iter().enumerate() {
        let none = Vec::new();
        let calls = calls_by_index.get(&at).unwrap_or(&none);
        if let Err(reason) = check_agreement(text, items, calls, behavior) {
            failures.push(format!("{text:?}\n  {reason}\n  parsed {items:?}\n  bash {calls:?}"));
        }
    }
    failures
}

fn check_agreement(
    text: &str,
    items: &[CommandOrScopeBoundary],
    calls: &[BashTestCall],
    behavior: BashTestBehavior,
) -> Result<(), String> {
    let expected: Vec<_> = command_segments(items).filter(|each| !each.words.is_empty()).collect();
    let piped = expected.iter().any(|each| each.has_piped_input);
    let mut from = 0;
    let mut left = expected.clone();
    for call in calls {
        let found = match piped {
            true => left.iter().position(|each| matches_call(each, call, behavior)),
            false => (from..left.len()).find(|&at| matches_call(left[at], call, behavior)),
        };
        match found {
            Some(at) if piped => drop(left.remove(at)),
            Some(at) => from = at + 1,
            None => {
                return Err(format!("bash ran a command that was not parsed: {:?}", call.words));
            }
        }
    }
    let program = |each: &&SimpleShellCommand| match &each.words[0] {
        ShellWord::Plain(word) => PROGRAMS.contains(&word.as_str()),
        _ => false,
    };
    let all_can_run =
        expected.iter().all(program) && command_segments(items).all(|each| !touches_files(each));
    let none_is_skipped = !text.contains("||")
        && (!text.contains("&&")
            || matches!(behavior, BashTestBehavior::Succeed) && !text.contains('!'));
    match all_can_run && none_is_skipped && calls.len() != expected.len() {
        true => Err(format!("{} were parsed, {} ran", expected.len(), calls.len())),
        false => Ok(()),
    }
}

fn matches_call(
    segment: &SimpleShellCommand,
    call: &BashTestCall,
    behavior: BashTestBehavior,
) -> bool {
    let variables = ["va", "vb"].iter().zip(&call.variables).all(|(name, value)| {
        let assigned = segment.assignments.iter().rev().find(|(each, _)| each == name);
        assigned.is_none_or(|(_, word)| word_matches(word, value))
    });
    words_match(&segment.words, &call.words, behavior)
        && variables
        && expected_input(segment).is_none_or(|input| input == call.input)
}

/// Returns true if the words expand to the passed arguments; a wildcard may have vanished.
fn words_match(words: &[ShellWord], passed: &[String], behavior: BashTestBehavior) -> bool {
    let Some((word, rest)) = words.split_first() else { return passed.is_empty() };
    let next = passed.split_first();
    let may_vanish = matches!((word, behavior), (ShellWord::Pattern(_), BashTestBehavior::Fail));
    next.is_some_and(|(next, later)| word_matches(word, next) && words_match(rest, later, behavior))
        || may_vanish && words_match(rest, passed, behavior)
}

fn word_matches(word: &ShellWord, passed: &str) -> bool {
    match word {
        ShellWord::Plain(text) => text == passed,
        ShellWord::Pattern(text) if text.starts_with('~') => {
            let rest = text.split_once('/').map_or("", |(_, rest)| rest);
            text == passed || passed.starts_with('/') && passed.ends_with(rest)
        }
        ShellWord::Pattern(text) => text == passed,
        ShellWord::Opaque(_) => panic!("an opaque word in an unambiguous result"),
    }
}

/// Returns the input that the command must find, if it is known.
fn expected_input(segment: &SimpleShellCommand) -> Option<String> {
    let numbered = |(at, _): (usize, _)| segment.text[..at].ends_with(|c: char| c.is_ascii_digit());
    if segment.text.match_indices('<').any(numbered) || segment.text.contains("<&") {
        return None;
    }
    let last = segment.redirects.iter().rev().find(|each| each.kind != RedirectKind::Write)?;
    match (&last.kind, &last.target) {
        (RedirectKind::HereDocument { body, .. }, _) => Some(body.clone()),
        (RedirectKind::HereString, ShellWord::Plain(text)) => Some(format!("{text}\n")),
        _ => None,
    }
}

fn touches_files(segment: &SimpleShellCommand) -> bool {
    let file = |kind: &RedirectKind| matches!(kind, RedirectKind::Read | RedirectKind::Write);
    segment.redirects.iter().any(|redirect| file(&redirect.kind))
        || segment.text.contains(">&")
        || segment.text.contains("<&")
}

pub(super) fn command_segments(
    items: &[CommandOrScopeBoundary],
) -> impl Iterator<Item = &SimpleShellCommand> {
    items.iter().filter_map(|item| match item {
        CommandOrScopeBoundary::Command(segment) => Some(segment),
        CommandOrScopeBoundary::EnterScope | CommandOrScopeBoundary::LeaveScope => None,
    })
}

/// Runs bash and returns its calls by the index of the command line.
fn run_bash<'a>(
    texts: impl Iterator<Item = &'a str>,
    behavior: BashTestBehavior,
) -> HashMap<usize, Vec<BashTestCall>> {
    let folder = tempfile::tempdir().unwrap();
    let env = folder.path().join("env");
    std::fs::create_dir(&env).unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    std::fs::write(&input, bytes).unwrap();
    let (options, status) = match behavior {
        BashTestBehavior::Succeed => ("set -f\n", "0"),
        BashTestBehavior::Fail => ("shopt -s nullglob\n", "1"),
    };
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join("bash"));
    let mut bash = Command::new(folders.find(|bash| bash.is_file()).expect("bash is installed"));
    bash.args(["--norc", "--noprofile", "-c"]).arg(format!("{options}{SCRIPT}"));
    bash.env_clear().env("LC_ALL", "C.UTF-8").env("HOME", "/nowhere/home").env("PATH", "/nowhere");
    bash.env("IN", &input).env("OUT", &output).env("STATUS", status).current_dir(&env);
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
    parse_calls(&output)
}

fn parse_calls(output: &Path) -> HashMap<usize, Vec<BashTestCall>> {
    let bytes = std::fs::read(output).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let mut fields = text.split_terminator('\0').map(|field| field.replace('\u{1e}', "\n"));
    let (mut calls, mut at): (HashMap<usize, Vec<BashTestCall>>, _) = (HashMap::new(), 0);
    while let Some(kind) = fields.next() {
        match kind.as_str() {
            "S" => at = fields.next().unwrap().parse().unwrap(),
            "C" => {
                let mut words = vec![fields.next().unwrap()];
                let count: usize = fields.next().unwrap().parse().unwrap();
                words.extend(fields.by_ref().take(count));
                let input = fields.next().unwrap();
                let variables = [fields.next().unwrap(), fields.next().unwrap()];
                calls.entry(at).or_default().push(BashTestCall { words, input, variables });
            }
            "E" => return calls,
            other => panic!("invalid record: {other:?}"),
        }
    }
    panic!("bash stopped at command line {at}");
}
