//! The list of models that a server returns (`GET /models`).

use futures_util::StreamExt as _;
use serde_json::Value;

/// Bounds the size of a model list; a real one is shorter.
const MAX_LIST_BYTES: usize = 4 << 20;
/// Bounds the number of models; a user does not look through a longer list.
const MAX_MODELS: usize = 200;

/// Reads the model names in a response; `None` if it contains no list.
pub(crate) async fn read_model_names(response: reqwest::Response) -> Option<Vec<String>> {
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
}
