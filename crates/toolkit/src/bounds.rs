//! Bounds of an agent: how a runtime becomes narrower. There is no way to make one wider.

use crate::Runtime;
use crate::meaning::INVALID;
use windlass_permission::Rules;
use windlass_protocol::Mode;

/// What an agent may do of what whoever puts it to work may do.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Rules that are heard where they are stricter.
    pub rules: Vec<Rules>,
    /// Tools by name, or `*` for all, and whether it has them. The last one that fits decides; a
    /// tool that none fits it has.
    pub tools: Vec<(String, bool)>,
    /// The laxest mode it works in.
    pub ceiling: Option<Mode>,
}

impl Bounds {
    /// True if it was given a tool by its very name.
    fn gives(&self, tool: &str) -> bool {
        self.tools.iter().rev().find(|(name, _)| name == tool).is_some_and(|(_, has)| *has)
    }

    fn has(&self, tool: &str) -> bool {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == name,
        };
        self.tools.iter().rev().find(|(name, _)| fits(name)).is_none_or(|(_, has)| *has)
    }
}

impl Runtime {
    /// The same tools, hooks and folder under stricter rules. `without` names tools that are not
    /// there unless the bounds give them by name.
    #[must_use]
    pub fn narrowed(&self, bounds: &Bounds, without: &[&str]) -> Runtime {
        let absent = |tool: &str| without.contains(&tool) && !bounds.gives(tool);
        let tools = self.registry.ids().into_iter();
        // A call that makes no sense still has to be answered.
        let missing = tools.filter(|tool| tool != INVALID && (absent(tool) || !bounds.has(tool)));
        let mut policy = self.policy.clone().without(missing);
        for rules in &bounds.rules {
            policy = policy.tightened_by(rules.clone());
        }
        if let Some(ceiling) = bounds.ceiling {
            policy = policy.at_most(ceiling);
        }
        Runtime {
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

    fn bounds(tools: &[(&str, bool)]) -> Bounds {
        let tools = tools.iter().map(|(name, has)| ((*name).to_owned(), *has)).collect();
        Bounds { tools, ..Bounds::default() }
    }

    #[test]
    fn the_last_that_fits_decides_and_only_a_name_gives() {
        let some = bounds(&[("*", false), ("read", true), ("mcp_*", true), ("mcp_b", false)]);
        let has: Vec<bool> =
            ["read", "bash", "mcp_a", "mcp_b", "reader"].map(|it| some.has(it)).into();
        assert_eq!(has, [true, false, true, false, false]);
        assert!(bounds(&[]).has("task") && !bounds(&[]).gives("task"));
        assert!(!bounds(&[("*", true)]).gives("task"), "a wildcard does not mean it");
        assert!(bounds(&[("task", true), ("*", false)]).gives("task"));
    }

    #[test]
    fn a_mode_is_lowered_and_never_raised() {
        let folder = tempfile::tempdir().unwrap();
        let rules = Rules::parse(&json!("allow")).unwrap();
        for (own, ceiling, expected) in [
            (Mode::Full, Some(Mode::Plan), Mode::Plan),
            (Mode::Ask, Some(Mode::Full), Mode::Ask),
            (Mode::Plan, None, Mode::Plan),
        ] {
            let runtime = Runtime {
                registry: Registry::default(),
                hooks: Vec::new(),
                policy: Policy::new(rules.clone()).in_mode(own),
                workspace: Workspace::at(folder.path()).unwrap(),
                limits: Default::default(),
            };
            let narrowed = runtime.narrowed(&Bounds { ceiling, ..Bounds::default() }, &[]);
            assert_eq!(narrowed.policy.mode(), expected);
        }
    }
}
