//! What the words of a command are that are not options: paths, scripts, expressions.

use super::beneath::judge_search;
use super::class::{Class, Finding};
use super::grammar::{Argument, Operands, Row, spreads};
use super::paths::Use;
use super::scripts::{self, Script};
use super::weigh::{Spot, strange};
use crate::shell::Word;

/// True if one of these options is given.
pub(super) fn given(arguments: &[Argument], names: &[&str]) -> bool {
    arguments.iter().any(|argument| match argument {
        Argument::Option { name, .. } => names.iter().any(|wanted| {
            name == wanted
                || (wanted.starts_with("--") && name.len() > 3 && wanted.starts_with(name))
        }),
        Argument::Operand(_) | Argument::Loose(_) | Argument::Opaque(_) => false,
    })
}

/// Paths that are read, and what a search beneath them may come upon.
fn judge_reads(spot: &Spot<'_>, program: &str, arguments: &[Argument], paths: &[&Word]) -> Finding {
    let mut finding = judge_search(spot, program, arguments, paths);
    for word in paths {
        finding.add(spot.ground.weigh(spot.folders, word, Use::Read));
        if program == "git" {
            finding.add(weigh_pathspec(spot, word.text()));
        }
    }
    finding
}

/// What comes of the operands of a program, by its row.
pub(super) fn judge_operands(
    spot: &Spot<'_>,
    program: &str,
    row: &Row,
    arguments: &[Argument],
    operands: &[&Word],
) -> Finding {
    let mut finding = Finding::harmless();
    let weigh = |word: &Word, how: Use| spot.ground.weigh(spot.folders, word, how);
    match row.operands {
        Operands::Text | Operands::Exactly => {}
        Operands::None => {
            if let Some(word) = operands.first() {
                finding.add(strange(program, row, word.text()));
            }
        }
        Operands::Reads => {
            finding.add(judge_reads(spot, program, arguments, operands));
        }
        Operands::Formats | Operands::Refs | Operands::Columns => {
            if let Some(word) = operands.iter().find(|word| !fits(row.operands, word.text())) {
                finding.add(strange(program, row, word.text()));
            }
        }
        Operands::Checkout => finding.add(judge_checkout(arguments, operands)),
        Operands::Writes => operands.iter().for_each(|word| finding.add(weigh(word, Use::Write))),
        Operands::PatternThenReads => {
            let named = ["-e", "-f", "--regexp", "--file", "--files", "--type-list"];
            let skipped = usize::from(!given(arguments, &named));
            let (patterns, paths) = operands.split_at(skipped.min(operands.len()));
            for word in patterns.iter().filter(|word| spreads(word)) {
                finding.add(weigh(word, Use::Read));
            }
            finding.add(judge_reads(spot, program, arguments, paths));
        }
        Operands::ReadThenWrite => {
            for (at, word) in operands.iter().enumerate() {
                // One that spreads may be all of them.
                let first = at == 0 && !spreads(word);
                finding.add(weigh(word, if first { Use::Read } else { Use::Write }));
            }
        }
        Operands::ReadsThenWrite => {
            let last = operands.len().saturating_sub(1);
            for (at, word) in operands.iter().enumerate() {
                finding.add(weigh(word, if at == last { Use::Write } else { Use::Read }));
            }
        }
        Operands::LastWritten => {
            let last = operands.len().saturating_sub(1);
            for (at, word) in operands.iter().enumerate() {
                let written = at == last && (at > 0 || spreads(word));
                finding.add(weigh(word, if written { Use::Write } else { Use::Read }));
            }
        }
        Operands::Sed => finding.add(judge_script(spot, row, arguments, operands, scripts::sed)),
        Operands::Awk => finding.add(judge_script(spot, row, arguments, operands, scripts::awk)),
        Operands::Filter => {
            finding.add(judge_script(spot, row, arguments, operands, scripts::filter));
        }
        Operands::Test => finding.add(judge_test(spot, program, row, arguments, operands)),
        Operands::Find => finding.add(judge_find(spot, arguments, operands)),
        Operands::Removes | Operands::Recurses => {
            finding.add(judge_recursion(spot, program, row, arguments, operands));
        }
        Operands::Dd => operands.iter().for_each(|word| finding.add(judge_dd(spot, word))),
        Operands::Container => finding.add(judge_container(spot, arguments)),
        Operands::Setting => {
            if asks_setting(arguments) {
                return finding;
            }
            finding.add(Finding::new(Class::Guard, "git believes its settings from now on"));
            if let Some(word) = operands.iter().find(|word| runs_code(word.text())) {
                let reason = format!("git runs what {} says, later and unasked", word.text());
                finding.add(Finding::new(Class::Forbidden, reason));
            }
        }
    }
    finding
}

fn judge_checkout(arguments: &[Argument], operands: &[&Word]) -> Finding {
    let new = given(arguments, &["-b", "-B", "--orphan"]);
    let file = operands.first().is_some_and(|word| is_like_a_file(word.text()));
    match !new && (operands.len() > 1 || file) {
        true => Finding::new(Class::Guard, "git would overwrite what is not committed"),
        false => Finding::harmless(),
    }
}

fn judge_dd(spot: &Spot<'_>, word: &Word) -> Finding {
    let weigh =
        |path: &str, how: Use| spot.ground.weigh(spot.folders, &Word::Plain(path.to_owned()), how);
    match (word.text().strip_prefix("of="), word.text().strip_prefix("if=")) {
        (Some(path), _) => weigh(path, Use::Write),
        (None, Some(path)) => weigh(path, Use::Read),
        (None, None) => Finding::harmless(),
    }
}

/// What comes of a word that git may take for a pathspec: it reads wildcards itself, after words of
/// magic, and `REVISION:PATH`.
fn weigh_pathspec(spot: &Spot<'_>, text: &str) -> Finding {
    let mut finding = Finding::harmless();
    let inner = match text.strip_prefix(":(").and_then(|rest| rest.split_once(')')) {
        Some((_, path)) => path,
        None => text.trim_start_matches([':', '/', '!', '^']),
    };
    let after = text.split_once(':').map(|(_, path)| path);
    for path in [Some(text), Some(inner), after].into_iter().flatten() {
        let path = if path == text { path } else { path.trim_start_matches('/') };
        if path != text || path.contains(['*', '?', '[']) {
            let word = match path.contains(['*', '?', '[']) {
                true => Word::Pattern(path.to_owned()),
                false => Word::Plain(path.to_owned()),
            };
            finding.add(spot.ground.weigh(spot.folders, &word, Use::Read));
        }
    }
    finding
}

/// The path that `-L START,END:PATH` of git shows.
pub(super) fn weigh_range(spot: &Spot<'_>, value: &str) -> Finding {
    let mut finding = Finding::harmless();
    let paths = value.match_indices(':').filter_map(|(at, _)| value.get(at + 1..));
    for path in paths {
        finding.add(spot.ground.weigh(spot.folders, &Word::Plain(path.to_owned()), Use::Read));
    }
    finding
}

/// True if an operand is what these operands are.
fn fits(operands: Operands, text: &str) -> bool {
    match operands {
        Operands::Formats => text.starts_with('+'),
        // `e` shows the environments of processes.
        Operands::Columns => !text.contains(['e', 'E']),
        // What is no subcommand today may be one tomorrow.
        _ => text.contains(|letter: char| !(letter.is_ascii_lowercase() || letter == '-')),
    }
}

fn is_like_a_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let letters = |ending: &str| ending.starts_with(|letter: char| letter.is_ascii_alphabetic());
    name.rsplit_once('.').is_some_and(|(_, ending)| letters(ending)) || text.ends_with('/')
}

fn judge_script(
    spot: &Spot<'_>,
    row: &Row,
    arguments: &[Argument],
    operands: &[&Word],
    read: fn(&str) -> Script,
) -> Finding {
    let mut finding = Finding::harmless();
    let program = row.name.split('|').next().unwrap_or(row.name);
    let mut scripts: Vec<&Word> = Vec::new();
    for argument in arguments {
        if let Argument::Option { name, value: Some(value), .. } = argument
            && row.operands == Operands::Sed
            && matches!(name.as_str(), "-e" | "--expression")
        {
            scripts.push(value);
        }
    }
    let file = given(arguments, &["-f", "--file", "--from-file"]);
    let skipped = usize::from(scripts.is_empty() && !file);
    scripts.extend(operands.iter().take(skipped));
    for script in scripts {
        let Some(text) = script.plain() else {
            finding.add(strange(program, row, script.text()));
            continue;
        };
        let script = read(text);
        if !script.proven {
            finding.add(strange(program, row, text));
        }
        for (paths, how) in [(&script.reads, Use::Read), (&script.writes, Use::Write)] {
            for path in paths {
                let found = spot.ground.weigh(spot.folders, &Word::Plain(path.clone()), how);
                finding.add(found);
            }
        }
    }
    let how = match given(arguments, &["-i", "--in-place", "--inplace"]) {
        true => Use::Write,
        false => Use::Read,
    };
    for word in operands.iter().skip(skipped) {
        // With a subcommand before it, yq takes the second one for its script.
        if row.operands == Operands::Filter && word.text().contains(['(', '|', '=', '"']) {
            finding.add(strange(program, row, word.text()));
        }
        finding.add(spot.ground.weigh(spot.folders, word, how));
    }
    finding
}

fn judge_test(
    spot: &Spot<'_>,
    program: &str,
    row: &Row,
    arguments: &[Argument],
    operands: &[&Word],
) -> Finding {
    let mut finding = Finding::harmless();
    for argument in arguments {
        if let Argument::Option { name, .. } = argument
            && matches!(name.as_str(), "-v" | "-R")
        {
            finding.add(strange(program, row, name));
        }
    }
    for word in operands.iter().filter(|word| word.text() != "]") {
        let text = word.text();
        if text.contains(['$', '`', '[']) {
            finding.add(strange(program, row, text));
        }
        finding.add(spot.ground.weigh(spot.folders, word, Use::Read));
    }
    finding
}

fn judge_find(spot: &Spot<'_>, arguments: &[Argument], operands: &[&Word]) -> Finding {
    let mut finding = Finding::harmless();
    let deletes = given(arguments, &["-delete"]);
    // Without a place it starts where it stands.
    if deletes && operands.is_empty() {
        finding.add(Finding::new(Class::Guard, "it removes what it finds everywhere"));
    }
    for word in operands.iter().filter(|word| !matches!(word.text(), "(" | ")" | "!" | ",")) {
        finding.add(spot.ground.weigh(spot.folders, word, Use::Read));
        if deletes && spot.ground.precious(spot.folders, word) {
            finding
                .add(Finding::new(Class::Guard, format!("it removes from all of {}", word.text())));
        }
    }
    finding
}

fn judge_recursion(
    spot: &Spot<'_>,
    program: &str,
    row: &Row,
    arguments: &[Argument],
    operands: &[&Word],
) -> Finding {
    let mut finding = Finding::harmless();
    let recursive = given(arguments, &["-r", "-R", "--recursive"])
        || arguments.iter().any(|argument| matches!(argument, Argument::Opaque(_)));
    let skipped = usize::from(row.operands == Operands::Recurses);
    for word in operands.iter().skip(skipped) {
        if recursive && spot.ground.precious(spot.folders, word) {
            let reason = format!("{program} would go through all of {}", word.text());
            finding.add(Finding::new(Class::Guard, reason));
        }
        finding.add(spot.ground.weigh(spot.folders, word, Use::Write));
    }
    finding
}

/// A container that is given the host is the host.
fn judge_container(spot: &Spot<'_>, arguments: &[Argument]) -> Finding {
    let mut finding = Finding::harmless();
    let forbidden = |reason: String| Finding::new(Class::Forbidden, reason);
    for argument in arguments {
        let Argument::Option { name, value, .. } = argument else { continue };
        let text = value.as_ref().map_or("", |value| value.text());
        match name.as_str() {
            "--privileged" => finding.add(forbidden(format!("{name} gives the rights of root"))),
            "--pid" | "--ipc" | "--userns" | "--network" | "--net" if text == "host" => {
                finding.add(forbidden(format!("{name} {text} opens the host to a container")));
            }
            "-v" | "--volume" | "--mount" => {
                let source = text
                    .split(',')
                    .find_map(|part| part.strip_prefix("source=").or(part.strip_prefix("src=")))
                    .unwrap_or_else(|| text.split(':').next().unwrap_or(text));
                if source.starts_with(['/', '.', '~']) {
                    let word = match source.starts_with('~') {
                        true => Word::Pattern(source.to_owned()),
                        false => Word::Plain(source.to_owned()),
                    };
                    if spot.ground.weigh(spot.folders, &word, Use::Write).class > Class::Work {
                        finding.add(forbidden(format!("{source} of the host would be open")));
                    }
                }
            }
            _ => {}
        }
    }
    finding
}

/// True if settings of git are only asked for. Its options end at the first operand.
fn asks_setting(arguments: &[Argument]) -> bool {
    let asks = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
    arguments
        .iter()
        .map_while(|argument| match argument {
            Argument::Option { name, .. } => Some(name.as_str()),
            Argument::Operand(_) | Argument::Loose(_) | Argument::Opaque(_) => None,
        })
        .any(|name| asks.contains(&name))
}

/// True for a setting of git that names a program, a file of settings or another server.
fn runs_code(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    let (section, key) = setting.split_once('.').unwrap_or((&setting, ""));
    let key = key.rsplit('.').next().unwrap_or(key);
    match section {
        "alias" | "filter" | "credential" | "include" | "includeif" | "url" | "mergetool"
        | "difftool" | "protocol" | "pager" | "uploadpack" | "receive" | "sendemail" | "safe"
        | "browser" | "man" | "trailer" | "gpg" | "init" | "sequence" | "interactive"
        | "submodule" | "ssh" | "http" | "https" | "hook" => true,
        "core" => matches!(
            key,
            "hookspath"
                | "fsmonitor"
                | "pager"
                | "editor"
                | "sshcommand"
                | "gitproxy"
                | "askpass"
                | "worktree"
                | "attributesfile"
                | "excludesfile"
                | "alternaterefscommand"
        ),
        "diff" | "merge" | "remote" => matches!(
            key,
            "external"
                | "command"
                | "textconv"
                | "driver"
                | "uploadpack"
                | "receivepack"
                | "vcs"
                | "proxy"
                | "tool"
                | "guitool"
        ),
        _ => false,
    }
}
