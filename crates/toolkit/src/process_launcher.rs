//! The only way to start a long-running process.
//!
//! Servers, custom tools and hooks are not started by a tool call, so no call's grant covers them.
//! `ProcessLauncher` checks the permission rules instead, once per start; no other code can make
//! the grant that `sandbox` requires. A rule that says ask counts as a denial, because no user can
//! be asked here. Start reading at [`ProcessLauncher::launch`].

use crate::call_failure::CallFailure;
use windlass_permission::{Decision, Policy};
use windlass_protocol::PermissionMode;
use windlass_sandbox::{ProcessIo, ProcessSpec, Workspace};

/// Starts long-running processes if the permission rules of a workspace allow it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ProcessLauncher {
    workspace: Workspace,
    policy: Policy,
}

impl ProcessLauncher {
    /// Creates the launcher of a workspace, with the rules and mode of `policy`.
    pub fn new(workspace: &Workspace, policy: &Policy) -> ProcessLauncher {
        ProcessLauncher { workspace: workspace.clone(), policy: policy.clone() }
    }

    /// Returns the same launcher in another mode, as far as the rules permit it. In `PermissionMode::Plan` no
    /// process can change anything.
    #[must_use]
    pub fn in_mode(&self, mode: PermissionMode) -> ProcessLauncher {
        let policy = self.policy.clone().with_mode(mode);
        ProcessLauncher { workspace: self.workspace.clone(), policy }
    }

    /// Returns the mode in which processes start.
    pub fn mode(&self) -> PermissionMode {
        self.policy.mode()
    }

    /// Returns the workspace in which processes start.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Starts a process unless a rule of the `Policy` forbids it.
    pub async fn launch(&self, process: ProcessSpec) -> Result<ProcessIo, CallFailure> {
        let (access, name) = (process.required_access(), process.name.clone());
        let grant = match self.policy.decide(vec![access.clone()], &[access]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(pending) => {
                let rule = serde_json::json!({"process": {name.as_str(): "allow"}});
                return Err(CallFailure::new(format!(
                    "{name} was not started: {}, and a process that no call starts cannot ask \
                     for approval. The user can allow it in the permission rules of their own \
                     config: {rule}",
                    pending.reason()
                )));
            }
            Decision::Denied { reason } => {
                return Err(CallFailure::new(format!("{name} was not started: {reason}")));
            }
        };
        Ok(self.workspace.start_process(&grant, process).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_permission::PermissionRules;
    use windlass_sandbox::{HostAllowlist, ProcessSandboxAccess, WorkspaceAccess};

    fn launcher(rules: serde_json::Value, restrictions: serde_json::Value) -> ProcessLauncher {
        let workspace = Workspace::open(&std::env::temp_dir()).unwrap();
        let policy = Policy::new(PermissionRules::parse(&rules).unwrap());
        ProcessLauncher::new(
            &workspace,
            &policy.restricted_by(PermissionRules::parse(&restrictions).unwrap()),
        )
    }

    fn process(name: &str) -> ProcessSpec {
        let sandbox_access = ProcessSandboxAccess {
            workspace: WorkspaceAccess::Write,
            writable_folders: Vec::new(),
            hosts: HostAllowlist::none(),
            sandbox_mode: None,
        };
        ProcessSpec {
            name: name.to_owned(),
            program: "/bin/true".into(),
            arguments: Vec::new(),
            folder: "/".into(),
            env: Vec::new(),
            sandbox_access,
        }
    }

    async fn launch_error(launcher: &ProcessLauncher, name: &str) -> String {
        launcher.launch(process(name)).await.unwrap_err().text
    }

    /// The error of the sandbox after the launcher granted a start: no process can be started in
    /// such a workspace.
    const PERMITTED_ERROR: &str = "processes cannot be started here";

    #[tokio::test]
    async fn a_process_without_a_rule_is_started_in_every_mode() {
        let launcher = launcher(serde_json::json!({}), serde_json::json!({}));
        for mode in
            [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto, PermissionMode::Full]
        {
            let launcher = launcher.in_mode(mode);
            assert_eq!(launcher.mode(), mode);
            assert!(launch_error(&launcher, "mcp/git").await.contains(PERMITTED_ERROR), "{mode}");
        }
    }

    #[tokio::test]
    async fn a_rule_denies_by_name_and_ask_counts_as_denial() {
        let rules = serde_json::json!({"process": {
            "mcp/other": "deny", "tool/*": "ask", "tool/known": "allow",
        }});
        let launcher = launcher(rules, serde_json::json!({"process": {"hook/*": "deny"}}));
        for mode in
            [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto, PermissionMode::Full]
        {
            let launcher = launcher.in_mode(mode);
            for known in ["mcp/git", "tool/known"] {
                assert!(
                    launch_error(&launcher, known).await.contains(PERMITTED_ERROR),
                    "{mode}: {known}"
                );
            }
            for refused in ["mcp/other", "hook/guard"] {
                let text = launch_error(&launcher, refused).await;
                assert!(text.starts_with(&format!("{refused} was not started: ")), "{text}");
                assert!(!text.contains(PERMITTED_ERROR), "{mode}: {text}");
            }
            let text = launch_error(&launcher, "tool/weather").await;
            assert!(text.contains("cannot ask for approval"), "{mode}: {text}");
            assert!(text.contains(r#"{"process":{"tool/weather":"allow"}}"#), "{text}");
        }
    }

    #[test]
    fn in_mode_does_not_exceed_the_maximum_mode() {
        let workspace = Workspace::open(&std::env::temp_dir()).unwrap();
        let policy = Policy::default().with_max_mode(PermissionMode::Plan);
        assert_eq!(
            ProcessLauncher::new(&workspace, &policy).in_mode(PermissionMode::Full).mode(),
            PermissionMode::Plan
        );
    }
}
