//! Parses a recorded request back into a `ModelRequest`, and normalizes requests for comparison.
//!
//! Two requests are equivalent if they differ only in what [`normalize`] removes; a comment at each
//! removal says why.

use crate::catalog::{Model, Quirks, ReasoningBudgetRange, generic_provider};
use crate::wire_format::WireFormat;
use crate::{ModelRequest, adapt::schema::SchemaSubset};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_protocol::{
    Attachment, BlobRef, CallAuthor, CallId, CallOutcome, Message, MessagePart, MessageRole,
    ModelOptions, ModelToolDefinition, ReasoningEffort, ToolCallPart, ToolChoice, ToolOutput,
};

/// The reason why we would never send a request.
type UnsupportedReason = &'static str;

pub(super) fn recording_quirks(format: WireFormat) -> Quirks {
    // The recordings were made with tool schemas that were not adapted.
    let schema =
        if format == WireFormat::Gemini { SchemaSubset::Gemini } else { SchemaSubset::Full };
    Quirks {
        schema_subset: schema,
        parallel_tool_calls: true,
        json_schema: true,
        ..generic_provider(format, false).quirks
    }
}

pub(super) fn write_body(format: WireFormat, request: &ModelRequest) -> Value {
    format.body(request, &recording_quirks(format))
}

/// Parses the conversation of a recorded request.
pub(super) fn parse_request(
    format: WireFormat,
    body: &Value,
) -> Result<ModelRequest, UnsupportedReason> {
    let mut parser = RecordedRequestParser::new(body);
    for key in ["context_management", "container", "mcp_servers"] {
        if body.get(key).is_some() {
            return Err("a conversation feature of the provider");
        }
    }
    match format {
        WireFormat::OpenaiChat => parser.parse_chat()?,
        WireFormat::OpenaiResponses => parser.parse_responses()?,
        WireFormat::Anthropic => parser.parse_anthropic()?,
        WireFormat::Gemini => parser.parse_gemini()?,
    }
    parser.request.options = Arc::new(parser.options);
    Ok(parser.request)
}

struct RecordedRequestParser<'a> {
    body: &'a Value,
    request: ModelRequest,
    options: ModelOptions,
}

impl<'a> RecordedRequestParser<'a> {
    fn new(body: &'a Value) -> RecordedRequestParser<'a> {
        let id = body["model"].as_str().unwrap_or("m");
        let model = Model {
            images: true,
            pdfs: true,
            structured: true,
            output: Some(128_000),
            efforts: ReasoningEffort::ALL.to_vec(),
            budget: Some(ReasoningBudgetRange::default()),
            reasons: body.get("reasoning").is_some(),
            ..Model::unlisted(id)
        };
        let request = ModelRequest {
            model: Arc::new(model),
            system_prompt: "".into(),
            ..super::empty_request()
        };
        let options = ModelOptions {
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            ..ModelOptions::default()
        };
        RecordedRequestParser { body, request, options }
    }

    fn push(&mut self, role: MessageRole, parts: Vec<MessagePart>) {
        let model = (role == MessageRole::Assistant).then(|| "p/m".to_owned());
        self.request.messages.push(Message { role, seq: 1, model, parts });
    }

    fn attach(&mut self, mime: &str, base64: &str, name: &str) -> Attachment {
        use base64::Engine;
        let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
        let number = self.request.file_bytes.len() as u8;
        let blob = BlobRef::from_digest([number; 32]);
        self.request.file_bytes.insert(blob.clone(), bytes.into());
        Attachment { name: name.into(), mime_type: mime.into(), blob }
    }

    fn attach_url(&mut self, url: &Value, name: &str) -> Result<Attachment, UnsupportedReason> {
        let url = url.as_str().unwrap_or_default();
        let Some((mime, data)) =
            url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        else {
            return Err("a file referenced by URL");
        };
        Ok(self.attach(mime, data, name))
    }

    fn parse_tools(&mut self, list: &Value, wrapper: &str) -> Result<(), UnsupportedReason> {
        for tool in list.as_array().into_iter().flatten() {
            let function = if wrapper == "function" { &tool["function"] } else { tool };
            let kind = tool["type"].as_str().unwrap_or("function");
            let known = ["function", "custom"].contains(&kind) && kind == "function";
            if !known
                || tool.get("defer_loading").is_some()
                || tool.get("allowed_callers").is_some()
            {
                return Err("a tool built into the provider");
            }
            let schema = ["parameters", "input_schema"].iter().find_map(|key| function.get(key));
            self.request.tools.push(ModelToolDefinition {
                name: function["name"].as_str().unwrap().into(),
                description: function["description"].as_str().unwrap_or_default().into(),
                schema: schema
                    .cloned()
                    .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
            });
        }
        Ok(())
    }

    /// Sets the result of the call with an id.
    fn set_result(&mut self, id: &Value, text: String, attachments: Vec<Attachment>, failed: bool) {
        let mut messages: Vec<Message> =
            self.request.messages.iter().map(|message| (**message).clone()).collect();
        for message in &mut messages {
            for part in &mut message.parts {
                if let MessagePart::Call(call) = part
                    && *id == call.provider_call_id
                {
                    call.outcome = Some(match failed {
                        true => CallOutcome::Failed { text: text.clone() },
                        false => CallOutcome::Completed {
                            output: ToolOutput {
                                text: text.clone(),
                                attachments: attachments.clone(),
                                ..ToolOutput::default()
                            },
                        },
                    });
                }
            }
        }
        self.request.messages = messages.into();
    }

    fn parse_chat(&mut self) -> Result<(), UnsupportedReason> {
        self.parse_tools(&self.body["tools"], "function")?;
        self.options.max_output = self.body["max_tokens"].as_u64();
        self.options.tool_choice = parse_tool_choice(&self.body["tool_choice"], "/function/name");
        for message in self.body["messages"].as_array().unwrap() {
            let text = message["content"].as_str().unwrap_or_default();
            match message["role"].as_str().unwrap() {
                "system" => self.request.system_prompt = text.into(),
                "user" => self.push(MessageRole::User, vec![MessagePart::text(text)]),
                "assistant" => {
                    let calls = message["tool_calls"].as_array().into_iter().flatten();
                    let mut parts: Vec<MessagePart> = calls
                        .map(|one| {
                            let function = &one["function"];
                            call_part(
                                &one["id"],
                                &function["name"],
                                string_of(&function["arguments"]),
                            )
                        })
                        .collect();
                    if !text.is_empty() {
                        parts.insert(0, MessagePart::text(text));
                    }
                    self.push(MessageRole::Assistant, parts);
                }
                "tool" => self.set_result(&message["tool_call_id"], text.into(), Vec::new(), false),
                _ => return Err("an unsupported role"),
            }
        }
        Ok(())
    }

    fn parse_responses(&mut self) -> Result<(), UnsupportedReason> {
        self.parse_tools(&self.body["tools"], "")?;
        self.request.system_prompt = string_of(&self.body["instructions"]).as_str().into();
        self.request.cache_key = self.body["prompt_cache_key"].as_str().map(str::to_owned);
        self.options.max_output = self.body["max_output_tokens"].as_u64();
        self.options.parallel_calls = self.body["parallel_tool_calls"].as_bool();
        self.options.tool_choice = parse_tool_choice(&self.body["tool_choice"], "/name");
        let effort = self.body["reasoning"]["effort"].as_str().and_then(ReasoningEffort::from_name);
        self.options.effort = effort;
        match self.body.get("text") {
            Some(text) if text["format"]["type"] == "json_schema" => {
                self.options.answer = Some(text["format"]["schema"].clone());
            }
            Some(text) => {
                self.options.extra.insert("text".into(), text.clone());
            }
            None => {}
        }
        let input = &self.body["input"];
        if let Some(text) = input.as_str() {
            self.push(MessageRole::User, vec![MessagePart::text(text)]);
        }
        for item in input.as_array().into_iter().flatten() {
            self.parse_item(item)?;
        }
        Ok(())
    }

    fn parse_item(&mut self, item: &Value) -> Result<(), UnsupportedReason> {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("message", Some("system" | "developer")) => {
                self.request.system_prompt = string_of(&item["content"]).as_str().into();
            }
            ("message", Some("user")) => {
                let parts = self.parse_contents(&item["content"])?;
                self.push(MessageRole::User, parts);
            }
            ("message", Some("assistant")) => {
                let phase = item.get("phase").map(|phase| json!({"phase": phase}).to_string());
                let parts =
                    self.parse_contents(&item["content"])?.into_iter().map(|part| match part {
                        MessagePart::Text { text, .. } => {
                            MessagePart::Text { text, provider_signature: phase.clone() }
                        }
                        other => other,
                    });
                let parts: Vec<MessagePart> = parts.collect();
                parts.into_iter().for_each(|part| self.append_to_model_turn(part));
            }
            ("function_call", _) if item.get("namespace").is_none() => {
                let part =
                    call_part(&item["call_id"], &item["name"], string_of(&item["arguments"]));
                self.append_to_model_turn(part);
            }
            ("function_call_output", _) => match &item["output"] {
                Value::String(text) => {
                    self.set_result(&item["call_id"], text.clone(), Vec::new(), false);
                }
                list => {
                    let parts = self.parse_contents(list)?;
                    let (text, files) = split_text_and_files(parts);
                    self.set_result(&item["call_id"], text, files, false);
                }
            },
            ("reasoning", _) if item.get("encrypted_content").is_some() => {
                let provider_signature = Some(item.to_string());
                self.append_to_model_turn(MessagePart::Reasoning {
                    text: String::new(),
                    provider_signature,
                });
            }
            // It refers to an item stored at the provider; our requests never do.
            ("reasoning", _) => {}
            _ => return Err("a provider-specific item"),
        }
        Ok(())
    }

    /// Appends to the current turn of the model.
    fn append_to_model_turn(&mut self, part: MessagePart) {
        let is_open = |last: &Message| {
            let has_result = |part: &MessagePart| matches!(part, MessagePart::Call(call) if call.outcome.is_some());
            last.role == MessageRole::Assistant && !last.parts.iter().any(has_result)
        };
        let is_turn_open = self.request.messages.last().is_some_and(|last| is_open(last));
        match self.request.messages.last_matching_mut(|_| true).filter(|_| is_turn_open) {
            Some(last) => last.parts.push(part),
            None => self.push(MessageRole::Assistant, vec![part]),
        }
    }

    fn parse_contents(&mut self, content: &Value) -> Result<Vec<MessagePart>, UnsupportedReason> {
        if let Some(text) = content.as_str() {
            return Ok(vec![MessagePart::text(text)]);
        }
        content
            .as_array()
            .into_iter()
            .flatten()
            .map(|block| {
                Ok(match block["type"].as_str().unwrap_or_default() {
                    "input_text" | "output_text" | "text" => {
                        MessagePart::text(string_of(&block["text"]))
                    }
                    "input_image" => {
                        MessagePart::File(self.attach_url(&block["image_url"], "image")?)
                    }
                    "input_file" => {
                        let name = string_of(&block["filename"]);
                        MessagePart::File(self.attach_url(&block["file_data"], &name)?)
                    }
                    "image" | "document" if block.get("citations").is_none() => {
                        let source = &block["source"];
                        let (mime, data) =
                            (string_of(&source["media_type"]), string_of(&source["data"]));
                        if source["type"] != "base64" {
                            return Err("a file that is not base64");
                        }
                        MessagePart::File(self.attach(&mime, &data, "file"))
                    }
                    _ => return Err("a provider-specific block"),
                })
            })
            .collect()
    }

    fn parse_anthropic(&mut self) -> Result<(), UnsupportedReason> {
        self.parse_tools(&self.body["tools"], "")?;
        self.request.system_prompt = match &self.body["system"] {
            Value::Array(list) => string_of(&list[0]["text"]).as_str().into(),
            text => string_of(text).as_str().into(),
        };
        self.options.max_output = self.body["max_tokens"].as_u64();
        self.options.tool_choice = match &self.body["tool_choice"] {
            Value::Null => None,
            choice if choice["type"] == "auto" => Some(ToolChoice::Auto),
            choice if choice["type"] == "any" => Some(ToolChoice::Required),
            choice => Some(ToolChoice::Tool(string_of(&choice["name"]))),
        };
        if let Some(thinking) = self.body.get("thinking") {
            self.options.extra.insert("thinking".into(), thinking.clone());
        }
        for message in self.body["messages"].as_array().unwrap() {
            let is_assistant = message["role"] == "assistant";
            let mut blocks = match &message["content"] {
                Value::Array(list) => list.clone(),
                text => vec![json!({"type": "text", "text": text})],
            };
            blocks.iter_mut().for_each(|block| {
                block.as_object_mut().unwrap().remove("cache_control");
            });
            let mut parts = Vec::new();
            for block in blocks {
                match block["type"].as_str().unwrap() {
                    "tool_use" => {
                        parts.push(call_part(
                            &block["id"],
                            &block["name"],
                            block["input"].to_string(),
                        ));
                    }
                    "tool_result" => {
                        let inner = self.parse_contents(&block["content"])?;
                        let failed = block["is_error"] == true;
                        let (text, files) = split_text_and_files(inner);
                        self.set_result(&block["tool_use_id"], text, files, failed);
                    }
                    _ => parts.extend(self.parse_contents(&json!([block]))?),
                }
            }
            if !parts.is_empty() {
                self.push(
                    if is_assistant { MessageRole::Assistant } else { MessageRole::User },
                    parts,
                );
            }
        }
        Ok(())
    }

    fn parse_gemini(&mut self) -> Result<(), UnsupportedReason> {
        self.parse_tools(&self.body["tools"][0]["functionDeclarations"], "")?;
        self.request.system_prompt =
            string_of(&self.body["systemInstruction"]["parts"][0]["text"]).as_str().into();
        let config = &self.body["generationConfig"];
        self.options.max_output = config["maxOutputTokens"].as_u64();
        self.options.temperature = config["temperature"].as_f64();
        let calling = &self.body["toolConfig"]["functionCallingConfig"];
        if let Some(name) = calling["allowedFunctionNames"][0].as_str() {
            self.options.tool_choice = Some(ToolChoice::Tool(name.into()));
        }
        for content in self.body["contents"].as_array().unwrap() {
            let parts: Vec<MessagePart> = content["parts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| match part.get("inlineData") {
                    Some(data) => {
                        let (mime, data) = (string_of(&data["mimeType"]), string_of(&data["data"]));
                        MessagePart::File(self.attach(&mime, &data, "file"))
                    }
                    None => MessagePart::text(string_of(&part["text"])),
                })
                .collect();
            self.push(MessageRole::User, parts);
        }
        Ok(())
    }
}

/// Splits a result into its text and its files.
fn split_text_and_files(parts: Vec<MessagePart>) -> (String, Vec<Attachment>) {
    let (mut text, mut files) = (String::new(), Vec::new());
    for part in parts {
        match part {
            MessagePart::Text { text: more, .. } => text += &more,
            MessagePart::File(file) => files.push(file),
            MessagePart::Reasoning { .. } | MessagePart::Call(_) => {}
        }
    }
    (text, files)
}

fn string_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn call_part(id: &Value, name: &Value, arguments: String) -> MessagePart {
    MessagePart::Call(Box::new(ToolCallPart {
        description: windlass_protocol::CallDescription::default(),
        call: CallId(Default::default()),
        provider_call_id: string_of(id),
        tool: string_of(name),
        arguments,
        author: CallAuthor::Model,
        provider_signature: None,
        outcome: None,
        pruned: false,
    }))
}

fn parse_tool_choice(choice: &Value, name: &str) -> Option<ToolChoice> {
    match choice {
        Value::Null => None,
        Value::String(word) if word == "auto" => Some(ToolChoice::Auto),
        Value::String(word) if word == "none" => Some(ToolChoice::None),
        Value::String(_) => Some(ToolChoice::Required),
        choice => {
            Some(ToolChoice::Tool(string_of(choice.pointer(name).unwrap_or(&choice["name"]))))
        }
    }
}

/// Removes everything from a request that does not change the response.
pub(super) fn normalize(format: WireFormat, body: &Value) -> Value {
    let mut body = body.as_object().unwrap().clone();
    match format {
        WireFormat::OpenaiChat => {
            // We always request token counts.
            body.remove("stream_options");
        }
        WireFormat::OpenaiResponses => normalize_responses(&mut body),
        WireFormat::Anthropic => normalize_anthropic(&mut body),
        WireFormat::Gemini => {}
    }
    let mut body = Value::Object(body);
    simplify(&mut body);
    body
}

fn normalize_responses(body: &mut Map<String, Value>) {
    // We never store anything at the provider, so we request encrypted reasoning, and summaries.
    body.remove("store");
    body.remove("include");
    if let Some(Value::Object(reasoning)) = body.get_mut("reasoning") {
        reasoning.remove("summary");
        if reasoning.is_empty() {
            body.remove("reasoning");
        }
    }
    // The name of an output format has no meaning. Ours is strict where possible, and what a strict
    // schema cannot express is in its descriptions. Only the property names are compared.
    if let Some(format) = body.get_mut("text").and_then(|text| text.get_mut("format")) {
        let fields = format["schema"]["properties"].as_object();
        let fields: Vec<String> =
            fields.into_iter().flatten().map(|(key, _)| key.clone()).collect();
        *format = json!({"type": format["type"], "fields": fields});
    }
    for tool in body.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        // Our tool schemas are not strict, and we send that explicitly.
        tool.as_object_mut().unwrap().remove("strict");
    }
    let mut input = match body.remove("input").unwrap() {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        list => list.as_array().unwrap().clone(),
    };
    // A system message is equivalent to `instructions`.
    if let Some(at) = input.iter().position(|item| item["role"] == "system") {
        let system = input.remove(at);
        body.insert("instructions".into(), system["content"].clone());
    }
    // Nothing is stored at the provider, so reasoning that is only a reference is removed.
    input.retain(|item| item["type"] != "reasoning" || item.get("encrypted_content").is_some());
    let mut items: Vec<Value> = Vec::new();
    for mut item in input {
        let map = item.as_object_mut().unwrap();
        // Ids of stored items, and fields with default values.
        if map.get("type") != Some(&json!("reasoning")) {
            map.remove("id");
        }
        map.remove("status");
        if map.get("type") == Some(&json!("message")) {
            map.remove("type");
        }
        if let Some(Value::String(text)) = map.get("content") {
            let kind = if map["role"] == "assistant" { "output_text" } else { "input_text" };
            map.insert("content".into(), json!([{"type": kind, "text": text}]));
        }
        for block in map.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
            // Citations, image detail and log probabilities.
            for key in ["annotations", "detail", "logprobs"] {
                block.as_object_mut().unwrap().remove(key);
            }
        }
        items.push(item);
    }
    body.insert("input".into(), items.into());
}

fn normalize_anthropic(body: &mut Map<String, Value>) {
    if let Some(system) = body.get_mut("system")
        && let Value::String(text) = system
    {
        *system = json!([{"type": "text", "text": text}]);
    }
    let mut messages: Vec<Value> = Vec::new();
    for mut message in body["messages"].as_array().unwrap().clone() {
        if let Value::String(text) = &message["content"] {
            message["content"] = json!([{"type": "text", "text": text}]);
        }
        for block in message["content"].as_array_mut().unwrap() {
            let map = block.as_object_mut().unwrap();
            // The caller of a tool and the title of a document.
            map.remove("caller");
            map.remove("title");
            if map.get("is_error") == Some(&json!(false)) {
                map.remove("is_error");
            }
            if map.get("type") == Some(&json!("tool_result"))
                && let Some(Value::String(text)) = map.get("content")
            {
                map.insert("content".into(), json!([{"type": "text", "text": text}]));
            }
        }
        // The provider merges consecutive messages with the same role.
        match messages.last_mut() {
            Some(last) if last["role"] == message["role"] => {
                let more = message["content"].as_array().unwrap().clone();
                last["content"].as_array_mut().unwrap().extend(more);
            }
            _ => messages.push(message),
        }
    }
    body.insert("messages".into(), messages.into());
}

/// Removes cache marks and nulls, and writes integral floats as integers.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("cache_control");
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(simplify);
        }
        Value::Array(list) => list.iter_mut().for_each(simplify),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap();
            if float.fract() == 0.0 {
                *value = json!(float as i64);
            }
        }
        _ => {}
    }
}
