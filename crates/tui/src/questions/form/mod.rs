//! The user question form: one question per page, answered by number, by row or in free text, with
//! a review page before sending if there are several.
//!
//! The options are a list like the answers to a permission request: no row is selected at first,
//! so that Enter alone answers nothing.

mod option_rows;

use super::answer_list::{RowCursor, RowKeyOutcome};
use super::choices::AnswerKeyChoice;
use super::permission::QuestionKeyOutcome;
use super::question_content::{QuestionContentPart, QuotedText};
use crate::keys::{KeyScope, UiCommand};
use crate::text_input::TextInput;
use crate::ui_context::Appearance;
use crossterm::event::{KeyCode, KeyEvent};
use std::collections::BTreeSet;
use windlass_protocol::display_text::{is_plain_name, to_one_line};
use windlass_protocol::{PermissionMode, QuestionOption, UserQuestion};

/// The last line of each plan; removed, because the headline says it.
const PLAN_QUESTION: &str = "Carry the plan out?";

/// The reply to one `UserQuestion`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct QuestionReply {
    chosen_options: Vec<usize>,
    own_text: Option<String>,
}

/// The form for the `UserQuestion`s of one call.
#[derive(Clone, Debug)]
pub(crate) struct UserQuestionForm {
    questions: Vec<UserQuestion>,
    replies: Vec<QuestionReply>,
    agent: Option<String>,
    /// The current page; the page after the last question is the review of all answers.
    page: usize,
    /// The row that the user walked to.
    cursor: RowCursor,
    /// The open input for a free-text answer.
    pub(crate) text_input: Option<TextInput>,
    /// True after Esc, which answers nothing; `escape_note` explains that.
    escape_pressed: bool,
}

/// Returns true if the question asks for the approval of a plan.
pub(crate) fn is_plan_approval(user_question: &UserQuestion) -> bool {
    let labels: Vec<&str> =
        user_question.options.iter().map(|option| option.label.as_str()).collect();
    labels == [PermissionMode::Auto.name(), PermissionMode::Ask.name(), "no"]
        && user_question.header == "Plan"
}

impl UserQuestionForm {
    /// Creates a form for questions of the model, or of a subagent.
    pub(crate) fn new(questions: &[UserQuestion], agent: Option<&str>) -> UserQuestionForm {
        let mut form = UserQuestionForm {
            questions: questions.to_vec(),
            replies: questions.iter().map(|_| QuestionReply::default()).collect(),
            agent: agent.map(str::to_owned),
            page: 0,
            cursor: RowCursor::default(),
            text_input: None,
            escape_pressed: false,
        };
        form.go_to_page(0);
        form
    }

    /// Returns the question on the current page; `None` on the review page.
    pub(crate) fn current_question(&self) -> Option<&UserQuestion> {
        self.questions.get(self.page)
    }

    fn go_to_page(&mut self, page: usize) {
        self.page = page.min(self.questions.len());
        self.text_input = None;
        let chosen =
            self.replies.get(self.page).and_then(|reply| reply.chosen_options.first().copied());
        self.cursor = RowCursor { row: chosen };
    }

    /// Answers from a typed line (linear mode): option numbers, free text, or `n` for no answer.
    pub(crate) fn answer_from_line(&mut self, line: &str) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        let Some(user_question) = self.current_question() else {
            return QuestionKeyOutcome::Ignored;
        };
        let option_index = |word: &str| {
            let index = word.parse::<usize>().ok()?.checked_sub(1)?;
            (index < user_question.options.len()).then_some(index)
        };
        let words = line.split([',', ' ']).filter(|word| !word.is_empty());
        let chosen: Option<BTreeSet<usize>> = words.map(option_index).collect();
        let reply = match chosen {
            _ if line == "n" => QuestionReply::default(),
            Some(chosen) if chosen.len() == 1 || user_question.allow_multiple => {
                QuestionReply { chosen_options: chosen.into_iter().collect(), own_text: None }
            }
            _ if user_question.allow_custom => {
                QuestionReply { chosen_options: Vec::new(), own_text: Some(line.to_owned()) }
            }
            _ => return QuestionKeyOutcome::Ignored,
        };
        self.replies.get_mut(self.page).into_iter().for_each(|current| *current = reply.clone());
        if self.page + 1 >= self.questions.len() {
            return QuestionKeyOutcome::Answer(self.answers());
        }
        self.go_to_page(self.page + 1);
        QuestionKeyOutcome::Handled
    }

    /// Returns the headline above the question.
    pub(crate) fn headline(&self) -> String {
        match (self.current_question(), self.agent.as_deref()) {
            (None, _) => "Your answers".to_owned(),
            (Some(user_question), _) if is_plan_approval(user_question) => {
                "Carry out this plan?".to_owned()
            }
            (Some(user_question), _) if user_question.asker.is_some() => user_question.headline(),
            (_, Some(agent)) if is_plain_name(agent) => format!("The subagent {agent} asks"),
            (_, Some(_)) => "A subagent asks".to_owned(),
            (Some(user_question), None) => user_question.headline(),
        }
    }

    /// Returns the page number, such as `1/3`, if there are several questions.
    pub(crate) fn page_label(&self) -> Option<String> {
        let count = self.questions.len();
        (count > 1 && self.page < count).then(|| format!("{}/{count}", self.page + 1))
    }

    /// Returns the text of the question as `QuestionContentPart`s.
    pub(crate) fn question_parts(&self) -> Vec<QuestionContentPart> {
        let Some(user_question) = self.current_question() else { return Vec::new() };
        if is_plan_approval(user_question) {
            let plan = user_question.question.trim_end();
            let plan = plan.strip_suffix(PLAN_QUESTION).unwrap_or(plan).trim_end();
            return vec![QuestionContentPart::new("", QuotedText::Markdown(format!("{plan}\n")))];
        }
        let text = format!("{}: {}", to_one_line(&user_question.header), user_question.question);
        vec![QuestionContentPart::new("", QuotedText::Question(text))]
    }

    /// Returns the options as numbered lines.
    pub(crate) fn numbered_options(&self) -> String {
        let options =
            self.current_question().into_iter().flat_map(|user_question| &user_question.options);
        let line = |(index, option): (usize, &QuestionOption)| {
            let description = match option.description.as_str() {
                "" => String::new(),
                description => format!(": {}", to_one_line(description)),
            };
            format!("{}. {}{description}", index + 1, to_one_line(&option.label))
        };
        options.enumerate().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn selected_row(&self) -> usize {
        self.cursor.row.unwrap_or_default()
    }

    /// Returns the `AnswerKeyChoice`s for the current page.
    pub(crate) fn key_choices(
        &self,
        appearance: &Appearance,
    ) -> Vec<(&'static str, Vec<AnswerKeyChoice>)> {
        let choice = |command, label, short_label| {
            AnswerKeyChoice::for_command(&appearance.key_map, command, label, short_label)
        };
        let back = if appearance.ascii { "Left" } else { "←" };
        let Some(user_question) = self.current_question() else {
            let choices = vec![
                AnswerKeyChoice::for_key("Enter", "send answers", "send"),
                AnswerKeyChoice::for_key(back, "go back", "back"),
            ];
            return vec![("", choices)];
        };
        if self.text_input.is_some() {
            let choices = vec![
                AnswerKeyChoice::for_key("Enter", "send", "send"),
                AnswerKeyChoice::for_key("Esc", "go back", "back"),
            ];
            return vec![("", choices)];
        }
        let mut choices = Vec::new();
        match (is_plan_approval(user_question), user_question.allow_multiple) {
            (true, _) => choices.push(AnswerKeyChoice::for_key("1 or 2", "yes", "yes")),
            (false, true) => {
                choices.push(choice(UiCommand::ToggleMark, "mark", "mark"));
                choices.push(AnswerKeyChoice::for_key("Enter", "continue", "continue"));
            }
            (false, false) => choices.push(AnswerKeyChoice::for_key("Enter", "select", "select")),
        }
        match is_plan_approval(user_question) {
            true => choices.push(choice(UiCommand::Deny, "keep planning", "no")),
            false => choices.push(choice(UiCommand::Deny, "skip", "skip")),
        }
        if user_question.allow_custom {
            choices.push(choice(
                UiCommand::DenyWithReason,
                "answer in your own words",
                "own words",
            ));
        }
        if self.page > 0 {
            choices.push(AnswerKeyChoice::for_key(back, "go back", "back"));
        }
        choices.push(choice(UiCommand::ShowFullView, "view full", "all"));
        vec![("", choices)]
    }

    pub(crate) fn escape_note(&self, appearance: &Appearance) -> Option<String> {
        let keys = (
            appearance.key_map.key_hint(UiCommand::Deny),
            appearance.key_map.key_hint(UiCommand::Interrupt),
        );
        let deny_effect = match self.current_question().is_some_and(is_plan_approval) {
            true => "keep planning",
            false => "skip the question",
        };
        self.escape_pressed
            .then(|| format!("Press {} to {deny_effect}, or {} to stop the turn.", keys.0, keys.1))
    }

    fn answers(&self) -> Vec<Vec<String>> {
        let answered = self.questions.iter().zip(&self.replies);
        let answers = answered.map(|(user_question, reply)| {
            let chosen =
                reply.chosen_options.iter().filter_map(|index| user_question.options.get(*index));
            chosen.map(|option| option.label.clone()).chain(reply.own_text.clone()).collect()
        });
        answers.collect()
    }

    /// Goes to the next page, or returns the answers if there is only one question.
    fn advance(&mut self) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        if self.questions.len() == 1 {
            return QuestionKeyOutcome::Answer(self.answers());
        }
        self.go_to_page(self.page + 1);
        QuestionKeyOutcome::Handled
    }

    pub(crate) fn on_key(
        &mut self,
        key: &KeyEvent,
        appearance: &Appearance,
    ) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        if self.text_input.is_some() {
            return self.on_text_key(key, appearance);
        }
        self.escape_pressed = key.code == KeyCode::Esc;
        let Some(user_question) = self.current_question() else { return self.on_review_key(key) };
        let row_count = user_question.options.len() + usize::from(user_question.allow_custom);
        match key.code {
            KeyCode::Esc => return QuestionKeyOutcome::Handled,
            KeyCode::Left if self.page > 0 => self.go_to_page(self.page - 1),
            KeyCode::Right if self.questions.len() > 1 => self.go_to_page(self.page + 1),
            KeyCode::Left | KeyCode::Right => return QuestionKeyOutcome::Handled,
            _ => return self.on_mapped_key(key, appearance, row_count),
        }
        QuestionKeyOutcome::Handled
    }

    fn on_mapped_key(
        &mut self,
        key: &KeyEvent,
        appearance: &Appearance,
        row_count: usize,
    ) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        let allow_multiple =
            self.current_question().is_some_and(|user_question| user_question.allow_multiple);
        let allow_custom =
            self.current_question().is_some_and(|user_question| user_question.allow_custom);
        match appearance.key_map.command_for(KeyScope::Panel, key) {
            Some(UiCommand::ToggleMark) => {
                return self
                    .cursor
                    .row
                    .map_or(QuestionKeyOutcome::Handled, |index| self.choose_row(index));
            }
            Some(UiCommand::ChooseRow) if allow_multiple => {
                let reply = self.replies.get(self.page);
                let marked = reply.is_some_and(|reply| {
                    !reply.chosen_options.is_empty() || reply.own_text.is_some()
                });
                return match self.cursor.row {
                    _ if marked => self.advance(),
                    None => QuestionKeyOutcome::Handled,
                    Some(index) => {
                        let action = self.choose_row(index);
                        if self.text_input.is_some() { action } else { self.advance() }
                    }
                };
            }
            _ => {}
        }
        match self.cursor.on_key(key, row_count, appearance) {
            RowKeyOutcome::Ignored => {}
            RowKeyOutcome::Handled => return QuestionKeyOutcome::Handled,
            RowKeyOutcome::Chosen(index) => return self.choose_row(index),
        }
        match appearance.key_map.command_for(KeyScope::Question, key) {
            Some(UiCommand::Deny) => {
                self.replies
                    .get_mut(self.page)
                    .into_iter()
                    .for_each(|reply| *reply = QuestionReply::default());
                self.advance()
            }
            Some(UiCommand::DenyWithReason) if allow_custom => {
                self.choose_row(row_count.saturating_sub(1))
            }
            Some(UiCommand::ShowFullView) => QuestionKeyOutcome::ShowFullView,
            _ => QuestionKeyOutcome::Ignored,
        }
    }

    /// Chooses a row, or toggles it if several are allowed.
    fn choose_row(&mut self, index: usize) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        self.cursor = RowCursor { row: Some(index) };
        let Some(user_question) = self.questions.get(self.page) else {
            return QuestionKeyOutcome::Ignored;
        };
        let (option_count, allow_multiple) =
            (user_question.options.len(), user_question.allow_multiple);
        let Some(reply) = self.replies.get_mut(self.page) else {
            return QuestionKeyOutcome::Ignored;
        };
        if index >= option_count {
            let mut input = TextInput::default();
            input.insert(reply.own_text.as_deref().unwrap_or_default());
            self.text_input = Some(input);
            return QuestionKeyOutcome::Handled;
        }
        if !allow_multiple {
            *reply = QuestionReply { chosen_options: vec![index], own_text: None };
            return self.advance();
        }
        match reply.chosen_options.iter().position(|chosen| *chosen == index) {
            Some(position) => {
                reply.chosen_options.remove(position);
            }
            None => {
                reply.chosen_options.push(index);
                reply.chosen_options.sort_unstable();
            }
        }
        QuestionKeyOutcome::Handled
    }

    fn on_text_key(
        &mut self,
        key: &KeyEvent,
        appearance: &Appearance,
    ) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        let allow_multiple =
            self.current_question().is_some_and(|user_question| user_question.allow_multiple);
        let Some(input) = &mut self.text_input else { return QuestionKeyOutcome::Ignored };
        match key.code {
            KeyCode::Esc => self.text_input = None,
            KeyCode::Enter => {
                let text = input.text().trim().to_owned();
                self.text_input = None;
                let Some(reply) = self.replies.get_mut(self.page) else {
                    return QuestionKeyOutcome::Ignored;
                };
                reply.own_text = (!text.is_empty()).then_some(text);
                if !allow_multiple {
                    reply.chosen_options.clear();
                }
                // An empty text is no answer, so stay on the page.
                return if reply.own_text.is_some() {
                    self.advance()
                } else {
                    QuestionKeyOutcome::Handled
                };
            }
            _ if input.on_key(key, appearance) => {}
            _ => return QuestionKeyOutcome::Ignored,
        }
        QuestionKeyOutcome::Handled
    }

    fn on_review_key(&mut self, key: &KeyEvent) -> QuestionKeyOutcome<Vec<Vec<String>>> {
        match key.code {
            KeyCode::Enter => return QuestionKeyOutcome::Answer(self.answers()),
            KeyCode::Left | KeyCode::Up => self.go_to_page(self.page.saturating_sub(1)),
            KeyCode::Esc | KeyCode::Right | KeyCode::Down => {}
            KeyCode::Char(digit @ '1'..='9') => {
                let page = digit.to_digit(10).and_then(|digit| usize::try_from(digit - 1).ok());
                let Some(page) = page.filter(|page| *page < self.questions.len()) else {
                    return QuestionKeyOutcome::Ignored;
                };
                self.go_to_page(page);
            }
            _ => return QuestionKeyOutcome::Ignored,
        }
        QuestionKeyOutcome::Handled
    }
}
