//! The report about plugins: those that the user added, and those that the config lists and that
//! are missing.

use crate::setup::LoadedProject;
use serde_json::{Value, json};
use windlass_project::{Dirs, InstalledPlugins};
use windlass_protocol::report::{ReportRow, ReportRowState};

/// An added plugin.
pub(crate) struct PluginInfo {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) source: String,
    digest: String,
    /// Its components and its access, or the reason why it is skipped.
    contents: Result<PluginSummary, String>,
}

struct PluginSummary {
    summary: String,
    access_lines: Vec<String>,
}

/// Returns the plugins that the user added.
pub(crate) fn collect_plugins(dirs: &Dirs) -> anyhow::Result<Vec<PluginInfo>> {
    let plugins = InstalledPlugins::read(dirs)?.with_claude_tools(windlass_tools::claude_names());
    let infos = plugins.all().map(|(name, plugin)| {
        let loaded = plugins.load_one(name, plugin);
        PluginInfo {
            name: name.to_owned(),
            version: plugin.version.clone(),
            source: plugin.source.to_string(),
            digest: plugin.digest.chars().take(12).collect(),
            contents: loaded.map(|loaded| PluginSummary {
                summary: loaded.components.describe_counts(),
                access_lines: loaded.access_lines(),
            }),
        }
    });
    Ok(infos.collect())
}

impl PluginInfo {
    /// Returns the components in words, or the reason why the plugin is skipped.
    pub(crate) fn describe_contents(&self) -> String {
        match &self.contents {
            Ok(contents) => contents.summary.clone(),
            Err(reason) => format!("skipped: {reason}"),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let accesses: Value = match &self.contents {
            Ok(contents) => json!(contents.access_lines),
            Err(_) => Value::Null,
        };
        json!({"name": self.name, "version": self.version, "digest": self.digest,
               "from": self.source, "accesses": accesses,
               "skip_reason": self.contents.as_ref().err()})
    }

    fn to_row(&self) -> ReportRow {
        let mut details = vec![format!("From: {}", self.source)];
        match &self.contents {
            Ok(contents) => {
                details.push(format!("Contains: {}", contents.summary));
                details.extend([String::new(), "It can access:".to_owned()]);
                details.extend(contents.access_lines.iter().map(|line| format!("  {line}")));
            }
            Err(reason) => details.push(format!("Skipped: {reason}")),
        }
        details
            .extend([String::new(), format!("To remove it: windlass plugin remove {}", self.name)]);
        ReportRow {
            id: self.name.clone(),
            name: self.name.clone(),
            note: self.describe_contents(),
            columns: vec![self.version.clone().unwrap_or_default()],
            state: Some(match self.contents {
                Ok(_) => ReportRowState::Active,
                Err(_) => ReportRowState::Failed,
            }),
            details: details.join("\n"),
            ..ReportRow::default()
        }
    }
}

/// Returns the rows of the report.
pub(crate) fn report_rows(setup: &LoadedProject) -> anyhow::Result<Vec<ReportRow>> {
    let mut rows: Vec<ReportRow> =
        collect_plugins(&setup.dirs)?.iter().map(PluginInfo::to_row).collect();
    let missing = setup.missing_packages()?.into_iter().map(|(package, origin)| ReportRow {
        details: format!("Listed in: {origin}\n\nTo add it: windlass plugin add npm:{package}"),
        note: format!("listed in {origin}, not added"),
        columns: vec!["missing".to_owned()],
        state: Some(ReportRowState::Warning),
        name: package,
        ..ReportRow::default()
    });
    rows.extend(missing);
    Ok(rows)
}
