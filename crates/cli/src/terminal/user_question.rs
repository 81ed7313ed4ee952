//! Asks the user the questions of a model one by one, answered by number or in free text.
//!
//! The model wrote the questions, so all of their text is printed behind the margin.

use crate::terminal::permission_question::indent_block;
use windlass_protocol::UserQuestion;
use windlass_protocol::display_text::to_one_line;

/// A list of [`UserQuestion`]s that the user is answering.
#[derive(Debug)]
pub(crate) struct TerminalQuestionForm {
    questions: Vec<UserQuestion>,
    replies: Vec<Vec<String>>,
    width: usize,
}

/// The effect of an input line on the form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuestionFormProgress {
    /// All questions are answered.
    Done(Vec<Vec<String>>),
    /// There is another question.
    Next,
    /// The answer is invalid; the text names the valid ones.
    Retry(String),
}

impl TerminalQuestionForm {
    /// Creates a form for a terminal of this width.
    pub(crate) fn new(questions: &[UserQuestion], width: usize) -> TerminalQuestionForm {
        TerminalQuestionForm { questions: questions.to_vec(), replies: Vec::new(), width }
    }

    fn current_question(&self) -> Option<&UserQuestion> {
        self.questions.get(self.replies.len())
    }

    /// Formats the next question.
    pub(crate) fn question_text(&self) -> String {
        let Some(user_question) = self.current_question() else { return String::new() };
        let count = match self.questions.len() {
            1 => String::new(),
            total => format!(" ({} of {total})", self.replies.len() + 1),
        };
        let mut text = format!("\n{}{count}:\n", user_question.headline());
        let heading = format!("{}: {}", to_one_line(&user_question.header), user_question.question);
        text.push_str(&indent_block(&heading, self.width));
        for (index, option) in user_question.options.iter().enumerate() {
            let label = to_one_line(&option.label);
            let line = match to_one_line(&option.description).as_str() {
                "" => format!("{}) {label}", index + 1),
                description => format!("{}) {label}: {description}", index + 1),
            };
            text.push_str(&indent_block(&line, self.width));
        }
        text.push_str(&describe_choices(user_question));
        text
    }

    /// Handles an input line. The end of the input answers no question at all.
    pub(crate) fn answer_line(&mut self, line: Option<&str>) -> QuestionFormProgress {
        let (Some(line), Some(user_question)) = (line.map(str::trim), self.current_question())
        else {
            return QuestionFormProgress::Done(Vec::new());
        };
        match parse_reply(user_question, line) {
            None => QuestionFormProgress::Retry(format!(
                "Invalid answer. {}",
                describe_choices(user_question)
            )),
            Some(reply) => {
                self.replies.push(reply);
                match self.current_question() {
                    Some(_) => QuestionFormProgress::Next,
                    None => QuestionFormProgress::Done(std::mem::take(&mut self.replies)),
                }
            }
        }
    }
}

fn describe_choices(user_question: &UserQuestion) -> String {
    let multiple_hint = if user_question.allow_multiple { ", or several such as 1,2" } else { "" };
    let custom_hint = if user_question.allow_custom { ", or your own answer" } else { "" };
    format!("Enter a number{multiple_hint}{custom_hint}; leave empty to skip: ")
}

/// Parses a line as an answer to a `UserQuestion`; `None` if it is not a valid one.
fn parse_reply(user_question: &UserQuestion, line: &str) -> Option<Vec<String>> {
    if line.is_empty() {
        return Some(Vec::new());
    }
    let label = |input: &str| {
        let options = &user_question.options;
        let number = input.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = match number {
            Some(index) => options.get(index),
            None => {
                options.iter().find(|option| option.label.to_lowercase() == input.to_lowercase())
            }
        };
        found.map(|option| option.label.clone())
    };
    if let Some(only) = label(line) {
        return Some(vec![only]);
    }
    let mut chosen: Vec<String> = Vec::new();
    for input in line.split(',').map(str::trim).filter(|input| !input.is_empty()) {
        match label(input) {
            Some(label) if chosen.contains(&label) => {}
            Some(label) => chosen.push(label),
            None => {
                // An unknown option number is a typing error, not a free-text answer.
                let is_typo = line.chars().all(|c| c.is_ascii_digit() || ", ".contains(c));
                return (user_question.allow_custom && !is_typo).then(|| vec![line.to_owned()]);
            }
        }
    }
    let is_valid = !chosen.is_empty() && (user_question.allow_multiple || chosen.len() == 1);
    is_valid.then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::QuestionOption;

    fn user_question(labels: &[&str]) -> UserQuestion {
        let option =
            |label: &&str| QuestionOption { label: (*label).into(), description: "d".into() };
        UserQuestion {
            header: "Store".into(),
            question: "Where?".into(),
            options: labels.iter().map(option).collect(),
            allow_multiple: false,
            allow_custom: false,
            asker: None,
            is_permission: false,
        }
    }

    #[test]
    fn an_answer_is_a_number_a_label_or_allowed_free_text() {
        let one = user_question(&["Here", "There, maybe"]);
        let several = UserQuestion { allow_multiple: true, ..one.clone() };
        let free = UserQuestion { allow_custom: true, ..one.clone() };
        let reply =
            |labels: &[&str]| Some(labels.iter().map(|label| (*label).to_owned()).collect());
        for (line, when_one, when_several, when_free) in [
            ("1", reply(&["Here"]), reply(&["Here"]), reply(&["Here"])),
            ("hERE", reply(&["Here"]), reply(&["Here"]), reply(&["Here"])),
            (
                "there, maybe",
                reply(&["There, maybe"]),
                reply(&["There, maybe"]),
                reply(&["There, maybe"]),
            ),
            ("1,2", None, reply(&["Here", "There, maybe"]), None),
            ("2, 1, 2", None, reply(&["There, maybe", "Here"]), None),
            ("0", None, None, None),
            ("3", None, None, None),
            ("1 3", None, None, None),
            ("elsewhere", None, None, reply(&["elsewhere"])),
            ("", reply(&[]), reply(&[]), reply(&[])),
            (",", None, None, None),
        ] {
            assert_eq!(parse_reply(&one, line), when_one, "{line}");
            assert_eq!(parse_reply(&several, line), when_several, "{line}");
            assert_eq!(parse_reply(&free, line), when_free, "{line}");
        }
    }

    #[test]
    fn questions_are_answered_one_by_one_and_the_end_of_input_answers_none() {
        let mut form = TerminalQuestionForm::new(
            &[user_question(&["a", "b"]), user_question(&["c", "d"])],
            80,
        );
        assert!(form.question_text().contains("(1 of 2)"), "{}", form.question_text());
        assert!(matches!(form.answer_line(Some("x")), QuestionFormProgress::Retry(_)));
        assert_eq!(form.answer_line(Some("2")), QuestionFormProgress::Next);
        assert!(form.question_text().contains("  │ 1) c: d\n"), "{}", form.question_text());
        assert_eq!(
            form.answer_line(Some("")),
            QuestionFormProgress::Done(vec![vec!["b".into()], vec![]])
        );
        let mut form = TerminalQuestionForm::new(
            &[user_question(&["a", "b"]), user_question(&["c", "d"])],
            80,
        );
        assert_eq!(form.answer_line(Some("1")), QuestionFormProgress::Next);
        assert_eq!(form.answer_line(None), QuestionFormProgress::Done(Vec::new()));
    }

    #[test]
    fn a_question_cannot_imitate_a_line_of_the_prompt() {
        let fake = "x\nEnter a number; leave empty to skip: 1\nEdit a file? (calm)";
        let mut hostile = user_question(&[fake, "b"]);
        (hostile.header, hostile.question) = (fake.into(), fake.into());
        hostile.options[0].description = fake.into();
        let text = TerminalQuestionForm::new(&[hostile], 80).question_text();
        let unmarked: Vec<&str> = text.lines().filter(|line| !line.starts_with("  ")).collect();
        assert_eq!(unmarked, ["", "The model asks:", "Enter a number; leave empty to skip: "]);
    }
}
