//! Folds the facts of the log into transcript blocks, each rendered on its own.
//!
//! A block stores the positions of its facts rather than their texts, so rebuilding a window costs
//! next to nothing. Its `TranscriptBlockKey` is the position of the fact that created it. Invariant: blocks
//! are sorted by key.

use super::loaded_log_window::LoadedLogWindow;
use super::prompt_content::PromptContent;
use std::collections::HashMap;
use std::rc::Rc;
use windlass_protocol::display_text::model_with_effort;
use windlass_protocol::{
    CallId, ContextChange, Cost, Fact, FactRecord, FinishReason, HookVerdict, LogSeq,
    PermissionMode, PromptId, SessionId, StepPurpose, TurnEndReason, UnixMillis, command_of_prompt,
};

/// The key of a block: the position of the fact that created it, and a counter for notes that came
/// right after it and are no facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TranscriptBlockKey(pub LogSeq, pub u32);

/// One block of the transcript; see `TranscriptBlockKind`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscriptBlock {
    pub key: TranscriptBlockKey,
    pub kind: TranscriptBlockKind,
    /// Changes whenever the block looks different.
    pub revision: u64,
}

impl TranscriptBlock {
    /// Forces a new rendering. Log positions never reach this half of the `u64` range.
    fn mark_changed(&mut self) {
        self.revision = (self.revision | (1 << 63)).wrapping_add(1 << 32);
    }
}

/// The kind of a transcript block.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TranscriptBlockKind {
    /// A prompt, at the point where the model received it; `content` is `None` if its text lies
    /// outside the window.
    Prompt {
        content: Option<Rc<PromptContent>>,
        steered: bool,
    },
    ModelText,
    Reasoning,
    ToolCall(Box<CallBlock>),
    /// The end of a turn, with its cost and, if the `TurnStarted` fact is loaded, its duration.
    TurnEnded {
        duration_ms: Option<u64>,
        cost: Cost,
        lacks_answer: bool,
        /// The purpose of its last step.
        purpose: StepPurpose,
    },
    ModeChanged(PermissionMode),
    AgentChanged(String),
    /// The user chose this model.
    ModelChanged(String),
    /// The conversation was compacted (`ContextCompacted`).
    Compacted,
    /// The session was forked (`SessionForked`): everything before this block is copied.
    Forked,
    /// The session was rewound to this point.
    Rewound,
    /// A hook denied or failed.
    HookDenied,
    /// A model request is retried.
    Retrying,
    /// Text of the model was lost (`FinishReason::ProcessDied`).
    LostText,
    /// Facts that are missing or damaged.
    FactsLost,
    /// The model was informed of a change (`ContextChanged`).
    ModelNotice,
    /// A note, which is not part of the session.
    Note(Rc<str>),
}

/// The state of a call, as the log positions of its facts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallBlock {
    pub id: CallId,
    pub permission_asked: Option<LogSeq>,
    pub permission_answered: Option<LogSeq>,
    pub started: Option<LogSeq>,
    pub question_asked: Option<LogSeq>,
    pub question_answered: Option<LogSeq>,
    pub settled: Option<LogSeq>,
    pub subagent: Option<SessionId>,
}

impl CallBlock {
    fn new(id: CallId) -> CallBlock {
        CallBlock {
            id,
            permission_asked: None,
            permission_answered: None,
            started: None,
            question_asked: None,
            question_answered: None,
            settled: None,
            subagent: None,
        }
    }

    /// Returns true while the call waits for the user's answer.
    pub fn is_awaiting_user(&self) -> bool {
        let open = self.permission_asked > self.permission_answered
            || self.question_asked > self.question_answered;
        open && self.settled.is_none()
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenTurn {
    number: u32,
    started_at: UnixMillis,
    cost: Cost,
    /// True if the last answer of the model has no text so far.
    lacks_answer: bool,
    /// The purpose of the last step.
    purpose: StepPurpose,
}

impl OpenTurn {
    fn new(number: u32, started_at: UnixMillis) -> OpenTurn {
        let (cost, purpose) = (Cost::default(), StepPurpose::Answer);
        OpenTurn { number, started_at, cost, lacks_answer: false, purpose }
    }
}

/// The blocks of a `LoadedLogWindow`.
#[derive(Debug, Default)]
pub(super) struct TranscriptBlockList {
    pub blocks: Vec<TranscriptBlock>,
    calls: HashMap<CallId, TranscriptBlockKey>,
    turn: Option<OpenTurn>,
    /// The prompts seen so far.
    prompts: HashMap<PromptId, Rc<PromptContent>>,
    /// The ranges removed by a rewind: after the first position, before the second.
    rewound_ranges: Vec<(LogSeq, LogSeq)>,
    /// A mode that was chosen while a call ran; its line follows that call.
    pending_mode: Option<(TranscriptBlockKey, PermissionMode)>,
    /// The notes, in order.
    notes: Vec<(TranscriptBlockKey, Rc<str>)>,
}

/// The shortest turn, in milliseconds, whose duration is shown.
const MIN_SHOWN_TURN_MS: u64 = 10_000;
const MAX_NOTES: usize = 100;
/// The number of prompts above which those that no block shows are dropped.
const MAX_REMEMBERED_PROMPTS: usize = 400;

impl TranscriptBlockList {
    /// Rebuilds the blocks after facts were added before the window or dropped from it.
    pub fn rebuild(&mut self, window: &LoadedLogWindow) {
        self.blocks.clear();
        self.calls.clear();
        (self.turn, self.pending_mode) = (None, None);
        let notes = std::mem::take(&mut self.notes);
        let (first, last) = window.span().unwrap_or_default();
        // A note is shown only if the window covers its position, never at the edge of another
        // window.
        let is_in_window =
            |key: TranscriptBlockKey| key.0 + 1 >= first && (key.0 <= last || window.holds_end());
        let mut notes_left = notes.into_iter().peekable();
        for record in window.iter() {
            while let Some((key, text)) = notes_left.next_if(|(key, _)| key.0 < record.seq) {
                self.store_note(key, text, is_in_window(key));
            }
            self.push_record(record);
        }
        for (key, text) in notes_left {
            self.store_note(key, text, is_in_window(key));
        }
        if self.prompts.len() > MAX_REMEMBERED_PROMPTS {
            self.prompts.retain(|_, content| Rc::strong_count(content) > 1);
        }
    }

    /// Adds a `TranscriptBlockKind::Note` after a log position.
    pub fn add_note(&mut self, seq: LogSeq, text: &str) {
        let last = self.notes.last().filter(|(key, _)| key.0 >= seq);
        let key = last
            .map_or(TranscriptBlockKey(seq, 1), |(key, _)| TranscriptBlockKey(key.0, key.1 + 1));
        self.store_note(key, text.into(), true);
        if self.notes.len() > MAX_NOTES {
            let (old, _) = self.notes.remove(0);
            self.blocks.retain(|block| block.key != old);
        }
    }

    fn store_note(&mut self, key: TranscriptBlockKey, text: Rc<str>, is_visible: bool) {
        if is_visible {
            self.push_block(key, TranscriptBlockKind::Note(text.clone()));
        }
        self.notes.push((key, text));
    }

    /// Returns the texts of all notes.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(|(_, text)| text.as_ref())
    }

    /// Creates a list with the notes of another one, after a log position.
    pub fn with_notes_of(other: TranscriptBlockList, seq: LogSeq) -> TranscriptBlockList {
        let mut list = TranscriptBlockList::default();
        for (_, text) in other.notes {
            list.add_note(seq, &text);
        }
        list
    }

    /// Returns true if a fact lies in one of the `rewound_ranges`.
    fn is_rewound(&self, seq: LogSeq) -> bool {
        self.rewound_ranges.iter().any(|(to, rewound_at)| *to < seq && seq < *rewound_at)
    }

    fn push_block(&mut self, key: TranscriptBlockKey, kind: TranscriptBlockKind) {
        self.flush_pending_mode();
        self.blocks.push(TranscriptBlock { key, kind, revision: key.0 });
    }

    fn change_mode(&mut self, key: TranscriptBlockKey, mode: PermissionMode) {
        self.pending_mode = Some((key, mode));
        // Below a running call, the line would look like a part of what comes after it.
        if !self.has_open_call() {
            self.flush_pending_mode();
        }
    }

    /// Adds the line of the `pending_mode`.
    fn flush_pending_mode(&mut self) {
        if let Some((key, mode)) = self.pending_mode.take() {
            self.replace_last_block(key, TranscriptBlockKind::ModeChanged(mode));
        }
    }

    /// Returns true if a call of this turn has not settled.
    fn has_open_call(&self) -> bool {
        let blocks = self.blocks.iter().rev().take_while(|block| !block.kind.is_prompt());
        let mut calls = blocks.filter_map(|block| match &block.kind {
            TranscriptBlockKind::ToolCall(call) => Some(call),
            _ => None,
        });
        calls.any(|call| call.settled.is_none())
    }

    fn last_block_mut(&mut self) -> Option<&mut TranscriptBlock> {
        self.blocks.last_mut()
    }

    /// Returns the index of a block, or the index at which it would be inserted.
    pub fn position_of(&self, key: TranscriptBlockKey) -> Result<usize, usize> {
        self.blocks.binary_search_by_key(&key, |block| block.key)
    }

    fn update_call(&mut self, id: CallId, seq: LogSeq, change: impl FnOnce(&mut CallBlock)) {
        let Some(index) = self.calls.get(&id).and_then(|key| self.position_of(*key).ok()) else {
            return;
        };
        let Some(block) = self.blocks.get_mut(index) else { return };
        block.revision = seq;
        if let TranscriptBlockKind::ToolCall(call) = &mut block.kind {
            change(call);
        }
    }

    /// Forces a new rendering of a call after a `LiveEvent`.
    pub fn mark_call_changed(&mut self, id: CallId) {
        let Some(index) = self.calls.get(&id).and_then(|key| self.position_of(*key).ok()) else {
            return;
        };
        if let Some(block) = self.blocks.get_mut(index) {
            block.mark_changed();
        }
    }

    /// Forces a new rendering of all running calls, which show their duration.
    pub fn mark_running_changed(&mut self) {
        for block in &mut self.blocks {
            if let TranscriptBlockKind::ToolCall(call) = &block.kind
                && call.started.is_some()
                && call.settled.is_none()
            {
                block.mark_changed();
            }
        }
    }

    /// Adds a block, in place of the last one if that is of the same kind: only the last of several
    /// changes in a row matters.
    fn replace_last_block(&mut self, key: TranscriptBlockKey, kind: TranscriptBlockKind) {
        match self.last_block_mut() {
            Some(last) if std::mem::discriminant(&last.kind) == std::mem::discriminant(&kind) => {
                (last.kind, last.revision) = (kind, key.0);
            }
            _ => self.push_block(key, kind),
        }
    }

    /// Folds the next fact into the blocks.
    pub fn push_record(&mut self, record: &FactRecord) {
        let (seq, key) = (record.seq, TranscriptBlockKey(record.seq, 0));
        if let Fact::PromptSubmitted { prompt, text, attachments, .. } = &record.fact {
            let content = || Rc::new(PromptContent::new(record, text, attachments));
            self.prompts.entry(*prompt).or_insert_with(content);
        }
        if self.is_rewound(seq) {
            return;
        }
        match &record.fact {
            Fact::ModeChanged { mode } => self.change_mode(key, *mode),
            Fact::AgentChanged { agent } => {
                self.replace_last_block(key, TranscriptBlockKind::AgentChanged(agent.clone()))
            }
            Fact::ModelChanged { model, effort } => {
                let name = model_with_effort(model, effort.as_deref());
                self.replace_last_block(key, TranscriptBlockKind::ModelChanged(name))
            }
            Fact::SessionForked { .. } => self.push_block(key, TranscriptBlockKind::Forked),
            Fact::ContextCompacted { .. } => self.push_block(key, TranscriptBlockKind::Compacted),
            Fact::Rewound { to } => self.rewind(key, *to),
            Fact::TurnStarted { turn, prompt } => {
                self.turn = Some(OpenTurn::new(*turn, record.at));
                if let Some(prompt) = prompt {
                    let content = self.prompts.get(prompt).cloned();
                    self.push_block(key, TranscriptBlockKind::Prompt { content, steered: false });
                }
            }
            Fact::PromptSteered { prompt, .. } => {
                let content = self.prompts.get(prompt).cloned();
                self.push_block(key, TranscriptBlockKind::Prompt { content, steered: true });
            }
            Fact::StepEnded { finish_reason, cost, .. } => {
                if let (Some(turn), Some(cost)) = (&mut self.turn, cost) {
                    turn.cost += *cost;
                }
                if *finish_reason == FinishReason::ProcessDied {
                    self.push_block(key, TranscriptBlockKind::LostText);
                }
            }
            Fact::StepRetrying { model, .. } => self.push_retry(key, model.is_some()),
            Fact::TurnEnded { turn, end } => self.end_turn(record, *turn, end),
            Fact::StepStarted { purpose, .. } => self.start_step(*purpose),
            Fact::ModelText { text, .. } if !text.trim().is_empty() => {
                self.set_lacks_answer(false);
                self.push_block(key, TranscriptBlockKind::ModelText)
            }
            Fact::ModelReasoning { text, .. } if !text.trim().is_empty() => {
                self.push_block(key, TranscriptBlockKind::Reasoning)
            }
            Fact::HookRan { call: None, verdict, .. } => match verdict {
                HookVerdict::Refused { .. } | HookVerdict::Failed { .. } => {
                    self.push_block(key, TranscriptBlockKind::HookDenied)
                }
                HookVerdict::Passed | HookVerdict::Rewrote | HookVerdict::Asks { .. } => {}
            },
            // The line of `ModeChanged` says it already.
            Fact::ContextChanged { change: ContextChange::Mode { .. }, .. } => {}
            Fact::ContextChanged { .. } => self.push_block(key, TranscriptBlockKind::ModelNotice),
            Fact::FactsLost { .. } => self.push_block(key, TranscriptBlockKind::FactsLost),
            Fact::ToolCalled { call, .. } => {
                self.calls.insert(*call, key);
                self.push_block(
                    key,
                    TranscriptBlockKind::ToolCall(Box::new(CallBlock::new(*call))),
                );
            }
            Fact::PermissionAsked { call, .. } => {
                self.update_call(*call, seq, |call| call.permission_asked = Some(seq))
            }
            Fact::PermissionAnswered { call, .. } => {
                self.update_call(*call, seq, |call| call.permission_answered = Some(seq))
            }
            Fact::CallStarted { call, .. } => {
                self.update_call(*call, seq, |call| call.started = Some(seq))
            }
            Fact::QuestionAsked { call, .. } => {
                self.update_call(*call, seq, |call| call.question_asked = Some(seq))
            }
            Fact::QuestionAnswered { call, .. } => {
                self.update_call(*call, seq, |call| call.question_answered = Some(seq))
            }
            Fact::CallSettled { call, .. } => {
                self.update_call(*call, seq, |call| call.settled = Some(seq));
                if !self.has_open_call() {
                    self.flush_pending_mode();
                }
            }
            Fact::SubagentStarted { call, session, .. } => {
                self.update_call(*call, seq, |call| call.subagent = Some(*session));
            }
            // The outcome of a call already shows what its hooks decided.
            Fact::HookRan { call: Some(_), .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::PromptSubmitted { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. } => {}
        }
    }

    /// Adds the line of a retry. Only the last retry is worth one, and every change of the model.
    fn push_retry(&mut self, key: TranscriptBlockKey, changes_model: bool) {
        let is_retry = |block: &mut TranscriptBlock| block.kind == TranscriptBlockKind::Retrying;
        if !changes_model && self.last_block_mut().is_some_and(is_retry) {
            self.blocks.pop();
        }
        self.push_block(key, TranscriptBlockKind::Retrying);
    }

    fn start_step(&mut self, purpose: StepPurpose) {
        if let Some(turn) = &mut self.turn {
            turn.purpose = purpose;
            turn.lacks_answer |= purpose == StepPurpose::Answer;
        }
    }

    fn set_lacks_answer(&mut self, lacks_answer: bool) {
        if let Some(turn) = &mut self.turn {
            turn.lacks_answer = lacks_answer;
        }
    }

    fn rewind(&mut self, key: TranscriptBlockKey, to: LogSeq) {
        if !self.rewound_ranges.contains(&(to, key.0)) {
            self.rewound_ranges.push((to, key.0));
        }
        self.blocks.retain(|block| block.key.0 <= to);
        self.notes.retain(|(note_key, _)| note_key.0 <= to);
        self.calls.retain(|_, call_key| call_key.0 <= to);
        (self.turn, self.pending_mode) = (None, None);
        self.push_block(key, TranscriptBlockKind::Rewound);
    }

    fn end_turn(&mut self, record: &FactRecord, number: u32, end: &TurnEndReason) {
        let turn = self.turn.take().filter(|turn| turn.number == number);
        let duration_ms = turn.map(|turn| record.at.0.saturating_sub(turn.started_at.0));
        let cost = turn.map_or(Cost::default(), |turn| turn.cost);
        let lacks_answer = turn.is_some_and(|turn| turn.lacks_answer);
        let purpose = turn.map_or(StepPurpose::Answer, |turn| turn.purpose);
        let is_short = duration_ms.is_none_or(|duration_ms| duration_ms < MIN_SHOWN_TURN_MS);
        if *end != TurnEndReason::Completed || !is_short || lacks_answer {
            self.push_block(
                TranscriptBlockKey(record.seq, 0),
                TranscriptBlockKind::TurnEnded { duration_ms, cost, lacks_answer, purpose },
            );
        }
    }
}

impl TranscriptBlockKind {
    /// Returns true for `TranscriptBlockKind::Prompt`.
    pub fn is_prompt(&self) -> bool {
        matches!(self, TranscriptBlockKind::Prompt { .. })
    }

    /// Returns true if the block shows more when it is opened.
    pub fn can_open(&self) -> bool {
        match self {
            TranscriptBlockKind::ToolCall(_)
            | TranscriptBlockKind::Reasoning
            | TranscriptBlockKind::Compacted
            | TranscriptBlockKind::ModelNotice => true,
            TranscriptBlockKind::Prompt { content, .. } => {
                let has_more = |content: &Rc<PromptContent>| {
                    content.text.lines().count() > 8
                        || !content.attachments.is_empty()
                        || command_of_prompt(&content.text).is_some()
                };
                content.as_ref().is_some_and(has_more)
            }
            TranscriptBlockKind::ModelText
            | TranscriptBlockKind::TurnEnded { .. }
            | TranscriptBlockKind::ModeChanged(_)
            | TranscriptBlockKind::AgentChanged(_)
            | TranscriptBlockKind::ModelChanged(_)
            | TranscriptBlockKind::Forked
            | TranscriptBlockKind::Rewound
            | TranscriptBlockKind::HookDenied
            | TranscriptBlockKind::Retrying
            | TranscriptBlockKind::LostText
            | TranscriptBlockKind::FactsLost
            | TranscriptBlockKind::Note(_) => false,
        }
    }
}
