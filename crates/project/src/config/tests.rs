//! What configs say together, and what is said about bad ones.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

mod company;
mod senses;

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
        let places = Places {
            home: at("home"),
            config: at("config"),
            data: at("data"),
            managed: None,
            cache: at("cache"),
            plugins: at("plugins"),
        };
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
        let mut trust = Trust::read(&self.places).unwrap();
        let request = trust.request(&self.root).unwrap();
        trust.add(request).unwrap();
        self
    }

    fn request(&self) -> crate::Request {
        Trust::read(&self.places).unwrap().request(&self.root).unwrap()
    }

    fn load(&self) -> Config {
        Config::load(&self.places, &self.root, Flags::default(), &Street).unwrap()
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
    let mut trust = Trust::read(&yard.places).unwrap();
    let request = trust.request(&yard.root).unwrap();
    let yard = yard.project(r#"{"model": "evil/m"}"#);
    trust.add(request).unwrap();
    assert_eq!(yard.load().standing, Standing::Changed);
}

#[test]
fn a_name_cannot_hide_what_it_sets() {
    let project = r#"{"provider": {"x\u001b]\n": {"api": "openai-chat", "base_url": "http://evil.example"}}}"#;
    let yard = Yard::new().project(project);
    let wishes = yard.request().wishes.join("\n");
    assert!(wishes.contains(r"x\u{1b}]\n.base_url"), "{wishes}");
}

#[test]
fn an_empty_config_can_be_trusted_and_a_file_in_the_way_of_another_is_a_change() {
    let yard = Yard::new().project("{}").trusted();
    assert_eq!(yard.load().standing, Standing::Trusted);
    std::fs::write(yard.root.join(".windlass"), "a file").unwrap();
    assert_eq!(yard.load().standing, Standing::Changed);
    assert_eq!(yard.trusted().load().standing, Standing::Trusted);
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
    assert_eq!(
        trust.look(&other).unwrap().standing,
        Standing::Untrusted,
        "same content, other folder"
    );
    #[cfg(unix)]
    {
        let link = yard.folder.path().join("link");
        std::os::unix::fs::symlink(&yard.root, &link).unwrap();
        assert_eq!(trust.look(&link).unwrap().standing, Standing::Trusted);
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
    assert!(!format!("{:?}", yard.request().wishes).contains("sk-secret"));
    let yard = yard.trusted();
    let yard = yard.project(&project.replace("sk-secret", "sk-secret-2").replace(":1/", ":2/"));
    let crate::Since::Changed(told) = yard.request().since else { panic!("nothing changed") };
    let told = told.join("\n");
    assert!(told.contains(":2/v1") && !told.contains("sk-secret"), "{told}");
}

#[test]
fn a_damaged_trust_file_is_an_error_and_trusts_nobody() {
    let yard = Yard::new().project("{}").trusted();
    std::fs::write(yard.places.data.join("trust.json"), "{").unwrap();
    let loaded = Config::load(&yard.places, &yard.root, Flags::default(), &Street);
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
    assert!(wrong.iter().any(|told| told.contains("only `build` has options")), "{wrong:?}");
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

/// What is said about the mode and the sandbox, by the policy, the person, the project and flags.
fn bounds(managed: &str, own: &str, project: &str, flags: Flags) -> Config {
    let at = |layer, name: &str, text: &str| (layer, PathBuf::from(name), text.to_owned());
    let mut texts = vec![at(Layer::User, "own", own), at(Layer::Project, "theirs", project)];
    if !managed.is_empty() {
        texts.insert(0, at(Layer::Managed, "policy", managed));
    }
    let at = |name: &str| PathBuf::from("/home/p").join(name);
    let places = Places {
        home: at(""),
        config: at(".config/w"),
        data: at(".local/w"),
        managed: None,
        cache: at("cache"),
        plugins: at("plugins"),
    };
    Config::of(texts, flags, &Street, (&places, &at("code/w")))
}

fn said(config: &Config) -> String {
    let told = config
        .diagnostics
        .iter()
        .map(|diagnostic| format!("{}{diagnostic}", if diagnostic.fatal { "fatal: " } else { "" }));
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_project_has_no_say_in_the_mode_and_the_sandbox() {
    let theirs = "{\"mode\": \"full\",\n\"sandbox\": {\"enabled\": false, \"network\": [\"*\"], \"write\": [\"/\"]}}";
    let config = bounds("", "{}", theirs, Flags::default());
    assert_eq!((config.mode.clone(), config.most_lax), (None, None));
    assert!(config.sandbox.enabled.is_none() && config.sandbox.network.is_empty());
    assert!(config.sandbox.write.is_empty() && config.shown().is_empty());
    expect![[r#"
        theirs:1:2: a project cannot choose the mode; ignored
        theirs:2:1: a project cannot change the sandbox; ignored"#]]
    .assert_eq(&said(&config));
    // Nor can it keep anything from starting by saying it badly.
    let config = bounds("", "{}", r#"{"mode": "yolo", "sandbox": 7}"#, Flags::default());
    assert!(config.diagnostics.iter().all(|diagnostic| !diagnostic.fatal), "{}", said(&config));
}

#[test]
fn a_mode_or_a_sandbox_that_cannot_be_read_stops_the_start() {
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
            let config = bounds(managed, user, "{}", Flags::default());
            let fatal = config.diagnostics.iter().filter(|diagnostic| diagnostic.fatal);
            assert_eq!(fatal.count(), 1, "{own}: {}", said(&config));
        }
    }
}

/// What is written there could change what holds the next time.
#[test]
fn a_list_of_folders_to_write_to_cannot_hold_what_widens_itself() {
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
        let config = bounds("", &own, "{}", Flags::default());
        let told = said(&config);
        assert!(told.starts_with("fatal: own:2:2: `") && told.lines().count() == 1, "{told}");
        assert_eq!(config.sandbox.write, ["/y"], "{entry}");
    }
    let own = r#"{"sandbox": {"write": ["~/.cache/x/", "/home/p/code/other", "/srv/./y"]}}"#;
    let config = bounds("", own, "{}", Flags::default());
    assert_eq!(said(&config), "");
    assert_eq!(config.sandbox.write, ["/home/p/.cache/x", "/home/p/code/other", "/srv/y"]);
}

#[cfg(unix)]
#[test]
fn a_home_by_another_name_is_the_home() {
    let yard = Yard::new();
    let real = yard.folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(real.join("true")).unwrap();
    std::os::unix::fs::symlink(real.join("true"), real.join("named")).unwrap();
    let named = real.join("named");
    let places = Places {
        home: named.clone(),
        config: named.join("c"),
        data: named.join("d"),
        cache: named.join("cache"),
        plugins: named.join("p"),
        managed: None,
    };
    std::fs::create_dir_all(real.join("true/c")).unwrap();
    for entry in [real.join("true"), real.join("true/c"), real.join("named")] {
        let own = format!("{{\"sandbox\": {{\"write\": [\"{}\"]}}}}", entry.display());
        let texts = vec![(Layer::User, PathBuf::from("own"), own)];
        let config = Config::of(texts, Flags::default(), &Street, (&places, Path::new("/w")));
        assert!(config.sandbox.write.is_empty(), "{}", entry.display());
    }
}

#[test]
fn a_host_is_known_by_where_it_stands() {
    let own = "{\"sandbox\": {\"network\": [\n  \"a.example\",\n  \"b é\", \"c\"]}}";
    let config = bounds("", own, "{}", Flags::default());
    let places: Vec<String> =
        config.sandbox.network.iter().map(|(host, at)| format!("{host} {at}")).collect();
    assert_eq!(places, ["a.example own:2:3", "b é own:3:3", "c own:3:10"]);
}

#[test]
fn flags_are_stronger_than_the_person_and_the_policy_than_both() {
    let own = r#"{"mode": "auto", "sandbox": {"enabled": false, "network": ["own.example"], "write": ["~/x", "/y"]}}"#;
    let config = bounds("", own, "{}", Flags::default());
    assert_eq!(config.mode_or(Mode::Ask), Mode::Auto);
    assert_eq!(config.sandbox.enabled.as_ref().map(|(enabled, _)| *enabled), Some(false));
    assert_eq!(config.sandbox.write, ["/home/p/x", "/y"]);
    let flags = Flags { mode: Some(Mode::Full), sandbox: Some(false), ..Flags::default() };
    let config = bounds("", own, "{}", flags.clone());
    assert_eq!((config.mode_or(Mode::Ask), said(&config)), (Mode::Full, String::new()));

    let managed = r#"{"mode": "ask", "sandbox": {"enabled": true, "network": []},
        "permission": {"read": {"x": "deny"}}, "model": "corp/m", "provider": {"known": {"api": 1}}}"#;
    let config = bounds(managed, own, "{}", flags);
    assert_eq!(
        config.mode.clone().map(|(mode, at)| (mode, at.layer)),
        Some((Mode::Ask, Layer::Managed))
    );
    assert_eq!((config.most_lax, config.mode_or(Mode::Full)), (Some(Mode::Ask), Mode::Ask));
    let (enabled, origin) = config.sandbox.enabled.clone().unwrap();
    assert!(enabled && origin.layer == Layer::Managed && config.sandbox.forced.is_some());
    assert!(config.sandbox.network.is_empty(), "an empty list of the policy is a list");
    assert_eq!(config.sandbox.write, ["/home/p/x", "/y"], "the policy says nothing of it");
    assert_eq!(config.permissions[0].layer, Layer::Managed);
    assert!(config.model.is_none() && config.providers.is_empty() && config.broken.is_empty());
    let mut lines: Vec<String> = said(&config).lines().map(str::to_owned).collect();
    lines.sort();
    expect![[r#"
        command line: the mode `full` is laxer than the policy of this machine allows (policy:1:2); `ask` is used
        command line: the policy of this machine keeps the sandbox on (policy:1:29); ignored
        own:1:2: the mode `auto` is laxer than the policy of this machine allows (policy:1:2); `ask` is used
        own:1:30: the policy of this machine keeps the sandbox on (policy:1:29); ignored
        own:1:48: only the list in the policy of this machine counts (policy:1:46); ignored
        policy:2:48: the managed policy sets `permission`, `mode`, `sandbox`, `lsp` and `formatter` only; ignored
        policy:2:67: the managed policy sets `permission`, `mode`, `sandbox`, `lsp` and `formatter` only; ignored
        policy:2:90: this value is not of types "null", "string"; ignored"#]].assert_eq(&lines.join("\n"));
    let shown: Vec<String> =
        config.shown().iter().map(|(name, value, at)| format!("{name} = {value} ({at})")).collect();
    expect![[r#"
        mode.laxest = ask (policy:1:2)
        sandbox.enabled = true (policy:1:29)
        sandbox.network = [] (policy:1:46)
        permission.read x = deny (policy:2:33)
        sandbox.write = ["/home/p/x","/y"] (own:1:76)
        mode = ask (policy:1:2)"#]]
    .assert_eq(&shown.join("\n"));
}

#[test]
fn the_policy_lowers_what_nobody_chose_and_leaves_what_is_stricter() {
    for (managed, chosen, default, expected) in [
        (Mode::Ask, None, Mode::Auto, Mode::Ask),
        (Mode::Auto, None, Mode::Ask, Mode::Ask),
        (Mode::Auto, Some(Mode::Plan), Mode::Auto, Mode::Plan),
        (Mode::Plan, Some(Mode::Full), Mode::Auto, Mode::Plan),
        (Mode::Full, Some(Mode::Full), Mode::Ask, Mode::Full),
    ] {
        let flags = Flags { mode: chosen, ..Flags::default() };
        let config = bounds(&format!("{{\"mode\": \"{managed}\"}}"), "{}", "{}", flags);
        assert_eq!(config.mode_or(default), expected, "{managed} {chosen:?} {default}");
    }
    // A policy that has it off by default keeps nobody from switching it on.
    let flags = Flags { sandbox: Some(true), ..Flags::default() };
    let config = bounds(r#"{"sandbox": {"enabled": false}}"#, "{}", "{}", flags);
    assert_eq!(config.sandbox.enabled.map(|(enabled, _)| enabled), Some(true));
}

#[cfg(unix)]
#[test]
fn a_policy_that_is_not_the_administrators_alone_stops_the_start() {
    for (owner, mode, fine) in [
        (0, 0o100_644, true),
        (0, 0o100_600, true),
        (1000, 0o100_644, false),
        (0, 0o100_664, false),
        (0, 0o100_646, false),
        (0, 0o041_777, false),
    ] {
        assert_eq!(managed::objection(owner, mode).is_none(), fine, "{owner} {mode:o}");
    }
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let mut yard = Yard::new();
    let folder = yard.folder.path().join("etc");
    let path = folder.join("managed.jsonc");
    yard.places.managed = Some(path.clone());
    assert_eq!(yard.load().most_lax, None, "there is none");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&path, r#"{"mode": "plan"}"#).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let refusal = |yard: &Yard| {
        let loaded = Config::load(&yard.places, &yard.root, Flags::default(), &Street);
        loaded.err().map(|error| error.to_string())
    };
    if is_root {
        assert_eq!(yard.load().most_lax, Some(Mode::Plan));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refusal(&yard).unwrap().contains("written by others"), "its folder");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        chown(&path, Some(65_534), None).unwrap();
    }
    let told = refusal(&yard).unwrap();
    assert!(told.contains("does not belong to root"), "{told}");
    std::fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(refusal(&yard).is_some(), "a policy that was lost");
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    assert!(refusal(&yard).unwrap().contains("no plain file"), "and nobody waits for a pipe");
}

#[test]
fn how_the_screen_looks_is_the_persons_to_say() {
    let looks = r#"{"tui": {"theme": "paper", "keys": {"help": "f2"}, "ascii": true}}"#;
    let theirs = r#"{"tui": {"keys": {"once": "enter"}, "theme": "loud"}}"#;
    let config = Yard::new().user(looks).project(theirs).trusted().load();
    assert_eq!(config.screen.theme.as_deref(), Some("paper"));
    assert_eq!(config.screen.keys.get("help").map(String::as_str), Some("f2"));
    assert_eq!(config.screen.keys.get("once"), None, "a repository binds no keys");
    assert_eq!(config.screen.ascii, Some(true));
    let told = config.diagnostics.iter().any(|diagnostic| diagnostic.message.contains("yours"));
    assert!(told, "{:?}", config.diagnostics);
}
