//! Renders structured tool output as a table if it is a list of records, as MCP servers return it.

use crate::render;
use crate::safe_line::SafeLine;
use crate::ui_context::Appearance;
use serde_json::{Map, Value};
use windlass_protocol::ToolOutput;

/// More columns are unreadable, and longer lists are not rendered as a table.
const MAX_TABLE_COLUMNS: usize = 8;
const MAX_TABLE_RECORDS: usize = 200;

/// Renders the `structured` metadata of an output as a table, if it is a list of records.
pub(super) fn render_records(
    output: &ToolOutput,
    width: usize,
    appearance: &Appearance,
) -> Option<Vec<SafeLine>> {
    let records = find_records(output.metadata.get("structured")?)?;
    let mut columns: Vec<String> = Vec::new();
    for name in records.iter().flat_map(|record| record.keys()) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    let column_count_fits = (1..=MAX_TABLE_COLUMNS).contains(&columns.len());
    let cells = |record: &&Map<String, Value>| -> Option<Vec<String>> {
        columns.iter().map(|name| record.get(name).map_or(Some(String::new()), cell_text)).collect()
    };
    let body: Option<Vec<Vec<String>>> = records.iter().map(cells).collect();
    body.filter(|_| column_count_fits)
        .map(|body| render::render_table(&columns, &body, width, appearance))
}

/// Returns the list itself, or the only list among the fields of an object.
fn find_records(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(fields) => {
            let mut lists = fields.values().filter_map(Value::as_array);
            lists.next().filter(|_| lists.next().is_none())?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let fits = (1..=MAX_TABLE_RECORDS).contains(&list.len());
    list.iter().map(Value::as_object).collect::<Option<Vec<_>>>().filter(|_| fits)
}

/// Returns the text of a cell; `None` for nested values.
fn cell_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table_rows(structured: Value) -> Option<Vec<String>> {
        let metadata = [("structured".to_owned(), structured)].into_iter().collect();
        let output = ToolOutput { metadata, ..ToolOutput::default() };
        let rows = render_records(&output, 40, &Appearance::default())?;
        Some(rows.iter().map(|row| row.text().trim_end().to_owned()).collect())
    }

    #[test]
    fn only_a_list_of_records_becomes_a_table() {
        let list = json!([{"name": "north", "tons": 12}, {"name": "south", "open": true}]);
        let rows = table_rows(list.clone()).unwrap();
        assert!(rows[0].contains("name") && rows[0].contains("tons"), "{rows:?}");
        assert!(rows[2].contains("north") && rows[2].contains("12"), "{rows:?}");
        assert_eq!(table_rows(json!({"cranes": list, "total": 2})), Some(rows));
        for other in [
            json!("text"),
            json!([]),
            json!([1, 2]),
            json!([{"name": {"first": "a"}}]),
            json!({"one": [{"a": 1}], "two": [{"a": 1}]}),
            json!([{}]),
        ] {
            assert_eq!(table_rows(other.clone()), None, "{other}");
        }
        let wide: Map<String, Value> =
            (0..9).map(|index| (index.to_string(), json!(index))).collect();
        assert_eq!(table_rows(json!([wide])), None);
    }
}
