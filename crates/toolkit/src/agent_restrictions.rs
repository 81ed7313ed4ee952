//! Restrictions of an agent: they narrow a `ToolRuntime`. Nothing can widen one.

use crate::ToolRuntime;
use crate::pipeline::resolve_call::INVALID_TOOL;
use windlass_permission::PermissionRules;
use windlass_protocol::PermissionMode;

/// Restrictions that an agent adds to those of the session that starts it.
#[derive(Clone, Debug, Default)]
pub struct AgentRestrictions {
    /// Rules that apply where they are stricter than those of the session
    /// (`Policy::restricted_by`).
    pub rules: Vec<PermissionRules>,
    /// Tool names, or prefixes that end in `*`, and whether the agent has them. The last match
    /// decides; a tool without a match is available.
    pub tools: Vec<(String, bool)>,
    /// The most permissive mode that the agent may use.
    pub max_mode: Option<PermissionMode>,
}

impl AgentRestrictions {
    /// Returns true if the restrictions give the agent this tool by its exact name.
    fn names_tool(&self, tool: &str) -> bool {
        self.tools
            .iter()
            .rev()
            .find(|(name, _)| name == tool)
            .is_some_and(|(_, available)| *available)
    }
}

impl ToolRuntime {
    /// Returns a runtime with the same tools, hooks and workspace under stricter rules, for a
    /// session that the user starts.
    #[must_use]
    pub fn restricted_to(&self, restrictions: &AgentRestrictions) -> ToolRuntime {
        self.without_tools(restrictions, &[])
    }

    /// Returns the runtime of a subagent: as `restricted_to`, without the tools that are not
    /// `Tool::is_for_subagents`, unless `restrictions` gives them by name.
    #[must_use]
    pub fn restricted_to_subagent(&self, restrictions: &AgentRestrictions) -> ToolRuntime {
        self.without_tools(restrictions, &self.registry.names_not_for_subagents())
    }

    fn without_tools(&self, restrictions: &AgentRestrictions, excluded: &[String]) -> ToolRuntime {
        let is_excluded =
            |tool: &str| excluded.iter().any(|name| name == tool) && !restrictions.names_tool(tool);
        let tools = self.registry.names().into_iter();
        let removed = tools.filter(|tool| tool != INVALID_TOOL && is_excluded(tool));
        let mut policy = self.policy.clone().without_tools(removed);
        if !restrictions.tools.is_empty() {
            // `INVALID_TOOL` stays, because a malformed call still needs an answer.
            let invalid = (INVALID_TOOL.to_owned(), true);
            let patterns = restrictions.tools.iter().cloned().chain([invalid]).collect();
            policy = policy.with_tool_patterns(patterns);
        }
        for rules in &restrictions.rules {
            policy = policy.restricted_by(rules.clone());
        }
        if let Some(max_mode) = restrictions.max_mode {
            policy = policy.with_max_mode(max_mode);
        }
        ToolRuntime {
            registry: self.registry.clone(),
            hooks: self.hooks.clone(),
            policy,
            workspace: self.workspace.clone(),
            limits: self.limits,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::Registry;
    use serde_json::json;
    use windlass_permission::Policy;
    use windlass_sandbox::Workspace;

    fn restrictions(tools: &[(&str, bool)]) -> AgentRestrictions {
        let tools =
            tools.iter().map(|(name, available)| ((*name).to_owned(), *available)).collect();
        AgentRestrictions { tools, ..AgentRestrictions::default() }
    }

    #[test]
    fn the_last_match_decides_and_a_wildcard_names_no_tool() {
        let limited =
            restrictions(&[("*", false), ("read", true), ("mcp_*", true), ("mcp_b", false)]);
        let available: Vec<bool> = ["read", "bash", "mcp_a", "mcp_b", "reader"]
            .map(|name| windlass_permission::allows_tool(&limited.tools, name))
            .into();
        assert_eq!(available, [true, false, true, false, false]);
        assert!(
            windlass_permission::allows_tool(&[], "task") && !restrictions(&[]).names_tool("task")
        );
        assert!(!restrictions(&[("*", true)]).names_tool("task"), "a wildcard is not a name");
        assert!(restrictions(&[("task", true), ("*", false)]).names_tool("task"));
    }

    #[test]
    fn a_mode_is_lowered_and_never_raised() {
        let folder = tempfile::tempdir().unwrap();
        let rules = PermissionRules::parse(&json!("allow")).unwrap();
        for (mode, max_mode, expected) in [
            (PermissionMode::Full, Some(PermissionMode::Plan), PermissionMode::Plan),
            (PermissionMode::Ask, Some(PermissionMode::Full), PermissionMode::Ask),
            (PermissionMode::Plan, None, PermissionMode::Plan),
        ] {
            let runtime = ToolRuntime {
                registry: Registry::default(),
                hooks: Vec::new(),
                policy: Policy::new(rules.clone()).with_mode(mode),
                workspace: Workspace::open(folder.path()).unwrap(),
                limits: Default::default(),
            };
            let restrictions = AgentRestrictions { max_mode, ..AgentRestrictions::default() };
            let restricted = runtime.restricted_to(&restrictions);
            assert_eq!(restricted.policy.mode(), expected);
        }
    }
}
