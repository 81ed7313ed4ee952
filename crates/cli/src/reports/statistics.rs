//! Usage statistics from the session log, for `/stats` and `windlass stats`.

use crate::terminal::output::format_dollars;
use chrono::{Local, NaiveDate, TimeZone as _};
use std::cmp::Reverse;
use std::path::Path;
use windlass_protocol::UnixMillis;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::report::{ReportGroup, ReportRow, UsageStatistics, UsageTotals};
use windlass_storage::SqliteLog;

/// Limits each list of a report; the rest is a few calls.
const MAX_ROWS_PER_GROUP: usize = 30;

/// Reads the usage of the last days including today, or of all time.
pub(crate) async fn read_statistics(
    data_folder: &Path,
    days: Option<u32>,
) -> anyhow::Result<UsageStatistics> {
    let log = SqliteLog::open(data_folder).await?;
    let since = days.and_then(first_day).and_then(start_of_day).unwrap_or(UnixMillis(0));
    Ok(log.usage_statistics(since, day_name).await?)
}

fn first_day(days: u32) -> Option<NaiveDate> {
    let today = Local::now().date_naive();
    today.checked_sub_days(chrono::Days::new(u64::from(days.saturating_sub(1))))
}

fn start_of_day(day: NaiveDate) -> Option<UnixMillis> {
    let midnight = Local.from_local_datetime(&day.and_hms_opt(0, 0, 0)?).earliest()?;
    u64::try_from(midnight.timestamp_millis()).ok().map(UnixMillis)
}

/// Names the local day of a time, as `YYYY-MM-DD`.
fn day_name(at: UnixMillis) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    match Local.timestamp_millis_opt(millis).single() {
        Some(time) => time.format("%Y-%m-%d").to_string(),
        None => "unknown".to_owned(),
    }
}

/// Formats a number of tokens, such as `12.3k` or `4.5M`.
fn format_tokens(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

fn totals_row(group: ReportGroup, name: &str, totals: &UsageTotals) -> ReportRow {
    let cost = match totals.cost.0 {
        0 => String::new(),
        _ => format_dollars(totals.cost),
    };
    let usage = totals.usage;
    let note = match totals.sessions {
        0 => pluralize(totals.requests as usize, "request"),
        sessions => format!(
            "{}, {}",
            pluralize(sessions as usize, "session"),
            pluralize(totals.requests as usize, "request")
        ),
    };
    ReportRow {
        group,
        name: name.to_owned(),
        note,
        columns: vec![
            format!("{} in", format_tokens(usage.input)),
            format!("{} out", format_tokens(usage.output)),
            cost,
        ],
        ..ReportRow::default()
    }
}

/// Returns the statistics as rows: sums first, then days (newest first), models, tools and folders
/// (most used first).
pub(crate) fn report_rows(statistics: &UsageStatistics) -> Vec<ReportRow> {
    let UsageStatistics { total, days, models, tools, folders } = statistics;
    if *total == UsageTotals::default() {
        return Vec::new();
    }
    let mut rows = vec![totals_row(ReportGroup::Total, "All", total)];
    if let Some(row) = rows.first_mut() {
        row.note = format!(
            "{}, {}, {}, {}, {} of input from the cache",
            pluralize(total.sessions as usize, "session"),
            pluralize(total.prompts as usize, "prompt"),
            pluralize(total.requests as usize, "request"),
            pluralize(total.tool_calls as usize, "tool call"),
            format_tokens(total.usage.cache_reads),
        );
    }
    let newest = days.iter().rev().take(MAX_ROWS_PER_GROUP);
    rows.extend(newest.map(|(day, totals)| totals_row(ReportGroup::Days, day, totals)));
    let by_use = |group, parts: &std::collections::BTreeMap<String, UsageTotals>| {
        let mut parts: Vec<_> = parts.iter().collect();
        parts.sort_by_key(|(_, totals)| Reverse((totals.cost, totals.usage.input)));
        let parts = parts.into_iter().take(MAX_ROWS_PER_GROUP);
        parts.map(|(name, totals)| totals_row(group, name, totals)).collect::<Vec<_>>()
    };
    rows.extend(by_use(ReportGroup::Models, models));
    let mut tools: Vec<_> = tools.iter().collect();
    tools.sort_by_key(|(_, calls)| Reverse(**calls));
    rows.extend(tools.into_iter().take(MAX_ROWS_PER_GROUP).map(|(tool, calls)| ReportRow {
        group: ReportGroup::Tools,
        name: tool.clone(),
        note: pluralize(*calls as usize, "call"),
        columns: vec![format!("{} %", (calls * 100).checked_div(total.tool_calls).unwrap_or(0))],
        ..ReportRow::default()
    }));
    rows.extend(by_use(ReportGroup::Folders, folders));
    rows
}
