//! Tests of `translate_last_match`, and of deny rules with exceptions.

use super::*;
use proptest::prelude::*;
use wildmatch::WildMatch;

/// A rule as it is written: key, pattern and level.
type RuleRow<'a> = (&'a str, &'a str, &'a str);

/// Rules, and subjects with their keys.
type RuleTable<'a> = (&'a [RuleRow<'a>], &'a [(&'a str, &'a str)]);

fn parse_level(level: &str) -> PermissionLevel {
    match level {
        "allow" => PermissionLevel::Allow,
        "ask" => PermissionLevel::Ask,
        _ => PermissionLevel::Deny,
    }
}

/// Returns the level of the last match, as another agent evaluates the rules. As in our rules, a
/// pattern that ends in ` *` or `/*` also matches without it.
fn last_match(rules: &[RuleRow<'_>], key: &str, subject: &str) -> Option<PermissionLevel> {
    let matches = |pattern: &str| {
        let tail = pattern.strip_suffix(" *").or_else(|| pattern.strip_suffix("/*"));
        std::iter::once(pattern).chain(tail).any(|it| WildMatch::new(it).matches(subject))
    };
    let mut rules = rules.iter().rev();
    let rule = rules.find(|rule| WildMatch::new(rule.0).matches(key) && matches(rule.1));
    rule.map(|rule| parse_level(rule.2))
}

fn translate(rules: &[RuleRow<'_>], is_restricting: bool) -> TranslatedRules {
    let rules: Vec<LastMatchRule> = rules
        .iter()
        .map(|(key, pattern, level)| LastMatchRule {
            key: (*key).to_owned(),
            pattern: (*pattern).to_owned(),
            level: parse_level(level),
        })
        .collect();
    translate_last_match(&rules, is_restricting)
}

fn to_config(translated: &TranslatedRules) -> Value {
    let mut config = json!({});
    for (key, pattern, level) in &translated.rules {
        config[key][pattern] = level.clone();
    }
    config
}

/// Returns the level of our rules for a subject that is not an access.
fn our_level(config: &Value, key: &str, subject: &str) -> Option<PermissionLevel> {
    let rules = PermissionRules::parse(config).unwrap();
    rules.deciding_rule(key, &RuleSubject::new(subject)).map(|rule| rule.level)
}

/// Rules of real set-ups, each with subjects that tell the rules apart.
#[test]
fn rules_of_real_setups_keep_their_effect() {
    let tables: &[RuleTable<'_>] = &[
        (
            &[("bash", "*", "deny"), ("bash", "git status *", "allow")],
            &[("bash", "git status"), ("bash", "git status -s"), ("bash", "rm x"), ("bash", "git")],
        ),
        (
            &[
                ("bash", "*", "deny"),
                ("bash", "bun test*", "allow"),
                ("bash", "node -e *", "allow"),
                ("bash", "git diff*", "allow"),
                ("bash", "git status", "allow"),
            ],
            &[
                ("bash", "bun test a"),
                ("bash", "node -e 1"),
                ("bash", "node x"),
                ("bash", "git status"),
                ("bash", "git status -s"),
                ("bash", "git difftool"),
            ],
        ),
        (
            &[("bash", "git diff *", "allow"), ("bash", "cat *", "deny"), ("bash", "*", "deny")],
            &[("bash", "git diff"), ("bash", "cat x"), ("bash", "ls")],
        ),
        (
            &[
                ("read", "*", "allow"),
                ("read", "*.env", "deny"),
                ("read", "*.env.*", "deny"),
                ("read", "*.key", "deny"),
                ("read", "credentials*", "deny"),
                ("read", "*.env.example", "allow"),
                ("read", ".env.example", "allow"),
            ],
            &[
                ("read", "a.rs"),
                ("read", ".env"),
                ("read", ".env.local"),
                ("read", "a/.env.example"),
                ("read", ".env.example"),
                ("read", "x.key"),
                ("read", "credentials.env.example"),
            ],
        ),
        (
            &[
                ("*", "*", "allow"),
                ("bash", "*", "allow"),
                ("bash", "rm *", "ask"),
                ("bash", "git push --force*", "ask"),
                ("bash", "git push", "allow"),
                ("bash", "npm run*", "allow"),
            ],
            &[("bash", "rm -rf x"), ("bash", "git push --force"), ("bash", "git push"), ("x", "*")],
        ),
        (
            &[
                ("bash", "*", "allow"),
                ("bash", "find *-exec*", "deny"),
                ("bash", "git push*", "deny"),
                ("bash", "sudo *", "deny"),
            ],
            &[("bash", "find . -exec x"), ("bash", "git push x"), ("bash", "ls"), ("bash", "sudo")],
        ),
        (
            &[
                ("bash", "*", "ask"),
                ("bash", "gh *", "allow"),
                ("bash", "gh * close*", "ask"),
                ("bash", "gh repo clone*", "allow"),
                ("bash", "git *", "allow"),
                ("bash", "git commit*", "deny"),
            ],
            &[
                ("bash", "gh issue close 1"),
                ("bash", "gh repo clone close"),
                ("bash", "git commit"),
                ("bash", "git log"),
                ("bash", "make"),
            ],
        ),
        (
            &[("external_directory", "/tmp/*", "allow"), ("external_directory", "*", "ask")],
            &[("external_directory", "/tmp/x"), ("external_directory", "/srv/x")],
        ),
        (
            &[
                ("*", "*", "deny"),
                ("read", "*", "allow"),
                ("bash", "git log *", "allow"),
                ("bash", "ls *", "ask"),
            ],
            &[
                ("read", "x"),
                ("bash", "git log"),
                ("bash", "ls -l"),
                ("bash", "rm x"),
                ("edit", "x"),
                ("mcp_tool", "*"),
            ],
        ),
    ];
    for (rules, subjects) in tables {
        let translated = translate(rules, false);
        let config = to_config(&translated);
        for (key, subject) in *subjects {
            let expected = last_match(rules, key, subject);
            assert_eq!(our_level(&config, key, subject), expected, "{key} {subject}: {config}");
        }
        let parsed = PermissionRules::parse(&config).unwrap();
        let surroundings = RuleSurroundings {
            other_rules: Vec::new(),
            is_restricting: false,
            built_in_tool_key: &|_| None,
            unknown_key_advice: &|_| None,
        };
        assert_eq!(parsed.dead_rules(&surroundings), Vec::new(), "{config}");
    }
}

#[test]
fn a_deny_with_exceptions_applies_to_every_command_of_a_line() {
    let rules = json!({"bash": {
        "*": {"level": "deny", "except": ["git status", "ls *", "mytool *", "cat *"]},
        "*| cat*": "deny",
        "git status": "allow",
        "ls *": "allow",
        "cat *": "allow",
        "mytool *": "allow",
    }});
    let policy = commands::policy_with(rules, PermissionMode::Ask, SandboxStatus::Active);
    for (command, expected) in [
        ("git status", "allow"),
        // The words of a program that is not known might be a command.
        ("mytool build", "allow"),
        ("mytool build && rm x", "deny"),
        // Another rule for the whole line still applies.
        ("git status | cat", "deny"),
        ("(git status | cat)", "deny"),
        ("ls && git status", "allow"),
        ("git status && git log", "deny"),
        ("sudo git status", "deny"),
        ("sh -c 'git status'", "deny"),
        ("git log", "deny"),
        ("git status > x; rm x", "deny"),
    ] {
        let access = ToolAccess::RunCommand { command: command.into(), folder: ".".into() };
        let found = match policy.decide(vec![access], &[]) {
            Decision::Allowed(_) => "allow",
            Decision::Ask(_) => "ask",
            Decision::Denied { .. } => "deny",
        };
        assert_eq!(found, expected, "{command}");
    }
    assert!(!policy.denies_outright("bash"));
}

#[test]
fn an_exception_is_part_of_a_deny_only() {
    for rules in [
        json!({"bash": {"*": {"level": "allow", "except": ["rm *"]}}}),
        json!({"bash": {"*": {"level": "deny"}}}),
        json!({"bash": {"*": {"level": "deny", "except": []}}}),
        json!({"bash": {"*": {"level": "deny", "except": "ls"}}}),
        json!({"bash": {"*": {"level": "deny", "except": [1]}}}),
        json!({"bash": {"*": {"level": "deny", "except": ["ls"], "more": 1}}}),
    ] {
        let error = PermissionRules::parse(&rules).unwrap_err();
        assert!(error.message.contains("except"), "{rules}: {error}");
        assert_eq!(error.pointer, "/bash/*");
    }
    for host in ["docs.rs*", "https://docs.rs/x"] {
        let rules = json!({"webfetch": {"*": {"level": "deny", "except": [host]}}});
        let error = PermissionRules::parse(&rules).unwrap_err();
        assert!(error.message.contains("match hosts"), "{host}: {error}");
    }
}

#[test]
fn rules_that_can_only_restrict_keep_an_allow_that_is_an_exception() {
    let rules: [RuleRow<'_>; 4] = [
        ("bash", "*", "ask"),
        ("bash", "git log *", "allow"),
        ("edit", "*", "deny"),
        ("read", "x", "allow"),
    ];
    let translated = translate(&rules, true);
    let expected = json!({"bash": {"*": "ask", "git log *": "allow"}, "edit": {"*": "deny"}});
    assert_eq!(to_config(&translated), expected);
    assert_eq!(translated.dropped.len(), 1);
    let rules: [RuleRow<'_>; 2] = [("bash", "*", "deny"), ("bash", "ls *", "allow")];
    let translated = translate(&rules, true);
    let expected = json!({"bash": {"*": {"level": "deny", "except": ["ls *"]}}});
    assert_eq!((to_config(&translated), translated.dropped.len()), (expected, 0));
}

fn rule_rows() -> impl Strategy<Value = Vec<(String, String, &'static str)>> {
    let level = prop_oneof![Just("allow"), Just("ask"), Just("deny")];
    let key =
        prop_oneof![Just("bash"), Just("b*"), Just("*"), Just("read")].prop_map(str::to_owned);
    let pattern = prop_oneof![Just("*".to_owned()), "[ab *?/]{1,4}"];
    prop::collection::vec((key, pattern, level), 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_translation_has_the_effect_of_the_last_match(
        rows in rule_rows(),
        key in prop_oneof![Just("bash"), Just("read"), Just("mcp")],
        subject in "[ab /]{0,5}",
        is_restricting in any::<bool>(),
    ) {
        // In a JSON object, keys and patterns are unique, and the patterns of a key are together.
        let mut grouped: Vec<(String, String, &str)> = Vec::new();
        for (key, _, _) in &rows {
            for row in rows.iter().filter(|row| row.0 == *key) {
                if !grouped.iter().any(|(key, pattern, _)| (key, pattern) == (&row.0, &row.1)) {
                    grouped.push(row.clone());
                }
            }
        }
        let rows: Vec<RuleRow<'_>> =
            grouped.iter().map(|(key, pattern, level)| (&**key, &**pattern, *level)).collect();
        let config = to_config(&translate(&rows, is_restricting));
        let found = our_level(&config, key, &subject);
        let expected = last_match(&rows, key, &subject);
        if is_restricting {
            // Rules that restrict nothing and rules that allow are the same.
            let strict = |level: Option<PermissionLevel>| level.unwrap_or(PermissionLevel::Allow);
            prop_assert_eq!(strict(found), strict(expected), "{}", config);
        } else {
            prop_assert_eq!(found, expected, "{}", config);
        }
    }
}
