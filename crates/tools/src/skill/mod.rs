//! `skill`: loads written instructions for a kind of task when the model needs them.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::{
    ALLOWED_CALLS_KEY, CallDescription, OutputDisplay, ToolAccess, ToolOutput,
};
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, closest_names,
};

/// Limits on the list of skills in the tool description: bytes of the list, and characters per
/// description. A description below the minimum says nothing, and is left out.
const MAX_SKILL_LIST_BYTES: usize = 4_000;
const MAX_DESCRIPTION_CHARS: usize = 200;
const MIN_DESCRIPTION_CHARS: usize = 12;

/// The `skill` tool.
pub struct SkillTool;

/// Input of the `skill` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillInput {
    /// The skill.
    name: String,
}

#[async_trait]
impl Tool for SkillTool {
    type Input = SkillInput;

    fn name(&self) -> &str {
        "skill"
    }

    fn retains_output(&self) -> bool {
        true
    }

    /// A batch returns no metadata, and so not the calls that the skill allows.
    fn allows_batching(&self) -> bool {
        false
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Skill"]
    }

    fn describe_call(&self, input: &SkillInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Skill", "loading skill", &input.name))
    }

    /// Hides the tool if there are no skills.
    fn is_offered(&self, context: &StepContext) -> bool {
        !context.skills.is_empty()
    }

    async fn describe(&self, context: &StepContext) -> ToolDefinition {
        let mut definition =
            ToolDefinition::for_input::<SkillInput>(include_str!("description.md"));
        definition.description.push_str(&list_skills(context));
        definition
    }

    fn access(&self, input: &SkillInput) -> Vec<ToolAccess> {
        vec![ToolAccess::ReadSkill { name: input.name.clone() }]
    }

    async fn run(
        &self,
        input: SkillInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let skills = &cx.step.skills;
        let Some(skill) = skills.iter().find(|skill| skill.name == input.name) else {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            let suggestions = closest_names(&input.name, &names);
            let suggestions = if suggestions.is_empty() { names } else { suggestions };
            let text =
                format!("Skill {} not found. Available: {}", input.name, suggestions.join(", "));
            return Err(CallFailure::new(text));
        };
        let mut text = format!(
            "Skill {}. Its folder is `{}`; paths below are relative to it.",
            skill.name, skill.folder
        );
        if !skill.files.is_empty() {
            text.push_str(&format!(" Files: {}", skill.files.join(", ")));
        }
        text.push('\n');
        if !skill.tools.is_empty() {
            text.push_str(&format!(
                "While it applies, until the end of the turn, only these calls and reading the \
                 project run without approval: {}\n",
                skill.tools.join(", ")
            ));
        }
        text.push('\n');
        text.push_str(&skill.body);
        let display = OutputDisplay::Markdown;
        let allowed_calls = skill.allowed_calls.iter();
        let metadata = allowed_calls.map(|it| (ALLOWED_CALLS_KEY.to_owned(), json!(it))).collect();
        Ok(ToolOutput { text, display, metadata, ..ToolOutput::default() })
    }
}

/// Lists the skills, up to `MAX_SKILL_LIST_BYTES`. The names come first: descriptions are cut to an
/// equal share of the bytes that the names leave.
fn list_skills(context: &StepContext) -> String {
    let name_bytes = |name: &str| name.len() + "\n- : ".len();
    let names: usize = context.skills.iter().map(|skill| name_bytes(&skill.name)).sum();
    let share = MAX_SKILL_LIST_BYTES.saturating_sub(names) / context.skills.len().max(1);
    let max_chars = share.min(MAX_DESCRIPTION_CHARS);
    let mut list = String::new();
    let mut remaining = context.skills.len();
    for skill in context.skills.iter() {
        let line: Vec<&str> = skill.description.split_whitespace().collect();
        let limit = match skill.tools.as_slice() {
            [] => String::new(),
            tools => format!(" (limits this turn to {})", tools.join(", ")),
        };
        let limit = truncate_chars(&limit, max_chars / 2);
        let description_chars = max_chars.saturating_sub(limit.chars().count());
        let mut description = truncate_chars(&line.join(" "), description_chars) + &limit;
        description.truncate(description.floor_char_boundary(share.max(1)));
        let line = match max_chars < MIN_DESCRIPTION_CHARS {
            true => format!("\n- {}", skill.name),
            false => format!("\n- {}: {description}", skill.name),
        };
        if list.len() + line.len() > MAX_SKILL_LIST_BYTES {
            break;
        }
        list.push_str(&line);
        remaining -= 1;
    }
    if remaining > 0 {
        list.push_str(&format!("\n({remaining} more are not listed)"));
    }
    list
}

#[cfg(test)]
mod tests;
