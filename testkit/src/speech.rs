//! How a scripted model's words are put on the wire, in each format.

use serde_json::{Value, json};

/// The wire formats a scripted model speaks, told apart by the path it is asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Chat,
    Responses,
    Anthropic,
    Gemini,
}

impl Speech {
    pub(crate) fn at(path: &str) -> Speech {
        match path {
            _ if path.ends_with("/responses") => Speech::Responses,
            _ if path.ends_with("/messages") => Speech::Anthropic,
            _ if path.contains(":streamGenerateContent") => Speech::Gemini,
            _ => Speech::Chat,
        }
    }

    /// How many answers there are in the conversation of a request.
    pub(crate) fn answers(self, body: &Value) -> usize {
        let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
        match self {
            Speech::Chat | Speech::Anthropic => {
                list("messages").iter().filter(|message| message["role"] == "assistant").count()
            }
            Speech::Gemini => list("contents").iter().filter(|one| one["role"] == "model").count(),
            Speech::Responses => {
                let own = |item: &Value| {
                    item["role"] == "assistant"
                        || item["type"] == "function_call"
                        || item["type"] == "reasoning"
                };
                let items = list("input");
                let begins = |at: usize| own(&items[at]) && (at == 0 || !own(&items[at - 1]));
                (0..items.len()).filter(|at| begins(*at)).count()
            }
        }
    }
}

/// An answer being written.
pub(crate) struct Writer {
    speech: Speech,
    /// How many blocks or items there have been.
    index: usize,
    /// The block under way: its kind and what it holds so far.
    open: Option<(&'static str, String)>,
    calls: usize,
}

impl Writer {
    pub(crate) fn new(speech: Speech) -> Writer {
        Writer { speech, index: 0, open: None, calls: 0 }
    }

    /// What comes before everything else.
    pub(crate) fn start(&mut self, input: u64) -> String {
        match self.speech {
            Speech::Chat | Speech::Gemini => String::new(),
            Speech::Responses => named(&json!({"type": "response.created", "response": {}})),
            Speech::Anthropic => {
                let usage = json!({"input_tokens": input, "output_tokens": 1});
                named(&json!({"type": "message_start", "message": {"usage": usage}}))
            }
        }
    }

    /// A piece of text (`text`) or thought (`thinking`).
    pub(crate) fn write(&mut self, kind: &'static str, text: &str) -> String {
        let mut out = String::new();
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            out += &self.close();
            self.open = Some((kind, String::new()));
            if self.speech == Speech::Anthropic {
                let block = json!({"type": kind, kind: ""});
                out += &self.block(json!({"type": "content_block_start", "content_block": block}));
            }
        }
        if let Some((_, so_far)) = &mut self.open {
            so_far.push_str(text);
        }
        out + &match (self.speech, kind) {
            (Speech::Chat, "text") => chat(json!({"content": text}), None),
            (Speech::Chat, _) => chat(json!({"reasoning_content": text}), None),
            (Speech::Responses, "text") => {
                self.item(json!({"type": "response.output_text.delta", "delta": text}))
            }
            (Speech::Responses, _) => {
                self.item(json!({"type": "response.reasoning_summary_text.delta", "delta": text}))
            }
            (Speech::Anthropic, _) => {
                let delta = json!({"type": format!("{kind}_delta"), kind: text});
                self.block(json!({"type": "content_block_delta", "delta": delta}))
            }
            (Speech::Gemini, _) => {
                let part = json!({"text": text, "thought": kind == "thinking"});
                gemini(json!([part]), None, None)
            }
        }
    }

    /// A call, its arguments in two pieces where the format has pieces.
    pub(crate) fn call(&mut self, id: &str, tool: &str, arguments: &str) -> Vec<String> {
        let mut out = vec![self.close()];
        let (index, calls) = (self.index, self.calls);
        let middle = arguments.floor_char_boundary(arguments.len() / 2);
        let halves = [&arguments[..middle], &arguments[middle..]];
        match self.speech {
            Speech::Chat => {
                let function = json!({"name": tool, "arguments": ""});
                let head =
                    json!({"index": calls, "id": id, "type": "function", "function": function});
                out.push(chat(json!({"tool_calls": [head]}), None));
                out.extend(halves.map(|piece| {
                    let call = json!({"index": calls, "function": {"arguments": piece}});
                    chat(json!({"tool_calls": [call]}), None)
                }));
            }
            Speech::Responses => {
                let kind = "response.function_call_arguments.delta";
                out.extend(halves.map(|piece| {
                    named(&json!({"type": kind, "output_index": index, "delta": piece}))
                }));
                let item = json!({"type": "function_call", "call_id": id, "name": tool, "arguments": arguments});
                out.push(self.item(json!({"type": "response.output_item.done", "item": item})));
            }
            Speech::Anthropic => {
                let block = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
                out.push(
                    self.block(json!({"type": "content_block_start", "content_block": block})),
                );
                out.extend(halves.map(|piece| {
                    let delta = json!({"type": "input_json_delta", "partial_json": piece});
                    self.block(json!({"type": "content_block_delta", "delta": delta}))
                }));
                out.push(self.block(json!({"type": "content_block_stop"})));
            }
            Speech::Gemini => {
                let args: Value = serde_json::from_str(arguments).unwrap_or_default();
                let call = json!({"functionCall": {"name": tool, "args": args}, "thoughtSignature": "c2ln"});
                out.push(gemini(json!([call]), None, None));
            }
        }
        self.index += 1;
        self.calls += 1;
        out
    }

    /// The end: why, and what was used. `reason` is given as openai-chat spells it.
    pub(crate) fn end(&mut self, reason: Option<&str>, input: u64, output: u64) -> Vec<String> {
        let mut out = vec![self.close()];
        let reason = reason.unwrap_or(if self.calls > 0 { "tool_calls" } else { "stop" });
        match self.speech {
            Speech::Chat => {
                out.push(chat(json!({}), Some(reason)));
                let usage = json!({"prompt_tokens": input, "completion_tokens": output});
                out.push(event(&json!({"choices": [], "usage": usage})));
                out.push("data: [DONE]\n\n".into());
            }
            Speech::Responses => {
                let usage = json!({"input_tokens": input, "output_tokens": output});
                let (kind, details) = match reason {
                    "length" => ("response.incomplete", json!({"reason": "max_output_tokens"})),
                    "content_filter" => ("response.incomplete", json!({"reason": reason})),
                    _ => ("response.completed", Value::Null),
                };
                let response = json!({"usage": usage, "incomplete_details": details});
                out.push(named(&json!({"type": kind, "response": response})));
            }
            Speech::Anthropic => {
                let reason = match reason {
                    "tool_calls" => "tool_use",
                    "length" => "max_tokens",
                    "content_filter" => "refusal",
                    _ => "end_turn",
                };
                let delta = json!({"stop_reason": reason});
                let usage = json!({"output_tokens": output});
                out.push(named(&json!({"type": "message_delta", "delta": delta, "usage": usage})));
                out.push(named(&json!({"type": "message_stop"})));
            }
            Speech::Gemini => {
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

    /// Ends the block under way.
    fn close(&mut self) -> String {
        let Some((kind, text)) = self.open.take() else { return String::new() };
        let out = match (self.speech, kind) {
            (Speech::Chat | Speech::Gemini, _) => String::new(),
            (Speech::Anthropic, _) => {
                let mut out = String::new();
                if kind == "thinking" {
                    let delta = json!({"type": "signature_delta", "signature": "c2ln"});
                    out = self.block(json!({"type": "content_block_delta", "delta": delta}));
                }
                out + &self.block(json!({"type": "content_block_stop"}))
            }
            (Speech::Responses, "text") => {
                let content = json!([{"type": "output_text", "text": text}]);
                let item = json!({"type": "message", "role": "assistant", "content": content});
                self.item(json!({"type": "response.output_item.done", "item": item}))
            }
            (Speech::Responses, _) => {
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
        named(&event)
    }

    fn item(&self, mut event: Value) -> String {
        event["output_index"] = self.index.into();
        named(&event)
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

fn named(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}
