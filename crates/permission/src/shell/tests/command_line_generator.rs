//! A generator of random command lines with unusual quoting. They cannot name a real program or a
//! file outside of the folder in which they run.

pub(super) struct TestCommandLineGenerator {
    state: u64,
    heredocs: Vec<String>,
}

const ORDINARY_PARTS: &[&str] = &[
    "a", "b", "c", "ab", "x1", "-n", "--", "--c=b", "a=b", "va=", "=", "%", "@", "+", ",", ".",
    ":", "^", "_", "1", "10", "é", "日本", "a:b", "!", "a#b", "]", "{}", "{a}", "a.b",
];
const UNUSUAL_PARTS: &[&str] = &[
    "#", "~", "*", "?", "[", "[a]", "{", "}", "{a,b}", "{1..3}", "$", "$a", "${a}", "$(p1)",
    "`p1`", "$'a\\n'", "$\"a\"", "~/q/x", "a~", "a=~", ":~", "\\\n", "\\", "\u{a0}", "\u{2003}",
    "\u{1}", "\r", "\u{7f}", "\u{200b}", "(", ")", "<(p1)", "$((1))", "!a", "a[1]=b", "va+=b",
    "[[", "=~", "==", "a\u{b}b", "\u{c}", "\\\t", "\\ ", "$[1]", "$%", "\"$\"", "{a..c}", "a{",
    "}b", "~+", "~a", "-",
];
const QUOTED_PARTS: &[&str] = &[
    "a", "b", " ", "  ", "\t", "\n", "*", "?", "[a]", "~", "#", ";", "&", "|", "&&", "<", ">", "(",
    ")", "{", "}", "{a,b}", "!", "\\", "\\\\", "=", "é", "a b", "-n", "<<A", "p1", "\\a", "\\n",
];
const ESCAPED_PARTS: &[&str] = &[
    "a", " ", "\\", "\"", "'", "$", "`", "*", "~", "#", ";", "&", "|", "<", ">", "(", ")", "{",
    "}", "!", "?", "[", "]", "=", ",", "é", "n", "-", "\t", "%",
];
const SPECIAL_PARTS: &[&str] = &[
    "'", "\"", "\\", "$", "`", ";", "&", "|", "<", ">", "(", ")", "{", "}", "[", "]", "!", "#",
    "~", "*", "?", "=", " ", "\t", "\n", "a", "b", "p1", "p2 ", "1", ",", "\\\n", "<<", "&&", "||",
    "é", "$(", "''", "\"\"", ">&", "<<<", ":", "-", "2", "va=",
];

impl TestCommandLineGenerator {
    pub(super) fn new(seed: u64) -> TestCommandLineGenerator {
        TestCommandLineGenerator { state: seed | 1, heredocs: Vec::new() }
    }

    fn random_below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random_below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.random_below(from.len())]
    }

    pub(super) fn next(&mut self) -> String {
        if self.chance(4) {
            let length = 1 + self.random_below(12);
            return (0..length).map(|_| self.pick(SPECIAL_PARTS)).collect();
        }
        let mut text = self.line(0);
        if !self.heredocs.is_empty() {
            text.push('\n');
            text.extend(std::mem::take(&mut self.heredocs));
            if self.chance(40) {
                text.push_str(&self.command());
                self.append_heredocs(&mut text);
            }
        }
        if self.chance(8) {
            let at = self.random_below(text.chars().count() + 1);
            let special = self.pick(SPECIAL_PARTS);
            let skip = usize::from(self.chance(50));
            let before: String = text.chars().take(at).collect();
            let after: String = text.chars().skip(at + skip).collect();
            text = format!("{before}{special}{after}");
        }
        text
    }

    fn append_heredocs(&mut self, text: &mut String) {
        if !self.heredocs.is_empty() {
            text.push('\n');
            text.extend(std::mem::take(&mut self.heredocs));
        }
    }

    fn line(&mut self, depth: usize) -> String {
        let mut text = self.item(depth);
        for _ in 0..self.random_below(3) {
            let separators =
                ["; ", ";", " && ", "&&", " || ", "||", " | ", "|", "\n", "\n\n", " ;\n", " &&\n"];
            let unusual_separators =
                [" & ", " |& ", " ;; ", "\n# a\n", " # a\n", " ; ; ", " |\n", " ||\n"];
            let separator = match self.chance(4) {
                true => self.pick(&unusual_separators),
                false => self.pick(&separators),
            };
            if separator.contains('\n') && !self.heredocs.is_empty() {
                let mut heredocs = String::from("\n");
                heredocs.extend(std::mem::take(&mut self.heredocs));
                text.push_str(&heredocs);
            } else {
                text.push_str(separator);
            }
            text.push_str(&self.item(depth));
        }
        text
    }

    fn item(&mut self, depth: usize) -> String {
        if depth < 2 && self.chance(8) {
            let inner = self.line(depth + 1);
            let end = if self.heredocs.is_empty() {
                String::new()
            } else {
                format!("\n{}", std::mem::take(&mut self.heredocs).concat())
            };
            let group = match self.random_below(5) {
                0 => format!("({inner}{end})"),
                1 => format!("( {inner}{end} )"),
                2 => format!("{{ {inner}{end}\n}}"),
                3 if end.is_empty() => format!("{{ {inner};}}"),
                _ => format!("! ( {inner}{end} )"),
            };
            return match self.chance(20) {
                true => format!("{group}{}", self.redirect()),
                false => group,
            };
        }
        if self.chance(2) {
            let inner = self.command();
            return match self.random_below(5) {
                0 => format!("if {inner}; then p2; fi"),
                1 => format!("for a in b; do {inner}; done"),
                2 => format!("p9() {{ {inner}; }}"),
                3 => format!("time {inner}"),
                _ => format!("case a in b) {inner};; esac"),
            };
        }
        self.command()
    }

    fn command(&mut self) -> String {
        let mut text = String::new();
        if self.chance(4) {
            text.push_str("! ");
        }
        for _ in 0..[0, 0, 0, 0, 0, 0, 1, 2][self.random_below(8)] {
            let name = self.pick(&["va", "vb", "va", "a"]);
            let value = if self.chance(20) { String::new() } else { self.word() };
            text.push_str(&format!("{name}={value} "));
        }
        if self.chance(4) {
            text.push_str(&self.redirect());
            text.push(' ');
        }
        if !self.chance(3) {
            let number = self.random_below(10);
            text.push_str(&match self.random_below(14) {
                0 => format!("'p{number}'"),
                1 => format!("p\\{number}"),
                2 => format!("\"p\"{number}"),
                3 => format!("p''{number}"),
                4 => format!("\\p{number}"),
                5 => format!("p\\\n{number}"),
                _ => format!("p{number}"),
            });
        }
        for _ in 0..self.random_below(5) {
            let blank = self.pick(&[" ", " ", " ", " ", "  ", "\t", " \\\n", " \\\n "]);
            text.push_str(blank);
            text.push_str(&self.word());
            if self.chance(6) {
                text.push_str(&self.redirect());
            }
        }
        if self.chance(6) {
            text.push_str(&self.heredoc());
        }
        text
    }

    fn redirect(&mut self) -> String {
        let operators = [
            " >", " > ", " 2>", " >>", " <", " < ", " &>", " >|", " 2>&1", " >&", " <<<", " <<< ",
            ">", "<<<", " 2>&1 ", " 1>&2", " >&-", " <&-", " &>>", " <>", " {a}>", " 2> ",
        ];
        let operator = self.pick(&operators);
        match operator.trim().ends_with(['1', '2', '-']) {
            true => operator.to_owned(),
            false => format!("{operator}{}", self.word()),
        }
    }

    fn heredoc(&mut self) -> String {
        let marks = ["A", "'A'", "\"A\"", "\\A", "A'B'", "'A B'", "''", "A-1"];
        let ends = ["A", "A", "A", "A", "AB", "A B", "", "A-1"];
        let mark_index = self.random_below(marks.len());
        let mut body = String::new();
        for _ in 0..self.random_below(3) {
            if self.chance(20) {
                body.push('\t');
            }
            for _ in 0..self.random_below(3) {
                body.push_str(self.pick(QUOTED_PARTS));
                if self.chance(5) {
                    body.push_str(self.pick(&["$a", "`p3`", "\\$", "'", "\"", "$(p3)", "A", " A"]));
                }
            }
            body.push('\n');
        }
        let operator = self.pick(&["<<", " <<", " << ", "<<-", " <<- ", " 0<<"]);
        self.heredocs.push(format!("{body}{}\n", ends[mark_index]));
        let after = match self.chance(30) {
            true => self.redirect(),
            false => String::new(),
        };
        format!("{operator}{}{after}", marks[mark_index])
    }

    fn word(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + [0, 0, 0, 1, 1, 2, 3][self.random_below(7)] {
            match self.random_below(100) {
                0..45 => text.push_str(self.pick(ORDINARY_PARTS)),
                45..50 => text.push_str(self.pick(UNUSUAL_PARTS)),
                50..65 => {
                    text.push('\\');
                    text.push_str(self.pick(ESCAPED_PARTS));
                }
                65..80 => {
                    text.push('\'');
                    for _ in 0..self.random_below(3) {
                        text.push_str(self.pick(QUOTED_PARTS));
                        if self.chance(15) {
                            text.push_str(self.pick(&["\"", "$a", "`", "$(p3)", "\\\n"]));
                        }
                    }
                    text.push('\'');
                }
                _ => {
                    text.push('"');
                    for _ in 0..self.random_below(3) {
                        text.push_str(self.pick(&QUOTED_PARTS[..QUOTED_PARTS.len() - 2]));
                        if self.chance(20) {
                            text.push_str(self.pick(&[
                                "'", "\\$", "\\`", "\\\"", "\\\\", "\\\n", "\\a", "$", "\\'", "a$",
                                "$ ", "\\!",
                            ]));
                        }
                    }
                    text.push('"');
                }
            }
        }
        text
    }
}
