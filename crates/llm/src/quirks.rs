//! The deviations of providers from their wire formats. `catalog` lists those of each provider.

use crate::adapt::schema::SchemaSubset;

/// Deviations of a provider from its wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Send the system prompt with the role `developer` instead of `system`.
    pub developer_role: bool,
    /// Send `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Send `stream_options: {"include_usage": true}`. Other providers would reject the request.
    pub stream_usage: bool,
    /// The `SchemaSubset` supported in tool parameters.
    pub schema_subset: SchemaSubset,
    /// The form of call IDs that the provider accepts.
    pub call_id_format: CallIdFormat,
    /// Rejects two consecutive messages of the same role, and a user message directly after a tool
    /// result.
    pub strict_alternation: bool,
    /// The form in which earlier reasoning is sent back.
    pub reasoning_echo: ReasoningEcho,
    /// The request field that sets the reasoning effort.
    pub effort_style: ReasoningEffortField,
    /// Supports `response_format: {"type": "json_schema"}`.
    pub json_schema: bool,
    /// Supports `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
    /// Reasoning and calls may arrive inside the response text.
    pub inline_calls: bool,
    /// Reasoning may arrive inside the response text, between `<think>` tags.
    pub think_tags: bool,
    /// Make the provider follow the schemas of tools strictly.
    pub strict_tools: bool,
    /// Supports prompt cache marks (`cache_control`).
    pub cache_marks: bool,
    /// Supports `prompt_cache_key`.
    pub cache_key: bool,
    /// Accepts PDF files in messages.
    pub pdfs: bool,
}

/// The form of call IDs that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIdFormat {
    /// Any string. IDs must be sent back unchanged, because some models rely on the IDs they write.
    Any,
    /// Up to 64 letters, digits, `_` and `-`.
    Identifier64,
    /// Exactly nine letters or digits.
    NineAlphanumeric,
}

/// The form in which earlier reasoning is sent back within a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEcho {
    /// Not sent, or sent as the wire format itself defines.
    None,
    /// Sent as `reasoning_content` of every message with calls, even if it is empty; otherwise the
    /// provider may reject the request.
    ReasoningContent,
    /// Sent as `reasoning_content` of every assistant message.
    AlwaysReasoningContent,
    /// Sent as `reasoning_details`, unchanged.
    ReasoningDetails,
}

/// The request field that sets the reasoning effort in dialects of `openai-chat`. The other formats
/// have one way each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffortField {
    /// The effort is not sent.
    None,
    /// `"reasoning_effort": "high"`.
    ReasoningEffort,
    /// `"reasoning": {"effort": "high"}`.
    ReasoningObject,
    /// `"reasoning": {"enabled": true}`, or `reasoning_effort` for a model that lists efforts.
    ReasoningSwitch,
    /// `"thinking": {"type": "enabled"}`, or `reasoning_effort` for a model that lists efforts.
    /// Never both: some providers reject that.
    ThinkingToggle,
    /// `"enable_thinking": true`, with `thinking_budget` for a model that takes a budget.
    EnableThinking,
}
