//! Panels about servers, permissions, plugins and usage, and what is copied or exported.

use crate::support::TestEnv;
use crate::tui_driver::{ENTER, ESC, open_tui, send_prompt, wait_until_ready};
use base64::Engine as _;
use std::time::Duration;

/// An MCP server that counts its starts in the project.
pub(crate) const SERVER: &str = r#"import json, sys
open(sys.argv[1], "a").write("started\n")
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if ask.get("method") == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif ask.get("method") == "tools/list":
        answer = {"result": {"tools": [{"name": "look", "description": "Looks at a ship.",
                                        "inputSchema": {"type": "object"}}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)
"#;

fn starts(env: &TestEnv) -> usize {
    env.read("starts").unwrap_or_default().lines().count()
}

#[test]
fn an_mcp_server_is_shown_with_its_tools_and_restarted() {
    let settings = r#""mcp": {"ship": {"command": ["python3", "{folder}/server.py", "{folder}/starts"]}},
        "mode": "auto""#;
    let env = TestEnv::new(&["say Hello."], settings);
    std::fs::write(env.root().join("server.py"), SERVER).unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "hello");
    terminal.wait_text("Hello.");
    send_prompt(&terminal, "/mcp");
    terminal.wait_text("MCP servers");
    terminal.wait_text("running");
    assert_eq!(starts(&env), 1);
    terminal.press(ENTER);
    terminal.wait_text("ship_look  Looks at a ship.");
    terminal.press(ESC);
    terminal.wait_text("Ctrl+R restart");
    terminal.press("\x12");
    for _ in 0..200 {
        if starts(&env) == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(starts(&env), 2, "{}", terminal.text());
    terminal.wait_text("running");
}

#[test]
fn a_code_block_is_copied_and_usage_is_shown() {
    let reply = "say Run this:\\n\\n```sh\\ncargo test\\n```\\nThat is all.";
    let (env, terminal) = open_tui(&[reply], "");
    send_prompt(&terminal, "how");
    terminal.wait_text("That is all.");
    send_prompt(&terminal, "/copy");
    terminal.wait_text("Copy to the clipboard");
    terminal.press("\x1b[B");
    terminal.press(ENTER);
    terminal.wait_text("Copied to the clipboard: code sh");
    let encoded = base64::engine::general_purpose::STANDARD.encode("cargo test\n");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(raw.contains(&format!("]52;c;{encoded}")), "the clipboard is set over OSC 52");
    terminal.press("/stats 1");
    terminal.wait_text("stats 1");
    terminal.press(ENTER);
    terminal.wait_text("Usage of today");
    terminal.wait_text("scripted/m");
    terminal.press(ESC);
    let (code, out, stderr) = env.run(&["stats", "--days", "1"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(out.starts_with("Total\n") && out.contains("scripted/m"), "{out}");
    let (_, json, _) = env.run(&["stats", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["total"]["sessions"], &json["total"]["requests"]), (&1.into(), &1.into()));
}

#[test]
fn an_unknown_key_of_a_model_is_named_once_and_the_provider_works() {
    let env = TestEnv::new(&["say Hello."], "");
    let file = env.home().join(".config/windlass/windlass.jsonc");
    let config = std::fs::read_to_string(file).unwrap();
    let known = r#""models": {"m": {"#;
    assert!(config.contains(known), "{config}");
    let unknown =
        r#""npm": "x", "models": {"m": {"tool_call": true, "cost": {"input": 3, "output": 15}"#;
    let config = config.replacen(known, unknown, 1);
    env.write_config(&config);
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    terminal.wait_text("`tool_call` is not");
    send_prompt(&terminal, "hello");
    terminal.wait_text("Hello.");
    send_prompt(&terminal, "/cost");
    terminal.wait_text("Cost");
    assert!(!terminal.text().contains("Price unknown"), "{}", terminal.text());
}
