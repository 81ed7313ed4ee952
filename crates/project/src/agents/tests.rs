//! Agents from files: what they say, what they cannot, and whose word counts.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use crate::{Flags, Outside, Standing, Trust};
use serde_json::json;

fn profiles(files: &[(Layer, &str, &str)]) -> Profiles {
    let whole = |(layer, name, text): &(Layer, &str, &str)| {
        (*layer, PathBuf::from(format!("/agents/{name}.md")), (*text).to_owned())
    };
    Profiles::of([], files.iter().map(whole).collect(), [])
}

fn told(profiles: &Profiles) -> Vec<String> {
    profiles.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn four_are_built_in_and_those_that_only_look_cannot_do_more() {
    let found = profiles(&[]);
    let names: Vec<&str> = found.all.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ["build", "explore", "general", "plan"]);
    let ceilings: Vec<_> = found.all.iter().map(|profile| profile.ceiling).collect();
    assert_eq!(ceilings, [None, Some(Mode::Plan), None, Some(Mode::Plan)]);
    assert!(found.all[1..].iter().all(|profile| !profile.prompt.is_empty()));
}

#[test]
fn a_file_as_opencode_has_it_is_understood() {
    let text = "---\ndescription: Reviews code\nmode: subagent\nmodel: anthropic/claude-sonnet-4\n\
                temperature: 0.1\ntools:\n  write: false\n  edit: false\npermission:\n  bash:\n    \
                \"git *\": allow\n    \"*\": deny\ncolor: red\n---\nYou review.\n";
    let found = profiles(&[(Layer::User, "review", text)]);
    let review = found.find("review").unwrap();
    assert_eq!(review.description, "Reviews code");
    assert_eq!(review.employer, Employer::Agent);
    assert_eq!(review.model.as_deref(), Some("anthropic/claude-sonnet-4"));
    assert_eq!(review.temperature, Some(0.1));
    assert_eq!(review.tools, [("write".to_owned(), false), ("edit".to_owned(), false)]);
    assert_eq!(review.permissions, [json!({"bash": {"git *": "allow", "*": "deny"}})]);
    assert_eq!(review.prompt, "You review.");
    assert_eq!(told(&found), ["/agents/review.md:1:1: `color` is not known here and is ignored"]);
}

#[test]
fn what_cannot_be_understood_is_left_out_and_said() {
    for (name, text) in [
        ("a", "---\nmode: boss\ndescription: d\n---\n"),
        ("a", "---\ndescription: d\ntools:\n  write: no way\n---\n"),
        ("a", "---\ndescription: d\ntemperature: hot\n---\n"),
        ("a", "---\ndescription: d\nmodel: claude\n---\n"),
        ("a", "---\nmode: subagent\n---\nNobody would know when to use it.\n"),
        ("a", "---\ndescription: d\npermission: {edit: allow}\n---\n"),
        ("a b", "---\ndescription: d\n---\n"),
        ("../a", "---\ndescription: d\n---\n"),
        ("a", &format!("---\ndescription: d\n---\n{}", "x".repeat(LONGEST))),
    ] {
        let found = profiles(&[(Layer::User, name, text)]);
        let (all, told) = (found.all.len(), told(&found));
        // A name with a slash is a folder and a plain name.
        let plain = name.contains('/');
        assert_eq!((all, told.len()), if plain { (5, 0) } else { (4, 1) }, "{text}: {told:?}");
    }
}

#[test]
fn a_project_only_adds_to_the_bounds_of_an_agent_that_has_its_name() {
    let mine = "---\ndescription: mine\nmode: subagent\ntools:\n  bash: false\npermission:\n  edit: deny\n---\nMine.\n";
    let theirs = "---\ndescription: theirs\nmode: all\ntools:\n  bash: true\n  read: false\npermission:\n  edit: allow\n---\nTheirs.\n";
    let found = profiles(&[(Layer::User, "a", mine), (Layer::Project, "a", theirs)]);
    let a = found.find("a").unwrap();
    assert_eq!((a.prompt.as_str(), a.employer), ("Theirs.", Employer::Agent));
    assert_eq!(a.tools, [("bash".to_owned(), false), ("read".to_owned(), false)]);
    assert_eq!(a.permissions, [json!({"edit": "deny"}), json!({"edit": "allow"})]);
    let plan = profiles(&[(Layer::Project, "plan", theirs)]);
    assert_eq!(plan.find("plan").unwrap().ceiling, Some(Mode::Plan), "plan stays plan");
    let own = profiles(&[(Layer::User, "plan", theirs)]);
    assert_eq!(own.find("plan").unwrap().ceiling, None, "but it is the person's to change");
}

#[test]
fn agents_are_turned_off_but_not_the_usual_one() {
    let off = "---\ndisable: true\n---\n";
    let found = profiles(&[(Layer::User, "explore", off), (Layer::User, "build", off)]);
    assert!(found.find("explore").is_none() && found.find("build").is_some());
    assert_eq!(told(&found), ["/agents/build.md:1:1: build cannot be turned off"]);
}

struct Nothing;

impl Outside for Nothing {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn knows(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

#[test]
fn a_projects_agents_count_once_it_is_trusted_and_as_it_was_trusted() {
    let yard = tempfile::tempdir().unwrap();
    let at = |name: &str| yard.path().canonicalize().unwrap().join(name);
    let places = Places {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed: None,
        cache: at("cache"),
        plugins: at("plugins"),
    };
    let agents = at("project/.windlass/agents");
    for folder in [&agents, &places.data, &places.config.join("agents")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let write = |path: &Path, description: &str| {
        std::fs::write(path, format!("---\ndescription: {description}\n---\n")).unwrap();
    };
    write(&agents.join("theirs.md"), "theirs");
    write(&places.config.join("agents/mine.md"), "mine");
    std::fs::create_dir(agents.join("deep")).unwrap();
    write(&agents.join("deep/hidden.md"), "hidden");
    #[cfg(unix)]
    std::os::unix::fs::symlink(places.config.join("agents/mine.md"), agents.join("led.md"))
        .unwrap();
    let load = || {
        let config = Config::load(&places, &at("project"), Flags::default(), &Nothing).unwrap();
        let all = Profiles::load(&places, &config).unwrap().all;
        let added = all.into_iter().filter(|profile| profile.origin.is_some());
        (config.standing, added.map(|profile| profile.name).collect::<Vec<_>>())
    };
    assert_eq!(load(), (Standing::Untrusted, vec!["mine".to_owned()]));
    let mut trust = Trust::read(&places).unwrap();
    trust.add(trust.request(&at("project")).unwrap()).unwrap();
    assert_eq!(load(), (Standing::Trusted, vec!["mine".to_owned(), "theirs".to_owned()]));
    write(&agents.join("theirs.md"), "changed");
    assert_eq!(load(), (Standing::Changed, vec!["mine".to_owned()]));
}

/// What configs and files of the person and of a trusted project come to.
fn with_configs(mine: &str, theirs: &str, files: &[(Layer, &str, &str)]) -> (Profiles, String) {
    let yard = tempfile::tempdir().unwrap();
    let at = |name: &str| yard.path().canonicalize().unwrap().join(name);
    let places = Places {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed: None,
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
        let folder = if *layer == Layer::User { "config" } else { "project/.windlass" };
        write(at(&format!("{folder}/agents/{name}.md")), text);
    }
    let mut trust = Trust::read(&places).unwrap();
    trust.add(trust.request(&at("project")).unwrap()).unwrap();
    let config = Config::load(&places, &at("project"), Flags::default(), &Nothing).unwrap();
    let found = Profiles::load(&places, &config).unwrap();
    let told = config.diagnostics.iter().chain(&found.diagnostics).map(ToString::to_string);
    let told = told.collect::<Vec<_>>().join("\n").replace(&at("").display().to_string(), "");
    (found, told)
}

#[test]
fn an_agent_in_a_config_is_what_its_file_would_be() {
    let text = "---\ndescription: Reviews\nmode: subagent\nmodel: p/m\ntemperature: 0.1\ntools:\n  \"*\": false\n  read: true\npermission:\n  edit: deny\nprompt: You review.\n---\n";
    let json = r#"{"agent": {"review": {"description": "Reviews", "mode": "subagent", "model": "p/m",
        "temperature": 0.1, "tools": {"*": false, "read": true}, "permission": {"edit": "deny"},
        "prompt": "You review."}, "explore": {"disable": true}, "build": {"options": {"top_p": 1}}}}"#;
    let (found, told) = with_configs(json, "{}", &[]);
    assert_eq!(told, "");
    assert!(found.find("explore").is_none());
    assert!(found.find("build").unwrap().origin.is_none(), "options alone describe no agent");
    let mut review = found.find("review").unwrap().clone();
    let origin = review.origin.take().unwrap();
    assert_eq!((origin.layer, origin.line, origin.column), (Layer::User, 1, 12));
    let file = profiles(&[(Layer::User, "review", text)]);
    assert_eq!(review, Profile { origin: None, ..file.find("review").unwrap().clone() });
}

#[test]
fn a_file_counts_over_the_config_of_its_layer_and_a_project_only_adds_to_bounds() {
    let config =
        r#"{"agent": {"a": {"description": "C", "tools": {"bash": false}, "prompt": "C."}}}"#;
    let lax = r#"{"agent": {"a": {"description": "L", "tools": {"bash": true, "edit": false},
        "permission": "allow"}, "plan": {"description": "L", "prompt": "Do all."}}}"#;
    let file = "---\ndescription: F\npermission:\n  edit: deny\n---\nF.\n";
    let (found, told) = with_configs(config, lax, &[(Layer::User, "a", file)]);
    assert_eq!(
        told,
        "config/windlass.jsonc:1:12: config/agents/a.md says what `a` is; this is ignored"
    );
    let a = found.find("a").unwrap();
    assert_eq!(a.tools, [("edit".to_owned(), false)], "the project denies, and gives nothing");
    assert_eq!(a.permissions, [json!({"edit": "deny"}), json!("allow")]);
    assert_eq!(found.find("plan").unwrap().ceiling, Some(Mode::Plan), "plan stays plan");
    // A project's file does not silence the person's config, and counts over the project's own.
    let (found, told) = with_configs(config, lax, &[(Layer::Project, "a", file)]);
    assert!(told.contains("project/windlass.jsonc:1:12") && told.lines().count() == 1, "{told}");
    let a = found.find("a").unwrap();
    assert_eq!((a.prompt.as_str(), a.tools.as_slice()), ("F.", &[("bash".to_owned(), false)][..]));
}

#[test]
fn an_agent_with_a_mistake_in_it_does_not_work_with_half_of_its_bounds() {
    for wrong in [
        r#""tools": {"bash": "no"}"#,
        r#""tools": {"bash": false, "bash": true}"#,
        r#""mode": "boss""#,
        r#""temperature": 3"#,
        r#""model": "claude""#,
        r#""disable": "yes""#,
        r#""prompt": ["x"]"#,
    ] {
        let config = format!(r#"{{"agent": {{"a": {{"description": "d", {wrong}}}}}}}"#);
        let (found, told) = with_configs(&config, "{}", &[]);
        assert!(
            found.find("a").is_none() && told.contains("the agent is left out"),
            "{wrong}: {told}"
        );
    }
    for (name, rest) in [("a b", ""), ("", ""), ("a", r#", "color": "red""#)] {
        let config = format!(r#"{{"agent": {{"{name}": {{"description": "d"{rest}}}}}}}"#);
        let (found, told) = with_configs(&config, "{}", &[]);
        assert_eq!(found.find(name).is_some(), !rest.is_empty(), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}
