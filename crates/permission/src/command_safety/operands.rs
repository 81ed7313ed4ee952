//! Evaluates the operands of a command: paths, scripts and expressions.

use super::find_filters::selects_by_name;
use super::indirect_reads::evaluate_search;
use super::option_grammar::{ParsedArgument, has_option, may_expand_to_many};
use super::path_use::PathUse;
use super::program_row::{OperandKind, ProgramRow};
use super::program_run_context::ProgramRunContext;
use super::risk::{Risk, RiskFinding};
use super::sed_awk::{self, ScriptCertainty, ScriptEffects};
use crate::shell::ShellWord;
use std::path::{Path, PathBuf};

/// Evaluates paths that are read, and the files that a recursive search of them may find.
fn evaluate_reads(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    arguments: &[ParsedArgument],
    paths: &[&ShellWord],
) -> RiskFinding {
    let mut finding = evaluate_search(run_context, program, arguments, paths);
    for word in paths {
        finding.merge(run_context.path_context.evaluate_word(
            run_context.folders,
            word,
            PathUse::Read,
        ));
        if program == "git" {
            finding.merge(evaluate_pathspec(run_context, word.text()));
        }
    }
    finding
}

/// Evaluates the operands of a program by the `OperandKind` of its row.
pub(super) fn evaluate_operands(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    row: &ProgramRow,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let evaluate = |word: &ShellWord, path_use: PathUse| {
        run_context.path_context.evaluate_word(run_context.folders, word, path_use)
    };
    match row.operands {
        OperandKind::Text | OperandKind::ExactOptions => {}
        OperandKind::None => {
            if let Some(word) = operands.first() {
                finding.merge(row.unknown_argument(program, word.text()));
            }
        }
        OperandKind::ReadPaths => {
            finding.merge(evaluate_reads(run_context, program, arguments, operands));
        }
        OperandKind::PlusFormats | OperandKind::GitRefs | OperandKind::PsColumns => {
            if let Some(word) =
                operands.iter().find(|word| !operand_fits(row.operands, word.text()))
            {
                finding.merge(row.unknown_word(program, word));
            }
        }
        OperandKind::GitCheckout => {
            finding.merge(evaluate_checkout(run_context, arguments, operands))
        }
        OperandKind::WritePaths => {
            operands.iter().for_each(|word| finding.merge(evaluate(word, PathUse::Write)))
        }
        OperandKind::PatternThenReads => {
            let pattern_options = ["-e", "-f", "--regexp", "--file", "--files", "--type-list"];
            let pattern_count = usize::from(!has_option(arguments, &pattern_options));
            let (patterns, paths) = operands.split_at(pattern_count.min(operands.len()));
            for word in patterns.iter().filter(|word| may_expand_to_many(word)) {
                finding.merge(evaluate(word, PathUse::Read));
            }
            finding.merge(evaluate_reads(run_context, program, arguments, paths));
        }
        OperandKind::ReadThenWrite => {
            for (index, word) in operands.iter().enumerate() {
                // A word that expands to several may be all of the operands.
                let is_read = index == 0 && !may_expand_to_many(word);
                finding.merge(evaluate(word, if is_read { PathUse::Read } else { PathUse::Write }));
            }
        }
        OperandKind::ReadsThenWrite => {
            let last = operands.len().saturating_sub(1);
            for (index, word) in operands.iter().enumerate() {
                let path_use = if index == last { PathUse::Write } else { PathUse::Read };
                finding.merge(evaluate(word, path_use));
            }
        }
        OperandKind::LastIsWritten => {
            let last = operands.len().saturating_sub(1);
            for (index, word) in operands.iter().enumerate() {
                let is_written = index == last && (index > 0 || may_expand_to_many(word));
                let path_use = if is_written { PathUse::Write } else { PathUse::Read };
                finding.merge(evaluate(word, path_use));
            }
        }
        OperandKind::SedScript => finding.merge(evaluate_script(
            run_context,
            row,
            arguments,
            operands,
            sed_awk::analyze_sed,
        )),
        OperandKind::AwkProgram => finding.merge(evaluate_script(
            run_context,
            row,
            arguments,
            operands,
            sed_awk::analyze_awk,
        )),
        OperandKind::JqFilter => {
            finding.merge(evaluate_script(
                run_context,
                row,
                arguments,
                operands,
                sed_awk::analyze_jq_filter,
            ));
        }
        OperandKind::TestExpression => {
            finding.merge(evaluate_test(run_context, program, row, arguments, operands))
        }
        OperandKind::FindExpression => {
            finding.merge(evaluate_find(run_context, arguments, operands))
        }
        OperandKind::RemovedPaths | OperandKind::RecursivePaths => {
            finding.merge(evaluate_recursion(run_context, program, row, arguments, operands));
        }
        OperandKind::DdOperands => {
            operands.iter().for_each(|word| finding.merge(evaluate_dd(run_context, word)))
        }
        OperandKind::ContainerArguments => {
            finding.merge(evaluate_container(run_context, arguments))
        }
        OperandKind::GitSetting => {
            if !only_queries_git_config(arguments) {
                finding.merge(evaluate_git_setting(operands));
            }
        }
    }
    finding
}

fn evaluate_checkout(
    run_context: &ProgramRunContext<'_>,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
) -> RiskFinding {
    let creates_branch = has_option(arguments, &["-b", "-B", "--orphan"]);
    let is_existing = |name: &str| {
        let exists = |folder: &PathBuf| {
            let listing = run_context.path_context.path_lookup().list_beneath(folder);
            listing.paths.iter().any(|path| path == Path::new(name))
        };
        run_context.folders.0.iter().any(exists)
    };
    let is_file = operands
        .first()
        .is_some_and(|word| looks_like_file(word.text()) || is_existing(word.text()));
    match !creates_branch && (operands.len() > 1 || is_file) {
        true => RiskFinding::new(Risk::Destructive, "git would overwrite uncommitted changes"),
        false => RiskFinding::harmless(),
    }
}

fn evaluate_dd(run_context: &ProgramRunContext<'_>, word: &ShellWord) -> RiskFinding {
    let evaluate = |path: &str, path_use: PathUse| {
        run_context.path_context.evaluate_word(
            run_context.folders,
            &ShellWord::Plain(path.to_owned()),
            path_use,
        )
    };
    match (word.text().strip_prefix("of="), word.text().strip_prefix("if=")) {
        (Some(path), _) => evaluate(path, PathUse::Write),
        (None, Some(path)) => evaluate(path, PathUse::Read),
        (None, None) => RiskFinding::harmless(),
    }
}

/// Evaluates a word that git may treat as a pathspec. Git expands wildcards itself, also after
/// pathspec magic, and accepts `REVISION:PATH`.
fn evaluate_pathspec(run_context: &ProgramRunContext<'_>, text: &str) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let inner = match text.strip_prefix(":(").and_then(|rest| rest.split_once(')')) {
        Some((_, path)) => path,
        None => text.trim_start_matches([':', '/', '!', '^']),
    };
    // A colon can also be part of the revision, as in `HEAD@{10:00}:PATH` and `:0:PATH`.
    let after_colons = text.match_indices(':').filter_map(|(index, _)| text.get(index + 1..));
    for path in [text, inner].into_iter().chain(after_colons) {
        let path = if path == text { path } else { path.trim_start_matches('/') };
        if path != text || path.contains(['*', '?', '[']) {
            let word = match path.contains(['*', '?', '[']) {
                true => ShellWord::Pattern(path.to_owned()),
                false => ShellWord::Plain(path.to_owned()),
            };
            finding.merge(run_context.path_context.evaluate_word(
                run_context.folders,
                &word,
                PathUse::Read,
            ));
        }
    }
    finding
}

/// Evaluates the path in `-L START,END:PATH` of git.
pub(super) fn evaluate_line_range(run_context: &ProgramRunContext<'_>, value: &str) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let paths = value.match_indices(':').filter_map(|(index, _)| value.get(index + 1..));
    for path in paths {
        finding.merge(run_context.path_context.evaluate_word(
            run_context.folders,
            &ShellWord::Plain(path.to_owned()),
            PathUse::Read,
        ));
    }
    finding
}

/// Returns true if an operand has the form that this kind requires.
fn operand_fits(operands: OperandKind, text: &str) -> bool {
    match operands {
        OperandKind::PlusFormats => text.starts_with('+'),
        // `e` shows the environment of processes.
        OperandKind::PsColumns => !text.contains(['e', 'E']),
        // A lowercase word that is no subcommand today may become one in a later version.
        _ => text.contains(|c: char| !(c.is_ascii_lowercase() || c == '-')),
    }
}

fn looks_like_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let is_extension = |extension: &str| extension.starts_with(|c: char| c.is_ascii_alphabetic());
    name.rsplit_once('.').is_some_and(|(_, extension)| is_extension(extension))
        || text.ends_with('/')
}

fn evaluate_script(
    run_context: &ProgramRunContext<'_>,
    row: &ProgramRow,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
    analyze: fn(&str) -> ScriptEffects,
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let program = row.names.split('|').next().unwrap_or(row.names);
    let mut scripts: Vec<&ShellWord> = Vec::new();
    for argument in arguments {
        if let ParsedArgument::Option { name, value: Some(value), .. } = argument
            && row.operands == OperandKind::SedScript
            && matches!(name.as_str(), "-e" | "--expression")
        {
            scripts.push(value);
        }
    }
    let has_script_file = has_option(arguments, &["-f", "--file", "--from-file"]);
    let script_count = usize::from(scripts.is_empty() && !has_script_file);
    scripts.extend(operands.iter().take(script_count));
    for script in scripts {
        let Some(text) = script.as_plain() else {
            finding.merge(row.unknown_word(program, script));
            continue;
        };
        let effects = analyze(text);
        match effects.certainty {
            ScriptCertainty::Proven => {}
            ScriptCertainty::Likely => finding.merge(row.confined_argument(program, text)),
            ScriptCertainty::Unknown => finding.merge(row.unknown_argument(program, text)),
        }
        for (paths, path_use) in
            [(&effects.reads, PathUse::Read), (&effects.writes, PathUse::Write)]
        {
            for path in paths {
                let path_finding = run_context.path_context.evaluate_word(
                    run_context.folders,
                    &ShellWord::Plain(path.clone()),
                    path_use,
                );
                finding.merge(path_finding);
            }
        }
    }
    let path_use = match has_option(arguments, &["-i", "--in-place", "--inplace"]) {
        true => PathUse::Write,
        false => PathUse::Read,
    };
    for word in operands.iter().skip(script_count) {
        // After a subcommand, `yq` treats the second operand as its script.
        if row.operands == OperandKind::JqFilter && word.text().contains(['(', '|', '=', '"']) {
            finding.merge(row.unknown_argument(program, word.text()));
        }
        finding.merge(run_context.path_context.evaluate_word(run_context.folders, word, path_use));
    }
    finding
}

fn evaluate_test(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    row: &ProgramRow,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    for argument in arguments {
        if let ParsedArgument::Option { name, .. } = argument
            && matches!(name.as_str(), "-v" | "-R")
        {
            finding.merge(row.unknown_argument(program, name));
        }
    }
    for word in operands.iter().filter(|word| word.text() != "]") {
        let text = word.text();
        if text.contains(['$', '`', '[']) {
            finding.merge(row.unknown_word(program, word));
        }
        finding.merge(run_context.path_context.evaluate_word(
            run_context.folders,
            word,
            PathUse::Read,
        ));
    }
    finding
}

fn evaluate_find(
    run_context: &ProgramRunContext<'_>,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let deletes = has_option(arguments, &["-delete"]) && !selects_by_name(arguments, operands);
    // Without a path, `find` starts in the current folder.
    if deletes && operands.is_empty() {
        finding.merge(RiskFinding::new(
            Risk::Destructive,
            "it deletes matching files everywhere under the current folder",
        ));
    }
    for word in operands.iter().filter(|word| !matches!(word.text(), "(" | ")" | "!" | ",")) {
        finding.merge(run_context.path_context.evaluate_word(
            run_context.folders,
            word,
            PathUse::Read,
        ));
        if deletes && run_context.path_context.is_critical_path(run_context.folders, word) {
            finding.merge(RiskFinding::new(
                Risk::Destructive,
                format!("it deletes files anywhere under `{}`", word.text()),
            ));
        }
    }
    finding
}

fn evaluate_recursion(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    row: &ProgramRow,
    arguments: &[ParsedArgument],
    operands: &[&ShellWord],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let is_recursive = has_option(arguments, &["-r", "-R", "--recursive"])
        || arguments.iter().any(|argument| matches!(argument, ParsedArgument::Opaque(_)));
    let skipped_count = usize::from(row.operands == OperandKind::RecursivePaths);
    for word in operands.iter().skip(skipped_count) {
        if is_recursive && run_context.path_context.is_critical_path(run_context.folders, word) {
            let reason = format!("`{program}` would change everything under `{}`", word.text());
            finding.merge(RiskFinding::new(Risk::Destructive, reason));
        }
        finding.merge(run_context.path_context.evaluate_word(
            run_context.folders,
            word,
            PathUse::Write,
        ));
    }
    finding
}

/// Evaluates container options such as `--privileged` and `--volume`. A container with access to
/// the host is as dangerous as the host.
fn evaluate_container(
    run_context: &ProgramRunContext<'_>,
    arguments: &[ParsedArgument],
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    let forbidden = |reason: String| RiskFinding::new(Risk::Forbidden, reason);
    for argument in arguments {
        let ParsedArgument::Option { name, value, .. } = argument else { continue };
        let text = value.as_ref().map_or("", |value| value.text());
        match name.as_str() {
            "--privileged" => finding.merge(forbidden(format!("`{name}` gives root privileges"))),
            "--pid" | "--ipc" | "--userns" | "--network" | "--net" if text == "host" => {
                finding.merge(forbidden(format!(
                    "`{name} {text}` gives the container access to the host"
                )));
            }
            "-v" | "--volume" | "--mount" => {
                let source = text
                    .split(',')
                    .find_map(|part| part.strip_prefix("source=").or(part.strip_prefix("src=")))
                    .unwrap_or_else(|| text.split(':').next().unwrap_or(text));
                if source.starts_with(['/', '.', '~']) {
                    let word = match source.starts_with('~') {
                        true => ShellWord::Pattern(source.to_owned()),
                        false => ShellWord::Plain(source.to_owned()),
                    };
                    if run_context
                        .path_context
                        .evaluate_word(run_context.folders, &word, PathUse::Write)
                        .risk
                        > Risk::WorkspaceWrite
                    {
                        finding.merge(forbidden(format!(
                            "the container would have access to `{source}` on the host"
                        )));
                    }
                }
            }
            _ => {}
        }
    }
    finding
}

/// Returns true if `git config` only queries settings. Its options end at the first operand.
fn only_queries_git_config(arguments: &[ParsedArgument]) -> bool {
    let query_options = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
    arguments
        .iter()
        .map_while(|argument| match argument {
            ParsedArgument::Option { name, .. } => Some(name.as_str()),
            ParsedArgument::Operand(_)
            | ParsedArgument::MaybeOption(_)
            | ParsedArgument::Opaque(_) => None,
        })
        .any(|name| query_options.contains(&name))
}

/// Evaluates the settings that a command changes.
fn evaluate_git_setting(operands: &[&ShellWord]) -> RiskFinding {
    match operands.iter().map(|word| word.text()).find(|text| git_setting_runs_code(text)) {
        Some(text) => RiskFinding::new(
            Risk::Forbidden,
            format!("git will run the value of `{text}` later, without approval"),
        ),
        None => RiskFinding::new(
            Risk::Destructive,
            "it changes git settings, which later git commands use",
        ),
    }
}

/// Returns true for a git setting that names a program, a config file or another server.
fn git_setting_runs_code(setting: &str) -> bool {
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
