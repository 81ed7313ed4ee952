//! Programs that look at files, folders and the machine.

use crate::judge::grammar::{Operands, Row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "ls|dir|vdir",
        options: "* -1 -a -A -b -B -c -C -d -f -F -g -G -h -H -i -I: -k -l -L -m -n -N -o -p -q -Q \
            -r -R -s \
            -S -t -T: -u -U -v -w: -x -X -Z --all --almost-all --author --block-size: --classify? \
            --color? --directory --file-type --format: --full-time --group-directories-first \
            --help --hide: --human-readable --ignore: --indicator-style: --inode --literal \
            --no-group --numeric-uid-gid --quote-name --recursive --reverse --si --size --sort: \
            --time: --time-style: --version --width: --zero",
        matches: &["ls -la src", "ls --color=auto *.toml", "ls -1t -- -x"],
        passes: &["ls --unheard-of", "ls /root", "ls $x"],
        ..Row::READ
    },
    Row {
        name: "tree",
        options: "# -a -d -f -l -x -L: -P: -I: -i -q -N -Q -p -u -g -s -h -D -F -v -t -c -U -r -n \
            -C -A -S -J \
            -X --dirsfirst --gitignore --noreport --du --prune --filelimit: --si --inodes --device \
            --sort? --charset: --matchdirs --ignore-case --version --help -o> -R! --fromfile!",
        matches: &["tree -L 2", "tree -L 3 -I 'node_modules|target'"],
        passes: &["tree -o x", "tree --fromfile y", "tree -Lo 2 out.txt", "tree -P * ."],
        ..Row::READ
    },
    Row { name: "pwd", options: "-L -P", operands: Operands::None, matches: &["pwd"], passes: &["pwd x"], ..Row::READ },
    Row {
        name: "find",
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
        operands: Operands::Find,
        matches: &[
            "find src -name '*.rs' -type f", r"find . \( -name a -o -name b \) -not -path './x/*'",
        ],
        passes: &["find . -delete", "find . -fls out", "find . -exec ls {} +", "find . -unknown"],
        ..Row::READ
    },
    Row {
        name: "fd|fdfind",
        options: "-H -I -u -s -i -g -F -a -l -L -p -d: -t: -e: -E: -S: -o: -0 -1 -q --hidden \
            --no-ignore \
            --no-ignore-vcs --unrestricted --case-sensitive --ignore-case --glob --fixed-strings \
            --absolute-path --list-details --follow --full-path --max-depth: --min-depth: \
            --exact-depth: --type: --extension: --exclude: --size: --changed-within: \
            --changed-before: --owner: --color: --max-results: --print0 --quiet --version --help \
            -x! -X! --exec! --exec-batch! --base-directory<! --search-path<!",
        operands: Operands::PatternThenReads,
        matches: &["fd -e rs", "fd -t f main src"],
        passes: &["fd -e rs -x rm", "fd x -X cat", "fd --search-path /root x"],
        ..Row::READ
    },
    Row {
        name: "stat",
        options: "* -L -f -c: -t --dereference --file-system --format: --printf: --terse --cached: \
            --help --version",
        matches: &["stat -c '%s %n' Cargo.lock"], passes: &["stat --foo x"],
        ..Row::READ
    },
    Row {
        name: "file",
        // `-Cmx.png` would compile it, but what only looks cannot write where it runs.
        options: "*. -b -i -k -L -h -N -r -s -z -0 -F: -e: -P: --brief --mime --mime-type \
            --mime-encoding \
            --keep-going --dereference --no-dereference --extension --separator: --help --version",
        matches: &["file target/release/app", "file *.png"],
        passes: &["file -m magic x", "file -f list", "file -C", "file *"],
        ..Row::READ
    },
    Row {
        name: "du",
        // `--files0-from` and `-X` of a file of this folder show its lines at most.
        options: "* -0 -a -A -b -B: -c -d: -D -h -H -k -L -l -m -P -s -S -t: -x --all \
            --apparent-size --block-size: \
            --bytes --total --max-depth: --human-readable --si --summarize --separate-dirs \
            --threshold: --time? --exclude: --one-file-system --null --help --version",
        matches: &["du -sh target", "du -d 1 -h .", "du -sh *"],
        passes: &["du --files0-from=x", "du -sh /root"],
        ..Row::READ
    },
    Row {
        name: "df",
        options: "-a -B: -h -H -i -k -l -P -t: -T -x: --all --block-size: --human-readable \
            --inodes --local \
            --output? --portability --print-type --si --total --type: --help --version",
        operands: Operands::Text,
        matches: &["df -h .", "df"], passes: &["df --sync"],
        ..Row::READ
    },
    Row {
        name: "basename|dirname",
        options: "-a -s: -z --multiple --suffix: --zero --help --version",
        operands: Operands::Text,
        matches: &["basename src/main.rs .rs", "dirname a/b"], passes: &["basename --odd x"],
        ..Row::READ
    },
    Row {
        name: "realpath|readlink",
        options: "-e -m -L -P -q -s -z -f -n -v --canonicalize --canonicalize-existing \
            --canonicalize-missing \
            --no-newline --quiet --relative-to: --relative-base: --strip --no-symlinks --zero \
            --help --version",
        matches: &["realpath src/main.rs", "readlink -f bin/tool"], passes: &["realpath --odd x"],
        ..Row::READ
    },
    Row {
        name: "md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum",
        options: "*. -b -t -z -a: -l: --binary --text --tag --zero --algorithm: --help --version",
        matches: &["sha256sum Cargo.lock", "md5sum dist/app.js"], passes: &["sha256sum -c sums"],
        ..Row::READ
    },
    Row {
        name: "date",
        options: "-u -R -I? -d: --utc --universal --date: --iso-8601? --rfc-3339: --rfc-email \
            --help --version \
            -f<! --file<! -r<! --reference<! -s:! --set:!",
        operands: Operands::Formats,
        matches: &["date +%Y-%m-%d", "date -u"],
        passes: &["date 010203042030", "date -s 12:00", "date -f x", "date --fil=x"],
        ..Row::READ
    },
    Row {
        name: "uname",
        options: "-a -s -n -r -v -m -p -i -o --all --kernel-name --kernel-release --machine \
            --help --version",
        operands: Operands::None,
        matches: &["uname -a", "uname -r"], passes: &["uname x"],
        ..Row::READ
    },
    Row {
        name: "whoami|hostname|nproc|uptime|arch|tty|logname|groups|lsb_release|sw_vers",
        options: "-p -s -a -r -c -d -i --all --version --help --pretty --since",
        operands: Operands::None,
        matches: &["whoami", "hostname", "nproc --all", "uptime"],
        passes: &["hostname evil", "hostname -F x"],
        ..Row::READ
    },
    Row {
        name: "which|type|whereis",
        options: "-a -t -p -P -f -s -b -m --all --version --help",
        operands: Operands::Text,
        matches: &["which cargo node python3", "type git", "which -a python"],
        passes: &["which --odd x"],
        ..Row::READ
    },
    Row {
        name: "free|lscpu|lsblk|vmstat|lsmod|lspci|lsusb",
        options: "-h -b -k -m -g -t -w -a -e? -p? -J -l -o: --human --total --wide --json --all \
            --version --help",
        operands: Operands::None,
        matches: &["free -h", "lscpu"], passes: &["free --odd", "lscpu x"],
        ..Row::READ
    },
    Row {
        name: "pstree|pgrep",
        options: "-A -a -f -l -n -o -p -u: -U: -g: -t: -T -x -c -s --version --help",
        operands: Operands::Text,
        matches: &["pgrep -f node", "pstree -p"], passes: &["pgrep --odd"],
        ..Row::READ
    },
    Row {
        name: "ps",
        options: "-A -a -d -e -f -F -j -l -L -o: -O: -p: -u: -U: -C: -g: -t: -T -w -y -H -M -N \
            -x -c -n -s \
            --forest --sort: --no-headers --pid: --ppid: --user: --format: --version --help",
        operands: Operands::Columns,
        matches: &["ps aux", "ps -ef", "ps -eo pid,cmd"],
        passes: &["ps --odd", "ps e", "ps auxe", "ps axEww", "ps -auxe"],
        ..Row::READ
    },
    Row {
        name: "env|printenv|locale",
        options: "-0 -a -m --null --version --help",
        operands: Operands::Text,
        matches: &["env", "printenv PATH"], passes: &["env X=1", "printenv --odd"],
        ..Row::READ
    },
    Row {
        name: "true|false|:|echo",
        options: "* -n -e -E",
        operands: Operands::Text,
        matches: &["true", "echo done", "echo -n 'a; rm -rf /'"], passes: &["echo $(x)"],
        ..Row::READ
    },
    Row {
        name: "printf",
        operands: Operands::Text,
        matches: &[r"printf '%s\n' one two"], passes: &["printf -v x 1"],
        ..Row::READ
    },
    Row {
        name: "test|[",
        options: "-a -b -c -d -e -f -g -h -k -n -o -p -r -s -t -u -w -x -z -G -L -N -O -S -eq \
            -ne -lt -le -gt -ge -nt -ot -ef",
        operands: Operands::Test,
        matches: &["test -f Cargo.toml", "[ -d node_modules ]", "[ a = b ]"],
        passes: &["test -v x", "[ -f /root/x ]"],
        ..Row::READ
    },
    Row {
        name: "seq|sleep|help",
        options: "-f: -s: -w -d -m --format: --separator: --equal-width --help --version",
        operands: Operands::Text,
        matches: &["seq 1 10", "sleep 1", "help cd"], passes: &["seq --odd 1"],
        ..Row::READ
    },
    Row {
        name: "command",
        options: "-v -V",
        operands: Operands::Text,
        when: "-v -V",
        matches: &["command -v rg"], passes: &["command -p rg"],
        ..Row::READ
    },
    Row {
        name: "man",
        options: "-w -W --where --path --location",
        operands: Operands::Text,
        when: "-w -W --where --path",
        matches: &["man -w ls"], passes: &["man -w -P ./x ls", "man ls", "man /etc/passwd -- -w"],
        ..Row::READ
    },
    Row {
        name: "cd",
        options: "-L -P",
        matches: &["cd src", "cd"], passes: &["cd /root", "cd -e x"],
        ..Row::READ
    },
];
