//! What a server says that it works on, such as `indexing 45 %`. Pure.

use crate::talk::shown;
use serde_json::Value;
use windlass_protocol::text::beginning;

/// So many kinds of work are kept.
const MOST: usize = 64;
/// How long the name of one may be.
const NAME: usize = 256;
/// How much of a title is shown.
const TITLE: usize = 60;

/// What goes on, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Work(Vec<Piece>);

#[derive(Debug)]
struct Piece {
    /// The server's own name for it.
    token: String,
    title: String,
    percent: Option<u64>,
}

impl Work {
    /// Takes a notice of progress.
    pub(crate) fn hear(&mut self, params: &Value) {
        let Some(value) = params.get("value") else { return };
        let token = params.get("token").map(Value::to_string).unwrap_or_default();
        let percent = value.get("percentage").and_then(Value::as_u64).map(|part| part.min(100));
        match value.get("kind").and_then(Value::as_str) {
            Some("begin") => {
                self.0.retain(|piece| piece.token != token);
                if self.0.len() < MOST && token.len() <= NAME {
                    let title = value.get("title").and_then(Value::as_str).unwrap_or("working");
                    self.0.push(Piece { token, title: beginning(&shown(title), TITLE), percent });
                }
            }
            Some("report") => {
                if let Some(piece) = self.0.iter_mut().find(|piece| piece.token == token) {
                    piece.percent = percent.or(piece.percent);
                }
            }
            Some("end") => self.0.retain(|piece| piece.token != token),
            Some(_) | None => {}
        }
    }

    /// What goes on, on one line; `None` if nothing does.
    pub(crate) fn said(&self) -> Option<String> {
        self.0.first().map(|piece| match piece.percent {
            Some(percent) => format!("{} {percent} %", piece.title),
            None => piece.title.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(notices: &[Value]) -> Option<String> {
        let mut work = Work::default();
        notices.iter().for_each(|notice| work.hear(notice));
        work.said()
    }

    fn notice(token: Value, kind: &str, more: Value) -> Value {
        let mut value = more;
        value["kind"] = json!(kind);
        json!({"token": token, "value": value})
    }

    #[test]
    fn work_is_told_until_its_own_end() {
        let begin = notice(json!("a"), "begin", json!({"title": "indexing"}));
        let report = notice(json!("a"), "report", json!({"percentage": 45, "message": "x"}));
        let other = notice(json!(7), "begin", json!({"title": "checking"}));
        let end = |token: Value| notice(token, "end", json!({}));
        assert_eq!(said(std::slice::from_ref(&begin)).as_deref(), Some("indexing"));
        let all = [begin, report, other];
        assert_eq!(said(&all).as_deref(), Some("indexing 45 %"));
        assert_eq!(said(&[&all[..], &[end(json!("a"))]].concat()).as_deref(), Some("checking"));
        assert_eq!(
            said(&[&all[..], &[end(json!("7"))]].concat()).as_deref(),
            Some("indexing 45 %")
        );
        assert_eq!(said(&[&all[..], &[end(json!(7)), end(json!("a"))]].concat()), None);
    }

    #[test]
    fn odd_notices_and_too_many_are_nothing() {
        let odd = [
            json!(null),
            json!({"token": 1}),
            notice(json!(1), "report", json!({"percentage": 4})),
            notice(json!(1), "else", json!({})),
            notice(json!("x".repeat(999)), "begin", json!({"title": "t"})),
        ];
        assert_eq!(said(&odd), None);
        let mut work = Work::default();
        for token in 0..1_000 {
            let title = "\u{202e}\u{1b}[31m\n".repeat(100);
            work.hear(&notice(json!(token), "begin", json!({"title": title, "percentage": 900})));
        }
        assert_eq!(work.0.len(), MOST);
        let said = work.said().unwrap();
        assert!(said.ends_with(" 100 %") && said.chars().count() < 80, "{said}");
        assert!(!said.contains(['\n', '\u{1b}', '\u{202e}']), "{said:?}");
    }
}
