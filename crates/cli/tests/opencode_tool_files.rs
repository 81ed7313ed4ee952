//! Tool files in the forms that OpenCode's documents show, saved in a project as they stand there:
//! `Tool.define` with an object and with a function, a default export, and `export const tool`. A
//! model works with them in a session.
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
use support::TestEnv;

/// Zod schemas with a nested object, progress through `ctx.metadata`, and a result with a title.
const MYTOOL: &str = r#"// tool/mytool.ts
import { z } from "zod"
import { Tool } from "../tool"

async function doSomething(input: string) {
  return `did ${input}`
}

export const MyTool = Tool.define("mytool", {
  description: "Does something of its own.",
  parameters: z.object({
    input: z.string().describe("The thing to do"),
    options: z.object({
      verbose: z.boolean().optional()
    }).optional()
  }),
  async execute(params, ctx) {
    const result = await doSomething(params.input)
    ctx.metadata({ title: "at work" })
    return {
      title: "finished",
      output: params.options?.verbose ? `${result}, verbosely` : result,
      metadata: { processed: true }
    }
  }
})
"#;

/// The description and the schema come from a function that waits for something.
const ASYNCTOOL: &str = r#"import { z } from "zod"
import { Tool } from "../tool"

async function loadConfig() {
  return { name: "engine", actions: ["go", "stop"] as const }
}

export const AsyncTool = Tool.define("asynctool", async () => {
  const config = await loadConfig()

  return {
    description: `Controls the ${config.name}.`,
    parameters: z.object({
      action: z.enum(config.actions)
    }),
    async execute(params, ctx) {
      return { title: params.action, output: `${config.name}: ${params.action}`, metadata: {} }
    }
  }
})
"#;

/// The name of the file is the name of the tool, and the result is a text.
const DATABASE: &str = r#"// tools/my-database.ts
import { z } from "zod"

const db = { query: async (sql: string) => [{ sql, rows: 2 }] }

export default {
  description: "Query the project database",
  args: {
    query: z.string().describe("SQL query to execute"),
  },
  async execute(args, ctx) {
    const result = await db.query(args.query)
    return JSON.stringify(result)
  },
}
"#;

/// Two tools of a plugin, under the names that their author gave them.
const JIRA: &str = r#"import { z } from "zod"

export const tool = {
  "jira-create": {
    description: "Create a JIRA issue",
    args: { title: z.string() },
    execute: async (args) => `created ${args.title}`,
  },
  "jira-search": {
    description: "Search JIRA issues",
    args: { text: z.string().optional() },
    execute: async (args) => `nothing about ${args.text ?? "anything"}`,
  },
}
"#;

const FILES: [(&str, &str); 4] = [
    ("tool/mytool.ts", MYTOOL),
    ("tool/asynctool.ts", ASYNCTOOL),
    ("tools/my-database.ts", DATABASE),
    ("plugin/jira.ts", JIRA),
];

/// The calls of the model, and what it reads next.
const CALLS: [(&str, &str, &str); 6] = [
    ("mytool", r#"{"input": "x", "options": {"verbose": true}}"#, "did x, verbosely"),
    ("asynctool", r#"{"action": "stop"}"#, "engine: stop"),
    ("asynctool", r#"{"action": "fly"}"#, "action"),
    ("my-database", r#"{"query": "select 1"}"#, r#"[{"sql":"select 1","rows":2}]"#),
    ("jira-create", r#"{"title": "A bug"}"#, "created A bug"),
    ("jira-search", "{}", "nothing about anything"),
];

fn save_files(folder: &std::path::Path) {
    for (file, text) in FILES {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn replies() -> Vec<String> {
    let calls = CALLS.iter().map(|(tool, arguments, _)| format!("call {tool} {arguments}"));
    calls.chain(["say Done.".to_owned()]).collect()
}

#[test]
fn a_model_works_with_the_tool_files_of_a_project() {
    for folder in [".windlass", ".opencode"] {
        let names = ["mytool", "asynctool", "my-database", "jira-create", "jira-search"];
        let rules: Vec<String> =
            names.iter().map(|name| format!("\"{name}\": \"allow\"")).collect();
        let settings = format!("\"permission\": {{{}}}", rules.join(", "));
        let replies = replies();
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let env = TestEnv::outside_temp_folder(&replies, &settings);
        save_files(&env.root().join(folder));
        let (code, out, stderr) = env.run(&["trust", "--yes"]);
        assert_eq!(code, 0, "{out}{stderr}");
        let (code, out, stderr) = env.run(&["run", "use the tools"]);
        assert!(code == 0 && out.contains("Done."), "{folder}: {out}{stderr}");

        let requests = env.model.requests();
        assert_eq!(requests.len(), CALLS.len() + 1, "{folder}");
        let tools = requests[0]["tools"].as_array().unwrap();
        let definition = |name: &str| {
            let found = tools.iter().find(|tool| tool["function"]["name"] == name);
            found.unwrap_or_else(|| panic!("{folder}: {name} is not listed: {tools:#?}"))["function"]
                .clone()
        };
        assert_eq!(definition("mytool")["description"], "Does something of its own.");
        let parameters = &definition("mytool")["parameters"];
        assert_eq!(parameters["properties"]["input"]["description"], "The thing to do");
        let verbose = "/properties/options/properties/verbose/type";
        assert_eq!(parameters.pointer(verbose), Some(&json!("boolean")), "{parameters}");
        assert_eq!(parameters["required"], json!(["input"]));
        assert_eq!(definition("asynctool")["description"], "Controls the engine.");
        let actions = &definition("asynctool")["parameters"]["properties"]["action"]["enum"];
        assert_eq!(actions, &json!(["go", "stop"]));
        definition("my-database");
        definition("jira-search");

        let last = requests.last().unwrap()["messages"].as_array().unwrap().clone();
        let results: Vec<&Value> = last.iter().filter(|it| it["role"] == "tool").collect();
        assert_eq!(results.len(), CALLS.len(), "{folder}: {last:#?}");
        for ((tool, arguments, expected), result) in CALLS.iter().zip(results) {
            let text = result["content"].to_string();
            let expected = json!(expected).to_string();
            let expected = expected.trim_matches('"');
            assert!(text.contains(expected), "{folder}: {tool} {arguments}: {text}");
        }
        let facts = env.facts();
        let settled: Vec<&Value> =
            facts.iter().filter(|fact| fact["kind"] == "call_settled").collect();
        let first = settled[0].pointer("/outcome/output").unwrap();
        assert_eq!(first["title"], "finished", "{first}");
        assert_eq!(first["metadata"]["processed"], true, "{first}");
        let invalid = settled[2].to_string();
        assert!(!invalid.contains("engine: fly"), "an invalid action reached the tool: {invalid}");
    }
}

#[test]
fn the_tool_files_of_a_project_that_is_not_trusted_do_not_run() {
    let env = TestEnv::outside_temp_folder(&["call mytool {\"input\": \"x\"}", "say Done."], "");
    save_files(&env.root().join(".opencode"));
    env.run(&["run", "use the tools"]);
    let requests = env.model.requests();
    assert!(!requests[0].to_string().contains("mytool"), "{}", requests[0]);
    assert!(!requests[1].to_string().contains("did x"), "{}", requests[1]);
}
