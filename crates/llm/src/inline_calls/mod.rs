//! Extracts reasoning and calls that a model wrote into its response text.
//!
//! Servers of local models often pass the raw output of the model on. [`InlineCallParser`] runs
//! after the wire format's decoder and parses the tags that models are trained on. It repairs
//! nothing and runs nothing. It keeps the invariant that the split of a text into pieces affects
//! only the time at which events are emitted. A call counts only if the response ended properly;
//! otherwise its raw form is emitted as text. Start reading at [`InlineCallParser::process_event`];
//! `tags` lists the recognized tags, and `partial_call` parses the text after them.

mod call;
mod json_scan;
mod partial_call;
mod tags;
#[cfg(test)]
mod tests;
mod untagged_call;

use crate::ModelEvent;
use call::InlineCall;
use partial_call::{ClosingTagPresence, InlineCallProgress, PartialInlineCall};
use tags::{INLINE_TAGS, InlineTag, MarkdownState};
use untagged_call::UntaggedCall;
use windlass_protocol::FinishReason;

/// Bounds the total bytes of calls held back in `InlineCallList`.
const MAX_HELD_BYTES: usize = 8 << 20;

/// Bounds the number of calls in a response.
const MAX_CALLS: usize = 1_000;

/// Separates reasoning and calls from the text of one response.
#[derive(Clone, Debug, PartialEq)]
pub struct InlineCallParser {
    parse_reasoning: bool,
    /// The normalized names of the offered tools; `None` if calls are not parsed.
    tools: Option<Vec<String>>,
    state: InlineParserState,
    /// Text that may become a tag.
    pending_tag: String,
    markdown: MarkdownState,
    answer_start: ResponseStartState,
    /// True once reasoning was found.
    has_reasoning: bool,
    whitespace_owner: WhitespaceOwner,
    calls: InlineCallList,
    /// True once the server emitted a call itself.
    has_native_calls: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum InlineParserState {
    Text,
    Reasoning { close: &'static str, has_text: bool },
    Call(PartialInlineCall),
}

#[derive(Clone, Debug, PartialEq)]
enum ResponseStartState {
    /// Only this whitespace so far.
    Blank(String),
    /// The response may consist only of a call.
    BareCall(UntaggedCall),
    Started,
}

/// The element that the current whitespace belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhitespaceOwner {
    Text,
    Reasoning,
    Call,
}

/// The calls found so far.
#[derive(Clone, Debug, Default, PartialEq)]
struct InlineCallList {
    parsed: Vec<InlineCall>,
    /// The raw text of all calls.
    raw: String,
    /// True if no further calls are accepted.
    is_full: bool,
}

/// Collects events and joins adjacent `Text` or `Reasoning` events.
#[derive(Default)]
struct EventBuffer(Vec<ModelEvent>);

impl EventBuffer {
    fn push_text(&mut self, c: char) {
        match self.0.last_mut() {
            Some(ModelEvent::Text(text)) => text.push(c),
            _ => self.0.push(ModelEvent::Text(c.into())),
        }
    }

    fn push_reasoning(&mut self, c: char) {
        match self.0.last_mut() {
            Some(ModelEvent::Reasoning(text)) => text.push(c),
            _ => self.0.push(ModelEvent::Reasoning(c.into())),
        }
    }
}

impl InlineCallParser {
    /// Creates a parser for one response. With `parse_reasoning`, tagged reasoning is separated;
    /// with the names of the offered `tools`, calls written as text are parsed.
    pub fn new(parse_reasoning: bool, tools: Option<Vec<String>>) -> InlineCallParser {
        InlineCallParser {
            parse_reasoning,
            tools: tools.map(|tools| {
                tools.iter().map(|tool| untagged_call::fold_tool_name(tool)).collect()
            }),
            state: InlineParserState::Text,
            pending_tag: String::new(),
            markdown: MarkdownState::default(),
            answer_start: ResponseStartState::Blank(String::new()),
            has_reasoning: false,
            whitespace_owner: WhitespaceOwner::Text,
            calls: InlineCallList::default(),
            has_native_calls: false,
        }
    }

    /// Processes an event and appends the resulting events to `out`. Text that is held back when a
    /// step fails is dropped.
    pub fn process_event(&mut self, event: ModelEvent, out: &mut Vec<ModelEvent>) {
        if !self.parse_reasoning && self.tools.is_none() {
            out.push(event);
            return;
        }
        let mut buffer = EventBuffer::default();
        match event {
            ModelEvent::Text(text) => {
                for c in text.chars() {
                    self.feed_char(c, &mut buffer);
                }
            }
            ModelEvent::Reasoning(_) | ModelEvent::ProviderSignature(_) => {
                self.release_held(&mut buffer);
                buffer.0.push(event);
            }
            ModelEvent::Call { .. } => {
                self.has_native_calls = true;
                self.release_held(&mut buffer);
                self.emit_leading_whitespace(&mut buffer);
                buffer.0.push(event);
            }
            ModelEvent::Ended { finish, usage } => {
                let finish = self.finish_answer(finish, &mut buffer);
                buffer.0.push(ModelEvent::Ended { finish, usage });
            }
            // Only shown, so it changes no state.
            ModelEvent::CallDelta { .. } | ModelEvent::Failed(_) => buffer.0.push(event),
        }
        out.append(&mut buffer.0);
    }

    fn feed_char(&mut self, c: char, out: &mut EventBuffer) {
        match &mut self.state {
            InlineParserState::Reasoning { close, .. } => {
                let close = *close;
                self.feed_reasoning_char(c, close, out);
            }
            InlineParserState::Call(_) => self.feed_call_char(c, out),
            InlineParserState::Text => match &mut self.answer_start {
                ResponseStartState::BareCall(bare_call) => {
                    if !bare_call.push_char(c) {
                        self.abandon_bare_call(out);
                    }
                }
                ResponseStartState::Blank(_) | ResponseStartState::Started => {
                    self.match_tag(c, out)
                }
            },
        }
    }

    fn feed_text(&mut self, text: &str, out: &mut EventBuffer) {
        for c in text.chars() {
            self.feed_char(c, out);
        }
    }

    /// Reparses the held text as normal text, because it is not only a call.
    fn abandon_bare_call(&mut self, out: &mut EventBuffer) {
        if let ResponseStartState::BareCall(bare_call) =
            std::mem::replace(&mut self.answer_start, ResponseStartState::Started)
        {
            self.feed_text(&bare_call.into_text(), out);
        }
    }

    /// Adds a character and checks it against the known tags.
    fn match_tag(&mut self, c: char, out: &mut EventBuffer) {
        if self.pending_tag.is_empty() {
            if !tags::can_start_tag(c) {
                return self.handle_plain_char(c, out);
            }
            self.markdown.finish_tick_run();
        }
        self.pending_tag.push(c);
        let mut may_continue = false;
        for (text, tag) in INLINE_TAGS {
            if text.starts_with(&self.pending_tag) && self.allows_tag(*tag) {
                if text.len() == self.pending_tag.len() {
                    self.pending_tag.clear();
                    return self.begin_tag(text, *tag, out);
                }
                may_continue = true;
            }
        }
        if !may_continue {
            let held_text = std::mem::take(&mut self.pending_tag);
            let mut chars = held_text.chars();
            if let Some(first) = chars.next() {
                self.handle_plain_char(first, out);
            }
            self.feed_text(chars.as_str(), out);
        }
    }

    /// Returns true if `tag` has a meaning at this position.
    fn allows_tag(&self, tag: InlineTag) -> bool {
        let is_line_start = matches!(self.answer_start, ResponseStartState::Blank(_))
            || self.markdown.is_line_start();
        let is_possible = match tag {
            InlineTag::ReasoningStart(_) => self.parse_reasoning && is_line_start,
            InlineTag::ReasoningEnd => self.parse_reasoning && !self.has_reasoning,
            InlineTag::CallStart(_) => self.tools.is_some() && !self.calls.is_full,
            InlineTag::StrayCallEnd => {
                self.whitespace_owner == WhitespaceOwner::Call
                    && self.calls.raw.len() < MAX_HELD_BYTES
            }
        };
        is_possible && !self.markdown.is_in_code() && !self.markdown.is_quoted()
    }

    fn begin_tag(&mut self, text: &str, tag: InlineTag, out: &mut EventBuffer) {
        let whitespace = match &mut self.answer_start {
            ResponseStartState::Blank(whitespace) => std::mem::take(whitespace),
            ResponseStartState::BareCall(_) | ResponseStartState::Started => String::new(),
        };
        match tag {
            InlineTag::ReasoningStart(close) => {
                self.has_reasoning = true;
                self.state = InlineParserState::Reasoning { close, has_text: false };
            }
            InlineTag::ReasoningEnd => {
                self.has_reasoning = true;
                // Everything before was reasoning, and a call inside reasoning does not count.
                self.emit_calls_as_text(out);
                self.answer_start = ResponseStartState::Blank(String::new());
                self.resume_text(WhitespaceOwner::Reasoning);
            }
            InlineTag::CallStart(syntax) => {
                self.answer_start = ResponseStartState::Started;
                self.state =
                    InlineParserState::Call(PartialInlineCall::new(syntax, whitespace, text));
            }
            InlineTag::StrayCallEnd => self.calls.raw.push_str(text),
        }
    }

    /// Emits the calls found so far as text.
    fn emit_calls_as_text(&mut self, out: &mut EventBuffer) {
        self.calls.parsed.clear();
        let raw = std::mem::take(&mut self.calls.raw);
        self.emit_text(&raw, out);
    }

    /// Returns to text, as if at the start of a line.
    fn resume_text(&mut self, owner: WhitespaceOwner) {
        self.state = InlineParserState::Text;
        self.markdown = MarkdownState::default();
        self.whitespace_owner = owner;
    }

    /// Handles a character that belongs to no `InlineTag`.
    fn handle_plain_char(&mut self, c: char, out: &mut EventBuffer) {
        if c.is_whitespace() {
            match self.whitespace_owner {
                WhitespaceOwner::Reasoning => return,
                WhitespaceOwner::Call if self.calls.raw.len() < MAX_HELD_BYTES => {
                    return self.calls.raw.push(c);
                }
                WhitespaceOwner::Call | WhitespaceOwner::Text => {}
            }
        }
        self.whitespace_owner = WhitespaceOwner::Text;
        if let ResponseStartState::Blank(whitespace) = &mut self.answer_start {
            if c.is_whitespace() && whitespace.len() < untagged_call::MAX_BARE_CALL_BYTES {
                return whitespace.push(c);
            }
            if self.tools.is_some()
                && let Some(bare_call) = UntaggedCall::new(whitespace, c)
            {
                self.answer_start = ResponseStartState::BareCall(bare_call);
                return;
            }
            self.emit_leading_whitespace(out);
        }
        self.emit_char(c, out);
    }

    /// Emits the whitespace at the start of the response as text.
    fn emit_leading_whitespace(&mut self, out: &mut EventBuffer) {
        if let ResponseStartState::Blank(whitespace) =
            std::mem::replace(&mut self.answer_start, ResponseStartState::Started)
        {
            self.emit_text(&whitespace, out);
        }
    }

    fn emit_char(&mut self, c: char, out: &mut EventBuffer) {
        self.markdown.push_char(c);
        out.push_text(c);
    }

    fn emit_text(&mut self, text: &str, out: &mut EventBuffer) {
        for c in text.chars() {
            self.emit_char(c, out);
        }
    }

    /// Handles a character inside reasoning.
    fn feed_reasoning_char(&mut self, c: char, close: &'static str, out: &mut EventBuffer) {
        if self.pending_tag.is_empty() && !close.starts_with(c) {
            return self.emit_reasoning_char(c, out);
        }
        self.pending_tag.push(c);
        if close == self.pending_tag {
            self.pending_tag.clear();
            self.resume_text(WhitespaceOwner::Reasoning);
        } else if !close.starts_with(&self.pending_tag) {
            let held_text = std::mem::take(&mut self.pending_tag);
            let mut chars = held_text.chars();
            if let Some(first) = chars.next() {
                self.emit_reasoning_char(first, out);
            }
            self.feed_text(chars.as_str(), out);
        }
    }

    fn emit_reasoning_char(&mut self, c: char, out: &mut EventBuffer) {
        if let InlineParserState::Reasoning { has_text, .. } = &mut self.state {
            *has_text |= !c.is_whitespace();
            if *has_text {
                out.push_reasoning(c);
            }
        }
    }

    /// Handles a character inside a call.
    fn feed_call_char(&mut self, c: char, out: &mut EventBuffer) {
        let InlineParserState::Call(partial) = &mut self.state else { return };
        let progress = partial.push_char(c);
        let is_full = self.calls.raw.len() + partial.len() > MAX_HELD_BYTES;
        if progress == InlineCallProgress::Incomplete && !is_full {
            return;
        }
        let InlineParserState::Call(partial) =
            std::mem::replace(&mut self.state, InlineParserState::Text)
        else {
            return;
        };
        self.whitespace_owner = WhitespaceOwner::Text;
        if is_full {
            self.calls.is_full = true;
            self.emit_text(&partial.into_raw(), out);
        } else if progress == InlineCallProgress::Complete {
            self.store_call(partial, ClosingTagPresence::Present, out);
        } else {
            let (tag, body) = partial.split_tag();
            self.emit_text(&tag, out);
            self.feed_text(&body, out);
        }
    }

    /// Stores a call until the end of the response, or emits it as text if it does not parse.
    fn store_call(
        &mut self,
        partial: PartialInlineCall,
        end: ClosingTagPresence,
        out: &mut EventBuffer,
    ) {
        let calls = partial.parse_calls(end);
        let raw = partial.into_raw();
        match calls {
            Some(calls) if self.calls.parsed.len() + calls.len() <= MAX_CALLS => {
                self.calls.parsed.extend(calls);
                self.calls.raw.push_str(&raw);
                self.resume_text(WhitespaceOwner::Call);
            }
            Some(_) => {
                self.calls.is_full = true;
                self.emit_text(&raw, out);
            }
            None => self.emit_text(&raw, out),
        }
    }

    /// Emits text that was held back because a tag or call could have followed.
    fn release_held(&mut self, out: &mut EventBuffer) {
        while matches!(self.answer_start, ResponseStartState::BareCall(_)) {
            self.abandon_bare_call(out);
        }
        let held_text = std::mem::take(&mut self.pending_tag);
        if matches!(self.state, InlineParserState::Reasoning { .. }) {
            held_text.chars().for_each(|c| self.emit_reasoning_char(c, out));
            return;
        }
        if !held_text.is_empty() {
            self.whitespace_owner = WhitespaceOwner::Text;
            self.emit_leading_whitespace(out);
            self.emit_text(&held_text, out);
        }
        if let ResponseStartState::Blank(whitespace) = &mut self.answer_start {
            let whitespace = std::mem::take(whitespace);
            self.emit_text(&whitespace, out);
        }
    }

    /// Handles the end of the response and returns the actual finish reason.
    fn finish_answer(&mut self, finish: FinishReason, out: &mut EventBuffer) -> FinishReason {
        if !matches!(finish, FinishReason::Stop | FinishReason::ToolCalls) {
            self.release_held(out);
            let raw = std::mem::take(&mut self.calls.raw);
            self.emit_text(&raw, out);
            if let InlineParserState::Call(partial) =
                std::mem::replace(&mut self.state, InlineParserState::Text)
            {
                self.emit_text(&partial.into_raw(), out);
            }
            return finish;
        }
        if let (ResponseStartState::BareCall(bare_call), Some(tools)) =
            (&self.answer_start, &self.tools)
            && let Some(calls) = bare_call.parse_calls(tools)
            && self.calls.parsed.len() + calls.len() <= MAX_CALLS
        {
            self.answer_start = ResponseStartState::Started;
            self.calls.parsed.extend(calls);
        }
        self.release_held(out);
        while let InlineParserState::Call(partial) =
            std::mem::replace(&mut self.state, InlineParserState::Text)
        {
            self.finish_open_call(partial, out);
            self.release_held(out);
        }
        // A server that parses calls itself may also leave them in the text.
        if self.has_native_calls {
            self.emit_calls_as_text(out);
        }
        let calls = std::mem::take(&mut self.calls.parsed);
        let finish = if calls.is_empty() { finish } else { FinishReason::ToolCalls };
        out.0.extend(calls.into_iter().enumerate().map(|(index, call)| ModelEvent::Call {
            reference: format!("text_call_{index}"),
            tool: call.tool,
            arguments: call.arguments,
            provider_signature: None,
            repairs: vec!["the call was written as text".into()],
        }));
        finish
    }

    /// Handles a response that ends inside a call. If the whole text does not parse, a closing tag
    /// that looked like part of an argument was the real end.
    fn finish_open_call(&mut self, partial: PartialInlineCall, out: &mut EventBuffer) {
        self.whitespace_owner = WhitespaceOwner::Text;
        if partial.parse_calls(ClosingTagPresence::Missing).is_some() {
            return self.store_call(partial, ClosingTagPresence::Missing, out);
        }
        match partial.split_at_ambiguous_end() {
            (partial, Some(rest)) => {
                self.store_call(partial, ClosingTagPresence::Present, out);
                // The rest may be quoted text, so calls in it do not count.
                self.emit_text(&rest, out);
            }
            (partial, None) => self.emit_text(&partial.into_raw(), out),
        }
    }
}
