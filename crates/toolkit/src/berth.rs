//! The berth: the only way to a program that is kept running.
//!
//! Servers, custom tools and hooks are started by no call, so no call's grant covers them. Here the
//! rules are asked instead, once a start; nobody else can make the grant that `sandbox` wants to
//! see. Where a rule says ask, nobody is there to be asked, and it is a no. Start reading at
//! [`Berth::engage`].

use crate::Failure;
use windlass_permission::{Decision, Policy};
use windlass_protocol::Mode;
use windlass_sandbox::{Engaged, Servant, Workspace};

/// Where servants are engaged, as the rules of a workspace allow. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Berth {
    workspace: Workspace,
    policy: Policy,
}

impl Berth {
    /// The berth of a workspace, under these rules and in their mode.
    pub fn new(workspace: &Workspace, policy: &Policy) -> Berth {
        Berth { workspace: workspace.clone(), policy: policy.clone() }
    }

    /// The same in another mode, as far as the rules let it be one. In mode plan no servant changes
    /// anything.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Berth {
        let policy = self.policy.clone().in_mode(mode);
        Berth { workspace: self.workspace.clone(), policy }
    }

    /// The mode its servants are engaged in.
    pub fn mode(&self) -> Mode {
        self.policy.mode()
    }

    /// Where its servants work.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Starts a servant, if no rule is against it.
    pub async fn engage(&self, servant: Servant) -> Result<Engaged, Failure> {
        let (access, name) = (servant.access(), servant.name.clone());
        let grant = match self.policy.decide(vec![access.clone()], &[access]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(question) => {
                let rule = serde_json::json!({"servant": {name.as_str(): "allow"}});
                return Err(Failure::new(format!(
                    "{name} was not started: {}, and nobody can be asked about what no call \
                     starts. The person can allow it in the permission rules of their own config: \
                     {rule}",
                    question.reason()
                )));
            }
            Decision::Denied { reason } => {
                return Err(Failure::new(format!("{name} was not started: {reason}")));
            }
        };
        Ok(self.workspace.engage(&grant, servant).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_permission::Rules;
    use windlass_sandbox::{Hold, Hosts, Keep};

    fn berth(rules: serde_json::Value, tighter: serde_json::Value) -> Berth {
        let workspace = Workspace::at(&std::env::temp_dir()).unwrap();
        let policy = Policy::new(Rules::parse(&rules).unwrap());
        Berth::new(&workspace, &policy.tightened_by(Rules::parse(&tighter).unwrap()))
    }

    fn servant(name: &str) -> Servant {
        let keep =
            Keep { workspace: Hold::Write, write: Vec::new(), network: Hosts::none(), walls: None };
        Servant {
            name: name.to_owned(),
            program: "/bin/true".into(),
            arguments: Vec::new(),
            folder: "/".into(),
            env: Vec::new(),
            keep,
        }
    }

    async fn words(berth: &Berth, name: &str) -> String {
        berth.engage(servant(name)).await.unwrap_err().text
    }

    /// What the sandbox says to whoever comes with a grant, as nothing is run in such a workspace.
    const ADMITTED: &str = "programs are not run here";

    #[tokio::test]
    async fn what_no_rule_speaks_of_is_started_in_every_mode() {
        let berth = berth(serde_json::json!({}), serde_json::json!({}));
        for mode in [Mode::Plan, Mode::Ask, Mode::Auto, Mode::Full] {
            let berth = berth.in_mode(mode);
            assert_eq!(berth.mode(), mode);
            assert!(words(&berth, "mcp/git").await.contains(ADMITTED), "{mode}");
        }
    }

    #[tokio::test]
    async fn a_rule_refuses_by_name_and_one_that_asks_is_a_no() {
        let own = serde_json::json!({"servant": {
            "mcp/other": "deny", "tool/*": "ask", "tool/known": "allow",
        }});
        let berth = berth(own, serde_json::json!({"servant": {"hook/*": "deny"}}));
        for mode in [Mode::Plan, Mode::Ask, Mode::Auto, Mode::Full] {
            let berth = berth.in_mode(mode);
            for known in ["mcp/git", "tool/known"] {
                assert!(words(&berth, known).await.contains(ADMITTED), "{mode}: {known}");
            }
            for refused in ["mcp/other", "hook/guard"] {
                let text = words(&berth, refused).await;
                assert!(text.starts_with(&format!("{refused} was not started: ")), "{text}");
                assert!(!text.contains(ADMITTED), "{mode}: {text}");
            }
            let text = words(&berth, "tool/weather").await;
            assert!(text.contains("nobody can be asked"), "{mode}: {text}");
            assert!(text.contains(r#"{"servant":{"tool/weather":"allow"}}"#), "{text}");
        }
    }

    #[test]
    fn no_mode_is_laxer_than_the_rules_let_it_be() {
        let workspace = Workspace::at(&std::env::temp_dir()).unwrap();
        let policy = Policy::default().at_most(Mode::Plan);
        assert_eq!(Berth::new(&workspace, &policy).in_mode(Mode::Full).mode(), Mode::Plan);
    }
}
