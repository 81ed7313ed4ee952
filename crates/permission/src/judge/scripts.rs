//! The little languages of sed and awk, as far as they can be proven harmless.

/// What a script does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// All of it was understood, and it runs nothing.
    pub(super) proven: bool,
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
}

/// Reads a script of sed: addresses, and commands that print, delete, quit or substitute.
pub(super) fn sed(text: &str) -> Script {
    let odd = |letter: char| letter.is_control() && letter != '\n';
    let mut script = Script { proven: !text.contains(odd), ..Script::default() };
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Sed { letters, at: 0 };
    while reader.at < reader.letters.len() {
        if reader.command(&mut script).is_none() {
            script.proven = false;
            break;
        }
    }
    script
}

struct Sed {
    letters: Vec<char>,
    at: usize,
}

impl Sed {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn skip(&mut self, which: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&which) {
            self.at += 1;
        }
    }

    /// The rest of the line, which is a file name after `w` and `r`.
    fn line(&mut self) -> String {
        self.skip(|letter| letter != '\n' && letter.is_whitespace());
        let from = self.at;
        self.skip(|letter| letter != '\n');
        self.letters.iter().skip(from).take(self.at - from).collect()
    }

    /// Goes past the next unescaped delimiter. Programs differ about one in brackets, so it is
    /// not proven.
    fn past(&mut self, delimiter: char) -> Option<()> {
        let mut bracket = false;
        loop {
            let letter = self.peek()?;
            self.at += if letter == '\\' { 2 } else { 1 };
            match letter {
                '\n' => return None,
                letter if letter == delimiter => return (!bracket).then_some(()),
                '[' => bracket = true,
                ']' => bracket = false,
                _ => {}
            }
        }
    }

    fn address(&mut self) -> Option<()> {
        match self.peek() {
            Some('$') => self.at += 1,
            Some('/') => {
                self.at += 1;
                self.past('/')?;
                self.skip(|letter| letter == 'I');
            }
            Some('0'..='9' | '+' | '~') => {
                self.skip(|letter| letter.is_ascii_digit() || matches!(letter, '+' | '~'));
            }
            Some(_) | None => {}
        }
        Some(())
    }

    fn command(&mut self, script: &mut Script) -> Option<()> {
        self.skip(|letter| matches!(letter, ' ' | ';' | '\n' | '{' | '}'));
        if self.peek().is_none() {
            return Some(());
        }
        self.address()?;
        if self.peek() == Some(',') {
            self.at += 1;
            self.address()?;
        }
        self.skip(|letter| matches!(letter, ' ' | '!' | '{'));
        let command = self.peek()?;
        self.at += 1;
        match command {
            'p' | 'd' | '=' | 'n' | 'N' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' => {}
            'q' | 'Q' | 'l' => self.skip(|letter| letter.is_ascii_digit() || letter == ' '),
            's' => self.substitute(script)?,
            'y' => {
                let delimiter = self.delimiter()?;
                self.past(delimiter)?;
                self.past(delimiter)?;
            }
            'w' | 'W' => script.writes.push(self.line()),
            'r' | 'R' => script.reads.push(self.line()),
            _ => return None,
        }
        self.skip(|letter| letter == ' ');
        matches!(self.peek(), None | Some(';' | '\n' | '}')).then_some(())
    }

    fn delimiter(&mut self) -> Option<char> {
        let delimiter = self.peek().filter(char::is_ascii_punctuation)?;
        self.at += 1;
        (delimiter != '\\').then_some(delimiter)
    }

    fn substitute(&mut self, script: &mut Script) -> Option<()> {
        let delimiter = self.delimiter()?;
        self.past(delimiter)?;
        self.past(delimiter)?;
        self.skip(|letter| matches!(letter, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'));
        if self.peek() == Some('w') {
            self.at += 1;
            script.writes.push(self.line());
        }
        Some(())
    }
}

/// Reads a program of awk: a condition over line numbers, fields and matches, and actions that
/// print. What follows a `>` counts as written, whether or not the rest was understood.
pub(super) fn awk(text: &str) -> Script {
    let odd = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    let proven = proves_awk(text) && !text.contains(odd);
    let mut script = Script { proven, ..Script::default() };
    for after in text.split('>').skip(1) {
        let after = after.trim_start().strip_prefix('"');
        let file = after.and_then(|after| after.split_once('"'));
        script.writes.extend(file.map(|(file, _)| file.to_owned()));
    }
    if script.proven {
        script.writes.clear();
    }
    script
}

fn proves_awk(text: &str) -> bool {
    let mut letters = text.chars().peekable();
    let (mut depth, mut before) = (0_usize, ' ');
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => continue,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '"' | '/' => {
                // A slash after a value divides; nobody needs that here.
                if letter == '/' && !matches!(before, ' ' | '(' | '!' | '~' | '&' | '|' | ',') {
                    return false;
                }
                loop {
                    match letters.next() {
                        Some('\\') => {
                            letters.next();
                        }
                        Some(end) if end == letter => break,
                        // Programs differ about a slash in brackets.
                        Some('[') if letter == '/' => return false,
                        Some('\n') | None => return false,
                        Some(_) => {}
                    }
                }
            }
            '&' if letters.next_if_eq(&'&').is_some() => {}
            '|' if letters.next_if_eq(&'|').is_some() => {}
            '>' | '<' if depth == 0 => {}
            '=' if letters.next_if_eq(&'=').is_some() || matches!(before, '<' | '>' | '!') => {}
            '$' | ',' | ';' | '!' | '~' | '+' | '-' | '*' | '%' | '0'..='9' => {}
            '(' | ')' => {}
            'A'..='Z' | 'a'..='z' => {
                let mut name = letter.to_string();
                while let Some(next) = letters.next_if(char::is_ascii_alphanumeric) {
                    name.push(next);
                }
                if !matches!(name.as_str(), "NR" | "NF" | "FNR" | "print" | "BEGIN" | "END") {
                    return false;
                }
            }
            _ => return false,
        }
        before = letter;
    }
    depth == 0
}

/// Reads a filter of jq or yq: all of it is harmless that reads nothing else.
pub(super) fn filter(text: &str) -> Script {
    let far = [
        "import",
        "include",
        "load",
        "env",
        "ENV",
        "strenv",
        "envsubst",
        "input",
        "eval",
        "modulemeta",
    ];
    let words = || text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let reaches = words()
        .any(|word| far.contains(&word) || word.starts_with("load_") || word.starts_with("input_"));
    Script { proven: !reaches, ..Script::default() }
}
