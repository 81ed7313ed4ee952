//! MCP servers of the config: their tools are called in a session under the same rules as others.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use support::TestEnv;

const ROGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/rogue.py");

fn settings(behavior: &str, more: &str) -> String {
    format!(
        r#""mcp": {{"r": {{"command": ["python3", "{{folder}}/rogue.py", "{behavior}"]}}}}{more}"#
    )
}

fn create_env(replies: &[&str], behavior: &str, more: &str) -> TestEnv {
    let env = TestEnv::new(replies, &settings(behavior, more));
    std::fs::copy(ROGUE, env.root().join("rogue.py")).unwrap();
    env
}

#[test]
fn a_servers_tool_is_called_by_the_user_and_by_a_model() {
    let replies = [r#"call r_echo {"text": "hello"}"#, "say Done."];
    let env = create_env(&replies, "good", r#", "permission": {"r_*": "allow"}"#);
    let (code, out, stderr) = env.run(&["tool", "call", "r_echo", r#"{"text": "one"}"#]);
    assert!(code == 0 && out.contains("echo: one"), "{out}\n{stderr}");
    let (_, listed, _) = env.run(&["tool", "list", "--json"]);
    assert!(listed.contains("r_picture"), "the tools of a known server are not listed: {listed}");
    let (code, out, stderr) = env.run(&["run", "Say hello"]);
    assert!(code == 0 && out.contains("Done."), "{out}\n{stderr}");
    let facts = serde_json::to_string(&env.facts()).unwrap();
    assert!(facts.contains("echo: hello") && facts.contains(r#""tool":"r_echo""#), "{facts}");
}

#[test]
fn instructions_of_a_server_are_in_the_system_prompt_unless_its_tools_are_denied() {
    for (rules, expected) in [(r#"{"r_*": "allow"}"#, true), (r#"{"r_*": "deny"}"#, false)] {
        let env =
            create_env(&["say Done."], "instructions", &format!(r#", "permission": {rules}"#));
        let (code, out, stderr) = env.run(&["mcp", "list", "--check"]);
        assert_eq!(code, 0, "{out}\n{stderr}");
        let (code, out, stderr) = env.run(&["run", "Say hello"]);
        assert!(code == 0 && out.contains("Done."), "{out}\n{stderr}");
        let facts = serde_json::to_string(&env.facts()).unwrap();
        let text = r#"<mcp_server name=\"r\">\nThe server says about its tools:\nCall echo first."#;
        assert_eq!(facts.contains(text), expected, "{rules}: {facts}");
    }
}

#[test]
fn a_tool_of_a_server_is_refused_in_a_batch_and_hooks_run_around_it() {
    let replies = [
        r#"call batch {"tool_calls": [{"tool": "r_echo", "parameters": {"text": "one"}}]}"#,
        r#"call r_echo {"text": "two"}"#,
        "say Done.",
    ];
    let hook = r#", "permission": {"r_*": "allow"}, "hooks": {"before_tool": [{"name": "three", "match": "r_echo",
        "command": "echo '{\"arguments\": {\"text\": \"three\"}}'"}]}"#;
    let env = create_env(&replies, "good", hook);
    env.run(&["mcp", "list", "--check"]);
    let (code, out, stderr) = env.run(&["run", "Say hello"]);
    assert!(code == 0 && out.contains("Done."), "{out}\n{stderr}");
    let facts = serde_json::to_string(&env.facts()).unwrap();
    assert!(facts.contains("r_echo cannot be part of a batch; call it directly"), "{facts}");
    assert!(facts.contains(r"echo: three\n[arguments changed by three]"), "{facts}");
}

/// A server that writes into its data folder and elsewhere, and says what worked.
const WRITER: &str = r#"import json, os, sys
def write(path):
    try:
        with open(path, "a") as file:
            file.write("x")
        return "written"
    except OSError:
        return "refused"
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if ask["method"] == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif ask["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "write", "inputSchema": {"type": "object"}}]}}
    elif ask["method"] == "tools/call":
        data = os.environ["DATA"]
        said = [sys.argv[1] == data + "/db", write(data + "/db"), os.path.getsize(data + "/db"),
                write(os.path.dirname(data) + "/other"), write(sys.argv[2])]
        answer = {"result": {"content": [{"type": "text", "text": json.dumps(said)}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)
"#;

#[test]
fn a_server_writes_in_its_data_folder_and_nowhere_else() {
    let server = r#"{"command": ["python3", "{folder}/writer.py", "{data}/db", "{folder}/x"],
        "write": false,
        "env": {"DATA": "{data}"}}"#;
    let settings = format!(r#""mcp": {{"s": {server}}}, "permission": {{"s_*": "allow"}}"#);
    let env = TestEnv::new(&[], &settings);
    std::fs::write(env.root().join("writer.py"), WRITER).unwrap();
    // The sandbox replaces `/tmp`.
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // The data of the first session is there in the second.
    for size in [1, 2] {
        let mut command = env.windlass(&["tool", "call", "s_write", "{}"]);
        let output = command.env("XDG_DATA_HOME", data.path()).output().unwrap();
        let (code, out, stderr) = support::decode_output(&output);
        let expected = format!(r#"[true, "written", {size}, "refused", "refused"]"#);
        assert!(code == 0 && out.contains(&expected), "{out}\n{stderr}");
    }
}

#[test]
fn without_a_user_to_approve_a_servers_tool_is_not_called() {
    let env = create_env(&[], "good", "");
    let (code, out, stderr) = env.run(&["tool", "call", "r_echo", r#"{"text": "one"}"#]);
    assert!(code != 0 && !out.contains("echo: one"), "{out}\n{stderr}");
}

#[test]
fn a_server_that_fails_to_start_is_reported_and_blocks_nothing() {
    let env = create_env(&["say Hello."], "exit_at_start", "");
    let (code, out, _) = env.run(&["run", "Hello"]);
    assert!(code == 0 && out.contains("Hello."), "{out}");
    let (_, _, stderr) = env.run(&["tool", "call", "read", r#"{"path": "README.md"}"#]);
    assert!(stderr.contains("exited with code 7") && stderr.contains("license"), "{stderr}");
}

/// A server with two hundred tools. Each returns its name and arguments.
const LARGE_SERVER: &str = r#"import json, sys
THINGS = ("ticket invoice meeting branch deployment customer photo recipe song parcel contract sensor "
          "rocket lecture garden bridge novel vaccine auction glacier").split()
VERBS = "create close list rename archive assign export merge watch rate".split()
TOOLS = [{"name": f"{verb}_{thing}",
          "description": f"Use this to {verb} a {thing}. It works on one {thing} at a time.",
          "inputSchema": {"type": "object", "required": ["id"], "properties": {
              "id": {"type": "string", "description": f"Which {thing} is meant."},
              "note": {"type": "string", "description": "What others should know of it."}}}}
         for thing in THINGS for verb in VERBS]
for line in sys.stdin:
    ask = json.loads(line)
    method = ask.get("method")
    if "id" not in ask:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif method == "tools/list":
        answer = {"result": {"tools": TOOLS}}
    elif method == "tools/call":
        said = f"{ask['params']['name']} {ask['params']['arguments']['id']}"
        answer = {"result": {"content": [{"type": "text", "text": said}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)
"#;

#[test]
fn two_hundred_tools_of_a_server_cost_little_and_can_be_found_and_called() {
    let replies = [
        r#"call tool_search {"query": "archive the glacier"}"#,
        r#"call call_tool {"name": "s_archive_glacier", "arguments": {"id": "g7"}}"#,
        "say Done.",
    ];
    let server = r#""mcp": {"s": {"command": ["python3", "{folder}/many.py"]}}"#;
    let with = TestEnv::new(&replies, &format!(r#"{server}, "permission": {{"s_*": "allow"}}"#));
    std::fs::write(with.root().join("many.py"), LARGE_SERVER).unwrap();
    let (code, out, stderr) = with.run(&["mcp", "tools", "s"]);
    assert!(code == 0 && out.contains("s: 200 tools"), "{out}\n{stderr}");
    let (code, out, stderr) = with.run(&["run", "Archive glacier g7"]);
    assert!(code == 0 && out.contains("Done."), "{out}\n{stderr}");
    let without = TestEnv::new(&["say Done."], "");
    assert_eq!(without.run(&["run", "Archive glacier g7"]).0, 0);

    let requests = with.model.requests();
    let size = |request: &serde_json::Value| request["tools"].to_string().len();
    let more = size(&requests[0]) - size(&without.model.requests()[0]);
    println!("{more} bytes more for 200 tools, about {} tokens", more.div_ceil(4));
    assert!(more.div_ceil(4) <= 2_000, "{more} bytes");
    assert!(!requests[0]["tools"].to_string().contains("archive_glacier"));
    let found = requests[1]["messages"].to_string();
    assert!(found.contains("s_archive_glacier"), "the tool is not found: {found}");
    let facts = serde_json::to_string(&with.facts()).unwrap();
    assert!(facts.contains("archive_glacier g7"), "the tool is not called: {facts}");
    // Each request begins with the previous one.
    for pair in requests.windows(2) {
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
        let [before, after] = [0, 1].map(|at| pair[at]["messages"].as_array().unwrap());
        assert_eq!(before.as_slice(), &after[..before.len()]);
    }
}
