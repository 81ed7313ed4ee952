//! Tables of policy decisions: rules, accesses and the expected verdict.

mod commands;
mod dead_rules;
mod last_match_rules;
mod outside_paths;

use super::*;
use serde_json::{Value, json};
use windlass_protocol::{ApprovalKind, PermissionAnswer, ProjectApproval};

fn policy(rules: Value) -> Policy {
    Policy::new(PermissionRules::parse(&rules).unwrap())
}

/// Parses `read a.txt`, `edit a.txt`, or the name of a tool.
fn parse_access(text: &str) -> ToolAccess {
    match text.split_once(' ') {
        Some(("read", path)) => ToolAccess::Read { path: path.into() },
        Some(("edit", path)) => ToolAccess::Edit { path: path.into() },
        _ => ToolAccess::UseTool { tool: text.into() },
    }
}

fn level(policy: &Policy, accesses: &[&str]) -> &'static str {
    match policy.decide(accesses.iter().map(|text| parse_access(text)).collect(), &[]) {
        Decision::Allowed(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Denied { .. } => "deny",
    }
}

#[track_caller]
fn check_verdicts(rules: Value, expected: &[(&[&str], &str)]) {
    let policy = policy(rules);
    for (accesses, verdict) in expected {
        assert_eq!(level(&policy, accesses), *verdict, "{accesses:?}");
    }
}

#[test]
fn the_mode_never_exceeds_the_max_mode() {
    let edit = || ToolAccess::Edit { path: "a".into() };
    for max_mode in PermissionMode::ALL {
        for mode in PermissionMode::ALL {
            let limited = Policy::default()
                .with_max_mode(max_mode)
                .with_max_mode(PermissionMode::Full)
                .with_mode(mode);
            let decision = format!("{:?}", limited.decide(vec![edit()], &[edit()]));
            let plain = Policy::default().with_mode(mode.min(max_mode));
            let expected =
                format!("{:?}", plain.with_max_mode(max_mode).decide(vec![edit()], &[edit()]));
            assert_eq!(decision, expected, "{mode} under {max_mode}");
            assert!(limited.mode <= max_mode);
        }
    }
}

#[test]
fn without_rules_reads_are_allowed_and_edits_require_approval() {
    check_verdicts(
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
fn a_single_level_applies_to_everything() {
    check_verdicts(json!("allow"), &[(&["edit a"], "allow"), (&["deploy"], "allow")]);
    check_verdicts(json!("deny"), &[(&["read a"], "deny")]);
    check_verdicts(json!("ask"), &[(&["read a"], "ask")]);
}

#[test]
fn secrets_require_approval_unless_a_rule_names_them() {
    check_verdicts(json!({"read": "allow"}), &[(&["read .env"], "ask"), (&["read a"], "allow")]);
    check_verdicts(json!("allow"), &[(&["read .env"], "ask"), (&["read .ENV"], "ask")]);
    check_verdicts(json!({"read": {"*.env": "allow"}}), &[(&["read .env"], "allow")]);
}

#[test]
fn a_wildcard_allows_secrets_only_if_its_last_part_names_them() {
    for broad in ["src/*", "*", "**", "env/*", ".env/*", "s*/.e*"] {
        let paths: [(&[&str], &str); 2] =
            [(&["read src/.env"], "ask"), (&["read env/.env"], "ask")];
        check_verdicts(json!({"read": {broad: "allow"}}), &paths);
    }
    for specific in ["src/.env", "src/.env*", "*.env", "src/?env", "*/.env"] {
        check_verdicts(json!({"read": {specific: "allow"}}), &[(&["read src/.env"], "allow")]);
    }
    let named = json!({"read": {"src/.env*": "allow"}});
    check_verdicts(named, &[(&["read src/.env"], "allow"), (&["read src/.env.local"], "allow")]);
    check_verdicts(json!({"edit": {"src/*": "allow"}}), &[(&["edit src/.env"], "ask")]);
}

#[test]
fn an_ntfs_stream_does_not_hide_a_secret() {
    for path in ["read .env:x", "read .env::$DATA", "read a/prod.env:s", "read a:.env"] {
        check_verdicts(json!({}), &[(&[path], "ask")]);
    }
    check_verdicts(json!({}), &[(&["read .env.example"], "allow"), (&["read a:b"], "allow")]);
}

#[test]
fn a_link_named_like_a_secret_file_requires_approval() {
    let verdict = |rules: Value, real: &str, spelled: &str| {
        let decision = policy(rules).decide(vec![parse_access(real)], &[parse_access(spelled)]);
        match decision {
            Decision::Allowed(_) => "allow".to_owned(),
            Decision::Ask(question) => format!("ask: {}", question.reason()),
            Decision::Denied { .. } => "deny".to_owned(),
        }
    };
    let asked = "ask: `.env` usually contains secrets, and no rule allows it by name";
    for rules in [json!({}), json!({"read": "allow"}), json!({"read": {"conf/*": "allow"}})] {
        assert_eq!(verdict(rules, "read conf/dev", "read .env"), asked);
    }
    let named = json!({"read": {".env": "allow"}});
    assert_eq!(verdict(named.clone(), "read conf/dev", "read .env"), "allow");
    // Another spelling of an allowed path is the same file.
    assert_eq!(verdict(named, "read .env", "read a/../.env"), "allow");
}

#[test]
fn deny_and_ask_rules_ignore_case_and_allow_rules_do_not() {
    check_verdicts(
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
    check_verdicts(later, &[(&["edit Ask/A"], "allow"), (&["edit ask/a"], "ask")]);
    check_verdicts(json!({"edit": {"docs/*": "allow"}}), &[(&["edit DOCS/a"], "ask")]);
    let restricted = policy(json!("allow"))
        .restricted_by(PermissionRules::parse(&json!({"read": {"Private/*": "deny"}})).unwrap());
    assert_eq!(level(&restricted, &["read pRIVATE/a"]), "deny");
    let Decision::Allowed(grant) =
        restricted.decide(vec![ToolAccess::Search { path: ".".into() }], &[])
    else {
        panic!("a search must be allowed")
    };
    assert!(grant.reveals("a") && !grant.reveals("PRIVATE/a") && !grant.may_read("private/a"));
}

#[test]
fn a_literal_match_also_matches_when_folded() {
    // The ligature is one character as written and two when folded.
    check_verdicts(json!({"read": {"a?b": "deny"}}), &[(&["read a\u{fb01}b"], "deny")]);
}

#[cfg(unix)]
#[test]
fn an_escaped_byte_counts_as_one_character() {
    check_verdicts(
        json!({"read": {"a?b": "deny", "*.Key": "deny", "secret*": "deny"}}),
        &[
            (&[r"read a\377b"], "deny"),
            (&[r"read \377.key"], "deny"),
            (&[r"read secret\033"], "deny"),
            (&[r"read x\377y"], "allow"),
        ],
    );
}

#[test]
fn protection_considers_the_path_of_the_workspace() {
    for (root, path, verdict) in [
        ("/home/ada/.config", "git/config", "deny"),
        ("/home/ada/.config", "fish/config.fish", "deny"),
        ("/home/ada/.Config/", "Fish/config.fish", "deny"),
        ("/home/ada/.config", "app/settings.json", "allow"),
        ("/srv/mirror.git", "hooks/update", "deny"),
        ("/srv/mirror.git", "README.md", "allow"),
        ("/w/Start Menu/Programs", "Startup/a.lnk", "deny"),
        ("/home/ada/AppData/Roaming", "windlass/windlass.jsonc", "deny"),
        // The user chose a workspace inside the protected folder.
        ("/home/ada/.config/fish", "config.fish", "allow"),
        ("/home/ada/.vscode", "a.json", "allow"),
        ("/", "git/config", "allow"),
        ("/home/ada/.config/x", "git/config", "allow"),
    ] {
        let policy = policy(json!("allow")).with_root(std::path::Path::new(root));
        assert_eq!(level(&policy, &[&format!("edit {path}")]), verdict, "{root} {path}");
    }
    let opened = policy(json!({"edit": {"git/config": "allow"}}));
    let opened = opened.with_root(std::path::Path::new("/home/ada/.config"));
    assert_eq!(level(&opened, &["edit git/config"]), "allow");
}

#[test]
fn editing_secrets_requires_approval_because_it_shows_them() {
    let broad = [json!("allow"), json!({"edit": "allow"}), json!({"edit": {"*": "allow"}})];
    for rules in broad {
        check_verdicts(
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
    check_verdicts(json!({"edit": {"*.env": "allow"}}), &[(&["edit .env"], "allow")]);
    check_verdicts(json!({"edit": {".env": "allow"}}), &[(&["edit .env"], "allow")]);
}

#[test]
fn no_wildcard_rule_opens_a_protected_path() {
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
        check_verdicts(
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
fn a_user_rule_opens_a_protected_path_by_its_exact_name() {
    let rules = json!({"edit": {".vscode/settings.json": "allow"}});
    check_verdicts(
        rules.clone(),
        &[
            (&["edit .vscode/settings.json"], "allow"),
            (&["edit .vscode/Settings.json"], "ask"),
            (&["edit .vscode/settings.json/x"], "ask"),
            (&["edit .vscode/tasks.json"], "ask"),
            (&["edit .vscode/settings.json", "edit .git/config"], "deny"),
        ],
    );
    let deny = json!({"edit": {".vscode/settings.json": "allow", ".vscode/*": "deny"}});
    check_verdicts(deny, &[(&["edit .vscode/settings.json"], "deny")]);
    let later = json!({"edit": {".vscode/settings.json": "allow", "*": "ask"}});
    check_verdicts(later, &[(&["edit .vscode/settings.json"], "ask")]);
    let strict =
        policy(rules).restricted_by(PermissionRules::parse(&json!({"edit": "ask"})).unwrap());
    assert_eq!(level(&strict, &["edit .vscode/settings.json"]), "ask");
}

#[test]
fn a_restricting_rule_cannot_open_a_protected_path() {
    let rules =
        PermissionRules::parse(&json!({"edit": {".vscode/settings.json": "allow"}})).unwrap();
    let policy = policy(json!("allow")).restricted_by(rules);
    assert_eq!(level(&policy, &["edit .vscode/settings.json"]), "ask");
}

#[test]
fn edits_of_project_settings_can_be_approved() {
    let settings = [".vscode/tasks.json", ".npmrc", ".husky/pre-commit", ".envrc", ".mcp.json"];
    for path in settings {
        let edit = || vec![parse_access(&format!("edit {path}"))];
        for mode in PermissionMode::ALL {
            let policy = policy(json!("allow")).with_mode(mode);
            let asks = matches!(mode, PermissionMode::Ask | PermissionMode::Auto);
            match policy.decide(edit(), &[]) {
                Decision::Ask(question) if asks => {
                    assert!(question.reason().contains("is protected, because"));
                    assert_eq!(question.approval_kind(), None, "not with all other edits");
                }
                Decision::Denied { .. } if !asks => {}
                other => panic!("{path} in {mode}: {other:?}"),
            }
        }
        let denied = policy(json!({"edit": {"*": "deny"}}));
        assert!(matches!(denied.decide(edit(), &[]), Decision::Denied { .. }));
        let approvals = vec![ProjectApproval::for_access(&parse_access(&format!("edit {path}")))];
        let approved = policy(json!({})).with_approvals(approvals);
        assert_eq!(level(&approved, &[&format!("edit {path}")]), "allow");
        assert_eq!(level(&approved, &["edit .vscode/settings.json"]), "ask");
    }
    for path in [".git/hooks/pre-commit", ".vscode/.git/config", ".windlass/x", ".bashrc", ".ssh/x"]
    {
        assert_eq!(level(&policy(json!("allow")), &[&format!("edit {path}")]), "deny", "{path}");
    }
}

#[test]
fn plain_edits_can_be_approved_together() {
    let kind = |rules: Value, accesses: &[&str], spelled: &[&str]| {
        let policy = policy(rules).with_mode(PermissionMode::Ask);
        let parse =
            |texts: &[&str]| texts.iter().map(|text| parse_access(text)).collect::<Vec<_>>();
        match policy.decide(parse(accesses), &parse(spelled)) {
            Decision::Ask(question) => question.approval_kind().cloned(),
            other => panic!("{accesses:?}: {other:?}"),
        }
    };
    let edits = Some(ApprovalKind::Edits);
    assert_eq!(kind(json!({}), &["edit a"], &["edit a"]), edits);
    assert_eq!(kind(json!({}), &["edit a", "read b", "edit c/d"], &[]), edits);
    assert_eq!(kind(json!({"edit": {"docs/*": "deny"}}), &["edit a"], &[]), edits);
    for (rules, access, spelled) in [
        (json!({"edit": "ask"}), "edit a", "edit a"),
        (json!({"read": {"a": "ask"}}), "edit a", "edit a"),
        (json!({}), "edit .env", "edit .env"),
        (json!({}), "edit a", "edit .npmrc"),
        (json!({}), "edit .npmrc", "edit a"),
        (json!({}), "edit /etc/hosts2", "edit a"),
    ] {
        let policy = policy(rules).with_mode(PermissionMode::Ask);
        let decision = policy.decide(vec![parse_access(access)], &[parse_access(spelled)]);
        if let Decision::Ask(question) = decision {
            assert_eq!(question.approval_kind(), None, "{access} {spelled}");
        }
    }
}

#[test]
fn a_path_is_protected_as_spelled_and_as_resolved() {
    let policy = policy(json!({"edit": {".vscode/a": "allow", "*": "allow"}}));
    let decide_both = |real: &str, spelled: &str| {
        policy.decide(vec![parse_access(real)], &[parse_access(spelled)])
    };
    assert!(matches!(decide_both("edit .git/config", "edit x/config"), Decision::Denied { .. }));
    assert!(matches!(decide_both("edit x/config", "edit .git/config"), Decision::Denied { .. }));
    assert!(matches!(decide_both("edit .vscode/a", "edit x/a"), Decision::Allowed(_)));
    assert!(matches!(decide_both("edit x/a", "edit x/a"), Decision::Allowed(_)));
}

#[test]
fn a_denial_has_a_reason_and_suggests_a_rule() {
    let decision = policy(json!("allow")).decide(vec![parse_access("edit .git/a \"b\"")], &[]);
    let Decision::Denied { reason } = decision else { panic!("{decision:?}") };
    assert!(reason.contains("git runs or trusts its contents"), "{reason}");
    let rule = reason.split_once("config: ").unwrap().1;
    let rules = PermissionRules::parse(&serde_json::from_str(rule).unwrap()).unwrap();
    assert_eq!(level(&Policy::new(rules), &["edit .git/a \"b\""]), "allow");
}

#[test]
fn a_denied_folder_is_not_listed() {
    check_verdicts(
        json!({"read": {"private/*": "deny"}}),
        &[
            (&["read private"], "deny"),
            (&["read private/a"], "deny"),
            (&["read privates"], "allow"),
        ],
    );
}

#[test]
fn the_last_matching_rule_wins() {
    let rules = json!({"edit": {"*": "ask", "docs/*": "allow", "docs/api/*": "ask"}});
    check_verdicts(
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
fn deny_wins_in_any_position() {
    let first = json!({"edit": {"secret/*": "deny", "*": "allow"}});
    let last = json!({"edit": {"*": "allow", "secret/*": "deny"}});
    let elsewhere = json!({"*": {"secret/*": "deny"}, "edit": "allow"});
    for rules in [first, last, elsewhere] {
        check_verdicts(rules, &[(&["edit secret/a"], "deny"), (&["edit open/a"], "allow")]);
    }
}

#[test]
fn the_strictest_access_decides_for_the_call() {
    let rules = json!({"read": "allow", "edit": {"a": "allow", "b": "ask", "c": "deny"}});
    check_verdicts(
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
    check_verdicts(json!({"docs_*": "allow"}), &[(&["docs_search"], "allow"), (&["doc"], "ask")]);
    check_verdicts(
        json!({"read": {"a *": "deny"}}),
        &[(&["read a"], "deny"), (&["read ab"], "allow")],
    );
}

#[test]
fn a_rule_may_name_the_path_as_spelled_or_as_resolved() {
    let policy = policy(json!({"read": {"link/*": "deny", "real/*": "deny", "*": "allow"}}));
    let decide_both = |real: &str, spelled: &str| {
        policy.decide(vec![parse_access(real)], &[parse_access(spelled)])
    };
    assert!(matches!(decide_both("read open/a", "read link/a"), Decision::Denied { .. }));
    assert!(matches!(decide_both("read real/a", "read open/a"), Decision::Denied { .. }));
    assert!(matches!(decide_both("read open/a", "read open/a"), Decision::Allowed(_)));
}

#[test]
fn a_spelling_that_no_rule_names_changes_nothing() {
    let policy = policy(json!({"edit": {"docs/*": "allow"}}));
    let decision =
        policy.decide(vec![parse_access("edit docs/a")], &[parse_access("edit ./docs/a")]);
    assert!(matches!(decision, Decision::Allowed(_)));
}

#[test]
fn restricting_rules_tighten_but_never_widen() {
    let base = policy(json!({"edit": {"a": "allow", "b": "deny"}}));
    let strict =
        base.clone().restricted_by(PermissionRules::parse(&json!({"edit": "ask"})).unwrap());
    assert_eq!(level(&strict, &["edit a"]), "ask");
    assert_eq!(level(&strict, &["edit b"]), "deny");
    let lax = base.restricted_by(PermissionRules::parse(&json!("allow")).unwrap());
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
fn invalid_rules_are_an_error_with_a_json_pointer() {
    for (rules, pointer) in [
        (json!("yes"), ""),
        (json!(["allow"]), ""),
        (json!({"edit": true}), "/edit"),
        (json!({"edit": {"a/b": "Allow"}}), "/edit/a~1b"),
    ] {
        assert_eq!(PermissionRules::parse(&rules).unwrap_err().pointer, pointer, "{rules}");
    }
}

#[test]
fn a_grant_covers_the_tool_access_and_nothing_else() {
    let Decision::Ask(question) = policy(json!({})).decide(vec![parse_access("edit a")], &[])
    else {
        panic!("an edit must require approval")
    };
    assert!(question.preview_grant().covers(&parse_access("read a")));
    assert!(
        !question.preview_grant().covers(&parse_access("edit a")),
        "a preview must not permit an edit"
    );
    let grant = question.resolve(&PermissionAnswer::Once).unwrap();
    assert!(grant.covers(&parse_access("edit a")) && grant.covers(&parse_access("read a")));
    assert!(!grant.covers(&parse_access("edit b")) && !grant.covers(&parse_access("a")));
}

#[test]
fn a_denied_request_grants_nothing() {
    let Decision::Ask(question) = policy(json!({})).decide(vec![parse_access("edit a")], &[])
    else {
        panic!("an edit must require approval")
    };
    assert!(question.resolve(&PermissionAnswer::No { reason: None }).is_none());
}

fn start_process(process: &str) -> ToolAccess {
    ToolAccess::StartProcess { process: process.into(), command: "x".into() }
}

fn accept_definition(definition: &str) -> ToolAccess {
    ToolAccess::AcceptDefinition { definition: definition.into() }
}

fn verdict_for(policy: &Policy, access: ToolAccess) -> &'static str {
    match policy.decide(vec![access.clone()], &[access]) {
        Decision::Allowed(_) => "allow",
        Decision::Ask(_) => "ask",
        Decision::Denied { .. } => "deny",
    }
}

#[test]
fn a_configured_process_starts_in_every_mode_unless_a_rule_names_it() {
    let rows = [
        (json!({}), "allow"),
        (json!("ask"), "allow"),
        (json!({"*": "ask", "serv*": "ask"}), "allow"),
        (json!("deny"), "deny"),
        (json!({"process": {"mcp/docs": "deny"}}), "deny"),
        (json!({"process": "ask"}), "ask"),
        (json!({"process": {"mcp/*": "ask", "mcp/docs": "allow"}}), "allow"),
    ];
    for (rules, verdict) in rows {
        for mode in PermissionMode::ALL {
            let policy = policy(rules.clone()).with_mode(mode);
            assert_eq!(
                verdict_for(&policy, start_process("mcp/docs")),
                verdict,
                "{rules} in {mode}"
            );
        }
    }
    assert_eq!(
        verdict_for(&policy(json!({"process": {"mcp/docs": "deny"}})), start_process("mcp/x")),
        "allow"
    );
    let restricting_rules =
        PermissionRules::parse(&json!({"process": {"mcp/docs": "deny"}})).unwrap();
    let user_policy = policy(json!({"process": "allow"})).restricted_by(restricting_rules);
    assert_eq!(verdict_for(&user_policy, start_process("mcp/docs")), "deny");
}

#[test]
fn a_tool_definition_is_allowed_only_by_a_rule_of_its_own() {
    let rows = [
        (json!({}), "ask", "deny"),
        (json!("allow"), "ask", "deny"),
        (json!({"*": {"git_*": "allow"}, "git_*": "allow", "?efinition": "allow"}), "ask", "deny"),
        (json!({"tool_definition": "allow"}), "allow", "allow"),
        (json!({"tool_definition": {"git_commit@00ff": "allow"}}), "allow", "allow"),
        (json!({"tool_definition": {"git_commit@11ff": "allow"}}), "ask", "deny"),
        (json!({"tool_definition": "deny"}), "deny", "deny"),
    ];
    for (rules, asked, full) in rows {
        for mode in PermissionMode::ALL {
            let policy = policy(rules.clone()).with_mode(mode);
            let expected = if mode == PermissionMode::Full { full } else { asked };
            assert_eq!(
                verdict_for(&policy, accept_definition("git_commit@00ff")),
                expected,
                "{rules} in {mode}"
            );
        }
    }
}

#[test]
fn a_project_approval_covers_one_tool_definition() {
    let approvals = vec![ProjectApproval::for_access(&accept_definition("git_commit@00ff"))];
    let policy = policy(json!({})).with_approvals(approvals);
    assert_eq!(verdict_for(&policy, accept_definition("git_commit@00ff")), "allow");
    assert_eq!(verdict_for(&policy, accept_definition("git_commit@00fe")), "ask");
    let changed = policy.decide(vec![accept_definition("git_commit@00fe")], &[]);
    let Decision::Ask(question) = changed else { panic!("{changed:?}") };
    let reason = "the definition of `git_commit` has changed since it was last accepted";
    assert_eq!(question.reason(), reason);
    assert_eq!(verdict_for(&policy, accept_definition("git_push@00ff")), "ask");
}

#[test]
fn ask_anyway_overrides_every_allow_and_denies_in_mode_full() {
    let edit = ToolAccess::Edit { path: "a".into() };
    let policy = policy(json!("allow")).with_approvals(vec![ProjectApproval::for_access(&edit)]);
    for mode in [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto] {
        let decision =
            policy.clone().with_mode(mode).ask_anyway(vec![edit.clone()], "guard asks".into());
        let Decision::Ask(question) = decision else { panic!("{mode}: {decision:?}") };
        assert!(!question.accepts_earlier_approval() && question.approval_kind().is_none());
        assert_eq!(question.reason(), "guard asks");
        assert!(question.resolve(&PermissionAnswer::Once).unwrap().covers(&edit));
    }
    let full = policy.with_mode(PermissionMode::Full).ask_anyway(vec![edit], "guard asks".into());
    assert!(matches!(full, Decision::Denied { reason } if reason.starts_with("guard asks")));
}

#[test]
fn webfetch_rules_match_hosts() {
    let fetch = |host: &str| vec![ToolAccess::Fetch { host: host.into() }];
    let rules = json!({"webfetch": {"docs.rs": "allow", "*.rust-lang.org": "allow",
                                    "evil.rust-lang.org": "deny", "localhost:3000": "allow"}});
    let policy = Policy::new(PermissionRules::parse(&rules).unwrap());
    for (host, allowed) in [
        ("docs.rs", Some(true)),
        ("doc.rust-lang.org", Some(true)),
        ("localhost:3000", Some(true)),
        ("evil.rust-lang.org", Some(false)),
        ("docs.rs.example.com", None),
        ("docs.rs:8080", None),
        ("notrust-lang.org", None),
    ] {
        for mode in [PermissionMode::Plan, PermissionMode::Ask, PermissionMode::Auto] {
            let decision = policy.clone().with_mode(mode).decide(fetch(host), &[]);
            let verdict = match decision {
                Decision::Allowed(_) => Some(true),
                Decision::Denied { .. } => Some(false),
                Decision::Ask(_) => None,
            };
            assert_eq!(verdict, allowed, "{host} in {mode}");
        }
    }
    let full = policy.with_mode(PermissionMode::Full);
    assert!(matches!(full.decide(fetch("other.test"), &[]), Decision::Allowed(_)));
    for pattern in ["docs.rs*", "https://docs.rs/*", "docs.*", "*rs", "docs.rs/serde", "", "a b"] {
        let rules = json!({"webfetch": {pattern: "allow"}});
        let error = PermissionRules::parse(&rules).unwrap_err();
        assert!(error.message.contains("match hosts"), "{pattern}: {error}");
    }
}
