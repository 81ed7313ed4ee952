//! `windlass import` of whole set-ups: a session works with the imported agents, commands, hooks,
//! skills, rules and settings, without any change by hand.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use support::TestEnv;
use windlass_testkit::{ModelScript, ScriptedModel};

/// A file of a set-up: its path in the home folder and its text. Scripts are executable.
type SetupFile = (&'static str, &'static str);

const GREET_SKILL: &str = "---\nname: greet\ndescription: Greets the user\n---\n\
     Run `sh scripts/greet.sh NAME` in the folder of this skill.\n";

const OPENCODE_FILES: [SetupFile; 10] = [
    (
        ".config/opencode/opencode.jsonc",
        r##"{
  "$schema": "https://opencode.ai/config.json",
  "theme": "dusk",
  "keybinds": { "leader": "ctrl+x", "session_new": "<leader>n", "model_list": "ctrl+k", "input_delete": "delete,shift+delete" },
  "permission": {
    "read": { "*": "allow", "*.env.*": "deny", "*.env.example": "allow" },
    "bash": { "*": "ask", "git push*": "deny", "git push --dry-run*": "allow", "touch *": "allow", "sh *": "allow" },
    "webfetch": { "https://docs.rs/*": "allow" },
    "todowrite": "allow"
  },
  "provider": {
    "local": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "http://127.0.0.1:9/v1", "timeout": 90000 },
      "models": { "m": { "options": { "reasoningEffort": "low" }, "variants": { "deep": { "reasoningEffort": "high" } } } }
    }
  },
  "formatter": {
    "gofmt": { "command": ["gofmt", "-w", "$FILE"], "extensions": [".go"] },
    "upper": { "command": ["sed", "-i", "s/small/LARGE/", "$FILE"], "extensions": [".cap"] }
  },
  "agent": {
    "build": { "temperature": 0.3 },
    "planner": { "description": "Plans", "mode": "subagent", "prompt": "{file:./prompts/planner.txt}", "maxSteps": 5 }
  },
  "command": { "s:find": { "description": "Finds", "template": "{file:./prompts/find.md}\n\n$ARGUMENTS" } },
  "mcp": { "docs": { "type": "remote", "url": "https://docs.example.com/mcp", "enabled": false } },
  "plugin": ["some-plugin@latest"]
}"##,
    ),
    (".config/opencode/prompts/planner.txt", "You plan in small steps.\n"),
    (".config/opencode/prompts/find.md", "Find the cause of this."),
    (
        ".config/opencode/themes/dusk.json",
        r##"{"defs": {"plum": "#aa66cc"}, "theme": {"primary": "plum", "error": {"dark": "#ff0000", "light": "#990000"}}}"##,
    ),
    (
        ".config/opencode/agent/reviewer.md",
        "---\ndescription: Reviews changes\nmode: subagent\nhidden: true\npermission:\n  bash:\n    \"*\": deny\n    \"git status*\": allow\n---\nYou review.\n",
    ),
    (
        ".config/opencode/command/review.md",
        "---\ndescription: Reviews a file\nagent: reviewer\n---\nReview $1 with care.\n",
    ),
    (".config/opencode/skills/greet/SKILL.md", GREET_SKILL),
    (".config/opencode/skills/greet/scripts/greet.sh", "#!/bin/sh\necho \"good day, $1\"\n"),
    (
        ".config/opencode/plugin/guard.js",
        "export const Guard = async () => ({\n  \"tool.execute.before\": async (input, output) => {\n    if (input.tool === \"bash\" && output.args.command.includes(\"terraform\")) throw new Error(\"ask the operators first\");\n  },\n});\n",
    ),
    (".config/opencode/AGENTS.md", "Answer in one sentence.\n"),
];

const CLAUDE_FILES: [SetupFile; 8] = [
    (
        ".claude/settings.json",
        r#"{
  "permissions": {
    "allow": ["Bash(touch:*)", "Read(src/**)", "WebFetch(domain:docs.rs)"],
    "ask": ["Bash(git push:*)"],
    "deny": ["Read(./secrets/**)", "Bash(curl:*)"]
  },
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "sh ~/.claude/hooks/guard.sh", "timeout": 10 }] },
      { "matcher": "Edit", "hooks": [{ "type": "command", "command": "npx some-linter" }] },
      { "matcher": "Write", "hooks": [{ "type": "command", "command": "~/.claude/hooks/gone.sh" }] }
    ]
  },
  "theme": "dark"
}"#,
    ),
    (
        ".claude/hooks/guard.sh",
        "#!/bin/sh\n. \"$(dirname \"$0\")/lib/words.sh\"\nif grep -q \"$FORBIDDEN\"; then echo 'ask the operators first' >&2; exit 2; fi\n",
    ),
    (".claude/hooks/lib/words.sh", "FORBIDDEN=terraform\n"),
    (
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews changes\ntools: Read, Grep, Bash\nmodel: sonnet\ncolor: blue\n---\nYou review.\n",
    ),
    (
        ".claude/commands/review.md",
        "---\ndescription: Reviews a file\nargument-hint: FILE\nallowed-tools: Read, Bash, Skill, Task\n---\nReview $1 with care.\n",
    ),
    (".claude/skills/greet/SKILL.md", GREET_SKILL),
    (".claude/skills/greet/scripts/greet.sh", "#!/bin/sh\necho \"good day, $1\"\n"),
    (
        ".claude.json",
        r#"{"mcpServers": {"docs": {"type": "http", "url": "https://docs.example.com/mcp"}}, "numStartups": 4}"#,
    ),
];

/// Creates an environment with a set-up in its home folder.
fn env_with_setup(files: &[SetupFile], replies: &[&str]) -> TestEnv {
    let env = TestEnv::outside_temp_folder(replies, "");
    for (name, text) in files {
        let path = env.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        if name.ends_with(".sh") {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    env
}

/// Returns the settings of the user's config.
fn config(env: &TestEnv) -> Value {
    let text = std::fs::read_to_string(env.config_folder().join("windlass.jsonc")).unwrap();
    windlass_project::parse_config_object(&text).unwrap()
}

/// Returns the results of all calls of the last session.
fn results(env: &TestEnv) -> Vec<String> {
    let facts = env.facts();
    let settled = facts.iter().filter(|fact| fact["kind"] == "call_settled");
    settled.map(|fact| fact["outcome"].to_string()).collect()
}

/// Works with an imported set-up: a hook denies a command and passes another, a subagent answers,
/// and the script of a skill runs.
fn work_with_setup(env: &TestEnv) {
    let (code, _, stderr) = env.run(&["run", "--mode", "auto", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let results = results(env);
    assert!(results[0].contains("ask the operators first"), "{results:#?}\n{stderr}");
    assert!(results[0].contains("\"denied\""), "{results:#?}");
    assert!(results[1].contains("\"completed\""), "{results:#?}\n{stderr}");
    assert!(env.root().join("made.txt").exists());
    assert!(results[2].contains("Run `sh scripts/greet.sh NAME`"), "{results:#?}");
    assert!(results[3].contains("looks fine"), "{results:#?}\n{stderr}");
    let facts = env.facts();
    let started = facts.iter().find(|fact| fact["kind"] == "subagent_started").unwrap();
    assert_eq!(started["agent"], "reviewer");
    run_skill_script(env, &results[2]);

    let (code, _, stderr) = env.run(&["run", "--command", "review", "src/a.rs"]);
    assert_eq!(code, 0, "{stderr}");
    let prompt = env.model.requests().last().unwrap()["messages"].to_string();
    assert!(prompt.contains("Review src/a.rs with care."), "{prompt}");
    assert!(!stderr.contains("has no effect"), "a rule without effect was imported: {stderr}");
}

/// Runs the script of a skill in the folder that the skill's text names.
fn run_skill_script(env: &TestEnv, skill: &str) {
    let home = env.home().canonicalize().unwrap().display().to_string();
    let start = skill.find(&format!("{home}/.cache/")).unwrap_or_else(|| panic!("{skill}"));
    let is_end = |c: char| c.is_whitespace() || "\"'`\\<>;,)".contains(c);
    let folder = skill[start..].split(is_end).next().unwrap().trim_end_matches(['.', '/']);
    let call = format!("call bash {{\"command\": \"sh {folder}/scripts/greet.sh you\"}}");
    let model = ScriptedModel::start(ModelScript::new([call.as_str(), "say Done."]));
    let config = env.config_folder().join("windlass.jsonc");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace(&env.model.url(), &model.url())).unwrap();
    let (code, _, stderr) = env.run(&["run", "--mode", "auto", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let results = results(env);
    assert!(results[0].contains("good day, you"), "{results:#?}\n{stderr}");
    std::fs::write(&config, text).unwrap();
}

/// The replies of the model; the subagent gets the same ones.
const SESSION: [&str; 5] = [
    "call bash {\"command\": \"terraform apply\"}",
    "call bash {\"command\": \"touch made.txt\"}",
    "call skill {\"name\": \"greet\"}",
    "call task {\"description\": \"review\", \"prompt\": \"Review it\", \"subagent_type\": \"reviewer\"}",
    "say It looks fine.",
];

#[test]
fn an_opencode_setup_works_after_the_import() {
    let env = env_with_setup(&OPENCODE_FILES, &SESSION);
    let (code, report, stderr) = env.run(&["import", "opencode", "--yes"]);
    assert_eq!(code, 0, "{report}{stderr}");
    for line in [
        "permission.read \"*.env.*\": deny except [\"*.env.example\"]",
        "permission.bash \"git push*\": deny except [\"git push --dry-run*\"]",
        "permission.webfetch \"docs.rs\": allow",
        "tui.colors.accent: #aa66cc",
        "tui.colors.error: #ff0000",
        "tui.keys.model: ctrl+k",
        "agent.build.options: {\"temperature\":0.3}",
        "formatter.upper: sed -i s/small/LARGE/ $FILE",
        "formatter.gofmt: built in, and used where the project has a config for it",
        "keybinds.session_new \"<leader>n\": a key after a leader key is not supported",
        "plugin: some-plugin",
        "plugins in the list do not run yet: review and add them with `windlass plugin add`",
        "agents/planner.md  from agent.planner",
        "commands/s-find.md  from command.s:find",
    ] {
        assert!(report.contains(line), "{line} is missing in {report}");
    }
    let config = config(&env);
    assert_eq!(config["provider"]["local"]["timeouts"]["headers"], 90);
    let model = &config["provider"]["local"]["models"]["m"];
    assert_eq!(model["options"]["effort"], "low");
    assert_eq!(model["variants"]["deep"]["effort"], "high");
    let agent = |name: &str| {
        std::fs::read_to_string(env.config_folder().join(format!("agents/{name}.md"))).unwrap()
    };
    assert!(agent("planner").contains("You plan in small steps."), "{}", agent("planner"));
    assert!(agent("planner").contains("steps: 5"), "{}", agent("planner"));
    assert!(agent("reviewer").contains("\"except\":[\"git status*\"]"), "{}", agent("reviewer"));

    let (_, explained, _) = env.run(&["permission", "explain", "git push"]);
    assert!(explained.starts_with("deny"), "{explained}");
    let (_, explained, _) = env.run(&["permission", "explain", "touch x"]);
    assert!(explained.starts_with("allow"), "{explained}");
    work_with_setup(&env);
}

#[test]
fn a_claude_setup_works_after_the_import() {
    let env = env_with_setup(&CLAUDE_FILES, &SESSION);
    let (code, report, stderr) = env.run(&["import", "claude", "--yes"]);
    assert_eq!(code, 0, "{report}{stderr}");
    for line in [
        "hooks.PreToolUse: Bash → sh ~/.local/share/windlass-hooks/guard.sh",
        "~/.local/share/windlass-hooks/lib/words.sh  from ~/.claude/hooks/lib/words.sh",
        "hooks.PreToolUse: Edit → npx some-linter: `npx` downloads packages",
        "hooks.PreToolUse: Write → ~/.claude/hooks/gone.sh: its script .claude/hooks/gone.sh does not exist",
        "permission.bash \"touch *\": allow",
        "permission.read \"secrets/*\": deny",
        "mcp.docs: at https://docs.example.com/mcp",
        "agents/reviewer.md  from ~/.claude/agents/reviewer.md",
    ] {
        assert!(report.contains(line), "{line} is missing in {report}");
    }
    work_with_setup(&env);
}

#[test]
fn an_imported_formatter_formats_a_copy() {
    let env = env_with_setup(
        &OPENCODE_FILES,
        &["call write {\"filePath\": \"a.cap\", \"content\": \"small\\n\"}", "say Done."],
    );
    std::fs::write(env.root().join("windlass.jsonc"), "{}").unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    assert_eq!(env.run(&["import", "opencode", "--yes"]).0, 0);
    let (code, _, stderr) = env.run(&["run", "--mode", "auto", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("a.cap").unwrap(), "LARGE\n", "{stderr}");
}

#[test]
fn hooks_of_a_project_are_copied_to_a_folder_that_trust_covers() {
    let env = TestEnv::new(&["call bash {\"command\": \"terraform apply\"}", "say Done."], "");
    let folder = env.root().join(".claude/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("guard.sh"), "echo 'ask the operators first' >&2; exit 2\n")
        .unwrap();
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash",
        "hooks": [{"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh"}]}]}}"#;
    std::fs::write(env.root().join(".claude/settings.json"), settings).unwrap();
    let (code, report, stderr) = env.run(&["import", "claude", "--project", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(report.contains("sh \"$CLAUDE_PROJECT_DIR\"/.windlass/hooks/guard.sh"), "{report}");
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let (_, _, stderr) = env.run(&["run", "--mode", "auto", "go"]);
    assert!(results(&env)[0].contains("ask the operators first"), "{:?} {stderr}", results(&env));
}
