//! What is known about programs, as rows of a table.
//!
//! Each row has examples, and a test holds it to them. Start reading at [`rows`].

mod everyday;
mod git;
mod reach;
mod text;
mod tools;

use super::grammar::{Row, width};
use std::collections::HashMap;
use std::sync::LazyLock;

/// All rows by the name of their program.
static ROWS: LazyLock<HashMap<&'static str, Vec<(&'static str, &'static Row)>>> =
    LazyLock::new(|| {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for row in all() {
            for name in row.name.split('|') {
                let program = name.split(' ').next().unwrap_or(name);
                rows.entry(program).or_default().push((name, row));
            }
        }
        rows
    });

/// How many unknown options before a subcommand are tried.
const MOST: usize = 16;

/// Every row there is.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    let tables = [everyday::ROWS, text::ROWS, git::ROWS, tools::ROWS, reach::ROWS];
    tables.into_iter().flatten()
}

/// The rows about a program, each with the name it goes by: `git`, `git log` or `git stash list`.
pub(super) fn rows(program: &str) -> &'static [(&'static str, &'static Row)] {
    ROWS.get(program).map_or(&[], Vec::as_slice)
}

/// Where the subcommand of a program may begin, if options stand before it.
pub(super) fn subcommands(program: &str, words: &[String]) -> Vec<usize> {
    let options = before_subcommand(program);
    if options.is_empty() && !rows(program).iter().any(|(name, _)| name.contains(' ')) {
        return Vec::new();
    }
    let (mut at, mut starts) = (0, Vec::new());
    while let Some(text) = words.get(at).filter(|text| text.starts_with(['-', '+'])) {
        at += match width(options, text) {
            Some(width) => width,
            None => {
                // What follows is its value, or not.
                starts.push(at.saturating_add(2));
                1
            }
        };
        if starts.len() > MOST {
            break;
        }
    }
    starts.extend((at > 0).then_some(at));
    starts.retain(|start| *start < words.len());
    starts
}

/// The options that may stand between a program and its subcommand.
pub(super) fn before_subcommand(program: &str) -> &'static str {
    match program {
        "git" => {
            "--no-pager -P --version --help! -C<! -c:! --git-dir<! --work-tree<! --namespace:! \
             --exec-path?! --config-env:! --attr-source:! --bare! -p! --paginate!"
        }
        "cargo" => {
            "-q --quiet -v --verbose --offline --locked --frozen --color: --config:! -Z:! -C<!"
        }
        "npm" | "pnpm" | "yarn" => {
            "-s --silent --json -r! --recursive! -C<! --prefix<! --cwd<! -w:! --workspace:! \
             --filter:! -F:!"
        }
        "docker" | "podman" => "-H:! --host:! --context:! -c:! --config<! -l:! --log-level:!",
        "kubectl" | "helm" => "-n:! --namespace:! --context:! --kubeconfig<! -s:! --server:!",
        "pip" | "pip3" => "-q -v --no-input --disable-pip-version-check",
        "gh" | "terraform" | "tofu" => "-R:! --repo:! -chdir:!",
        _ => "",
    }
}
