//! Implements `windlass stats`: usage of models and tools over time.

use crate::CliExit;
use crate::reports::statistics;
use crate::setup::LoadedProject;
use crate::terminal::output;
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::report::ReportRow;

/// Runs `windlass stats`.
pub(crate) async fn show_stats(days: Option<u32>, json: bool) -> anyhow::Result<CliExit> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let usage = statistics::read_statistics(&dirs.data, days).await?;
    if json {
        output::print_json(&serde_json::to_string_pretty(&usage)?);
        return Ok(CliExit::Done);
    }
    let rows = statistics::report_rows(&usage);
    if rows.is_empty() {
        output::print_note("no usage in this period");
    }
    print_table(&rows);
    Ok(CliExit::Done)
}

/// Prints rows under the headings of their groups, with the columns of a group aligned.
fn print_table(rows: &[ReportRow]) {
    for (index, group) in rows.chunk_by(|a, b| a.group == b.group).enumerate() {
        let title = group.first().map_or("", |row| row.group.title());
        let gap = if index == 0 { "" } else { "\n" };
        output::print_line(&format!("{gap}{title}"));
        let width_of = |text: fn(&ReportRow) -> &str| {
            group.iter().map(|row| to_one_line(text(row)).chars().count()).max().unwrap_or_default()
        };
        let (name_width, note_width) =
            (width_of(|row| row.name.as_str()), width_of(|row| row.note.as_str()));
        let columns = group.iter().map(|row| row.columns.len()).max().unwrap_or_default();
        let column_widths: Vec<usize> = (0..columns)
            .map(|column| {
                let texts = group.iter().filter_map(|row| row.columns.get(column));
                texts.map(|text| text.chars().count()).max().unwrap_or_default()
            })
            .collect();
        for row in group {
            let pad = |text: &str, width: usize| {
                let text = to_one_line(text);
                let gap = " ".repeat(width.saturating_sub(text.chars().count()));
                (text, gap)
            };
            let (name, name_gap) = pad(&row.name, name_width);
            let (note, note_gap) = pad(&row.note, note_width);
            let mut line = format!("  {name}{name_gap}");
            for (column, width) in row.columns.iter().zip(&column_widths) {
                let (text, gap) = pad(column, *width);
                line.push_str(&format!("  {gap}{text}"));
            }
            line.push_str(&format!("  {note}{note_gap}"));
            output::print_line(line.trim_end());
        }
    }
}
