//! What a call would touch, for rules to judge and for a person to read.

use crate::text::{one_line, plain};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing a call would touch. A tool declares these; permission decides on them; the sandbox
/// opens exactly these.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "access", rename_all = "snake_case")]
pub enum Access {
    /// Reads a file or lists a folder.
    Read {
        /// Relative to the workspace, `/` between parts.
        path: String,
    },
    /// Looks through a folder and everything beneath it, or through one file.
    Search {
        /// Relative to the workspace, `/` between parts.
        path: String,
    },
    /// Creates, changes or removes a file.
    Edit {
        /// Relative to the workspace, `/` between parts.
        path: String,
    },
    /// Reads an output that was kept.
    Recall {
        /// `blob:` and its name.
        blob: String,
    },
    /// Reads a skill.
    Skill {
        /// Its name.
        name: String,
    },
    /// Runs a command, in the sandbox.
    Run {
        /// As a shell reads it.
        command: String,
        /// Where, relative to the workspace.
        folder: String,
    },
    /// Lets a command reach a host that its sandbox does not open anyway.
    Connect {
        /// The host; `*` for any on the public network.
        host: String,
    },
    /// Fetches something from a host of the web.
    Fetch {
        /// The host: lower case, with its port unless that is 80 or 443.
        host: String,
    },
    /// Runs a command outside of the sandbox. Only a person opens this, one command at a time.
    Leave {
        /// As a shell reads it.
        command: String,
    },
    /// Has an agent work in a session of its own. What it does there is judged there, call by call.
    Task {
        /// The agent.
        agent: String,
    },
    /// Uses a tool that cannot say more precisely what it touches.
    Use {
        /// The tool's name, which is also its permission key.
        tool: String,
    },
    /// Keeps a program running that answers calls: a server, a custom tool, a hook.
    Engage {
        /// What it is and its name: `mcp/git`, `tool/weather`, `hook/guard`.
        servant: String,
        /// What is started, for a person to read.
        command: String,
    },
    /// Calls a tool whose definition is not the one that was looked at.
    Accept {
        /// The tool, `@`, and the beginning of its definition's digest.
        what: String,
    },
}

impl Access {
    /// The permission key this falls under in config.
    pub fn key(&self) -> &str {
        match self {
            Access::Read { .. } | Access::Search { .. } | Access::Recall { .. } => "read",
            Access::Skill { .. } => "skill",
            Access::Edit { .. } => "edit",
            Access::Run { .. } => "bash",
            Access::Connect { .. } => "network",
            Access::Fetch { .. } => "webfetch",
            Access::Leave { .. } => "sandbox",
            Access::Task { .. } => "task",
            Access::Use { tool } => tool,
            Access::Engage { .. } => "servant",
            Access::Accept { .. } => "definition",
        }
    }

    /// What the patterns of that key are matched against.
    pub fn subject(&self) -> &str {
        match self {
            Access::Read { path } | Access::Search { path } | Access::Edit { path } => path,
            Access::Recall { blob } => blob,
            Access::Skill { name } => name,
            Access::Run { command, .. } | Access::Leave { command } => command,
            Access::Connect { host } | Access::Fetch { host } => host,
            Access::Task { agent } => agent,
            Access::Use { .. } => "*",
            Access::Engage { servant, .. } => servant,
            Access::Accept { what } => what,
        }
    }

    /// True if doing it twice, or not at all, changes nothing. A call that had an agent at work goes
    /// on with the same session.
    pub fn read_only(&self) -> bool {
        match self {
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Fetch { .. }
            | Access::Task { .. } => true,
            Access::Edit { .. }
            | Access::Run { .. }
            | Access::Connect { .. }
            | Access::Leave { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => false,
        }
    }

    /// What a call would do with it, as every front end says it: on one line, in the words after
    /// "it wants to".
    pub fn words(&self) -> String {
        one_line(&match self {
            Access::Leave { .. } => "leave the sandbox".to_owned(),
            Access::Run { command, folder } if is_root(folder) => format!("run {command}"),
            Access::Run { command, folder } => format!("run in {folder}: {command}"),
            Access::Engage { servant, command } => format!("start {servant}: {command}"),
            Access::Accept { what } => format!("take the new definition of {what}"),
            Access::Edit { path } => format!("change {path}"),
            Access::Connect { host } if host == "*" => "reach the network".to_owned(),
            Access::Connect { host } => format!("reach {host}"),
            Access::Fetch { host } => format!("fetch from {host}"),
            Access::Use { tool } => format!("use the tool {tool}"),
            Access::Task { agent } => format!("give work to the agent {agent}"),
            Access::Read { path } => format!("read {path}"),
            Access::Search { path } => format!("look through {path}"),
            Access::Recall { blob } => format!("read the output {blob}"),
            Access::Skill { name } => format!("read the skill {name}"),
        })
    }

    /// What stands over a question about some, wholly in our words. A name that a model chose is part
    /// of it only where it cannot be taken for anything else.
    pub fn headline(accesses: &[Access]) -> String {
        let Some(first) = accesses.iter().min_by_key(|access| access.rank()) else {
            return "Go on".to_owned();
        };
        let many = accesses.iter().filter(|access| access.rank() == first.rank()).count();
        let counted = |one: &str, verb: &str, things: &str| match many {
            1 => one.to_owned(),
            _ => format!("{verb} {many} {things}"),
        };
        let named = |verb: &str, [the, one, things]: [&str; 3], name: &str| match many {
            1 if plain(name) => format!("{verb} {the}{name}"),
            1 => format!("{verb} {one}"),
            _ => format!("{verb} {many} {things}"),
        };
        let host = ["", "a host", "hosts"];
        match first {
            Access::Leave { .. } => "Leave the sandbox".to_owned(),
            Access::Run { .. } => counted("Run a command", "Run", "commands"),
            Access::Engage { .. } => "Start a program and keep it running".to_owned(),
            Access::Accept { .. } => "Take a tool's new definition".to_owned(),
            Access::Edit { .. } => counted("Change a file", "Change", "files"),
            Access::Connect { host } if host == "*" => "Reach the network".to_owned(),
            Access::Connect { host: name } => named("Reach", host, name),
            Access::Fetch { host: name } => named("Fetch from", host, name),
            Access::Use { tool } => named("Use", ["the tool ", "a tool", "tools"], tool),
            Access::Task { agent } => {
                named("Give work to", ["the agent ", "an agent", "agents"], agent)
            }
            Access::Read { .. } => counted("Read a file", "Read", "files"),
            Access::Search { .. } => counted("Look through a folder", "Look through", "folders"),
            Access::Recall { .. } => "Read an output that was kept".to_owned(),
            Access::Skill { name } => named("Read", ["the skill ", "a skill", "skills"], name),
        }
    }

    /// The smaller, the more a person wants to know of it first.
    fn rank(&self) -> u8 {
        match self {
            Access::Leave { .. } => 0,
            Access::Run { .. } => 1,
            Access::Engage { .. } => 2,
            Access::Accept { .. } => 3,
            Access::Edit { .. } => 4,
            Access::Connect { .. } => 5,
            Access::Fetch { .. } => 6,
            Access::Use { .. } => 7,
            Access::Task { .. } => 8,
            Access::Read { .. } => 9,
            Access::Search { .. } => 10,
            Access::Recall { .. } => 11,
            Access::Skill { .. } => 12,
        }
    }
}

/// True for the folder of the project itself.
pub fn is_root(folder: &str) -> bool {
    matches!(folder, "" | ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str) -> Access {
        Access::Edit { path: path.into() }
    }

    fn run(folder: &str) -> Access {
        Access::Run { command: "a\nb".into(), folder: folder.into() }
    }

    #[test]
    fn words_are_one_line_whatever_a_model_wrote() {
        assert_eq!(run(".").words(), "run a⏎b");
        assert_eq!(run("x\ny").words(), "run in x⏎y: a⏎b");
        assert_eq!(edit("a\r\nb").words(), "change a⏎b");
        assert_eq!(Access::Connect { host: "*".into() }.words(), "reach the network");
    }

    #[test]
    fn what_matters_most_stands_over_a_question_and_is_counted() {
        let leave = Access::Leave { command: "a".into() };
        let headline = Access::headline;
        assert_eq!(headline(&[edit("a"), run("."), leave]), "Leave the sandbox");
        assert_eq!(headline(&[edit("a"), run("."), edit("b")]), "Run a command");
        assert_eq!(headline(&[edit("a"), edit("b")]), "Change 2 files");
        assert_eq!(headline(&[]), "Go on");
        let fetch = |host: &str| Access::Fetch { host: host.into() };
        assert_eq!(headline(&[fetch("docs.rs")]), "Fetch from docs.rs");
        assert_eq!(headline(&[fetch("docs.rs ── yes")]), "Fetch from a host");
        assert_eq!(headline(&[fetch("docs.rs"), fetch("a.example")]), "Fetch from 2 hosts");
    }
}
