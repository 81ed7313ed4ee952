//! How a request is written.

use crate::Request;
use crate::adapt::{File, Item, Sight, Turn, schema};
use crate::catalog::{Model, Quirks};
use crate::wire::set;
use serde_json::{Map, Value, json};
use windlass_protocol::{Choice, Effort};

/// What stands for the signature of a call that another model made.
const UNSEALED: &str = "skip_thought_signature_validator";

/// The body of a streaming request, but for the conversation, which is left open.
pub fn frame(request: &Request, quirks: &Quirks) -> Value {
    let mut body = Map::new();
    if !request.system.is_empty() {
        let system = json!({"parts": [{"text": &*request.system}]});
        body.insert("systemInstruction".into(), system);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let mut function = json!({"name": tool.name, "description": tool.description});
            let parameters = schema::adapt(&tool.schema, quirks.schema);
            // An object without properties is refused.
            if !schema::takes_nothing(&parameters) {
                set(&mut function, "parameters", parameters);
            }
            function
        });
        body.insert("tools".into(), json!([{"functionDeclarations": tools.collect::<Value>()}]));
        if let Some(config) = choice(request) {
            body.insert("toolConfig".into(), json!({"functionCallingConfig": config}));
        }
    }
    body.insert("contents".into(), Value::Null);
    let config = generation(request);
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    body.into()
}

fn choice(request: &Request) -> Option<Value> {
    Some(match request.options.tool_choice.as_ref()? {
        Choice::Auto => json!({"mode": "AUTO"}),
        Choice::None => json!({"mode": "NONE"}),
        Choice::Required => json!({"mode": "ANY"}),
        Choice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    })
}

fn generation(request: &Request) -> Map<String, Value> {
    let (options, model) = (&request.options, &request.model);
    let mut config = Map::new();
    let most = request.max_output();
    config.extend(most.map(|most| ("maxOutputTokens".into(), most.into())));
    if model.temperature {
        config.extend(options.temperature.map(|value| ("temperature".into(), value.into())));
        config.extend(options.top_p.map(|value| ("topP".into(), value.into())));
    }
    if let Some(thinking) = thinking(request) {
        config.insert("thinkingConfig".into(), thinking);
    }
    // Models that are not told a level cannot be given a shape and tools at once; what they answer
    // is checked afterwards.
    let forced = matches!(options.tool_choice, Some(Choice::Required | Choice::Tool(_)));
    let both = request.tools.is_empty() || (!model.efforts.is_empty() && !forced);
    if let Some(answer) = options.answer.as_ref().filter(|_| both) {
        config.insert("responseMimeType".into(), "application/json".into());
        let schema = schema::adapt(answer, schema::Subset::Gemini);
        config.insert("responseSchema".into(), schema);
    }
    config
}

/// How hard to think, as far as the model can be told.
fn thinking(request: &Request) -> Option<Value> {
    let model = &request.model;
    let effort = request.options.effort.filter(|_| model.reasons)?;
    let off = effort == Effort::None;
    if let Some(level) = effort.nearest(&model.efforts) {
        return Some(json!({"includeThoughts": !off, "thinkingLevel": level.name()}));
    }
    let bounds = model.budget?;
    let least = bounds.least.unwrap_or(0);
    let budget = match off {
        true if model.toggles || least == 0 => 0,
        true | false => effort.budget().clamp(least, bounds.most.unwrap_or(u64::MAX).max(least)),
    };
    Some(json!({"includeThoughts": !off, "thinkingBudget": budget}))
}

/// One message.
pub fn content(turn: &Turn<'_>, model: &Model) -> Value {
    // Models that are told a level refuse calls that nobody sealed, but for this word.
    let unsealed = (model.reasons && !model.efforts.is_empty()).then_some(UNSEALED);
    let (role, items) = match turn {
        Turn::User(items) => ("user", items),
        Turn::Model(items) => ("model", items),
    };
    let mut parts: Vec<Value> = items.iter().flat_map(parts).collect();
    // Results come first, side by side.
    parts.sort_by_key(|part| role == "user" && part.get("functionResponse").is_none());
    // Of several calls at once only the first is sealed.
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let (Some(first), Some(word)) = (first, unsealed)
        && first.get("thoughtSignature").is_none()
    {
        set(first, "thoughtSignature", word);
    }
    json!({"role": role, "parts": parts})
}

fn parts(item: &Item<'_>) -> Vec<Value> {
    let sealed = |mut part: Value, seal: &Option<&str>| {
        // Only what this format seals with; another one's would be refused.
        let own =
            |seal: &&&str| seal.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(&b));
        if let Some(seal) = seal.as_ref().filter(own) {
            set(&mut part, "thoughtSignature", *seal);
        }
        part
    };
    match item {
        Item::Text { text, seal } => vec![sealed(json!({"text": text}), seal)],
        Item::Thought { seal: None, .. } => Vec::new(),
        Item::Thought { text, seal } => vec![sealed(json!({"text": text, "thought": true}), seal)],
        Item::File(shown) => vec![file(shown)],
        Item::Call { name, arguments, seal, .. } => {
            let args = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
            vec![sealed(json!({"functionCall": {"name": name, "args": args}}), seal)]
        }
        Item::Result { name, text, failed, files, .. } => {
            let key = if *failed { "error" } else { "output" };
            let response = json!({"name": name, "response": {key: text}});
            let mut parts = vec![json!({"functionResponse": response})];
            parts.extend(files.iter().map(|sight| match sight {
                Sight::File(shown) => file(shown),
                Sight::Words(words) => json!({"text": words}),
            }));
            parts
        }
    }
}

fn file(file: &File<'_>) -> Value {
    json!({"inlineData": {"mimeType": file.mime, "data": file.base64()}})
}
