//! Detects model servers on this machine and lists their models (`GET /models`).

use futures_util::StreamExt as _;
use serde_json::Value;
use std::time::Duration;

/// Bounds the size of a model list; a real one is far shorter.
const MAX_LIST_BYTES: usize = 1 << 20;
/// Bounds the number of models; a user does not look through a longer list.
const MAX_MODELS: usize = 200;

/// Lists the models of a server on this machine, if it responds in time at a base URL such as
/// `http://127.0.0.1:11434/v1`. Contacts no other machine and uses no proxy.
pub async fn list_local_models(base_url: &str, timeout: Duration) -> Option<Vec<String>> {
    if !crate::is_local_url(base_url) {
        return None;
    }
    let http = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .build()
        .ok()?;
    let response =
        http.get(format!("{}/models", base_url.trim_end_matches('/'))).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.ok()?);
        if body.len() > MAX_LIST_BYTES {
            return None;
        }
    }
    parse_model_names(&serde_json::from_slice(&body).ok()?)
}

/// Returns the model IDs of an OpenAI-style list (`data[].id`). Skips IDs that are empty, too long,
/// not printable ASCII, or of embedding models.
fn parse_model_names(list: &Value) -> Option<Vec<String>> {
    let entries = list.get("data")?.as_array()?.iter();
    let names = entries.filter_map(|entry| entry.get("id")?.as_str());
    let is_usable = |name: &&str| {
        let is_printable = |c: char| c.is_ascii_graphic();
        !name.is_empty()
            && name.len() <= 200
            && name.chars().all(is_printable)
            && !name.contains("embed")
    };
    Some(names.filter(is_usable).take(MAX_MODELS).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_parsed_and_unusable_ones_are_skipped() {
        let list = json!({"data": [{"id": "qwen3:8b"}, {"id": ""}, {"id": "a\u{1b}[2J"}, {"id": 7},
                                   {"id": "nomic-embed-text"}, {"id": "x/y"}]});
        assert_eq!(parse_model_names(&list), Some(vec!["qwen3:8b".to_owned(), "x/y".to_owned()]));
        assert_eq!(parse_model_names(&json!({"data": {}})), None);
        assert_eq!(parse_model_names(&json!([])), None);
    }

    #[tokio::test]
    async fn remote_servers_are_not_queried() {
        let timeout = Duration::from_millis(200);
        assert_eq!(list_local_models("http://192.0.2.1:11434/v1", timeout).await, None);
        assert_eq!(list_local_models("http://127.0.0.1:9/v1", timeout).await, None);
    }
}
