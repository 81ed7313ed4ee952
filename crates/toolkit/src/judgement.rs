//! The judgement of a model about a hook's payload or a goal: `{"ok": false, "reason": "…"}`.

use serde_json::Value;

/// The answer of a model that was asked whether something is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub ok: bool,
    /// Empty if the model gave none: a verdict without a reason is still a verdict.
    pub reason: String,
}

impl Judgement {
    /// Parses the only JSON object in an answer, also inside other text. `None` if it has no verdict.
    pub fn parse(answer: &str) -> Option<Judgement> {
        let (start, end) = (answer.find('{')?, answer.rfind('}')?);
        let value: Value = serde_json::from_str(answer.get(start..=end)?).ok()?;
        let reason = value.get("reason").and_then(Value::as_str).unwrap_or_default();
        Some(Judgement { ok: value.get("ok")?.as_bool()?, reason: reason.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::Judgement;

    #[test]
    fn only_a_verdict_is_a_judgement() {
        let ok = |answer: &str| Judgement::parse(answer).map(|judgement| judgement.ok);
        assert_eq!(ok(r#"{"ok": true}"#), Some(true));
        assert_eq!(ok(r#"{"ok": false, "reason": null}"#), Some(false));
        assert_eq!(ok(r#"{"ok": false, "reason": 7}"#), Some(false));
        for answer in [
            "",
            "yes",
            "{}",
            r#"{"ok": "true"}"#,
            r#"{"ok": 1}"#,
            "}{",
            r#"{"ok": true} {"ok": false}"#,
        ] {
            assert_eq!(ok(answer), None, "{answer}");
        }
        let judgement =
            Judgement::parse("```json\n{\"ok\": false, \"reason\": \" no tests\"}\n```");
        assert_eq!(judgement, Some(Judgement { ok: false, reason: "no tests".into() }));
    }
}
