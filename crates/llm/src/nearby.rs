//! Servers on this machine: whether one answers, and which models it has.

use futures_util::StreamExt as _;
use serde_json::Value;
use std::time::Duration;

/// A list of models has no business being longer.
const LONGEST: usize = 1 << 20;
/// More of them nobody looks through.
const MOST: usize = 200;

/// The models that a server on this machine has, if one answers in time at an address such as
/// `http://127.0.0.1:11434/v1`. No other machine is asked, and no proxy.
pub async fn models(base_url: &str, patience: Duration) -> Option<Vec<String>> {
    if !crate::is_local(base_url) {
        return None;
    }
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(patience)
        .build()
        .ok()?;
    let answer =
        http.get(format!("{}/models", base_url.trim_end_matches('/'))).send().await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    let mut pieces = answer.bytes_stream();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.ok()?);
        if body.len() > LONGEST {
            return None;
        }
    }
    named(&serde_json::from_slice(&body).ok()?)
}

/// The names in a list as OpenAI writes it. What is no name to speak of is left out.
fn named(list: &Value) -> Option<Vec<String>> {
    let rows = list.get("data")?.as_array()?.iter();
    let names = rows.filter_map(|row| row.get("id")?.as_str());
    let fits = |name: &&str| {
        let plain = |it: char| it.is_ascii_graphic();
        !name.is_empty() && name.len() <= 200 && name.chars().all(plain) && !name.contains("embed")
    };
    Some(names.filter(fits).take(MOST).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_read_and_what_could_steer_a_terminal_is_none() {
        let list = json!({"data": [{"id": "qwen3:8b"}, {"id": ""}, {"id": "a\u{1b}[2J"}, {"id": 7},
                                   {"id": "nomic-embed-text"}, {"id": "x/y"}]});
        assert_eq!(named(&list), Some(vec!["qwen3:8b".to_owned(), "x/y".to_owned()]));
        assert_eq!(named(&json!({"data": {}})), None);
        assert_eq!(named(&json!([])), None);
    }

    #[tokio::test]
    async fn nobody_elsewhere_is_asked() {
        let patience = Duration::from_millis(200);
        assert_eq!(models("http://192.0.2.1:11434/v1", patience).await, None);
        assert_eq!(models("http://127.0.0.1:9/v1", patience).await, None);
    }
}
