//! The accesses that a tool call requests, for permission rules to judge and for the user to read.

use crate::display_text::{is_plain_name, to_one_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest name in the description of what an approval covers.
const MAX_SCOPE_NAME_CHARS: usize = 40;

/// One access that a tool call requests. A tool declares its accesses, permission rules decide on
/// them, and the sandbox opens exactly these.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "access", rename_all = "snake_case")]
pub enum ToolAccess {
    /// Reads a file or lists a folder.
    Read {
        /// Path relative to the workspace, with `/` as separator.
        path: String,
    },
    /// Searches one file, or a folder and everything below it.
    Search {
        /// Path relative to the workspace, with `/` as separator.
        path: String,
    },
    /// Creates, changes or removes a file.
    Edit {
        /// Path relative to the workspace, with `/` as separator.
        path: String,
    },
    /// Reads a stored output.
    ReadBlob {
        /// `blob:` followed by the name of the blob.
        blob: String,
    },
    /// Reads a skill.
    ReadSkill {
        /// Name of the skill.
        name: String,
    },
    /// Runs a shell command in the sandbox.
    RunCommand {
        /// The command in shell syntax.
        command: String,
        /// Working folder of the command, relative to the workspace.
        folder: String,
    },
    /// Lets a command connect to a host that its sandbox does not open by default.
    Connect {
        /// Host name, or `*` for any host on the public network.
        host: String,
    },
    /// Fetches a resource from a web host.
    Fetch {
        /// Host name in lower case, with its port unless that is 80 or 443.
        host: String,
    },
    /// Runs a command outside the sandbox. Only the user can approve this, one command at a time.
    LeaveSandbox {
        /// The command in shell syntax.
        command: String,
    },
    /// Starts a subagent in its own session. Permission rules judge each call of the subagent
    /// there.
    Subagent {
        /// Name of the agent.
        agent: String,
    },
    /// Uses a tool that cannot declare its accesses more precisely.
    UseTool {
        /// Name of the tool, which is also its permission key.
        tool: String,
    },
    /// Starts a long-running process that answers calls: a server, a custom tool or a hook.
    StartProcess {
        /// Kind and name of the process: `mcp/git`, `tool/weather`, `hook/guard`.
        process: String,
        /// Command line to start, shown to the user.
        command: String,
    },
    /// Calls a tool whose definition differs from the one that the user reviewed.
    AcceptDefinition {
        /// Name of the tool, `@`, and the first digits of the digest of its definition.
        definition: String,
    },
}

impl ToolAccess {
    /// Returns the permission key in config that governs this access.
    pub fn permission_key(&self) -> &str {
        match self {
            ToolAccess::Read { .. } | ToolAccess::Search { .. } | ToolAccess::ReadBlob { .. } => {
                "read"
            }
            ToolAccess::ReadSkill { .. } => "skill",
            ToolAccess::Edit { .. } => "edit",
            ToolAccess::RunCommand { .. } => "bash",
            ToolAccess::Connect { .. } => "network",
            ToolAccess::Fetch { .. } => "webfetch",
            ToolAccess::LeaveSandbox { .. } => "sandbox",
            ToolAccess::Subagent { .. } => "task",
            ToolAccess::UseTool { tool } => tool,
            ToolAccess::StartProcess { .. } => "process",
            ToolAccess::AcceptDefinition { .. } => "tool_definition",
        }
    }

    /// Returns the text that the patterns under `permission_key` match against.
    pub fn subject(&self) -> &str {
        match self {
            ToolAccess::Read { path } | ToolAccess::Search { path } | ToolAccess::Edit { path } => {
                path
            }
            ToolAccess::ReadBlob { blob } => blob,
            ToolAccess::ReadSkill { name } => name,
            ToolAccess::RunCommand { command, .. } | ToolAccess::LeaveSandbox { command } => {
                command
            }
            ToolAccess::Connect { host } | ToolAccess::Fetch { host } => host,
            ToolAccess::Subagent { agent } => agent,
            ToolAccess::UseTool { .. } => "*",
            ToolAccess::StartProcess { process, .. } => process,
            ToolAccess::AcceptDefinition { definition } => definition,
        }
    }

    /// Returns true if repeating or skipping the access changes nothing. A repeated `Subagent`
    /// access continues the same session.
    pub fn is_read_only(&self) -> bool {
        match self {
            ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::Subagent { .. } => true,
            ToolAccess::Edit { .. }
            | ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => false,
        }
    }

    /// Describes the access in the words that every front end uses: one line that completes the
    /// phrase "it wants to".
    pub fn describe(&self) -> String {
        to_one_line(&match self {
            ToolAccess::LeaveSandbox { .. } => "run outside the sandbox".to_owned(),
            ToolAccess::RunCommand { command, folder } if is_workspace_root(folder) => {
                format!("run {command}")
            }
            ToolAccess::RunCommand { command, folder } => format!("run in {folder}: {command}"),
            ToolAccess::StartProcess { process, command } => {
                format!("start {process}: {command}")
            }
            ToolAccess::AcceptDefinition { definition } => {
                format!("accept the new definition of {definition}")
            }
            ToolAccess::Edit { path } => format!("edit {path}"),
            ToolAccess::Connect { host } if host == "*" => "access the network".to_owned(),
            ToolAccess::Connect { host } => format!("connect to {host}"),
            ToolAccess::Fetch { host } => format!("fetch from {host}"),
            ToolAccess::UseTool { tool } => format!("use the tool {tool}"),
            ToolAccess::Subagent { agent } => format!("start the subagent {agent}"),
            ToolAccess::Read { path } => format!("read {path}"),
            ToolAccess::Search { path } => format!("search {path}"),
            ToolAccess::ReadBlob { blob } => format!("read the stored output {blob}"),
            ToolAccess::ReadSkill { name } => format!("read the skill {name}"),
        })
    }

    /// Returns the title of a permission request for `accesses`, entirely in Windlass's own words.
    /// It includes a name chosen by the model only if `is_plain_name` accepts it, so that the name
    /// cannot be mistaken for anything else.
    pub fn headline(accesses: &[ToolAccess]) -> String {
        let Some(first) = accesses.iter().min_by_key(|access| access.display_rank()) else {
            return "Continue".to_owned();
        };
        let count =
            accesses.iter().filter(|access| access.display_rank() == first.display_rank()).count();
        let counted = |singular: &str, verb: &str, plural: &str| match count {
            1 => singular.to_owned(),
            _ => format!("{verb} {count} {plural}"),
        };
        let named = |verb: &str, [prefix, singular, plural]: [&str; 3], name: &str| match count {
            1 if is_plain_name(name) => format!("{verb} {prefix}{name}"),
            1 => format!("{verb} {singular}"),
            _ => format!("{verb} {count} {plural}"),
        };
        let host = ["", "a host", "hosts"];
        match first {
            ToolAccess::LeaveSandbox { .. } => "Run outside the sandbox".to_owned(),
            ToolAccess::RunCommand { .. } => counted("Run a command", "Run", "commands"),
            ToolAccess::StartProcess { .. } => "Start a background process".to_owned(),
            ToolAccess::AcceptDefinition { .. } => "Accept a changed tool definition".to_owned(),
            ToolAccess::Edit { .. } => counted("Edit a file", "Edit", "files"),
            ToolAccess::Connect { host } if host == "*" => "Access the network".to_owned(),
            ToolAccess::Connect { host: name } => named("Connect to", host, name),
            ToolAccess::Fetch { host: name } => named("Fetch from", host, name),
            ToolAccess::UseTool { tool } => named("Use", ["the tool ", "a tool", "tools"], tool),
            ToolAccess::Subagent { agent } => {
                named("Start", ["the subagent ", "a subagent", "subagents"], agent)
            }
            ToolAccess::Read { .. } => counted("Read a file", "Read", "files"),
            ToolAccess::Search { .. } => counted("Search a folder", "Search", "folders"),
            ToolAccess::ReadBlob { .. } => "Read a stored output".to_owned(),
            ToolAccess::ReadSkill { name } => {
                named("Read", ["the skill ", "a skill", "skills"], name)
            }
        }
    }

    /// Describes what an approval of `accesses` for the session or the project covers: ``edits to
    /// `a.py` ``. A name of the model's choice is part of it only if it can imitate nothing.
    pub fn lasting_scope(accesses: &[ToolAccess]) -> String {
        // The network is approved together with its command.
        let is_main = |access: &&ToolAccess| !matches!(access, ToolAccess::Connect { .. });
        let main: Vec<&ToolAccess> = accesses.iter().filter(is_main).collect();
        let is_plain = |text: &str| {
            let is_plain_char = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
            text.chars().count() <= MAX_SCOPE_NAME_CHARS && text.chars().all(is_plain_char)
        };
        let named = |verb: &str, name: &str, unnamed: &str| match is_plain(name) {
            true => format!("{verb} `{name}`"),
            false => unnamed.to_owned(),
        };
        match main.as_slice() {
            [ToolAccess::RunCommand { .. }] if accesses.len() > 1 => {
                "exactly this command with network access".to_owned()
            }
            [ToolAccess::RunCommand { .. }] => "exactly this command".to_owned(),
            [ToolAccess::Edit { path }] => named("edits to", path, "edits to this file"),
            [ToolAccess::Read { path }] => named("reading", path, "reading this file"),
            [ToolAccess::Search { path }] => named("searching", path, "searching this folder"),
            [ToolAccess::Fetch { host }] => named("fetching from", host, "fetching from this host"),
            [ToolAccess::UseTool { tool }] => named("the tool", tool, "this tool"),
            [ToolAccess::Subagent { agent }] => named("the subagent", agent, "this subagent"),
            [ToolAccess::ReadSkill { name }] => named("the skill", name, "this skill"),
            edits if edits.iter().all(|access| matches!(access, ToolAccess::Edit { .. })) => {
                format!("edits to these {} files", edits.len())
            }
            _ => "all of this".to_owned(),
        }
    }

    /// Returns the rank of the access in a permission request. The lowest rank is the most
    /// important to the user.
    fn display_rank(&self) -> u8 {
        match self {
            ToolAccess::LeaveSandbox { .. } => 0,
            ToolAccess::RunCommand { .. } => 1,
            ToolAccess::StartProcess { .. } => 2,
            ToolAccess::AcceptDefinition { .. } => 3,
            ToolAccess::Edit { .. } => 4,
            ToolAccess::Connect { .. } => 5,
            ToolAccess::Fetch { .. } => 6,
            ToolAccess::UseTool { .. } => 7,
            ToolAccess::Subagent { .. } => 8,
            ToolAccess::Read { .. } => 9,
            ToolAccess::Search { .. } => 10,
            ToolAccess::ReadBlob { .. } => 11,
            ToolAccess::ReadSkill { .. } => 12,
        }
    }
}

/// Returns true if `folder` is the root of the workspace.
pub fn is_workspace_root(folder: &str) -> bool {
    matches!(folder, "" | ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str) -> ToolAccess {
        ToolAccess::Edit { path: path.into() }
    }

    fn run(folder: &str) -> ToolAccess {
        ToolAccess::RunCommand { command: "a\nb".into(), folder: folder.into() }
    }

    #[test]
    fn a_description_is_one_line() {
        assert_eq!(run(".").describe(), "run a⏎b");
        assert_eq!(run("x\ny").describe(), "run in x⏎y: a⏎b");
        assert_eq!(edit("a\r\nb").describe(), "edit a⏎b");
        assert_eq!(ToolAccess::Connect { host: "*".into() }.describe(), "access the network");
    }

    #[test]
    fn the_headline_counts_the_most_important_accesses() {
        let leave = ToolAccess::LeaveSandbox { command: "a".into() };
        let headline = ToolAccess::headline;
        assert_eq!(headline(&[edit("a"), run("."), leave]), "Run outside the sandbox");
        assert_eq!(headline(&[edit("a"), run("."), edit("b")]), "Run a command");
        assert_eq!(headline(&[edit("a"), edit("b")]), "Edit 2 files");
        assert_eq!(headline(&[]), "Continue");
        let fetch = |host: &str| ToolAccess::Fetch { host: host.into() };
        assert_eq!(headline(&[fetch("docs.rs")]), "Fetch from docs.rs");
        assert_eq!(headline(&[fetch("docs.rs ── yes")]), "Fetch from a host");
        assert_eq!(headline(&[fetch("docs.rs"), fetch("a.example")]), "Fetch from 2 hosts");
    }
}
