//! Faults from the error bodies of real providers.

use super::ProviderError;
use windlass_protocol::Fault;

fn fault_from(status: u16, body: &str) -> Fault {
    let mut error = ProviderError::from_body(body);
    error.status = Some(status);
    error.into_fault()
}

/// The context overflow error of each provider.
const OVERFLOWS: &[(&str, u16, &str)] = &[
    (
        "openai",
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "openai responses",
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
    ),
    (
        "anthropic",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
    ),
    (
        "anthropic, with its output",
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"}}"#,
    ),
    (
        "anthropic, in bytes",
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
    ),
    (
        "google",
        400,
        r#"{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        "groq",
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "openrouter",
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This endpoint's maximum context length is 131072 tokens\"}}"}}}"#,
    ),
    (
        "deepseek",
        400,
        r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140000 tokens","type":"invalid_request_error","code":"invalid_request_error"}}"#,
    ),
    (
        "mistral",
        400,
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt"}"#,
    ),
    (
        "xai",
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
    ),
    (
        "together",
        422,
        r#"{"error":{"message":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens and 0 `max_new_tokens`","type":"invalid_request_error"}}"#,
    ),
    (
        "fireworks",
        400,
        r#"{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 140000, model maximum context length: 131071"}}"#,
    ),
    (
        "cerebras",
        400,
        r#"{"message":"Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192","type":"invalid_request_error","code":"context_length_exceeded"}"#,
    ),
    (
        "moonshot",
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}"#,
    ),
    ("zai", 400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#),
    (
        "alibaba",
        400,
        r#"{"error":{"message":"Range of input length should be [1, 129024]","type":"invalid_request_error","code":"invalid_parameter_error"}}"#,
    ),
    (
        "github models",
        413,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}"#,
    ),
    (
        "ollama",
        400,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 10 tokens","type":"invalid_request_error"}}"#,
    ),
    (
        "lmstudio",
        400,
        r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
    ),
    (
        "vllm",
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages","type":"BadRequestError","code":400}"#,
    ),
    (
        "llama.cpp",
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
    ),
];

#[test]
fn an_overflow_is_recognized_for_every_provider() {
    for (provider, status, body) in OVERFLOWS {
        let fault = fault_from(*status, body);
        assert!(matches!(fault, Fault::ContextOverflow { .. }), "{provider}: {fault:?}");
    }
}

#[test]
fn a_rate_limit_is_not_an_overflow_and_an_exhausted_quota_is_not_a_rate_limit() {
    let rate_limited = r#"{"error":{"message":"Rate limit reached for tokens per min. The context window is fine.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    assert!(matches!(fault_from(429, rate_limited), Fault::RateLimited { .. }));
    let exhausted = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let exhausted = fault_from(429, exhausted);
    assert!(matches!(&exhausted, Fault::Provider { status: Some(402), .. }), "{exhausted:?}");
    assert_eq!(
        exhausted.retry_delay_ms(&windlass_protocol::RetryState {
            failed_attempts: 1,
            ..Default::default()
        }),
        None
    );
}

#[test]
fn the_message_is_found_in_every_shape_of_body() {
    for (body, message) in [
        (r#"{"error":{"message":"in the usual place"}}"#, "in the usual place"),
        (r#"{"error":"plainly"}"#, "plainly"),
        (r#"{"message":"at the top"}"#, "at the top"),
        (r#"{"detail":"of a framework"}"#, "of a framework"),
        (r#"[{"error":{"message":"in a list"}}]"#, "in a list"),
        ("<html>502</html>", "<html>502</html>"),
        ("", "no reason given"),
        (r#"{"unheard":"of"}"#, r#"{"unheard":"of"}"#),
    ] {
        let fault = fault_from(500, body);
        assert!(fault.to_string().ends_with(message), "{body}: {fault}");
    }
}

#[test]
fn an_invalid_google_key_is_an_auth_fault() {
    let body = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#;
    assert!(matches!(fault_from(400, body), Fault::Auth { .. }));
}

#[test]
fn quota_key_and_region_errors_are_distinguished() {
    for (status, body, expected) in [
        (
            402,
            r#"{"error":{"message":"Prompt tokens limit exceeded: 36163 > 29652. To increase, visit credits","code":402}}"#,
            "402",
        ),
        (
            429,
            r#"{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}"#,
            "402",
        ),
        (
            429,
            r#"{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended"}}"#,
            "402",
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36278.","code":"rate_limit_exceeded"}}"#,
            "context window",
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai."}"#,
            "Incorrect API key",
        ),
        (
            403,
            r#"{"error":{"message":"Country, region, or territory not supported","code":"unsupported_country_region_territory"}}"#,
            "status 403",
        ),
        (403, "<html>blocked by the edge</html>", "status 403"),
    ] {
        let fault = fault_from(status, body);
        assert!(fault.to_string().contains(expected), "{body}: {fault:?}");
        let retry_state =
            windlass_protocol::RetryState { failed_attempts: 1, ..Default::default() };
        assert_eq!(fault.retry_delay_ms(&retry_state), None, "{fault:?}");
    }
}
