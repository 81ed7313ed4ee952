//! Reports about the host that a front end shows as lists: MCP servers, permissions, language
//! servers, plugins and usage statistics. The command line prints the same rows.

use crate::ids_and_timestamps::SessionId;
use crate::step::{Cost, TokenUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report that `FrontendRequest::Report` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReportKind {
    /// MCP servers of the config with their state, tools and log.
    McpServers,
    /// Permission rules in effect, and approvals.
    Permissions {
        /// Session whose approvals are listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
    },
    /// Language servers of the project with their state and log.
    LanguageServers,
    /// Plugins that the user added.
    Plugins,
    /// Usage of models and tools, by day.
    Statistics {
        /// Number of days up to today; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        days: Option<u32>,
    },
}

/// An item of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRow {
    /// ID of the item for `FrontendRequest::RunReportAction`; empty if it has no actions.
    #[serde(default)]
    pub id: String,
    /// Heading under which the item stands.
    #[serde(default)]
    pub group: ReportGroup,
    /// Name of the item.
    pub name: String,
    /// One-line description.
    #[serde(default)]
    pub note: String,
    /// Short values, the most important one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// State of the item, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ReportRowState>,
    /// Everything known about the item, in lines; empty if the row says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// Actions that the user can run on the item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ReportAction>,
}

/// The heading of a [`ReportRow`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReportGroup {
    /// No heading.
    #[default]
    None,
    /// Permission rules in effect.
    Rules,
    /// Approvals that end with the session.
    SessionApprovals,
    /// Approvals saved for the project.
    ProjectApprovals,
    /// Sums of the whole period.
    Total,
    /// Usage by day.
    Days,
    /// Usage by model.
    Models,
    /// Usage by tool.
    Tools,
    /// Usage by folder.
    Folders,
}

impl ReportGroup {
    /// Returns the text of the heading; empty for `None`.
    pub const fn title(self) -> &'static str {
        match self {
            ReportGroup::None => "",
            ReportGroup::Rules => "Rules, the last match decides",
            ReportGroup::SessionApprovals => "Approved for this session",
            ReportGroup::ProjectApprovals => "Always approved in this project",
            ReportGroup::Total => "Total",
            ReportGroup::Days => "Days",
            ReportGroup::Models => "Models",
            ReportGroup::Tools => "Tools",
            ReportGroup::Folders => "Folders",
        }
    }
}

/// The state of a [`ReportRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportRowState {
    /// In use and working.
    Active,
    /// Ready, but not started yet.
    Idle,
    /// Starts now; the next report tells the result.
    Starting,
    /// Works with limitations, or needs the user.
    Warning,
    /// Does not work.
    Failed,
    /// Switched off.
    Off,
}

/// An action on a [`ReportRow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportAction {
    /// Stops the server and starts it again.
    Restart,
    /// Revokes the approval.
    Revoke,
}

/// Usage of models and tools in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageStatistics {
    /// Sums over the whole period.
    pub total: UsageTotals,
    /// Usage by day, as `YYYY-MM-DD`.
    pub days: BTreeMap<String, UsageTotals>,
    /// Usage by model, as `provider/model`.
    pub models: BTreeMap<String, UsageTotals>,
    /// Number of calls by tool.
    pub tools: BTreeMap<String, u64>,
    /// Usage by the folder of the session.
    pub folders: BTreeMap<String, UsageTotals>,
}

/// Sums of a part of [`UsageStatistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageTotals {
    /// Sessions that the user started and that were active in the period, without subagents.
    pub sessions: u64,
    /// Prompts of the user.
    pub prompts: u64,
    /// Requests to models.
    pub requests: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tokens used.
    pub usage: TokenUsage,
    /// Cost of `usage`, as far as known, in millionths of a US dollar.
    pub cost: Cost,
}
