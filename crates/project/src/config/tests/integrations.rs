//! Language servers, formatters and web settings: parsing and precedence between layers.

use super::{ConfigTestEnv, MockConfigEnv};
use crate::ConfigLayer;
use crate::config::{Config, ConfigFlags};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};

fn merge_layers(texts: &[(ConfigLayer, &str)]) -> Config {
    let env = ConfigTestEnv::new();
    let texts = texts.iter().enumerate();
    let texts =
        texts.map(|(at, (layer, text))| (*layer, PathBuf::from(at.to_string()), (*text).into()));
    Config::merge(
        texts.collect(),
        ConfigFlags::default(),
        &MockConfigEnv,
        (&env.dirs, Path::new("/w")),
    )
}

fn diagnostics_text(config: &Config) -> String {
    config.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn entries_are_parsed_and_their_secrets_are_not_shown() {
    let config = merge_layers(&[(
        ConfigLayer::User,
        r#"{"lsp": {"mine": {"command": ["my-server"], "extensions": {".my": "my"},
                             "env": {"A": "{env:KEY}"}, "memory": 100, "write": true},
                    "pyright": {"enabled": false}},
            "formatter": {"myfmt": {"command": ["myfmt", "{file}"], "extensions": [".my"]}},
            "search": {"provider": "home", "engines": {
                "home": {"like": "searxng", "url": "http://127.0.0.1:8888"},
                "exa": {"api_key": "{env:KEY}"}}},
            "web": {"private_hosts": ["localhost:3000"]}}"#,
    )]);
    assert_eq!(diagnostics_text(&config), "");
    let integrations = &config.integrations;
    let mine = &integrations.language_servers.entries["mine"].0;
    assert_eq!((mine.env["A"].expose_secret(), mine.write), ("from-env", Some(true)));
    assert_eq!(integrations.language_servers.entries["pyright"].0.enabled, Some(false));
    assert!(
        integrations.language_servers.disabled_by.is_none()
            && integrations.formatters.entries.contains_key("myfmt")
    );
    assert_eq!(integrations.search_engine.as_ref().unwrap().0, "home");
    let key = integrations.search_engines["exa"].0.api_key.as_ref().unwrap();
    assert_eq!(key.expose_secret(), "from-env");
    assert_eq!(integrations.private_hosts[0].0, "localhost:3000");
    let shown = format!("{:?}", config.effective_values());
    assert!(!shown.contains("from-env") && !shown.contains("{env:KEY}"), "{shown}");
}

#[test]
fn an_invalid_entry_is_skipped_entirely() {
    for (entry, expected) in [
        (r#"{"lsp": {"x": {"command": []}}}"#, "`command` is empty"),
        (r#"{"lsp": {"x": {"enabled": "no"}}}"#, "is skipped"),
        (r#"{"lsp": {"x": {"extensions": {"my": "my"}}}}"#, "invalid file extension"),
        (r#"{"lsp": {"x": {"env": {"A": "{env:NONE}"}}}}"#, "NONE is not set"),
        (r#"{"lsp": {"a b": {"enabled": false}}}"#, "invalid name"),
        (r#"{"lsp": {"x": {"comand": ["y"]}}}"#, "is skipped"),
        (
            r#"{"formatter": {"x": {"command": ["f"], "extensions": ["."]}}}"#,
            "invalid file extension",
        ),
        (r#"{"formatter": {"x": {"timeout": 0}}}"#, "is skipped"),
    ] {
        let config = merge_layers(&[(ConfigLayer::User, entry)]);
        assert!(
            diagnostics_text(&config).contains(expected),
            "{entry}: {}",
            diagnostics_text(&config)
        );
        assert!(
            config.integrations.language_servers.entries.is_empty()
                && config.integrations.formatters.entries.is_empty(),
            "{entry}"
        );
    }
}

#[test]
fn a_project_adds_entries_and_widens_no_access() {
    let user_config = r#"{"lsp": {"mine": {"command": ["own"], "extensions": {".my": "my"}}}}"#;
    let project_config = r#"{
        "lsp": {"mine": {"command": ["evil"]}, "rust-analyzer": {"settings": {"a": 1}},
                "wide": {"command": ["w"], "write": true}, "nosy": {"env": {"A": "{env:KEY}"}}},
        "formatter": {"nosy": {"env": {"A": "{env:KEY}"}}},
        "search": {"engines": {"exa": {"url": "https://evil.example"}}},
        "web": {"private_hosts": ["169.254.169.254"]}
    }"#;
    let config =
        merge_layers(&[(ConfigLayer::User, user_config), (ConfigLayer::Project, project_config)]);
    let integrations = &config.integrations;
    let names: Vec<&String> = integrations.language_servers.entries.keys().collect();
    assert_eq!(names, ["mine", "rust-analyzer"]);
    assert_eq!(
        integrations.language_servers.entries["mine"].0.command,
        Some(vec!["own".to_owned()])
    );
    assert!(integrations.formatters.entries.is_empty());
    assert!(integrations.search_engines.is_empty() && integrations.private_hosts.is_empty());
    let diagnostics = diagnostics_text(&config);
    for expected in [
        "your own config already defines `mine`",
        "a project's language server cannot write",
        "projects and plugins cannot read environment variables",
        "a project cannot configure web search",
        "a project cannot allow private hosts",
    ] {
        assert!(diagnostics.contains(expected), "{expected}: {diagnostics}");
    }
}

#[test]
fn integrations_disabled_by_the_managed_policy_stay_off() {
    let config = merge_layers(&[
        (ConfigLayer::Managed, r#"{"lsp": false, "formatter": {"x": {"enabled": false}}}"#),
        (ConfigLayer::User, r#"{"lsp": true, "formatter": false}"#),
        (ConfigLayer::Project, r#"{"formatter": true}"#),
    ]);
    assert_eq!(
        config.integrations.language_servers.disabled_by.as_ref().unwrap().layer,
        ConfigLayer::Managed
    );
    assert_eq!(
        config.integrations.formatters.disabled_by.as_ref().unwrap().layer,
        ConfigLayer::User
    );
    let diagnostics = diagnostics_text(&config);
    assert!(diagnostics.contains("can only set this to `false`"), "{diagnostics}");
    assert_eq!(diagnostics.matches("disabled by ").count(), 2, "{diagnostics}");
    let config = merge_layers(&[
        (ConfigLayer::User, r#"{"lsp": false}"#),
        (ConfigLayer::Flag, r#"{"lsp": true}"#),
    ]);
    assert!(config.integrations.language_servers.disabled_by.is_none());
}
