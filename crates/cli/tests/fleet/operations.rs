//! Work of operators: a backup can be restored, and alerts and dashboards name metrics that exist.

use crate::test_fleet::{TestFleet, TestNode, assert_no_gaps, lines, wait_until};
use std::path::Path;
use windlass_protocol::SessionOp;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_restored_backup_goes_on_with_the_sessions_that_worked() {
    let command = r#"call bash {"command": "echo one >> journal", "description": "d"}"#;
    let mut fleet = TestFleet::start(&[command, "once gate slow\nsay Two.", "say Three."]);
    let first = fleet.start_node();
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    let dump = fleet.database.folder().join("windlass.dump");
    let socket = fleet.database.socket_folder();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = fleet.database.command(program);
        command.arg("-h").arg(&socket).args(["-U", "windlass"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let dump = dump.to_str().unwrap();
    run("pg_dump", &["--format=custom", &format!("--file={dump}"), "fleet"]);
    first.server.kill();
    fleet.model.open_gate("slow");
    run("createdb", &["restored"]);
    run("pg_restore", &["--dbname=restored", dump]);
    fleet.url = fleet.database.url("restored");
    let second = fleet.start_node();
    let mut client = second.watch(owner.session).await;
    client.wait_for_turn_end().await;
    assert_no_gaps(&client.facts);
    assert_eq!(lines(&fleet.path("journal")), ["one"]);
    client.submit(SessionOp::prompt("again")).await.unwrap();
    client.wait_for_turn_end().await;
}

/// Returns the names of metrics in a text.
fn metric_names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.starts_with("windlass_") || word.starts_with("process_")).collect()
}

fn has_metric(node: &TestNode, name: &str) -> bool {
    let series = |line: &str| line.split([' ', '{']).next() == Some(name);
    node.metrics().lines().any(series)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn alerts_dashboards_and_the_book_name_metrics_that_a_node_has() {
    let fleet = TestFleet::start(&["say One."]);
    let node = fleet.start_node();
    let mut owner = node.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    owner.wait_for_turn_end().await;
    wait_until("the backlog is read", || has_metric(&node, "windlass_fleet_due_seconds"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in [
        "deploy/monitoring/alerts.yaml",
        "deploy/monitoring/dashboard.json",
        "docs/book/src/fleet-operations.md",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let mut names = metric_names(&text);
        // The book names a histogram, of which a node has the parts.
        names.retain(|name| !["windlass_load", "windlass_fleet_append_seconds"].contains(name));
        assert!(names.len() > 5, "{file}: {names:?}");
        for name in names {
            assert!(has_metric(&node, name), "{file}: {name}\n{}", node.metrics());
        }
    }
}
