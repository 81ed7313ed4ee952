//! Tests of tools in JavaScript and TypeScript, run by the script host.

use crate::support::{TestEnv, run};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_plugin::script_runtime::{SCRIPT_HOST_FILES, ScriptRuntimes};

fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns Node from `PATH` and its version, if installed.
fn node() -> Option<(PathBuf, String)> {
    let path = std::env::var_os("PATH")?;
    let node =
        std::env::split_paths(&path).map(|folder| folder.join("node")).find(|n| n.is_file())?;
    let version = version(&node)?;
    Some((node, version))
}

/// Creates a tool from a script, started as `ScriptRuntimes` says.
async fn script_tool(name: &str, text: &str, node: (PathBuf, String)) -> TestEnv {
    let runtimes = ScriptRuntimes { node: Some(node), bun: None };
    let (program, arguments) = runtimes.choose_runtime(Path::new(name)).unwrap();
    let mut env = TestEnv::without_describe(name, text, Some((program, Vec::new())));
    let folder = env.path("../cache/host");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    for (name, text) in SCRIPT_HOST_FILES {
        std::fs::write(folder.join(name), text).unwrap();
    }
    env.set_leading_arguments(
        arguments
            .into_iter()
            .map(PathBuf::from)
            .chain([folder.join(SCRIPT_HOST_FILES[0].0)])
            .collect(),
    );
    let description = env.program.describe().await.unwrap();
    env.register_tools(&description);
    env
}

pub fn the_tests_of_the_script_host_pass() {
    let Some((node, version)) = node() else { return println!("node is not installed") };
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("host");
    assert_eq!(SCRIPT_HOST_FILES[0].1, std::fs::read_to_string(host.join("host.mjs")).unwrap());
    let tests = host.join("test/host.test.mjs");
    let output = Command::new(node).arg("--test").arg(tests).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let tail: Vec<&str> = stdout.lines().rev().take(9).collect();
    println!("node {version}: {}", tail.iter().rev().cloned().collect::<Vec<_>>().join(" "));
    let failed: Vec<&str> = stdout.lines().filter(|line| line.contains("not ok")).collect();
    assert!(output.status.success(), "{failed:#?}\n{stdout}");
}

pub fn a_script_exports_several_tools() {
    let Some(node) = node() else { return println!("node is not installed") };
    run(async {
        let text = r#"
import { tool } from "@opencode-ai/plugin";
const numbers = { a: tool.schema.number(), b: tool.schema.number().describe("The other one") };
console.log("this is ignored");
export const add = tool({ description: "Adds.", args: numbers,
  async execute({ a, b }, context) { console.log("adding"); return `${a + b} in ${context.directory.length > 0}`; } });
export const divide = { ...tool({ description: "Divides.", args: numbers,
  async execute({ a, b }) { if (b === 0) throw new Error("not by zero"); return String(a / b); } }), access: { read: [] } };
export default tool({ description: "Says hello.", args: {}, async execute() { return "hello"; } });
"#;
        let env = script_tool("math.mjs", text, node).await;
        assert_eq!(env.runtime.registry.names(), ["math", "math_add", "math_divide"]);
        assert_eq!(env.text("math", json!({})).await, "hello");
        assert_eq!(env.text("math_add", json!({"a": 1, "b": 2})).await, "3 in true");
        assert_eq!(env.text("math_divide", json!({"a": 6, "b": 3})).await, "2");
        let failed = env.text("math_divide", json!({"a": 6, "b": 0})).await;
        assert!(failed.contains("not by zero"), "{failed}");
        let wrong = env.text("math_add", json!({"a": 1})).await;
        assert!(wrong.starts_with("failed: ") && wrong.contains('b'), "{wrong}");
    });
}

pub fn a_typescript_tool_is_called() {
    let node = std::env::var_os("WINDLASS_NODE22").map(PathBuf::from);
    let Some(node) = node.and_then(|node| Some((node.clone(), version(&node)?))) else {
        return println!("WINDLASS_NODE22 is not set to a node executable");
    };
    run(async {
        let text = r#"
import { tool } from "@opencode-ai/plugin";
type Words = { text: string };
export default tool({ description: "Turns a text around.", args: { text: tool.schema.string() },
  async execute({ text }: Words): Promise<string> { return [...text].reverse().join(""); } });
"#;
        let env = script_tool("turn.ts", text, node).await;
        assert_eq!(env.text("turn", json!({"text": "abc"})).await, "cba");
    });
}
