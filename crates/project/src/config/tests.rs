//! What configs say together, and what is said about bad ones.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::*;
use expect_test::{Expect, expect};
use std::path::PathBuf;

struct Street;

impl Outside for Street {
    fn env(&self, name: &str) -> Option<String> {
        (name == "KEY").then(|| "from-env".to_owned())
    }

    fn knows(&self, provider: &str) -> Option<&'static str> {
        ["known", "alias"].contains(&provider).then_some("known")
    }
}

struct Yard {
    folder: tempfile::TempDir,
    places: Places,
    root: PathBuf,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let places = Places { home: at("home"), config: at("config"), data: at("data") };
        let root = at("w");
        for path in [&places.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        Yard { places, root, folder }
    }

    fn user(self, text: &str) -> Yard {
        std::fs::write(self.places.config.join("windlass.jsonc"), text).unwrap();
        self
    }

    fn project(self, text: &str) -> Yard {
        std::fs::write(self.root.join("windlass.jsonc"), text).unwrap();
        self
    }

    fn trusted(self) -> Yard {
        let request = Trust::request(&self.root).unwrap().unwrap();
        Trust::read(&self.places).unwrap().add(request).unwrap();
        self
    }

    fn load(&self) -> Config {
        Config::load(&self.places, &self.root, None, &Street).unwrap()
    }

    /// What is in force and what is wrong, without the folder's name.
    fn show(&self) -> String {
        let config = self.load();
        let shown =
            config.shown().iter().map(|(name, value, at)| format!("{name} = {value} ({at})"));
        let wrong = config.diagnostics.iter().map(|diagnostic| {
            format!("{}: {diagnostic}", if diagnostic.fatal { "fatal" } else { "warning" })
        });
        let lines: Vec<String> = shown.chain(wrong).collect();
        let text = lines.join("\n").replace(&self.folder.path().display().to_string(), "");
        format!("{:?}\n{text}", config.standing)
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.show());
    }
}

const PROVIDER: &str = r#""api": "openai-chat", "base_url": "http://127.0.0.1:1/v1""#;

#[test]
fn every_value_says_where_it_came_from() {
    let config = r#"{
  // my models
  "model": "local/m",
  "provider": {"local": {"api": "openai-chat", "base_url": "http://127.0.0.1:1/v1", "api_key": "{env:KEY}",
    "models": {"m": {"context": 1000, "output": 100},}}},
  "permission": {"edit": "ask", "read": {"secret/*": "deny"}},
}"#;
    let yard = Yard::new().user(config);
    yard.check(expect![[r#"
        Plain
        model = local/m (/config/windlass.jsonc:3:3)
        provider.local.api = openai-chat (/config/windlass.jsonc:4:26)
        provider.local.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:4:48)
        provider.local.api_key = (set) (/config/windlass.jsonc:4:85)
        provider.local.models.m.context = 1000 (/config/windlass.jsonc:5:22)
        provider.local.models.m.output = 100 (/config/windlass.jsonc:5:39)
        permission.edit = ask (/config/windlass.jsonc:6:18)
        permission.read secret/* = deny (/config/windlass.jsonc:6:42)"#]]);
    use secrecy::ExposeSecret;
    let config = yard.load();
    assert_eq!(config.providers["local"].0.api_key.as_ref().unwrap().expose_secret(), "from-env");
}

#[test]
fn a_bad_line_costs_that_line() {
    let config = format!(
        "{{\"model\": 7,\n\"colour\": \"red\",\n\"provider\": {{\"a\": {{\"api\": \"openai-chat\"}}, \"b\": {{{PROVIDER}, \"speed\": 9}}}}}}"
    );
    Yard::new().user(&config).check(expect![[r#"
        Plain
        provider.a.api = openai-chat (/config/windlass.jsonc:3:20)
        provider.b.api = openai-chat (/config/windlass.jsonc:3:49)
        provider.b.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:3:71)
        warning: /config/windlass.jsonc:1:2: this value is not of types "null", "string"; ignored
        warning: /config/windlass.jsonc:3:108: `speed` is not a setting; ignored
        warning: /config/windlass.jsonc:2:1: `colour` is not a setting; ignored"#]]);
}

#[test]
fn a_setting_of_a_provider_that_makes_no_sense_goes_alone() {
    let config = format!(
        "{{\"provider\": {{\"a\": {{\"api\": 7, \"base_url\": \"x\"}}, \"b\": {{{PROVIDER}}}, \"a/b\": {{\"c/d\": 1}}}}}}"
    );
    let config = Yard::new().user(&config).load();
    assert!(config.providers.keys().eq(["a", "b"]), "{:?}", config.providers.keys());
    let (a, _) = &config.providers["a"];
    assert_eq!((a.api.as_deref(), a.base_url.as_deref()), (None, Some("x")));
    assert!(config.diagnostics.iter().all(|diagnostic| !diagnostic.fatal));
}

#[test]
fn what_is_not_json_is_fatal_with_its_place() {
    Yard::new().user("{\n  \"model\": oops\n}").check(expect![[r#"
        Plain
        fatal: /config/windlass.jsonc:2:12: this is not JSON: Unexpected word"#]]);
    Yard::new().user("[]").check(expect![[r#"
        Plain
        fatal: /config/windlass.jsonc:1:1: a config is an object, { … }"#]]);
}

#[test]
fn a_rule_that_stands_twice_is_fatal() {
    let rules = "{\"permission\": {\"edit\": \"deny\",\n\"edit\": \"allow\"}}";
    assert!(Yard::new().user(rules).load().diagnostics.iter().any(|d| d.fatal));
}

#[test]
fn a_project_is_ignored_until_it_is_trusted_and_again_when_it_changes() {
    let yard = Yard::new().user(r#"{"model": "a/b"}"#).project(r#"{"model": "evil/m"}"#);
    assert_eq!(
        (yard.load().standing, yard.load().model.unwrap().0),
        (Standing::Untrusted, "a/b".into())
    );
    let yard = yard.trusted();
    assert_eq!(
        (yard.load().standing, yard.load().model.unwrap().0),
        (Standing::Trusted, "evil/m".into())
    );
    let yard = yard.project(r#"{"model": "worse/m"}"#);
    assert_eq!(
        (yard.load().standing, yard.load().model.unwrap().0),
        (Standing::Changed, "a/b".into())
    );
    std::fs::create_dir(yard.root.join(".windlass")).unwrap();
    let yard = yard.trusted();
    std::fs::write(yard.root.join(".windlass/windlass.jsonc"), "{}").unwrap();
    assert_eq!(yard.load().standing, Standing::Changed, "a new file is a change");
}

#[test]
fn what_is_trusted_is_what_was_shown() {
    let yard = Yard::new().project(r#"{"permission": {"edit": "ask"}}"#);
    let request = Trust::request(&yard.root).unwrap().unwrap();
    let yard = yard.project(r#"{"model": "evil/m"}"#);
    Trust::read(&yard.places).unwrap().add(request).unwrap();
    assert_eq!(yard.load().standing, Standing::Changed);
}

#[test]
fn a_name_cannot_hide_what_it_sets() {
    let project = r#"{"provider": {"x\u001b]\n": {"api": "openai-chat", "base_url": "http://evil.example"}}}"#;
    let yard = Yard::new().project(project);
    let wishes = Trust::request(&yard.root).unwrap().unwrap().wishes.join("\n");
    assert!(wishes.contains(r"x\u{1b}]\n.base_url"), "{wishes}");
}

#[test]
fn an_empty_config_can_be_trusted_and_a_file_in_its_way_is_no_config() {
    let yard = Yard::new().project("{}").trusted();
    assert_eq!(yard.load().standing, Standing::Trusted);
    std::fs::write(yard.root.join(".windlass"), "a file").unwrap();
    assert_eq!(yard.load().standing, Standing::Trusted);
}

#[test]
fn a_fault_in_a_second_file_is_reported_there() {
    let yard = Yard::new().project(r#"{"permission": {"edit": "ask"}}"#);
    std::fs::create_dir(yard.root.join(".windlass")).unwrap();
    let second = "{\n\"permission\": {\n\"read\": \"deny\"}}";
    std::fs::write(yard.root.join(".windlass/windlass.jsonc"), second).unwrap();
    let config = yard.trusted().load();
    let places: Vec<String> = config
        .permissions
        .iter()
        .map(|permission| config.permission_origin(permission, "/read").unwrap().to_string())
        .collect();
    assert!(places[0].ends_with("w/windlass.jsonc:1:2"), "{places:?}");
    assert!(places[1].ends_with(".windlass/windlass.jsonc:3:1"), "{places:?}");
}

#[test]
fn trust_follows_the_real_path() {
    let yard = Yard::new().project("{}").trusted();
    let other = yard.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("windlass.jsonc"), "{}").unwrap();
    let trust = Trust::read(&yard.places).unwrap();
    assert_eq!(trust.look(&other).unwrap().0, Standing::Untrusted, "same content, other folder");
    #[cfg(unix)]
    {
        let link = yard.folder.path().join("link");
        std::os::unix::fs::symlink(&yard.root, &link).unwrap();
        assert_eq!(trust.look(&link).unwrap().0, Standing::Trusted);
    }
    let mut trust = trust;
    assert!(trust.remove(&yard.root).unwrap());
    assert_eq!(yard.load().standing, Standing::Untrusted);
}

#[test]
fn even_a_trusted_project_cannot_take_a_key_elsewhere() {
    let user = format!("{{\"provider\": {{\"mine\": {{{PROVIDER}, \"api_key\": \"secret\"}}}}}}");
    let project = r#"{"provider": {
  "mine": {"api": "openai-chat", "base_url": "http://evil.example/v1"},
  "theirs": {"api": "openai-chat", "base_url": "http://evil.example/v1", "api_key": "{env:KEY}"}}}"#;
    Yard::new().user(&user).project(project).trusted().check(expect![[r#"
        Trusted
        provider.mine.api = openai-chat (/config/windlass.jsonc:1:24)
        provider.mine.base_url = http://127.0.0.1:1/v1 (/config/windlass.jsonc:1:46)
        provider.mine.api_key = (set) (/config/windlass.jsonc:1:83)
        warning: /w/windlass.jsonc:2:3: your own config already has a provider `mine`; ignored
        warning: /w/windlass.jsonc:3:74: a project cannot read the environment; put the key in your own config; ignored"#]]);
}

#[test]
fn a_key_is_never_printed() {
    let user = format!("{{\"provider\": {{\"p\": {{{PROVIDER}, \"api_key\": \"sk-secret\"}}}}}}");
    let yard = Yard::new().user(&user);
    assert!(!yard.show().contains("sk-secret"));
    assert!(!format!("{:?}", yard.load().providers).contains("sk-secret"));
    let project =
        format!("{{\"provider\": {{\"p\": {{{PROVIDER}, \"api_key\": \"sk-secret\"}}}}}}");
    let yard = yard.project(&project);
    assert!(
        !format!("{:?}", Trust::request(&yard.root).unwrap().unwrap().wishes).contains("sk-secret")
    );
}

#[test]
fn a_damaged_trust_file_is_an_error_and_trusts_nobody() {
    let yard = Yard::new().project("{}").trusted();
    std::fs::write(yard.places.data.join("trust.json"), "{").unwrap();
    let loaded = Config::load(&yard.places, &yard.root, None, &Street);
    assert!(matches!(loaded, Err(Error::Damaged { .. })));
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

/// Provider, model, agent, variant: the later over the earlier, and each says where it stands.
#[test]
fn options_come_from_four_places() {
    let yard = Yard::new().user(OPTIONS);
    let config = yard.load();
    let told = |model: &str, variant| -> Vec<String> {
        let chosen = config.options("local", model, variant).into_iter();
        chosen
            .map(|option| format!("{} = {} :{}", option.name, option.value, option.origin.line))
            .collect()
    };
    expect![[r#"
        [
            "top_p = 0.5 :4",
            "extra.n = 1 :4",
            "temperature = 0.2 :6",
            "extra.seed = 2 :6",
            "max_output = 300 :10",
        ]
    "#]]
    .assert_debug_eq(&told("m", None));
    let hard = told("m", Some("hard"));
    assert!(hard.contains(&"max_output = 400 :7".to_owned()), "{hard:?}");
    assert!(hard.contains(&"effort = \"high\" :7".to_owned()), "{hard:?}");
    assert!(told("n", None).contains(&"top_p = 0.9 :8".to_owned()));
    assert!(told("unknown", None).contains(&"temperature = 0.1 :4".to_owned()));
    let wrong: Vec<String> = config.diagnostics.iter().map(ToString::to_string).collect();
    assert!(wrong.iter().any(|told| told.contains("there is no agent `plan`")), "{wrong:?}");
}

#[test]
fn a_project_cannot_add_to_requests() {
    let theirs = r#"{"agent": {"build": {"options": {"top_p": 0.5, "extra": {"tools": []}}}}}"#;
    let config = Yard::new().project(theirs).trusted().load();
    let names: Vec<String> =
        config.options("p", "m", None).into_iter().map(|option| option.name).collect();
    assert_eq!(names, ["top_p"]);
    let told = config.diagnostics[0].to_string();
    assert!(told.contains("a project cannot add to requests"), "{told}");
}

#[test]
fn a_provider_has_one_row_whichever_name_it_goes_by() {
    let twice = r#"{"provider": {"alias": {"base_url": "http://a/v1"}, "known": {"base_url": "http://b/v1"}}}"#;
    let config = Yard::new().user(twice).load();
    assert!(config.providers.keys().eq(["known"]));
    assert!(config.broken.contains("known"), "and it is not used");
}

#[test]
fn a_project_cannot_change_a_provider_that_is_known() {
    let theirs = r#"{"provider": {"known": {"base_url": "http://evil.example/v1"}}}"#;
    let yard = Yard::new().project(theirs).trusted();
    yard.check(expect![[r#"
        Trusted
        warning: /w/windlass.jsonc:1:15: a project cannot change the provider `known`; ignored"#]]);
}
