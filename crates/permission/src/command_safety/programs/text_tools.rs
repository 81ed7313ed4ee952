//! Program rows for programs that print, search, compare and transform text.

use crate::command_safety::program_row::{OperandKind, ProgramRow};

#[rustfmt::skip]
pub(super) const TEXT_ROWS: &[ProgramRow] = &[
    ProgramRow {
        names: "tac|rev|tsort",
        options: "* --help --version",
        examples: &["tac x", "rev names.txt"], counterexamples: &["tac -s x y", "tac --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "nl",
        options: "* -b: -d: -f: -h: -i: -l: -n: -p -s: -v: -w: --body-numbering: --number-format: \
            --number-width: \
            --number-separator: --help --version",
        examples: &["nl -ba src/main.rs"], counterexamples: &["nl --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "expand|unexpand",
        options: "-i -a -t: --initial --all --tabs: --help --version",
        examples: &["expand -t 4 x"], counterexamples: &["expand --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cat",
        options: "* -A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all \
            --show-ends --show-tabs \
            --show-nonprinting --squeeze-blank --help --version",
        examples: &["cat README.md", "cat -n src/main.rs", "cat *.md", "cat .env.example"],
        counterexamples: &["cat .env", "cat /root/x", "cat ../x", "cat ~/.ssh/id_rsa", "cat .e*"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "head|tail",
        options: "* -NUM -c: -n: -q -v -z -f -F -s: --bytes: --lines: --quiet --silent --verbose \
            --zero-terminated \
            --follow? --retry --pid: --sleep-interval: --help --version",
        examples: &["head -n 50 src/lib.rs", "tail -20 x", "head -c 400 data.bin", "tail -f --help"],
        counterexamples: &["head --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "wc",
        options: "* -c -m -l -L -w --bytes --chars --lines --words --max-line-length --total: \
            --help --version",
        examples: &["wc -l src/*.rs"], counterexamples: &["wc --files0-from=x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "grep|egrep|fgrep",
        options: "* -NUM -a -A: -b -B: -c -C: -d: -D: -e: -E -F -G -h -H -i -I -l -L -m: -n -o -P \
            -q -r -R -s -T -u \
            -U -v -w -x -y -z -Z -f< --after-context: --basic-regexp --before-context: \
            --binary-files: \
            --byte-offset --color? --colour? --context: --count --exclude: --exclude-dir: \
            --exclude-from< --extended-regexp --file< --files-with-matches --files-without-match \
            --fixed-strings --help --ignore-case --include: --initial-tab --invert-match \
            --line-buffered --line-number --line-regexp --max-count: --no-filename \
            --no-ignore-case \
            --no-messages --null --null-data --only-matching --perl-regexp --quiet --recursive \
            --dereference-recursive --regexp: --silent --text --version --with-filename \
            --word-regexp",
        operands: OperandKind::PatternThenReads,
        examples: &[
            "grep -rn --include='*.py' 'def main' .", "grep -A3 -B2 'panic!' src/lib.rs",
            "grep -R 'rm -rf' .",
        ],
        counterexamples: &["grep x /root/y", "grep -f /root/y x", "grep x .env", "grep --reg=x y"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "rg",
        options: "-NUM -A: -a -B: -b -C: -c -E: -e: -F -f< -g: -H -h -I -i -j: -L -l -M: -m: -N \
            -n -o -P -p -q -r: -S \
            -s -T: -t: -U -u -V -v -w -x -0 -. --after-context: --before-context: --binary \
            --case-sensitive --color: --colors: --column --context: --context-separator: --count \
            --count-matches --crlf --debug --encoding: --files --files-with-matches \
            --files-without-match --fixed-strings --follow --glob: --iglob: --heading --help \
            --hidden \
            --ignore-case --ignore-file< --file< --invert-match --json --line-number --line-regexp \
            --max-columns: --max-count: --max-depth: --max-filesize: --multiline \
            --multiline-dotall \
            --no-config --no-filename --no-heading --no-ignore --no-ignore-vcs --no-line-number \
            --no-messages --null --one-file-system --only-matching --passthru --path-separator: \
            --pcre2 --pretty --quiet --regexp: --replace: --smart-case --sort: --sortr: --stats \
            --text --threads: --trim --type: --type-add: --type-not: --type-list --unrestricted \
            --version --vimgrep --with-filename --word-regexp --pre:! --pre-glob:! \
            --hostname-bin:! \
            -z! --search-zip!",
        operands: OperandKind::PatternThenReads,
        examples: &[
            "rg -n 'struct Config' src", "rg --files -g '*.md'",
            "rg -i 'password' --glob '!*.lock' -c",
        ],
        counterexamples: &["rg -A * .", "rg -g * x", "rg --pre ./x p", "rg --hostname-bin=./x p", "rg -z p", "rg p ../other"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "sed|gsed",
        options: "-n -E -r -s -u -z -e: --quiet --silent --regexp-extended --separate \
            --unbuffered --null-data \
            --posix --sandbox --expression: --help --version -i?! --in-place?! -f<! --file<!",
        operands: OperandKind::SedScript,
        examples: &[
            "sed -n '1,80p' src/a.rs", "sed 's/a/b/g' x", "sed -n '/fn a/,/^}/p' x", "sed -ne 5p x",
        ],
        counterexamples: &[
            "sed -n '1e id' f", "sed 's/x/id/e' f", "sed -n '1W x' f", "sed -ni 's/a/b/' f", "sed -f x f",
            "sed -i.bak s/a/b/ f", "sed 'w\tx' f", "sed 's/a/\u{b}/' f", "sed -n 's/[/]w x/p' f", "sed -n p /root/x",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "awk|gawk|mawk|nawk",
        options: "-F: --field-separator: --version --help",
        operands: OperandKind::AwkProgram,
        examples: &[
            "awk '{print $1}' names.txt", "awk 'NR>=10 && NR<=20' x",
            "awk -F: '/x/ {print $1, $NF}' x",
        ],
        counterexamples: &[
            r#"awk 'BEGIN{system("id")}'"#, r#"awk '{print > "x"}' y"#, r#"awk '{print | "sh"}' y"#, "awk -f x y",
            r#"awk 'BEGIN{"id"|getline}'"#, r#"awk '/[/ "]/{system(1)}#"'"#, "awk '{print $1}' /root/x",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "sort",
        options: "-b -c -C -d -f -g -h -i -k: -m -M -n -r -R -s -S: -t: -u -V -z --check? \
            --dictionary-order --field-separator: \
            --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks \
            --key: \
            --month-sort --numeric-sort --parallel: --reverse --stable --sort: --unique \
            --version-sort \
            --zero-terminated --help --version -o> --output> --compress-program:! -T<! \
            --temporary-directory<! --files0-from<!",
        examples: &["sort -rn", "sort -t, -k2 names.txt", "sort -u -- *", "sort u/*"],
        counterexamples: &["sort -t * x", "sort -o x y", "sort --outp=x y", "sort --compress-program=./z y", "sort *"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "uniq",
        options: "-c -d -D -f: -i -s: -u -w: -z --all-repeated? --count --group? --ignore-case \
            --repeated \
            --skip-fields: --skip-chars: --unique --check-chars: --zero-terminated --help \
            --version",
        operands: OperandKind::ReadThenWrite,
        examples: &["uniq -c sorted.txt", "uniq"], counterexamples: &["uniq in.txt out.txt", "uniq u/*"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cut",
        options: "-b: -c: -d: -f: -n -s -z --bytes: --characters: --complement --delimiter: \
            --fields: \
            --only-delimited --output-delimiter: --zero-terminated --help --version",
        examples: &["cut -d, -f1,3 data.csv"], counterexamples: &["cut --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "paste|join",
        options: "-d: -s -z -1: -2: -a: -e: -i -j: -o: -t: -v: --delimiters: --serial \
            --check-order --header --help --version",
        examples: &["paste -d, a.txt b.txt"], counterexamples: &["paste --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "comm|cmp",
        options: "-1 -2 -3 -z -b -i: -l -n: -s --check-order --nocheck-order --output-delimiter: \
            --total \
            --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent --help --version",
        examples: &["comm -12 a.txt b.txt", "cmp a.bin b.bin"], counterexamples: &["comm --odd a b"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "diff",
        options: "-a -b -B -c -C: -d -e -E -i -I: -l! -n -N -p -q -r -s -S: -t -T -u -U: -w -W: \
            -x: -X< -y -Z -NUM \
            --brief --color? --context? --exclude: --exclude-from< --ignore-all-space \
            --ignore-blank-lines --ignore-case --ignore-space-change --ignore-matching-lines: \
            --ignore-trailing-space --label: --minimal --new-file --no-dereference --normal \
            --recursive --report-identical-files --show-c-function --side-by-side \
            --speed-large-files \
            --strip-trailing-cr --suppress-common-lines --text --unified? --width: --help \
            --version \
            --paginate! --to-file<! --from-file<!",
        examples: &["diff -u old/config.yml new/config.yml", "diff -r dir1 dir2"],
        counterexamples: &["diff /etc/shadow x", "diff --paginate a b", "diff -l a b"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "xxd",
        options: "+ -a -b -c: -C -e -E -g: -i -l: -n: -p -ps -s: -u -v -r! -revert!",
        operands: OperandKind::ReadThenWrite,
        examples: &["xxd data.bin", "xxd -l 64 x"], counterexamples: &["xxd -r p.hex bin/tool", "xxd a b", "xxd u/1 -a", "xxd u/*"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "hexdump|hd",
        options: "-b -c -C -d -o -x -v -e: -n: -s: -f< --canonical --length: --skip: --format: \
            --help --version",
        examples: &["hexdump -C data.bin"], counterexamples: &["hexdump --odd x", "hexdump -f /root/x y"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "od",
        options: "-a -b -c -d -f -i -l -o -s -x -v -A: -j: -N: -S: -t: -w? --address-radix: \
            --skip-bytes: \
            --read-bytes: --format: --help --version",
        examples: &["od -c file.txt"], counterexamples: &["od --odd x", "od -s /root/x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "strings",
        options: "-NUM -a -f -o -w -n: -t: -e: -s: --all --bytes: --radix: --encoding: --help \
            --version",
        examples: &["strings -n 8 target/release/app"], counterexamples: &["strings -T x y", "strings @x", "strings -n @x y", "strings *"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "jq|gojq",
        options: "-r -c -n -e -s -S -M -C -j -a -R --raw-output --compact-output --null-input \
            --exit-status \
            --slurp --sort-keys --raw-input --join-output --monochrome-output --color-output --tab \
            --indent: --ascii-output --seq --stream --version --help --from-file<! -f<! -L<!",
        operands: OperandKind::JqFilter,
        examples: &["jq -r '.scripts | keys[]' package.json", "jq length data.json"],
        counterexamples: &[
            "jq 'import \"a\" as a; .' x", "jq -f x y", "jq . .env", "jq --slurpfile a /root/b .",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "yq",
        options: "-r -P -N -o: -p: -I: -M -C -e --prettyPrint --output-format: --input-format: \
            --no-colors \
            --no-doc --unwrapScalar --indent: --version --help -i! --inplace! -s! --split-exp:!",
        operands: OperandKind::JqFilter,
        examples: &["yq '.services' docker-compose.yml"],
        counterexamples: &[
            "yq -i '.a = 1' x", "yq 'load(\"/etc/x\")' y", "yq -s .a x",
            "yq e 'load(\"/home/u/.ssh/id_rsa\")' x",
        ],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "column",
        options: "-t -s: -o: -c: -x -n -e -N: -R: -H: -J --table --separator: \
            --output-separator: --json --help --version",
        examples: &["column -t -s, data.csv"], counterexamples: &["column --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "tr",
        options: "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1 --help \
            --version",
        operands: OperandKind::Text,
        examples: &["tr 'a-z' 'A-Z'", "tr -d x"], counterexamples: &["tr --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "fold",
        options: "-b -s -w: --bytes --spaces --width: --help --version",
        examples: &["fold -w 80 notes.txt"], counterexamples: &["fold --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "less|more|bat|most",
        options: "--version --help -V",
        operands: OperandKind::ExactOptions,
        examples: &["less --version"], counterexamples: &["less x", "less"],
        ..ProgramRow::READ_ONLY
    },
];
