//! Verdicts, as tables: rules, what a call would touch, what comes of it.

mod commands;

use super::*;
use serde_json::{Value, json};
use windlass_protocol::Answer;

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
fn no_mode_is_laxer_than_the_laxest_there_may_be() {
    let edit = || Access::Edit { path: "a".into() };
    for most in Mode::ALL {
        for mode in Mode::ALL {
            let bounded = Policy::default().at_most(most).at_most(Mode::Full).in_mode(mode);
            let decided = format!("{:?}", bounded.decide(vec![edit()], &[edit()]));
            let plain = Policy::default().in_mode(mode.min(most));
            let expected = format!("{:?}", plain.at_most(most).decide(vec![edit()], &[edit()]));
            assert_eq!(decided, expected, "{mode} under {most}");
            assert!(bounded.mode <= most);
        }
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
fn a_wildcard_opens_secrets_only_if_its_last_part_speaks_of_them() {
    for sweeping in ["src/*", "*", "**", "env/*", ".env/*", "s*/.e*"] {
        let paths: [(&[&str], &str); 2] =
            [(&["read src/.env"], "ask"), (&["read env/.env"], "ask")];
        check(json!({"read": {sweeping: "allow"}}), &paths);
    }
    for naming in ["src/.env", "src/.env*", "*.env", "src/?env", "*/.env"] {
        check(json!({"read": {naming: "allow"}}), &[(&["read src/.env"], "allow")]);
    }
    let named = json!({"read": {"src/.env*": "allow"}});
    check(named, &[(&["read src/.env"], "allow"), (&["read src/.env.local"], "allow")]);
    check(json!({"edit": {"src/*": "allow"}}), &[(&["edit src/.env"], "ask")]);
}

#[test]
fn a_stream_of_ntfs_hides_no_secret() {
    for path in ["read .env:x", "read .env::$DATA", "read a/prod.env:s", "read a:.env"] {
        check(json!({}), &[(&[path], "ask")]);
    }
    check(json!({}), &[(&["read .env.example"], "allow"), (&["read a:b"], "allow")]);
}

#[test]
fn a_link_that_is_spelled_like_a_file_of_secrets_is_asked_about() {
    let verdict = |rules: Value, real: &str, spelled: &str| {
        let decision = policy(rules).decide(vec![access(real)], &[access(spelled)]);
        match decision {
            Decision::Allowed(_) => "allow".to_owned(),
            Decision::Ask(question) => format!("ask: {}", question.reason()),
            Decision::Denied { .. } => "deny".to_owned(),
        }
    };
    let asked = "ask: .env is made to hold secrets, and no rule names it";
    for rules in [json!({}), json!({"read": "allow"}), json!({"read": {"conf/*": "allow"}})] {
        assert_eq!(verdict(rules, "read conf/dev", "read .env"), asked);
    }
    let named = json!({"read": {".env": "allow"}});
    assert_eq!(verdict(named.clone(), "read conf/dev", "read .env"), "allow");
    // Another way to spell what a rule opens is no other file.
    assert_eq!(verdict(named, "read .env", "read a/../.env"), "allow");
}

#[test]
fn a_no_and_a_question_hold_in_every_case_and_an_allow_only_as_written() {
    check(
        json!({"read": {"private/*": "deny", "Größe.txt": "deny", "LOUD": "deny", "Ask": "ask"}}),
        &[
            (&["read PRIVATE/key"], "deny"),
            (&["read Private"], "deny"),
            (&["read private/key"], "deny"),
            (&["read GRÖSSE.TXT"], "deny"),
            (&["read gro\u{308}sse.txt"], "deny"),
            (&["read loud"], "deny"),
            (&["read \u{ff4c}oud"], "deny"),
            (&["read ask"], "ask"),
            (&["read privates"], "allow"),
        ],
    );
    let later = json!({"edit": {"ask/*": "ask", "Ask/A": "allow"}});
    check(later, &[(&["edit Ask/A"], "allow"), (&["edit ask/a"], "ask")]);
    check(json!({"edit": {"docs/*": "allow"}}), &[(&["edit DOCS/a"], "ask")]);
    let tight = policy(json!("allow"))
        .tightened_by(Rules::parse(&json!({"read": {"Private/*": "deny"}})).unwrap());
    assert_eq!(level(&tight, &["read pRIVATE/a"]), "deny");
    let Decision::Allowed(grant) = tight.decide(vec![Access::Search { path: ".".into() }], &[])
    else {
        panic!("looking is free")
    };
    assert!(grant.reveals("a") && !grant.reveals("PRIVATE/a") && !grant.permits("private/a"));
}

#[test]
fn what_matches_as_written_matches_however_it_folds() {
    // One character as written, two when folded.
    check(json!({"read": {"a?b": "deny"}}), &[(&["read a\u{fb01}b"], "deny")]);
}

#[test]
fn protection_does_not_end_at_the_edge_of_the_workspace() {
    for (root, path, verdict) in [
        ("/home/ada/.config", "git/config", "deny"),
        ("/home/ada/.config", "fish/config.fish", "deny"),
        ("/home/ada/.Config/", "Fish/config.fish", "deny"),
        ("/home/ada/.config", "app/settings.json", "allow"),
        ("/srv/mirror.git", "hooks/update", "deny"),
        ("/srv/mirror.git", "README.md", "allow"),
        ("/w/Start Menu/Programs", "Startup/a.lnk", "deny"),
        ("/home/ada/AppData/Roaming", "windlass/windlass.jsonc", "deny"),
        // Who works in such a folder means it.
        ("/home/ada/.config/fish", "config.fish", "allow"),
        ("/home/ada/.vscode", "a.json", "allow"),
        ("/", "git/config", "allow"),
        ("/home/ada/.config/x", "git/config", "allow"),
    ] {
        let policy = policy(json!("allow")).rooted(std::path::Path::new(root));
        assert_eq!(level(&policy, &[&format!("edit {path}")]), verdict, "{root} {path}");
    }
    let opened = policy(json!({"edit": {"git/config": "allow"}}));
    let opened = opened.rooted(std::path::Path::new("/home/ada/.config"));
    assert_eq!(level(&opened, &["edit git/config"]), "allow");
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

fn engage(servant: &str) -> Access {
    Access::Engage { servant: servant.into(), command: "x".into() }
}

fn accept(what: &str) -> Access {
    Access::Accept { what: what.into() }
}

fn decided(policy: &Policy, access: Access) -> &'static str {
    match policy.decide(vec![access.clone()], &[access]) {
        Decision::Allowed(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Denied { .. } => "deny",
    }
}

#[test]
fn what_is_configured_starts_in_every_mode_unless_a_rule_names_it() {
    let rows = [
        (json!({}), "allow"),
        (json!("ask"), "allow"),
        (json!({"*": "ask", "serv*": "ask"}), "allow"),
        (json!("deny"), "deny"),
        (json!({"servant": {"mcp/docs": "deny"}}), "deny"),
        (json!({"servant": "ask"}), "ask"),
        (json!({"servant": {"mcp/*": "ask", "mcp/docs": "allow"}}), "allow"),
    ];
    for (rules, verdict) in rows {
        for mode in Mode::ALL {
            let policy = policy(rules.clone()).in_mode(mode);
            assert_eq!(decided(&policy, engage("mcp/docs")), verdict, "{rules} in {mode}");
        }
    }
    assert_eq!(
        decided(&policy(json!({"servant": {"mcp/docs": "deny"}})), engage("mcp/x")),
        "allow"
    );
    let others = Rules::parse(&json!({"servant": {"mcp/docs": "deny"}})).unwrap();
    let own = policy(json!({"servant": "allow"})).tightened_by(others);
    assert_eq!(decided(&own, engage("mcp/docs")), "deny");
}

#[test]
fn a_definition_nobody_looked_at_is_never_simply_used() {
    let rows = [
        (json!({}), "ask", "deny"),
        (json!("allow"), "ask", "deny"),
        (json!({"*": {"git_*": "allow"}, "git_*": "allow", "?efinition": "allow"}), "ask", "deny"),
        (json!({"definition": "allow"}), "allow", "allow"),
        (json!({"definition": {"git_commit@00ff": "allow"}}), "allow", "allow"),
        (json!({"definition": {"git_commit@11ff": "allow"}}), "ask", "deny"),
        (json!({"definition": "deny"}), "deny", "deny"),
    ];
    for (rules, asked, full) in rows {
        for mode in Mode::ALL {
            let policy = policy(rules.clone()).in_mode(mode);
            let expected = if mode == Mode::Full { full } else { asked };
            assert_eq!(decided(&policy, accept("git_commit@00ff")), expected, "{rules} in {mode}");
        }
    }
}

#[test]
fn a_yes_for_the_project_is_to_one_definition() {
    let kept = vec![Approval::of(&accept("git_commit@00ff"))];
    let policy = policy(json!({})).approved(kept);
    assert_eq!(decided(&policy, accept("git_commit@00ff")), "allow");
    assert_eq!(decided(&policy, accept("git_commit@00fe")), "ask");
    assert_eq!(decided(&policy, accept("git_push@00ff")), "ask");
}

#[test]
fn a_doubt_is_asked_about_whatever_was_allowed_and_is_a_no_where_nobody_is() {
    let edit = Access::Edit { path: "a".into() };
    let policy = policy(json!("allow")).approved(vec![Approval::of(&edit)]);
    for mode in [Mode::Plan, Mode::Ask, Mode::Auto] {
        let doubt = policy.clone().in_mode(mode).doubt(vec![edit.clone()], "guard asks".into());
        let Decision::Ask(question) = doubt else { panic!("{mode}: {doubt:?}") };
        assert!(!question.coverable() && question.offer().is_none());
        assert_eq!(question.reason(), "guard asks");
        assert!(question.answered(&Answer::Once).unwrap().covers(&edit));
    }
    let full = policy.in_mode(Mode::Full).doubt(vec![edit], "guard asks".into());
    assert!(matches!(full, Decision::Denied { reason } if reason.starts_with("guard asks")));
}

#[test]
fn rules_of_webfetch_name_hosts() {
    let fetch = |host: &str| vec![Access::Fetch { host: host.into() }];
    let rules = json!({"webfetch": {"docs.rs": "allow", "*.rust-lang.org": "allow",
                                    "evil.rust-lang.org": "deny", "localhost:3000": "allow"}});
    let policy = Policy::new(Rules::parse(&rules).unwrap());
    for (host, allowed) in [
        ("docs.rs", Some(true)),
        ("doc.rust-lang.org", Some(true)),
        ("localhost:3000", Some(true)),
        ("evil.rust-lang.org", Some(false)),
        ("docs.rs.example.com", None),
        ("docs.rs:8080", None),
        ("notrust-lang.org", None),
    ] {
        for mode in [Mode::Plan, Mode::Ask, Mode::Auto] {
            let decided = policy.clone().in_mode(mode).decide(fetch(host), &[]);
            let said = match decided {
                Decision::Allowed(_) => Some(true),
                Decision::Denied { .. } => Some(false),
                Decision::Ask(_) => None,
            };
            assert_eq!(said, allowed, "{host} in {mode}");
        }
    }
    let full = policy.in_mode(Mode::Full);
    assert!(matches!(full.decide(fetch("other.test"), &[]), Decision::Allowed(_)));
    for pattern in ["docs.rs*", "https://docs.rs/*", "docs.*", "*rs", "docs.rs/serde", "", "a b"] {
        let rules = json!({"webfetch": {pattern: "allow"}});
        let error = Rules::parse(&rules).unwrap_err();
        assert!(error.message.contains("name hosts"), "{pattern}: {error}");
    }
}
