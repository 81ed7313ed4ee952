//! Analyzes `sed`, `awk` and `jq` scripts, as far as they can be proven harmless.

/// The certainty that a script runs no program and writes no file but the listed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScriptCertainty {
    /// The script was fully understood.
    Proven,
    /// The script was not understood, but contains no word that it would need.
    Likely,
    #[default]
    Unknown,
}

/// The effects of a `sed`, `awk` or `jq` script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptEffects {
    pub(super) certainty: ScriptCertainty,
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
}

/// Analyzes a `sed` script: addresses, and commands that print, delete, quit or substitute.
pub(super) fn analyze_sed(text: &str) -> ScriptEffects {
    let is_control_char = |c: char| c.is_control() && c != '\n';
    let certainty = match text.contains(is_control_char) {
        true => ScriptCertainty::Unknown,
        false => ScriptCertainty::Proven,
    };
    let mut script = ScriptEffects { certainty, ..ScriptEffects::default() };
    let chars: Vec<char> = text.chars().collect();
    let mut parser = SedParser { characters: chars, position: 0 };
    while parser.position < parser.characters.len() {
        if parser.parse_command(&mut script).is_none() {
            script.certainty = ScriptCertainty::Unknown;
            break;
        }
    }
    script
}

struct SedParser {
    characters: Vec<char>,
    position: usize,
}

impl SedParser {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    fn skip_while(&mut self, predicate: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&predicate) {
            self.position += 1;
        }
    }

    /// Reads the rest of the line, which is a file name after `w` and `r`.
    fn rest_of_line(&mut self) -> String {
        self.skip_while(|c| c != '\n' && c.is_whitespace());
        let start = self.position;
        self.skip_while(|c| c != '\n');
        self.characters.iter().skip(start).take(self.position - start).collect()
    }

    /// Skips past the next unescaped delimiter. Returns `None` for a delimiter in brackets, because
    /// implementations of `sed` differ about it.
    fn skip_past(&mut self, delimiter: char) -> Option<()> {
        let mut in_brackets = false;
        loop {
            let c = self.peek()?;
            self.position += if c == '\\' { 2 } else { 1 };
            match c {
                '\n' => return None,
                c if c == delimiter => return (!in_brackets).then_some(()),
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ => {}
            }
        }
    }

    fn parse_address(&mut self) -> Option<()> {
        match self.peek() {
            Some('$') => self.position += 1,
            Some('/') => {
                self.position += 1;
                self.skip_past('/')?;
                self.skip_while(|c| c == 'I');
            }
            Some('0'..='9' | '+' | '~') => {
                self.skip_while(|c| c.is_ascii_digit() || matches!(c, '+' | '~'));
            }
            Some(_) | None => {}
        }
        Some(())
    }

    fn parse_command(&mut self, script: &mut ScriptEffects) -> Option<()> {
        self.skip_while(|c| matches!(c, ' ' | ';' | '\n' | '{' | '}'));
        if self.peek().is_none() {
            return Some(());
        }
        self.parse_address()?;
        if self.peek() == Some(',') {
            self.position += 1;
            self.parse_address()?;
        }
        self.skip_while(|c| matches!(c, ' ' | '!' | '{'));
        let command = self.peek()?;
        self.position += 1;
        match command {
            'p' | 'd' | '=' | 'n' | 'N' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' => {}
            'q' | 'Q' | 'l' => self.skip_while(|c| c.is_ascii_digit() || c == ' '),
            's' => self.parse_substitute(script)?,
            'y' => {
                let delimiter = self.parse_delimiter()?;
                self.skip_past(delimiter)?;
                self.skip_past(delimiter)?;
            }
            'w' | 'W' => script.writes.push(self.rest_of_line()),
            'r' | 'R' => script.reads.push(self.rest_of_line()),
            _ => return None,
        }
        self.skip_while(|c| c == ' ');
        matches!(self.peek(), None | Some(';' | '\n' | '}')).then_some(())
    }

    fn parse_delimiter(&mut self) -> Option<char> {
        let delimiter = self.peek().filter(char::is_ascii_punctuation)?;
        self.position += 1;
        (delimiter != '\\').then_some(delimiter)
    }

    fn parse_substitute(&mut self, script: &mut ScriptEffects) -> Option<()> {
        let delimiter = self.parse_delimiter()?;
        self.skip_past(delimiter)?;
        self.skip_past(delimiter)?;
        self.skip_while(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9'));
        if self.peek() == Some('w') {
            self.position += 1;
            script.writes.push(self.rest_of_line());
        }
        Some(())
    }
}

/// Analyzes an `awk` program: a condition over line numbers, fields and matches, and actions that
/// print. The file after a `>` counts as written unless the whole program is proven harmless.
pub(super) fn analyze_awk(text: &str) -> ScriptEffects {
    let is_control_char = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let certainty = match text.contains(is_control_char) {
        false if is_proven_awk(text) => ScriptCertainty::Proven,
        false if is_likely_harmless_awk(text) => ScriptCertainty::Likely,
        true | false => ScriptCertainty::Unknown,
    };
    let mut script = ScriptEffects { certainty, ..ScriptEffects::default() };
    for after in text.split('>').skip(1) {
        let after = after.trim_start().strip_prefix('"');
        let file = after.and_then(|after| after.split_once('"'));
        script.writes.extend(file.map(|(file, _)| file.to_owned()));
    }
    if script.certainty != ScriptCertainty::Unknown {
        script.writes.clear();
    }
    script
}

/// Returns true if a program contains nothing that runs, includes or writes something. A `>` is
/// only taken for a comparison in a condition such as `NR>1` at the start.
fn is_likely_harmless_awk(text: &str) -> bool {
    let start = text.trim_start();
    let after_name = ["NR", "FNR", "NF"].iter().find_map(|name| start.strip_prefix(name));
    let rest = after_name.and_then(|rest| rest.trim_start().strip_prefix('>')).unwrap_or(text);
    let pipes = rest.replace("||", "").contains('|');
    let has_word = ["system", "getline"].iter().any(|word| rest.contains(word));
    !pipes && !has_word && !rest.contains(['>', '@', '`'])
}

fn is_proven_awk(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    let mut depth = 0_usize;
    let mut previous = ' ';
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => continue,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '"' | '/' => {
                // A slash after a value is a division, which this analysis does not support.
                if c == '/' && !matches!(previous, ' ' | '(' | '!' | '~' | '&' | '|' | ',') {
                    return false;
                }
                loop {
                    match chars.next() {
                        Some('\\') => {
                            chars.next();
                        }
                        Some(end) if end == c => break,
                        // Implementations of `awk` differ about a slash in brackets.
                        Some('[') if c == '/' => return false,
                        Some('\n') | None => return false,
                        Some(_) => {}
                    }
                }
            }
            '&' if chars.next_if_eq(&'&').is_some() => {}
            '|' if chars.next_if_eq(&'|').is_some() => {}
            '>' | '<' if depth == 0 => {}
            '=' if chars.next_if_eq(&'=').is_some() || matches!(previous, '<' | '>' | '!') => {}
            '$' | ',' | ';' | '!' | '~' | '+' | '-' | '*' | '%' | '0'..='9' => {}
            '(' | ')' => {}
            'A'..='Z' | 'a'..='z' => {
                let mut name = c.to_string();
                while let Some(next) = chars.next_if(char::is_ascii_alphanumeric) {
                    name.push(next);
                }
                if !matches!(name.as_str(), "NR" | "NF" | "FNR" | "print" | "BEGIN" | "END") {
                    return false;
                }
            }
            _ => return false,
        }
        previous = c;
    }
    depth == 0
}

/// Analyzes a `jq` or `yq` filter: harmless unless it reads other files or the environment.
pub(super) fn analyze_jq_filter(text: &str) -> ScriptEffects {
    let forbidden_words = [
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
    let words = || text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let has_forbidden_word = words().any(|word| {
        forbidden_words.contains(&word) || word.starts_with("load_") || word.starts_with("input_")
    });
    let certainty = match has_forbidden_word {
        true => ScriptCertainty::Unknown,
        false => ScriptCertainty::Proven,
    };
    ScriptEffects { certainty, ..ScriptEffects::default() }
}

/// Checks the analysis on any text: a command in front of it that runs a program or writes a file is
/// always found.
pub(super) fn invariants_hold(text: &str) -> bool {
    let runs = analyze_sed(&format!("1e touch x\n{text}"));
    let writes = analyze_sed(&format!("w x\n{text}"));
    let awk_runs = analyze_awk(&format!("BEGIN {{ system(\"touch x\") }} {text}"));
    let awk_pipes = analyze_awk(&format!("{{ print | \"sh\" }} {text}"));
    analyze_jq_filter(text);
    let is_unknown = |script: &ScriptEffects| script.certainty == ScriptCertainty::Unknown;
    is_unknown(&runs)
        && (is_unknown(&writes) || writes.writes.contains(&"x".to_owned()))
        && is_unknown(&awk_runs)
        && is_unknown(&awk_pipes)
}
