//! Agents from files and configs: parsing, precedence between layers, and restrictions.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use crate::{ConfigEnv, ConfigFlags, FolderTrust, TrustStore};
use serde_json::json;
use windlass_protocol::AgentRole;

fn parse_agent_files(files: &[(ConfigLayer, &str, &str)]) -> AgentConfigs {
    let to_entry = |(layer, name, text): &(ConfigLayer, &str, &str)| {
        (*layer, PathBuf::from(format!("/agents/{name}.md")), (*text).to_owned())
    };
    AgentConfigs::merge([], files.iter().map(to_entry).collect(), [])
}

fn diagnostic_lines(agents: &AgentConfigs) -> Vec<String> {
    agents.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn four_agents_are_built_in_and_read_only_ones_stay_in_mode_plan() {
    let found = parse_agent_files(&[]);
    let names: Vec<&str> = found.all.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["build", "explore", "general", "plan"]);
    let max_modes: Vec<_> = found.all.iter().map(|agent| agent.max_mode).collect();
    assert_eq!(max_modes, [None, Some(PermissionMode::Plan), None, Some(PermissionMode::Plan)]);
    assert!(found.all[1..].iter().all(|agent| !agent.prompt.is_empty()));
}

#[test]
fn an_opencode_agent_file_is_parsed() {
    let text = "---\ndescription: Reviews code\nmode: subagent\nmodel: anthropic/claude-sonnet-4\n\
                temperature: 0.1\ntools:\n  write: false\n  edit: false\npermission:\n  bash:\n    \
                \"git *\": allow\n    \"*\": deny\ncolor: red\n---\nYou review.\n";
    let found = parse_agent_files(&[(ConfigLayer::User, "review", text)]);
    let review = found.find("review").unwrap();
    assert_eq!(review.description, "Reviews code");
    assert_eq!(review.role, AgentRole::Subagent);
    assert_eq!(review.model.as_deref(), Some("anthropic/claude-sonnet-4"));
    assert_eq!(review.temperature, Some(0.1));
    assert_eq!(review.tools, [("write".to_owned(), false), ("edit".to_owned(), false)]);
    assert_eq!(review.permissions, [json!({"bash": {"git *": "allow", "*": "deny"}})]);
    assert_eq!(review.prompt, "You review.");
    assert_eq!(diagnostic_lines(&found), ["/agents/review.md:1:1: unknown key `color`; ignored"]);
}

#[test]
fn an_invalid_agent_file_is_skipped_with_a_diagnostic() {
    for (name, text) in [
        ("a", "---\nmode: boss\ndescription: d\n---\n"),
        ("a", "---\ndescription: d\ntools:\n  write: no way\n---\n"),
        ("a", "---\ndescription: d\ntemperature: hot\n---\n"),
        ("a", "---\ndescription: d\nmodel: claude\n---\n"),
        ("a", "---\nmode: subagent\n---\nNobody would know when to use it.\n"),
        ("a", "---\ndescription: d\npermission: {edit: allow\n---\n"),
        ("a b", "---\ndescription: d\n---\n"),
        ("../a", "---\ndescription: d\n---\n"),
        ("a", &format!("---\ndescription: d\n---\n{}", "x".repeat(MAX_AGENT_BYTES))),
    ] {
        let found = parse_agent_files(&[(ConfigLayer::User, name, text)]);
        let (all, diagnostics) = (found.all.len(), diagnostic_lines(&found));
        // The name of a file in a subfolder is its file name.
        let plain = name.contains('/');
        assert_eq!(
            (all, diagnostics.len()),
            if plain { (5, 0) } else { (4, 1) },
            "{text}: {diagnostics:?}"
        );
    }
}

#[test]
fn a_project_only_restricts_an_agent_of_the_same_name() {
    let mine = "---\ndescription: mine\nmode: subagent\ntools:\n  bash: false\npermission:\n  edit: deny\n---\nMine.\n";
    let theirs = "---\ndescription: theirs\nmode: all\ntools:\n  bash: true\n  read: false\npermission:\n  edit: allow\n---\nTheirs.\n";
    let found =
        parse_agent_files(&[(ConfigLayer::User, "a", mine), (ConfigLayer::Project, "a", theirs)]);
    let a = found.find("a").unwrap();
    assert_eq!((a.prompt.as_str(), a.role), ("Theirs.", AgentRole::Subagent));
    assert_eq!(a.tools, [("bash".to_owned(), false), ("read".to_owned(), false)]);
    assert_eq!(a.permissions, [json!({"edit": "deny"}), json!({"edit": "allow"})]);
    assert!(!a.is_user_agent(), "the prompt is the project's, so no rule may open anything");
    assert!(
        parse_agent_files(&[(ConfigLayer::User, "a", mine)]).find("a").unwrap().is_user_agent()
    );
    assert!(!found.find("build").unwrap().is_user_agent());
    let plan = parse_agent_files(&[(ConfigLayer::Project, "plan", theirs)]);
    assert_eq!(
        plan.find("plan").unwrap().max_mode,
        Some(PermissionMode::Plan),
        "`plan` must keep its max mode"
    );
    let by_user = parse_agent_files(&[(ConfigLayer::User, "plan", theirs)]);
    assert_eq!(by_user.find("plan").unwrap().max_mode, None, "the user may change `plan`");
}

#[test]
fn agents_can_be_disabled_except_build() {
    let off = "---\ndisable: true\n---\n";
    let found = parse_agent_files(&[
        (ConfigLayer::User, "explore", off),
        (ConfigLayer::User, "build", off),
    ]);
    assert!(found.find("explore").is_none() && found.find("build").is_some());
    assert_eq!(
        diagnostic_lines(&found),
        ["/agents/build.md:1:1: the agent `build` cannot be disabled"]
    );
}

struct AgentTestConfigEnv;

impl ConfigEnv for AgentTestConfigEnv {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn canonical_provider(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

#[test]
fn project_agents_apply_only_while_trusted_and_unchanged() {
    let env = tempfile::tempdir().unwrap();
    let at = |name: &str| env.path().canonicalize().unwrap().join(name);
    let dirs = Dirs {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
        cache: at("cache"),
        plugins: at("plugins"),
    };
    let agents = at("project/.windlass/agents");
    for folder in [&agents, &dirs.data, &dirs.config.join("agents")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let write = |path: &Path, description: &str| {
        std::fs::write(path, format!("---\ndescription: {description}\n---\n")).unwrap();
    };
    write(&agents.join("theirs.md"), "theirs");
    write(&dirs.config.join("agents/mine.md"), "mine");
    std::fs::create_dir(agents.join("deep")).unwrap();
    write(&agents.join("deep/hidden.md"), "hidden");
    #[cfg(unix)]
    std::os::unix::fs::symlink(dirs.config.join("agents/mine.md"), agents.join("led.md")).unwrap();
    let load = || {
        let config =
            Config::load(&dirs, &at("project"), ConfigFlags::default(), &AgentTestConfigEnv)
                .unwrap();
        let all = AgentConfigs::load(&dirs, &config).unwrap().all;
        let added = all.into_iter().filter(|agent| agent.origin.is_some());
        (config.trust, added.map(|agent| agent.name).collect::<Vec<_>>())
    };
    assert_eq!(load(), (FolderTrust::Untrusted, vec!["mine".to_owned()]));
    let mut trust = TrustStore::read(&dirs).unwrap();
    trust.add(trust.prepare_request(&at("project")).unwrap(), false).unwrap();
    assert_eq!(load(), (FolderTrust::Trusted, vec!["mine".to_owned(), "theirs".to_owned()]));
    write(&agents.join("theirs.md"), "changed");
    assert_eq!(load(), (FolderTrust::Changed, vec!["mine".to_owned()]));
}

/// Loads the agents of configs and files of the user and of a trusted project.
fn with_configs(
    mine: &str,
    theirs: &str,
    files: &[(ConfigLayer, &str, &str)],
) -> (AgentConfigs, String) {
    let env = tempfile::tempdir().unwrap();
    let at = |name: &str| env.path().canonicalize().unwrap().join(name);
    let dirs = Dirs {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
        cache: at("cache"),
        plugins: at("plugins"),
    };
    let write = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(at("data/x"), "");
    write(at("config/windlass.jsonc"), mine);
    write(at("project/windlass.jsonc"), theirs);
    for (layer, name, text) in files {
        let folder = if *layer == ConfigLayer::User { "config" } else { "project/.windlass" };
        write(at(&format!("{folder}/agents/{name}.md")), text);
    }
    let mut trust = TrustStore::read(&dirs).unwrap();
    trust.add(trust.prepare_request(&at("project")).unwrap(), false).unwrap();
    let config =
        Config::load(&dirs, &at("project"), ConfigFlags::default(), &AgentTestConfigEnv).unwrap();
    let found = AgentConfigs::load(&dirs, &config).unwrap();
    let diagnostics = config.diagnostics.iter().chain(&found.diagnostics).map(ToString::to_string);
    let diagnostics =
        diagnostics.collect::<Vec<_>>().join("\n").replace(&at("").display().to_string(), "");
    (found, diagnostics)
}

#[test]
fn an_agent_in_a_config_equals_one_in_a_file() {
    let text = "---\ndescription: Reviews\nmode: subagent\nmodel: p/m\ntemperature: 0.1\ntools:\n  \"*\": false\n  read: true\npermission:\n  edit: deny\nprompt: You review.\n---\n";
    let json = r#"{"agent": {"review": {"description": "Reviews", "mode": "subagent", "model": "p/m",
        "temperature": 0.1, "tools": {"*": false, "read": true}, "permission": {"edit": "deny"},
        "prompt": "You review."}, "explore": {"disable": true}, "build": {"options": {"top_p": 1}}}}"#;
    let (found, diagnostics) = with_configs(json, "{}", &[]);
    assert_eq!(diagnostics, "");
    assert!(found.find("explore").is_none());
    assert!(found.find("build").unwrap().origin.is_none(), "options alone do not define an agent");
    let mut review = found.find("review").unwrap().clone();
    let origin = review.origin.take().unwrap();
    assert_eq!((origin.layer, origin.line, origin.column), (ConfigLayer::User, 1, 12));
    let file = parse_agent_files(&[(ConfigLayer::User, "review", text)]);
    assert_eq!(review, AgentConfig { origin: None, ..file.find("review").unwrap().clone() });
}

#[test]
fn a_file_overrides_the_config_of_its_layer_and_a_project_only_restricts() {
    let config =
        r#"{"agent": {"a": {"description": "C", "tools": {"bash": false}, "prompt": "C."}}}"#;
    let project_config = r#"{"agent": {"a": {"description": "L", "tools": {"bash": true, "edit": false},
        "permission": "allow"}, "plan": {"description": "L", "prompt": "Do all."}}}"#;
    let file = "---\ndescription: F\npermission:\n  edit: deny\n---\nF.\n";
    let (found, diagnostics) =
        with_configs(config, project_config, &[(ConfigLayer::User, "a", file)]);
    assert_eq!(
        diagnostics,
        "config/windlass.jsonc:1:12: config/agents/a.md already defines `a`; ignored"
    );
    let a = found.find("a").unwrap();
    assert_eq!(a.tools, [("edit".to_owned(), false)], "the project can deny but not allow");
    assert_eq!(a.permissions, [json!({"edit": "deny"}), json!("allow")]);
    assert_eq!(
        found.find("plan").unwrap().max_mode,
        Some(PermissionMode::Plan),
        "`plan` must keep its max mode"
    );
    // A project's file does not replace the user's config, but overrides the project's config.
    let (found, diagnostics) =
        with_configs(config, project_config, &[(ConfigLayer::Project, "a", file)]);
    assert!(
        diagnostics.contains("project/windlass.jsonc:1:12") && diagnostics.lines().count() == 1,
        "{diagnostics}"
    );
    let a = found.find("a").unwrap();
    assert_eq!((a.prompt.as_str(), a.tools.as_slice()), ("F.", &[("bash".to_owned(), false)][..]));
}

#[test]
fn an_agent_with_an_invalid_setting_is_skipped_entirely() {
    for invalid in [
        r#""tools": {"bash": "no"}"#,
        r#""tools": {"bash": false, "bash": true}"#,
        r#""mode": "boss""#,
        r#""temperature": 3"#,
        r#""model": "claude""#,
        r#""disable": "yes""#,
        r#""prompt": ["x"]"#,
    ] {
        let config = format!(r#"{{"agent": {{"a": {{"description": "d", {invalid}}}}}}}"#);
        let (found, diagnostics) = with_configs(&config, "{}", &[]);
        assert!(
            found.find("a").is_none() && diagnostics.contains("the agent is skipped"),
            "{invalid}: {diagnostics}"
        );
    }
    for (name, rest) in [("a b", ""), ("", ""), ("a", r#", "color": "red""#)] {
        let config = format!(r#"{{"agent": {{"{name}": {{"description": "d"{rest}}}}}}}"#);
        let (found, diagnostics) = with_configs(&config, "{}", &[]);
        assert_eq!(found.find(name).is_some(), !rest.is_empty(), "{diagnostics}");
        assert_eq!(diagnostics.lines().count(), 1, "{diagnostics}");
    }
}

#[test]
fn a_project_cannot_replace_the_prompt_or_lift_the_limits_of_an_agent() {
    let own = "---\ndescription: d\nmodel: a/b\nsteps: 5\noptions: {max_output: 9}\n---\nMine.";
    let theirs = "---\ndescription: d\nmodel: c/d\nsteps: 50\nprompt_mode: replace\n\
                  options: {max_output: 99, extra: {x: 1}}\n---\nTheirs.";
    let agents = parse_agent_files(&[
        (ConfigLayer::User, "review", own),
        (ConfigLayer::Project, "review", theirs),
        (ConfigLayer::Project, "build", theirs),
        (ConfigLayer::Project, "fresh", theirs),
    ]);
    let review = agents.find("review").unwrap();
    assert_eq!((review.model.as_deref(), review.max_steps), (Some("a/b"), Some(5)));
    assert_eq!(review.options["max_output"], 9);
    for name in ["review", "build"] {
        assert_eq!(agents.find(name).unwrap().prompt_mode, AgentPromptMode::Append, "{name}");
    }
    let fresh = agents.find("fresh").unwrap();
    assert_eq!((fresh.prompt_mode, fresh.max_steps), (AgentPromptMode::Replace, Some(50)));
    assert!(!fresh.options.contains_key("extra"), "{:?}", fresh.options);
}
