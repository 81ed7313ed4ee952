//! The brief: what a model is told before everything else.
//!
//! It is assembled from plain parts without looking at anything, is bounded in all of them, and never
//! changes within a session, so that every request begins with the same bytes. What becomes different
//! later is told by a later message; [`Said`] finds out what that is. Start reading at [`Brief::text`].

mod said;

pub(crate) use said::Said;

use windlass_protocol::text::hides;
use windlass_protocol::{Millis, Mode};

/// The parts of a brief.
#[derive(Clone, Debug, Default)]
pub struct Brief {
    /// The folder the session works in.
    pub folder: String,
    /// What it runs on, such as `linux`.
    pub platform: String,
    /// Today.
    pub day: Option<Day>,
    /// Whether the folder is under version control.
    pub git: Git,
    /// How much is done without asking.
    pub mode: Option<Mode>,
    /// What the person and the project advise, the most general first.
    pub instructions: Vec<Advice>,
}

/// A text that advises the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Where it stands.
    pub path: String,
    /// What it says, or the beginning of it.
    pub text: String,
    /// How many bytes the whole of it has.
    pub length: u64,
}

/// Whether a folder is under version control, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Git {
    /// Nobody looked.
    #[default]
    Unknown,
    /// It is not.
    No,
    /// It is.
    Yes,
    /// It is, and this branch is checked out.
    Branch(String),
}

/// A day, in UTC. A brief has no finer time: it would be another one in every session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(String);

/// How many bytes of instructions there are at most, all together.
const INSTRUCTIONS: usize = 32 << 10;

impl Brief {
    /// The whole of it.
    pub fn text(&self) -> String {
        let mut text = include_str!("system.md").trim_end().to_owned();
        text.push('\n');
        text.push_str(&block("environment", &self.environment()));
        for block in self.advice() {
            text.push_str(&block);
        }
        text
    }

    fn environment(&self) -> String {
        let git = match &self.git {
            Git::Unknown => None,
            Git::No => Some("no".to_owned()),
            Git::Yes => Some("yes".to_owned()),
            Git::Branch(name) => Some(format!("yes, branch {}", one_line(name))),
        };
        let some = |text: &str| (!text.is_empty()).then(|| one_line(text));
        let lines = [
            ("Workspace", some(&self.folder)),
            ("Platform", some(&self.platform)),
            (said::DATE, self.day.as_ref().map(|day| day.0.clone())),
            ("Git", git),
            (said::MODE, self.mode.map(mode)),
        ];
        let lines = lines.into_iter().filter_map(|(label, value)| Some((label, value?)));
        lines.map(|(label, value)| format!("{label}: {value}\n")).collect()
    }

    /// The instructions, each with as much of the room as the others leave it.
    fn advice(&self) -> Vec<String> {
        let texts = self.instructions.iter().map(|advice| clean(&advice.text));
        let texts: Vec<String> = texts.map(|text| text.trim().to_owned()).collect();
        let shares = shares(&texts, INSTRUCTIONS);
        let parts = self.instructions.iter().zip(&texts).zip(shares);
        let parts = parts.filter(|((_, text), _)| !text.is_empty());
        parts
            .map(|((advice, text), share)| {
                let kept = cut(text, share);
                let path = named(&advice.path);
                let mut body = format!("{}\n", sealed(kept));
                if kept.len() < text.len() || advice.length > advice.text.len() as u64 {
                    let whole = advice.length.max(text.len() as u64);
                    let kept = kept.len();
                    body.push_str(&format!(
                        "[cut: {kept} of {whole} bytes; read {path} for the rest]\n"
                    ));
                }
                block_of(&path, &body)
            })
            .collect()
    }
}

impl Day {
    /// The day a moment falls on.
    pub fn of(at: Millis) -> Day {
        // Counted in years that begin in March, so that a leap day is a year's last.
        let days = at.0 / 86_400_000 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Day(format!("{:04}-{month:02}-{day:02}", era * 400 + year + later))
    }
}

/// What a mode means to the model, in one sentence. It is told, not enforced, here.
pub fn mode(mode: Mode) -> String {
    let meaning = match mode {
        Mode::Plan => {
            "nothing may be changed; look around, and answer with a plan of what you would do"
        }
        Mode::Ask => "the person is asked about every change and most commands",
        Mode::Auto => "what stays in the workspace and the sandbox is not asked about",
        Mode::Full => "nothing is asked; the sandbox stays, so be all the more careful",
    };
    format!("{mode}: {meaning}")
}

/// How many bytes each text gets, so that all fit and a long one does not starve the others.
fn shares(texts: &[String], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    let length = |index: &usize| texts.get(*index).map_or(0, String::len);
    order.sort_by_key(length);
    let mut shares = vec![0; texts.len()];
    let (mut room, mut left) = (room, texts.len());
    for index in order {
        let share = length(&index).min(room / left.max(1));
        if let Some(place) = shares.get_mut(index) {
            *place = share;
        }
        room -= share;
        left -= 1;
    }
    shares
}

/// The beginning of a text, of so many bytes at most, up to the end of a line where one is near.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    match kept.rfind('\n') {
        Some(line) if line * 2 > most => kept.split_at_checked(line).map_or(kept, |(kept, _)| kept),
        Some(_) | None => kept,
    }
}

/// A text without what a person who looks at it would not see.
fn clean(text: &str) -> String {
    let seen = |c: &char| {
        let control = c.is_control() && !matches!(c, '\n' | '\t');
        !control && !hides(*c)
    };
    text.chars().filter(seen).collect()
}

fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A path as a block names it.
fn named(path: &str) -> String {
    clean(path).chars().map(|c| if matches!(c, '"' | '<' | '>' | '\n') { '_' } else { c }).collect()
}

/// A text that cannot end its own block.
fn sealed(text: &str) -> String {
    text.replace("</instructions", "< /instructions")
}

fn block(name: &str, body: &str) -> String {
    format!("\n<{name}>\n{body}</{name}>\n")
}

fn block_of(path: &str, body: &str) -> String {
    format!("\n<instructions from=\"{path}\">\n{body}</instructions>\n")
}

#[cfg(test)]
mod tests;
