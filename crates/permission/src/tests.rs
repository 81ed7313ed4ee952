//! Verdicts, as tables: rules, what a call would touch, what comes of it.

use super::*;
use serde_json::{Value, json};

fn policy(rules: Value) -> Policy {
    Policy::new(Rules::parse(&rules).unwrap())
}

/// `read a.txt`, `edit a.txt`, or the name of a tool.
fn access(text: &str) -> Access {
    match text.split_once(' ') {
        Some(("read", path)) => Access::Read { path: path.into() },
        Some(("edit", path)) => Access::Edit { path: path.into() },
        _ => Access::Use { tool: text.into() },
    }
}

fn level(policy: &Policy, accesses: &[&str]) -> &'static str {
    match policy.decide(accesses.iter().map(|text| access(text)).collect(), &[]) {
        Decision::Allowed(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Denied { .. } => "deny",
    }
}

#[track_caller]
fn check(rules: Value, expected: &[(&[&str], &str)]) {
    let policy = policy(rules);
    for (accesses, verdict) in expected {
        assert_eq!(level(&policy, accesses), *verdict, "{accesses:?}");
    }
}

#[test]
fn without_rules_looking_is_free_and_changing_is_asked_about() {
    check(
        json!({}),
        &[
            (&[], "allow"),
            (&["read src/main.rs"], "allow"),
            (&["edit src/main.rs"], "ask"),
            (&["deploy"], "ask"),
            (&["read .env"], "ask"),
            (&["read a/.ENV.local"], "ask"),
            (&["read prod.env"], "ask"),
            (&["read .envrc"], "ask"),
            (&["read .env.example"], "allow"),
        ],
    );
}

#[test]
fn one_word_speaks_for_everything() {
    check(json!("allow"), &[(&["edit a"], "allow"), (&["deploy"], "allow")]);
    check(json!("deny"), &[(&["read a"], "deny")]);
    check(json!("ask"), &[(&["read a"], "ask")]);
}

#[test]
fn secrets_are_asked_about_unless_a_rule_names_them() {
    check(json!({"read": "allow"}), &[(&["read .env"], "ask"), (&["read a"], "allow")]);
    check(json!("allow"), &[(&["read .env"], "ask"), (&["read .ENV"], "ask")]);
    check(json!({"read": {"*.env": "allow"}}), &[(&["read .env"], "allow")]);
}

#[test]
fn changing_secrets_shows_them_so_it_is_asked_about_as_well() {
    let sweeping = [json!("allow"), json!({"edit": "allow"}), json!({"edit": {"*": "allow"}})];
    for rules in sweeping {
        check(
            rules,
            &[
                (&["edit .env"], "ask"),
                (&["edit deep/prod.env"], "ask"),
                (&["edit .env. "], "ask"),
                (&["edit .env.example"], "allow"),
                (&["edit environment.rs"], "allow"),
            ],
        );
    }
    check(json!({"edit": {"*.env": "allow"}}), &[(&["edit .env"], "allow")]);
    check(json!({"edit": {".env": "allow"}}), &[(&["edit .env"], "allow")]);
}

#[test]
fn no_rule_with_a_wildcard_opens_what_is_protected() {
    for rules in [
        json!("allow"),
        json!({"edit": "allow"}),
        json!({"edit": {".git/*": "allow"}}),
        json!({"edit": {".git/hooks/*": "allow", ".git/config?": "allow"}}),
        json!({"edit": {".git": "allow", "git/config": "allow"}}),
        json!({"read": {".git/config": "allow"}}),
        json!({"edit": {".git/config": "ask"}}),
        json!({}),
    ] {
        check(
            rules,
            &[
                (&["edit .git/config"], "deny"),
                (&["edit .GIT/config"], "deny"),
                (&["edit .git/hooks/pre-commit"], "deny"),
                (&["read .git/config"], "allow"),
            ],
        );
    }
}

#[test]
fn a_person_opens_what_is_protected_by_its_exact_path() {
    let rules = json!({"edit": {".vscode/settings.json": "allow"}});
    check(
        rules.clone(),
        &[
            (&["edit .vscode/settings.json"], "allow"),
            (&["edit .vscode/Settings.json"], "deny"),
            (&["edit .vscode/settings.json/x"], "deny"),
            (&["edit .vscode/tasks.json"], "deny"),
            (&["edit .vscode/settings.json", "edit .git/config"], "deny"),
        ],
    );
    let deny = json!({"edit": {".vscode/settings.json": "allow", ".vscode/*": "deny"}});
    check(deny, &[(&["edit .vscode/settings.json"], "deny")]);
    let later = json!({"edit": {".vscode/settings.json": "allow", "*": "ask"}});
    check(later, &[(&["edit .vscode/settings.json"], "ask")]);
    let strict = policy(rules).tightened_by(Rules::parse(&json!({"edit": "ask"})).unwrap());
    assert_eq!(level(&strict, &["edit .vscode/settings.json"]), "ask");
}

#[test]
fn a_repository_cannot_open_what_is_protected() {
    let rules = Rules::parse(&json!({"edit": {".vscode/settings.json": "allow"}})).unwrap();
    let policy = policy(json!("allow")).tightened_by(rules);
    assert_eq!(level(&policy, &["edit .vscode/settings.json"]), "deny");
}

#[test]
fn a_protected_path_is_so_as_spelled_and_as_resolved() {
    let policy = policy(json!({"edit": {".vscode/a": "allow", "*": "allow"}}));
    let both = |real: &str, spelled: &str| policy.decide(vec![access(real)], &[access(spelled)]);
    assert!(matches!(both("edit .git/config", "edit x/config"), Decision::Denied { .. }));
    assert!(matches!(both("edit x/config", "edit .git/config"), Decision::Denied { .. }));
    assert!(matches!(both("edit .vscode/a", "edit x/a"), Decision::Allowed(_)));
    assert!(matches!(both("edit x/a", "edit x/a"), Decision::Allowed(_)));
}

#[test]
fn the_denial_says_why_and_what_the_person_can_do() {
    let decided = policy(json!("allow")).decide(vec![access("edit .vscode/a \"b\"")], &[]);
    let Decision::Denied { reason } = decided else { panic!("{decided:?}") };
    assert!(reason.contains("an editor runs or obeys it"), "{reason}");
    let rule = reason.split_once("config: ").unwrap().1;
    let rules = Rules::parse(&serde_json::from_str(rule).unwrap()).unwrap();
    assert_eq!(level(&Policy::new(rules), &["edit .vscode/a \"b\""]), "allow");
}

#[test]
fn a_denied_folder_is_not_listed() {
    check(
        json!({"read": {"private/*": "deny"}}),
        &[
            (&["read private"], "deny"),
            (&["read private/a"], "deny"),
            (&["read privates"], "allow"),
        ],
    );
}

#[test]
fn the_last_rule_that_matches_counts() {
    let rules = json!({"edit": {"*": "ask", "docs/*": "allow", "docs/api/*": "ask"}});
    check(
        rules,
        &[
            (&["edit src/a"], "ask"),
            (&["edit docs/a"], "allow"),
            (&["edit docs/deep/er/a"], "allow"),
            (&["edit docs/api/a"], "ask"),
        ],
    );
}

#[test]
fn deny_wins_wherever_it_stands() {
    let first = json!({"edit": {"secret/*": "deny", "*": "allow"}});
    let last = json!({"edit": {"*": "allow", "secret/*": "deny"}});
    let elsewhere = json!({"*": {"secret/*": "deny"}, "edit": "allow"});
    for rules in [first, last, elsewhere] {
        check(rules, &[(&["edit secret/a"], "deny"), (&["edit open/a"], "allow")]);
    }
}

#[test]
fn the_strictest_access_decides_for_the_call() {
    let rules = json!({"read": "allow", "edit": {"a": "allow", "b": "ask", "c": "deny"}});
    check(
        rules,
        &[
            (&["read x", "edit a"], "allow"),
            (&["edit a", "edit b"], "ask"),
            (&["edit b", "edit c", "edit a"], "deny"),
        ],
    );
}

#[test]
fn keys_may_be_patterns_and_a_trailing_star_may_match_nothing() {
    check(json!({"docs_*": "allow"}), &[(&["docs_search"], "allow"), (&["doc"], "ask")]);
    check(json!({"read": {"a *": "deny"}}), &[(&["read a"], "deny"), (&["read ab"], "allow")]);
}

#[test]
fn a_rule_may_name_the_path_as_spelled_or_as_resolved() {
    let policy = policy(json!({"read": {"link/*": "deny", "real/*": "deny", "*": "allow"}}));
    let both = |real: &str, spelled: &str| policy.decide(vec![access(real)], &[access(spelled)]);
    assert!(matches!(both("read open/a", "read link/a"), Decision::Denied { .. }));
    assert!(matches!(both("read real/a", "read open/a"), Decision::Denied { .. }));
    assert!(matches!(both("read open/a", "read open/a"), Decision::Allowed(_)));
}

#[test]
fn a_spelling_that_no_rule_names_changes_nothing() {
    let policy = policy(json!({"edit": {"docs/*": "allow"}}));
    let decided = policy.decide(vec![access("edit docs/a")], &[access("edit ./docs/a")]);
    assert!(matches!(decided, Decision::Allowed(_)));
}

#[test]
fn others_can_tighten_but_never_widen() {
    let base = policy(json!({"edit": {"a": "allow", "b": "deny"}}));
    let strict = base.clone().tightened_by(Rules::parse(&json!({"edit": "ask"})).unwrap());
    assert_eq!(level(&strict, &["edit a"]), "ask");
    assert_eq!(level(&strict, &["edit b"]), "deny");
    let lax = base.tightened_by(Rules::parse(&json!("allow")).unwrap());
    assert_eq!(level(&lax, &["edit b"]), "deny");
    assert_eq!(level(&lax, &["edit c"]), "ask");
}

#[test]
fn tools_that_can_never_run_are_hidden() {
    let policy = policy(json!({"edit": "deny", "read": {"secret/*": "deny"}, "x_*": "deny"}));
    assert!(policy.denies_outright("edit") && policy.denies_outright("x_y"));
    assert!(!policy.denies_outright("read") && !policy.denies_outright("other"));
}

#[test]
fn rules_nobody_can_read_are_an_error_with_its_place() {
    for (rules, pointer) in [
        (json!("yes"), ""),
        (json!(["allow"]), ""),
        (json!({"edit": true}), "/edit"),
        (json!({"edit": {"a/b": "Allow"}}), "/edit/a~1b"),
    ] {
        assert_eq!(Rules::parse(&rules).unwrap_err().pointer, pointer, "{rules}");
    }
}

#[test]
fn a_grant_opens_what_was_asked_for_and_nothing_else() {
    let Decision::Ask(question) = policy(json!({})).decide(vec![access("edit a")], &[]) else {
        panic!("it should ask")
    };
    assert!(question.preview().covers(&access("read a")));
    assert!(!question.preview().covers(&access("edit a")), "looking first changes nothing");
    let grant = question.answered(&Answer::Once).unwrap();
    assert!(grant.covers(&access("edit a")) && grant.covers(&access("read a")));
    assert!(!grant.covers(&access("edit b")) && !grant.covers(&access("a")));
}

#[test]
fn a_no_opens_nothing() {
    let Decision::Ask(question) = policy(json!({})).decide(vec![access("edit a")], &[]) else {
        panic!("it should ask")
    };
    assert!(question.answered(&Answer::No { reason: None }).is_none());
}
