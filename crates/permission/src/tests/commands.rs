//! Verdicts on commands as the policy gives them: leaving, reaching, earlier answers.

use super::policy;
use crate::{Beneath, Decision, Grant, Places, Policy, Question, Rules, Shelter};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_protocol::{Access, Answer, Approval, Lasting, Mode};

#[derive(Debug)]
struct Machine(Shelter);

impl Places for Machine {
    fn root(&self) -> &Path {
        Path::new("/w")
    }

    fn home(&self) -> Option<&Path> {
        Some(Path::new("/home/u"))
    }

    fn real(&self, path: &Path) -> PathBuf {
        path.components().collect()
    }

    fn shelter(&self) -> Shelter {
        self.0
    }

    fn beneath(&self, _folder: &Path) -> Beneath {
        Beneath { paths: Vec::new(), whole: true }
    }

    fn program(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}

fn on(rules: Value, mode: Mode, shelter: Shelter) -> Policy {
    policy(rules).in_mode(mode).placed(Arc::new(Machine(shelter)))
}

fn auto(rules: Value) -> Policy {
    on(rules, Mode::Auto, Shelter::Standing)
}

fn tight(policy: Policy, rules: Value) -> Policy {
    policy.tightened_by(Rules::parse(&rules).unwrap())
}

fn run(command: &str) -> Access {
    Access::Run { command: command.into(), folder: ".".into() }
}

fn leave(command: &str) -> Vec<Access> {
    vec![run(command), Access::Leave { command: command.into() }]
}

fn network() -> Access {
    Access::Connect { host: "*".into() }
}

#[track_caller]
fn asked(policy: &Policy, accesses: Vec<Access>) -> Question {
    match policy.decide(accesses.clone(), &accesses) {
        Decision::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn granted(policy: &Policy, accesses: Vec<Access>) -> Grant {
    match policy.decide(accesses.clone(), &accesses) {
        Decision::Allowed(grant) => grant,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn denied(policy: &Policy, accesses: Vec<Access>) -> String {
    match policy.decide(accesses.clone(), &accesses) {
        Decision::Denied { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn leaving_the_sandbox_is_nobodys_but_the_persons_and_for_once() {
    let like = Answer::Like { lasts: Lasting::Session };
    let kept = Approval { key: Approval::LIKE.into(), subject: "cargo test *".into() };
    let exact = Approval::of(&run("cargo test a"));
    let policy = on(json!("allow"), Mode::Ask, Shelter::Standing).approved(vec![kept, exact]);
    for answer in [Answer::Session, Answer::Project, like, Answer::No { reason: None }] {
        let question = asked(&policy, leave("cargo test a"));
        assert!(question.offer().is_none() && !question.coverable());
        assert!(question.answered(&answer).is_none(), "{answer:?}");
    }
    let question = asked(&policy, leave("cargo test a"));
    assert!(question.answered(&Answer::Once).unwrap().covers(&leave("cargo test a")[1]));
    let inside = on(json!({}), Mode::Ask, Shelter::Standing);
    let inside = asked(&inside, vec![run("cargo test a")]);
    assert_eq!(inside.offer().map(String::as_str), Some("cargo test *"));
    assert!(inside.coverable() && inside.answered(&Answer::Session).is_some());
}

#[test]
fn the_reason_for_leaving_comes_first_and_then_the_commands() {
    let leaving = "it would run outside of the sandbox, with all your rights";
    let question = asked(&auto(json!({})), leave("curl https://example.com"));
    assert_eq!(question.reason(), format!("{leaving}; curl wants the network"));
    assert_eq!(asked(&auto(json!({})), leave("ls")).reason(), leaving);
}

#[test]
fn rules_about_the_sandbox_only_tighten() {
    let lax = auto(json!({"sandbox": "allow", "bash": "allow"}));
    assert_eq!(asked(&lax, leave("make")).accesses().len(), 2);
    let own = auto(json!({"sandbox": {"make*": "deny"}}));
    assert!(denied(&own, leave("make x")).contains("make*"));
    asked(&own, leave("cargo test"));
    granted(&own, vec![run("make x")]);
    let others = tight(lax, json!({"sandbox": "deny"}));
    assert!(denied(&others, leave("ls")).contains("sandbox"));
}

#[test]
fn rules_about_the_network_are_heard_before_a_command_gets_it() {
    let curl = || vec![run("curl https://example.com")];
    let question = asked(&auto(json!({})), curl());
    assert!(question.accesses().contains(&network()));
    let bash = json!({"bash": {"curl *": "allow"}});
    assert!(!granted(&auto(bash.clone()), curl()).covers(&network()));
    for mode in [Mode::Ask, Mode::Auto, Mode::Full] {
        let own = on(json!({"network": "deny"}), mode, Shelter::Standing);
        assert!(denied(&own, curl()).contains("network"), "{mode:?}");
        let own = on(bash.clone(), mode, Shelter::Standing);
        assert!(
            denied(&tight(own.clone(), json!({"network": "deny"})), curl()).contains("network")
        );
        let question = asked(&tight(own, json!({"network": "ask"})), curl());
        assert!(question.accesses().contains(&network()), "{mode:?}");
        assert!(question.reason().contains("network"), "{}", question.reason());
    }
    // An allow of the network allows no command, and that of others not even the network.
    asked(&auto(json!({"network": "allow"})), curl());
    let both = json!({"bash": {"curl *": "allow"}, "network": "allow"});
    assert!(!granted(&auto(both), curl()).covers(&network()));
    let others = tight(auto(bash), json!({"network": "allow"}));
    assert!(!granted(&others, curl()).covers(&network()));
    // What does not want it is not concerned.
    granted(&auto(json!({"network": "deny"})), vec![run("ls")]);
}

#[test]
fn approvals_hold_under_the_sandbox_only() {
    let kept = vec![
        Approval { key: Approval::LIKE.into(), subject: "cargo test *".into() },
        Approval { key: "bash".into(), subject: "node a.js".into() },
    ];
    for command in ["cargo test a", "node a.js"] {
        for mode in [Mode::Ask, Mode::Auto] {
            let policy = on(json!({}), mode, Shelter::Standing).approved(kept.clone());
            granted(&policy, vec![run(command)]);
            for shelter in [Shelter::Off, Shelter::Missing] {
                let policy = on(json!({}), mode, shelter).approved(kept.clone());
                let question = asked(&policy, vec![run(command)]);
                assert!(!question.coverable() && question.offer().is_none());
            }
        }
    }
    // Files do not depend on it.
    let edit = Access::Edit { path: "a".into() };
    let policy = on(json!({}), Mode::Ask, Shelter::Off).approved(vec![Approval::of(&edit)]);
    granted(&policy, vec![edit]);
}

#[test]
fn an_approval_holds_in_the_folder_it_was_given_in() {
    let at = |folder: &str| Access::Run { command: "make x".into(), folder: folder.into() };
    for (given, others) in [(".", ["a", "a/b"]), ("a", [".", "b"]), ("a/b", ["a", "b"])] {
        let policy = on(json!({}), Mode::Ask, Shelter::Standing);
        let policy = policy.approved(vec![Approval::of(&at(given))]);
        granted(&policy, vec![at(given)]);
        for other in others {
            asked(&policy, vec![at(other)]);
        }
    }
    // Nothing that a command says makes it another folder's.
    let odd = Access::Run { command: "in a make x".into(), folder: ".".into() };
    assert_ne!(Approval::of(&odd), Approval::of(&at("a")));
}

#[test]
fn a_rule_that_asks_means_every_command_of_a_kind() {
    let rules = json!({"bash": {"cargo test --release*": "ask"}});
    let kept = Approval { key: Approval::LIKE.into(), subject: "cargo test *".into() };
    let policy = on(rules, Mode::Ask, Shelter::Standing).approved(vec![kept]);
    granted(&policy, vec![run("cargo test a")]);
    assert!(asked(&policy, vec![run("cargo test --release")]).offer().is_none());
}

#[test]
fn a_command_outside_of_the_workspace_is_no_kind_and_says_why() {
    let outside = Access::Run { command: "cargo test a".into(), folder: "/elsewhere".into() };
    let question = asked(&auto(json!({})), vec![outside]);
    assert!(question.offer().is_none());
    assert_eq!(question.reason(), "/elsewhere lies outside of the workspace");
}

#[test]
fn what_only_its_words_allowed_is_known_for_it() {
    for mode in [Mode::Plan, Mode::Ask] {
        let plain = on(json!({}), mode, Shelter::Standing);
        assert!(granted(&plain, vec![run("git status && ls | head")]).looks(), "{mode:?}");
        let ruled = on(json!({"bash": {"git status": "allow"}}), mode, Shelter::Standing);
        assert!(!granted(&ruled, vec![run("git status")]).looks(), "{mode:?}");
        assert!(!granted(&plain, vec![Access::Read { path: "a".into() }]).looks());
    }
    let ask = on(json!({}), Mode::Ask, Shelter::Standing);
    let kept = ask.clone().approved(vec![Approval::of(&run("make"))]);
    assert!(!granted(&kept, vec![run("make")]).looks());
    let yes = asked(&ask, vec![run("make")]).answered(&Answer::Once).unwrap();
    assert!(!yes.looks());
    assert!(!granted(&auto(json!({})), vec![run("git status")]).looks());
}

#[test]
fn an_empty_command_is_asked_about_with_a_reason() {
    assert_eq!(asked(&auto(json!({})), vec![run("")]).reason(), "it is empty");
}
