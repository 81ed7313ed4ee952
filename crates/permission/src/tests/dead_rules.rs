//! Tests of `dead_rules`.

use super::*;
use proptest::prelude::*;

/// Returns the dead rules, as `rule: reason. advice`.
fn dead_rules(rules: Value, is_restricting: bool) -> Vec<String> {
    let rules = PermissionRules::parse(&rules).unwrap();
    let surroundings = RuleSurroundings {
        other_rules: Vec::new(),
        is_restricting,
        built_in_tool_key: &|tool| match tool {
            "write" => Some("edit".to_owned()),
            "grep" | "todowrite" => Some(tool.to_owned()),
            _ => None,
        },
        unknown_key_advice: &|key| (key == "bahs").then(|| "Write \"bash\"".to_owned()),
    };
    let dead_rules = rules.dead_rules(&surroundings).into_iter();
    dead_rules.map(|dead| format!("{}: {}. {}", dead.rule, dead.reason, dead.advice)).collect()
}

/// Checks that exactly one rule is dead and that its description contains each text.
fn check_dead(rules: Value, texts: &[&str]) {
    let found = dead_rules(rules.clone(), false);
    let [only] = found.as_slice() else { panic!("{rules}: {found:?}") };
    for text in texts {
        assert!(only.contains(text), "{rules}: {only} lacks {text}");
    }
}

#[test]
fn a_rule_that_a_deny_covers_is_dead() {
    for (rules, dead) in [
        (json!({"bash": {"*": "deny", "git status *": "allow"}}), r#""bash": "git status *":"#),
        (json!({"bash": {"git status": "ask", "git *": "deny"}}), r#""bash": "git status":"#),
        (json!({"*": "deny", "read": "allow"}), r#""read": "*":"#),
        (json!({"read": {"Private/a": "allow", "private/*": "deny"}}), r#""read": "Private/a":"#),
        (json!({"mcp_x": "ask", "mcp_*": "deny"}), r#""mcp_x": "*":"#),
    ] {
        check_dead(rules, &[dead, "a deny always wins", "Write \""]);
    }
}

#[test]
fn a_rule_that_a_later_rule_covers_is_dead() {
    for rules in [
        json!({"bash": {"git push *": "ask", "*": "allow"}}),
        json!({"bash": {"git push *": "allow", "git *": "ask"}}),
        json!({"edit": "allow", "*": "ask"}),
        json!({"read": {".env": "allow", "*": "allow"}}),
    ] {
        check_dead(rules, &["the last match counts", "Move this rule below"]);
    }
}

#[test]
fn a_key_or_pattern_that_nothing_has_is_dead() {
    for (rules, texts) in [
        (json!({"bahs": "deny"}), ["no access and no tool", "Write \"bash\""]),
        (json!({"write": {"src/*": "deny"}}), ["all of its calls", r#""edit": {"src/*": "deny"}"#]),
        (json!({"write": "allow"}), ["under `edit`", r#"Write "edit": "allow""#]),
        (json!({"grep": {"src/*": "ask"}}), ["all of its calls", r#""read": {"src/*": "ask"}"#]),
        (json!({"todowrite": {"x": "deny"}}), ["all of its calls", r#"Write "todowrite": "deny""#]),
        (json!({"network": "allow"}), ["no rule opens the network", "sandbox.network"]),
        (json!({"sandbox": "allow"}), ["always requires approval", "only deny"]),
        (json!({"read": {"~/notes/*": "deny"}}), ["relative", r#"{"~/notes/*": "deny"}"#]),
        (json!({"edit": {"./src/*": "deny"}}), ["no `.` and `..`", r#""edit": {"src/*": "deny"}"#]),
        (json!({"edit": {"../x": "deny"}}), ["no `.` and `..`", "absolute path"]),
        (json!({"bash": {"git  log": "allow"}}), ["one space", r#""bash": {"git log": "allow"}"#]),
        (json!({"bash": {"cd x && ls *": "allow"}}), ["one simple command", "each command"]),
        (json!({"external_directory": {"srv/*": "deny"}}), ["are absolute", "absolute path"]),
        (json!({"external_directory": {"$HOME/x/*": "allow"}}), ["absolute", r#""~/x/*""#]),
        (json!({"process": {"git": "deny"}}), ["no program", r#"{"mcp/git": "deny"}"#]),
    ] {
        check_dead(rules, &texts);
    }
}

#[test]
fn a_rule_that_decides_something_is_not_dead() {
    for rules in [
        json!("allow"),
        json!({"bash": {"*": {"level": "deny", "except": ["git status *"]}, "git status *": "ask"}}),
        json!({"bash": {"*": "ask", "git status *": "allow", "rm *": "deny"}}),
        json!({"*": "ask", "read": "allow", "process": "allow", "external_directory": "allow"}),
        // A wildcard key cannot ask about these keys, so the earlier rule counts.
        json!({"process": "allow", "external_directory": "allow", "*": "ask"}),
        json!({"bash": {"rm -rf *": "deny", "rm *": "deny"}}),
        json!({"bash": {"git ?": "allow", "git *": "allow", "git s*": "ask"}}),
        json!({"read": {"/etc/*": "deny"}, "edit": {"*/..": "ask"}}),
        json!({"edit": {".vscode/settings.json": "allow", "*": "ask"}}),
        json!({"bash": {"*&&*": "ask", "a && b": "deny"}}),
        json!({"process": {"*": "ask", "l*": "deny", "mcp/git": "allow"}}),
        json!({"todowrite": "allow", "grep": "deny", "git_log": {"x": "deny"}}),
        json!({"read": {"Private/*": "ask", "private/*": "allow"}}),
        json!({"webfetch": {"*": "ask", "docs.rs": "allow"}, "doom_loop": {"bash": "deny"}}),
    ] {
        assert_eq!(dead_rules(rules.clone(), false), Vec::<String>::new(), "{rules}");
    }
}

#[test]
fn an_allow_of_a_project_is_dead_unless_it_is_an_exception() {
    let alone = json!({"bash": {"ls *": "allow"}});
    assert_eq!(dead_rules(alone.clone(), false).len(), 0);
    assert_eq!(dead_rules(alone, true).len(), 1);
    let exception = json!({"bash": {"git *": "ask", "git log *": "allow"}});
    assert_eq!(dead_rules(exception, true).len(), 0);
}

#[test]
fn a_deny_of_another_file_is_named() {
    let own = PermissionRules::parse(&json!({"bash": {"git *": "allow"}})).unwrap();
    let policy = PermissionRules::parse(&json!({"bash": "deny"})).unwrap();
    let surroundings = RuleSurroundings {
        other_rules: vec![("/etc/policy.jsonc".to_owned(), &policy)],
        is_restricting: false,
        built_in_tool_key: &|_| None,
        unknown_key_advice: &|_| None,
    };
    let dead = own.dead_rules(&surroundings);
    assert_eq!(dead.len(), 1);
    assert!(dead[0].to_string().contains(r#""bash": "*" in /etc/policy.jsonc denies"#));
    assert_eq!(dead[0].pointer, "/bash/git *");
}

#[test]
fn the_error_about_a_url_names_its_host() {
    let error = PermissionRules::parse(&json!({"webfetch": {"https://docs.rs/*": "allow"}}));
    assert!(error.unwrap_err().message.ends_with("write docs.rs"));
}

fn rule_list() -> impl Strategy<Value = Vec<(String, String, &'static str)>> {
    let level = prop_oneof![Just("allow"), Just("ask"), Just("deny")];
    let key = prop_oneof![Just("bash"), Just("ba*"), Just("*")].prop_map(str::to_owned);
    prop::collection::vec((key, "[aA *?/]{1,4}", level), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_dead_rule_can_be_removed(rules in rule_list(), subject in "[aA /]{0,5}") {
        let mut value = serde_json::Map::new();
        for (key, pattern, level) in &rules {
            let patterns = value.entry(key.clone()).or_insert_with(|| json!({}));
            patterns.as_object_mut().unwrap().insert(pattern.clone(), (*level).into());
        }
        let all = PermissionRules::parse(&value.into()).unwrap();
        let surroundings = RuleSurroundings {
            other_rules: Vec::new(),
            is_restricting: false,
            built_in_tool_key: &|_| None,
            unknown_key_advice: &|_| None,
        };
        let level = |rules: &PermissionRules| {
            rules.deciding_rule("bash", &RuleSubject::new(&subject)).map(|rule| rule.level)
        };
        for dead in all.dead_rules(&surroundings) {
            // A pattern with two spaces can match only text that is no command.
            if dead.reason.contains("one space") {
                continue;
            }
            let kept = all.0.iter().filter(|rule| rule.pointer != dead.pointer).cloned();
            let without = PermissionRules(kept.collect());
            prop_assert_eq!(level(&all), level(&without), "{}", dead);
        }
    }
}
