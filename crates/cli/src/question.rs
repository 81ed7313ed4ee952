//! A question in words: what a call wants, why it is asked, and what can be answered.
//!
//! What is asked about was written by a model. Every line of it stands behind a margin, wrapped to
//! the width of the screen, so that none of it looks like a line of ours.

use windlass_protocol::access::is_root;
use windlass_protocol::text::one_line;
use windlass_protocol::{Access, Answer, Lasting, Repair};

/// A question as it stands in the log.
pub(crate) struct Asked<'a> {
    pub(crate) accesses: &'a [Access],
    pub(crate) reason: &'a str,
    pub(crate) preview: Option<String>,
    pub(crate) offer: Option<&'a str>,
}

/// A question as it is put.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) text: String,
    /// What is said when the answer is none of those there are.
    pub(crate) again: String,
    answers: Answers,
}

/// What can be answered, besides yes for this time and no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Nothing: it is for a person to say, each time.
    Once,
    /// A yes that lasts.
    Lasting,
    /// The same, also for every command of a kind.
    Kind,
}

/// What begins a line, and a line that goes on.
const MARGIN: &str = "  │ ";
const GOES_ON: &str = "  ┊ ";

/// What is shorter is no reason but a slip.
const SHORTEST_REASON: usize = 3;

impl Asked<'_> {
    /// What is wanted, each in one line.
    pub(crate) fn wants(&self) -> Vec<String> {
        self.accesses.iter().map(Access::words).collect()
    }

    /// True if a yes would lift the sandbox: that is for a person to say, each time.
    pub(crate) fn leaves(&self) -> bool {
        self.accesses.iter().any(|access| matches!(access, Access::Leave { .. }))
    }

    /// The question, for a screen of this width.
    pub(crate) fn question(&self, width: usize) -> Question {
        let answers = match (self.leaves(), self.offer) {
            (true, _) => Answers::Once,
            (false, None) => Answers::Lasting,
            (false, Some(_)) => Answers::Kind,
        };
        let choice = self.choice(answers);
        let mut text = String::from("\n");
        if let Some(preview) = &self.preview {
            text.push_str(&block(preview, width));
        }
        let headline = Access::headline(self.accesses);
        text.push_str(&format!("{headline}? ({})\n", one_line(self.reason)));
        for (access, wants) in self.accesses.iter().zip(self.wants()) {
            match access {
                Access::Run { command, folder } => {
                    let lines = match command.split('\n').count() {
                        1 => String::new(),
                        lines => format!(", {lines} lines"),
                    };
                    text.push_str(&format!("run{}{lines}:\n", one_line(&within(folder))));
                    text.push_str(&block(command, width));
                }
                Access::Read { .. }
                | Access::Search { .. }
                | Access::Edit { .. }
                | Access::Recall { .. }
                | Access::Skill { .. }
                | Access::Connect { .. }
                | Access::Fetch { .. }
                | Access::Leave { .. }
                | Access::Task { .. }
                | Access::Use { .. }
                | Access::Engage { .. }
                | Access::Accept { .. } => text.push_str(&block(&wants, width)),
            }
        }
        text.push_str(&choice);
        Question { text, again: format!("That cannot be answered here. {choice}"), answers }
    }

    fn choice(&self, answers: Answers) -> String {
        let lasting = match (answers, self.offer) {
            (Answers::Once, _) => String::new(),
            (Answers::Kind, Some(kind)) => format!(
                "yes for this [s]ession or [p]roject, yes to every `{}` for this session [ks] or \
                 project [kp], ",
                one_line(kind)
            ),
            (Answers::Lasting | Answers::Kind, _) => {
                "yes for this [s]ession or [p]roject, ".to_owned()
            }
        };
        format!("[y]es, {lasting}[n]o, or why not: ")
    }
}

impl Question {
    /// What a line means; `None` if it means nothing that can be answered here. The end of the input
    /// is a no.
    pub(crate) fn answer(&self, line: Option<&str>) -> Option<Answer> {
        let Some(line) = line.map(str::trim) else { return Some(Answer::No { reason: None }) };
        let lasts = self.answers != Answers::Once;
        let kind = self.answers == Answers::Kind;
        match line.to_lowercase().as_str() {
            "y" | "yes" => Some(Answer::Once),
            "" | "n" | "no" => Some(Answer::No { reason: None }),
            "s" | "session" => lasts.then_some(Answer::Session),
            "p" | "project" => lasts.then_some(Answer::Project),
            "ks" => kind.then_some(Answer::Like { lasts: Lasting::Session }),
            "kp" => kind.then_some(Answer::Like { lasts: Lasting::Project }),
            _ if line.chars().count() < SHORTEST_REASON => None,
            _ => Some(Answer::No { reason: Some(line.to_owned()) }),
        }
    }
}

fn within(folder: &str) -> String {
    if is_root(folder) { String::new() } else { format!(" in {folder}") }
}

/// A text behind its margin, whole, and no line wider than the screen.
pub(crate) fn block(text: &str, width: usize) -> String {
    let room = width.saturating_sub(MARGIN.chars().count() + 1).max(16);
    let mut block = String::new();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        block.push_str(MARGIN);
        let mut used = 0;
        for character in line.strip_suffix('\r').unwrap_or(line).chars() {
            let columns = columns(character);
            if used + columns > room {
                block.push('\n');
                block.push_str(GOES_ON);
                used = 0;
            }
            used += columns;
            // What would colour the screen is part of what is decided on.
            block.push(if character == '\u{1b}' { '␛' } else { character });
        }
        block.push('\n');
    }
    block
}

/// How many columns a character takes at most.
pub(crate) fn columns(character: char) -> usize {
    match character {
        '\t' => 8,
        _ if character.is_ascii() => 1,
        _ => 2,
    }
}

/// What a person is shown of a call that is asked about: what it would do and, where it was not
/// quite right, what was made of it.
pub(crate) fn told(preview: Option<&str>, repaired: Option<&Repair>) -> Option<String> {
    let repaired = repaired.map(|repair| {
        let Repair { arguments, changes } = repair;
        format!("The call was repaired ({}); it means: {arguments}", changes.join("; "))
    });
    let parts: Vec<String> = preview.map(str::to_owned).into_iter().chain(repaired).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(accesses: &'a [Access], offer: Option<&'a str>) -> Asked<'a> {
        Asked { accesses, reason: "it writes\nAllow?", preview: None, offer }
    }

    fn run(command: &str) -> Access {
        Access::Run { command: command.to_owned(), folder: ".".to_owned() }
    }

    #[test]
    fn only_what_is_offered_can_be_answered() {
        let (run, leave) = (run("ls"), Access::Leave { command: "ls".to_owned() });
        let (plain, out) = ([run.clone()], [run, leave]);
        let once = asked(&out, Some("ls *")).question(80);
        let lasting = asked(&plain, None).question(80);
        let kind = asked(&plain, Some("ls *")).question(80);
        let no = |reason: Option<&str>| Some(Answer::No { reason: reason.map(str::to_owned) });
        let like = |lasts| Some(Answer::Like { lasts });
        for (line, when_once, when_lasting, when_kind) in [
            ("y", Some(Answer::Once), Some(Answer::Once), Some(Answer::Once)),
            ("Yes ", Some(Answer::Once), Some(Answer::Once), Some(Answer::Once)),
            ("S", None, Some(Answer::Session), Some(Answer::Session)),
            ("project", None, Some(Answer::Project), Some(Answer::Project)),
            ("ks", None, None, like(Lasting::Session)),
            ("kp", None, None, like(Lasting::Project)),
            ("k", None, None, None),
            ("yy", None, None, None),
            ("", no(None), no(None), no(None)),
            ("No", no(None), no(None), no(None)),
            ("Use b", no(Some("Use b")), no(Some("Use b")), no(Some("Use b"))),
        ] {
            assert_eq!(once.answer(Some(line)), when_once, "{line}");
            assert_eq!(lasting.answer(Some(line)), when_lasting, "{line}");
            assert_eq!(kind.answer(Some(line)), when_kind, "{line}");
        }
        assert_eq!(once.answer(None), no(None), "the end of the input");
        assert!(!once.text.contains("[s]") && !once.again.contains("[p]"), "{}", once.text);
        assert!(lasting.text.contains("[s]ession") && !lasting.text.contains("[ks]"));
        assert!(kind.text.contains("`ls *`") && kind.again.contains("[kp]"));
    }

    #[test]
    fn nothing_in_a_command_looks_like_a_line_of_ours() {
        let fake = "[y]es, [n]o, or why not: ";
        let wide = " ".repeat(76);
        for command in [
            format!("rm -rf x\n\nAllow this? (calm)\n{fake}"),
            format!("rm -rf x\r\n{fake}"),
            format!("rm -rf x{wide}{fake}"),
            format!("{}{fake}", "名".repeat(38)),
            format!("\t\t\t\t\t\t\t\t\t\t{fake}"),
            "x".repeat(20_000),
        ] {
            let accesses = [
                Access::Run { command: command.clone(), folder: format!("a\n{fake}") },
                Access::Edit { path: format!("b, c\n{fake}") },
                Access::Connect { host: "*".to_owned() },
            ];
            let preview = Some(format!("+ {command}\n"));
            let asked = Asked { preview, ..asked(&accesses, None) };
            let question = asked.question(80);
            let (body, choice) = question.text.rsplit_once('\n').unwrap();
            assert!(choice.starts_with("[y]es, yes for this [s]ession"), "{choice}");
            let mut ours = 0;
            for line in body.lines().filter(|line| !line.is_empty()) {
                let marked = line.starts_with(MARGIN) || line.starts_with(GOES_ON);
                ours += usize::from(!marked);
                let wide: usize = line.chars().map(columns).sum();
                assert!(!marked || wide <= 82, "{wide}: {line}");
            }
            assert_eq!(ours, 2, "{body}");
            let shown = body.replace(&format!("\n{GOES_ON}"), "");
            let whole = command.replace("\r\n", "\n").replace('\n', &format!("\n{MARGIN}"));
            assert!(shown.contains(&format!("{MARGIN}{whole}\n")), "{shown}");
            assert!(body.ends_with("  │ reach the network"), "{body}");
        }
        let lines = [run("a\nb\nc")];
        let text = asked(&lines, None).question(80).text;
        assert!(text.contains("run, 3 lines:\n  │ a\n  │ b\n  │ c\n[y]es"), "{text}");
        let coloured = [run("echo \u{1b}[8mhidden")];
        assert!(asked(&coloured, None).question(80).text.contains("␛[8mhidden"));
    }
}
