//! Work progress that a server reports, such as `indexing 45 %`. Performs no I/O.

use crate::connection::to_shown_line;
use serde_json::Value;
use windlass_protocol::display_text::truncate_chars;

const MAX_PROGRESS_ITEMS: usize = 64;
const MAX_TOKEN_BYTES: usize = 256;
const MAX_TITLE_CHARS: usize = 60;

/// Work in progress of `$/progress`, oldest first.
#[derive(Debug, Default)]
pub(crate) struct WorkProgress(Vec<ProgressItem>);

#[derive(Debug)]
struct ProgressItem {
    /// The server's token for the work.
    token: String,
    title: String,
    percent: Option<u64>,
}

impl WorkProgress {
    /// Applies the parameters of a `$/progress` notification.
    pub(crate) fn on_progress(&mut self, params: &Value) {
        let Some(value) = params.get("value") else { return };
        let token = params.get("token").map(Value::to_string).unwrap_or_default();
        let percent =
            value.get("percentage").and_then(Value::as_u64).map(|percent| percent.min(100));
        match value.get("kind").and_then(Value::as_str) {
            Some("begin") => {
                self.0.retain(|item| item.token != token);
                if self.0.len() < MAX_PROGRESS_ITEMS && token.len() <= MAX_TOKEN_BYTES {
                    let title = value.get("title").and_then(Value::as_str).unwrap_or("working");
                    self.0.push(ProgressItem {
                        token,
                        title: truncate_chars(&to_shown_line(title), MAX_TITLE_CHARS),
                        percent,
                    });
                }
            }
            Some("report") => {
                if let Some(item) = self.0.iter_mut().find(|item| item.token == token) {
                    item.percent = percent.or(item.percent);
                }
            }
            Some("end") => self.0.retain(|item| item.token != token),
            Some(_) | None => {}
        }
    }

    /// Returns the oldest work in progress on one line; `None` if there is none.
    pub(crate) fn summary(&self) -> Option<String> {
        self.0.first().map(|item| match item.percent {
            Some(percent) => format!("{} {percent} %", item.title),
            None => item.title.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary_after(messages: &[Value]) -> Option<String> {
        let mut work = WorkProgress::default();
        messages.iter().for_each(|progress| work.on_progress(progress));
        work.summary()
    }

    fn progress(token: Value, kind: &str, more: Value) -> Value {
        let mut value = more;
        value["kind"] = json!(kind);
        json!({"token": token, "value": value})
    }

    #[test]
    fn work_is_reported_until_it_ends() {
        let begin = progress(json!("a"), "begin", json!({"title": "indexing"}));
        let report = progress(json!("a"), "report", json!({"percentage": 45, "message": "x"}));
        let other = progress(json!(7), "begin", json!({"title": "checking"}));
        let end = |token: Value| progress(token, "end", json!({}));
        assert_eq!(summary_after(std::slice::from_ref(&begin)).as_deref(), Some("indexing"));
        let all = [begin, report, other];
        assert_eq!(summary_after(&all).as_deref(), Some("indexing 45 %"));
        assert_eq!(
            summary_after(&[&all[..], &[end(json!("a"))]].concat()).as_deref(),
            Some("checking")
        );
        assert_eq!(
            summary_after(&[&all[..], &[end(json!("7"))]].concat()).as_deref(),
            Some("indexing 45 %")
        );
        assert_eq!(summary_after(&[&all[..], &[end(json!(7)), end(json!("a"))]].concat()), None);
    }

    #[test]
    fn invalid_progress_is_ignored_and_items_are_limited() {
        let invalid = [
            json!(null),
            json!({"token": 1}),
            progress(json!(1), "report", json!({"percentage": 4})),
            progress(json!(1), "else", json!({})),
            progress(json!("x".repeat(999)), "begin", json!({"title": "t"})),
        ];
        assert_eq!(summary_after(&invalid), None);
        let mut work = WorkProgress::default();
        for token in 0..1_000 {
            let title = "\u{202e}\u{1b}[31m\n".repeat(100);
            work.on_progress(&progress(
                json!(token),
                "begin",
                json!({"title": title, "percentage": 900}),
            ));
        }
        assert_eq!(work.0.len(), MAX_PROGRESS_ITEMS);
        let summary = work.summary().unwrap();
        assert!(summary.ends_with(" 100 %") && summary.chars().count() < 80, "{summary}");
        assert!(!summary.contains(['\n', '\u{1b}', '\u{202e}']), "{summary:?}");
    }
}
