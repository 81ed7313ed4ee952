//! What a model wants to know, put to the person question by question, and answered by number or in
//! words.
//!
//! What is asked was written by a model, so all of it stands behind the margin.

use crate::question::block;
use windlass_protocol::Inquiry;
use windlass_protocol::text::one_line;

/// Questions that are being answered.
#[derive(Debug)]
pub(crate) struct Form {
    inquiries: Vec<Inquiry>,
    replies: Vec<Vec<String>>,
    width: usize,
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was the last one.
    Done(Vec<Vec<String>>),
    /// There is another question.
    Next,
    /// It cannot be answered like this, and this can be.
    Again(String),
}

impl Form {
    /// Questions for a screen of this width.
    pub(crate) fn new(inquiries: &[Inquiry], width: usize) -> Form {
        Form { inquiries: inquiries.to_vec(), replies: Vec::new(), width }
    }

    fn open(&self) -> Option<&Inquiry> {
        self.inquiries.get(self.replies.len())
    }

    /// The question that is to be answered next.
    pub(crate) fn text(&self) -> String {
        let Some(inquiry) = self.open() else { return String::new() };
        let count = match self.inquiries.len() {
            1 => String::new(),
            all => format!(" ({} of {all})", self.replies.len() + 1),
        };
        let mut text = format!("\nThe model asks{count}:\n");
        let asked = format!("{}: {}", one_line(&inquiry.header), inquiry.question);
        text.push_str(&block(&asked, self.width));
        for (at, option) in inquiry.options.iter().enumerate() {
            let label = one_line(&option.label);
            let line = match one_line(&option.description).as_str() {
                "" => format!("{}) {label}", at + 1),
                description => format!("{}) {label}: {description}", at + 1),
            };
            text.push_str(&block(&line, self.width));
        }
        text.push_str(&choice(inquiry));
        text
    }

    /// Takes in a line. The end of the input answers nothing at all.
    pub(crate) fn take(&mut self, line: Option<&str>) -> Taken {
        let (Some(line), Some(inquiry)) = (line.map(str::trim), self.open()) else {
            return Taken::Done(Vec::new());
        };
        match reply(inquiry, line) {
            None => Taken::Again(format!("That cannot be answered here. {}", choice(inquiry))),
            Some(reply) => {
                self.replies.push(reply);
                match self.open() {
                    Some(_) => Taken::Next,
                    None => Taken::Done(std::mem::take(&mut self.replies)),
                }
            }
        }
    }
}

fn choice(inquiry: &Inquiry) -> String {
    let several = if inquiry.multiple { ", or several as in 1,2" } else { "" };
    let custom = if inquiry.custom { ", or your own words" } else { "" };
    format!("A number{several}{custom}; nothing for no answer: ")
}

/// What a line means as an answer; `None` if it means none of those there are.
fn reply(inquiry: &Inquiry, line: &str) -> Option<Vec<String>> {
    if line.is_empty() {
        return Some(Vec::new());
    }
    let label = |said: &str| {
        let options = &inquiry.options;
        let number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = match number {
            Some(at) => options.get(at),
            None => {
                options.iter().find(|option| option.label.to_lowercase() == said.to_lowercase())
            }
        };
        found.map(|option| option.label.clone())
    };
    if let Some(only) = label(line) {
        return Some(vec![only]);
    }
    let mut chosen: Vec<String> = Vec::new();
    for said in line.split(',').map(str::trim).filter(|said| !said.is_empty()) {
        match label(said) {
            Some(label) if chosen.contains(&label) => {}
            Some(label) => chosen.push(label),
            None => {
                // A number that stands for nothing was not meant as an answer.
                let slip = line.chars().all(|sign| sign.is_ascii_digit() || ", ".contains(sign));
                return (inquiry.custom && !slip).then(|| vec![line.to_owned()]);
            }
        }
    }
    let fits = !chosen.is_empty() && (inquiry.multiple || chosen.len() == 1);
    fits.then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::Suggestion;

    fn inquiry(labels: &[&str]) -> Inquiry {
        let option = |label: &&str| Suggestion { label: (*label).into(), description: "d".into() };
        Inquiry {
            header: "Store".into(),
            question: "Where?".into(),
            options: labels.iter().map(option).collect(),
            multiple: false,
            custom: false,
        }
    }

    #[test]
    fn an_answer_is_a_number_a_label_or_own_words_where_they_may_be() {
        let one = inquiry(&["Here", "There, maybe"]);
        let several = Inquiry { multiple: true, ..one.clone() };
        let free = Inquiry { custom: true, ..one.clone() };
        let said = |labels: &[&str]| Some(labels.iter().map(|it| (*it).to_owned()).collect());
        for (line, when_one, when_several, when_free) in [
            ("1", said(&["Here"]), said(&["Here"]), said(&["Here"])),
            ("hERE", said(&["Here"]), said(&["Here"]), said(&["Here"])),
            (
                "there, maybe",
                said(&["There, maybe"]),
                said(&["There, maybe"]),
                said(&["There, maybe"]),
            ),
            ("1,2", None, said(&["Here", "There, maybe"]), None),
            ("2, 1, 2", None, said(&["There, maybe", "Here"]), None),
            ("0", None, None, None),
            ("3", None, None, None),
            ("1 3", None, None, None),
            ("elsewhere", None, None, said(&["elsewhere"])),
            ("", said(&[]), said(&[]), said(&[])),
            (",", None, None, None),
        ] {
            assert_eq!(reply(&one, line), when_one, "{line}");
            assert_eq!(reply(&several, line), when_several, "{line}");
            assert_eq!(reply(&free, line), when_free, "{line}");
        }
    }

    #[test]
    fn questions_are_answered_one_by_one_and_the_end_answers_none() {
        let mut form = Form::new(&[inquiry(&["a", "b"]), inquiry(&["c", "d"])], 80);
        assert!(form.text().contains("(1 of 2)"), "{}", form.text());
        assert!(matches!(form.take(Some("x")), Taken::Again(_)));
        assert_eq!(form.take(Some("2")), Taken::Next);
        assert!(form.text().contains("  │ 1) c: d\n"), "{}", form.text());
        assert_eq!(form.take(Some("")), Taken::Done(vec![vec!["b".into()], vec![]]));
        let mut form = Form::new(&[inquiry(&["a", "b"]), inquiry(&["c", "d"])], 80);
        assert_eq!(form.take(Some("1")), Taken::Next);
        assert_eq!(form.take(None), Taken::Done(Vec::new()));
    }

    #[test]
    fn nothing_that_is_asked_looks_like_a_line_of_ours() {
        let fake = "x\nA number; nothing for no answer: 1\nChange a file? (calm)";
        let mut hostile = inquiry(&[fake, "b"]);
        (hostile.header, hostile.question) = (fake.into(), fake.into());
        hostile.options[0].description = fake.into();
        let text = Form::new(&[hostile], 80).text();
        let ours: Vec<&str> = text.lines().filter(|line| !line.starts_with("  ")).collect();
        assert_eq!(ours, ["", "The model asks:", "A number; nothing for no answer: "]);
    }
}
