//! The program table: known facts about programs, as rows.
//!
//! Each row has examples, and a test checks the row against them. Start reading at
//! [`rows_for_program`].

mod dangerous;
mod dev_tools;
mod git;
mod inspection_tools;
mod text_tools;

use super::option_grammar::option_word_count;
use super::program_row::ProgramRow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// All rows of `all_rows`, by program name.
static ROWS_BY_PROGRAM: LazyLock<HashMap<&'static str, Vec<(&'static str, &'static ProgramRow)>>> =
    LazyLock::new(|| {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for row in all_rows() {
            for name in row.names.split('|') {
                let program = name.split(' ').next().unwrap_or(name);
                rows.entry(program).or_default().push((name, row));
            }
        }
        rows
    });

/// Limits the unknown options before a subcommand that are tried.
const MAX_UNKNOWN_OPTIONS: usize = 16;

/// Returns all rows.
pub(super) fn all_rows() -> impl Iterator<Item = &'static ProgramRow> {
    let tables = [
        inspection_tools::INSPECT_ROWS,
        text_tools::TEXT_ROWS,
        git::GIT_ROWS,
        dev_tools::DEV_TOOL_ROWS,
        dangerous::DANGEROUS_ROWS,
    ];
    tables.into_iter().flatten()
}

/// Returns the rows about a program, each with its full name: `git`, `git log` or `git stash list`.
pub(super) fn rows_for_program(program: &str) -> &'static [(&'static str, &'static ProgramRow)] {
    ROWS_BY_PROGRAM.get(program).map_or(&[], Vec::as_slice)
}

/// Returns the positions at which the subcommand may begin, if options precede it.
pub(super) fn subcommand_starts(program: &str, words: &[String]) -> Vec<usize> {
    let options = options_before_subcommand(program);
    if options.is_empty() && !rows_for_program(program).iter().any(|(name, _)| name.contains(' ')) {
        return Vec::new();
    }
    let mut index = 0;
    let mut starts = Vec::new();
    while let Some(text) = words.get(index).filter(|text| text.starts_with(['-', '+'])) {
        index += match option_word_count(options, text) {
            Some(word_count) => word_count,
            None => {
                // The next word may be the value of the unknown option, or not.
                starts.push(index.saturating_add(2));
                1
            }
        };
        if starts.len() > MAX_UNKNOWN_OPTIONS {
            break;
        }
    }
    starts.extend((index > 0).then_some(index));
    starts.retain(|start| *start < words.len());
    starts
}

/// Returns the options that may precede the subcommand of a program.
pub(super) fn options_before_subcommand(program: &str) -> &'static str {
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
