//! What separates one kind of text from another, and where it does not count: in code.

/// Something a mark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A thought begins, which this ends.
    Think(&'static str),
    /// A thought ends whose beginning was never written.
    Unthink,
    /// A call begins.
    Call(Form),
    /// The end of a call that had already ended.
    Stray,
}

/// How a call is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `<tool_call>…</tool_call>`: Hermes, Qwen.
    Tag,
    /// `<function=NAME>…</function>`: Llama, and Qwen where it forgets the tag around it.
    Function,
    /// `[TOOL_CALLS]…` up to the end: Mistral.
    Bracket,
    /// `<|python_tag|>…` up to the end: Llama.
    Python,
}

/// All marks. None is the beginning of another.
pub(super) const MARKS: &[(&str, Mark)] = &[
    ("<think>", Mark::Think("</think>")),
    ("<thinking>", Mark::Think("</thinking>")),
    ("<thought>", Mark::Think("</thought>")),
    ("<reasoning>", Mark::Think("</reasoning>")),
    ("<seed:think>", Mark::Think("</seed:think>")),
    ("[THINK]", Mark::Think("[/THINK]")),
    ("</think>", Mark::Unthink),
    ("</thinking>", Mark::Unthink),
    ("</thought>", Mark::Unthink),
    ("</reasoning>", Mark::Unthink),
    ("</seed:think>", Mark::Unthink),
    ("[/THINK]", Mark::Unthink),
    ("<tool_call>", Mark::Call(Form::Tag)),
    ("<function=", Mark::Call(Form::Function)),
    ("[TOOL_CALLS]", Mark::Call(Form::Bracket)),
    ("<|python_tag|>", Mark::Call(Form::Python)),
    ("</tool_call>", Mark::Stray),
];

/// True if a mark may begin with this.
pub(super) fn begins(c: char) -> bool {
    matches!(c, '<' | '[')
}

impl Form {
    /// What ends a call of this form, if anything does.
    pub(super) fn close(self) -> Option<&'static str> {
        match self {
            Form::Tag => Some("</tool_call>"),
            Form::Function => Some("</function>"),
            Form::Bracket | Form::Python => None,
        }
    }
}

/// Where in Markdown we are: at the start of a line, in a fence, in a code span, in a quotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    start: bool,
    /// Only whitespace and the marks of lists and quotations were on this line.
    indent: bool,
    /// Spaces this line began with, while there was nothing else.
    spaces: Option<usize>,
    /// This line is quoted, or indented like code.
    quoted: bool,
    /// What fences and spans are made of: backticks, or tildes.
    tick: char,
    /// Ticks in the run under way.
    run: usize,
    /// Backticks that opened the code span under way.
    span: usize,
    /// Backticks this line opens a fence with, unless more of them follow.
    opener: usize,
    /// Backticks that opened the fence we are in.
    fence: usize,
    /// This line closes the fence, unless something follows.
    closing: bool,
}

impl Default for Lines {
    fn default() -> Lines {
        let (run, span, opener, fence) = (0, 0, 0, 0);
        Lines {
            start: true,
            indent: true,
            spaces: Some(0),
            quoted: false,
            tick: '`',
            run,
            span,
            opener,
            fence,
            closing: false,
        }
    }
}

impl Lines {
    /// Takes in the next character of the text.
    pub(super) fn take(&mut self, c: char) {
        if matches!(c, '`' | '~') && (self.run == 0 || self.tick == c) && self.may_tick(c) {
            self.tick = c;
            self.run += 1;
            self.start = false;
            self.spaces = None;
            return;
        }
        self.settle();
        if c == '\n' {
            let fence = match self.fence {
                0 => self.opener,
                _ if self.closing => 0,
                fence => fence,
            };
            let tick = if fence > 0 { self.tick } else { '`' };
            *self = Lines { fence, tick, ..Lines::default() };
            return;
        }
        self.start = false;
        self.quoted |= c == '\t' && self.spaces.is_some();
        if let Some(spaces) = &mut self.spaces {
            self.quoted |= c == '>' || (c == ' ' && *spaces >= 3);
            *spaces += 1;
        }
        if !c.is_whitespace() {
            self.spaces = None;
            self.indent &= matches!(c, '>' | '-' | '*' | '+' | '.' | ')') || c.is_ascii_digit();
            self.closing = false;
        }
    }

    /// Tildes count only where a fence may begin or end, and a fence only ends with what began it.
    fn may_tick(&self, c: char) -> bool {
        match self.fence {
            0 => c == '`' || (self.indent && self.span == 0),
            _ => c == self.tick,
        }
    }

    /// Takes in that no backtick follows.
    pub(super) fn settle(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return;
        }
        if self.fence > 0 {
            self.closing = self.indent && run >= self.fence;
        } else if self.indent && run >= 3 {
            self.opener = run;
            self.span = run;
        } else if self.tick == '~' {
            // Tildes in a line are tildes.
        } else if self.span == 0 {
            self.span = run;
        } else {
            self.opener = 0;
            self.span = if self.span == run { 0 } else { self.span };
        }
        self.indent = false;
    }

    /// True in a line that is quoted, or indented like code.
    pub(super) fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// True at the start of a line.
    pub(super) fn at_start(&self) -> bool {
        self.start
    }

    /// True where marks are only quoted.
    pub(super) fn in_code(&self) -> bool {
        self.fence > 0 || self.opener > 0 || self.span > 0
    }
}
