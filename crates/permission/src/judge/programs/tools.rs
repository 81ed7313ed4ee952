//! Tools of languages: what they tell, and what they build.

use crate::judge::class::Class;
use crate::judge::grammar::{Operands, Row};

// Some that only tell something are steered by files of the repository, such as `.mvn` or
// `.cargo/config.toml`. They stay, because what only looks runs where it cannot write or connect.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "cargo|rustc|rustfmt|rustdoc|rustup|node|npm|npx|bun|deno|tsc|eslint|prettier|\
            python|python3|pip|pip3|ruff|black|mypy|uv|poetry|ruby|gem|bundle|perl|php|composer|\
            go|java|javac|gcc|g++|cc|c++|clang|clang++|ld|ar|make|cmake|ninja|meson|gradle|mvn|\
            dotnet|swift|dune|opam|cabal|ghc|stack|elixir|mix|tar|gzip|zip|unzip|xz|zstd|curl|\
            wget|protoc|openssl|sqlite3|psql|mysql|redis-cli|pandoc|helm|tofu|nvim|vim|gdb|lldb|\
            valgrind|just|nix",
        options: "--version",
        operands: Operands::Exactly,
        matches: &["cargo --version", "python3 --version", "gcc --version"],
        passes: &[
            "node", "cargo build", "make -n", "python3 --version x.py", "pytest --version",
            "python3 -v", "ninja -v",
        ],
        ..Row::READ
    },
    Row {
        name: "cargo|rustc|rustup|node|npm|npx|go|gcc|clang|make|cmake|gradle|mvn|tsc|docker|\
            terraform|tar|curl|wget",
        options: "--help",
        operands: Operands::Exactly,
        matches: &["cargo --help", "make --help"], passes: &["pytest --help", "npm run x --help"],
        ..Row::READ
    },
    Row {
        name: "node|npm|mvn|gradle|make|gcc|clang|tsc|perl|php|gem|bundle",
        options: "-v",
        operands: Operands::Exactly,
        matches: &["mvn -v", "make -v", "node -v"], passes: &["perl -v x"],
        ..Row::READ
    },
    Row {
        name: "cargo|rustc|rustup|python|python3|pip|pip3|deno|curl|wget",
        options: "-V",
        operands: Operands::Exactly,
        matches: &["cargo -V", "python3 -V"], passes: &["python3 -V x.py", "ctest -V"],
        ..Row::READ
    },
    Row {
        name: "java|javac",
        options: "-version",
        operands: Operands::Exactly,
        matches: &["java -version"], passes: &["java -version -jar x"],
        ..Row::READ
    },
    Row {
        name: "docker|podman|kubectl|terraform|gh|aws|gcloud|az|brew|apt|apt-get",
        options: "--version --help -version -v",
        operands: Operands::Exactly,
        otherwise: Class::Network,
        matches: &["docker --version"],
        passes: &["docker ps", "kubectl get pods", "terraform plan"],
        ..Row::READ
    },
    Row {
        name: "terraform version|go version|rustup show|rustup toolchain list|rustup target list|\
            rustup component list|npm root|npm prefix|npm bin|npm help|cargo version",
        options: "-json --json --installed --help",
        operands: Operands::None,
        matches: &["terraform version", "go version", "rustup show"], passes: &["rustup show x"],
        ..Row::READ
    },
    Row {
        name: "kubectl version",
        options: "--client --output: -o:",
        operands: Operands::None,
        when: "--client",
        otherwise: Class::Network,
        matches: &["kubectl version --client"], passes: &["kubectl version", "kubectl version -o --client"],
        ..Row::READ
    },
    Row {
        name: "cargo build|cargo check|cargo test|cargo run|cargo search|cargo add|cargo install|\
            cargo update|cargo clippy|cargo fmt|cargo doc|cargo bench|cargo tree|cargo metadata|\
            cargo publish|go vet|go build|go test|go get|npm install|npm run|npm test|npm ci|\
            pip install|pip list|rustup update",
        options: "--help -h",
        operands: Operands::Exactly,
        matches: &["cargo search --help", "go vet --help"],
        passes: &["cargo run -- --help", "npm run x --help"],
        ..Row::READ
    },
    Row {
        name: "cargo tree|cargo metadata|cargo pkgid|cargo locate-project|cargo read-manifest|\
            cargo verify-project",
        options: "-p: -d -e: -i? -f: -q -v -F: --package: --depth: --duplicates --edges: \
            --invert? --prefix: --no-dedupe \
            --charset: --format: --format-version: --no-deps --filter-platform: --all-features \
            --features: \
            --no-default-features --workspace --target: --locked --offline --frozen --color: \
            --message-format: \
            --exclude: --prune: --all-targets --help",
        operands: Operands::Text,
        matches: &[
            "cargo tree -d", "cargo tree -p serde --depth 1",
            "cargo metadata --format-version 1 --no-deps",
        ],
        passes: &[
            "cargo --config a=b tree", "cargo tree --config a=b",
            "cargo tree --manifest-path /root/x",
        ],
        ..Row::READ
    },
    Row {
        name: "rustc",
        options: "--print: --edition: --target: --crate-type: -vV --explain: -V --version",
        operands: Operands::None,
        when: "--print --explain -vV",
        matches: &["rustc --print cfg", "rustc -vV", "rustc --explain E0308"],
        passes: &[
            "rustc --print cfg=.git/x", "rustc --print=cfg=x", "rustc --print cfg x.rs",
            "rustc x.rs --print cfg", "rustc --print @x",
        ],
        ..Row::READ
    },
    Row {
        name: "npm ls|npm list|npm ll|npm la|npm explain|npm why|npm pkg get",
        options: "-a -g -l -p --all --depth: --global --json --long --parseable --prod \
            --production --dev --omit: --include:",
        operands: Operands::Text,
        matches: &["npm ls --depth=0", "npm list react", "npm pkg get scripts"],
        passes: &["npm pkg set a=b", "npm ls --prefix /root"],
        ..Row::READ
    },
    Row {
        name: "pip list|pip show|pip freeze|pip check|pip3 list|pip3 show|pip3 freeze|pip3 check",
        options: "-l -f -v --local --user --format: --all --editable --exclude: --not-required \
            --files --verbose",
        operands: Operands::Text,
        matches: &["pip list", "pip show requests", "pip freeze"],
        passes: &["pip list --outdated", "pip freeze -r x"],
        ..Row::READ
    },
    Row {
        name: "go env|go list|go doc",
        options: "-json? -m -f: -deps -test -e -find -compiled! -u! -all -short -src -cmd",
        operands: Operands::Text,
        matches: &["go env GOPATH", "go list ./...", "go list -m all"],
        passes: &["go env -w A=b", "go list -toolexec ./x", "go list -u -m all"],
        ..Row::READ
    },
    Row {
        name: "mkdir|rmdir|touch|truncate|tee|mktemp|shred|split|csplit|patch|ex|ed|unlink|mkfifo",
        operands: Operands::Writes,
        options: "-p -a -v -c -f -m: -d: -t: -s: -n -r: --parents --append --mode: --filter:! \
            --reference:",
        matches: &["mkdir -p src/new/module", "touch src/new/mod.rs"],
        passes: &["touch .git/hooks/x", "tee /root/x", "mkdir ../x"],
        ..Row::WORK
    },
    Row {
        name: "cp|install",
        options: "-t> --target-directory> -S: -m: -o: -g: --suffix: --mode:",
        operands: Operands::ReadsThenWrite,
        matches: &["cp src/a.rs src/b.rs", "cp -r a b"],
        passes: &["cp x .git/config", "cp x ~/.bashrc", "cp /root/x y", "cp -t .vscode x"],
        ..Row::WORK
    },
    Row {
        name: "mv|rename",
        options: "-t> --target-directory> -S: --suffix:",
        operands: Operands::Writes,
        matches: &["mv src/old.rs src/new.rs"], passes: &["mv .git x", "mv x ../y"],
        ..Row::WORK
    },
    Row {
        name: "ln|link",
        options: "-s -f -n -v -r -T -t> --symbolic --force --relative",
        operands: Operands::LastWritten,
        matches: &["ln -s shared/x data"],
        passes: &["ln -s ../shared data", "ln -s / r", "ln -s /home/u/.ssh s", "ln -sf ../x .git/hooks/pre-commit"],
        ..Row::WORK
    },
    Row {
        name: "tar|bsdtar",
        operands: Operands::Writes,
        options: "-f> -C> --file> --directory> --to-command:! --use-compress-program:! -I:! \
            --checkpoint-action:!",
        matches: &["tar czf dist.tar.gz dist"],
        passes: &["tar -xf a.tar -C /root", "tar -cf x ~/.ssh"],
        ..Row::WORK
    },
    Row {
        name: "tar|bsdtar",
        class: Class::Beyond,
        when: "-P --absolute-names --absolute-paths",
        matches: &["tar -xPf a.tar", "tar -x --absolute-names -f a.tar"],
        passes: &["tar xf a.tar"],
        ..Row::WORK
    },
    Row {
        name: "unzip|7z|gunzip|gzip|xz|bzip2|zstd|zip",
        operands: Operands::Writes,
        options: "-d> -o",
        matches: &["unzip -o fixtures.zip -d fixtures"], passes: &["unzip x -d /root"],
        ..Row::WORK
    },
    Row {
        name: "rm",
        options: "-r -R -f -i -I -v -d --recursive --force --dir --verbose --interactive?",
        operands: Operands::Removes,
        matches: &["rm src/old.rs", "rm -rf build/out"],
        passes: &["rm -rf .", "rm -r ../x", "rm .git/config", "rm -rf *", "rm -rf $x"],
        ..Row::WORK
    },
    Row {
        name: "chmod|chown|chgrp|setfacl|chattr",
        options: "-R -v -f -c --recursive --verbose --reference<",
        operands: Operands::Recurses,
        matches: &["chmod +x scripts/run.sh"],
        passes: &["chmod -R 777 /", "chown -R u ..", "chmod +x .git/hooks/x"],
        ..Row::WORK
    },
];
