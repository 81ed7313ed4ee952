//! Hook points and verdicts: the moments at which external programs run, and the results they may
//! return.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moment at which a hook runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// A session starts or resumes.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The user submits a prompt (`SessionOp::Prompt`).
    Prompt,
    /// A custom command is expanded to a prompt, which is not submitted yet.
    Command,
    /// A tool call is parsed, and nothing is decided about it yet.
    BeforeTool,
    /// A tool call has run, and the model has not received its result yet.
    AfterTool,
    /// Windlass is about to ask the user to approve a call (`PermissionAsked`).
    Permission,
    /// The model is done with a turn, which a hook can continue, or a turn has ended in another way
    /// (`TurnEnded`).
    TurnEnd,
    /// The same for the turn of a subagent.
    SubagentEnd,
    /// Windlass waits for the user, who may not be looking.
    Notification,
    /// Windlass is about to compact the conversation (`ContextCompacted`).
    Compaction,
    /// Windlass is about to send the model the definition of a tool.
    ToolDefinition,
    /// Windlass is about to send a request to the model (`StepStarted`).
    Params,
    /// Windlass is about to send the messages of a conversation to the model (`StepStarted`).
    Messages,
    /// Windlass is about to set the system prompt of a session (`SystemPromptSet`).
    System,
    /// A `Fact` was recorded.
    Event,
}

/// Names of each `HookPoint`: ours, then those of Claude Code and of OpenCode plugins.
const HOOK_POINT_NAMES: [(HookPoint, &str, &[&str]); 16] = [
    (HookPoint::SessionStart, "session_start", &["SessionStart"]),
    (HookPoint::SessionEnd, "session_end", &["SessionEnd"]),
    (HookPoint::Prompt, "prompt", &["UserPromptSubmit", "chat.message"]),
    (HookPoint::Command, "command", &["command.execute.before"]),
    (HookPoint::BeforeTool, "before_tool", &["PreToolUse", "tool.execute.before"]),
    (HookPoint::AfterTool, "after_tool", &["PostToolUse", "tool.execute.after"]),
    (HookPoint::Permission, "permission", &["PermissionRequest", "permission.ask"]),
    (HookPoint::TurnEnd, "turn_end", &["Stop"]),
    (HookPoint::SubagentEnd, "subagent_end", &["SubagentStop"]),
    (HookPoint::Notification, "notification", &["Notification"]),
    (HookPoint::Compaction, "compaction", &["PreCompact", "experimental.session.compacting"]),
    (HookPoint::ToolDefinition, "tool_definition", &["tool.definition"]),
    (HookPoint::Params, "params", &["chat.params"]),
    (HookPoint::Messages, "messages", &["experimental.chat.messages.transform"]),
    (HookPoint::System, "system", &["experimental.chat.system.transform"]),
    (HookPoint::Event, "event", &[]),
];

impl HookPoint {
    /// All hook points.
    pub const ALL: [HookPoint; 16] = [
        HookPoint::SessionStart,
        HookPoint::SessionEnd,
        HookPoint::Prompt,
        HookPoint::Command,
        HookPoint::BeforeTool,
        HookPoint::AfterTool,
        HookPoint::Permission,
        HookPoint::TurnEnd,
        HookPoint::SubagentEnd,
        HookPoint::Notification,
        HookPoint::Compaction,
        HookPoint::ToolDefinition,
        HookPoint::Params,
        HookPoint::Messages,
        HookPoint::System,
        HookPoint::Event,
    ];

    /// Returns the point with this name, in the spelling of Windlass, Claude Code or OpenCode.
    pub fn from_name(text: &str) -> Option<HookPoint> {
        let has_name = |(_, name, aliases): &&(HookPoint, &str, &[&str])| {
            *name == text || aliases.contains(&text)
        };
        HOOK_POINT_NAMES.iter().find(has_name).map(|(point, _, _)| *point)
    }

    /// Returns the methods of OpenCode plugins that are called at the point.
    pub fn opencode_names(self) -> impl Iterator<Item = &'static str> {
        let row = HOOK_POINT_NAMES.iter().find(move |(point, _, _)| *point == self);
        let aliases = row.map_or(&[][..], |(_, _, aliases)| aliases);
        aliases.iter().copied().filter(|name| name.contains('.'))
    }

    /// Returns Windlass's own name of the point.
    pub fn name(self) -> &'static str {
        HOOK_POINT_NAMES.iter().find(|(point, _, _)| *point == self).map_or("", |(_, name, _)| name)
    }

    /// Returns true if the first denial at this point stops the action. At the other points all
    /// hooks run: they only observe, add to the text that the model reads, or continue a turn.
    pub fn can_change_outcome(self) -> bool {
        match self {
            HookPoint::Prompt
            | HookPoint::Command
            | HookPoint::BeforeTool
            | HookPoint::AfterTool
            | HookPoint::Permission
            | HookPoint::ToolDefinition
            | HookPoint::Params
            | HookPoint::Messages
            | HookPoint::System => true,
            HookPoint::SessionStart
            | HookPoint::SessionEnd
            | HookPoint::TurnEnd
            | HookPoint::SubagentEnd
            | HookPoint::Notification
            | HookPoint::Compaction
            | HookPoint::Event => false,
        }
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Verdict of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum HookVerdict {
    /// The hook changed nothing.
    Passed,
    /// The hook changed its input.
    Rewrote,
    /// The hook requires the user's approval.
    Asks {
        /// Reason for the request.
        reason: String,
    },
    /// The hook denied the action.
    Refused {
        /// Reason for the denial.
        reason: String,
    },
    /// The hook failed, which counts as a denial.
    Failed {
        /// Description of the failure.
        reason: String,
    },
}

impl HookVerdict {
    /// Returns the name of the verdict, as the log stores it.
    pub fn name(&self) -> &'static str {
        match self {
            HookVerdict::Passed => "passed",
            HookVerdict::Rewrote => "rewrote",
            HookVerdict::Asks { .. } => "asks",
            HookVerdict::Refused { .. } => "refused",
            HookVerdict::Failed { .. } => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, Fact};
    use std::collections::BTreeSet;

    #[test]
    fn every_point_is_parsed_and_stored_by_its_name() {
        let mut seen = BTreeSet::new();
        for point in HookPoint::ALL {
            assert_eq!(HookPoint::from_name(point.name()), Some(point));
            assert_eq!(serde_json::to_value(point).unwrap(), point.name());
        }
        for (point, name, aliases) in HOOK_POINT_NAMES {
            for name in std::iter::once(&name).chain(aliases) {
                assert!(seen.insert(*name), "{name} is used twice");
                assert_eq!(HookPoint::from_name(name), Some(point));
            }
        }
        for unknown in ["", "BeforeTool", "pretooluse", "Idle"] {
            assert_eq!(HookPoint::from_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_hook_run_serializes_with_its_verdict_flattened() {
        let reason = "too late".to_owned();
        let verdicts = [
            HookVerdict::Passed,
            HookVerdict::Rewrote,
            HookVerdict::Asks { reason: reason.clone() },
            HookVerdict::Refused { reason: reason.clone() },
            HookVerdict::Failed { reason },
        ];
        for (index, verdict) in verdicts.into_iter().enumerate() {
            let call = (index % 2 == 0).then(|| CallId(Default::default()));
            let name = verdict.name();
            let fact = Fact::HookRan {
                call,
                hook: "guard".into(),
                point: HookPoint::BeforeTool,
                duration_ms: u64::MAX,
                verdict,
            };
            let json = serde_json::to_string(&fact).unwrap();
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!((&value["kind"], &value["verdict"]), (&"hook_ran".into(), &name.into()));
            assert_eq!(serde_json::from_str::<Fact>(&json).unwrap(), fact, "{json}");
        }
    }
}
