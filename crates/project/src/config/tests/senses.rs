//! Language servers, formatters and the web: whose words count.

use super::{Street, Yard};
use crate::Layer;
use crate::config::{Config, Flags};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};

fn of(texts: &[(Layer, &str)]) -> Config {
    let yard = Yard::new();
    let texts = texts.iter().enumerate();
    let texts =
        texts.map(|(at, (layer, text))| (*layer, PathBuf::from(at.to_string()), (*text).into()));
    Config::of(texts.collect(), Flags::default(), &Street, (&yard.places, Path::new("/w")))
}

fn wrong(config: &Config) -> String {
    config.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_are_taken_and_secrets_of_theirs_are_not_shown() {
    let config = of(&[(
        Layer::User,
        r#"{"lsp": {"mine": {"command": ["my-server"], "extensions": {".my": "my"},
                             "env": {"A": "{env:KEY}"}, "memory": 100, "write": true},
                    "pyright": {"enabled": false}},
            "formatter": {"myfmt": {"command": ["myfmt", "{file}"], "extensions": [".my"]}},
            "search": {"provider": "home", "engines": {
                "home": {"like": "searxng", "url": "http://127.0.0.1:8888"},
                "exa": {"api_key": "{env:KEY}"}}},
            "web": {"inside": ["localhost:3000"]}}"#,
    )]);
    assert_eq!(wrong(&config), "");
    let senses = &config.senses;
    let mine = &senses.code.rows["mine"].0;
    assert_eq!((mine.env["A"].expose_secret(), mine.write), ("from-env", Some(true)));
    assert_eq!(senses.code.rows["pyright"].0.enabled, Some(false));
    assert!(senses.code.off.is_none() && senses.formats.rows.contains_key("myfmt"));
    assert_eq!(senses.engine.as_ref().unwrap().0, "home");
    let key = senses.engines["exa"].0.api_key.as_ref().unwrap();
    assert_eq!(key.expose_secret(), "from-env");
    assert_eq!(senses.inside[0].0, "localhost:3000");
    let shown = format!("{:?}", config.shown());
    assert!(!shown.contains("from-env") && !shown.contains("{env:KEY}"), "{shown}");
}

#[test]
fn a_row_something_is_wrong_with_is_left_out_whole() {
    for (row, why) in [
        (r#"{"lsp": {"x": {"command": []}}}"#, "names no program"),
        (r#"{"lsp": {"x": {"enabled": "no"}}}"#, "left out"),
        (r#"{"lsp": {"x": {"extensions": {"my": "my"}}}}"#, "no end of a name"),
        (r#"{"lsp": {"x": {"env": {"A": "{env:NONE}"}}}}"#, "NONE is not set"),
        (r#"{"lsp": {"a b": {"enabled": false}}}"#, "a name has letters"),
        (r#"{"lsp": {"x": {"comand": ["y"]}}}"#, "left out"),
        (r#"{"formatter": {"x": {"command": ["f"], "extensions": ["."]}}}"#, "no end of a name"),
        (r#"{"formatter": {"x": {"timeout": 0}}}"#, "left out"),
    ] {
        let config = of(&[(Layer::User, row)]);
        assert!(wrong(&config).contains(why), "{row}: {}", wrong(&config));
        assert!(
            config.senses.code.rows.is_empty() && config.senses.formats.rows.is_empty(),
            "{row}"
        );
    }
}

#[test]
fn a_project_adds_rows_and_opens_nothing() {
    let own = r#"{"lsp": {"mine": {"command": ["own"], "extensions": {".my": "my"}}}}"#;
    let theirs = r#"{
        "lsp": {"mine": {"command": ["evil"]}, "rust-analyzer": {"settings": {"a": 1}},
                "wide": {"command": ["w"], "write": true}, "nosy": {"env": {"A": "{env:KEY}"}}},
        "formatter": {"nosy": {"env": {"A": "{env:KEY}"}}},
        "search": {"engines": {"exa": {"url": "https://evil.example"}}},
        "web": {"inside": ["169.254.169.254"]}
    }"#;
    let config = of(&[(Layer::User, own), (Layer::Project, theirs)]);
    let senses = &config.senses;
    let rows: Vec<&String> = senses.code.rows.keys().collect();
    assert_eq!(rows, ["mine", "rust-analyzer"]);
    assert_eq!(senses.code.rows["mine"].0.command, Some(vec!["own".to_owned()]));
    assert!(senses.formats.rows.is_empty());
    assert!(senses.engines.is_empty() && senses.inside.is_empty());
    let wrong = wrong(&config);
    for why in [
        "your own config already speaks of `mine`",
        "a project's server only looks",
        "a project cannot read the environment",
        "a project cannot choose where searches go",
        "a project cannot open hosts that are not public",
    ] {
        assert!(wrong.contains(why), "{why}: {wrong}");
    }
}

#[test]
fn what_the_policy_of_the_machine_switches_off_stays_off() {
    let config = of(&[
        (Layer::Managed, r#"{"lsp": false, "formatter": {"x": {"enabled": false}}}"#),
        (Layer::User, r#"{"lsp": true, "formatter": false}"#),
        (Layer::Project, r#"{"formatter": true}"#),
    ]);
    assert_eq!(config.senses.code.off.as_ref().unwrap().layer, Layer::Managed);
    assert_eq!(config.senses.formats.off.as_ref().unwrap().layer, Layer::User);
    let wrong = wrong(&config);
    assert!(wrong.contains("can only say `false` here"), "{wrong}");
    assert_eq!(wrong.matches("it is switched off (").count(), 2, "{wrong}");
    let config = of(&[(Layer::User, r#"{"lsp": false}"#), (Layer::Flag, r#"{"lsp": true}"#)]);
    assert!(config.senses.code.off.is_none());
}
