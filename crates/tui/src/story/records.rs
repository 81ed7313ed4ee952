//! A structured answer as a table, where it is a list of records: as servers of others give them.

use crate::cx::Look;
use crate::ink::Row;
use crate::lay;
use serde_json::{Map, Value};
use windlass_protocol::Output;

/// More columns cannot be read, and more records are not looked at.
const COLUMNS: usize = 8;
const RECORDS: usize = 200;

/// The table that an output is, if it is one.
pub(super) fn table(output: &Output, width: usize, look: &Look) -> Option<Vec<Row>> {
    let records = records(output.metadata.get("structured")?)?;
    let mut head: Vec<String> = Vec::new();
    for name in records.iter().flat_map(|record| record.keys()) {
        if !head.contains(name) {
            head.push(name.clone());
        }
    }
    let narrow = (1..=COLUMNS).contains(&head.len());
    let cells = |record: &&Map<String, Value>| -> Option<Vec<String>> {
        head.iter().map(|name| record.get(name).map_or(Some(String::new()), cell)).collect()
    };
    let body: Option<Vec<Vec<String>>> = records.iter().map(cells).collect();
    body.filter(|_| narrow).map(|body| lay::table(&head, &body, width, look))
}

/// The list itself, or the only one that an answer holds.
fn records(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(fields) => {
            let mut lists = fields.values().filter_map(Value::as_array);
            lists.next().filter(|_| lists.next().is_none())?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let fits = (1..=RECORDS).contains(&list.len());
    list.iter().map(Value::as_object).collect::<Option<Vec<_>>>().filter(|_| fits)
}

/// What stands in a cell; nothing that has parts of its own does.
fn cell(value: &Value) -> Option<String> {
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

    fn shown(structured: Value) -> Option<Vec<String>> {
        let metadata = [("structured".to_owned(), structured)].into_iter().collect();
        let output = Output { metadata, ..Output::default() };
        let rows = table(&output, 40, &Look::default())?;
        Some(rows.iter().map(|row| row.text().trim_end().to_owned()).collect())
    }

    #[test]
    fn a_list_of_records_is_a_table_and_nothing_else_is() {
        let list = json!([{"name": "north", "tons": 12}, {"name": "south", "open": true}]);
        let rows = shown(list.clone()).unwrap();
        assert!(rows[0].contains("name") && rows[0].contains("tons"), "{rows:?}");
        assert!(rows[2].contains("north") && rows[2].contains("12"), "{rows:?}");
        assert_eq!(shown(json!({"cranes": list, "total": 2})), Some(rows));
        for other in [
            json!("text"),
            json!([]),
            json!([1, 2]),
            json!([{"name": {"first": "a"}}]),
            json!({"one": [{"a": 1}], "two": [{"a": 1}]}),
            json!([{}]),
        ] {
            assert_eq!(shown(other.clone()), None, "{other}");
        }
        let wide: Map<String, Value> = (0..9).map(|at| (at.to_string(), json!(at))).collect();
        assert_eq!(shown(json!([wide])), None);
    }
}
