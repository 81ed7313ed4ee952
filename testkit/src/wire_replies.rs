//! Encoding of scripted replies in each wire format.

use serde_json::{Value, json};

/// The wire format of a request, selected by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireFormat {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

impl WireFormat {
    pub(crate) fn from_path(path: &str) -> WireFormat {
        match path {
            _ if path.ends_with("/responses") => WireFormat::Responses,
            _ if path.ends_with("/messages") => WireFormat::Anthropic,
            _ if path.contains(":streamGenerateContent") => WireFormat::Gemini,
            _ => WireFormat::Chat,
        }
    }

    /// Counts the answers in the conversation of a request.
    pub(crate) fn answer_count(self, body: &Value) -> usize {
        let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
        match self {
            WireFormat::Chat | WireFormat::Anthropic => {
                list("messages").iter().filter(|message| message["role"] == "assistant").count()
            }
            WireFormat::Gemini => {
                list("contents").iter().filter(|one| one["role"] == "model").count()
            }
            WireFormat::Responses => {
                let is_answer_item = |item: &Value| {
                    item["role"] == "assistant"
                        || item["type"] == "function_call"
                        || item["type"] == "reasoning"
                };
                let items = list("input");
                let starts_answer = |at: usize| {
                    is_answer_item(&items[at]) && (at == 0 || !is_answer_item(&items[at - 1]))
                };
                (0..items.len()).filter(|at| starts_answer(*at)).count()
            }
        }
    }
}

/// Writes one reply.
pub(crate) struct ReplyWriter {
    format: WireFormat,
    /// Number of complete blocks or items.
    index: usize,
    /// The open block: its kind and its text so far.
    open: Option<(&'static str, String)>,
    calls: usize,
}

impl ReplyWriter {
    pub(crate) fn new(format: WireFormat) -> ReplyWriter {
        ReplyWriter { format, index: 0, open: None, calls: 0 }
    }

    /// Returns the start of the reply.
    pub(crate) fn start(&mut self, input: u64) -> String {
        match self.format {
            WireFormat::Chat | WireFormat::Gemini => String::new(),
            WireFormat::Responses => {
                named_event(&json!({"type": "response.created", "response": {}}))
            }
            WireFormat::Anthropic => {
                let usage = json!({"input_tokens": input, "output_tokens": 1});
                named_event(&json!({"type": "message_start", "message": {"usage": usage}}))
            }
        }
    }

    /// Returns a chunk of text (`text`) or reasoning (`thinking`).
    pub(crate) fn write(&mut self, kind: &'static str, text: &str) -> String {
        let mut out = String::new();
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            out += &self.close();
            self.open = Some((kind, String::new()));
            if self.format == WireFormat::Anthropic {
                let block = json!({"type": kind, kind: ""});
                out += &self.block(json!({"type": "content_block_start", "content_block": block}));
            }
        }
        if let Some((_, so_far)) = &mut self.open {
            so_far.push_str(text);
        }
        out + &match (self.format, kind) {
            (WireFormat::Chat, "text") => chat(json!({"content": text}), None),
            (WireFormat::Chat, _) => chat(json!({"reasoning_content": text}), None),
            (WireFormat::Responses, "text") => {
                self.item(json!({"type": "response.output_text.delta", "delta": text}))
            }
            (WireFormat::Responses, _) => {
                self.item(json!({"type": "response.reasoning_summary_text.delta", "delta": text}))
            }
            (WireFormat::Anthropic, _) => {
                let delta = json!({"type": format!("{kind}_delta"), kind: text});
                self.block(json!({"type": "content_block_delta", "delta": delta}))
            }
            (WireFormat::Gemini, _) => {
                let part = json!({"text": text, "thought": kind == "thinking"});
                gemini(json!([part]), None, None)
            }
        }
    }

    /// Returns a tool call, with its arguments in two chunks if the format has chunks.
    pub(crate) fn call(&mut self, id: &str, tool: &str, arguments: &str) -> Vec<String> {
        let mut out = vec![self.close()];
        let (index, calls) = (self.index, self.calls);
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        let halves = [&arguments[..middle], &arguments[middle..]];
        match self.format {
            WireFormat::Chat => {
                let function = json!({"name": tool, "arguments": ""});
                let head =
                    json!({"index": calls, "id": id, "type": "function", "function": function});
                out.push(chat(json!({"tool_calls": [head]}), None));
                out.extend(halves.map(|chunk| {
                    let call = json!({"index": calls, "function": {"arguments": chunk}});
                    chat(json!({"tool_calls": [call]}), None)
                }));
            }
            WireFormat::Responses => {
                let item =
                    json!({"type": "function_call", "call_id": id, "name": tool, "arguments": ""});
                out.push(named_event(
                    &json!({"type": "response.output_item.added", "output_index": index, "item": item}),
                ));
                let kind = "response.function_call_arguments.delta";
                out.extend(halves.map(|chunk| {
                    named_event(&json!({"type": kind, "output_index": index, "delta": chunk}))
                }));
                let item = json!({"type": "function_call", "call_id": id, "name": tool, "arguments": arguments});
                out.push(self.item(json!({"type": "response.output_item.done", "item": item})));
            }
            WireFormat::Anthropic => {
                let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
                out.push(
                    self.block(json!({"type": "content_block_start", "content_block": block})),
                );
                out.extend(halves.map(|chunk| {
                    let delta = json!({"type": "input_json_delta", "partial_json": chunk});
                    self.block(json!({"type": "content_block_delta", "delta": delta}))
                }));
                out.push(self.block(json!({"type": "content_block_stop"})));
            }
            WireFormat::Gemini => {
                let args: Value = serde_json::from_str(arguments).unwrap_or_default();
                let call = json!({"functionCall": {"name": tool, "args": args}, "thoughtSignature": "c2ln"});
                out.push(gemini(json!([call]), None, None));
            }
        }
        self.index += 1;
        self.calls += 1;
        out
    }

    /// Returns the end of the reply with its usage. `reason` is spelled as in openai-chat.
    pub(crate) fn end(&mut self, reason: Option<&str>, input: u64, output: u64) -> Vec<String> {
        let mut out = vec![self.close()];
        let reason = reason.unwrap_or(if self.calls > 0 { "tool_calls" } else { "stop" });
        match self.format {
            WireFormat::Chat => {
                out.push(chat(json!({}), Some(reason)));
                let usage = json!({"prompt_tokens": input, "completion_tokens": output});
                out.push(event(&json!({"choices": [], "usage": usage})));
                out.push("data: [DONE]\n\n".into());
            }
            WireFormat::Responses => {
                let usage = json!({"input_tokens": input, "output_tokens": output});
                let (kind, details) = match reason {
                    "length" => ("response.incomplete", json!({"reason": "max_output_tokens"})),
                    "content_filter" => ("response.incomplete", json!({"reason": reason})),
                    _ => ("response.completed", Value::Null),
                };
                let response = json!({"usage": usage, "incomplete_details": details});
                out.push(named_event(&json!({"type": kind, "response": response})));
            }
            WireFormat::Anthropic => {
                let reason = match reason {
                    "tool_calls" => "tool_use",
                    "length" => "max_tokens",
                    "content_filter" => "refusal",
                    _ => "end_turn",
                };
                let delta = json!({"stop_reason": reason});
                let usage = json!({"output_tokens": output});
                out.push(named_event(
                    &json!({"type": "message_delta", "delta": delta, "usage": usage}),
                ));
                out.push(named_event(&json!({"type": "message_stop"})));
            }
            WireFormat::Gemini => {
                let reason = match reason {
                    "length" => "MAX_TOKENS",
                    "content_filter" => "SAFETY",
                    _ => "STOP",
                };
                let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output});
                out.push(gemini(json!([]), Some(reason), Some(usage)));
            }
        }
        out
    }

    /// Closes the open block.
    fn close(&mut self) -> String {
        let Some((kind, text)) = self.open.take() else { return String::new() };
        let out = match (self.format, kind) {
            (WireFormat::Chat | WireFormat::Gemini, _) => String::new(),
            (WireFormat::Anthropic, _) => {
                let mut out = String::new();
                if kind == "thinking" {
                    let delta = json!({"type": "signature_delta", "signature": "c2ln"});
                    out = self.block(json!({"type": "content_block_delta", "delta": delta}));
                }
                out + &self.block(json!({"type": "content_block_stop"}))
            }
            (WireFormat::Responses, "text") => {
                let content = json!([{"type": "output_text", "text": text}]);
                let item = json!({"type": "message", "role": "assistant", "content": content});
                self.item(json!({"type": "response.output_item.done", "item": item}))
            }
            (WireFormat::Responses, _) => {
                let summary = json!([{"type": "summary_text", "text": text}]);
                let item = json!({"id": "rs", "type": "reasoning", "summary": summary, "encrypted_content": "c2VhbA=="});
                self.item(json!({"type": "response.output_item.done", "item": item}))
            }
        };
        self.index += 1;
        out
    }

    fn block(&self, mut event: Value) -> String {
        event["index"] = self.index.into();
        named_event(&event)
    }

    fn item(&self, mut event: Value) -> String {
        event["output_index"] = self.index.into();
        named_event(&event)
    }
}

fn chat(delta: Value, reason: Option<&str>) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
}

fn gemini(parts: Value, reason: Option<&str>, usage: Option<Value>) -> String {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    event(&json!({"candidates": [candidate], "usageMetadata": usage}))
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn named_event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}
