//! Agents, with the binary and real tools: what is denied stays denied below, and nobody is
//! surprised.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use windlass_testkit::{Model, Script};
use yard::Yard;

/// A machine with an agent `helper` that has a model of its own and wants to be allowed everything.
struct Family {
    yard: Yard,
    _model: Model,
}

impl Family {
    fn new(helper: &[&str], model: &str, settings: &str) -> Family {
        let work =
            r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
        let yard = Yard::new(&[work, "say Over.", "say Over."], "");
        let child = Model::start(Script::new(helper.iter().copied()));
        let provider = |url: String| {
            format!(
                r#"{{"api": "openai-chat", "base_url": "{url}", "api_key": "k", "models": {{"{model}": {{}}}}}}"#
            )
        };
        yard.write_config(&format!(
            r#"{{"model": "scripted/m", {settings}, "provider": {{"scripted": {}, "child": {}}}}}"#,
            provider(yard.model.url()),
            provider(child.url())
        ));
        let agents = yard.home().join(".config/windlass/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = format!(
            "---\ndescription: Helps\nmode: subagent\nmodel: child/{model}\ntools:\n  \"*\": true\n\
             permission:\n  \"*\": allow\n---\nYou help.\n"
        );
        std::fs::write(agents.join("helper.md"), text).unwrap();
        Family { yard, _model: child }
    }

    /// The facts of the session that the call began.
    fn child(&self) -> Vec<Value> {
        let (_, list, _) = self.yard.run(&["session", "list", "--all", "--json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        let child = list.as_array().unwrap().iter().find(|row| row["parent"].is_string());
        let id = child.unwrap()["session"].as_str().unwrap().to_owned();
        let (_, log, _) = self.yard.run(&["session", "export", &id]);
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn settled(facts: &[Value]) -> Vec<String> {
    let settled = facts.iter().filter(|fact| fact["kind"] == "settled");
    settled.map(|fact| fact["outcome"].to_string()).collect()
}

#[test]
fn what_a_person_denies_is_denied_below_for_every_tool() {
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
            let family = Family::new(&[&call, "say Over."], model, &rules);
            let name = format!("scripted/{model}");
            let (code, _, told) = family.yard.run(&["run", "go", "--yes", "--model", &name]);
            assert_eq!(code, 0, "{tool} under {key}: {told}");
            let outcomes = settled(&family.child());
            assert_eq!(outcomes.len(), 1, "{tool} under {key}: {told}");
            assert!(outcomes[0].contains("not permitted"), "{tool} under {key}: {outcomes:?}");
            assert_eq!(family.yard.read("new.txt"), None, "{tool} under {key}");
            assert!(family.yard.read("README.md").unwrap().contains("small"));
        }
    }
}

#[test]
fn what_a_child_asks_is_asked_here_and_without_anybody_it_is_a_no() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let settings = r#""mode": "ask""#;
    let family = Family::new(&[write, "say Written."], "m", settings);
    let (_, _, told) = family.yard.run(&["run", "go"]);
    assert!(told.contains("an agent asks") && told.contains("Nobody is here to ask"), "{told}");
    assert_eq!(family.yard.read("new.txt"), None);
    let end = family.child().pop().unwrap();
    assert_eq!(end["end"]["end"], "denied", "{end}");
    let family = Family::new(&[write, "say Written."], "m", settings);
    let (code, _, told) = family.yard.run(&["run", "go", "--yes"]);
    assert_eq!((code, family.yard.read("new.txt").as_deref()), (0, Some("x")), "{told}");
    let (_, answer, _) = family.yard.run(&["run", "--continue", "again", "--output", "json"]);
    assert!(!answer.contains("Written."), "what goes on is the person's own session: {answer}");
}

#[test]
fn a_person_chooses_an_agent_and_its_bounds_hold() {
    let write = r#"call write {"filePath": "new.txt", "content": "x"}"#;
    let yard = Yard::new(&[write, "say Over."], r#""permission": "allow""#);
    let (code, _, told) = yard.run(&["run", "go", "--agent", "plan", "--yes"]);
    assert_eq!((code, yard.read("new.txt")), (0, None), "{told}");
    assert_eq!(yard.facts()[0]["agent"], "plan");
    let system = yard.model.requests()[0].to_string();
    assert!(system.contains("You plan; you change nothing."), "{system}");
    for agent in ["explore", "nobody"] {
        let (code, _, told) = yard.run(&["run", "go", "--agent", agent]);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains(agent), "{told}");
    }
}

#[test]
fn agents_are_listed_and_a_projects_own_only_once_it_is_trusted() {
    let yard = Yard::new(&[], "");
    let agents = yard.root().join(".windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("theirs.md"), "---\ndescription: Theirs\n---\nHi.\n").unwrap();
    let bad = "---\ndescription: Bad\npermission:\n  edit: maybe\n---\n";
    std::fs::write(agents.join("bad.md"), bad).unwrap();
    let names = |list: &str| -> Vec<String> {
        list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let (_, list, _) = yard.run(&["agent", "list"]);
    assert_eq!(names(&list), ["build", "explore", "general", "plan"]);
    let (code, _, told) = yard.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{told}");
    let (_, list, told) = yard.run(&["agent", "list"]);
    assert_eq!(names(&list), ["build", "explore", "general", "plan", "theirs"]);
    assert!(told.contains("bad.md") && told.contains("left out"), "{told}");
}
