//! Programs whose options stand before the command that they run, as rows of a table.

use super::class::Class;

/// A wrapper whose options stand before the command it runs.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    pub(super) options: &'static str,
    /// How many words stand before the command.
    pub(super) skips: usize,
    pub(super) floor: Class,
}

pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "timeout|gtimeout",
        options: "-s: -k: -v --signal: --kill-after: --foreground --preserve-status --verbose",
        skips: 1,
        floor: Class::Read,
    },
    Wrapper { name: "nice", options: "-NUM -n: --adjustment:", skips: 0, floor: Class::Read },
    Wrapper { name: "ionice", options: "-c: -n: -t", skips: 0, floor: Class::Read },
    Wrapper {
        name: "stdbuf|unbuffer",
        options: "-i: -o: -e: --input: --output: --error:",
        skips: 0,
        floor: Class::Read,
    },
    Wrapper { name: "time", options: "-p", skips: 0, floor: Class::Read },
    Wrapper { name: "command|builtin", options: "", skips: 0, floor: Class::Read },
    Wrapper { name: "nohup|setsid|caffeinate", options: "", skips: 0, floor: Class::Work },
    Wrapper { name: "exec", options: "-c -l -a:", skips: 0, floor: Class::Work },
    Wrapper { name: "chrt|taskset", options: "-c", skips: 1, floor: Class::Work },
    Wrapper { name: "busybox|toybox", options: "", skips: 0, floor: Class::Work },
    Wrapper {
        name: "strace|ltrace",
        options: "-f -o: -e: -p: -s: -c -t -v -y",
        skips: 0,
        floor: Class::Work,
    },
    Wrapper {
        name: "sudo|doas|pkexec|runuser",
        options: "-n -E -H -S -i -s -k -b -u: -g: -h: -p: -C: --user: --group:",
        skips: 0,
        floor: Class::Guard,
    },
    Wrapper {
        name: "flock",
        options: "-n -s -x -e -u -w: -E: -o -F --nonblock --nb --shared --exclusive --unlock --wait: \
                  --timeout: --close --no-fork",
        skips: 1,
        floor: Class::Work,
    },
    Wrapper {
        name: "watch",
        options: "-n: -d -t -x -g -e -b -c --interval: --differences --no-title --exec --color",
        skips: 0,
        floor: Class::Work,
    },
    Wrapper {
        name: "fakeroot|chronic|numactl|prlimit|choom|xvfb-run|valgrind|perf stat|perf record",
        options: "-a -d -n: -p: -q -v -r: -e: -o: -m: -N: -C: --auto-servernum --quiet --repeat: \
                  --leak-check: --error-exitcode: --membind: --cpunodebind:",
        skips: 0,
        floor: Class::Work,
    },
    Wrapper { name: "setpriv|runcon", options: "", skips: 0, floor: Class::Guard },
    Wrapper {
        name: "poetry run|uv run|pipenv run|pdm run|bundle exec|pnpm exec|yarn exec",
        options: "-q --quiet --frozen --locked --offline --no-sync",
        skips: 0,
        floor: Class::Work,
    },
    Wrapper {
        name: "npx|npm exec",
        options: "-y -q --yes --no --no-install --quiet",
        skips: 0,
        floor: Class::Work,
    },
    Wrapper { name: "chroot", options: "", skips: 1, floor: Class::Guard },
    Wrapper {
        name: "unshare|nsenter",
        options: "-r -m -n -p -u -U -i -f --fork --user --map-root-user --mount --net --pid",
        skips: 0,
        floor: Class::Guard,
    },
    Wrapper {
        name: "xargs|gxargs",
        options: "-0 -r -t -x -n: -P: -I: -L: -s: -d: -E: -a< --null --no-run-if-empty --max-args: \
                  --max-procs: --delimiter: --verbose --arg-file<",
        skips: 0,
        floor: Class::Read,
    },
];

/// Tools that npx finds in a project.
#[rustfmt::skip]
pub(super) const LOCAL: &[&str] = &[
    "tsc", "eslint", "prettier", "jest", "vitest", "tsx", "ts-node", "mocha", "playwright",
    "cypress", "webpack", "vite", "rollup", "esbuild", "next", "nx", "turbo", "biome", "stylelint",
    "c8", "nyc", "ava", "tap", "karma", "lint-staged",
];
