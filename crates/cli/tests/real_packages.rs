//! Real packages of other authors: each OpenCode plugin is added from npm by one command, each
//! skill is unpacked from npm or PyPI by one command, and both are used in a session with a
//! scripted model. A row that cannot work says why, and fails once it does work.
//!
//! The tests are ignored, because they need a package registry. `cargo xtask soak` runs them. They
//! need node, npm, pip and git. `WINDLASS_PACKAGE_NETWORK` lists more hosts or addresses for
//! `sandbox.network`, separated by commas: on a network where the registries have addresses that are
//! not public.
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

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{TestEnv, decode_output};
use windlass_testkit::{ModelScript, ScriptedModel};

/// An effect that only the package can have.
enum Effect {
    /// The request with this number contains the text.
    Request(usize, &'static str),
    /// No request contains the text.
    NoRequestWith(&'static str),
    /// The model is not asked, the exit code is 2, and standard error contains the text.
    NoRequest(&'static str),
    /// The project's file contains the text.
    ProjectFile(&'static str, &'static str),
    /// A file in the plugin's data folder contains the text.
    DataFile(&'static str, &'static str),
    /// The file is not in the project.
    NoProjectFile(&'static str),
    /// The package is not added, and standard error contains the text.
    NotAdded(&'static str),
}

use Effect::{DataFile, NoProjectFile, NoRequest, NoRequestWith, NotAdded, ProjectFile, Request};

struct PluginTrial {
    package: &'static str,
    version: &'static str,
    used: &'static str,
    /// `works`, or the reason why it does not work here.
    result: &'static str,
    files: &'static [(&'static str, &'static str)],
    replies: &'static [&'static str],
    arguments: &'static [&'static str],
    effects: &'static [Effect],
}

const WORKS: &str = "works";

const VIBEGUARD_CONFIG: &str = r#"{"enabled": true, "placeholder_prefix": "__VG_",
    "patterns": {"keywords": [{"value": "project-falcon", "category": "NAME"}], "regex": []}}"#;
const SKILL: &str = "---\nname: hello-world\ndescription: Greets the world in a friendly manner.\n---\nSay ahoy to all.\n";

const PLUGINS: &[PluginTrial] = &[
    PluginTrial {
        package: "cc-safety-net",
        version: "2.4.5",
        used: "its hook denies `git reset --hard`",
        result: WORKS,
        files: &[("README.md", "not committed\n")],
        replies: &["call bash {\"command\": \"git reset --hard\"}", "say Done."],
        arguments: &["clean up"],
        effects: &[
            Request(1, "BLOCKED by CC Safety Net"),
            ProjectFile("README.md", "not committed"),
        ],
    },
    PluginTrial {
        package: "opencode-vibeguard",
        version: "0.1.0",
        used: "its messages hook hides a name from the model",
        result: WORKS,
        files: &[("vibeguard.config.json", VIBEGUARD_CONFIG)],
        replies: &["say Done."],
        arguments: &["rename project-falcon"],
        effects: &[Request(0, "rename __VG_NAME_"), NoRequestWith("project-falcon")],
    },
    PluginTrial {
        package: "opencode-beads",
        version: "0.3.2",
        used: "its command /bd-ready",
        result: WORKS,
        files: &[],
        replies: &["say Done."],
        arguments: &["--command", "bd-ready"],
        effects: &[Request(0, "find tasks that are ready to work on")],
    },
    PluginTrial {
        package: "opencode-architect",
        version: "0.7.1",
        used: "its agent opencode-architect",
        result: WORKS,
        files: &[],
        replies: &["say Done."],
        arguments: &["--agent", "opencode-architect", "hello"],
        effects: &[Request(0, "Your work is done when the right subagent is running")],
    },
    PluginTrial {
        package: "@different-ai/opencode-browser",
        version: "4.6.1",
        used: "its tool browser_version",
        result: WORKS,
        files: &[],
        replies: &["call browser_version {}", "say Done."],
        arguments: &["which version?"],
        effects: &[Request(1, r#"\"version\":\"4.6.1\""#)],
    },
    PluginTrial {
        package: "@zenobius/opencode-background",
        version: "0.1.0-alpha.2",
        used: "its tools start and list a background process",
        result: WORKS,
        files: &[],
        replies: &[
            "call createBackgroundProcess {\"command\": \"echo from the background\", \"name\": \"x\"}",
            "call bash {\"command\": \"sleep 1\"}",
            "call listBackgroundProcesss {}",
            "say Done.",
        ],
        arguments: &["start it"],
        effects: &[Request(3, r#"\"outputStream\":[\"from the background\"]"#)],
    },
    PluginTrial {
        package: "opencode-conductor-plugin",
        version: "1.32.0",
        used: "its command /conductor-setup",
        result: WORKS,
        files: &[],
        replies: &["say Done."],
        arguments: &["--command", "conductor-setup"],
        effects: &[Request(0, "using the Conductor methodology")],
    },
    PluginTrial {
        package: "opencode-skills",
        version: "0.1.7",
        used: "its tool for a skill of the project, and the message that it adds",
        result: WORKS,
        files: &[(".opencode/skills/hello-world/SKILL.md", SKILL)],
        replies: &["call skills_hello_world {}", "say Done."],
        arguments: &["greet"],
        effects: &[Request(1, "Launching skill: hello-world"), Request(1, "Say ahoy to all.")],
    },
    PluginTrial {
        package: "opencode-swarm",
        version: "5.1.0",
        used: "its tool detect_domains",
        result: WORKS,
        files: &[],
        replies: &[
            "call detect_domains {\"text\": \"PowerShell on Windows behind a firewall\"}",
            "say Done.",
        ],
        arguments: &["which domains?"],
        effects: &[Request(1, "Detected domains: windows, powershell, network")],
    },
    PluginTrial {
        package: "opencode-stt",
        version: "0.1.0",
        used: "its hook handles /dictate without the model",
        result: "its hook runs, shown as a denial; recording needs the program Handy",
        files: &[],
        replies: &[],
        arguments: &["--command", "dictate"],
        effects: &[NoRequest("__DICTATE_HANDLED__")],
    },
    PluginTrial {
        package: "opencode-tts",
        version: "2.0.0",
        used: "its hook handles /tts-off without the model",
        result: "works, but shown as a denial with exit code 2",
        files: &[],
        replies: &[],
        arguments: &["--command", "tts-off"],
        effects: &[NoRequest("Command handled by TTS plugin")],
    },
    PluginTrial {
        package: "opencode-wakatime",
        version: "1.3.9",
        used: "its log, in the plugin's own home folder",
        result: "its event hook writes its log; its program cannot be downloaded in the sandbox",
        files: &[],
        replies: &["call write {\"filePath\": \"a.txt\", \"content\": \"x\"}", "say Done."],
        arguments: &["write a file"],
        effects: &[DataFile(".wakatime/opencode.log", "WakaTime CLI could not be installed")],
    },
    PluginTrial {
        package: "opencode-supermemory",
        version: "2.0.10",
        used: "its tool supermemory",
        result: "its tool answers that it needs an account",
        files: &[],
        replies: &["call supermemory {\"mode\": \"help\"}", "say Done."],
        arguments: &["help"],
        effects: &[Request(1, "SUPERMEMORY_API_KEY not set")],
    },
    PluginTrial {
        package: "opencode-pty",
        version: "0.1.3",
        used: "its tools pty_list and pty_spawn",
        result: "pty_list works; pty_spawn needs a library of Bun",
        files: &[],
        replies: &[
            "call pty_list {}",
            "call pty_spawn {\"command\": \"echo\", \"args\": [\"hi\"], \"description\": \"x\"}",
            "say Done.",
        ],
        arguments: &["start it"],
        effects: &[
            Request(1, "No active PTY sessions."),
            Request(2, "Cannot read properties of undefined (reading 'symbols')"),
        ],
    },
    PluginTrial {
        package: "oc-mnemoria",
        version: "0.3.5",
        used: "its tool memory_stats",
        result: "needs the program mnemoria",
        files: &[],
        replies: &["call memory_stats {}", "say Done."],
        arguments: &["what do you know?"],
        effects: &[Request(1, "spawn mnemoria ENOENT")],
    },
    PluginTrial {
        package: "opencode-transcript",
        version: "0.0.3",
        used: "its event hook, which writes a file to the project",
        result: "writes nothing, because the session has no title for it, and the project is read-only",
        files: &[(".gitignore", ".opencode/transcripts\n")],
        replies: &["say Done."],
        arguments: &["hello"],
        effects: &[NoProjectFile(".opencode/transcripts")],
    },
    PluginTrial {
        package: "opencode-checkpoint",
        version: "1.0.0",
        used: "nothing",
        result: "its exports are not a plugin, so it is refused",
        files: &[],
        replies: &[],
        arguments: &[],
        effects: &[NotAdded(
            "dev.windlass/tools/opencode-checkpoint.mjs: cannot be loaded: opencode-checkpoint says: Invalid time value",
        )],
    },
    PluginTrial {
        package: "@tarquinen/opencode-dcp",
        version: "3.1.14",
        used: "nothing",
        result: "larger than 16 MiB or 1,000 files with its dependencies",
        files: &[],
        replies: &[],
        arguments: &[],
        effects: &[NotAdded("it is larger than the limit for plugins")],
    },
];

/// Returns the config: the model, all permissions, and the network.
fn config(url: &str) -> String {
    let extra = std::env::var("WINDLASS_PACKAGE_NETWORK").unwrap_or_default();
    let hosts: Vec<&str> =
        std::iter::once("registries").chain(extra.split(',').filter(|it| !it.is_empty())).collect();
    let model = json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    json!({"model": "scripted/m", "provider": {"scripted": model}, "mode": "auto",
        "permission": {"*": "allow"}, "sandbox": {"network": hosts}})
    .to_string()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs a command line in a shell, with the environment of the test.
fn shell(folder: &Path, line: &str) {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", line]).current_dir(folder);
    let (code, out, stderr) = decode_output(&command.output().unwrap());
    assert_eq!(code, 0, "{line}\n{out}\n{stderr}");
}

/// An environment with a project that is a git repository with one commit.
fn new_env() -> TestEnv {
    let env = TestEnv::outside_temp_folder(&[], "");
    shell(
        &env.root(),
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm first",
    );
    env.write_config(&config(&env.model.url()));
    env
}

/// A finished `windlass run`.
struct SessionRun {
    code: i32,
    stderr: String,
    requests: Vec<Value>,
}

impl SessionRun {
    /// Runs a session with a new scripted model.
    fn new(env: &TestEnv, replies: &[&str], arguments: &[&str]) -> SessionRun {
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        env.write_config(&config(&model.url()));
        let (code, _, stderr) = env.run(&[&["run"], arguments].concat());
        SessionRun { code, stderr, requests: model.requests() }
    }

    fn require_text(&self, request: usize, text: &str) -> Result<(), String> {
        let found = self.requests.get(request).map(Value::to_string).unwrap_or_default();
        let found_tail: String = found.chars().rev().take(1500).collect();
        let found_tail: String = found_tail.chars().rev().collect();
        match found.contains(text) {
            true => Ok(()),
            false => Err(format!(
                "request {request} of {} has no `{text}`: …{found_tail}\n{}",
                self.requests.len(),
                self.stderr
            )),
        }
    }
}

/// Finds a file below a folder by the end of its path.
fn find_file(folder: &Path, end: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => find_file(&path, end),
        false => path.ends_with(end).then_some(path),
    })
}

fn try_plugin(trial: &PluginTrial) -> Result<(), String> {
    let env = new_env();
    let package = format!("npm:{}@{}", trial.package, trial.version);
    let (code, _, stderr) = env.run(&["plugin", "add", "--yes", &package]);
    if let [NotAdded(reason)] = trial.effects {
        let listed = env.run(&["plugin", "list"]).1;
        return match code != 0 && stderr.contains(reason) && listed.is_empty() {
            true => Ok(()),
            false => Err(format!("added, or for another reason: {listed}{stderr}")),
        };
    }
    if code != 0 {
        return Err(format!("not added: {stderr}"));
    }
    for (file, text) in trial.files {
        write(&env.root().join(file), text);
    }
    let run = SessionRun::new(&env, trial.replies, trial.arguments);
    for effect in trial.effects {
        let is_there = match effect {
            Request(number, text) => {
                run.require_text(*number, text)?;
                run.code == 0
            }
            NoRequestWith(text) => !run.requests.iter().any(|it| it.to_string().contains(text)),
            NoRequest(text) => {
                run.requests.is_empty() && run.code == 2 && run.stderr.contains(text)
            }
            ProjectFile(file, text) => env.read(file).is_some_and(|it| it.contains(text)),
            DataFile(file, text) => {
                let found = find_file(&env.home().join(".local/share/windlass-plugins/data"), file);
                let found = found.and_then(|path| std::fs::read_to_string(path).ok());
                found.is_some_and(|it| it.contains(text))
            }
            NoProjectFile(file) => run.code == 0 && !env.root().join(file).exists(),
            NotAdded(_) => false,
        };
        if !is_there {
            return Err(format!("an effect is missing (exit code {}): {}", run.code, run.stderr));
        }
    }
    Ok(())
}

/// A table of the trial, which is printed and fails at its end.
#[derive(Default)]
struct TrialTable {
    failures: Vec<String>,
}

impl TrialTable {
    fn add(&mut self, row: [&str; 4], outcome: Result<(), String>) {
        let [package, version, used, result] = row;
        let result = match &outcome {
            Ok(()) => result,
            Err(_) => "FAILED",
        };
        println!("| {package} | {version} | {used} | {result} |");
        self.failures.extend(outcome.err().map(|reason| format!("{package}: {reason}")));
    }

    fn finish(self) {
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n\n"));
    }
}

#[test]
#[ignore = "downloads packages; `cargo xtask soak` runs it"]
fn opencode_plugins_from_npm_are_added_and_used() {
    let mut table = TrialTable::default();
    println!("| package | version | used | result |\n|---|---|---|---|");
    for trial in PLUGINS {
        let outcome = try_plugin(trial);
        table.add([trial.package, trial.version, trial.used, trial.result], outcome);
    }
    table.finish();
}

/// A skill: the package, the version, its folder in the package, and its name.
type SkillRow = (&'static str, &'static str, &'static str, &'static str);

const SKILLS: &[SkillRow] = &[
    ("@playwright/cli", "0.1.22", "skills/playwright-cli", "playwright-cli"),
    ("@ant-design/cli", "6.6.5", "skills/antd", "antd"),
    ("apify-cli", "1.10.0", "skills/apify", "apify-cli"),
    ("@slidev/cli", "52.20.1", "skills/slidev", "slidev"),
    ("chrome-devtools-mcp", "1.11.0", "skills/debug-optimize-lcp", "debug-optimize-lcp"),
    ("chrome-devtools-mcp", "1.11.0", "skills/a11y-debugging", "a11y-debugging"),
    ("@tanstack/ai", "0.58.0", "skills/ai-core", "ai-core"),
    ("@tanstack/router-core", "1.171.39", "skills/router-core", "router-core"),
    ("@durable-streams/client", "0.2.7", "skills/forking", "forking"),
    ("browser-use", "0.8.0", "skills/browser-use", "browser-use"),
    ("trigger.dev", "4.8.3", "skills/trigger-authoring-tasks", "trigger-authoring-tasks"),
    ("openskills", "1.5.0", "examples/my-first-skill", "my-first-skill"),
    ("@letta-ai/letta-code", "0.25.9", "skills/context_doctor", "context-doctor"),
    ("claude-skills", "1.0.2", "skills/check-navigation-button", "check-navigation-button"),
    ("nanobot-ai", "0.3.5", "nanobot/skills/weather", "weather"),
    ("nanobot-ai", "0.3.5", "nanobot/skills/github", "github"),
    ("nanobot-ai", "0.3.5", "nanobot/skills/cron", "cron"),
];

/// Skills whose script is run: with its arguments, and a text that it prints or writes.
const SKILL_SCRIPTS: &[(SkillRow, &str, &str)] = &[
    (
        ("nanobot-ai", "0.3.5", "nanobot/skills/skill-creator", "skill-creator"),
        "python3 FOLDER/scripts/init_skill.py release-notes --path made && head -3 made/release-notes/SKILL.md",
        "name: release-notes",
    ),
    (
        ("claude-skills", "1.0.2", "skills/skill-creator", "skill-creator"),
        "python3 FOLDER/scripts/init_skill.py release-notes --path made && head -3 made/release-notes/SKILL.md",
        "name: release-notes",
    ),
    (
        ("@google/gemini-cli", "0.61.0", "bundle/builtin/skill-creator", "skill-creator"),
        "mkdir made && node FOLDER/scripts/init_skill.cjs release-notes --path made && head -3 made/release-notes/SKILL.md",
        "name: release-notes",
    ),
    (
        ("clawdbot", "2026.1.24", "skills/model-usage", "model-usage"),
        "python3 FOLDER/scripts/model_usage.py --help",
        "usage: model_usage.py",
    ),
];

/// Unpacks the folder of a skill into the user's skills folder. Packages with a module are in npm's
/// form, `nanobot-ai` is a Python package.
fn unpack_skill(env: &TestEnv, (package, version, folder, _): SkillRow) -> PathBuf {
    let skills = env.home().join(".claude/skills");
    std::fs::create_dir_all(&skills).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let skills_text = skills.display();
    let line = match package {
        "nanobot-ai" => format!(
            "pip install --quiet --no-deps --target . {package}=={version} && cp -r {folder} {skills_text}"
        ),
        _ => format!(
            "tar -xzf \"$(npm pack --silent {package}@{version} | tail -1)\" -C {skills_text} \
             --strip-components={} package/{folder}",
            folder.split('/').count()
        ),
    };
    shell(scratch.path(), &line);
    skills.join(Path::new(folder).file_name().unwrap())
}

/// Loads a skill in a session. Returns the folder that the model is told.
fn load_skill(env: &TestEnv, row: SkillRow) -> Result<String, String> {
    let folder = unpack_skill(env, row);
    let text = std::fs::read_to_string(folder.join("SKILL.md")).unwrap();
    let last_line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap().trim();
    let call = format!("call skill {{\"name\": \"{}\"}}", row.3);
    let run = SessionRun::new(env, &[&call, "say Done."], &["use the skill"]);
    let expected = json!(last_line).to_string();
    run.require_text(1, expected.trim_matches('"'))?;
    let messages = run.requests[1]["messages"].as_array().cloned().unwrap_or_default();
    let result =
        messages.last().and_then(|it| it["content"].as_str()).unwrap_or_default().to_owned();
    let start = format!("Skill {}. Its folder is `", row.3);
    let rest = result.lines().next().and_then(|line| line.strip_prefix(&start));
    let folder = rest.and_then(|rest| rest.split('`').next());
    folder.map(str::to_owned).ok_or(result)
}

#[test]
#[ignore = "downloads packages; `cargo xtask soak` runs it"]
fn skills_from_npm_and_pypi_are_loaded_and_their_scripts_run() {
    let mut table = TrialTable::default();
    println!("| package | version | used | result |\n|---|---|---|---|");
    for row in SKILLS {
        let outcome = load_skill(&new_env(), *row).map(drop);
        table.add([row.0, row.1, &format!("skill {}", row.3), WORKS], outcome);
    }
    for (row, command, expected) in SKILL_SCRIPTS {
        let env = new_env();
        let outcome = load_skill(&env, *row).and_then(|folder| {
            let command = command.replace("FOLDER", &folder);
            let call = format!("call bash {}", json!({ "command": command }));
            SessionRun::new(&env, &[&call, "say Done."], &["run it"]).require_text(1, expected)
        });
        let used = format!("skill {}, and its script in the sandbox", row.3);
        table.add([row.0, row.1, &used, WORKS], outcome);
    }
    // The limit of a `SKILL.md` is 64 KiB.
    let row = ("@shopify/ai-toolkit", "1.8.4", "skills/shopify-hydrogen", "shopify-hydrogen");
    let env = new_env();
    unpack_skill(&env, row);
    let run = SessionRun::new(&env, &["say Done."], &["use the skill"]);
    let is_skipped =
        run.stderr.contains("shopify-hydrogen") && run.stderr.contains("larger than 64 kB");
    let outcome = is_skipped.then_some(()).ok_or_else(|| format!("not skipped: {}", run.stderr));
    table.add(
        [row.0, row.1, "skill shopify-hydrogen", "larger than 64 kB, left out with a note"],
        outcome,
    );
    table.finish();
}
