//! The tags that mark reasoning and calls in text, and the Markdown state that tells where they are
//! only quoted.

/// The meaning of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InlineTag {
    /// Starts reasoning, which ends at the given closing tag.
    ReasoningStart(&'static str),
    /// Ends reasoning whose opening tag was never written.
    ReasoningEnd,
    /// Starts a call in the given `InlineCallSyntax`.
    CallStart(InlineCallSyntax),
    /// A `</tool_call>` after a call that has already ended.
    StrayCallEnd,
}

/// The syntax of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InlineCallSyntax {
    /// `<tool_call>…</tool_call>`: Hermes, Qwen.
    Tag,
    /// `<function=NAME>…</function>`: Llama, and Qwen when it omits the surrounding tag.
    Function,
    /// `[TOOL_CALLS]…` to the end of the response: Mistral.
    Bracket,
    /// `<|python_tag|>…` to the end of the response: Llama.
    Python,
}

/// All tags. No tag is a prefix of another.
pub(super) const INLINE_TAGS: &[(&str, InlineTag)] = &[
    ("<think>", InlineTag::ReasoningStart("</think>")),
    ("<thinking>", InlineTag::ReasoningStart("</thinking>")),
    ("<thought>", InlineTag::ReasoningStart("</thought>")),
    ("<reasoning>", InlineTag::ReasoningStart("</reasoning>")),
    ("<seed:think>", InlineTag::ReasoningStart("</seed:think>")),
    ("[THINK]", InlineTag::ReasoningStart("[/THINK]")),
    ("</think>", InlineTag::ReasoningEnd),
    ("</thinking>", InlineTag::ReasoningEnd),
    ("</thought>", InlineTag::ReasoningEnd),
    ("</reasoning>", InlineTag::ReasoningEnd),
    ("</seed:think>", InlineTag::ReasoningEnd),
    ("[/THINK]", InlineTag::ReasoningEnd),
    ("<tool_call>", InlineTag::CallStart(InlineCallSyntax::Tag)),
    ("<function=", InlineTag::CallStart(InlineCallSyntax::Function)),
    ("[TOOL_CALLS]", InlineTag::CallStart(InlineCallSyntax::Bracket)),
    ("<|python_tag|>", InlineTag::CallStart(InlineCallSyntax::Python)),
    ("</tool_call>", InlineTag::StrayCallEnd),
];

/// Returns true if an `InlineTag` can start with this character.
pub(super) fn can_start_tag(c: char) -> bool {
    matches!(c, '<' | '[')
}

impl InlineCallSyntax {
    /// Returns the tag that ends a call of this syntax, if there is one.
    pub(super) fn closing_tag(self) -> Option<&'static str> {
        match self {
            InlineCallSyntax::Tag => Some("</tool_call>"),
            InlineCallSyntax::Function => Some("</function>"),
            InlineCallSyntax::Bracket | InlineCallSyntax::Python => None,
        }
    }
}

/// The position in Markdown text: start of a line, code fence, code span or quotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MarkdownState {
    line_start: bool,
    /// True if the line so far has only whitespace, list markers and quote markers.
    only_indent: bool,
    /// The number of leading spaces, while the line has nothing else.
    leading_spaces: Option<usize>,
    /// True if the line is quoted or indented as code.
    quoted_line: bool,
    /// The character of the current fence or span: backtick or tilde.
    fence_char: char,
    /// The length of the current run of `fence_char`.
    tick_run: usize,
    /// The number of backticks that opened the current code span.
    code_span: usize,
    /// The number of `fence_char`s that open a fence on this line, unless another run follows.
    fence_opener: usize,
    /// The number of `fence_char`s that opened the current fence.
    open_fence: usize,
    /// True if this line closes the fence, unless other text follows.
    closing_fence: bool,
}

impl Default for MarkdownState {
    fn default() -> MarkdownState {
        MarkdownState {
            line_start: true,
            only_indent: true,
            leading_spaces: Some(0),
            quoted_line: false,
            fence_char: '`',
            tick_run: 0,
            code_span: 0,
            fence_opener: 0,
            open_fence: 0,
            closing_fence: false,
        }
    }
}

impl MarkdownState {
    /// Adds the next character of the text.
    pub(super) fn push_char(&mut self, c: char) {
        if matches!(c, '`' | '~')
            && (self.tick_run == 0 || self.fence_char == c)
            && self.can_be_tick(c)
        {
            self.fence_char = c;
            self.tick_run += 1;
            self.line_start = false;
            self.leading_spaces = None;
            return;
        }
        self.finish_tick_run();
        if c == '\n' {
            let fence = match self.open_fence {
                0 => self.fence_opener,
                _ if self.closing_fence => 0,
                fence => fence,
            };
            let fence_char = if fence > 0 { self.fence_char } else { '`' };
            *self = MarkdownState { open_fence: fence, fence_char, ..MarkdownState::default() };
            return;
        }
        self.line_start = false;
        self.quoted_line |= c == '\t' && self.leading_spaces.is_some();
        if let Some(spaces) = &mut self.leading_spaces {
            self.quoted_line |= c == '>' || (c == ' ' && *spaces >= 3);
            *spaces += 1;
        }
        if !c.is_whitespace() {
            self.leading_spaces = None;
            self.only_indent &=
                matches!(c, '>' | '-' | '*' | '+' | '.' | ')') || c.is_ascii_digit();
            self.closing_fence = false;
        }
    }

    /// Returns true if the character can belong to a fence or span. Tildes count only where a fence
    /// may start or end, and a fence ends only with the character that opened it.
    fn can_be_tick(&self, c: char) -> bool {
        match self.open_fence {
            0 => c == '`' || (self.only_indent && self.code_span == 0),
            _ => c == self.fence_char,
        }
    }

    /// Ends the current run of `fence_char`.
    pub(super) fn finish_tick_run(&mut self) {
        let run = std::mem::take(&mut self.tick_run);
        if run == 0 {
            return;
        }
        if self.open_fence > 0 {
            self.closing_fence = self.only_indent && run >= self.open_fence;
        } else if self.only_indent && run >= 3 {
            self.fence_opener = run;
            self.code_span = run;
        } else if self.fence_char == '~' {
            // Tildes within a line have no meaning.
        } else if self.code_span == 0 {
            self.code_span = run;
        } else {
            self.fence_opener = 0;
            self.code_span = if self.code_span == run { 0 } else { self.code_span };
        }
        self.only_indent = false;
    }

    /// Returns true in a line that is quoted or indented as code.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted_line
    }

    /// Returns true at the start of a line.
    pub(super) fn is_line_start(&self) -> bool {
        self.line_start
    }

    /// Returns true inside code, where tags are only quoted.
    pub(super) fn is_in_code(&self) -> bool {
        self.open_fence > 0 || self.fence_opener > 0 || self.code_span > 0
    }
}
