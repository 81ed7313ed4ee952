//! Calls that the model is still writing: live events with their tool, path and size.
//!
//! Nothing here decides anything. A call counts only when its step ends, as `ToolCalled`.

use super::{EffectList, InputTimeAndId, Session, SessionEffect};
use serde_json::Value;
use windlass_protocol::{LiveEvent, PartialCallProgress, StepPurpose, UnixMillis};

/// Least time between two live events of one call.
const REPORT_INTERVAL_MS: u64 = 100;

/// Bytes at the start of the arguments that are kept to look for a path. Models write the path
/// before the content of a file.
const MAX_HEAD_BYTES: usize = 2_048;

/// Arguments that name the file of a call.
const PATH_ARGUMENTS: &[&str] = &["filePath", "file_path", "path"];

/// A call of the open step that the model has not finished.
#[derive(Clone, Debug)]
pub(super) struct PartialCall {
    tool: String,
    /// Start of the arguments, until `path` is known.
    head: String,
    path: Option<String>,
    argument_bytes: u64,
    /// Time of the last live event.
    reported_at: Option<UnixMillis>,
    has_news: bool,
}

impl PartialCall {
    fn new(tool: String) -> PartialCall {
        PartialCall {
            tool,
            head: String::new(),
            path: None,
            argument_bytes: 0,
            reported_at: None,
            has_news: true,
        }
    }

    fn push_arguments(&mut self, arguments: &str) {
        self.argument_bytes += arguments.len() as u64;
        self.has_news |= !arguments.is_empty();
        if self.path.is_none() {
            let free_bytes = MAX_HEAD_BYTES.saturating_sub(self.head.len());
            let end = arguments.floor_char_boundary(free_bytes);
            self.head.push_str(arguments.get(..end).unwrap_or_default());
        }
    }

    /// Returns the state of the call for front ends.
    pub(super) fn progress(&self, index: u64) -> PartialCallProgress {
        let (tool, path) = (self.tool.clone(), self.path.clone());
        PartialCallProgress { index, tool, path, argument_bytes: self.argument_bytes }
    }

    fn is_due(&self, now: UnixMillis) -> bool {
        let elapsed_ms = self.reported_at.map(|at| now.0.saturating_sub(at.0));
        self.has_news && elapsed_ms.is_none_or(|elapsed_ms| elapsed_ms >= REPORT_INTERVAL_MS)
    }
}

impl Session {
    /// Counts a piece of a call, and reports the calls whose last report is old enough. All calls
    /// are looked at, so that one that ended right after a report gets another.
    pub(super) fn on_call_delta(
        &mut self,
        stamp: InputTimeAndId,
        index: u64,
        tool: String,
        arguments: &str,
        out: &mut EffectList,
    ) {
        let describer = &self.config.call_describer;
        let Some(turn) = &mut self.turn else { return };
        // A summary is for the model, and has no calls.
        if turn.purpose != StepPurpose::Answer {
            return;
        }
        let call = turn.partial_calls.entry(index).or_insert_with(|| PartialCall::new(tool));
        call.push_arguments(arguments);
        for (index, call) in &mut turn.partial_calls {
            if !call.is_due(stamp.at) {
                continue;
            }
            (call.reported_at, call.has_news) = (Some(stamp.at), false);
            if call.path.is_none()
                && let Some(path) = find_path(&call.head)
            {
                call.path = Some(describer.relative_path(&path).to_owned());
                call.head = String::new();
            }
            let PartialCallProgress { index, tool, path, argument_bytes } = call.progress(*index);
            let event = LiveEvent::PartialCall { index, tool, path, argument_bytes };
            out.0.push(SessionEffect::Emit(event));
        }
    }
}

/// Returns the path in the start of a JSON object, if the model has written all of it.
fn find_path(head: &str) -> Option<String> {
    let members = head.get(..last_member_end(head)?)?;
    let members: Value = serde_json::from_str(&format!("{members}}}")).ok()?;
    let path = |name: &&str| members.get(*name)?.as_str().map(str::to_owned);
    PATH_ARGUMENTS.iter().find_map(path).filter(|path| !path.is_empty())
}

/// Returns the end of the last complete member in the start of a JSON object.
fn last_member_end(head: &str) -> Option<usize> {
    let (mut depth, mut end) = (0_usize, None);
    let (mut in_string, mut escaped, mut in_value) = (false, false, false);
    for (at, byte) in head.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    in_string = false;
                    if depth == 1 && in_value {
                        end = Some(at + 1);
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth <= 1 && in_value {
                    end = Some(if depth == 0 { at } else { at + 1 });
                }
            }
            b':' if depth == 1 => in_value = true,
            b',' if depth == 1 => (in_value, end) = (false, Some(at)),
            _ => {}
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::find_path;

    #[test]
    fn a_path_is_found_once_it_is_complete() {
        let arguments =
            r#"{"mode": ["a", {"path": "no"}], "filePath" : "src/\"a\u00e4.rs" , "content": "x"}"#;
        let name_end = arguments.find("rs\"").unwrap() + 3;
        for (at, _) in arguments.char_indices() {
            let expected = (at >= name_end).then(|| "src/\"aä.rs".to_owned());
            assert_eq!(find_path(&arguments[..at]), expected, "{}", &arguments[..at]);
        }
        assert_eq!(find_path(arguments).as_deref(), Some("src/\"aä.rs"));
    }

    #[test]
    fn other_arguments_have_no_path() {
        for arguments in [
            "",
            "{",
            "{}",
            "[]",
            "null",
            "\"path\": \"a\"",
            r#"{"path": 7}"#,
            r#"{"path": ""}"#,
            r#"{"path": null, "x": 1"#,
            r#"{"command": "\"path\": \"a\"""#,
            r#"}}}{"path": "a""#,
            r#"{"a": {"path": "b"}}"#,
        ] {
            assert_eq!(find_path(arguments), None, "{arguments}");
        }
        assert_eq!(find_path(r#"{"path": "a"}"#).as_deref(), Some("a"));
        assert_eq!(find_path(r#"{"n": 1, "path": "a"} trailing"#).as_deref(), Some("a"));
    }
}
