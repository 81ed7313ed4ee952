//! Hooks: when other people's programs have their say, and what they may say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// When a hook is asked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// A session begins, or is gone on with.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// A person asks for something.
    Prompt,
    /// A call is understood, and nothing is decided yet.
    BeforeTool,
    /// A call has run, and its result is not told yet.
    AfterTool,
    /// Somebody is about to be asked whether a call may go on.
    Permission,
    /// A turn has ended.
    TurnEnd,
    /// A conversation is about to be summed up.
    Compaction,
    /// A model is about to be told of a tool.
    ToolDefinition,
    /// A model is about to be asked.
    Params,
    /// A session is about to get its brief.
    System,
    /// Anything was put on record.
    Event,
}

/// Every point, by our name, Claude's and the one of OpenCode's plugins.
const NAMES: [(Point, &str, &[&str]); 12] = [
    (Point::SessionStart, "session_start", &["SessionStart"]),
    (Point::SessionEnd, "session_end", &["SessionEnd"]),
    (Point::Prompt, "prompt", &["UserPromptSubmit", "chat.message"]),
    (Point::BeforeTool, "before_tool", &["PreToolUse", "tool.execute.before"]),
    (Point::AfterTool, "after_tool", &["PostToolUse", "tool.execute.after"]),
    (Point::Permission, "permission", &["PermissionRequest", "permission.ask"]),
    (Point::TurnEnd, "turn_end", &["Stop"]),
    (Point::Compaction, "compaction", &["PreCompact", "experimental.session.compacting"]),
    (Point::ToolDefinition, "tool_definition", &["tool.definition"]),
    (Point::Params, "params", &["chat.params"]),
    (Point::System, "system", &["experimental.chat.system.transform"]),
    (Point::Event, "event", &[]),
];

impl Point {
    /// All of them.
    pub const ALL: [Point; 12] = [
        Point::SessionStart,
        Point::SessionEnd,
        Point::Prompt,
        Point::BeforeTool,
        Point::AfterTool,
        Point::Permission,
        Point::TurnEnd,
        Point::Compaction,
        Point::ToolDefinition,
        Point::Params,
        Point::System,
        Point::Event,
    ];

    /// The point of this name, in our spelling, Claude's or OpenCode's.
    pub fn named(text: &str) -> Option<Point> {
        let named =
            |(_, name, others): &&(Point, &str, &[&str])| *name == text || others.contains(&text);
        NAMES.iter().find(named).map(|(point, _, _)| *point)
    }

    /// Our name for it.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(point, _, _)| *point == self).map_or("", |(_, name, _)| name)
    }

    /// True if what a hook says there changes what happens. Elsewhere it watches, or adds to what
    /// the model is told.
    pub fn decides(self) -> bool {
        match self {
            Point::Prompt
            | Point::BeforeTool
            | Point::AfterTool
            | Point::Permission
            | Point::ToolDefinition
            | Point::Params
            | Point::System => true,
            Point::SessionStart
            | Point::SessionEnd
            | Point::TurnEnd
            | Point::Compaction
            | Point::Event => false,
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What came of asking a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It let everything be.
    Passed,
    /// It changed what it was shown.
    Rewrote,
    /// It wants a person to be asked.
    Asks {
        /// Why.
        reason: String,
    },
    /// It said no.
    Refused {
        /// Why.
        reason: String,
    },
    /// It did not work, which counts as a no.
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl Verdict {
    /// The word for it, as it stands in the log.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Rewrote => "rewrote",
            Verdict::Asks { .. } => "asks",
            Verdict::Refused { .. } => "refused",
            Verdict::Failed { .. } => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, Fact};
    use std::collections::BTreeSet;

    #[test]
    fn every_point_has_one_name_that_it_is_found_by_and_stored_under() {
        let mut seen = BTreeSet::new();
        for point in Point::ALL {
            assert_eq!(Point::named(point.name()), Some(point));
            assert_eq!(serde_json::to_value(point).unwrap(), point.name());
        }
        for (point, name, others) in NAMES {
            for name in std::iter::once(&name).chain(others) {
                assert!(seen.insert(*name), "{name} means two");
                assert_eq!(Point::named(name), Some(point));
            }
        }
        for odd in ["", "BeforeTool", "pretooluse", "Notification"] {
            assert_eq!(Point::named(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_firing_reads_back_with_its_verdict_beside_the_rest() {
        let reason = "too late".to_owned();
        let verdicts = [
            Verdict::Passed,
            Verdict::Rewrote,
            Verdict::Asks { reason: reason.clone() },
            Verdict::Refused { reason: reason.clone() },
            Verdict::Failed { reason },
        ];
        for (at, verdict) in verdicts.into_iter().enumerate() {
            let call = (at % 2 == 0).then(|| CallId(Default::default()));
            let word = verdict.word();
            let fact = Fact::Hooked {
                call,
                hook: "guard".into(),
                point: Point::BeforeTool,
                took_ms: u64::MAX,
                verdict,
            };
            let json = serde_json::to_string(&fact).unwrap();
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!((&value["kind"], &value["verdict"]), (&"hooked".into(), &word.into()));
            assert_eq!(serde_json::from_str::<Fact>(&json).unwrap(), fact, "{json}");
        }
    }
}
