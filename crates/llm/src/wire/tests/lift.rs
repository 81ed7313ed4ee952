//! From a recorded request back to a conversation, and from any request to what it means.
//!
//! Two requests mean the same if they differ only in what [`meaning`] leaves out; each thing it
//! leaves out says why.

use crate::catalog::{Budget, Model, Quirks, plain};
use crate::wire::Format;
use crate::{Request, adapt::schema::Subset};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_protocol::{
    Attachment, Author, BlobRef, CallId, CallPart, Choice, Effort, Message, Options, Outcome,
    Output, Part, Role, ToolSummary,
};

/// Why a request cannot be one of ours.
type Foreign = &'static str;

pub(super) fn quirks(format: Format) -> Quirks {
    // The recordings were made with tool schemas as they are.
    let schema = if format == Format::Gemini { Subset::Gemini } else { Subset::Full };
    Quirks { schema, parallel: true, json_schema: true, ..plain(format, false).quirks }
}

pub(super) fn body(format: Format, request: &Request) -> Value {
    format.body(request, &quirks(format))
}

/// The conversation a recorded request is about.
pub(super) fn request(format: Format, body: &Value) -> Result<Request, Foreign> {
    let mut lifter = Lifter::new(body);
    for key in ["context_management", "container", "mcp_servers"] {
        if body.get(key).is_some() {
            return Err("the provider's own ways with a conversation");
        }
    }
    match format {
        Format::OpenaiChat => lifter.chat()?,
        Format::OpenaiResponses => lifter.responses()?,
        Format::Anthropic => lifter.anthropic()?,
        Format::Gemini => lifter.gemini()?,
    }
    lifter.request.options = Arc::new(lifter.options);
    Ok(lifter.request)
}

struct Lifter<'a> {
    body: &'a Value,
    request: Request,
    options: Options,
}

impl<'a> Lifter<'a> {
    fn new(body: &'a Value) -> Lifter<'a> {
        let id = body["model"].as_str().unwrap_or("m");
        let model = Model {
            images: true,
            pdfs: true,
            structured: true,
            output: Some(128_000),
            efforts: Effort::ALL.to_vec(),
            budget: Some(Budget::default()),
            reasons: body.get("reasoning").is_some(),
            ..Model::assumed(id)
        };
        let request = Request { model: Arc::new(model), system: "".into(), ..super::request() };
        let options = Options {
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            ..Options::default()
        };
        Lifter { body, request, options }
    }

    fn push(&mut self, role: Role, parts: Vec<Part>) {
        let model = (role == Role::Assistant).then(|| "p/m".to_owned());
        self.request.messages.push(Message { role, seq: 1, model, parts });
    }

    fn attach(&mut self, mime: &str, base64: &str, name: &str) -> Attachment {
        use base64::Engine;
        let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
        let number = self.request.files.len() as u8;
        let blob = BlobRef::of_digest([number; 32]);
        self.request.files.insert(blob.clone(), bytes.into());
        Attachment { name: name.into(), mime: mime.into(), blob }
    }

    fn attach_url(&mut self, url: &Value, name: &str) -> Result<Attachment, Foreign> {
        let url = url.as_str().unwrap_or_default();
        let Some((mime, data)) =
            url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
        else {
            return Err("a file at an address");
        };
        Ok(self.attach(mime, data, name))
    }

    fn tools(&mut self, list: &Value, place: &str) -> Result<(), Foreign> {
        for tool in list.as_array().into_iter().flatten() {
            let function = if place == "function" { &tool["function"] } else { tool };
            let kind = tool["type"].as_str().unwrap_or("function");
            let known = ["function", "custom"].contains(&kind) && kind == "function";
            if !known
                || tool.get("defer_loading").is_some()
                || tool.get("allowed_callers").is_some()
            {
                return Err("a tool of the provider's own");
            }
            let schema = ["parameters", "input_schema"].iter().find_map(|key| function.get(key));
            self.request.tools.push(ToolSummary {
                name: function["name"].as_str().unwrap().into(),
                description: function["description"].as_str().unwrap_or_default().into(),
                schema: schema
                    .cloned()
                    .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
            });
        }
        Ok(())
    }

    /// Gives the call of an id its result.
    fn settle(&mut self, id: &Value, text: String, attachments: Vec<Attachment>, failed: bool) {
        let mut messages: Vec<Message> =
            self.request.messages.iter().map(|message| (**message).clone()).collect();
        for message in &mut messages {
            for part in &mut message.parts {
                if let Part::Call(call) = part
                    && *id == call.reference
                {
                    call.outcome = Some(match failed {
                        true => Outcome::Failed { text: text.clone() },
                        false => Outcome::Completed {
                            output: Output {
                                text: text.clone(),
                                attachments: attachments.clone(),
                                ..Output::default()
                            },
                        },
                    });
                }
            }
        }
        self.request.messages = messages.into();
    }

    fn chat(&mut self) -> Result<(), Foreign> {
        self.tools(&self.body["tools"], "function")?;
        self.options.max_output = self.body["max_tokens"].as_u64();
        self.options.tool_choice = choice(&self.body["tool_choice"], "/function/name");
        for message in self.body["messages"].as_array().unwrap() {
            let text = message["content"].as_str().unwrap_or_default();
            match message["role"].as_str().unwrap() {
                "system" => self.request.system = text.into(),
                "user" => self.push(Role::User, vec![Part::text(text)]),
                "assistant" => {
                    let calls = message["tool_calls"].as_array().into_iter().flatten();
                    let mut parts: Vec<Part> = calls
                        .map(|one| {
                            let function = &one["function"];
                            call(&one["id"], &function["name"], str(&function["arguments"]))
                        })
                        .collect();
                    if !text.is_empty() {
                        parts.insert(0, Part::text(text));
                    }
                    self.push(Role::Assistant, parts);
                }
                "tool" => self.settle(&message["tool_call_id"], text.into(), Vec::new(), false),
                _ => return Err("a role we never use"),
            }
        }
        Ok(())
    }

    fn responses(&mut self) -> Result<(), Foreign> {
        self.tools(&self.body["tools"], "")?;
        self.request.system = str(&self.body["instructions"]).as_str().into();
        self.request.cache_key = self.body["prompt_cache_key"].as_str().map(str::to_owned);
        self.options.max_output = self.body["max_output_tokens"].as_u64();
        self.options.parallel_calls = self.body["parallel_tool_calls"].as_bool();
        self.options.tool_choice = choice(&self.body["tool_choice"], "/name");
        let effort = self.body["reasoning"]["effort"].as_str().and_then(Effort::named);
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
            self.push(Role::User, vec![Part::text(text)]);
        }
        for item in input.as_array().into_iter().flatten() {
            self.item(item)?;
        }
        Ok(())
    }

    fn item(&mut self, item: &Value) -> Result<(), Foreign> {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("message", Some("system" | "developer")) => {
                self.request.system = str(&item["content"]).as_str().into();
            }
            ("message", Some("user")) => {
                let parts = self.contents(&item["content"])?;
                self.push(Role::User, parts);
            }
            ("message", Some("assistant")) => {
                let phase = item.get("phase").map(|phase| json!({"phase": phase}).to_string());
                let parts = self.contents(&item["content"])?.into_iter().map(|part| match part {
                    Part::Text { text, .. } => Part::Text { text, seal: phase.clone() },
                    other => other,
                });
                let parts: Vec<Part> = parts.collect();
                parts.into_iter().for_each(|part| self.join(part));
            }
            ("function_call", _) if item.get("namespace").is_none() => {
                let part = call(&item["call_id"], &item["name"], str(&item["arguments"]));
                self.join(part);
            }
            ("function_call_output", _) => match &item["output"] {
                Value::String(text) => {
                    self.settle(&item["call_id"], text.clone(), Vec::new(), false);
                }
                list => {
                    let parts = self.contents(list)?;
                    let (text, files) = apart(parts);
                    self.settle(&item["call_id"], text, files, false);
                }
            },
            ("reasoning", _) if item.get("encrypted_content").is_some() => {
                let seal = Some(item.to_string());
                self.join(Part::Reasoning { text: String::new(), seal });
            }
            // It names something kept at the provider's; ours never does.
            ("reasoning", _) => {}
            _ => return Err("an item of the provider's own"),
        }
        Ok(())
    }

    /// Adds to the model's turn under way.
    fn join(&mut self, part: Part) {
        let speaks = |last: &Message| {
            let settled = |part: &Part| matches!(part, Part::Call(call) if call.outcome.is_some());
            last.role == Role::Assistant && !last.parts.iter().any(settled)
        };
        let speaking = self.request.messages.last().is_some_and(|last| speaks(last));
        match self.request.messages.change_last(|_| true).filter(|_| speaking) {
            Some(last) => last.parts.push(part),
            None => self.push(Role::Assistant, vec![part]),
        }
    }

    fn contents(&mut self, content: &Value) -> Result<Vec<Part>, Foreign> {
        if let Some(text) = content.as_str() {
            return Ok(vec![Part::text(text)]);
        }
        content
            .as_array()
            .into_iter()
            .flatten()
            .map(|block| {
                Ok(match block["type"].as_str().unwrap_or_default() {
                    "input_text" | "output_text" | "text" => Part::text(str(&block["text"])),
                    "input_image" => Part::File(self.attach_url(&block["image_url"], "image")?),
                    "input_file" => {
                        let name = str(&block["filename"]);
                        Part::File(self.attach_url(&block["file_data"], &name)?)
                    }
                    "image" | "document" if block.get("citations").is_none() => {
                        let source = &block["source"];
                        let (mime, data) = (str(&source["media_type"]), str(&source["data"]));
                        if source["type"] != "base64" {
                            return Err("a file of another kind");
                        }
                        Part::File(self.attach(&mime, &data, "file"))
                    }
                    _ => return Err("a block of the provider's own"),
                })
            })
            .collect()
    }

    fn anthropic(&mut self) -> Result<(), Foreign> {
        self.tools(&self.body["tools"], "")?;
        self.request.system = match &self.body["system"] {
            Value::Array(list) => str(&list[0]["text"]).as_str().into(),
            text => str(text).as_str().into(),
        };
        self.options.max_output = self.body["max_tokens"].as_u64();
        self.options.tool_choice = match &self.body["tool_choice"] {
            Value::Null => None,
            choice if choice["type"] == "auto" => Some(Choice::Auto),
            choice if choice["type"] == "any" => Some(Choice::Required),
            choice => Some(Choice::Tool(str(&choice["name"]))),
        };
        if let Some(thinking) = self.body.get("thinking") {
            self.options.extra.insert("thinking".into(), thinking.clone());
        }
        for message in self.body["messages"].as_array().unwrap() {
            let own = message["role"] == "assistant";
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
                        parts.push(call(&block["id"], &block["name"], block["input"].to_string()));
                    }
                    "tool_result" => {
                        let inner = self.contents(&block["content"])?;
                        let failed = block["is_error"] == true;
                        let (text, files) = apart(inner);
                        self.settle(&block["tool_use_id"], text, files, failed);
                    }
                    _ => parts.extend(self.contents(&json!([block]))?),
                }
            }
            if !parts.is_empty() {
                self.push(if own { Role::Assistant } else { Role::User }, parts);
            }
        }
        Ok(())
    }

    fn gemini(&mut self) -> Result<(), Foreign> {
        self.tools(&self.body["tools"][0]["functionDeclarations"], "")?;
        self.request.system =
            str(&self.body["systemInstruction"]["parts"][0]["text"]).as_str().into();
        let config = &self.body["generationConfig"];
        self.options.max_output = config["maxOutputTokens"].as_u64();
        self.options.temperature = config["temperature"].as_f64();
        let calling = &self.body["toolConfig"]["functionCallingConfig"];
        if let Some(name) = calling["allowedFunctionNames"][0].as_str() {
            self.options.tool_choice = Some(Choice::Tool(name.into()));
        }
        for content in self.body["contents"].as_array().unwrap() {
            let parts: Vec<Part> = content["parts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|part| match part.get("inlineData") {
                    Some(data) => {
                        let (mime, data) = (str(&data["mimeType"]), str(&data["data"]));
                        Part::File(self.attach(&mime, &data, "file"))
                    }
                    None => Part::text(str(&part["text"])),
                })
                .collect();
            self.push(Role::User, parts);
        }
        Ok(())
    }
}

/// The text and the files of a result.
fn apart(parts: Vec<Part>) -> (String, Vec<Attachment>) {
    let (mut text, mut files) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text: more, .. } => text += &more,
            Part::File(file) => files.push(file),
            Part::Reasoning { .. } | Part::Call(_) => {}
        }
    }
    (text, files)
}

fn str(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn call(id: &Value, name: &Value, arguments: String) -> Part {
    Part::Call(Box::new(CallPart {
        call: CallId(Default::default()),
        reference: str(id),
        tool: str(name),
        arguments,
        by: Author::Model,
        seal: None,
        outcome: None,
        pruned: false,
    }))
}

fn choice(choice: &Value, name: &str) -> Option<Choice> {
    match choice {
        Value::Null => None,
        Value::String(word) if word == "auto" => Some(Choice::Auto),
        Value::String(word) if word == "none" => Some(Choice::None),
        Value::String(_) => Some(Choice::Required),
        choice => Some(Choice::Tool(str(choice.pointer(name).unwrap_or(&choice["name"])))),
    }
}

/// What a request asks for, without what does not change the answer.
pub(super) fn meaning(format: Format, body: &Value) -> Value {
    let mut body = body.as_object().unwrap().clone();
    match format {
        Format::OpenaiChat => {
            // We always ask for the count of tokens.
            body.remove("stream_options");
        }
        Format::OpenaiResponses => responses(&mut body),
        Format::Anthropic => anthropic(&mut body),
        Format::Gemini => {}
    }
    let mut body = Value::Object(body);
    plainly(&mut body);
    body
}

fn responses(body: &mut Map<String, Value>) {
    // We never keep anything at the provider's, ask for what that takes, and for summaries.
    body.remove("store");
    body.remove("include");
    if let Some(Value::Object(reasoning)) = body.get_mut("reasoning") {
        reasoning.remove("summary");
        if reasoning.is_empty() {
            body.remove("reasoning");
        }
    }
    // A shape has a name that means nothing, and ours is strict wherever that can be: then what a
    // schema cannot say is told in its descriptions. What it is about is the same.
    if let Some(format) = body.get_mut("text").and_then(|text| text.get_mut("format")) {
        let fields = format["schema"]["properties"].as_object();
        let fields: Vec<String> =
            fields.into_iter().flatten().map(|(key, _)| key.clone()).collect();
        *format = json!({"type": format["type"], "fields": fields});
    }
    for tool in body.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        // Our schemas are not strict, and we say so.
        tool.as_object_mut().unwrap().remove("strict");
    }
    let mut input = match body.remove("input").unwrap() {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        list => list.as_array().unwrap().clone(),
    };
    // A system message at the beginning is what instructions are.
    if let Some(at) = input.iter().position(|item| item["role"] == "system") {
        let system = input.remove(at);
        body.insert("instructions".into(), system["content"].clone());
    }
    // Nothing is kept at the provider's, so a thought that is only a name there is left out.
    input.retain(|item| item["type"] != "reasoning" || item.get("encrypted_content").is_some());
    let mut items: Vec<Value> = Vec::new();
    for mut item in input {
        let map = item.as_object_mut().unwrap();
        // Names of things that are kept there, and what a message is anyway.
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
            // Notes on where a text came from, the names and details of files.
            for key in ["annotations", "detail", "logprobs"] {
                block.as_object_mut().unwrap().remove(key);
            }
        }
        items.push(item);
    }
    body.insert("input".into(), items.into());
}

fn anthropic(body: &mut Map<String, Value>) {
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
            // Who ran a call, and what a document is called.
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
        // Two messages of one side in a row are one message to the provider.
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

/// Without marks for caches, and without what is empty.
fn plainly(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("cache_control");
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(plainly);
        }
        Value::Array(list) => list.iter_mut().for_each(plainly),
        // 0 and 0.0 are the same number.
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap();
            if float.fract() == 0.0 {
                *value = json!(float as i64);
            }
        }
        _ => {}
    }
}
