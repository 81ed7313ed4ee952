//! Restrictions of an agent: they narrow a `ToolRuntime`. Only the rules of an agent of the user's
//! own can open something, in a session that the user starts.

use crate::ToolRuntime;
use crate::pipeline::resolve_call::INVALID_TOOL;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::PermissionMode;

/// Restrictions that an agent adds to those of the session that starts it.
#[derive(Clone, Debug, Default)]
pub struct AgentRestrictions {
    /// Rules that apply where they are stricter than those of the session
    /// (`Policy::restricted_by`).
    pub rules: Vec<PermissionRules>,
    /// True if the user wrote the rules. In a session that the user starts, they then follow the
    /// rules of the user's config, and what they allow needs no approval.
    pub are_user_rules: bool,
    /// Tool names, or prefixes that end in `*`, and whether the agent has them. The last match
    /// decides; a tool without a match is available.
    pub tools: Vec<(String, bool)>,
    /// The most permissive mode that the agent may use.
    pub max_mode: Option<PermissionMode>,
}

impl AgentRestrictions {
    /// Returns the policy of a session that the user starts with the agent.
    #[must_use]
    pub fn apply_to(&self, policy: Policy) -> Policy {
        let add_rules = match self.are_user_rules {
            true => Policy::with_later_user_rules,
            false => Policy::restricted_by,
        };
        self.limit(self.rules.iter().cloned().fold(policy, add_rules))
    }

    /// Returns the policy of a subagent: `policy` is that of its caller, and no rule of the agent
    /// opens more, because a model must not gain rights by delegating.
    #[must_use]
    pub fn apply_to_subagent(&self, policy: Policy) -> Policy {
        self.limit(self.rules.iter().cloned().fold(policy, Policy::restricted_by))
    }

    /// Applies `tools` and `max_mode`.
    fn limit(&self, mut policy: Policy) -> Policy {
        if !self.tools.is_empty() {
            // `INVALID_TOOL` stays, because a malformed call still needs an answer.
            let invalid = (INVALID_TOOL.to_owned(), true);
            policy =
                policy.with_tool_patterns(self.tools.iter().cloned().chain([invalid]).collect());
        }
        match self.max_mode {
            Some(max_mode) => policy.with_max_mode(max_mode),
            None => policy,
        }
    }

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
    /// Returns a runtime with the same tools, hooks and workspace under the rules of an agent, for
    /// a session that the user starts.
    #[must_use]
    pub fn restricted_to(&self, restrictions: &AgentRestrictions) -> ToolRuntime {
        self.with_policy(restrictions.apply_to(self.policy.clone()))
    }

    /// Returns the runtime of a subagent of a session with this one: never more permissive, and
    /// without the tools that are not `Tool::is_for_subagents`, unless `restrictions` gives them by
    /// name. The user's own agents can get the tools in `excluded`, names or prefixes that end in
    /// `*`, in the same way.
    #[must_use]
    pub fn restricted_to_subagent(
        &self,
        restrictions: &AgentRestrictions,
        excluded: &[String],
    ) -> ToolRuntime {
        let not_for_subagents = self.registry.names_not_for_subagents().into_iter();
        let removed =
            not_for_subagents.filter(|tool| tool != INVALID_TOOL && !restrictions.names_tool(tool));
        let mut policy = self.policy.clone().without_tools(removed);
        if !excluded.is_empty() {
            let named = restrictions.tools.iter().filter(|(tool, available)| {
                restrictions.are_user_rules && *available && !tool.ends_with('*')
            });
            let excluded = excluded.iter().map(|tool| (tool.clone(), false));
            let kept = named.cloned().chain([(INVALID_TOOL.to_owned(), true)]);
            policy = policy.with_tool_patterns(excluded.chain(kept).collect());
        }
        self.with_policy(restrictions.apply_to_subagent(policy))
    }

    fn with_policy(&self, policy: Policy) -> ToolRuntime {
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
    use windlass_protocol::ToolAccess;
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

    /// Returns the levels of an edit and two commands under a policy.
    fn levels(policy: &Policy) -> [&'static str; 3] {
        let edit = ToolAccess::Edit { path: "src/a.rs".to_owned() };
        let mcp = |tool: &str| ToolAccess::UseTool { tool: tool.to_owned() };
        [edit, mcp("deploy"), mcp("query")].map(|access| match policy.decide(vec![access], &[]) {
            windlass_permission::Decision::Allowed(_) => "allow",
            windlass_permission::Decision::Ask(_) => "ask",
            windlass_permission::Decision::Denied { .. } => "deny",
        })
    }

    #[test]
    fn only_rules_of_the_user_open_something_and_only_for_the_user() {
        let parse = |value| PermissionRules::parse(&value).unwrap();
        let config = Policy::new(parse(json!({"edit": "ask", "deploy": "deny"})));
        let rules = vec![parse(json!({"edit": "allow", "deploy": "allow", "query": "allow"}))];
        let foreign = AgentRestrictions { rules, ..AgentRestrictions::default() };
        let own = AgentRestrictions { are_user_rules: true, ..foreign.clone() };
        assert_eq!(levels(&config), ["ask", "deny", "ask"]);
        assert_eq!(levels(&own.apply_to(config.clone())), ["allow", "deny", "allow"]);
        assert_eq!(levels(&foreign.apply_to(config.clone())), ["ask", "deny", "ask"]);
        assert_eq!(levels(&own.apply_to_subagent(config.clone())), ["ask", "deny", "ask"]);
        // A rule of a project or a managed policy still holds, and so does the mode.
        let project = config.clone().restricted_by(parse(json!({"edit": "ask", "query": "deny"})));
        assert_eq!(levels(&own.apply_to(project)), ["ask", "deny", "deny"]);
        let plan = config.clone().with_mode(PermissionMode::Plan);
        assert_eq!(levels(&own.apply_to(plan))[0], "deny");
        // A subagent has what its caller has, within its own rules.
        let caller = own.apply_to(config);
        assert_eq!(levels(&foreign.apply_to_subagent(caller.clone())), levels(&caller));
        let strict = vec![parse(json!({"edit": "ask", "query": "deny"}))];
        let strict = AgentRestrictions { rules: strict, ..AgentRestrictions::default() };
        let subagent = strict.apply_to_subagent(caller);
        assert_eq!(levels(&subagent), ["ask", "deny", "deny"]);
        assert_eq!(levels(&own.apply_to_subagent(subagent)), ["ask", "deny", "deny"]);
    }

    #[test]
    fn excluded_tools_are_for_subagents_that_the_user_gave_them() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::default(),
            workspace: Workspace::open(folder.path()).unwrap(),
            limits: Default::default(),
        };
        let excluded = ["bash".to_owned(), "github_*".to_owned()];
        let removed = |restrictions: &AgentRestrictions| {
            let policy = runtime.restricted_to_subagent(restrictions, &excluded).policy;
            ["bash", "github_merge", "read", INVALID_TOOL].map(|tool| policy.is_removed(tool))
        };
        let foreign = restrictions(&[("*", true), ("bash", true)]);
        assert_eq!(removed(&foreign), [true, true, false, false], "a project cannot lift it");
        let own = AgentRestrictions { are_user_rules: true, ..foreign };
        assert_eq!(removed(&own), [false, true, false, false]);
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
