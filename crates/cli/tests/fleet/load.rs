//! `windlass fleet load`: sessions work on two nodes at once, and the report says how.

use crate::support::server::socket_path;
use crate::test_fleet::TestFleet;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn sessions_of_a_load_test_end_their_turns_and_are_measured() {
    let (sessions, steps, answer_time) = match std::env::var_os("WINDLASS_SOAK") {
        Some(_) => ("1000", "20", "10"),
        None => ("30", "4", "0.5"),
    };
    let fleet = TestFleet::start(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let first = fleet.start_node();
    let config = first.env.windlass(&["fleet", "load", "--listen", &listen]).output().unwrap();
    assert!(config.status.success());
    drop(first);
    let config = String::from_utf8(config.stdout).unwrap();
    let nodes = [fleet.start_node_with_config(&config), fleet.start_node_with_config(&config)];
    let sockets = nodes.each_ref().map(|node| socket_path(&node.env).display().to_string());
    let load = ["fleet", "load", "--json", "--listen", &listen, "--sessions", sessions];
    let load = [&load[..], &["--steps", steps, "--answer-time", answer_time]].concat();
    let load = [&load[..], &["--node", &sockets[0], "--node", &sockets[1]]].concat();
    let output = nodes[0].env.windlass(&load).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("figure: {report}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&report["failed_turns"], &report["repeated_steps"]), (&0.into(), &0.into()));
    let written = fleet.execute("SELECT count(*) FROM event WHERE kind = 'files_changing'");
    let calls = sessions.parse::<u64>().unwrap() * (steps.parse::<u64>().unwrap() - 1);
    assert_eq!(written, calls.to_string());
    let number = |path: &str| report.pointer(path).unwrap().as_f64().unwrap();
    assert!(
        number("/first_request_seconds/p99") < 1.0 && number("/next_request_seconds/p99") < 1.0
    );
    assert!(number("/flushed_appends/per_second") > 0.0);
    assert!(number("/memory_bytes_per_session") < 3e6);
}
