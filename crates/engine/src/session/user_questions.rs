//! User questions: a call's question is recorded, asked and answered once, and the answer is
//! recorded before it takes effect. A question left open by a crash is asked again; an answer given
//! before that still applies, if the call asks the same.
//!
//! This module changes the mode only on the user's answer to a question with
//! `QuestionEffect::SetMode`, never on model output.

use super::active_turn::{CallStage, TurnCall};
use super::{EffectList, Session, SessionEffect};
use windlass_protocol::{CallId, Fact, LogSeq, OpError, PermissionMode, UserQuestion};
use windlass_toolkit::QuestionEffect;

/// Maximum number of questions asked at once, and of answers chosen per question.
const MAX_QUESTION_ITEMS: usize = 16;

/// Maximum bytes of a custom answer.
const MAX_ANSWER_BYTES: usize = 16 << 10;

impl Session {
    /// Records `QuestionAsked` for a running call.
    pub(super) fn on_question_asked(
        &mut self,
        (turn, id): (u32, CallId),
        questions: Vec<UserQuestion>,
        effect: QuestionEffect,
        out: &mut EffectList,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let may_ask = !open.interrupted;
        let is_running =
            |call: &&mut TurnCall| matches!(call.stage, CallStage::Running(_)) && may_ask;
        let Some(call) = open.open_call_mut(id).filter(is_running) else { return };
        // The user answered this before; the effect was recorded together with the answer, unless
        // this process did not know it yet.
        if let (true, Some(answers)) =
            (call.question_state.questions == questions, call.question_state.answers.clone())
        {
            let is_pending = std::mem::take(&mut call.question_state.is_effect_pending);
            let mode = chosen_mode(effect, &questions, &answers).filter(|_| is_pending);
            if let Some(mode) = mode {
                self.emit(Fact::ModeChanged { mode }, out);
            }
            return out.0.push(SessionEffect::SendAnswers { call: id, answers });
        }
        if questions.is_empty() || questions.len() > MAX_QUESTION_ITEMS {
            return out.0.push(SessionEffect::SendAnswers { call: id, answers: Vec::new() });
        }
        self.emit(Fact::QuestionAsked { call: id, questions }, out);
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) {
            call.question_state.effect = Some(effect);
            call.question_state.is_effect_pending = false;
        }
    }

    /// Records `QuestionAnswered`. An empty list means that the user declined. The question may be
    /// one of an earlier process, which the call asks again.
    pub(super) fn on_question_answered(
        &mut self,
        (id, asked): (CallId, Option<LogSeq>),
        answers: Vec<Vec<String>>,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        let not_asked = self.not_asked_error(id);
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) else {
            return Err(not_asked);
        };
        let question = &call.question_state;
        let is_open = !question.questions.is_empty() && question.answers.is_none();
        if !is_open || !(asked.is_none() || asked == call.asked_seq) {
            return Err(not_asked);
        }
        if let Err(reason) = check_answers(&call.question_state.questions, &answers) {
            return Err(OpError::Invalid { text: format!("Invalid answer: {reason}.") });
        }
        let effect = call.question_state.effect;
        call.question_state.is_effect_pending = effect.is_none();
        let mode =
            effect.and_then(|effect| chosen_mode(effect, &call.question_state.questions, &answers));
        self.emit(Fact::QuestionAnswered { call: id, answers: answers.clone() }, out);
        if let Some(mode) = mode {
            self.emit(Fact::ModeChanged { mode }, out);
        }
        if effect.is_some() {
            out.0.push(SessionEffect::SendAnswers { call: id, answers });
        }
        Ok(())
    }
}

/// Returns the mode that the user chose from the offered ones, if the question was about the mode.
fn chosen_mode(
    effect: QuestionEffect,
    questions: &[UserQuestion],
    answers: &[Vec<String>],
) -> Option<PermissionMode> {
    let (QuestionEffect::SetMode, [question], [answer]) = (effect, questions, answers) else {
        return None;
    };
    let [label] = answer.as_slice() else { return None };
    let is_offered = question.options.iter().any(|option| option.label == *label);
    label.parse().ok().filter(|_| is_offered)
}

/// Checks that there is one answer per question, or none, and that each is an option or, with
/// `allow_custom`, a custom answer.
fn check_answers(questions: &[UserQuestion], answers: &[Vec<String>]) -> Result<(), &'static str> {
    if answers.is_empty() {
        return Ok(());
    }
    if answers.len() != questions.len() {
        return Err("give one list per question, or none");
    }
    for (question, answer) in questions.iter().zip(answers) {
        let is_option = |text: &String| question.options.iter().any(|option| option.label == *text);
        if answer.len() > 1 && !question.allow_multiple || answer.len() > MAX_QUESTION_ITEMS {
            return Err("only one answer can be chosen");
        }
        if !question.allow_custom && !answer.iter().all(is_option) {
            return Err("it is not one of the options");
        }
        if answer.iter().any(|text| text.len() > MAX_ANSWER_BYTES) {
            return Err("it is too long");
        }
    }
    Ok(())
}
