//! Sessions that start below the root of the project, and large outputs, with the real binary.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::{TestEnv, decode_output};
use windlass_protocol::BlobRef;

const AUTO: &str = r#""mode": "auto""#;

/// Returns the results that the last request contains, in order.
fn tool_results(env: &TestEnv) -> Vec<String> {
    let requests = env.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

fn call(tool: &str, arguments: &Value) -> String {
    format!("call {tool} {arguments}")
}

#[test]
fn the_start_folder_is_the_working_directory() {
    let step = [
        call("bash", &json!({"command": "pwd; cat README.md"})),
        call("bash", &json!({"command": "pwd", "workdir": "src"})),
        call("read", &json!({"filePath": "README.md"})),
        call("read", &json!({"filePath": "docs/guide.md"})),
        call("glob", &json!({"pattern": "*.md"})),
        call("grep", &json!({"pattern": "guide|root", "path": "../.."})),
        call("edit", &json!({"filePath": "src/a.txt", "oldString": "one", "newString": "two"})),
        call("write", &json!({"filePath": "src/new.txt", "content": "new\n"})),
    ];
    let env = TestEnv::new(&[&step.join("\n"), "say Done."], AUTO);
    let root = env.root().canonicalize().unwrap();
    let app = root.join("packages/app");
    for (name, text) in [
        ("README.md", "root\n"),
        ("docs/guide.md", "guide\n"),
        ("packages/app/README.md", "app\n"),
        ("packages/app/src/a.txt", "one\n"),
    ] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    fs::create_dir_all(root.join(".git")).unwrap();
    let output = env.windlass(&["run", "--yes", "go"]).current_dir(&app).output().unwrap();
    let (code, _, stderr) = decode_output(&output);
    assert_eq!(code, 0, "{stderr}");
    let first = env.model.requests()[0].to_string();
    let line = format!("Working directory: {}; commands run", app.display());
    assert!(first.contains(&line), "{first}");

    let results = tool_results(&env);
    assert!(results[0].starts_with(&format!("{}\napp\n", app.display())), "{}", results[0]);
    assert!(results[1].starts_with(&format!("{}/src\n", app.display())), "{}", results[1]);
    assert!(results[2].contains("1: app"), "{}", results[2]);
    assert!(results[3].contains("1: guide"), "{}", results[3]);
    assert_eq!(results[4], "packages/app/README.md");
    // A relative path would be taken for that of the working directory.
    assert!(results[5].contains(&format!("{}/README.md\n", root.display())), "{}", results[5]);
    assert!(results[5].contains("docs/guide.md\n"), "{}", results[5]);
    let patch = "*** Begin Patch\n*** Add File: src/added.txt\n+added\n*** Update File: \
                 docs/guide.md\n*** Move to: src/moved.md\n@@\n-guide\n+moved\n*** End Patch";
    let arguments = json!({ "patchText": patch }).to_string();
    let patched = env.windlass(&["tool", "call", "--yes", "apply_patch", &arguments]);
    let output = { patched }.current_dir(&app).output().unwrap();
    assert_eq!(decode_output(&output).0, 0, "{output:?}");
    assert!(!root.join("docs/guide.md").exists());
    for (name, text) in [
        ("src/a.txt", "two\n"),
        ("src/new.txt", "new\n"),
        ("src/added.txt", "added\n"),
        ("src/moved.md", "moved\n"),
    ] {
        let content = fs::read_to_string(app.join(name)).ok();
        assert_eq!(content.as_deref(), Some(text), "{name}: {results:?}");
    }
}

#[test]
fn a_large_output_is_kept_whole_under_a_short_name() {
    let whole: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    let blob = BlobRef::for_bytes(format!("{whole}(exit code 0)").as_bytes());
    let name = format!("blob:{}", blob.short_name());
    let replies = [
        call("bash", &json!({"command": "seq 1 300000"})),
        call("grep", &json!({"pattern": "^1234[0-9]$", "path": name})),
        call("read", &json!({"filePath": name, "offset": 150_000, "limit": 1})),
        call("read", &json!({"filePath": "blob:000000000000"})),
        "say Done.".to_owned(),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, AUTO);
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let results = tool_results(&env);
    assert!(results[0].len() < 22 << 10, "{}", results[0].len());
    assert!(results[0].contains(&format!("read or grep {name}]")), "{name}: {}", results[0]);
    assert!(results[0].starts_with("1\n2\n") && results[0].ends_with("300000\n(exit code 0)"));
    assert!(results[1].contains("12345"), "{}", results[1]);
    assert!(results[2].contains("150000: 150000"), "{}", results[2]);
    assert!(results[3].contains("There is no stored output blob:000000000000"), "{}", results[3]);
}
