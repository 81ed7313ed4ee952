//! Splits markdown into blocks, line by line.
//!
//! The splitter never revises a decision, so a streaming text is laid out only once per block. It
//! splits at blank lines outside of code fences, before every list item, and before and after every
//! fence.

use std::ops::Range;

/// The kind of a markdown block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkdownBlockKind {
    /// A paragraph, heading, table, quote or similar.
    Text,
    /// A list item with everything nested in it.
    Item {
        /// The number of an ordered item.
        number: Option<u64>,
    },
}

/// A markdown block that has ended, as `MarkdownBlockSplitter` returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkdownBlock {
    pub kind: MarkdownBlockKind,
    /// The byte range of the block in the text.
    pub range: Range<usize>,
    pub follows_blank_line: bool,
}

/// The effect of one line on the current block of a `MarkdownBlockSplitter`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MarkdownSplitResult {
    /// The block that ended before this line.
    pub ended_block: Option<MarkdownBlock>,
    /// The byte range of the line, without its indent, if it is code inside a fence.
    pub code_line: Option<Range<usize>>,
    /// The language of the code fence that this line opens.
    pub opened_fence: Option<String>,
    pub fence_closed: bool,
}

#[derive(Clone, Debug)]
enum OpenMarkdownBlock {
    Text,
    Item { offset: usize, number: Option<(u64, char)> },
    Fence { fence: CodeFence, indent: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodeFence {
    fence_char: char,
    length: usize,
}

struct ListMarker {
    offset: usize,
    number: Option<(u64, char)>,
    /// True if the marker may start a list directly below a paragraph.
    interrupts_paragraph: bool,
    /// The byte offset of the text after the marker.
    content: usize,
}

/// Splits a text into `MarkdownBlock`s, one line at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownBlockSplitter {
    open_block: Option<OpenMarkdownBlock>,
    range: Range<usize>,
    follows_blank_line: bool,
    last_line_blank: bool,
    /// A code fence inside the current block.
    inner_fence: Option<CodeFence>,
    /// The number and delimiter of the last list item, if no other block followed it.
    last_item_number: Option<(u64, char)>,
}

impl MarkdownBlockSplitter {
    /// Reads the line that begins at byte `start` of the text.
    pub(super) fn read_line(&mut self, line: &str, start: usize) -> MarkdownSplitResult {
        let end = start + line.len();
        let mut step = MarkdownSplitResult::default();
        if let Some(OpenMarkdownBlock::Fence { fence, indent }) = &self.open_block {
            let (fence, indent) = (*fence, *indent);
            if is_fence_end(line, fence) {
                (self.open_block, step.fence_closed) = (None, true);
            } else {
                let stripped = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
                step.code_line = Some(start + stripped..end);
            }
            return step;
        }
        if line.trim().is_empty() {
            self.last_line_blank = true;
            return step;
        }
        if let Some(inner_fence) = self.inner_fence {
            if is_fence_end(line, inner_fence) {
                self.inner_fence = None;
            }
            (self.range.end, self.last_line_blank) = (end, false);
            return step;
        }
        let (indent, fence_start, marker) =
            (indent_width(line), parse_fence_start(line), parse_list_marker(line));
        let is_top_level = indent < 4;
        let next_block = match &self.open_block {
            Some(OpenMarkdownBlock::Item { offset, .. }) if indent >= *offset => None,
            Some(OpenMarkdownBlock::Item { .. } | OpenMarkdownBlock::Text) | None
                if is_top_level && fence_start.is_some() =>
            {
                fence_start
                    .as_ref()
                    .map(|(fence, _)| OpenMarkdownBlock::Fence { fence: *fence, indent })
            }
            Some(OpenMarkdownBlock::Item { .. }) => match &marker {
                Some(marker) if is_top_level => Some(marker.to_open_block()),
                Some(_) | None => self.last_line_blank.then_some(OpenMarkdownBlock::Text),
            },
            Some(OpenMarkdownBlock::Text) => match &marker {
                Some(marker)
                    if is_top_level && (self.last_line_blank || marker.interrupts_paragraph) =>
                {
                    Some(marker.to_open_block())
                }
                Some(_) | None => self.last_line_blank.then_some(OpenMarkdownBlock::Text),
            },
            Some(OpenMarkdownBlock::Fence { .. }) => None,
            None => Some(
                marker
                    .as_ref()
                    .filter(|_| is_top_level)
                    .map_or(OpenMarkdownBlock::Text, ListMarker::to_open_block),
            ),
        };
        match next_block {
            None => {
                self.inner_fence = fence_start.map(|(fence, _)| fence).filter(|_| indent >= 2);
                (self.range.end, self.last_line_blank) = (end, false);
            }
            Some(next_block) => {
                step.ended_block = self.end_block();
                if let OpenMarkdownBlock::Fence { .. } = &next_block {
                    step.opened_fence =
                        Some(fence_start.map(|(_, language)| language).unwrap_or_default());
                }
                let content = marker.and_then(|marker| line.get(marker.content..));
                if let (OpenMarkdownBlock::Item { .. }, Some(content)) = (&next_block, content) {
                    self.inner_fence = self::parse_fence_start(content).map(|(fence, _)| fence);
                }
                self.begin_block(next_block, start..end);
            }
        }
        step
    }

    fn begin_block(&mut self, mut open: OpenMarkdownBlock, range: Range<usize>) {
        match &mut open {
            OpenMarkdownBlock::Item { number: Some((number, delimiter)), .. } => {
                // Later numbers count on from the first one, whatever the source says.
                let previous = self.last_item_number.filter(|(_, last)| last == delimiter);
                if let Some((last, _)) = previous {
                    *number = last.saturating_add(1);
                }
                self.last_item_number = Some((*number, *delimiter));
            }
            OpenMarkdownBlock::Item { number: None, .. }
            | OpenMarkdownBlock::Text
            | OpenMarkdownBlock::Fence { .. } => self.last_item_number = None,
        }
        (self.open_block, self.range) = (Some(open), range);
        (self.follows_blank_line, self.last_line_blank) = (self.last_line_blank, false);
    }

    /// Ends the current block. Returns `None` for a code fence, whose lines were returned one by
    /// one as `code_line`.
    pub(super) fn end_block(&mut self) -> Option<MarkdownBlock> {
        let kind = match self.open_block.take()? {
            OpenMarkdownBlock::Text => MarkdownBlockKind::Text,
            OpenMarkdownBlock::Item { number, .. } => {
                MarkdownBlockKind::Item { number: number.map(|(number, _)| number) }
            }
            OpenMarkdownBlock::Fence { .. } => return None,
        };
        self.inner_fence = None;
        Some(MarkdownBlock {
            kind,
            range: self.range.clone(),
            follows_blank_line: self.follows_blank_line,
        })
    }
}

impl ListMarker {
    fn to_open_block(&self) -> OpenMarkdownBlock {
        OpenMarkdownBlock::Item { offset: self.offset, number: self.number }
    }
}

/// Returns the indent of a line in columns.
fn indent_width(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// Parses the start of a code fence and its language.
fn parse_fence_start(line: &str) -> Option<(CodeFence, String)> {
    let line = line.trim();
    let fence_char = line.chars().next().filter(|fence_char| matches!(fence_char, '`' | '~'))?;
    let rest = line.trim_start_matches(fence_char);
    let length = line.len() - rest.len();
    let language = rest.trim();
    let is_fence = length >= 3 && !(fence_char == '`' && language.contains('`'));
    is_fence.then(|| (CodeFence { fence_char, length }, language.to_owned()))
}

fn is_fence_end(line: &str, fence: CodeFence) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|character| character == fence.fence_char)
}

/// Parses the list marker at the start of a line.
fn parse_list_marker(line: &str) -> Option<ListMarker> {
    let indent = indent_width(line);
    let text = line.trim_start_matches([' ', '\t']);
    let skipped = line.len() - text.len();
    let is_rule =
        |marker: char| text.chars().all(|character| character == marker || character == ' ');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, length) = match text.chars().next()? {
        marker @ ('-' | '*') if is_rule(marker) && text.matches(marker).count() > 2 => return None,
        '-' | '*' | '+' => (None, 1),
        '0'..='9' if digits <= 9 => {
            let marker =
                text.get(digits..)?.chars().next().filter(|marker| matches!(marker, '.' | ')'))?;
            (Some((text.get(..digits)?.parse().ok()?, marker)), digits + 1)
        }
        _ => return None,
    };
    let rest = text.get(length..)?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let spaces = indent_width(rest);
    let offset = indent + length + if (1..5).contains(&spaces) { spaces } else { 1 };
    let starts_at_one = number.is_none_or(|(number, _)| number == 1);
    let interrupts_paragraph = starts_at_one && !rest.trim().is_empty();
    Some(ListMarker { offset, number, interrupts_paragraph, content: skipped + length })
}
