//! Program rows for development tools: queries and builds.

use crate::command_safety::program_row::{OperandKind, ProgramRow};
use crate::command_safety::risk::Risk;

// Some programs that only print information obey files of the repository, such as `.mvn` or
// `.cargo/config.toml`. `untrusted_config` makes them require approval in a folder that the user
// does not trust. Elsewhere they run without write access and network, like all commands that only
// read.
#[rustfmt::skip]
pub(super) const DEV_TOOL_ROWS: &[ProgramRow] = &[
    ProgramRow {
        names: "cargo|rustc|rustfmt|rustdoc|rustup|node|npm|npx|bun|deno|tsc|eslint|prettier|\
            python|python3|pip|pip3|ruff|black|mypy|uv|poetry|ruby|gem|bundle|perl|php|composer|\
            go|java|javac|gcc|g++|cc|c++|clang|clang++|ld|ar|make|cmake|ninja|meson|gradle|mvn|\
            dotnet|swift|dune|opam|cabal|ghc|stack|elixir|mix|tar|gzip|zip|unzip|xz|zstd|curl|\
            wget|protoc|openssl|sqlite3|psql|mysql|redis-cli|pandoc|helm|tofu|nvim|vim|gdb|lldb|\
            valgrind|just|nix",
        options: "--version",
        operands: OperandKind::ExactOptions,
        examples: &["cargo --version", "python3 --version", "gcc --version"],
        counterexamples: &[
            "node", "cargo build", "make -n", "python3 --version x.py", "pytest --version",
            "python3 -v", "ninja -v",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cargo|rustc|rustup|node|npm|npx|go|gcc|clang|make|cmake|gradle|mvn|tsc|docker|\
            terraform|tar|curl|wget",
        options: "--help",
        operands: OperandKind::ExactOptions,
        examples: &["cargo --help", "make --help"], counterexamples: &["pytest --help", "npm run x --help"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "node|npm|mvn|gradle|make|gcc|clang|tsc|perl|php|gem|bundle",
        options: "-v",
        operands: OperandKind::ExactOptions,
        examples: &["mvn -v", "make -v", "node -v"], counterexamples: &["perl -v x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cargo|rustc|rustup|python|python3|pip|pip3|deno|curl|wget",
        options: "-V",
        operands: OperandKind::ExactOptions,
        examples: &["cargo -V", "python3 -V"], counterexamples: &["python3 -V x.py", "ctest -V"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "java|javac",
        options: "-version",
        operands: OperandKind::ExactOptions,
        examples: &["java -version"], counterexamples: &["java -version -jar x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "docker|podman|kubectl|terraform|gh|aws|gcloud|az|brew|apt|apt-get",
        options: "--version --help -version -v",
        operands: OperandKind::ExactOptions,
        unknown_argument_risk: Risk::Network,
        examples: &["docker --version"],
        counterexamples: &["docker ps", "kubectl get pods", "terraform plan"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "terraform version|go version|rustup show|rustup toolchain list|rustup target list|\
            rustup component list|npm root|npm prefix|npm bin|npm help|cargo version",
        options: "-json --json --installed --help",
        operands: OperandKind::None,
        examples: &["terraform version", "go version", "rustup show"], counterexamples: &["rustup show x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "kubectl version",
        options: "--client --output: -o:",
        operands: OperandKind::None,
        condition: "--client",
        unknown_argument_risk: Risk::Network,
        examples: &["kubectl version --client"], counterexamples: &["kubectl version", "kubectl version -o --client"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cargo build|cargo check|cargo test|cargo run|cargo search|cargo add|cargo install|\
            cargo update|cargo clippy|cargo fmt|cargo doc|cargo bench|cargo tree|cargo metadata|\
            cargo publish|go vet|go build|go test|go get|npm install|npm run|npm test|npm ci|\
            pip install|pip list|rustup update",
        options: "--help -h",
        operands: OperandKind::ExactOptions,
        examples: &["cargo search --help", "go vet --help"],
        counterexamples: &["cargo run -- --help", "npm run x --help"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cargo tree|cargo metadata|cargo pkgid|cargo locate-project|cargo read-manifest|\
            cargo verify-project",
        options: "-p: -d -e: -i? -f: -q -v -F: --package: --depth: --duplicates --edges: \
            --invert? --prefix: --no-dedupe \
            --charset: --format: --format-version: --no-deps --filter-platform: --all-features \
            --features: \
            --no-default-features --workspace --target: --locked --offline --frozen --color: \
            --message-format: \
            --exclude: --prune: --all-targets --help",
        operands: OperandKind::Text,
        examples: &[
            "cargo tree -d", "cargo tree -p serde --depth 1",
            "cargo metadata --format-version 1 --no-deps",
        ],
        counterexamples: &[
            "cargo --config a=b tree", "cargo tree --config a=b",
            "cargo tree --manifest-path /root/x",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "rustc",
        options: "--print: --edition: --target: --crate-type: -vV --explain: -V --version",
        operands: OperandKind::None,
        condition: "--print --explain -vV",
        examples: &["rustc --print cfg", "rustc -vV", "rustc --explain E0308"],
        counterexamples: &[
            "rustc --print cfg=.git/x", "rustc --print=cfg=x", "rustc --print cfg x.rs",
            "rustc x.rs --print cfg", "rustc --print @x",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "npm ls|npm list|npm ll|npm la|npm explain|npm why|npm pkg get",
        options: "-a -g -l -p --all --depth: --global --json --long --parseable --prod \
            --production --dev --omit: --include:",
        operands: OperandKind::Text,
        examples: &["npm ls --depth=0", "npm list react", "npm pkg get scripts"],
        counterexamples: &["npm pkg set a=b", "npm ls --prefix /root"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "pip list|pip freeze|pip3 list|pip3 freeze",
        options: "-l -v --local --user --format: --all --editable --exclude: --not-required \
            --verbose",
        operands: OperandKind::Text,
        examples: &["pip list", "pip freeze"],
        counterexamples: &["pip list --outdated", "pip freeze -r x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "pip show|pip check|pip3 show|pip3 check",
        options: "-f -v --files --verbose",
        operands: OperandKind::Text,
        examples: &["pip show requests", "pip show -f requests", "pip check"],
        // `--local` abbreviates `--local-log`.
        counterexamples: &["pip show --local x", "pip check --log x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "go env|go list|go doc",
        options: "-json? -m -f: -deps -test -e -find -compiled! -u! -all -short -src -cmd",
        operands: OperandKind::Text,
        examples: &["go env GOPATH", "go list ./...", "go list -m all"],
        counterexamples: &["go env -w A=b", "go list -toolexec ./x", "go list -u -m all"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "mkdir|rmdir|touch|truncate|tee|mktemp|split|csplit|patch|ex|ed|unlink|mkfifo",
        operands: OperandKind::WritePaths,
        options: "-p -a -v -c -f -m: -d: -t: -s: -n -r: --parents --append --mode: --filter:! \
            --reference:",
        examples: &["mkdir -p src/new/module", "touch src/new/mod.rs"],
        counterexamples: &["touch .git/hooks/x", "tee /root/x", "mkdir ../x"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "cp|install",
        options: "-t> --target-directory> -S: -m: -o: -g: --suffix: --mode:",
        operands: OperandKind::ReadsThenWrite,
        examples: &["cp src/a.rs src/b.rs", "cp -r a b"],
        counterexamples: &["cp x .git/config", "cp x ~/.bashrc", "cp /root/x y", "cp -t .vscode x"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "mv|rename",
        options: "-t> --target-directory> -S: --suffix:",
        operands: OperandKind::WritePaths,
        examples: &["mv src/old.rs src/new.rs"], counterexamples: &["mv .git x", "mv x ../y"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "ln|link",
        options: "-s -f -n -v -r -T -t> --symbolic --force --relative",
        operands: OperandKind::LastIsWritten,
        examples: &["ln -s shared/x data"],
        counterexamples: &["ln -s ../shared data", "ln -s / r", "ln -s /home/u/.ssh s", "ln -sf ../x .git/hooks/pre-commit"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "tar|bsdtar",
        operands: OperandKind::WritePaths,
        options: "-f> -C> --file> --directory> --to-command:! --use-compress-program:! -I:! \
            --checkpoint-action:!",
        examples: &["tar czf dist.tar.gz dist"],
        counterexamples: &["tar -xf a.tar -C /root", "tar -cf x ~/.ssh"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "tar|bsdtar",
        risk: Risk::OutsideWorkspace,
        condition: "-P --absolute-names --absolute-paths",
        examples: &["tar -xPf a.tar", "tar -x --absolute-names -f a.tar"],
        counterexamples: &["tar xf a.tar"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "unzip|7z|gunzip|gzip|xz|bzip2|zstd|zip",
        condition: "!-l",
        operands: OperandKind::WritePaths,
        options: "-d> -o",
        examples: &["unzip -o fixtures.zip -d fixtures"], counterexamples: &["unzip x -d /root"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "rm",
        options: "-r -R -f -i -I -v -d --recursive --force --dir --verbose --interactive?",
        operands: OperandKind::RemovedPaths,
        examples: &["rm src/old.rs", "rm -rf build/out"],
        counterexamples: &["rm -rf .", "rm -r ../x", "rm .git/config", "rm -rf *", "rm -rf $x"],
        ..ProgramRow::WORKSPACE_WRITE
    },
    ProgramRow {
        names: "chmod|chown|chgrp|setfacl|chattr",
        options: "-R -v -f -c --recursive --verbose --reference<",
        operands: OperandKind::RecursivePaths,
        examples: &["chmod +x scripts/run.sh"],
        counterexamples: &["chmod -R 777 /", "chown -R u ..", "chmod +x .git/hooks/x"],
        ..ProgramRow::WORKSPACE_WRITE
    },
];
