//! The table of wrapper programs whose options precede the command they run.

use super::risk::Risk;

/// A wrapper program whose options precede the command it runs.
pub(super) struct WrapperProgram {
    pub(super) names: &'static str,
    pub(super) options: &'static str,
    /// The number of operands before the command.
    pub(super) skipped_words: usize,
    pub(super) min_risk: Risk,
}

pub(super) const WRAPPER_ROWS: &[WrapperProgram] = &[
    WrapperProgram {
        names: "timeout|gtimeout",
        options: "-s: -k: -v --signal: --kill-after: --foreground --preserve-status --verbose",
        skipped_words: 1,
        min_risk: Risk::ReadOnly,
    },
    WrapperProgram {
        names: "nice",
        options: "-NUM -n: --adjustment:",
        skipped_words: 0,
        min_risk: Risk::ReadOnly,
    },
    WrapperProgram {
        names: "ionice",
        options: "-c: -n: -t",
        skipped_words: 0,
        min_risk: Risk::ReadOnly,
    },
    WrapperProgram {
        names: "stdbuf|unbuffer",
        options: "-i: -o: -e: --input: --output: --error:",
        skipped_words: 0,
        min_risk: Risk::ReadOnly,
    },
    WrapperProgram { names: "time", options: "-p", skipped_words: 0, min_risk: Risk::ReadOnly },
    WrapperProgram {
        names: "command|builtin",
        options: "",
        skipped_words: 0,
        min_risk: Risk::ReadOnly,
    },
    WrapperProgram {
        names: "nohup|setsid|caffeinate",
        options: "",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "exec",
        options: "-c -l -a:",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "chrt|taskset",
        options: "-c",
        skipped_words: 1,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "busybox|toybox",
        options: "",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "strace|ltrace",
        options: "-f -o: -e: -p: -s: -c -t -v -y",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "sudo|doas|pkexec|runuser",
        options: "-n -E -H -S -i -s -k -b -u: -g: -h: -p: -C: --user: --group:",
        skipped_words: 0,
        min_risk: Risk::Destructive,
    },
    WrapperProgram {
        names: "flock",
        options: "-n -s -x -e -u -w: -E: -o -F --nonblock --nb --shared --exclusive --unlock --wait: \
                  --timeout: --close --no-fork",
        skipped_words: 1,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "watch",
        options: "-n: -d -t -x -g -e -b -c --interval: --differences --no-title --exec --color",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "fakeroot|chronic|numactl|prlimit|choom|xvfb-run|valgrind|perf stat|perf record",
        options: "-a -d -n: -p: -q -v -r: -e: -o: -m: -N: -C: --auto-servernum --quiet --repeat: \
                  --leak-check: --error-exitcode: --membind: --cpunodebind:",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "setpriv|runcon",
        options: "",
        skipped_words: 0,
        min_risk: Risk::Destructive,
    },
    WrapperProgram {
        names: "poetry run|uv run|pipenv run|pdm run|bundle exec|pnpm exec|yarn exec",
        options: "-q --quiet --frozen --locked --offline --no-sync",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram {
        names: "npx|npm exec",
        options: "-y -q --yes --no --no-install --quiet",
        skipped_words: 0,
        min_risk: Risk::WorkspaceWrite,
    },
    WrapperProgram { names: "chroot", options: "", skipped_words: 1, min_risk: Risk::Destructive },
    WrapperProgram {
        names: "unshare|nsenter",
        options: "-r -m -n -p -u -U -i -f --fork --user --map-root-user --mount --net --pid",
        skipped_words: 0,
        min_risk: Risk::Destructive,
    },
    WrapperProgram {
        names: "xargs|gxargs",
        options: "-0 -r -t -x -n: -P: -I: -L: -s: -d: -E: -a< --null --no-run-if-empty --max-args: \
                  --max-procs: --delimiter: --verbose --arg-file<",
        skipped_words: 0,
        min_risk: Risk::ReadOnly,
    },
];

/// Tools that `npx` finds in the project instead of downloading them.
#[rustfmt::skip]
pub(super) const NPX_LOCAL_TOOLS: &[&str] = &[
    "tsc", "eslint", "prettier", "jest", "vitest", "tsx", "ts-node", "mocha", "playwright",
    "cypress", "webpack", "vite", "rollup", "esbuild", "next", "nx", "turbo", "biome", "stylelint",
    "c8", "nyc", "ava", "tap", "karma", "lint-staged",
];
