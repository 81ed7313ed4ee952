//! Interprets the errors of providers, from an HTTP status, a body or a stream.

use serde_json::Value;
use windlass_protocol::Fault;

/// An error of a provider, as far as it could be parsed.
#[derive(Debug, Default)]
pub(crate) struct ProviderError {
    /// The HTTP status, or the equivalent status in the error object.
    pub(crate) status: Option<u16>,
    /// The provider's `type`, `code` and `status`, joined.
    pub(crate) kind: String,
    pub(crate) message: String,
    /// The delay before a retry that the provider requests.
    pub(crate) wait_ms: Option<u64>,
}

impl ProviderError {
    /// Parses an error object in any of the known forms.
    pub(crate) fn from_json(error: &Value) -> ProviderError {
        let error = match error {
            Value::Array(list) => list.first().unwrap_or(error),
            other => other,
        };
        let inner = error.get("error").filter(|inner| inner.is_object()).unwrap_or(error);
        let field = |key: &str| inner.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = [field("message"), field("detail"), field("error")]
            .into_iter()
            .find(|text| !text.is_empty())
            .or_else(|| error.as_str())
            .or_else(|| error.get("error").and_then(Value::as_str));
        let number = ["code", "status", "status_code"].iter().find_map(|key| {
            let value = inner.get(key)?;
            value.as_u64().or_else(|| value.as_str()?.parse().ok())
        });
        // A provider may include the error of an upstream provider.
        let raw = inner.pointer("/metadata/raw").and_then(Value::as_str).unwrap_or_default();
        let message = message.map_or_else(|| inner.to_string(), str::to_owned);
        ProviderError {
            status: number
                .filter(|number| (400..600).contains(number))
                .and_then(|number| u16::try_from(number).ok()),
            kind: [field("type"), field("code"), field("status")].join(" "),
            message: if raw.is_empty() { message } else { format!("{message}: {raw}") },
            wait_ms: google_retry_delay_ms(inner),
        }
    }

    /// Parses the body of an error response.
    pub(crate) fn from_body(body: &str) -> ProviderError {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => ProviderError::from_json(&json),
            Err(_) => ProviderError { message: body.trim().to_owned(), ..ProviderError::default() },
        }
    }

    /// Classifies the error as a `Fault`.
    pub(crate) fn into_fault(self) -> Fault {
        let ProviderError { status, kind, message, wait_ms } = self;
        let message = if message.is_empty() { "no reason given".to_owned() } else { message };
        let kind_contains =
            |patterns: &[&str]| patterns.iter().any(|pattern| kind.contains(pattern));
        let lower = message.to_lowercase();
        let message_contains =
            |patterns: &[&str]| patterns.iter().any(|pattern| lower.contains(pattern));
        // Waiting does not refill an empty account.
        let is_out_of_credit = status == Some(402)
            || kind_contains(&["insufficient_quota", "exceeded_current_quota", "billing"])
            || message_contains(&[
                "credit balance",
                "insufficient balance",
                "exceeded your current quota",
                "余额不足",
            ]);
        if is_out_of_credit {
            // Report 402 for any status, because a retry does not help.
            return Fault::from_provider(Some(402), message);
        }
        let too_long = is_overflow(&lower, &kind) && !matches!(status, Some(401 | 403 | 429));
        if too_long || (status == Some(429) && message_contains(&["request too large"])) {
            return Fault::ContextOverflow { message };
        }
        let is_key_error =
            kind_contains(&["authentication_error", "invalid_api_key", "UNAUTHENTICATED"])
                || message_contains(&[
                    "api key not valid",
                    "api key expired",
                    "incorrect api key",
                    "invalid api key",
                    "invalid x-api-key",
                ]);
        // A 403 may concern the region, the model or the content; another key would not help then.
        let concerns_key = status != Some(403)
            || kind_contains(&["permission_error", "PERMISSION_DENIED"])
            || message_contains(&["key", "token"]);
        if is_key_error || status == Some(401) || (status == Some(403) && concerns_key) {
            return Fault::Auth { message };
        }
        if kind_contains(&["rate_limit", "RESOURCE_EXHAUSTED", "slow_down"]) {
            return Fault::RateLimited { message, retry_after_ms: wait_ms };
        }
        let status = status.or_else(|| {
            Some(match () {
                () if kind_contains(&["overloaded"]) => 529,
                () if kind_contains(&["UNAVAILABLE"]) => 503,
                () if kind_contains(&["api_error", "server_error", "internal", "INTERNAL"]) => 500,
                () if kind_contains(&["timeout", "DEADLINE_EXCEEDED"]) => 504,
                () if kind_contains(&["invalid_request", "INVALID_ARGUMENT", "invalid_prompt"]) => {
                    400
                }
                () if kind_contains(&["not_found", "NOT_FOUND"]) => 404,
                () => return None,
            })
        });
        match status {
            Some(413) => Fault::ContextOverflow { message },
            Some(429) => Fault::RateLimited { message, retry_after_ms: wait_ms },
            status => Fault::Provider { status, message, retry_after_ms: wait_ms },
        }
    }
}

/// Returns the retry delay of a Google error: `{"@type": "…RetryInfo", "retryDelay": "17s"}`.
fn google_retry_delay_ms(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}

/// Returns true if `message` or `kind` says that the conversation is too long.
fn is_overflow(message: &str, kind: &str) -> bool {
    // One phrase per wording, with the providers that use it.
    const OVERFLOW_PHRASES: &[&str] = &[
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
    OVERFLOW_PHRASES.iter().any(|phrase| message.contains(phrase) || kind.contains(phrase))
}

#[cfg(test)]
mod tests;
