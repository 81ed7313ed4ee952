//! The texts of all PostgreSQL statements: each that touches data of tenants names the tenant, and
//! none that appends facts sends a notification.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests read the sources and fail by panicking"
)]

use std::path::Path;

/// Tables whose rows belong to a tenant.
const TENANT_TABLES: &[&str] = &[
    "session",
    "event",
    "inbox",
    "blob",
    "blob_use",
    "object_removal",
    "fleet_user",
    "access_token",
    "provider_key",
    "usage",
];

/// Statements about all sessions of a node, whatever their tenants, by a part of their text.
const NODE_STATEMENTS: &[&str] = &[
    "CASE WHEN parent IS NULL THEN 1 ELSE 0 END WHERE node = $1",
    "FROM dead WHERE session.node = dead.id",
    // Numbers for operators.
    "WHERE session.node = node.id), extract(",
    "count(*) FILTER (WHERE state = 3) FROM session",
    "SELECT due.number, due.seconds, queued.number",
];

/// Returns the statements in a source: literals that begin with a verb of SQL, each with the literals
/// that a `concat!` adds to it.
fn statements(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect::<Vec<_>>()
        .join("\n");
    let mut statements: Vec<String> = Vec::new();
    let (mut rest, mut is_continued) = (code.as_str(), false);
    while let Some(start) = rest.find('"') {
        let between = rest[..start].trim();
        let is_macro = between.trim_matches(',').trim().ends_with("!()");
        is_continued &= between.chars().all(|c| c == ',') || is_macro;
        rest = &rest[start + 1..];
        let mut end = 0;
        while !rest[end..].starts_with('"') {
            let escape = usize::from(rest[end..].starts_with('\\'));
            end += rest[end..].chars().take(1 + escape).map(char::len_utf8).sum::<usize>();
        }
        let literal = rest[..end].replace("\\\n", "\n").replace("\\\"", "\"");
        rest = &rest[end + 1..];
        let first = literal.split_whitespace().next().unwrap_or_default();
        if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&first) {
            statements.push(literal);
            is_continued = true;
        } else if is_continued {
            statements.last_mut().unwrap().push_str(&literal);
        }
    }
    let join = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    statements.into_iter().map(join).collect()
}

/// Returns the tables that a statement reads or writes.
fn tables(statement: &str) -> Vec<&str> {
    let words: Vec<&str> = statement.split([' ', '(', ')', ',', ';']).collect();
    let is_after = |word: &str| ["FROM", "JOIN", "UPDATE", "INTO", "USING"].contains(&word);
    let pairs = words.windows(2).filter(|pair| is_after(pair[0]));
    pairs.map(|pair| pair[1]).collect()
}

fn all_statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        found.extend(statements(&source).into_iter().map(|text| (name.clone(), text)));
    }
    found
}

#[test]
fn every_statement_about_data_of_tenants_names_the_tenant() {
    let all = all_statements();
    let is_of_tenants = |text: &str| tables(text).iter().any(|name| TENANT_TABLES.contains(name));
    let of_tenants: Vec<_> = all.iter().filter(|(_, text)| is_of_tenants(text)).collect();
    assert!(of_tenants.len() > 20, "the statements are found: {of_tenants:#?}");
    for (file, text) in &of_tenants {
        let is_of_node = NODE_STATEMENTS.iter().any(|part| text.contains(part));
        assert!(is_of_node != text.contains("tenant"), "{file}: {text}");
    }
    for part in NODE_STATEMENTS {
        let count = of_tenants.iter().filter(|(_, text)| text.contains(part)).count();
        assert_eq!(count, 1, "{part}");
    }
}

#[test]
fn no_statement_notifies() {
    // A notification in an append would hold a lock of the whole server until its flush.
    for (file, text) in all_statements() {
        let text = text.to_lowercase();
        assert!(!text.contains("notify") && !text.contains("listen "), "{file}: {text}");
    }
}

#[test]
fn statements_are_found_in_a_source() {
    let source = r#"
        // "SELECT 1 FROM comment"
        const A: &str = concat!("SELECT ", columns!(), " FROM session WHERE tenant = $1");
        const B: [&str; 2] = ["DELETE FROM event", "DELETE FROM inbox"];
        fn f() { call("text", "WITH a AS (SELECT \"check\" FROM blob_use)"); other("FROM x") }
    "#;
    let found = statements(source);
    let expected = [
        "SELECT FROM session WHERE tenant = $1",
        "DELETE FROM event",
        "DELETE FROM inbox",
        "WITH a AS (SELECT \"check\" FROM blob_use)",
    ];
    assert_eq!(found, expected);
    assert_eq!(tables(&found[3]), ["blob_use"]);
}
