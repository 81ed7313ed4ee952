//! What an answer for always may mean besides this very command: one of its kind.
//!
//! A template is the beginning of a command line whose other arguments cannot change what kind of
//! command it is, such as `cargo test *`. Interpreters, wrappers, git and scripts of a package
//! have none: any argument of theirs may be another program.

use super::Judgement;
use super::grammar::{self, Argument, Known};
use crate::Places;
use crate::shell::{self, Item, Word};

/// The beginnings that have a template, and the options that keep the kind.
const TEMPLATES: &[(&str, &str)] = &[
    (
        "cargo test|cargo build|cargo check|cargo clippy|cargo doc|cargo bench|cargo nextest run",
        "-p: -q -v -j: -F: -r --package: --workspace --all --all-targets --all-features --features: \
         --no-default-features --lib --bins --bin: --tests --test: --examples --example: --benches \
         --doc --no-run --no-fail-fast --no-deps --release --profile: --locked --offline --frozen \
         --jobs: --quiet --verbose --message-format: --color: --keep-going",
    ),
    ("cargo fmt", "-p: --all --check --package: -q --quiet"),
    ("pytest", "-x -q -v -s -k: -m: -l --lf --ff --maxfail: --tb: --durations: -n: --collect-only"),
    (
        "go test|go build|go vet",
        "-v -run: -count: -short -race -timeout: -cover -bench: -benchmem -failfast -parallel: -list: -cpu:",
    ),
    ("npm test|pnpm test|yarn test", ""),
    ("make", "-j? -k -s -n --jobs? --keep-going --silent"),
    ("ruff check|mypy|flake8|tsc", "--noEmit --strict -q --quiet"),
];

/// The kind of a plain command, if it has one. None for what was not understood whole, is denied,
/// stands with others, or comes from the workspace itself.
pub(super) fn template(text: &str, judgement: &Judgement, places: &dyn Places) -> Option<String> {
    let [segment] = judgement.segments.as_slice() else { return None };
    if !judgement.doubts.is_empty() || segment.level == crate::Level::Deny {
        return None;
    }
    let words = plain_words(text)?;
    let found = words.first().and_then(|program| places.program(program));
    if found.is_some_and(|path| places.real(&path).starts_with(places.root())) {
        return None;
    }
    kind(&words).map(|start| format!("{start} *"))
}

/// The words of a command line that is one plain command and nothing else. A word that holds a
/// blank or nothing would read like another command once they are joined.
fn plain_words(text: &str) -> Option<Vec<String>> {
    let reading = shell::read(text);
    let [Item::Command(segment)] = reading.items.as_slice() else { return None };
    let bare = segment.assignments.is_empty() && segment.redirects.is_empty() && !segment.piped;
    if !bare || !reading.doubts.is_empty() {
        return None;
    }
    let words: Option<Vec<String>> =
        segment.words.iter().map(|word| word.plain().map(str::to_owned)).collect();
    let single = |word: &String| !word.is_empty() && !word.contains(char::is_whitespace);
    words.filter(|words| words.iter().all(single) && !words.is_empty())
}

/// The beginning that a command shares with all of its kind.
fn kind(words: &[String]) -> Option<&'static str> {
    TEMPLATES.iter().find_map(|(starts, options)| {
        let start = starts.split('|').find(|start| {
            let start: Vec<&str> = start.split(' ').collect();
            words.get(..start.len()).is_some_and(|begin| begin == start.as_slice())
        })?;
        let rest = words.get(start.split(' ').count()..)?;
        let rest: Vec<Word> = rest.iter().cloned().map(Word::Plain).collect();
        grammar::parse(options, &rest).iter().all(keeps).then_some(start)
    })
}

/// True if an argument says only what to build or to test. A path may not lead anywhere else.
fn keeps(argument: &Argument) -> bool {
    match argument {
        Argument::Option { known, .. } => *known == Known::Harmless,
        Argument::Operand(word) => {
            let text = word.text();
            !text.starts_with(['/', '~', '-', '+']) && !text.contains("..") && !text.contains('=')
                || text == "./..."
        }
        Argument::Loose(_) | Argument::Opaque(_) => false,
    }
}
