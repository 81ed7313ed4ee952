//! Approval templates: the kinds of commands that a permanent approval may cover.
//!
//! A template is the start of a command line whose further arguments cannot change the kind of the
//! command, such as `cargo test *`. Interpreters and wrappers have none, because any of their
//! arguments may be another program.

use super::CommandVerdict;
use super::option_grammar::{self, OptionSafety, ParsedArgument};
use crate::PathLookup;
use crate::shell::{self, CommandOrScopeBoundary, ShellWord};

/// Command prefixes that have a template, with the options that keep the kind.
const APPROVAL_TEMPLATES: &[(&str, &str)] = &[
    (
        "cargo test|cargo build|cargo check|cargo clippy|cargo doc|cargo bench|cargo nextest run",
        "-p: -q -v -j: -F: -r --package: --workspace --all --all-targets --all-features --features: \
         --no-default-features --lib --bins --bin: --tests --test: --examples --example: --benches \
         --doc --no-run --no-fail-fast --no-deps --release --profile: --locked --offline --frozen \
         --jobs: --quiet --verbose --message-format: --color: --keep-going",
    ),
    ("cargo fmt", "-p: --all --check --package: -q --quiet"),
    (
        "pytest|python3 -m pytest|python -m pytest",
        "-x -q -v -s -k: -m: -l --lf --ff --maxfail: --tb: --durations: -n: --collect-only",
    ),
    (
        "go test|go build|go vet",
        "-v -run: -count: -short -race -timeout: -cover -bench: -benchmem -failfast -parallel: -list: -cpu:",
    ),
    (
        "npm test|pnpm test|yarn test|bun test|npm run|pnpm run|yarn run|bun run",
        "-s --silent --if-present",
    ),
    ("git commit", "-m: -a -q -v -s --message: --all --quiet --verbose --signoff --allow-empty"),
    ("git add", "-A -u -v -n --all --update --verbose --dry-run"),
    ("vitest run|jest", "-t: --silent --verbose --bail"),
    ("gradle test|gradle build", "-q --quiet --offline --info --tests:"),
    ("mvn test|mvn verify|mvn package|mvn compile", "-q -o -B --quiet --offline --batch-mode"),
    ("dotnet build|dotnet test", "--no-restore --no-build --nologo -c: --configuration: --filter:"),
    ("cmake --build", "-j? --parallel? --target: --config:"),
    ("ctest|ninja", "-j: -R: -V --output-on-failure"),
    ("make", "-j? -k -s -n --jobs? --keep-going --silent"),
    ("ruff check|mypy|flake8|tsc", "--noEmit --strict -q --quiet"),
];

/// Returns the template of a plain command. Returns `None` for a command line that was not fully
/// understood, is denied, contains several commands, or runs a program from the workspace.
pub(super) fn approval_template(
    text: &str,
    verdict: &CommandVerdict,
    path_lookup: &dyn PathLookup,
) -> Option<String> {
    let [segment] = verdict.segments.as_slice() else { return None };
    if !verdict.ambiguities.is_empty() || segment.level == crate::PermissionLevel::Deny {
        return None;
    }
    let words = plain_words(text)?;
    let program_path = words.first().and_then(|program| path_lookup.find_program(program));
    if program_path.is_some_and(|path| {
        path_lookup.resolve_path(&path).starts_with(path_lookup.workspace_root())
    }) {
        return None;
    }
    command_kind(&words).map(|prefix| format!("{prefix} *"))
}

/// Returns the words of a command line that consists of one plain command.
fn plain_words(text: &str) -> Option<Vec<String>> {
    let parsed = shell::parse_command_line(text);
    let [CommandOrScopeBoundary::Command(segment)] = parsed.items.as_slice() else { return None };
    let is_simple =
        segment.assignments.is_empty() && segment.redirects.is_empty() && !segment.has_piped_input;
    if !is_simple || !parsed.ambiguities.is_empty() {
        return None;
    }
    let words: Option<Vec<String>> =
        segment.words.iter().map(|word| word.as_plain().map(str::to_owned)).collect();
    words.filter(|words| !words.is_empty())
}

/// Returns the prefix that a command shares with all commands of its kind.
fn command_kind(words: &[String]) -> Option<&'static str> {
    APPROVAL_TEMPLATES.iter().find_map(|(prefixes, options)| {
        let prefix = prefixes.split('|').find(|prefix| {
            let prefix: Vec<&str> = prefix.split(' ').collect();
            words.get(..prefix.len()).is_some_and(|begin| begin == prefix.as_slice())
        })?;
        let rest = words.get(prefix.split(' ').count()..)?;
        let rest: Vec<ShellWord> = rest.iter().cloned().map(ShellWord::Plain).collect();
        option_grammar::parse_arguments(options, &rest)
            .iter()
            .all(keeps_command_kind)
            .then_some(prefix)
    })
}

/// Returns true if an argument only selects what to build or test. A path must stay beneath the
/// current folder.
fn keeps_command_kind(argument: &ParsedArgument) -> bool {
    match argument {
        ParsedArgument::Option { safety, .. } => *safety == OptionSafety::Harmless,
        ParsedArgument::Operand(word) => {
            let text = word.text();
            !text.starts_with(['/', '~', '-', '+']) && !text.contains("..") && !text.contains('=')
                || text == "./..."
        }
        ParsedArgument::MaybeOption(_) | ParsedArgument::Opaque(_) => false,
    }
}
