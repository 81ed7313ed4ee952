//! Detects a response that consists only of an untagged call. The text is held back until this is
//! decided.

use super::call::{InlineCall, parse_call};
use super::json_scan::{self, InlineJsonScanner};
use serde::de::IgnoredAny;

/// Bounds the length of a response that is held back.
pub(super) const MAX_BARE_CALL_BYTES: usize = 64 * 1024;

/// Bounds the length of the opening line of a code fence.
const MAX_FENCE_LINE_BYTES: usize = 32;

/// A response that may consist only of a call, without any `InlineTag`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UntaggedCall {
    text: String,
    /// Offset of the first character after leading whitespace.
    start: usize,
    is_fenced: bool,
    stage: UntaggedCallStage,
    scan: InlineJsonScanner,
}

#[derive(Clone, Debug, PartialEq)]
enum UntaggedCallStage {
    /// In the opening line of a code fence.
    Fence,
    /// Before the first brace or bracket.
    BeforeBrace,
    /// Directly after the first brace or bracket.
    AfterBrace(char),
    Json,
    /// After the closing brace or bracket.
    AfterJson,
}

impl UntaggedCall {
    /// Starts a bare call with the character `c` after whitespace, if `c` can begin one.
    pub(super) fn new(whitespace: &mut String, c: char) -> Option<UntaggedCall> {
        let stage = match c {
            '`' => UntaggedCallStage::Fence,
            '{' | '[' => UntaggedCallStage::AfterBrace(c),
            _ => return None,
        };
        let mut text = std::mem::take(whitespace);
        let start = text.len();
        text.push(c);
        let mut scan = InlineJsonScanner::default();
        scan.push_char(c);
        Some(UntaggedCall { text, start, is_fenced: c == '`', stage, scan })
    }

    /// Adds the next character; returns true if the text may still be a call.
    pub(super) fn push_char(&mut self, c: char) -> bool {
        self.text.push(c);
        let is_whitespace = c.is_whitespace();
        let next = match (&self.stage, c) {
            (UntaggedCallStage::Fence, '\n') => matches!(self.fence_line(), "```" | "```json")
                .then_some(UntaggedCallStage::BeforeBrace),
            (UntaggedCallStage::Fence, _) => {
                let is_short = self.text.len() - self.start <= MAX_FENCE_LINE_BYTES;
                (is_short && "```json".starts_with(self.fence_line()))
                    .then_some(UntaggedCallStage::Fence)
            }
            (UntaggedCallStage::BeforeBrace, '{' | '[') => Some(UntaggedCallStage::AfterBrace(c)),
            (UntaggedCallStage::BeforeBrace, _) => {
                is_whitespace.then_some(UntaggedCallStage::BeforeBrace)
            }
            (UntaggedCallStage::AfterBrace(first), _) if is_whitespace => {
                Some(UntaggedCallStage::AfterBrace(*first))
            }
            (UntaggedCallStage::AfterBrace('{'), '"')
            | (UntaggedCallStage::AfterBrace('['), '{') => Some(UntaggedCallStage::Json),
            (UntaggedCallStage::AfterBrace(_), _) => None,
            (UntaggedCallStage::Json, _) => Some(UntaggedCallStage::Json),
            (UntaggedCallStage::AfterJson, '`') => {
                self.is_fenced.then_some(UntaggedCallStage::AfterJson)
            }
            (UntaggedCallStage::AfterJson, _) => {
                is_whitespace.then_some(UntaggedCallStage::AfterJson)
            }
        };
        let Some(mut next) = next else { return false };
        if matches!(next, UntaggedCallStage::AfterBrace(_) | UntaggedCallStage::Json)
            && self.scan.push_char(c)
        {
            next = UntaggedCallStage::AfterJson;
        }
        self.stage = next;
        self.text.len() <= MAX_BARE_CALL_BYTES
    }

    fn fence_line(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default().trim_end()
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Returns the calls, if the text contains nothing else and all tools are known.
    pub(super) fn parse_calls(&self, tools: &[String]) -> Option<Vec<InlineCall>> {
        let mut text = self.text.trim();
        if self.is_fenced {
            text = text.strip_prefix("```")?.strip_suffix("```")?;
            text = text.strip_prefix("json").unwrap_or(text).trim();
        }
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let objects = json_scan::parse_objects(text)?;
        let calls: Option<Vec<InlineCall>> = objects.into_iter().map(parse_exact_call).collect();
        let is_known = |call: &InlineCall| tools.contains(&fold_tool_name(&call.tool));
        calls.filter(|calls| !calls.is_empty() && calls.iter().all(is_known))
    }
}

/// Parses an object that contains a call and no other fields.
fn parse_exact_call(object: &str) -> Option<InlineCall> {
    let members = json_scan::parse_members(object)?;
    let count = |keys: &[&str]| members.iter().filter(|(key, _)| keys.contains(&&**key)).count();
    let (arguments, rest) = (count(&["arguments", "parameters"]), count(&["type", "id"]));
    let is_exact = count(&["name"]) == 1 && arguments == 1 && members.len() == rest + 2;
    parse_call(object).filter(|call| is_exact && call.arguments.starts_with('{'))
}

/// Normalizes a tool name: ignores case and punctuation, which models get wrong.
pub(super) fn fold_tool_name(name: &str) -> String {
    let chars = name.chars().filter(|c| c.is_alphanumeric());
    chars.flat_map(char::to_lowercase).collect()
}
