//! An answer that may be nothing but a call, unmarked. It has to be held back until that is known.

use super::call::Written;
use super::json::{self, Scan};
use serde::de::IgnoredAny;

/// The longest answer that is held back.
pub(super) const LONGEST: usize = 64 * 1024;

/// The longest first line of a fence.
const LONGEST_LINE: usize = 32;

/// An answer that may be nothing but a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Whole {
    text: String,
    /// Where it begins, after whitespace.
    start: usize,
    fenced: bool,
    stage: Stage,
    scan: Scan,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// In the first line of a fence.
    Fence,
    /// Before the first brace.
    Lead,
    /// Right after it.
    Opened(char),
    Json,
    /// After the last brace.
    Tail,
}

impl Whole {
    /// An answer that begins with this, after whitespace, if it may be a call.
    pub(super) fn new(before: &mut String, c: char) -> Option<Whole> {
        let stage = match c {
            '`' => Stage::Fence,
            '{' | '[' => Stage::Opened(c),
            _ => return None,
        };
        let mut text = std::mem::take(before);
        let start = text.len();
        text.push(c);
        let mut scan = Scan::default();
        scan.take(c);
        Some(Whole { text, start, fenced: c == '`', stage, scan })
    }

    /// Takes in the next character. True if it still may be a call.
    pub(super) fn take(&mut self, c: char) -> bool {
        self.text.push(c);
        let space = c.is_whitespace();
        let next = match (&self.stage, c) {
            (Stage::Fence, '\n') => matches!(self.line(), "```" | "```json").then_some(Stage::Lead),
            (Stage::Fence, _) => {
                let short = self.text.len() - self.start <= LONGEST_LINE;
                (short && "```json".starts_with(self.line())).then_some(Stage::Fence)
            }
            (Stage::Lead, '{' | '[') => Some(Stage::Opened(c)),
            (Stage::Lead, _) => space.then_some(Stage::Lead),
            (Stage::Opened(first), _) if space => Some(Stage::Opened(*first)),
            (Stage::Opened('{'), '"') | (Stage::Opened('['), '{') => Some(Stage::Json),
            (Stage::Opened(_), _) => None,
            (Stage::Json, _) => Some(Stage::Json),
            (Stage::Tail, '`') => self.fenced.then_some(Stage::Tail),
            (Stage::Tail, _) => space.then_some(Stage::Tail),
        };
        let Some(mut next) = next else { return false };
        if matches!(next, Stage::Opened(_) | Stage::Json) && self.scan.take(c) {
            next = Stage::Tail;
        }
        self.stage = next;
        self.text.len() <= LONGEST
    }

    fn line(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default().trim_end()
    }

    /// Its text.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// The calls it makes, if it is nothing else and all the tools are known.
    pub(super) fn calls(&self, tools: &[String]) -> Option<Vec<Written>> {
        let mut text = self.text.trim();
        if self.fenced {
            text = text.strip_prefix("```")?.strip_suffix("```")?;
            text = text.strip_prefix("json").unwrap_or(text).trim();
        }
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let objects = json::objects(text)?;
        let calls: Option<Vec<Written>> = objects.into_iter().map(plain).collect();
        let known = |call: &Written| tools.contains(&folded(&call.tool));
        calls.filter(|calls| !calls.is_empty() && calls.iter().all(known))
    }
}

/// The call an object makes that holds nothing else.
fn plain(object: &str) -> Option<Written> {
    let members = json::members(object)?;
    let count = |keys: &[&str]| members.iter().filter(|(key, _)| keys.contains(&&**key)).count();
    let (arguments, rest) = (count(&["arguments", "parameters"]), count(&["type", "id"]));
    let exact = count(&["name"]) == 1 && arguments == 1 && members.len() == rest + 2;
    json::call(object).filter(|call| exact && call.arguments.starts_with('{'))
}

/// A tool's name without what models get wrong about it.
pub(super) fn folded(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}
