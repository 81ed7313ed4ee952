//! Evaluates a program and its arguments against the rows of the program table.
//!
//! A program without a row counts as `Risk::WorkspaceWrite`; the paths and addresses among its
//! words are still evaluated. Start reading at [`evaluate_program`].

use super::network_addresses::{is_cloud_metadata, is_loopback, reaches_only_loopback};
use super::operands::{evaluate_line_range, evaluate_operands};
use super::option_grammar::{self, OptionSafety, OptionValueKind, ParsedArgument};
use super::path_evaluator::ProgramTableMembership;
use super::path_use::PathUse;
use super::program_row::{OperandKind, ProgramRow};
use super::program_run_context::ProgramRunContext;
use super::programs;
use super::risk::{NetworkNeed, Risk, RiskFinding};
use super::untrusted_config::evaluate_untrusted_config;
use crate::shell::ShellWord;

/// Evaluates a program by its name and arguments.
pub(super) fn evaluate_program(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    words: &[ShellWord],
) -> RiskFinding {
    let rows = programs::rows_for_program(program);
    if rows.is_empty() {
        let mut finding =
            RiskFinding::new(Risk::WorkspaceWrite, format!("unknown program `{program}`"));
        if program.starts_with("mkfs") {
            finding.merge(RiskFinding::new(
                Risk::Destructive,
                format!("`{program}` erases the contents of a disk"),
            ));
        }
        finding.merge(evaluate_mentions(run_context, words, ProgramTableMembership::Unknown));
        finding.merge(evaluate_addresses(program, words));
        return finding;
    }
    let mut finding = evaluate_known_program(run_context, program, words);
    let root = run_context.path_context.path_lookup().workspace_root();
    if program == "git" && run_context.folders.0.iter().any(|folder| folder != root) {
        let reason = "git uses the settings of the folder that it runs in";
        finding.merge(RiskFinding::new(Risk::WorkspaceWrite, reason));
    }
    if program == "git" && shows_signature(words) {
        let reason = "git runs another program to verify a signature";
        finding.merge(RiskFinding::new(Risk::WorkspaceWrite, reason));
    }
    if finding.risk <= Risk::ConfinedRead {
        finding.merge(evaluate_untrusted_config(run_context, program));
    }
    let downloads_code = program == "go"
        && words.first().is_some_and(|word| word.text() == "run")
        && words.iter().any(|word| word.text().contains('@'));
    if downloads_code {
        finding.merge(RiskFinding::new(Risk::Network, "go downloads the code that it runs"));
    }
    if program == "deno" {
        finding.merge(evaluate_addresses(program, words));
    }
    // The oldest option syntax of `tar` has no dash.
    let bundle = words.first().map(ShellWord::text).filter(|text| !text.starts_with('-'));
    if program.ends_with("tar") && bundle.is_some_and(|text| text.contains('P')) {
        finding.merge(RiskFinding::new(Risk::OutsideWorkspace, "tar would use absolute paths"));
    }
    if finding.risk != Risk::ReadOnly {
        finding.merge(evaluate_mentions(run_context, words, ProgramTableMembership::Known));
    }
    if finding.network != NetworkNeed::None && words.iter().any(|word| is_loopback(word.text())) {
        if run_context.path_context.path_lookup().has_own_loopback() {
            return match reaches_only_loopback(words) {
                true => finding.without_network(),
                false => finding,
            };
        }
        let reason = "it connects to a server on this machine, which may control other programs";
        finding.merge(RiskFinding::new(Risk::LocalService, reason));
    }
    finding
}

/// Reports `Risk::Network` if an argument contains a URL that the program may fetch.
fn evaluate_addresses(program: &str, words: &[ShellWord]) -> RiskFinding {
    let schemes = ["http://", "https://", "ftp://"];
    let has_url = |word: &ShellWord| schemes.iter().any(|scheme| word.text().contains(scheme));
    match words.iter().any(has_url) {
        true => RiskFinding::new(Risk::Network, format!("`{program}` may fetch a URL")),
        false => RiskFinding::harmless(),
    }
}

fn evaluate_mentions(
    run_context: &ProgramRunContext<'_>,
    words: &[ShellWord],
    knowledge: ProgramTableMembership,
) -> RiskFinding {
    let mut finding = RiskFinding::harmless();
    for word in words {
        finding.merge(run_context.path_context.evaluate_mention(
            run_context.folders,
            word,
            knowledge,
        ));
        if is_cloud_metadata(word.text()) {
            let reason = "it contacts the cloud metadata service, which provides credentials";
            finding.merge(RiskFinding::new(Risk::Forbidden, reason));
        }
    }
    finding
}

/// Returns true for a format that shows the signer of a commit.
fn shows_signature(words: &[ShellWord]) -> bool {
    let is_format_option =
        |text: &str| ["--fo", "--so", "--pr"].iter().any(|start| text.starts_with(start));
    let mut after_format_option = false;
    words.iter().map(ShellWord::text).any(|text| {
        let is_format = std::mem::replace(&mut after_format_option, is_format_option(text))
            || is_format_option(text);
        ["%G", "%+G", "%-G", "% G"].iter().any(|placeholder| text.contains(placeholder))
            || text.contains("signature") && (is_format || text.contains("%("))
    })
}

/// One way to split the words: a subcommand name and the arguments after it.
struct SubcommandCandidate<'a> {
    name: String,
    arguments: &'a [ShellWord],
}

/// Longest first argument that a reason repeats. Longer ones are scripts rather than subcommands.
const MAX_NAMED_ARGUMENT_BYTES: usize = 40;

/// Selects the applicable rows of the longest matching subcommand name and evaluates the arguments
/// by them.
fn evaluate_known_program(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    words: &[ShellWord],
) -> RiskFinding {
    let is_exact_match = |name: &str, rest: &[ShellWord]| {
        let rows_of_name =
            programs::rows_for_program(program).iter().filter(|(row_name, _)| *row_name == name);
        rows_of_name.into_iter().any(|(_, row)| is_exact_option(row, rest))
    };
    if is_exact_match(program, words) {
        return RiskFinding::harmless();
    }
    let (candidates, mut finding) = subcommand_candidates(run_context, program, words);
    let mut has_row = false;
    for candidate in &candidates {
        if is_exact_match(&candidate.name, candidate.arguments) {
            return finding;
        }
        let rows: Vec<&ProgramRow> = programs::rows_for_program(program)
            .iter()
            .filter(|(name, row)| {
                *name == candidate.name && option_grammar::row_applies(row, candidate.arguments)
            })
            .map(|(_, row)| *row)
            .collect();
        // `ExactOptions` rows count only if no other row applies.
        let (exact_rows, other_rows): (Vec<&ProgramRow>, Vec<&ProgramRow>) =
            rows.into_iter().partition(|row| row.operands == OperandKind::ExactOptions);
        for row in if other_rows.is_empty() { exact_rows } else { other_rows } {
            has_row = true;
            finding.merge(evaluate_row(run_context, program, row, candidate));
        }
        if has_row {
            break;
        }
    }
    if !has_row {
        let reason = format!("unknown subcommand or arguments for `{program}`");
        finding.merge(RiskFinding::new(Risk::WorkspaceWrite, reason));
    }
    finding
}

fn is_exact_option(row: &ProgramRow, rest: &[ShellWord]) -> bool {
    let [ShellWord::Plain(word)] = rest else { return false };
    row.operands == OperandKind::ExactOptions
        && row.options.split_whitespace().any(|option| option == word)
}

/// Returns the subcommand names that the words can mean, longest first, and the findings about the
/// options before them.
fn subcommand_candidates<'a>(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    words: &'a [ShellWord],
) -> (Vec<SubcommandCandidate<'a>>, RiskFinding) {
    let mut finding = RiskFinding::harmless();
    let fallback = SubcommandCandidate { name: program.to_owned(), arguments: words };
    let rows = programs::rows_for_program(program);
    if !rows.iter().any(|(name, _)| name.contains(' ')) {
        return (vec![fallback], finding);
    }
    let (index, certainty) = find_subcommand(run_context, program, words, &mut finding);
    let mut candidates = Vec::new();
    let starts = match certainty {
        SubcommandCertainty::Certain => index..index.saturating_add(1),
        SubcommandCertainty::Uncertain => index..words.len(),
    };
    for start in starts {
        let Some(rest) = words.get(start..) else { break };
        if let Some(ShellWord::Opaque(text) | ShellWord::Pattern(text)) = rest.first() {
            finding.merge(unknown_subcommand(program, text));
        }
        let is_opaque = |word: &&ShellWord| matches!(word, ShellWord::Opaque(_));
        if let (Some(first), Some(second)) = (rest.first(), rest.get(1).filter(is_opaque)) {
            let prefix = format!("{program} {} ", first.text());
            if rows.iter().any(|(name, _)| name.starts_with(&prefix)) {
                finding.merge(unknown_subcommand(program, second.text()));
            }
        }
        for length in [2, 1] {
            let Some((names, rest)) = rest.split_at_checked(length) else { continue };
            let names: Option<Vec<&str>> = names.iter().map(ShellWord::as_plain).collect();
            let name = names.map(|names| format!("{program} {}", names.join(" ")));
            candidates.extend(name.map(|name| SubcommandCandidate { name, arguments: rest }));
        }
    }
    candidates.push(fallback);
    (candidates, finding)
}

fn unknown_subcommand(program: &str, text: &str) -> RiskFinding {
    let reason = format!("the subcommand of `{program}` is unknown: `{text}`");
    RiskFinding::new(Risk::Unknown, reason)
}

/// Certainty of `find_subcommand` about the position of the subcommand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubcommandCertainty {
    Certain,
    Uncertain,
}

/// Finds the position of the subcommand after the program's own options.
fn find_subcommand(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    words: &[ShellWord],
    finding: &mut RiskFinding,
) -> (usize, SubcommandCertainty) {
    let options = programs::options_before_subcommand(program);
    let mut index = 0;
    let mut certainty = SubcommandCertainty::Certain;
    while let Some(word) = words.get(index) {
        let text = word.text();
        if text.starts_with('+') {
            finding.merge(RiskFinding::new(
                Risk::WorkspaceWrite,
                format!("`{text}` selects what runs"),
            ));
            index += 1;
            continue;
        }
        if !text.starts_with('-') || matches!(word, ShellWord::Opaque(_)) {
            break;
        }
        let rest = words.get(index..).unwrap_or_default();
        let parsed = option_grammar::parse_arguments(options, rest.get(..2).unwrap_or(rest));
        let Some(ParsedArgument::Option { name, safety, value_kind, value }) =
            parsed.into_iter().next()
        else {
            index += 1;
            continue;
        };
        let is_listed = options
            .split_whitespace()
            .any(|option| option.trim_end_matches([':', '<', '>', '?', '!']) == name);
        let is_bundled =
            name.len() == 2 && text.len() > 2 && value_kind == OptionValueKind::Nothing;
        if !is_listed || is_bundled {
            certainty = SubcommandCertainty::Uncertain;
            finding
                .merge(RiskFinding::new(Risk::WorkspaceWrite, format!("unknown option `{text}`")));
        }
        if safety == OptionSafety::NotHarmless && text != "--version" {
            finding.merge(RiskFinding::new(
                Risk::WorkspaceWrite,
                format!("`{name}` can change what runs"),
            ));
        }
        if let Some(setting) = &value
            && defines_what_runs(program, &name, setting.text())
        {
            let reason = format!("`{name} {}` defines what `{program}` runs", setting.text());
            finding.merge(RiskFinding::new(Risk::Unknown, reason));
        }
        if let (OptionValueKind::ReadPath | OptionValueKind::WrittenPath, Some(path)) =
            (value_kind, &value)
        {
            finding.merge(run_context.path_context.evaluate_word(
                run_context.folders,
                path,
                PathUse::Read,
            ));
        }
        let is_separate_value =
            value.is_some_and(|value| rest.get(1) == Some(&value) && text == name);
        index += if is_separate_value { 2 } else { 1 };
    }
    (index, certainty)
}

/// Beginnings and endings of git settings that name programs or change what a subcommand means.
const GIT_PROGRAM_SETTINGS: [&str; 16] = [
    "alias.",
    "core.",
    "pager.",
    "include.",
    "includeif.",
    "credential.",
    "filter.",
    "gpg.",
    "diff.external",
    "sequence.",
    "ssh.",
    "url.",
    "protocol.",
    "uploadpack.",
    "browser.",
    "man.",
];
const GIT_PROGRAM_SETTING_ENDINGS: [&str; 9] = [
    ".command",
    ".cmd",
    ".program",
    ".textconv",
    ".driver",
    ".helper",
    ".editor",
    ".tool",
    ".path",
];

/// Settings among them that name no program, or a harmless one. An entry without a value stands for
/// every value.
const HARMLESS_GIT_SETTINGS: [&str; 14] = [
    "core.abbrev",
    "core.autocrlf",
    "core.bigfilethreshold",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.quotepath",
    "core.safecrlf",
    "core.editor=true",
    "core.fsmonitor=false",
    "core.pager=",
    "core.pager=cat",
    "core.pager=less",
];

/// Returns true if an option before the subcommand sets which program runs, as in
/// `git -c alias.z='reset --hard' z`.
fn defines_what_runs(program: &str, option: &str, setting: &str) -> bool {
    match (program, option) {
        ("git", "-c" | "--config-env") => {
            let key = setting.split_once('=').map_or(setting, |(key, _)| key);
            let key = key.to_ascii_lowercase();
            let setting = setting.to_ascii_lowercase();
            let is_harmless = HARMLESS_GIT_SETTINGS
                .iter()
                .any(|harmless| *harmless == key || *harmless == setting);
            let names_program = !key.contains('.')
                || GIT_PROGRAM_SETTINGS.iter().any(|start| key.starts_with(start))
                || GIT_PROGRAM_SETTING_ENDINGS.iter().any(|end| key.ends_with(end));
            names_program && !is_harmless
        }
        ("cargo", "--config") => true,
        _ => false,
    }
}

fn evaluate_row(
    run_context: &ProgramRunContext<'_>,
    program: &str,
    row: &ProgramRow,
    candidate: &SubcommandCandidate<'_>,
) -> RiskFinding {
    let (command, words) = (&candidate.name, candidate.arguments);
    let reason = match row.risk {
        Risk::ReadOnly | Risk::ConfinedRead => "it only reads".to_owned(),
        Risk::WorkspaceWrite => format!("`{command}` can change files in the workspace"),
        Risk::Network => format!("`{command}` needs network access"),
        Risk::Destructive => match program {
            "git" => format!("`{command}` can destroy work that is not committed or pushed"),
            "kill" | "pkill" | "killall" | "xkill" => format!("`{command}` ends other programs"),
            _ => format!("`{command}` can destroy data or gain privileges"),
        },
        Risk::OutsideWorkspace => format!("`{command}` can access files outside the workspace"),
        Risk::Unknown | Risk::UnseenScript | Risk::LocalService | Risk::Forbidden => {
            format!("`{command}` can change what later commands do")
        }
    };
    let mut finding = match row.only_downloads_packages {
        true => RiskFinding::package_download(command),
        false => RiskFinding::new(row.risk, reason),
    };
    if row.operands == OperandKind::ExactOptions {
        let is_short = |word: &&ShellWord| word.text().len() <= MAX_NAMED_ARGUMENT_BYTES;
        let argument = words.first().filter(is_short).map(|word| format!(" {}", word.text()));
        let named = format!("{command}{}", argument.unwrap_or_default());
        let reason = format!("`{named}` can change files or run programs");
        finding.merge(RiskFinding::new(row.unknown_argument_risk, reason));
        return finding;
    }
    let arguments = option_grammar::parse_arguments(row.options, words);
    // `--print KIND=FILE` writes a file.
    let writes_file = |word: &ShellWord| word.text().trim_start_matches("--print=").contains('=');
    if program == "rustc" && words.iter().any(writes_file) {
        finding.merge(row.unknown_argument(command, "an output file"));
    }
    // These programs read further arguments from `@FILE`, at any position.
    let is_argument_file = |word: &&ShellWord| word.text().starts_with('@');
    if let Some(word) = words
        .iter()
        .find(is_argument_file)
        .filter(|_| matches!(program, "strings" | "rustc" | "nm" | "readelf" | "objdump"))
    {
        finding.merge(row.unknown_argument(command, word.text()));
    }
    // If the user name is unknown, `ps` reads such a word as other options.
    let may_be_options = |word: &ShellWord| word.text().contains("ux") && word.text().contains('e');
    if program == "ps" && words.iter().any(may_be_options) {
        finding.merge(row.unknown_argument(command, "a mix of options"));
    }
    let mut operands = Vec::new();
    for argument in &arguments {
        match argument {
            ParsedArgument::Option { name, safety, value_kind, value } => {
                if *safety == OptionSafety::NotHarmless {
                    finding.merge(match value {
                        Some(value @ ShellWord::Opaque(_))
                            if option_grammar::is_harmless_option(row.options, name) =>
                        {
                            row.unknown_word(command, value)
                        }
                        Some(_) | None => row.unknown_argument(command, name),
                    });
                }
                let path_use = match value_kind {
                    OptionValueKind::ReadPath => Some(PathUse::Read),
                    OptionValueKind::WrittenPath => Some(PathUse::Write),
                    OptionValueKind::Nothing
                    | OptionValueKind::Text
                    | OptionValueKind::AttachedText => None,
                };
                if let (Some(path_use), Some(path)) = (path_use, value) {
                    finding.merge(run_context.path_context.evaluate_word(
                        run_context.folders,
                        path,
                        path_use,
                    ));
                }
                if let (Some(range), "git", "-L") = (value, program, name.as_str()) {
                    finding.merge(evaluate_line_range(run_context, range.text()));
                }
            }
            ParsedArgument::Operand(word) => {
                // The shell lists the files that a pattern matches, even if the program treats the
                // result as text.
                if matches!(word, ShellWord::Pattern(_)) && row.operands == OperandKind::Text {
                    finding.merge(run_context.path_context.evaluate_word(
                        run_context.folders,
                        word,
                        PathUse::Read,
                    ));
                }
                operands.push(word);
            }
            ParsedArgument::MaybeOption(word) => {
                finding.merge(run_context.path_context.evaluate_word(
                    run_context.folders,
                    word,
                    PathUse::Read,
                ));
                if option_grammar::could_become_harmful(row.options, word.text()) {
                    finding.merge(row.unknown_argument(command, word.text()));
                }
                operands.push(word);
            }
            ParsedArgument::Opaque(word) => {
                finding.merge(row.unknown_word(command, word));
                operands.push(word);
            }
        }
    }
    finding.merge(evaluate_operands(run_context, program, row, &arguments, &operands));
    finding
}
