//! The names of the tools in Claude Code, for hooks and for imports of its settings.

/// A tool and its names in Claude Code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaudeToolName {
    /// Our name.
    pub tool: String,
    /// Their names, the most usual one first.
    pub claude_names: &'static [&'static str],
    /// Arguments with other names: ours and theirs.
    pub arguments: &'static [(&'static str, &'static str)],
}

/// The tools that Claude Code has too, as the tools declare it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaudeToolNames {
    rows: Vec<ClaudeToolName>,
}

impl ClaudeToolNames {
    /// Returns a table of these tools.
    pub fn new(rows: Vec<ClaudeToolName>) -> ClaudeToolNames {
        ClaudeToolNames { rows }
    }

    /// Returns the row of one of our tools.
    pub fn get(&self, tool: &str) -> Option<&ClaudeToolName> {
        self.rows.iter().find(|row| row.tool == tool)
    }

    /// Returns our tools for one of theirs; those that have it as their most usual name come first.
    pub fn tools_for(&self, claude_name: &str) -> Vec<&str> {
        let rows = self.rows.iter().filter(|row| row.claude_names.contains(&claude_name));
        let mut rows: Vec<&ClaudeToolName> = rows.collect();
        rows.sort_by_key(|row| row.claude_names.first() != Some(&claude_name));
        rows.into_iter().map(|row| row.tool.as_str()).collect()
    }
}
