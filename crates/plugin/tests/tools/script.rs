//! Tools in JavaScript and TypeScript, through the host.

use crate::yard::{Yard, run};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use windlass_plugin::script::{HOST, Runtimes};

fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Node on the search path, if it is there.
fn node() -> Option<(PathBuf, String)> {
    let path = std::env::var_os("PATH")?;
    let node =
        std::env::split_paths(&path).map(|folder| folder.join("node")).find(|n| n.is_file())?;
    let version = version(&node)?;
    Some((node, version))
}

/// The tool of a script, started as `Runtimes` says.
async fn scripted(name: &str, text: &str, node: (PathBuf, String)) -> Yard {
    let runtimes = Runtimes { node: Some(node), bun: None };
    let (program, words) = runtimes.choose(Path::new(name)).unwrap();
    let mut yard = Yard::silent(name, text, Some((program, Vec::new())));
    let folder = yard.path("../cache/host");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    for (name, text) in HOST {
        std::fs::write(folder.join(name), text).unwrap();
    }
    yard.before(words.into_iter().map(PathBuf::from).chain([folder.join(HOST[0].0)]).collect());
    let said = yard.program.describe().await.unwrap();
    yard.admit(&said);
    yard
}

pub fn the_hosts_own_tests_pass() {
    let Some((node, version)) = node() else { return println!("there is no node") };
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("host");
    assert_eq!(HOST[0].1, std::fs::read_to_string(host.join("host.mjs")).unwrap());
    let tests = host.join("test/host.test.mjs");
    let output = Command::new(node).arg("--test").arg(tests).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let end: Vec<&str> = said.lines().rev().take(9).collect();
    println!("node {version}: {}", end.iter().rev().cloned().collect::<Vec<_>>().join(" "));
    let failed: Vec<&str> = said.lines().filter(|line| line.contains("not ok")).collect();
    assert!(output.status.success(), "{failed:#?}\n{said}");
}

pub fn a_script_exports_several_tools() {
    let Some(node) = node() else { return println!("there is no node") };
    run(async {
        let text = r#"
import { tool } from "@opencode-ai/plugin";
const numbers = { a: tool.schema.number(), b: tool.schema.number().describe("The other one") };
console.log("this is for nobody");
export const add = tool({ description: "Adds.", args: numbers,
  async execute({ a, b }, context) { console.log("adding"); return `${a + b} in ${context.directory.length > 0}`; } });
export const divide = { ...tool({ description: "Divides.", args: numbers,
  async execute({ a, b }) { if (b === 0) throw new Error("not by zero"); return String(a / b); } }), access: { read: [] } };
export default tool({ description: "Says hello.", args: {}, async execute() { return "hello"; } });
"#;
        let yard = scripted("math.mjs", text, node).await;
        assert_eq!(yard.runtime.registry.ids(), ["math", "math_add", "math_divide"]);
        assert_eq!(yard.text("math", json!({})).await, "hello");
        assert_eq!(yard.text("math_add", json!({"a": 1, "b": 2})).await, "3 in true");
        assert_eq!(yard.text("math_divide", json!({"a": 6, "b": 3})).await, "2");
        let failed = yard.text("math_divide", json!({"a": 6, "b": 0})).await;
        assert!(failed.contains("not by zero"), "{failed}");
        let wrong = yard.text("math_add", json!({"a": 1})).await;
        assert!(wrong.starts_with("failed: ") && wrong.contains('b'), "{wrong}");
    });
}

pub fn a_script_with_types_is_called() {
    let node = std::env::var_os("WINDLASS_NODE22").map(PathBuf::from);
    let Some(node) = node.and_then(|node| Some((node.clone(), version(&node)?))) else {
        return println!("WINDLASS_NODE22 names no node");
    };
    run(async {
        let text = r#"
import { tool } from "@opencode-ai/plugin";
type Words = { text: string };
export default tool({ description: "Turns a text around.", args: { text: tool.schema.string() },
  async execute({ text }: Words): Promise<string> { return [...text].reverse().join(""); } });
"#;
        let yard = scripted("turn.ts", text, node).await;
        assert_eq!(yard.text("turn", json!({"text": "abc"})).await, "cba");
    });
}
