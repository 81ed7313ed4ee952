//! What a provider's complaint means, wherever it stands: in a status, a body or a stream.

use serde_json::Value;
use windlass_protocol::Fault;

/// A complaint, as far as it could be read.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    /// The HTTP status, or the one the provider says it would have been.
    pub(crate) status: Option<u16>,
    /// The provider's own name for it.
    pub(crate) kind: String,
    /// Its words.
    pub(crate) message: String,
    /// How long it asks us to wait.
    pub(crate) wait_ms: Option<u64>,
}

impl Complaint {
    /// Reads an error object, in any of the shapes there are.
    pub(crate) fn read(error: &Value) -> Complaint {
        let error = match error {
            Value::Array(list) => list.first().unwrap_or(error),
            other => other,
        };
        let inner = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
        let word = |key: &str| inner.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = [word("message"), word("detail"), word("error")]
            .into_iter()
            .find(|text| !text.is_empty())
            .or_else(|| error.as_str())
            .or_else(|| error.get("error").and_then(Value::as_str));
        let number = ["code", "status", "status_code"].iter().find_map(|key| {
            let value = inner.get(key)?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        });
        // A provider may hold what another one told it.
        let raw = inner.pointer("/metadata/raw").and_then(Value::as_str).unwrap_or_default();
        let message = message.map_or_else(|| inner.to_string(), str::to_owned);
        Complaint {
            status: number
                .filter(|number| (400..600).contains(number))
                .and_then(|number| u16::try_from(number).ok()),
            kind: [word("type"), word("code"), word("status")].join(" "),
            message: if raw.is_empty() { message } else { format!("{message}: {raw}") },
            wait_ms: retry_info(inner),
        }
    }

    /// Reads an error's body.
    pub(crate) fn of_body(body: &str) -> Complaint {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => Complaint::read(&json),
            Err(_) => Complaint { message: body.trim().to_owned(), ..Complaint::default() },
        }
    }

    /// What it means.
    pub(crate) fn fault(self) -> Fault {
        let Complaint { status, kind, message, wait_ms } = self;
        let message = if message.is_empty() { "no reason given".to_owned() } else { message };
        let says = |signs: &[&str]| signs.iter().any(|sign| kind.contains(sign));
        let lower = message.to_lowercase();
        let words = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
        // A purse that is empty does not fill by waiting.
        let spent = status == Some(402)
            || says(&["insufficient_quota", "exceeded_current_quota", "billing"])
            || words(&[
                "credit balance",
                "insufficient balance",
                "exceeded your current quota",
                "余额不足",
            ]);
        if spent {
            // 402 is what it means, whatever the status: trying again does not help.
            return Fault::provider(Some(402), message);
        }
        let too_long = is_overflow(&lower, &kind) && !matches!(status, Some(401 | 403 | 429));
        if too_long || (status == Some(429) && words(&["request too large"])) {
            return Fault::Overflow { message };
        }
        let about_key = says(&["authentication_error", "invalid_api_key", "UNAUTHENTICATED"])
            || words(&[
                "api key not valid",
                "api key expired",
                "incorrect api key",
                "invalid api key",
                "invalid x-api-key",
            ]);
        // A refusal may be about the region, the model or the words; then another key helps nobody.
        let permitted = status != Some(403)
            || says(&["permission_error", "PERMISSION_DENIED"])
            || words(&["key", "token"]);
        if about_key || status == Some(401) || (status == Some(403) && permitted) {
            return Fault::Auth { message };
        }
        if says(&["rate_limit", "RESOURCE_EXHAUSTED", "slow_down"]) {
            return Fault::RateLimited { message, wait_ms };
        }
        let status = status.or_else(|| {
            Some(match () {
                () if says(&["overloaded"]) => 529,
                () if says(&["UNAVAILABLE"]) => 503,
                () if says(&["api_error", "server_error", "internal", "INTERNAL"]) => 500,
                () if says(&["timeout", "DEADLINE_EXCEEDED"]) => 504,
                () if says(&["invalid_request", "INVALID_ARGUMENT", "invalid_prompt"]) => 400,
                () if says(&["not_found", "NOT_FOUND"]) => 404,
                () => return None,
            })
        });
        match status {
            Some(413) => Fault::Overflow { message },
            Some(429) => Fault::RateLimited { message, wait_ms },
            status => Fault::Provider { status, message, wait_ms },
        }
    }
}

/// How long Google asks us to wait: `{"@type": "…RetryInfo", "retryDelay": "17s"}`.
fn retry_info(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}

/// True if the provider says, in its own way, that the conversation is too long.
fn is_overflow(message: &str, kind: &str) -> bool {
    // One sign for each wording, with who uses it.
    const SIGNS: &[&str] = &[
        "context_length_exceeded",              // openai, groq
        "context length",                       // openai, deepseek, vllm, openrouter, together
        "context window",                       // openai responses, anthropic, lmstudio, cerebras
        "context size",                         // llama.cpp
        "maximum context",                      // moonshot, zai, fireworks
        "prompt is too long",                   // anthropic
        "prompt too long",                      // ollama
        "input is too long",                    // bedrock, alibaba
        "input length and `max_tokens`",        // anthropic
        "input token count",                    // google
        "exceeds the maximum number of tokens", // google
        "too many tokens",                      // cohere, together
        "too large for model",                  // mistral
        "maximum prompt length",                // xai
        "range of input length",                // alibaba
        "exceeded model token limit",           // moonshot
        "request_too_large",
        "model_context_window_exceeded",
        "exceeds the available context", // llama.cpp
        "reduce the length",             // openai, groq
        "prompt exceeds max",            // zai
        "more than max tokens",          // zai
        "`inputs` tokens +",             // together
    ];
    SIGNS.iter().any(|sign| message.contains(sign) || kind.contains(sign))
}

#[cfg(test)]
mod tests;
