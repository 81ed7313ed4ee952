//! Encodes requests for the Gemini API.

use crate::ModelRequest;
use crate::adapt::{AdaptedTurn, FileOrDescription, ModelReadableFile, TurnItem, schema};
use crate::catalog::Model;
use crate::quirks::Quirks;
use crate::wire_format::set_field;
use serde_json::{Map, Value, json};
use windlass_protocol::{ReasoningEffort, ToolChoice};

/// Placeholder signature for a call that another model made.
const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes the body of a streaming request without its `contents`.
pub fn envelope(request: &ModelRequest, quirks: &Quirks) -> Value {
    let mut body = Map::new();
    if !request.system_prompt.is_empty() {
        let system = json!({"parts": [{"text": &*request.system_prompt}]});
        body.insert("systemInstruction".into(), system);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = json!({"name": tool.name, "description": tool.description});
            let parameters = schema::adapt_schema(&tool.schema, quirks.schema_subset);
            // The API rejects `parameters` without properties.
            if !schema::has_no_properties(&parameters) {
                set_field(&mut function, "parameters", parameters);
            }
            function
        });
        body.insert("tools".into(), json!([{"functionDeclarations": tools.collect::<Value>()}]));
        if let Some(config) = tool_config(request) {
            body.insert("toolConfig".into(), json!({"functionCallingConfig": config}));
        }
    }
    body.insert("contents".into(), Value::Null);
    let config = generation_config(request);
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    body.into()
}

fn tool_config(request: &ModelRequest) -> Option<Value> {
    Some(match request.options.tool_choice.as_ref()? {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    })
}

fn generation_config(request: &ModelRequest) -> Map<String, Value> {
    let (options, model) = (&request.options, &request.model);
    let mut config = Map::new();
    let max_tokens = request.max_output_tokens();
    config.extend(max_tokens.map(|max_tokens| ("maxOutputTokens".into(), max_tokens.into())));
    if model.temperature {
        config.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        config.extend(options.top_p.map(|value| ("topP".into(), value.into())));
        config.extend(options.top_k.map(|value| ("topK".into(), value.into())));
    }
    if let Some(thinking) = thinking_config(request) {
        config.insert("thinkingConfig".into(), thinking);
    }
    // Models without effort levels cannot combine a response schema with tools; their response is
    // validated later.
    let is_forced = matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let can_combine = request.tools.is_empty() || (!model.efforts.is_empty() && !is_forced);
    if let Some(answer) = options.answer.as_ref().filter(|_| can_combine) {
        config.insert("responseMimeType".into(), "application/json".into());
        let schema = schema::adapt_schema(answer, schema::SchemaSubset::Gemini);
        config.insert("responseSchema".into(), schema);
    }
    config
}

/// Encodes the reasoning effort as `thinkingLevel` or `thinkingBudget`, if the model accepts one.
fn thinking_config(request: &ModelRequest) -> Option<Value> {
    let model = &request.model;
    let effort = request.options.effort.filter(|_| model.reasons)?;
    let is_off = effort == ReasoningEffort::None;
    if let Some(level) = effort.nearest(&model.efforts) {
        return Some(json!({"includeThoughts": !is_off, "thinkingLevel": level.name()}));
    }
    let range = model.budget?;
    let min_tokens = range.min_tokens.unwrap_or(0);
    let budget = match is_off {
        true if model.toggles || min_tokens == 0 => 0,
        true | false => effort
            .token_budget()
            .clamp(min_tokens, range.max_tokens.unwrap_or(u64::MAX).max(min_tokens)),
    };
    Some(json!({"includeThoughts": !is_off, "thinkingBudget": budget}))
}

/// Encodes one turn as an entry of `contents`.
pub fn turn_content(turn: &AdaptedTurn<'_>, model: &Model) -> Value {
    // Models with effort levels reject unsigned calls, except with this placeholder.
    let placeholder = (model.reasons && !model.efforts.is_empty()).then_some(SKIP_SIGNATURE);
    let (role, items) = match turn {
        AdaptedTurn::User(items) => ("user", items),
        AdaptedTurn::Model(items) => ("model", items),
    };
    let mut parts: Vec<Value> = items.iter().flat_map(item_parts).collect();
    // Each `functionResponse` comes before other parts.
    parts.sort_by_key(|part| role == "user" && part.get("functionResponse").is_none());
    // Of several parallel calls only the first carries a `thoughtSignature`.
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let (Some(first), Some(placeholder)) = (first, placeholder)
        && first.get("thoughtSignature").is_none()
    {
        set_field(first, "thoughtSignature", placeholder);
    }
    json!({"role": role, "parts": parts})
}

fn item_parts(item: &TurnItem<'_>) -> Vec<Value> {
    let with_signature = |mut part: Value, provider_signature: &Option<&str>| {
        // Send only signatures of this format (base64); the API rejects those of another.
        let is_base64 = |provider_signature: &&&str| {
            provider_signature.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(&b))
        };
        if let Some(provider_signature) = provider_signature.as_ref().filter(is_base64) {
            set_field(&mut part, "thoughtSignature", *provider_signature);
        }
        part
    };
    match item {
        TurnItem::Text { text, provider_signature } => {
            vec![with_signature(json!({"text": text}), provider_signature)]
        }
        TurnItem::Reasoning { provider_signature: None, .. } => Vec::new(),
        TurnItem::Reasoning { text, provider_signature } => {
            vec![with_signature(json!({"text": text, "thought": true}), provider_signature)]
        }
        TurnItem::File(file) => vec![file_part(file)],
        TurnItem::Call { name, arguments, provider_signature, .. } => {
            let args = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
            vec![with_signature(
                json!({"functionCall": {"name": name, "args": args}}),
                provider_signature,
            )]
        }
        TurnItem::Result { name, text, failed, files, .. } => {
            let key = if *failed { "error" } else { "output" };
            let response = json!({"name": name, "response": {key: text}});
            let mut parts = vec![json!({"functionResponse": response})];
            parts.extend(files.iter().map(|file| match file {
                FileOrDescription::File(file) => file_part(file),
                FileOrDescription::Description(description) => json!({"text": description}),
            }));
            parts
        }
    }
}

fn file_part(file: &ModelReadableFile<'_>) -> Value {
    json!({"inlineData": {"mimeType": file.mime, "data": file.to_base64()}})
}
