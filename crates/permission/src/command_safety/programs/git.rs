//! Program rows for git: subcommands that read, and those that destroy data.

use crate::command_safety::program_row::{OperandKind, ProgramRow};
use crate::command_safety::risk::Risk;

/// Options for listing tags, all of them or those that match a pattern.
const TAG_LIST_OPTIONS: &str = "-n? -l --list --sort: --format: --contains: --no-contains: --merged? \
                   --no-merged? --points-at: --column? --no-column --color? -i --ignore-case";

#[rustfmt::skip]
pub(super) const GIT_ROWS: &[ProgramRow] = &[
    ProgramRow {
        names: "git",
        options: "--version",
        operands: OperandKind::ExactOptions,
        examples: &["git --version"], counterexamples: &["git", "git ", "git --help log", "git unheard-of", "git -c a=b --version"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git status",
        options: "-s -b -v -u? -z --short --branch --show-stash --porcelain? --long --verbose \
            --untracked-files? \
            --ignored? --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind \
            --renames --no-renames --find-renames? ",
        examples: &["git status --short", "git status -sb", "git --no-pager status"],
        counterexamples: &[
            "git -c core.fsmonitor=./x status", "git --git-dir=x status", "git -C sub status",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git log|git show|git diff|git whatchanged|git diff-tree|git diff-index|\
            git diff-files|git range-diff",
        options: "-NUM -p -u -s -U? -a -b -w -z -R -r -m -c -t -i -E -F -P -g -l? -n? -S: -G: \
            -L: -M? -C? -B? -D -O< -1 \
            --abbrev? --abbrev-commit --no-abbrev-commit --all --all-match --author: \
            --committer: --grep: \
            --invert-grep --branches? --tags? --remotes? --glob? --exclude? --cached --staged \
            --merge-base \
            --cc --cherry --cherry-mark --cherry-pick --check --color? --no-color --color-moved? \
            --color-words? --combined-all-paths --compact-summary --cumulative --date: \
            --date-order \
            --decorate? --no-decorate --decorate-refs? --diff-algorithm? --diff-filter? \
            --diff-merges? \
            --dirstat? --exit-code --extended-regexp --find-copies? --find-copies-harder \
            --find-object? \
            --find-renames? --first-parent --fixed-strings --follow --format? --full-diff \
            --full-history \
            --full-index --function-context --graph --histogram --ignore-all-space \
            --ignore-blank-lines --ignore-case --ignore-space-at-eol --ignore-space-change \
            --ignore-submodules? --indent-heuristic --inter-hunk-context? --ita-invisible-in-index \
            --left-only --left-right --line-prefix? --max-count: --max-parents? --merges \
            --min-parents? \
            --minimal --minus-n --name-only --name-status --no-ext-diff --no-merges --no-notes \
            --no-patch \
            --no-prefix --no-renames --no-textconv --not --notes? --numstat --oneline --parents \
            --patch --patch-with-stat --patience --perl-regexp --pickaxe-all --pickaxe-regex \
            --pretty? \
            --quiet --raw --reflog --relative? --reverse --right-only --root --shortstat \
            --show-signature! \
            --simplify-by-decoration --since: --after: --until: --before: --skip: --src-prefix? \
            --dst-prefix? --stat? --submodule? --summary --text --topo-order --unified? \
            --walk-reflogs \
            --word-diff? --word-diff-regex? --output> --ext-diff! --textconv! --no-index! \
            --exit-code -q",
        examples: &[
            "git log --oneline -20", "git log --author=alice --since='2 weeks ago' --oneline", "git diff main...HEAD --name-only",
            "git log --follow --oneline -- src/main.rs", "git log -S 'fn apply' --oneline", "git show HEAD:src/main.rs",
            "git diff HEAD~1", "git log --format='%h %s' -5",
        ],
        counterexamples: &[
            "git log --output=x -p", "git log --outpu=x", "git diff --no-index a b", "git diff --ext-diff", "git show --textconv",
            "git diff /etc/shadow x", "git diff -U /etc/shadow x", "git log --format=%G?", "git log *", "git show HEAD:.env",
            "git log --format=%+G?", "git log --format '%-GK'", "git log --pretty='% GS'", "git log -L1,9:.env",
            "git log -- '.e*'", "git diff -- ':(top).env'", "git log --help",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git branch",
        options: "-a -r -v -vv -q -i --all --remotes --list --verbose --show-current --no-color \
            --color? --column? \
            --no-column --abbrev? --no-abbrev --sort: --format: --ignore-case ",
        operands: OperandKind::None,
        condition: "!-l !--list !--contains !--merged !--no-merged !--points-at",
        examples: &["git branch", "git branch -a", "git branch -vv", "git branch --show-current"],
        counterexamples: &[
            "git branch x", "git branch -d x", "git branch --edit-description", "git branch -m a b",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git branch",
        options: "-a -r -v -l -i --all --remotes --list --verbose --contains: --no-contains: \
            --merged? --no-merged? \
            --points-at: --sort: --format: --no-color --color? --ignore-case",
        operands: OperandKind::Text,
        condition: "-l --list --contains --merged --no-merged --points-at",
        examples: &["git branch --list 'v1*'", "git branch --contains HEAD"],
        counterexamples: &[
            "git branch --list -D x", "git branch --format --list newb", "git branch --sort -l newb",
            "git branch -- --list newb", "git branch --sort=signature",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow { names: "git branch", condition: "-D -f --force -M -C", examples: &["git branch -D x", "git branch -M a b"], counterexamples: &["git branch"], ..ProgramRow::DESTRUCTIVE_ACTION },
    ProgramRow {
        names: "git remote",
        options: "-v --verbose",
        operands: OperandKind::None,
        examples: &["git remote -v", "git remote"], counterexamples: &["git remote add x y"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git tag",
        options: TAG_LIST_OPTIONS,
        operands: OperandKind::None,
        condition: "!-l !--list",
        examples: &["git tag", "git tag -n3"], counterexamples: &["git tag v1", "git tag -d v1"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git tag",
        options: TAG_LIST_OPTIONS,
        operands: OperandKind::Text,
        condition: "-l --list",
        examples: &["git tag --list 'v1.*'", "git tag -l"], counterexamples: &["git tag -l -d x", "git tag --format --list v9"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow { names: "git tag", condition: "-d --delete -f --force", examples: &["git tag -d v1"], counterexamples: &["git tag v1"], ..ProgramRow::DESTRUCTIVE_ACTION },
    ProgramRow {
        names: "git ls-files|git ls-tree",
        options: "-c -d -m -o -i -s -u -k -z -t -v -f -x: -X< -r -l -n --cached --deleted \
            --modified --others --ignored \
            --stage --unmerged --killed --directory --no-empty-directory --exclude: \
            --exclude-from< \
            --exclude-standard --exclude-per-directory: --error-unmatch --full-name --full-tree \
            --name-only --name-status --object-only --long --abbrev? --recurse-submodules --eol \
            --deduplicate --format: --with-tree:",
        examples: &["git ls-files '*.rs'", "git ls-tree -r HEAD --name-only"],
        counterexamples: &["git ls-files -X /root/x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git rev-parse|git describe|git merge-base|git rev-list|git name-rev|git show-ref|\
            git for-each-ref|git cherry|git count-objects|git var",
        options: "-NUM -q -v -s -d -h -H -n: --abbrev-ref? --abbrev? --all --always --any \
            --author: --branches? --broken? \
            --candidates: --contains? --count --count? --date-order --debug --dirty? \
            --exact-match --exclude: \
            --first-parent --first-parent --fork-point --format: --git-common-dir --git-dir \
            --glob: --heads \
            --header --human-readable --independent --is-ancestor --is-bare-repository \
            --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --left-right \
            --long --match: \
            --max-count: --merged? --merges --name-only --no-merged? --no-merges --not --objects \
            --octopus \
            --oneline --parents --path-format: --points-at: --pretty? --quiet --reflog --refs: \
            --remotes? \
            --reverse --right-only --left-only --short? --show-cdup --show-prefix \
            --show-superproject-working-tree \
            --show-toplevel --since: --until: --after: --before: --skip: --sort: --symbolic \
            --symbolic-full-name --tags? --tags --topo-order --verify --verbose -l -a",
        operands: OperandKind::Text,
        examples: &[
            "git rev-parse --show-toplevel", "git describe --tags", "git merge-base main HEAD", "git rev-list --count HEAD",
            "git rev-parse --abbrev-ref HEAD",
        ],
        counterexamples: &[
            "git rev-list --use-bitmap-index=x", "git rev-parse --odd", "git for-each-ref --sort signature",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git blame|git annotate",
        options: "-L: -l -t -s -e -f -n -p -w -c -b -M? -C? -S< --abbrev? --color-by-age \
            --color-lines --date: \
            --first-parent --ignore-rev: --ignore-revs-file< --incremental --line-porcelain \
            --porcelain \
            --progress --no-progress --root --score-debug --show-email --show-name --show-number \
            --show-stats --since: --reverse --contents<!",
        examples: &["git blame -L 10,20 src/lib.rs"],
        counterexamples: &["git blame --contents=x f", "git blame --conten /root/x f"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git shortlog",
        options: "-s -n -e -c -w? --summary --numbered --email --group: --committer --format: \
            --since: --until: --all \
            --no-merges --merges --author:",
        examples: &["git shortlog -sn"], counterexamples: &["git shortlog --output=x", "git shortlog *"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git reflog",
        options: "-NUM -p -n: --stat --patch --oneline --date: --format: --all",
        operands: OperandKind::GitRefs,
        examples: &["git reflog", "git reflog HEAD@{1}"],
        counterexamples: &["git reflog expire --all", "git reflog drop", "git reflog write"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git stash list|git stash show|git reflog show|git reflog list|git reflog exists|\
            git worktree list|\
            git submodule status|git submodule summary|git notes list|git notes show|\
            git bisect log|git sparse-checkout list|git bundle list-heads",
        options: "-NUM -p -u -n: -v -z --stat --patch --oneline --name-only --name-status \
            --porcelain --verbose --date: \
            --format: --all --recursive --cached",
        examples: &["git stash list", "git reflog show main", "git worktree list", "git submodule status"],
        counterexamples: &[
            "git stash", "git stash pop", "git worktree add x",
            "git submodule foreach id",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git config",
        options: "-l -z --get --get-all --get-regexp --get-urlmatch --list --show-origin \
            --show-scope --name-only --null \
            --global --local --system --worktree --type: --bool --int --path --default: \
            --includes -f<! --file<! --blob:!",
        operands: OperandKind::GitSetting,
        examples: &["git config --get user.name", "git config --list --show-origin"],
        counterexamples: &[
            "git config user.name x", "git config --get -e", "git config --get --add b c", "git config --list -f /root/x",
            "git config core.fsmonitor --list", "git config --unset a.b",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git grep",
        options: "-NUM -a -i -I -w -v -E -G -P -F -n -l -L -c -h -H -o -p -q -W -z -r -e: -f< \
            -A: -B: -C: -m: --all-match --and \
            --or --not --after-context: --before-context: --basic-regexp --break --cached --color? \
            --column --context: --count --exclude-standard --extended-regexp --files-with-matches \
            --files-without-match --fixed-strings --full-name --function-context --heading \
            --ignore-case \
            --invert-match --line-number --max-count: --max-depth: --name-only --no-color --null \
            --only-matching --perl-regexp --quiet --recurse-submodules --recursive --show-function \
            --text --threads: --untracked --word-regexp -O?! --open-files-in-pager?! --no-index! \
            --textconv! --ext-grep!",
        operands: OperandKind::PatternThenReads,
        examples: &["git grep -n 'TODO'", "git grep -l 'println!' -- '*.rs'"],
        counterexamples: &["git grep -O./x p", "git grep --open=./x p", "git grep --no-index x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git check-ignore|git check-attr|git cat-file|git verify-pack|git fsck|\
            git hash-object",
        options: "-v -q -n -a -p -t -s -e --verbose --quiet --non-matching --no-index --all",
        examples: &["git check-ignore -v target", "git cat-file -p HEAD"],
        counterexamples: &[
            "git cat-file --textconv HEAD:x", "git hash-object -w x", "git hash-object *", "git cat-file *",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "git reset",
        condition: "--hard --merge --keep",
        examples: &["git reset --hard HEAD~3", "git reset --har"], counterexamples: &["git reset HEAD~1"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git clean",
        options: "-e: --exclude:",
        condition: "!-n !--dry-run",
        examples: &[
            "git clean -fdx", "git clean -i", "git clean -fe -n", "git clean -n --no-dry-run -fdx",
            "git clean --no-dry -fn",
        ],
        counterexamples: &["git clean -n", "git clean -ndx"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git rm",
        condition: "-f --force . ./ :/ *",
        examples: &["git rm -rf .", "git rm -r ."], counterexamples: &["git rm src/old.rs"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git read-tree|git checkout-index",
        condition: "-u --reset -f --force",
        examples: &["git read-tree -u HEAD", "git read-tree --reset HEAD", "git checkout-index -f -a"],
        counterexamples: &["git read-tree HEAD"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git checkout",
        options: "-b: -B: --orphan: -t -q --track? --quiet --detach --conflict:",
        operands: OperandKind::GitCheckout,
        examples: &["git checkout main", "git checkout -b x origin/main", "git checkout v1.2"],
        counterexamples: &["git checkout HEAD src", "git checkout src/main.rs", "git checkout HEAD~1 a b"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "git restore",
        options: "-s: --source:",
        condition: "!--staged !-S",
        examples: &["git restore src/main.rs", "git restore -s --staged x"],
        counterexamples: &["git restore --staged src/main.rs"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git restore",
        condition: "-W --worktree",
        examples: &["git restore -SW x", "git restore --staged --worktree x"],
        counterexamples: &["git restore -S x"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git apply",
        risk: Risk::OutsideWorkspace,
        condition: "--unsafe-paths",
        examples: &["git apply --unsafe-paths x.diff"], counterexamples: &["git apply x.diff"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "git checkout|git restore|git switch",
        condition: ". ./ :/ * -f --force --discard-changes -- --ours --theirs --pathspec-from-file",
        examples: &["git checkout -- .", "git checkout -f", "git restore ."],
        counterexamples: &[
            "git checkout -b feature/x", "git switch -c y", "git restore --staged src/main.rs",
        ],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git stash drop|git stash clear|git reflog expire|git reflog delete|git reflog drop|\
            git filter-branch|git filter-repo|git update-ref|git gc|git prune|\
            git worktree remove|git credential|git daemon|git submodule deinit",
        examples: &["git stash clear", "git reflog expire --all"], counterexamples: &["git stash"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git push",
        condition: "-f --force --force-with-lease --mirror --delete -d --prune +… :…",
        examples: &["git push --force", "git push origin +main", "git push origin :x"],
        counterexamples: &["git push origin x"],
        ..ProgramRow::DESTRUCTIVE_ACTION
    },
    ProgramRow {
        names: "git push|git fetch|git pull|git clone|git ls-remote|git remote update|\
            git remote show|git remote prune|git submodule update|git submodule add|\
            git send-email|git svn|git p4|git lfs|git request-pull|git imap-send|git http-fetch|\
            git maintenance",
        examples: &[
            "git fetch", "git push origin feature/x", "git -c a=b clone https://x/y",
            "git ls-remote 'ext::sh -c id'",
        ],
        counterexamples: &["git commit -m push"],
        ..ProgramRow::NETWORK_ACCESS
    },
    ProgramRow {
        names: "git add|git rm|git mv|git apply|git am|git checkout-index|git init",
        operands: OperandKind::WritePaths,
        examples: &["git add -A", "git mv a.rs b.rs"], counterexamples: &["git add /root/x"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow { names: "git remote add", condition: "-f --fetch", examples: &["git remote add -f up https://x.example/y"], counterexamples: &["git remote add up https://x.example/y"], ..ProgramRow::NETWORK_ACCESS },
    ProgramRow { names: "git archive", condition: "--remote", examples: &["git archive --remote=ssh://x.example/y HEAD"], counterexamples: &["git archive -o a.tar HEAD"], ..ProgramRow::NETWORK_ACCESS },
];
