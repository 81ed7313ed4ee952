//! Agents with the real binary and tools: a subagent has its parent's restrictions, and its
//! permission requests reach the user.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use support::TestEnv;
use windlass_testkit::{ModelScript, ScriptedModel};

/// A [`TestEnv`] with a subagent `helper` that has its own model and rules that allow everything.
struct SubagentTestEnv {
    env: TestEnv,
    _model: ScriptedModel,
}

impl SubagentTestEnv {
    fn new(helper: &[&str], model: &str, settings: &str) -> SubagentTestEnv {
        let task = r#"{"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
        SubagentTestEnv::with_task(task, helper, model, settings)
    }

    fn with_task(task: &str, helper: &[&str], model: &str, settings: &str) -> SubagentTestEnv {
        let env = TestEnv::new(&[&format!("call task {task}"), "say Over.", "say Over."], "");
        let child = ScriptedModel::start(ModelScript::new(helper.iter().copied()));
        let provider = |url: String| {
            format!(
                r#"{{"api": "openai-chat", "base_url": "{url}", "api_key": "k", "models": {{"{model}": {{}}}}}}"#
            )
        };
        env.write_config(&format!(
            r#"{{"model": "scripted/m", {settings}, "provider": {{"scripted": {}, "child": {}}}}}"#,
            provider(env.model.url()),
            provider(child.url())
        ));
        let agents = env.home().join(".config/windlass/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = format!(
            "---\ndescription: Helps\nmode: subagent\nmodel: child/{model}\ntools:\n  \"*\": true\n\
             permission:\n  \"*\": allow\n---\nYou help.\n"
        );
        std::fs::write(agents.join("helper.md"), text).unwrap();
        SubagentTestEnv { env, _model: child }
    }

    /// Returns the facts of the subagent's session.
    fn subagent_facts(&self) -> Vec<Value> {
        let (_, list, _) = self.env.run(&["session", "list", "--all", "--json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        let child = list.as_array().unwrap().iter().find(|row| row["parent"].is_string());
        let id = child.unwrap()["session"].as_str().unwrap().to_owned();
        let (_, log, _) = self.env.run(&["session", "export", &id]);
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Returns the outcomes of settled calls as JSON.
fn outcomes_of(facts: &[Value]) -> Vec<String> {
    let settled = facts.iter().filter(|fact| fact["kind"] == "call_settled");
    settled.map(|fact| fact["outcome"].to_string()).collect()
}

/// Without a user the session ends with its turn: a subagent in the background would be stopped, and
/// the model would not hear of it.
#[test]
fn without_a_user_no_subagent_runs_in_the_background() {
    let task =
        r#"{"description": "d", "prompt": "do it", "subagent_type": "helper", "background": true}"#;
    let env = SubagentTestEnv::with_task(task, &["say Found it."], "m", r#""permission": "allow""#);
    assert_eq!(env.env.run(&["run", "p"]).0, 0);
    let outcomes = outcomes_of(&env.env.facts());
    assert!(outcomes[0].contains("unknown field `background`"), "{outcomes:?}");
    assert!(!env.env.model.requests()[0]["tools"].to_string().contains("told when it is done"));
}

#[test]
fn a_subagent_is_told_its_own_mode() {
    let task = r#"call task {"description": "d", "prompt": "look", "subagent_type": "explore"}"#;
    let env = TestEnv::new(&[task, "say Seen.", "say Over."], "");
    assert_eq!(env.run(&["run", "--mode", "auto", "p"]).0, 0);
    let modes: Vec<String> = env.model.requests().iter().map(mode_line).collect();
    let [first, of_subagent @ .., last] = &*modes else { panic!("{modes:?}") };
    assert!(first.starts_with("Mode: auto") && last.starts_with("Mode: auto"), "{modes:?}");
    assert!(!of_subagent.is_empty(), "{modes:?}");
    assert!(of_subagent.iter().all(|mode| mode.starts_with("Mode: plan")), "{modes:?}");
}

/// Returns the line of the system prompt about the mode.
fn mode_line(request: &Value) -> String {
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    prompt.lines().find(|line| line.starts_with("Mode: ")).unwrap().to_owned()
}

#[test]
fn tools_that_a_rule_denies_are_denied_to_subagents() {
    let patch = r#"{"patchText": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"}"#;
    let write = r#"{"filePath": "new.txt", "content": "x"}"#;
    let edit = r#"{"filePath": "README.md", "oldString": "small", "newString": "large"}"#;
    let bash = r#"{"command": "touch new.txt", "description": "d"}"#;
    for (model, tool, arguments, keys) in [
        ("m", "read", r#"{"filePath": "README.md"}"#, vec!["read"]),
        ("m", "glob", r#"{"pattern": "*"}"#, vec!["read", "glob"]),
        ("m", "grep", r#"{"pattern": "small"}"#, vec!["read", "grep"]),
        ("m", "write", write, vec!["edit", "write"]),
        ("m", "edit", edit, vec!["edit"]),
        ("gpt-5", "apply_patch", patch, vec!["edit", "apply_patch"]),
        ("m", "bash", bash, vec!["bash"]),
        ("m", "job", r#"{"id": 1, "action": "kill"}"#, vec!["bash", "job"]),
    ] {
        for key in keys {
            let rules = format!(r#""permission": {{"*": "allow", "{key}": "deny"}}"#);
            let call = format!("call {tool} {arguments}");
            let subagent_env = SubagentTestEnv::new(&[&call, "say Over."], model, &rules);
            let name = format!("scripted/{model}");
            let (code, _, stderr) = subagent_env.env.run(&["run", "go", "--yes", "--model", &name]);
            assert_eq!(code, 0, "{tool} under {key}: {stderr}");
            let outcomes = outcomes_of(&subagent_env.subagent_facts());
            assert_eq!(outcomes.len(), 1, "{tool} under {key}: {stderr}");
            assert!(outcomes[0].contains("not permitted"), "{tool} under {key}: {outcomes:?}");
            assert_eq!(subagent_env.env.read("new.txt"), None, "{tool} under {key}");
            assert!(subagent_env.env.read("README.md").unwrap().contains("small"));
        }
    }
}

#[test]
fn permission_requests_of_a_subagent_reach_the_user_and_are_denied_without_one() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let settings = r#""mode": "ask""#;
    let subagent_env = SubagentTestEnv::new(&[write, "say Written."], "m", settings);
    let (_, _, stderr) = subagent_env.env.run(&["run", "go"]);
    assert!(
        stderr.contains("requested by a subagent") && stderr.contains("No user is available"),
        "{stderr}"
    );
    assert_eq!(subagent_env.env.read("new.txt"), None);
    let facts = subagent_env.subagent_facts();
    assert_eq!(facts.last().unwrap()["end"]["end"], "completed", "the subagent continues");
    assert!(outcomes_of(&facts)[0].contains("no user is there to approve it"), "{facts:?}");
    let subagent_env = SubagentTestEnv::new(&[write, "say Written."], "m", settings);
    let (code, _, stderr) = subagent_env.env.run(&["run", "go", "--yes"]);
    assert_eq!((code, subagent_env.env.read("new.txt").as_deref()), (0, Some("x")), "{stderr}");
    let (_, answer, _) = subagent_env.env.run(&["run", "--continue", "again", "--output", "json"]);
    assert!(!answer.contains("Written."), "the subagent's session was resumed: {answer}");
}

#[test]
fn the_restrictions_of_the_chosen_agent_apply() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let env = TestEnv::new(&[write, "say Over."], r#""permission": "allow""#);
    let (code, _, stderr) = env.run(&["run", "go", "--agent", "plan", "--yes"]);
    assert_eq!((code, env.read("new.txt")), (0, None), "{stderr}");
    assert_eq!(env.facts()[0]["agent"], "plan");
    let system = env.model.requests()[0].to_string();
    assert!(system.contains("You write plans; you change nothing."), "{system}");
    for agent in ["explore", "nobody"] {
        let (code, _, stderr) = env.run(&["run", "go", "--agent", agent]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(agent), "{stderr}");
    }
}

/// Returns the verdict of `permission explain` on a command of an agent.
fn explain(env: &TestEnv, agent: &str, command: &str) -> Value {
    let arguments = ["permission", "explain", command, "--agent", agent, "--output", "json"];
    let (code, out, stderr) = env.run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn an_agent_of_the_user_allows_what_the_rules_ask_about() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let touch = r#"call bash {"command": "touch by-bash.txt", "description": "d"}"#;
    let deny = r#"call bash {"command": "mv README.md x", "description": "d"}"#;
    let secret = r#"call read {"filePath": ".env"}"#;
    let git = r#"call write {"filePath": ".git/hooks/pre-commit", "content": "x"}"#;
    let steps = [write, touch, deny, secret, git, "say Over."];
    let settings = r#""mode": "ask", "permission": {"edit": "ask", "bash": {"mv *": "deny"}}"#;
    let own = "---\ndescription: Works\npermission:\n  \"*\": allow\n  edit: allow\n  \
               bash: {\"touch *\": allow, \"mv *\": allow}\n---\nWork.\n";
    let env = TestEnv::new(&steps, settings);
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("worker.md"), own).unwrap();
    std::fs::write(env.root().join(".env"), "KEY=secret-value").unwrap();
    let (code, _, stderr) = env.run(&["run", "go", "--agent", "worker"]);
    assert_eq!(code, 3, "the secret file needs an approval: {stderr}");
    let outcomes = outcomes_of(&env.facts());
    assert_eq!(env.read("new.txt").as_deref(), Some("x"), "{outcomes:?}");
    assert!(env.read("by-bash.txt").is_some(), "{outcomes:?}");
    assert!(env.read("README.md").is_some(), "a deny of the config wins: {outcomes:?}");
    assert!(!outcomes[3].contains("secret-value"), "{outcomes:?}");
    assert_eq!(env.read(".git/hooks/pre-commit"), None, "{outcomes:?}");
    assert_eq!(explain(&env, "worker", "touch x")["verdict"], "allow");
    assert_eq!(explain(&env, "worker", "mv a b")["verdict"], "deny");
    assert_eq!(explain(&env, "build", "touch x")["verdict"], "ask");
    let rules = explain(&env, "worker", "touch x")["rules"].to_string();
    assert!(rules.contains("bash touch * = allow (agent worker)"), "{rules}");
    // As a subagent it has what its caller has.
    let task = r#"call task {"description": "d", "prompt": "go", "subagent_type": "worker"}"#;
    let env = TestEnv::new(&[task, write, "say Over.", "say Over."], settings);
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("worker.md"), own).unwrap();
    let (_, _, stderr) = env.run(&["run", "go"]);
    assert!(stderr.contains("No user is available"), "{stderr}");
    assert_eq!(env.read("new.txt"), None);
}

#[test]
fn an_agent_of_a_project_opens_nothing() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let text = "---\ndescription: Works\npermission:\n  edit: allow\n---\nWork.\n";
    let env = TestEnv::new(&[write, "say Over.", write, "say Over."], r#""mode": "ask""#);
    std::fs::create_dir_all(env.root().join(".windlass/agents")).unwrap();
    std::fs::write(env.root().join(".windlass/agents/worker.md"), text).unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let (_, _, stderr) = env.run(&["run", "go", "--agent", "worker"]);
    assert_eq!(env.read("new.txt"), None, "{stderr}");
    // A project that changes an agent of the user takes what its rules opened.
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("worker.md"), text).unwrap();
    let (_, _, stderr) = env.run(&["run", "go", "--agent", "worker"]);
    assert_eq!(env.read("new.txt"), None, "{stderr}");
}

/// The agent in the book runs `git diff`, asks about other commands and changes nothing.
#[test]
fn the_example_in_the_book_works() {
    let book = include_str!("../../../docs/book/src/agents.md");
    let (_, rest) = book.split_once("```markdown\n").unwrap();
    let (agent, _) = rest.split_once("```").unwrap();
    let agent = agent.replace("model: anthropic/claude-sonnet-4-5\n", "");
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let env = TestEnv::new(&[write, "say Over."], r#""mode": "ask""#);
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("review.md"), agent).unwrap();
    let git = explain(&env, "review", "git diff --stat HEAD~1");
    assert_eq!(git["verdict"], "allow", "{git}");
    let test = explain(&env, "review", "cargo test --workspace");
    assert_eq!(test["verdict"], "allow", "{test}");
    assert_eq!(explain(&env, "review", "make all")["verdict"], "ask");
    assert_eq!(explain(&env, "review", "touch README.md")["verdict"], "deny");
    let (code, _, stderr) = env.run(&["run", "go", "--agent", "review"]);
    assert_eq!((code, env.read("new.txt")), (0, None), "{stderr}");
    let tools = env.model.requests()[0]["tools"].to_string();
    let is_offered = |name: &str| tools.contains(&format!("\"name\":\"{name}\""));
    assert!(is_offered("bash") && !is_offered("write") && !is_offered("edit"), "{tools}");
}

#[test]
fn agents_are_listed_and_those_of_a_project_only_after_trust() {
    let env = TestEnv::new(&[], "");
    let agents = env.root().join(".windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("theirs.md"), "---\ndescription: Theirs\n---\nHi.\n").unwrap();
    let bad = "---\ndescription: Bad\npermission:\n  edit: maybe\n---\n";
    std::fs::write(agents.join("bad.md"), bad).unwrap();
    let names = |list: &str| -> Vec<String> {
        list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let (_, list, _) = env.run(&["agent", "list"]);
    assert_eq!(names(&list), ["build", "explore", "general", "plan"]);
    let (code, _, stderr) = env.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    let (_, list, stderr) = env.run(&["agent", "list"]);
    assert_eq!(names(&list), ["build", "explore", "general", "plan", "theirs"]);
    assert!(stderr.contains("bad.md") && stderr.contains("the agent is skipped"), "{stderr}");
}

/// Options of one agent do not reach another, a prompt may replace ours, and the steps of an agent
/// are limited.
#[test]
fn an_agent_has_options_a_prompt_and_a_limit_of_its_own() {
    let replies = ["call glob {\"pattern\": \"*\"}", "say One.", "say Two.", "say Three."];
    let env = TestEnv::new(&replies, r#""agent": {"build": {"options": {"top_p": 0.5}}}"#);
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let own = "---\nmode: primary\ntemperature: 0.25\noptions:\n  max_output: 77\n  extra: {seed: 7}\n\
               steps: 1\nprompt_mode: replace\n---\nYou are a pirate.\n";
    std::fs::write(agents.join("pirate.md"), own).unwrap();
    let (code, _, stderr) = env.run(&["run", "--agent", "pirate", "hi"]);
    assert_eq!(code, 4, "the second request is over the limit: {stderr}");
    let requests = env.model.requests();
    assert_eq!(requests.len(), 1);
    let first = requests[0].to_string();
    assert!(first.contains("You are a pirate.") && !first.contains("You are Windlass"), "{first}");
    assert!(first.contains("<environment>"), "{first}");
    assert_eq!(requests[0]["temperature"], 0.25);
    assert_eq!(requests[0]["seed"], 7);
    assert!(requests[0].get("top_p").is_none(), "{first}");
    let (code, _, stderr) = env.run(&["run", "hi"]);
    assert_eq!(code, 0, "{stderr}");
    let second = &env.model.requests()[1];
    assert_eq!(second["top_p"], 0.5);
    assert!(second.get("seed").is_none() && second.get("temperature").is_none(), "{second}");
    assert!(second.to_string().contains("You are Windlass"), "{second}");
}

#[test]
fn a_run_may_offer_fewer_tools() {
    let env =
        TestEnv::new(&["say One.", "say Two.", "call bash {\"command\": \"true\"}", "say No."], "");
    let names = |index: usize| -> Vec<String> {
        let request = &env.model.requests()[index];
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let (_, _, stderr) = env.run(&["run", "--tools", "read,gl*,grepp", "hi"]);
    assert_eq!(names(0), ["glob", "read"]);
    assert!(stderr.contains("no tool is named grepp") && stderr.contains("grep"), "{stderr}");
    env.run(&["run", "--no-tool", "bash", "hi"]);
    assert!(!names(1).contains(&"bash".to_owned()) && names(1).contains(&"read".to_owned()));
    // A tool that is not offered does not run either.
    let env = TestEnv::new(&["call bash {\"command\": \"true\"}", "say No."], "");
    env.run(&["run", "--no-tool", "bash", "--yes", "hi"]);
    let last = env.model.requests()[1].to_string();
    assert!(last.contains("may not use bash"), "{last}");
}

#[test]
fn extra_instructions_apply_to_one_run_of_a_resumed_session() {
    let env = TestEnv::new(&["say One.", "say Two.", "say Three."], "");
    env.run(&["run", "hi"]);
    env.run(&["run", "--continue", "--system", "Answer in French.", "again"]);
    env.run(&["run", "--continue", "again"]);
    let last_message = |index: usize| {
        let request = &env.model.requests()[index];
        request["messages"].as_array().unwrap().last().unwrap().to_string()
    };
    assert!(last_message(1).contains("Answer in French."), "{}", last_message(1));
    assert!(last_message(2).contains("no longer apply"), "{}", last_message(2));
}

#[test]
fn excluded_tools_are_kept_from_subagents() {
    let bash = r#"call bash {"command": "touch new.txt", "description": "d"}"#;
    let settings = r#""permission": "allow", "subagents": {"exclude_tools": ["bash"]}"#;
    let task = r#"call task {"description": "d", "prompt": "go", "subagent_type": "general"}"#;
    let env = TestEnv::new(&[task, "say Over."], settings);
    let (code, _, stderr) = env.run(&["run", "go", "--mode", "auto"]);
    assert_eq!(code, 0, "{stderr}");
    let has_bash = |request: &Value| request["tools"].to_string().contains("\"bash\"");
    let offered: Vec<bool> = env.model.requests().iter().map(has_bash).collect();
    assert!(offered.contains(&true) && offered.contains(&false), "{offered:?}");
    // An agent of the user that names the tool has it.
    let named = SubagentTestEnv::new(&[bash, "say Over."], "m", settings);
    let agent = named.env.config_folder().join("agents/helper.md");
    let text = std::fs::read_to_string(&agent).unwrap();
    std::fs::write(&agent, text.replace("tools:\n", "tools:\n  bash: true\n")).unwrap();
    let (code, _, stderr) = named.env.run(&["run", "go", "--mode", "auto"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(named.env.read("new.txt").is_some(), "{:?}", outcomes_of(&named.subagent_facts()));
}
