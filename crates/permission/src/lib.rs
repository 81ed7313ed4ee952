//! The permission policy: takes rules and the accesses of a tool call, returns a [`Decision`].
//!
//! The crate is pure: it opens no files and asks no user. It keeps the invariant that a [`Grant`]
//! exists only if a rule or the user allowed it, because code outside this crate cannot construct
//! one. Start reading at [`Policy::decide`].

mod access_verdict;
mod command_path_access;
mod command_ruling;
mod command_safety;
mod dead_rules;
mod decision;
mod grant;
mod last_match_rules;
mod outside_paths;
mod path_lookup;
mod pattern_overlap;
mod protected_paths;
mod rules;
mod secret_files;
mod shared_approvals;
mod shell;

pub use command_path_access::{CommandPathAccess, PathRules};
pub use command_safety::{CommandVerdict, SimpleShellCommandVerdict};
pub use dead_rules::{DeadRule, PERMISSION_KEYS, RuleSurroundings};
pub use decision::{Decision, PendingDecision};
pub use grant::Grant;
pub use last_match_rules::{LastMatchRule, TranslatedRules, translate_last_match};
pub use path_lookup::{FolderListing, PathLookup};
pub use protected_paths::workspace_protection_reason as protected;
pub use rules::{PermissionLevel, PermissionRules, RuleError};
pub use secret_files::HOME_SECRET_PATHS;
pub use shared_approvals::SharedApprovals;
pub use shell::quote;

use access_verdict::{exposes_secrets, leaves_sandbox};
use command_ruling::CommandRuling;
use rules::{RuleSubject, WEBFETCH_KEY};
use std::path::Path;
use std::sync::Arc;
use windlass_protocol::{ApprovalKind, PermissionMode, ToolAccess};

/// The policy of a session: the user's rules, restricted by those of the repository and others,
/// plus mode and approvals.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    user_rules: Arc<PermissionRules>,
    restricting_rules: Vec<Arc<PermissionRules>>,
    /// The last components of the workspace's own path, see `protected_paths::root_tail`.
    root_tail: Arc<[String]>,
    mode: PermissionMode,
    /// The most permissive mode that `with_mode` may set.
    max_mode: Option<PermissionMode>,
    path_lookup: Option<Arc<dyn PathLookup>>,
    approvals: SharedApprovals,
    /// Names of tools that `without_tools` removed.
    removed_tools: Vec<String>,
    /// The lists of `with_tool_patterns`.
    tool_patterns: Vec<ToolPatterns>,
}

/// Tools by name, or by prefix and `*`, and whether they are available. The last match decides; a
/// tool without a match is available.
pub type ToolPatterns = Vec<(String, bool)>;

/// Returns true if the patterns make a tool available.
pub fn allows_tool(patterns: &[(String, bool)], tool: &str) -> bool {
    let is_match = |name: &str| match name.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == name,
    };
    let last = patterns.iter().rev().find(|(name, _)| is_match(name));
    last.is_none_or(|(_, available)| *available)
}

/// The state of the sandbox, as `PathLookup::sandbox_status` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxStatus {
    /// Commands run in the sandbox.
    Active,
    /// The user turned the sandbox off.
    Off,
    /// This machine has no sandbox. Every command requires approval then.
    #[default]
    Unavailable,
}

impl Policy {
    /// Creates a policy from the user's own rules.
    pub fn new(user_rules: PermissionRules) -> Policy {
        Policy { user_rules: Arc::new(user_rules), ..Policy::default() }
    }

    /// Replaces the user's own rules.
    #[must_use]
    pub fn with_user_rules(mut self, user_rules: PermissionRules) -> Policy {
        self.user_rules = Arc::new(user_rules);
        self
    }

    /// Sets the workspace root, so that in a workspace `~/.config` the path `git/config` is
    /// recognized as `.config/git/config`.
    #[must_use]
    pub fn with_root(mut self, workspace: &Path) -> Policy {
        self.root_tail = protected_paths::root_tail(workspace).into();
        self
    }

    /// Sets the mode, limited by `with_max_mode`.
    #[must_use]
    pub fn with_mode(mut self, mode: PermissionMode) -> Policy {
        self.mode = self.max_mode.map_or(mode, |max| mode.min(max));
        self
    }

    /// Limits the mode from now on. A later call can only lower the limit.
    #[must_use]
    pub fn with_max_mode(mut self, max_mode: PermissionMode) -> Policy {
        let max_mode = self.max_mode.map_or(max_mode, |current| current.min(max_mode));
        self.max_mode = Some(max_mode);
        self.mode = self.mode.min(max_mode);
        self
    }

    /// Removes tools by name. Other tools under the same permission key stay.
    #[must_use]
    pub fn without_tools(mut self, tools: impl IntoIterator<Item = String>) -> Policy {
        self.removed_tools.extend(tools);
        self
    }

    /// Removes the tools that a list of names and prefixes with `*` does not give. Unlike
    /// `without_tools`, it applies to tools that are registered later.
    #[must_use]
    pub fn with_tool_patterns(mut self, patterns: ToolPatterns) -> Policy {
        self.tool_patterns.push(patterns);
        self
    }

    /// Returns true if the tool was removed. A removed tool is neither offered nor run.
    pub fn is_removed(&self, tool: &str) -> bool {
        self.removed_tools.iter().any(|name| name == tool)
            || self.tool_patterns.iter().any(|patterns| !allows_tool(patterns, tool))
    }

    /// Returns the mode in which this policy decides.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Sets the `PathLookup` that resolves a command's paths. Without one, every command requires
    /// approval.
    #[must_use]
    pub fn with_path_lookup(mut self, path_lookup: Arc<dyn PathLookup>) -> Policy {
        self.path_lookup = Some(path_lookup);
        self
    }

    /// Adds the user's permanent approvals for this project. They answer requests that would ask,
    /// but override no deny and no restricting rule.
    #[must_use]
    pub fn with_approvals(mut self, approvals: impl Into<SharedApprovals>) -> Policy {
        self.approvals = approvals.into();
        self
    }

    /// Adds rules that can only make a `Decision` stricter, such as those of a repository.
    #[must_use]
    pub fn restricted_by(mut self, rules: PermissionRules) -> Policy {
        self.restricting_rules.push(Arc::new(rules));
        self
    }

    /// Adds rules of the user behind those of the user's config, such as those of an agent of the
    /// user's own. They open and restrict exactly what they would at the end of that config.
    #[must_use]
    pub fn with_later_user_rules(mut self, rules: PermissionRules) -> Policy {
        Arc::make_mut(&mut self.user_rules).append(rules);
        self
    }

    /// Decides about all accesses of a call at once: the strictest verdict wins. `spelled` contains
    /// the same accesses, in the same order, with paths as the caller wrote them. A rule may name
    /// either form, and either form may be the name of a secret file.
    pub fn decide(&self, mut accesses: Vec<ToolAccess>, spelled: &[ToolAccess]) -> Decision {
        let mut strictest = (PermissionLevel::Allow, String::new());
        let rulings: Vec<CommandRuling> =
            accesses.iter().filter_map(|a| self.command_ruling(a)).collect();
        let access_verdicts = accesses.iter().filter_map(|access| self.access_verdict(access));
        let is_resolved_secret = |index: usize| accesses.get(index).is_some_and(exposes_secrets);
        let spelled_verdicts = spelled.iter().enumerate().filter_map(|(index, access)| {
            let secret_verdict = || {
                (exposes_secrets(access) && !is_resolved_secret(index))
                    .then(|| self.secret_file_verdict(access))
            };
            // `command_ruling` evaluates commands by their text, not by path.
            let is_command =
                matches!(access, ToolAccess::RunCommand { .. } | ToolAccess::LeaveSandbox { .. });
            if is_command {
                return None;
            }
            self.spelled_outside_verdict(access)
                .or_else(|| self.rule_verdict(access))
                .or_else(secret_verdict)
        });
        // An edit reveals the old contents, so rules about `read` apply to it too.
        let read_verdicts = accesses.iter().chain(spelled).filter_map(|access| match access {
            ToolAccess::Edit { path } => {
                self.rule_verdict(&ToolAccess::Read { path: path.clone() })
            }
            ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => None,
        });
        let leave_verdict = accesses
            .iter()
            .find(|access| leaves_sandbox(access))
            .map(|it| self.leave_sandbox_verdict(it));
        let wants_network = rulings.iter().any(|ruling| ruling.wants_network);
        let network_verdict =
            wants_network.then(|| self.strictest_rule("network", &RuleSubject::new("*"))).flatten();
        let command_verdicts = rulings.iter().map(|ruling| (ruling.level, ruling.reason.clone()));
        let first = leave_verdict.iter().cloned().chain(command_verdicts);
        for verdict in first
            .chain(network_verdict)
            .chain(access_verdicts)
            .chain(spelled_verdicts)
            .chain(read_verdicts)
        {
            if verdict.0 > strictest.0 {
                strictest = verdict;
            }
        }
        let (level, mut reason) = strictest;
        let ask_ruling = rulings.iter().find(|ruling| ruling.level == PermissionLevel::Ask);
        if let (PermissionLevel::Ask, Some(_), Some(ruling)) = (level, &leave_verdict, ask_ruling) {
            reason = format!("{reason}; {}", ruling.reason);
        }
        let opens_network = rulings.iter().any(|ruling| ruling.opens_network);
        // No rule opens the network. Only an approval does, for one command, or the list of allowed
        // hosts.
        if opens_network || (wants_network && level == PermissionLevel::Ask) {
            accesses.push(ToolAccess::Connect { host: "*".to_owned() });
        }
        let approval_kind = match (&*rulings, &leave_verdict) {
            ([ruling], None) => ruling.approval_kind.clone(),
            ([], None) if level == PermissionLevel::Ask => {
                self.asks_only_about_edits(&accesses, spelled).then_some(ApprovalKind::Edits)
            }
            ([] | [_], _) | ([_, _, ..], _) => None,
        };
        let accepts_earlier_approval =
            leave_verdict.is_none() && rulings.iter().all(|ruling| ruling.accepts_earlier_approval);
        let is_read_only = !rulings.is_empty() && rulings.iter().all(|ruling| ruling.is_read_only);
        let policy = self.clone();
        match level {
            PermissionLevel::Allow if is_read_only => {
                Decision::Allowed(Grant::new(accesses, policy, level).into_read_only())
            }
            PermissionLevel::Allow => {
                let is_approved =
                    !rulings.is_empty() && rulings.iter().all(|ruling| ruling.is_approved);
                let satisfied_level = if is_approved { PermissionLevel::Ask } else { level };
                Decision::Allowed(Grant::new(accesses, policy, satisfied_level))
            }
            PermissionLevel::Ask => Decision::Ask(PendingDecision {
                danger: decision::request_danger(
                    &accesses,
                    rulings.iter().map(|ruling| ruling.danger),
                ),
                accesses,
                reason,
                approval_kind,
                accepts_earlier_approval,
                policy,
            }),
            PermissionLevel::Deny => Decision::Denied { reason },
        }
    }

    /// Like [`Policy::decide`], for a call that the user made. It asks about the same accesses, but
    /// what runs without a question counts as approved.
    pub fn decide_user_call(&self, accesses: Vec<ToolAccess>, spelled: &[ToolAccess]) -> Decision {
        match self.decide(accesses, spelled) {
            Decision::Allowed(grant) => Decision::Allowed(grant.into_approved()),
            other @ (Decision::Ask(_) | Decision::Denied { .. }) => other,
        }
    }

    /// Returns true if these rules alone allow all accesses in mode ask, so that only reads pass
    /// without a rule.
    pub fn allows_under(
        &self,
        rules: PermissionRules,
        accesses: &[ToolAccess],
        spelled: &[ToolAccess],
    ) -> bool {
        let policy = Policy {
            user_rules: Arc::new(rules),
            restricting_rules: Vec::new(),
            mode: PermissionMode::Ask,
            max_mode: None,
            approvals: SharedApprovals::default(),
            ..self.clone()
        };
        matches!(policy.decide(accesses.to_vec(), spelled), Decision::Allowed(_))
    }

    /// Returns the user's rules and the restricting rules.
    pub(crate) fn all_rules(&self) -> impl Iterator<Item = &Arc<PermissionRules>> {
        std::iter::once(&self.user_rules).chain(&self.restricting_rules)
    }

    /// Returns the level of an access that the user must approve. Mode full, which never asks,
    /// denies it.
    pub(crate) fn approval_level(&self) -> PermissionLevel {
        match self.mode {
            PermissionMode::Full => PermissionLevel::Deny,
            PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Auto => {
                PermissionLevel::Ask
            }
        }
    }

    /// Returns true if a single access needs no approval.
    pub(crate) fn allows(&self, access: &ToolAccess) -> bool {
        matches!(self.decide(vec![access.clone()], &[]), Decision::Allowed(_))
    }

    /// Returns the level of what a running program asks for. A key that no access has is decided by
    /// its rules alone.
    pub(crate) fn requested_level(&self, key: &str, subject: &str) -> PermissionLevel {
        let root = self.path_lookup.as_deref().and_then(|lookup| lookup.workspace_root().to_str());
        let inside = root.and_then(|root| subject.strip_prefix(root)?.strip_prefix('/'));
        let subject = inside.unwrap_or(subject);
        let path = if subject.is_empty() { "." } else { subject }.to_owned();
        let outside_level = |subject: &str| {
            let rule = self.strictest_rule(rules::OUTSIDE_KEY, &RuleSubject::new(subject));
            rule.map_or(self.approval_level(), |(level, _)| level)
        };
        let leaves_workspace =
            subject.starts_with('~') || subject.split('/').any(|part| part == "..");
        if key == rules::OUTSIDE_KEY {
            let level = outside_level(subject);
            // A pattern does not see where `..` leads.
            return if leaves_workspace { level.max(self.approval_level()) } else { level };
        }
        let access = match key {
            "read" => ToolAccess::Read { path },
            "list" | "glob" | "grep" => ToolAccess::Search { path },
            "edit" | "write" => ToolAccess::Edit { path },
            "bash" => ToolAccess::RunCommand { command: subject.to_owned(), folder: ".".into() },
            WEBFETCH_KEY => match plain_host(subject) {
                Some(host) => ToolAccess::Fetch { host },
                // Another program may read another host in it.
                None => {
                    let rule = self.strictest_rule(key, &RuleSubject::new(subject));
                    let level = rule.map_or(PermissionLevel::Allow, |(level, _)| level);
                    return level.max(self.approval_level());
                }
            },
            "skill" => ToolAccess::ReadSkill { name: subject.to_owned() },
            "task" => ToolAccess::Subagent { agent: subject.to_owned() },
            key => {
                if let Some((level, _)) = self.strictest_rule(key, &RuleSubject::new(subject)) {
                    return level;
                }
                ToolAccess::UseTool { tool: key.to_owned() }
            }
        };
        let is_file = matches!(
            access,
            ToolAccess::Read { .. } | ToolAccess::Search { .. } | ToolAccess::Edit { .. }
        );
        let level = match self.decide(vec![access], &[]) {
            Decision::Allowed(_) => PermissionLevel::Allow,
            Decision::Ask(_) => PermissionLevel::Ask,
            Decision::Denied { .. } => PermissionLevel::Deny,
        };
        match is_file && leaves_workspace {
            true => level.max(outside_level(subject)).max(self.approval_level()),
            false => level,
        }
    }

    /// Requires approval for accesses that would be allowed, because a hook demands it. An earlier
    /// approval does not answer the request. `PermissionMode::Full`, which never asks, denies it.
    pub fn ask_anyway(&self, accesses: Vec<ToolAccess>, reason: String) -> Decision {
        match self.mode {
            PermissionMode::Full => {
                Decision::Denied { reason: format!("{reason}; mode full never asks for approval") }
            }
            PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Auto => {
                Decision::Ask(PendingDecision {
                    danger: Default::default(),
                    accesses,
                    reason,
                    approval_kind: None,
                    accepts_earlier_approval: false,
                    policy: self.clone(),
                })
            }
        }
    }

    /// Returns true if the rules deny every call under this permission key or of the tool with this
    /// name. Such a tool is neither offered nor run.
    pub fn denies_outright(&self, key: &str) -> bool {
        self.all_rules().any(|rules| rules.denies_outright(key))
    }

    /// Returns the user's rules that match an access, as in the config. A command may match one for
    /// each of its parts.
    pub fn rule_for_access(&self, access: &ToolAccess) -> Option<String> {
        if let ToolAccess::RunCommand { command, folder } = access {
            let verdict = self.evaluate_command(command, folder)?;
            let mut rules: Vec<String> =
                verdict.segments.into_iter().filter_map(|segment| segment.rule).collect();
            rules.dedup();
            return (!rules.is_empty()).then(|| rules.join(", "));
        }
        let subject = RuleSubject::new(access.subject());
        let find = |key: &str| {
            self.user_rules.deciding_rule(key, &subject).map(|rule| rule.source_text.to_owned())
        };
        let is_outside = access.subject().starts_with('/');
        let outside = is_outside.then(|| find(rules::OUTSIDE_KEY)).flatten();
        outside.or_else(|| find(access.permission_key()))
    }

    /// Returns the reason to ask about every call of a tool: a rule with its name, which none of
    /// its accesses has as permission key, such as `"grep": "ask"`. A wildcard key does not count.
    pub fn tool_ask_reason(&self, tool: &str, accesses: &[ToolAccess]) -> Option<String> {
        let is_access_key = PERMISSION_KEYS.contains(&tool)
            || accesses.iter().any(|access| access.permission_key() == tool);
        let subject = RuleSubject::new("*");
        let mut deciding = self.all_rules().filter_map(|rules| rules.deciding_rule(tool, &subject));
        let asking = deciding.find(|rule| rule.names_key && rule.level == PermissionLevel::Ask);
        asking.filter(|_| !is_access_key).map(|rule| rule.describe("the"))
    }

    /// Returns the level that rules set for a key that is not an access, such as `doom_loop`, and a
    /// subject.
    pub fn level_for(&self, key: &str, subject: &str) -> Option<PermissionLevel> {
        self.strictest_rule(key, &RuleSubject::new(subject)).map(|(level, _)| level)
    }
}

/// Returns the host of an `http` URL or of a plain host name, without its port; `None` for anything
/// that programs could read in two ways.
fn plain_host(subject: &str) -> Option<String> {
    let rest = match subject.split_once("://") {
        Some(("http" | "https", rest)) => rest.split(['/', '?', '#']).next()?,
        Some(_) => return None,
        None => subject,
    };
    let host = match rest.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => rest,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*');
    (!host.is_empty() && host.chars().all(is_host_char)).then_some(host)
}

/// Parses any text as a command and checks the parser's invariants. For the fuzzer.
#[doc(hidden)]
pub fn check_shell_invariants(text: &str) -> bool {
    shell::invariants_hold(text)
}

/// Analyzes any text as a `sed`, `awk` and `jq` script, and checks that a script with a command
/// which runs a program is never proven harmless. For the fuzzer.
#[doc(hidden)]
pub fn check_script_invariants(text: &str) -> bool {
    command_safety::script_invariants_hold(text)
}

#[cfg(test)]
mod tests;
