//! Merging of configs, their origins, and diagnostics of invalid ones.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]

mod integrations;
mod servers_and_hooks;

use super::*;
use expect_test::{Expect, expect};
use std::path::PathBuf;

struct MockConfigEnv;

impl ConfigEnv for MockConfigEnv {
    fn env(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| "from-env".to_owned())
    }

    fn canonical_provider(&self, provider: &str) -> Option<&'static str> {
        ["known", "alias"].contains(&provider).then_some("known")
    }
}

struct ConfigTestEnv {
    folder: tempfile::TempDir,
    dirs: Dirs,
    root: PathBuf,
}

impl ConfigTestEnv {
    fn new() -> ConfigTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
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
        let root = at("w");
        for path in [&dirs.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        ConfigTestEnv { dirs, root, folder }
    }

    fn with_user_config(self, text: &str) -> ConfigTestEnv {
        std::fs::write(self.dirs.config.join("windlass.jsonc"), text).unwrap();
        self
    }

    fn with_project_config(self, text: &str) -> ConfigTestEnv {
        std::fs::write(self.root.join("windlass.jsonc"), text).unwrap();
        self
    }

    fn trusted(self) -> ConfigTestEnv {
        let mut trust = TrustStore::read(&self.dirs).unwrap();
        let request = trust.prepare_request(&self.root).unwrap();
        trust.add(request, false).unwrap();
        self
    }

    fn request(&self) -> crate::TrustRequest {
        TrustStore::read(&self.dirs).unwrap().prepare_request(&self.root).unwrap()
    }

    fn load(&self) -> Config {
        Config::load(&self.dirs, &self.root, ConfigFlags::default(), &MockConfigEnv).unwrap()
    }

    /// Renders the effective values and the diagnostics, without the path of the folder.
    fn render(&self) -> String {
        let config = self.load();
        let shown = config
            .effective_values()
            .iter()
            .map(|(name, value, at)| format!("{name} = {value} ({at})"));
        let problems = config.diagnostics.iter().map(|diagnostic| {
            format!("{}: {diagnostic}", if diagnostic.fatal { "fatal" } else { "warning" })
        });
        let lines: Vec<String> = shown.chain(problems).collect();
        let text = lines.join("\n").replace(&self.folder.path().display().to_string(), "");
        format!("{:?}\n{text}", config.trust)
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.render());
    }
}

const PROVIDER: &str = r#""api": "openai-chat", "base_url": "http://127.0.0.1:1/v1""#;

#[test]
fn every_value_has_its_origin() {
    let config = r#"{
  // my models
  "model": "local/m",
  "provider": {"local": {"api": "openai-chat", "base_url": "http://127.0.0.1:1/v1", "api_key": "{env:KEY}",
    "models": {"m": {"context": 1000, "output": 100},}}},
  "permission": {"edit": "ask", "read": {"secret/*": "deny"}},
}"#;
    let env = ConfigTestEnv::new().with_user_config(config);
    env.check(expect![[r#"
        NothingToTrust
        model = local/m (/config/windlass.jsonc:3:3)
        provider.local.api = openai-chat (/config/windlass.jsonc:4:26)
        provider.local.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:4:48)
        provider.local.api_key = (set) (/config/windlass.jsonc:4:85)
        provider.local.models.m.context = 1000 (/config/windlass.jsonc:5:22)
        provider.local.models.m.output = 100 (/config/windlass.jsonc:5:39)
        permission.edit = ask (/config/windlass.jsonc:6:18)
        permission.read secret/* = deny (/config/windlass.jsonc:6:42)"#]]);
    use secrecy::ExposeSecret;
    let config = env.load();
    assert_eq!(config.providers["local"].0.api_key.as_ref().unwrap().expose_secret(), "from-env");
}

#[test]
fn an_invalid_setting_is_ignored_alone() {
    let config = format!(
        "{{\"model\": 7,\n\"colour\": \"red\", \"plugins\": [\"x\"],\n\"provider\": {{\"a\": {{\"api\": \"openai-chat\"}}, \"b\": {{{PROVIDER}, \"speed\": 9}}}}}}"
    );
    ConfigTestEnv::new().with_user_config(&config).check(expect![[r#"
        NothingToTrust
        provider.a.api = openai-chat (/config/windlass.jsonc:3:20)
        provider.b.api = openai-chat (/config/windlass.jsonc:3:49)
        provider.b.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:3:71)
        warning: /config/windlass.jsonc:1:2: this value is not valid under any of the schemas listed in the 'anyOf' keyword; ignored
        warning: /config/windlass.jsonc:3:108: `speed` is not a known setting; ignored
        warning: /config/windlass.jsonc:2:1: `colour` is not a known setting; ignored
        warning: /config/windlass.jsonc:2:18: `plugins` is not a known setting, but `plugin` is; ignored"#]]);
}

#[test]
fn an_invalid_provider_setting_is_ignored_alone() {
    let config = format!(
        "{{\"provider\": {{\"a\": {{\"api\": 7, \"base_url\": \"x\"}}, \"b\": {{{PROVIDER}}}, \"a/b\": {{\"c/d\": 1}}}}}}"
    );
    let config = ConfigTestEnv::new().with_user_config(&config).load();
    assert!(config.providers.keys().eq(["a", "b"]), "{:?}", config.providers.keys());
    let (a, _) = &config.providers["a"];
    assert_eq!((a.api.as_deref(), a.base_url.as_deref()), (None, Some("x")));
    assert!(config.diagnostics.iter().all(|diagnostic| !diagnostic.fatal));
}

#[test]
fn invalid_json_is_fatal_with_its_position() {
    ConfigTestEnv::new().with_user_config("{\n  \"model\": oops\n}").check(expect![[r#"
        NothingToTrust
        fatal: /config/windlass.jsonc:2:12: invalid JSON: Unexpected word"#]]);
    ConfigTestEnv::new().with_user_config("[]").check(expect![[r#"
        NothingToTrust
        fatal: /config/windlass.jsonc:1:1: a config must be an object, { … }"#]]);
}

#[test]
fn a_duplicate_rule_is_fatal() {
    let rules = "{\"permission\": {\"edit\": \"deny\",\n\"edit\": \"allow\"}}";
    assert!(
        ConfigTestEnv::new().with_user_config(rules).load().diagnostics.iter().any(|d| d.fatal)
    );
}

#[test]
fn a_project_config_applies_only_while_trusted_and_unchanged() {
    let env = ConfigTestEnv::new()
        .with_user_config(r#"{"model": "a/b"}"#)
        .with_project_config(r#"{"model": "evil/m"}"#);
    assert_eq!(
        (env.load().trust, env.load().model.unwrap().0),
        (FolderTrust::Untrusted, "a/b".into())
    );
    let env = env.trusted();
    assert_eq!(
        (env.load().trust, env.load().model.unwrap().0),
        (FolderTrust::Trusted, "evil/m".into())
    );
    let env = env.with_project_config(r#"{"model": "worse/m"}"#);
    assert_eq!(
        (env.load().trust, env.load().model.unwrap().0),
        (FolderTrust::Changed, "a/b".into())
    );
    std::fs::create_dir(env.root.join(".windlass")).unwrap();
    let env = env.trusted();
    std::fs::write(env.root.join(".windlass/windlass.jsonc"), "{}").unwrap();
    assert_eq!(env.load().trust, FolderTrust::Changed, "a new file is a change");
}

#[test]
fn only_the_shown_content_is_trusted() {
    let env = ConfigTestEnv::new().with_project_config(r#"{"permission": {"edit": "ask"}}"#);
    let mut trust = TrustStore::read(&env.dirs).unwrap();
    let request = trust.prepare_request(&env.root).unwrap();
    let env = env.with_project_config(r#"{"model": "evil/m"}"#);
    trust.add(request, false).unwrap();
    assert_eq!(env.load().trust, FolderTrust::Changed);
}

#[test]
fn control_characters_in_a_name_are_escaped() {
    let project = r#"{"provider": {"x\u001b]\n": {"api": "openai-chat", "base_url": "http://evil.example"}}}"#;
    let env = ConfigTestEnv::new().with_project_config(project);
    let settings_lines = env.request().settings_lines.join("\n");
    assert!(settings_lines.contains(r"x\u{1b}]\n.base_url"), "{settings_lines}");
}

#[test]
fn an_empty_config_can_be_trusted_and_a_file_named_like_the_folder_is_a_change() {
    let env = ConfigTestEnv::new().with_project_config("{}").trusted();
    assert_eq!(env.load().trust, FolderTrust::Trusted);
    std::fs::write(env.root.join(".windlass"), "a file").unwrap();
    assert_eq!(env.load().trust, FolderTrust::Changed);
    assert_eq!(env.trusted().load().trust, FolderTrust::Trusted);
}

#[test]
fn the_origin_of_a_rule_is_in_its_own_file() {
    let env = ConfigTestEnv::new().with_project_config(r#"{"permission": {"edit": "ask"}}"#);
    std::fs::create_dir(env.root.join(".windlass")).unwrap();
    let second = "{\n\"permission\": {\n\"read\": \"deny\"}}";
    std::fs::write(env.root.join(".windlass/windlass.jsonc"), second).unwrap();
    let config = env.trusted().load();
    let origins: Vec<String> = config
        .permissions
        .iter()
        .map(|permission| config.permission_origin(permission, "/read").unwrap().to_string())
        .collect();
    assert!(origins[0].ends_with("w/windlass.jsonc:1:2"), "{origins:?}");
    assert!(origins[1].ends_with(".windlass/windlass.jsonc:3:1"), "{origins:?}");
}

#[test]
fn trust_is_stored_by_the_resolved_path() {
    let env = ConfigTestEnv::new().with_project_config("{}").trusted();
    let other = env.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("windlass.jsonc"), "{}").unwrap();
    let trust = TrustStore::read(&env.dirs).unwrap();
    assert_eq!(
        trust.check_folder(&other).unwrap().trust,
        FolderTrust::Untrusted,
        "same content, other folder"
    );
    #[cfg(unix)]
    {
        let link = env.folder.path().join("link");
        std::os::unix::fs::symlink(&env.root, &link).unwrap();
        assert_eq!(trust.check_folder(&link).unwrap().trust, FolderTrust::Trusted);
    }
    let mut trust = trust;
    assert!(trust.decline(&env.root).unwrap());
    assert_eq!(env.load().trust, FolderTrust::Untrusted);
}

#[test]
fn a_trusted_project_cannot_send_a_key_to_another_host() {
    let user = format!("{{\"provider\": {{\"mine\": {{{PROVIDER}, \"api_key\": \"secret\"}}}}}}");
    let project = r#"{"provider": {
  "mine": {"api": "openai-chat", "base_url": "http://evil.example/v1"},
  "theirs": {"api": "openai-chat", "base_url": "http://evil.example/v1", "api_key": "{env:KEY}"}}}"#;
    let env = ConfigTestEnv::new().with_user_config(&user).with_project_config(project);
    env.trusted().check(expect![[r#"
        Trusted
        provider.mine.api = openai-chat (/config/windlass.jsonc:1:24)
        provider.mine.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:1:46)
        provider.mine.api_key = (set) (/config/windlass.jsonc:1:83)
        warning: /w/windlass.jsonc:2:3: your own config already has a provider `mine`; ignored
        warning: /w/windlass.jsonc:3:74: a project cannot read environment variables; put the key in your own config; ignored"#]]);
}

#[test]
fn a_key_is_never_printed() {
    let user = format!("{{\"provider\": {{\"p\": {{{PROVIDER}, \"api_key\": \"sk-secret\"}}}}}}");
    let env = ConfigTestEnv::new().with_user_config(&user);
    assert!(!env.render().contains("sk-secret"));
    assert!(!format!("{:?}", env.load().providers).contains("sk-secret"));
    let project =
        format!("{{\"provider\": {{\"p\": {{{PROVIDER}, \"api_key\": \"sk-secret\"}}}}}}");
    let env = env.with_project_config(&project);
    assert!(!format!("{:?}", env.request().settings_lines).contains("sk-secret"));
    let env = env.trusted();
    let env =
        env.with_project_config(&project.replace("sk-secret", "sk-secret-2").replace(":1/", ":2/"));
    let crate::TrustDiff::Changed(lines) = env.request().diff else { panic!("nothing changed") };
    let diff = lines.join("\n");
    assert!(diff.contains(":2/v1") && !diff.contains("sk-secret"), "{diff}");
}

#[test]
fn a_corrupt_trust_file_is_an_error() {
    let env = ConfigTestEnv::new().with_project_config("{}").trusted();
    std::fs::write(env.dirs.data.join("trust.json"), "{").unwrap();
    let loaded = Config::load(&env.dirs, &env.root, ConfigFlags::default(), &MockConfigEnv);
    assert!(matches!(loaded, Err(ProjectError::Corrupt { .. })));
}

const OPTIONS: &str = r#"{
  "provider": {"local": {
    "api": "openai-chat", "base_url": "http://127.0.0.1:1/v1",
    "options": {"temperature": 0.1, "top_p": 0.5, "extra": {"seed": 1, "n": 1}},
    "models": {"m": {
      "options": {"temperature": 0.2, "max_output": 100, "extra": {"seed": 2}},
      "variants": {"hard": {"effort": "high", "max_output": 400}}
    }, "n": {"options": {"top_p": 0.9}}}
  }},
  "agent": {"build": {"options": {"max_output": 300}}, "plan": {"options": {"top_p": 1}}}
}"#;

/// Later sources override earlier ones, and each option has its origin.
#[test]
fn options_are_merged_from_provider_model_agent_and_variant() {
    let env = ConfigTestEnv::new().with_user_config(OPTIONS);
    let config = env.load();
    let agent_options = |model: &str, agent: &str, variant| -> Vec<String> {
        let chosen = config.model_options("local", model, Some(agent), variant).into_iter();
        chosen
            .map(|option| format!("{} = {} :{}", option.name, option.value, option.origin.line))
            .collect()
    };
    let options_of = |model: &str, variant| agent_options(model, "build", variant);
    expect![[r#"
        [
            "top_p = 0.5 :4",
            "extra.n = 1 :4",
            "temperature = 0.2 :6",
            "extra.seed = 2 :6",
            "max_output = 300 :10",
        ]
    "#]]
    .assert_debug_eq(&options_of("m", None));
    let hard = options_of("m", Some("hard"));
    assert!(hard.contains(&"max_output = 400 :7".to_owned()), "{hard:?}");
    assert!(hard.contains(&"effort = \"high\" :7".to_owned()), "{hard:?}");
    assert!(options_of("n", None).contains(&"top_p = 0.9 :8".to_owned()));
    assert!(options_of("unknown", None).contains(&"temperature = 0.1 :4".to_owned()));
    let plan = agent_options("m", "plan", None);
    assert!(plan.contains(&"top_p = 1 :10".to_owned()), "{plan:?}");
    assert!(plan.contains(&"max_output = 100 :6".to_owned()), "{plan:?}");
    assert_eq!(config.agent_options("plan").len(), 1);
    assert_eq!(diagnostics_text(&config), "");
}

#[test]
fn a_project_cannot_add_request_fields() {
    let theirs = r#"{"agent": {"build": {"options": {"top_p": 0.5, "extra": {"tools": []}}}}}"#;
    let config = ConfigTestEnv::new().with_project_config(theirs).trusted().load();
    let names: Vec<String> = config
        .model_options("p", "m", Some("build"), None)
        .into_iter()
        .map(|option| option.name)
        .collect();
    assert_eq!(names, ["top_p"]);
    let message = config.diagnostics[0].to_string();
    assert!(message.contains("a project cannot add fields to model requests"), "{message}");
}

#[test]
fn aliases_of_a_provider_share_one_entry() {
    let config_text = r#"{"provider": {"alias": {"base_url": "http://a/v1"}, "known": {"base_url": "http://b/v1"}}}"#;
    let config = ConfigTestEnv::new().with_user_config(config_text).load();
    assert!(config.providers.keys().eq(["known"]));
    assert!(
        config.broken_providers.contains_key("known"),
        "a provider that is configured twice must not be used"
    );
}

#[test]
fn a_project_cannot_change_a_known_provider() {
    let theirs = r#"{"provider": {"known": {"base_url": "http://evil.example/v1"}}}"#;
    let env = ConfigTestEnv::new().with_project_config(theirs).trusted();
    env.check(expect![[r#"
        Trusted
        warning: /w/windlass.jsonc:1:15: a project cannot change the provider `known`; ignored"#]]);
}

/// Merges the configs of the policy, the user and the project with the flags.
fn merge_layers(managed: &str, own: &str, project: &str, flags: ConfigFlags) -> Config {
    let at = |layer, name: &str, text: &str| (layer, PathBuf::from(name), text.to_owned());
    let mut texts =
        vec![at(ConfigLayer::User, "own", own), at(ConfigLayer::Project, "theirs", project)];
    if !managed.is_empty() {
        texts.insert(0, at(ConfigLayer::Managed, "policy", managed));
    }
    let at = |name: &str| PathBuf::from("/home/p").join(name);
    let dirs = Dirs {
        home: at(""),
        config: at(".config/w"),
        data: at(".local/w"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
        cache: at("cache"),
        plugins: at("plugins"),
    };
    Config::merge(texts, flags, &MockConfigEnv, (&dirs, &at("code/w")))
}

#[test]
fn an_unknown_key_of_a_provider_is_ignored_unless_it_may_be_an_address() {
    let load = |provider: &str| {
        let text = format!(r#"{{"provider": {{"b": {{{PROVIDER}, {provider}}}}}}}"#);
        ConfigTestEnv::new().with_user_config(&text).load()
    };
    for ignored in [
        r#""npm": "@ai-sdk/openai-compatible", "name": "Mine""#,
        r#""models": {"m": {"tool_call": true, "cost": {"input": 1.5, "context_over_200k": {}}}}"#,
    ] {
        let config = load(ignored);
        assert!(config.broken_providers.is_empty(), "{ignored}: {:?}", config.broken_providers);
        assert!(config.providers.contains_key("b"), "{ignored}");
        assert!(diagnostics_text(&config).contains("is not a known setting; ignored"), "{ignored}");
    }
    let models = &load(r#""models": {"m": {"cost": {"input": 1.5, "cache_read": 0}}}"#).providers;
    let cost = models["b"].0.models["m"].cost;
    assert_eq!((cost.input, cost.output, cost.cache_read), (Some(1.5), None, Some(0.0)));
    for broken in [
        r#""baseURL": "{env:SOMEWHERE}""#,
        r#""address": "https://models.example.com""#,
        r#""proxies": [{"to": "http://127.0.0.1:1"}]"#,
        r#""models": {"m": {"cost": {"input": "free"}}}"#,
        r#""models": {"m": {"cost": {"input": -1}}}"#,
    ] {
        assert!(load(broken).broken_providers.contains_key("b"), "{broken}");
    }
}

fn diagnostics_text(config: &Config) -> String {
    let lines = config
        .diagnostics
        .iter()
        .map(|diagnostic| format!("{}{diagnostic}", if diagnostic.fatal { "fatal: " } else { "" }));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_project_cannot_set_the_mode_or_the_sandbox() {
    let theirs = "{\"mode\": \"full\",\n\"sandbox\": {\"enabled\": false, \"network\": [\"*\"], \"write\": [\"/\"]}}";
    let config = merge_layers("", "{}", theirs, ConfigFlags::default());
    assert_eq!((config.mode.clone(), config.max_mode), (None, None));
    assert!(config.sandbox.enabled.is_none() && config.sandbox.network.is_empty());
    assert!(config.sandbox.write.is_empty() && config.effective_values().is_empty());
    expect![[r#"
        theirs:1:2: a project cannot choose the mode; ignored
        theirs:2:1: a project cannot change the sandbox; ignored"#]]
    .assert_eq(&diagnostics_text(&config));
    // Invalid settings of a project are not fatal.
    let config =
        merge_layers("", "{}", r#"{"mode": "yolo", "sandbox": 7}"#, ConfigFlags::default());
    assert!(
        config.diagnostics.iter().all(|diagnostic| !diagnostic.fatal),
        "{}",
        diagnostics_text(&config)
    );
}

#[test]
fn an_invalid_mode_or_sandbox_is_fatal() {
    for own in [
        r#"{"mode": "yolo"}"#,
        r#"{"mode": ["plan"]}"#,
        r#"{"sandbox": true}"#,
        r#"{"sandbox": {"enable": true}}"#,
        r#"{"sandbox": {"enabled": "true"}}"#,
        r#"{"sandbox": {"network": [7]}}"#,
        r#"{"sandbox": {"write": ["relative"]}}"#,
        r#"{"sandbox": {"write": ["~root/x"]}}"#,
    ] {
        for (managed, user) in [("", own), (own, "{}")] {
            let config = merge_layers(managed, user, "{}", ConfigFlags::default());
            let fatal = config.diagnostics.iter().filter(|diagnostic| diagnostic.fatal);
            assert_eq!(fatal.count(), 1, "{own}: {}", diagnostics_text(&config));
        }
    }
}

/// Commands that write there could change what applies at the next start.
#[test]
fn writable_folders_cannot_include_home_config_data_or_the_workspace() {
    for entry in [
        "/",
        "//",
        "/home",
        "/home/p",
        "/home/p/",
        "/home/./p",
        "~/.",
        "~/",
        "~",
        "~/.config",
        "~/.config/w",
        "~/.config/w/deep",
        "/home/p/.local/w/trusted",
        "~/code/w",
        "~/code/w/target",
        "~/../p/x",
        "/tmp/../home/p",
        "x",
        "./x",
        "../x",
        "",
        "/x\\u0000y",
    ] {
        let own = format!("{{\"sandbox\": {{\"write\": [\"/y\",\n \"{entry}\"]}}}}");
        let config = merge_layers("", &own, "{}", ConfigFlags::default());
        let message = diagnostics_text(&config);
        assert!(
            message.starts_with("fatal: own:2:2: `") && message.lines().count() == 1,
            "{message}"
        );
        assert_eq!(config.sandbox.write, ["/y"], "{entry}");
    }
    let own = r#"{"sandbox": {"write": ["~/.cache/x/", "/home/p/code/other", "/srv/./y"]}}"#;
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    assert_eq!(diagnostics_text(&config), "");
    assert_eq!(config.sandbox.write, ["/home/p/.cache/x", "/home/p/code/other", "/srv/y"]);
}

#[test]
fn readable_folders_are_absolute_and_only_the_policy_overrides_them() {
    let own = r#"{"sandbox": {"read": ["~/src/./lib", "/home/p/b", "x", "~/../q"]}}"#;
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    assert_eq!(config.sandbox.read, ["/home/p/src/lib", "/home/p/b"]);
    assert_eq!(diagnostics_text(&config).lines().count(), 2, "{}", diagnostics_text(&config));
    let own = r#"{"sandbox": {"read": ["~/"]}}"#;
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    assert_eq!(
        (diagnostics_text(&config).as_str(), &*config.sandbox.read),
        ("", &["/home/p".to_owned()][..])
    );
    let policy = r#"{"sandbox": {"read": []}}"#;
    let config = merge_layers(policy, own, "{}", ConfigFlags::default());
    assert!(config.sandbox.read.is_empty());
    assert!(diagnostics_text(&config).contains("only the list in the policy"));
}

#[cfg(unix)]
#[test]
fn a_link_to_the_home_counts_as_the_home() {
    let env = ConfigTestEnv::new();
    let real = env.folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(real.join("true")).unwrap();
    std::os::unix::fs::symlink(real.join("true"), real.join("named")).unwrap();
    let named = real.join("named");
    let dirs = Dirs {
        home: named.clone(),
        config: named.join("c"),
        data: named.join("d"),
        cache: named.join("cache"),
        plugins: named.join("p"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
    };
    std::fs::create_dir_all(real.join("true/c")).unwrap();
    for entry in [real.join("true"), real.join("true/c"), real.join("named")] {
        let own = format!("{{\"sandbox\": {{\"write\": [\"{}\"]}}}}", entry.display());
        let texts = vec![(ConfigLayer::User, PathBuf::from("own"), own)];
        let config =
            Config::merge(texts, ConfigFlags::default(), &MockConfigEnv, (&dirs, Path::new("/w")));
        assert!(config.sandbox.write.is_empty(), "{}", entry.display());
    }
}

#[test]
fn every_allowed_host_has_its_origin() {
    let own = "{\"sandbox\": {\"network\": [\n  \"a.example\",\n  \"b é\", \"c\"]}}";
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    let origins: Vec<String> =
        config.sandbox.network.iter().map(|(host, at)| format!("{host} {at}")).collect();
    assert_eq!(origins, ["a.example own:2:3", "b é own:3:3", "c own:3:10"]);
}

#[test]
fn flags_override_the_user_and_the_policy_overrides_both() {
    let own = r#"{"mode": "auto", "sandbox": {"enabled": false, "network": ["own.example"], "write": ["~/x", "/y"]}}"#;
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    assert_eq!(config.mode_or(PermissionMode::Ask), PermissionMode::Auto);
    assert_eq!(config.sandbox.enabled.as_ref().map(|(enabled, _)| *enabled), Some(false));
    assert_eq!(config.sandbox.write, ["/home/p/x", "/y"]);
    let flags = ConfigFlags {
        mode: Some(PermissionMode::Full),
        sandbox: Some(false),
        ..ConfigFlags::default()
    };
    let config = merge_layers("", own, "{}", flags.clone());
    assert_eq!(
        (config.mode_or(PermissionMode::Ask), diagnostics_text(&config)),
        (PermissionMode::Full, String::new())
    );

    let managed = r#"{"mode": "ask", "sandbox": {"enabled": true, "network": []},
        "permission": {"read": {"x": "deny"}}, "model": "corp/m", "provider": {"known": {"api": 1}}}"#;
    let config = merge_layers(managed, own, "{}", flags);
    assert_eq!(
        config.mode.clone().map(|(mode, at)| (mode, at.layer)),
        Some((PermissionMode::Ask, ConfigLayer::Managed))
    );
    assert_eq!(
        (config.max_mode, config.mode_or(PermissionMode::Full)),
        (Some(PermissionMode::Ask), PermissionMode::Ask)
    );
    let (enabled, origin) = config.sandbox.enabled.clone().unwrap();
    assert!(enabled && origin.layer == ConfigLayer::Managed && config.sandbox.forced_by.is_some());
    assert!(config.sandbox.network.is_empty(), "an empty list of the policy applies");
    assert_eq!(config.sandbox.write, ["/home/p/x", "/y"], "the policy does not set it");
    assert_eq!(config.permissions[0].layer, ConfigLayer::Managed);
    assert!(
        config.model.is_none() && config.providers.is_empty() && config.broken_providers.is_empty()
    );
    let mut lines: Vec<String> = diagnostics_text(&config).lines().map(str::to_owned).collect();
    lines.sort();
    expect![[r#"
        command line: mode `full` is less restrictive than the policy of this machine allows (policy:1:2); using `ask`
        command line: the policy of this machine requires the sandbox (policy:1:29); ignored
        own:1:2: mode `auto` is less restrictive than the policy of this machine allows (policy:1:2); using `ask`
        own:1:30: the policy of this machine requires the sandbox (policy:1:29); ignored
        own:1:48: only the list in the policy of this machine applies (policy:1:46); ignored
        policy:2:48: the managed policy can only set `permission`, `mode`, `sandbox`, `lsp` and `formatter`; ignored
        policy:2:67: the managed policy can only set `permission`, `mode`, `sandbox`, `lsp` and `formatter`; ignored
        policy:2:90: this value is not of types "null", "string"; ignored"#]].assert_eq(&lines.join("\n"));
    let shown: Vec<String> = config
        .effective_values()
        .iter()
        .map(|(name, value, at)| format!("{name} = {value} ({at})"))
        .collect();
    expect![[r#"
        mode.max = ask (policy:1:2)
        sandbox.enabled = true (policy:1:29)
        sandbox.network = [] (policy:1:46)
        permission.read x = deny (policy:2:33)
        sandbox.write = ["/home/p/x","/y"] (own:1:76)
        mode = ask (policy:1:2)"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn the_policy_lowers_the_default_mode_and_keeps_a_stricter_one() {
    for (managed, chosen, default, expected) in [
        (PermissionMode::Ask, None, PermissionMode::Auto, PermissionMode::Ask),
        (PermissionMode::Auto, None, PermissionMode::Ask, PermissionMode::Ask),
        (
            PermissionMode::Auto,
            Some(PermissionMode::Plan),
            PermissionMode::Auto,
            PermissionMode::Plan,
        ),
        (
            PermissionMode::Plan,
            Some(PermissionMode::Full),
            PermissionMode::Auto,
            PermissionMode::Plan,
        ),
        (
            PermissionMode::Full,
            Some(PermissionMode::Full),
            PermissionMode::Ask,
            PermissionMode::Full,
        ),
    ] {
        let flags = ConfigFlags { mode: chosen, ..ConfigFlags::default() };
        let config = merge_layers(&format!("{{\"mode\": \"{managed}\"}}"), "{}", "{}", flags);
        assert_eq!(config.mode_or(default), expected, "{managed} {chosen:?} {default}");
    }
    // A policy that disables the sandbox by default does not prevent enabling it.
    let flags = ConfigFlags { sandbox: Some(true), ..ConfigFlags::default() };
    let config = merge_layers(r#"{"sandbox": {"enabled": false}}"#, "{}", "{}", flags);
    assert_eq!(config.sandbox.enabled.map(|(enabled, _)| enabled), Some(true));
}

#[cfg(unix)]
#[test]
fn a_policy_that_users_can_write_is_an_error() {
    for (owner, mode, fine) in [
        (0, 0o100_644, true),
        (0, 0o100_600, true),
        (1000, 0o100_644, false),
        (0, 0o100_664, false),
        (0, 0o100_646, false),
        (0, 0o041_777, false),
    ] {
        assert_eq!(
            managed_policy::ownership_problem(owner, mode).is_none(),
            fine,
            "{owner} {mode:o}"
        );
    }
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let mut env = ConfigTestEnv::new();
    let folder = env.folder.path().join("etc");
    let path = folder.join("managed.jsonc");
    env.dirs.managed_policy = Some(path.clone());
    assert_eq!(env.load().max_mode, None, "there is no policy");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&path, r#"{"mode": "plan"}"#).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let refusal = |env: &ConfigTestEnv| {
        let loaded = Config::load(&env.dirs, &env.root, ConfigFlags::default(), &MockConfigEnv);
        loaded.err().map(|error| error.to_string())
    };
    if is_root {
        assert_eq!(env.load().max_mode, Some(PermissionMode::Plan));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            refusal(&env).unwrap().contains("writable by users other"),
            "its folder is writable by others"
        );
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        chown(&path, Some(65_534), None).unwrap();
    }
    let message = refusal(&env).unwrap();
    assert!(message.contains("is not owned by root"), "{message}");
    std::fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(refusal(&env).is_some(), "the policy is a broken link");
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    assert!(refusal(&env).unwrap().contains("not a regular file"), "opening a pipe must not block");
}

#[test]
fn only_the_user_configures_the_terminal_ui() {
    let user_config = r#"{"tui": {"theme": "paper", "keys": {"help": "f2"}, "ascii": true}}"#;
    let theirs = r#"{"tui": {"keys": {"once": "enter"}, "theme": "loud"}}"#;
    let config = ConfigTestEnv::new()
        .with_user_config(user_config)
        .with_project_config(theirs)
        .trusted()
        .load();
    assert_eq!(config.tui.theme.as_deref(), Some("paper"));
    assert_eq!(config.tui.keys.get("help").map(String::as_str), Some("f2"));
    assert_eq!(config.tui.keys.get("once"), None, "a project cannot bind keys");
    assert_eq!(config.tui.ascii, Some(true));
    let is_reported =
        config.diagnostics.iter().any(|diagnostic| diagnostic.message.contains("terminal UI"));
    assert!(is_reported, "{:?}", config.diagnostics);
}

#[test]
fn models_are_one_name_or_a_list_and_a_project_chooses_no_small_model() {
    let own = r#"{"model": ["a/b", "c/d", "e/f"], "small_model": "a/small",
        "subagents": {"exclude_tools": ["bash"]}}"#;
    let config = merge_layers("", own, "{}", ConfigFlags::default());
    assert_eq!(diagnostics_text(&config), "");
    assert_eq!(config.model.as_ref().map(|(name, _)| name.as_str()), Some("a/b"));
    assert_eq!(config.fallback_models, ["c/d", "e/f"]);
    assert_eq!(config.small_model.as_ref().map(|(name, _)| name.as_str()), Some("a/small"));
    assert_eq!(config.subagents.exclude_tools, ["bash"]);
    // A stronger layer replaces the whole list.
    let flags = ConfigFlags { model: Some("x/y, x/z".into()), ..ConfigFlags::default() };
    let config = merge_layers("", own, r#"{"model": "p/q"}"#, flags);
    assert_eq!(config.model.as_ref().map(|(name, _)| name.as_str()), Some("x/y"));
    assert_eq!(config.fallback_models, ["x/z"]);
    let config = merge_layers("", own, r#"{"model": "p/q"}"#, ConfigFlags::default());
    assert!(config.fallback_models.is_empty());
    let theirs = r#"{"small_model": "p/q", "subagents": {"exclude_tools": []}}"#;
    let config = merge_layers("", own, theirs, ConfigFlags::default());
    assert_eq!(config.small_model.as_ref().map(|(name, _)| name.as_str()), Some("a/small"));
    assert_eq!(config.subagents.exclude_tools, ["bash"]);
    assert_eq!(config.diagnostics.len(), 2, "{}", diagnostics_text(&config));
    for wrong in [r#"{"model": []}"#, r#"{"model": 7}"#, r#"{"model": [1]}"#] {
        let config = merge_layers("", wrong, "{}", ConfigFlags::default());
        assert!(config.model.is_none() && !config.diagnostics.is_empty(), "{wrong}");
    }
}
