//! Program rows for programs that inspect files, folders and the machine.

use crate::command_safety::program_row::{OperandKind, ProgramRow};

#[rustfmt::skip]
pub(super) const INSPECT_ROWS: &[ProgramRow] = &[
    ProgramRow {
        names: "ls|dir|vdir",
        options: "* -1 -a -A -b -B -c -C -d -f -F -g -G -h -H -i -I: -k -l -L -m -n -N -o -p -q -Q \
            -r -R -s \
            -S -t -T: -u -U -v -w: -x -X -Z --all --almost-all --author --block-size: --classify? \
            --color? --directory --file-type --format: --full-time --group-directories-first \
            --help --hide: --human-readable --ignore: --indicator-style: --inode --literal \
            --no-group --numeric-uid-gid --quote-name --recursive --reverse --si --size --sort: \
            --time: --time-style: --version --width: --zero",
        examples: &["ls -la src", "ls --color=auto *.toml", "ls -1t -- -x"],
        counterexamples: &["ls --unheard-of", "ls /root", "ls $x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "tree",
        options: "# -a -d -f -l -x -L: -P: -I: -i -q -N -Q -p -u -g -s -h -D -F -v -t -c -U -r -n \
            -C -A -S -J \
            -X --dirsfirst --gitignore --noreport --du --prune --filelimit: --si --inodes --device \
            --sort? --charset: --matchdirs --ignore-case --version --help -o> -R! --fromfile!",
        examples: &["tree -L 2", "tree -L 3 -I 'node_modules|target'"],
        counterexamples: &["tree -o x", "tree --fromfile y", "tree -Lo 2 out.txt", "tree -P * ."],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow { names: "pwd", options: "-L -P", operands: OperandKind::None, examples: &["pwd"], counterexamples: &["pwd x"], ..ProgramRow::READ_ONLY },
    ProgramRow {
        names: "find",
        options: "-H -L -P -amin: -anewer< -atime: -cmin: -cnewer< -ctime: -daystart -depth \
            -empty -executable \
            -false -fstype: -follow -gid: -group: -ilname: -iname: -inum: -ipath: -iregex: \
            -iwholename: \
            -links: -lname: -ls -maxdepth: -mindepth: -mmin: -mount -mtime: -name: -newer< \
            -newermt: \
            -nogroup -noleaf -not -nouser -o -a -and -or -path: -perm: -print -print0 -printf: \
            -prune \
            -quit -readable -regex: -regextype: -samefile< -size: -true -type: -uid: -user: -used: \
            -wholename: -writable -xdev -xtype: --help --version -fprint> -fprint0> -fls> \
            -fprintf> \
            -delete! -files0-from<!",
        operands: OperandKind::FindExpression,
        examples: &[
            "find src -name '*.rs' -type f", r"find . \( -name a -o -name b \) -not -path './x/*'",
        ],
        counterexamples: &["find . -delete", "find . -fls out", "find . -exec ls {} +", "find . -unknown"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "fd|fdfind",
        options: "-H -I -u -s -i -g -F -a -l -L -p -d: -t: -e: -E: -S: -o: -0 -1 -q --hidden \
            --no-ignore \
            --no-ignore-vcs --unrestricted --case-sensitive --ignore-case --glob --fixed-strings \
            --absolute-path --list-details --follow --full-path --max-depth: --min-depth: \
            --exact-depth: --type: --extension: --exclude: --size: --changed-within: \
            --changed-before: --owner: --color: --max-results: --print0 --quiet --version --help \
            -x! -X! --exec! --exec-batch! --base-directory<! --search-path<!",
        operands: OperandKind::PatternThenReads,
        examples: &["fd -e rs", "fd -t f main src"],
        counterexamples: &["fd -e rs -x rm", "fd x -X cat", "fd --search-path /root x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "stat",
        options: "* -L -f -c: -t --dereference --file-system --format: --printf: --terse --cached: \
            --help --version",
        examples: &["stat -c '%s %n' Cargo.lock"], counterexamples: &["stat --foo x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "file",
        // `-Cmx.png` would compile a file, but commands that only read run without write access.
        options: "*. -b -i -k -L -h -N -r -s -z -0 -F: -e: -P: --brief --mime --mime-type \
            --mime-encoding \
            --keep-going --dereference --no-dereference --extension --separator: --help --version",
        examples: &["file target/release/app", "file *.png"],
        counterexamples: &["file -m magic x", "file -f list", "file -C", "file *"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "du",
        // `--files0-from` and `-X` with a file of this folder reveal at most its lines.
        options: "* -0 -a -A -b -B: -c -d: -D -h -H -k -L -l -m -P -s -S -t: -x --all \
            --apparent-size --block-size: \
            --bytes --total --max-depth: --human-readable --si --summarize --separate-dirs \
            --threshold: --time? --exclude: --one-file-system --null --help --version",
        examples: &["du -sh target", "du -d 1 -h .", "du -sh *"],
        counterexamples: &["du --files0-from=x", "du -sh /root"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "df",
        options: "-a -B: -h -H -i -k -l -P -t: -T -x: --all --block-size: --human-readable \
            --inodes --local \
            --output? --portability --print-type --si --total --type: --help --version",
        operands: OperandKind::Text,
        examples: &["df -h .", "df"], counterexamples: &["df --sync"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "basename|dirname",
        options: "-a -s: -z --multiple --suffix: --zero --help --version",
        operands: OperandKind::Text,
        examples: &["basename src/main.rs .rs", "dirname a/b"], counterexamples: &["basename --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "realpath|readlink",
        options: "-e -m -L -P -q -s -z -f -n -v --canonicalize --canonicalize-existing \
            --canonicalize-missing \
            --no-newline --quiet --relative-to: --relative-base: --strip --no-symlinks --zero \
            --help --version",
        examples: &["realpath src/main.rs", "readlink -f bin/tool"], counterexamples: &["realpath --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum",
        options: "*. -b -t -z -a: -l: --binary --text --tag --zero --algorithm: --help --version",
        examples: &["sha256sum Cargo.lock", "md5sum dist/app.js"], counterexamples: &["sha256sum -c sums"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "date",
        options: "-u -R -I? -d: --utc --universal --date: --iso-8601? --rfc-3339: --rfc-email \
            --help --version \
            -f<! --file<! -r<! --reference<! -s:! --set:!",
        operands: OperandKind::PlusFormats,
        examples: &["date +%Y-%m-%d", "date -u"],
        counterexamples: &["date 010203042030", "date -s 12:00", "date -f x", "date --fil=x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "uname",
        options: "-a -s -n -r -v -m -p -i -o --all --kernel-name --kernel-release --machine \
            --help --version",
        operands: OperandKind::None,
        examples: &["uname -a", "uname -r"], counterexamples: &["uname x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "whoami|hostname|nproc|uptime|arch|tty|logname|groups|lsb_release|sw_vers",
        options: "-p -s -a -r -c -d -i --all --version --help --pretty --since",
        operands: OperandKind::None,
        examples: &["whoami", "hostname", "nproc --all", "uptime"],
        counterexamples: &["hostname evil", "hostname -F x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "which|type|whereis",
        options: "-a -t -p -P -f -s -b -m --all --version --help",
        operands: OperandKind::Text,
        examples: &["which cargo node python3", "type git", "which -a python"],
        counterexamples: &["which --odd x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "free|lscpu|lsblk|vmstat|lsmod|lspci|lsusb",
        options: "-h -b -k -m -g -t -w -a -e? -p? -J -l -o: --human --total --wide --json --all \
            --version --help",
        operands: OperandKind::None,
        examples: &["free -h", "lscpu"], counterexamples: &["free --odd", "lscpu x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "pstree|pgrep",
        options: "-A -a -f -l -n -o -p -u: -U: -g: -t: -T -x -c -s --version --help",
        operands: OperandKind::Text,
        examples: &["pgrep -f node", "pstree -p"], counterexamples: &["pgrep --odd"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "ps",
        options: "-A -a -d -e -f -F -j -l -L -o: -O: -p: -u: -U: -C: -g: -t: -T -w -y -H -M -N \
            -x -c -n -s \
            --forest --sort: --no-headers --pid: --ppid: --user: --format: --version --help",
        operands: OperandKind::PsColumns,
        examples: &["ps aux", "ps -ef", "ps -eo pid,cmd"],
        counterexamples: &["ps --odd", "ps e", "ps auxe", "ps axEww", "ps -auxe"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "env|printenv|locale",
        options: "-0 -a -m --null --version --help",
        operands: OperandKind::Text,
        examples: &["env", "printenv PATH"], counterexamples: &["env X=1", "printenv --odd"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "true|false|:|echo",
        options: "* -n -e -E",
        operands: OperandKind::Text,
        examples: &["true", "echo done", "echo -n 'a; rm -rf /'", "echo ---"], counterexamples: &["echo $(x)"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "printf",
        operands: OperandKind::Text,
        examples: &[r"printf '%s\n' one two"], counterexamples: &["printf -v x 1"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "test|[",
        options: "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S -eq \
            -ne -lt -le -gt -ge -nt -ot -ef",
        operands: OperandKind::TestExpression,
        examples: &["test -f Cargo.toml", "[ -d node_modules ]", "[ a = b ]"],
        counterexamples: &["test -v x", "[ -f /root/x ]"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "seq|sleep|help",
        options: "-f: -s: -w -d -m --format: --separator: --equal-width --help --version",
        operands: OperandKind::Text,
        examples: &["seq 1 10", "sleep 1", "help cd"], counterexamples: &["seq --odd 1"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "command",
        options: "-v -V",
        operands: OperandKind::Text,
        condition: "-v -V",
        examples: &["command -v rg"], counterexamples: &["command -p rg"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "man",
        options: "-w -W --where --path --location",
        operands: OperandKind::Text,
        condition: "-w -W --where --path",
        examples: &["man -w ls"], counterexamples: &["man -w -P ./x ls", "man ls", "man /etc/passwd -- -w"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "cd",
        options: "-L -P",
        examples: &["cd src", "cd"], counterexamples: &["cd /root", "cd -e x"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "ss|netstat",
        options: "-a -l -t -u -x -w -n -p -e -m -i -o -s -r -4 -6 -H -O --all --listening --tcp --udp \
            --unix --numeric --processes --extended --memory --info --summary --ipv4 --ipv6 --route \
            --no-header --oneline",
        operands: OperandKind::Text,
        examples: &["ss -ltn", "ss -tlnp 'sport = :3000'", "netstat -tln"],
        counterexamples: &["ss -K dst 1.2.3.4", "ss -D out"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "nm|readelf|objdump",
        options: "-a -A -C -d -D -e -f -g -h -l -n -p -r -R -s -S -t -T -u -V -w -W -x -z -j: -M: --all \
            --all-headers --debug-syms --defined-only --demangle? --disassemble? --disassemble-all \
            --dynamic --dyn-syms --dynamic-reloc --dynamic-syms --extern-only --file-header \
            --file-headers --full-contents --headers --line-numbers --no-demangle \
            --no-show-raw-insn --notes --numeric-sort --print-size --private-headers \
            --program-headers --reloc --relocs --section-headers --sections --section: --segments \
            --size-sort --start-address: --stop-address: --symbols --syms --undefined-only \
            --version-info --wide",
        examples: &["nm -C build/libcore.a", "readelf -d app", "objdump -d app --no-show-raw-insn"],
        counterexamples: &["nm --plugin evil.so a.o", "objdump @options", "objdump --dwarf=follow-links app"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "pkg-config|pkgconf",
        options: "--atleast-version: --cflags --cflags-only-I --errors-to-stdout --exact-version: \
            --exists --libs --libs-only-L --libs-only-l --list-all --max-version: --modversion \
            --print-errors --print-provides --print-requires --print-variables --short-errors \
            --silence-errors --static --variable: --version",
        operands: OperandKind::Text,
        examples: &["pkg-config --cflags --libs zlib"],
        counterexamples: &["pkg-config --define-variable=prefix=/x zlib", "pkg-config --log-file=x zlib"],
        ..ProgramRow::READ_ONLY
    },
    ProgramRow {
        names: "unzip",
        options: "-l -v -q",
        condition: "-l",
        examples: &["unzip -l build/libs/app.jar"],
        counterexamples: &["unzip -l a.zip -d /root", "unzip a.zip"],
        ..ProgramRow::READ_ONLY
    },
];
