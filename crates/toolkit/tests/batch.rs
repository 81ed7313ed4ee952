//! A call made of calls gets nothing that its parts would not get one by one.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Answer, Author, CallId, Outcome, Output, Point, SessionId};
use windlass_sandbox::Workspace;
use windlass_toolkit::{
    Call, Caller, Cx, Definition, Failure, Hook, Intent, Matter, Moment, Part, Permit, Refusal,
    Registry, Runtime, Said, Scene, Tool,
};

/// Calls the puppet once for each path.
struct Bundle;

#[derive(Deserialize, JsonSchema)]
struct Paths {
    paths: Vec<String>,
}

#[async_trait]
impl Tool for Bundle {
    type Input = Paths;

    fn name(&self) -> &str {
        "bundle"
    }

    fn batched(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Paths>("A bundle.")
    }

    fn access(&self, _input: &Paths) -> Vec<Access> {
        Vec::new()
    }

    fn parts(&self, input: &Paths) -> Option<Vec<Part>> {
        let part = |path: &String| Part {
            tool: "puppet".into(),
            arguments: json!({"path": path}).to_string(),
        };
        Some(input.paths.iter().map(part).collect())
    }

    async fn run(&self, _input: Paths, _cx: &Cx<'_>) -> Result<Output, Failure> {
        panic!("a bundle does nothing by itself");
    }
}

/// Reads a path, or says that it would change it if that begins with `+`.
struct Puppet;

#[derive(Deserialize, JsonSchema)]
struct Where {
    path: String,
}

#[async_trait]
impl Tool for Puppet {
    type Input = Where;

    fn name(&self) -> &str {
        "puppet"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Where>("A puppet.")
    }

    fn access(&self, input: &Where) -> Vec<Access> {
        vec![match input.path.strip_prefix('+') {
            Some(path) => Access::Edit { path: path.into() },
            None => Access::Read { path: input.path.clone() },
        }]
    }

    async fn run(&self, input: Where, cx: &Cx<'_>) -> Result<Output, Failure> {
        match input.path.as_str() {
            "slow" => cx.cancel.cancelled().await,
            "fails" => return Err(Failure::new("it failed")),
            _ => {}
        }
        let text =
            format!("{}\n", input.path).repeat(if input.path == "long" { 50_000 } else { 1 });
        Ok(Output { text, ..Output::default() })
    }
}

/// Refuses one path, and turns another into a third.
struct Meddler;

#[async_trait]
impl Hook for Meddler {
    fn name(&self) -> &str {
        "meddler"
    }

    fn at(&self, point: Point, _tool: Option<&str>) -> bool {
        matches!(point, Point::BeforeTool | Point::AfterTool)
    }

    async fn fire(&self, _moment: &Moment<'_>, matter: Matter) -> Result<Said, Refusal> {
        let matter = match matter {
            Matter::Before { tool, arguments } => match arguments["path"].as_str() {
                Some("refused") => return Err(Refusal::said("not this one")),
                Some("turned") => Matter::Before { tool, arguments: json!({"path": "closed"}) },
                Some(_) | None => {
                    assert!(tool == "puppet" || tool == "bundle");
                    Matter::Before { tool, arguments }
                }
            },
            Matter::After { tool, arguments, mut output } => {
                if output.text == "withheld\n" {
                    return Err(Refusal::said("not for you"));
                }
                if tool == "puppet" {
                    assert!(arguments["path"].is_string());
                    output.text = format!("seen {}", output.text);
                }
                Matter::After { tool, arguments, output }
            }
            other => other,
        };
        Ok(Said::Go(matter))
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Intent>>);

#[async_trait]
impl Caller for Recorder {
    async fn permit(&self, intent: Intent) -> Permit {
        let asks = intent.asking.is_some();
        self.0.lock().unwrap().push(intent);
        if asks { Permit::Look } else { Permit::Answer(Answer::Once) }
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::Once
    }
}

async fn travel(paths: &[&str], cancel: CancellationToken) -> (Outcome, Option<Intent>) {
    let folder = tempfile::tempdir().unwrap();
    let rules = json!({"read": {"*": "allow", "closed": "deny"}});
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: vec![Arc::new(Meddler)],
        policy: Policy::new(Rules::parse(&rules).unwrap()),
        workspace: Workspace::at(folder.path()).unwrap(),
        limits: Default::default(),
    };
    runtime.registry.register(Bundle);
    runtime.registry.register(Puppet);
    let call = Call {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        by: Author::Model,
        tool: "bundle".into(),
        arguments: json!({"paths": paths}).to_string(),
    };
    let caller = Recorder::default();
    let snapshot = runtime.snapshot(&Scene::default()).await;
    let outcome = runtime.travel(&snapshot, call, &caller, cancel).await;
    let intent = caller.0.lock().unwrap().pop();
    (outcome, intent)
}

#[tokio::test]
async fn hooks_and_rules_hold_for_every_part() {
    let paths = ["a", "refused", "turned", "closed", "withheld", "fails", "b"];
    let (outcome, intent) = travel(&paths, CancellationToken::new()).await;
    let Outcome::Completed { output } = &outcome else { panic!("{outcome:?}") };
    let parts: Vec<&str> = output.text.split("\n\n").collect();
    assert_eq!(parts.len(), paths.len(), "{}", output.text);
    for (part, said) in parts.iter().zip([
        "done]\nseen a",
        "not this one",
        "deny",
        "deny",
        "withheld its result: not for you",
        "failed]\nit failed",
        "done]\nseen b",
    ]) {
        assert!(part.contains(said), "{part}\n{said}");
    }
    let intent = intent.unwrap();
    let touched: Vec<&str> = intent.accesses.iter().map(Access::subject).collect();
    assert_eq!(touched, ["a", "withheld", "fails", "b"], "what is denied is not opened");
    assert!(intent.read_only);
    assert!(!output.text.contains("seen closed"));
}

#[tokio::test]
async fn one_part_that_changes_something_makes_the_whole_a_change() {
    let (_, intent) = travel(&["a", "+b", "a"], CancellationToken::new()).await;
    let intent = intent.unwrap();
    assert!(!intent.read_only);
    assert_eq!(intent.accesses.len(), 2, "each once: {:?}", intent.accesses);
    assert!(intent.asking.is_some());
}

#[tokio::test]
async fn what_stops_stops_what_is_behind_it() {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let (outcome, ()) = tokio::join!(travel(&["+a", "slow", "b"], cancel), async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.cancel();
    });
    let Outcome::Completed { output } = &outcome.0 else { panic!("{outcome:?}") };
    assert!(output.text.contains("3 of 3: puppet, failed]\nInterrupted"), "{}", output.text);
}

#[tokio::test]
async fn a_long_result_leaves_room_for_the_others_and_the_whole_is_bounded() {
    let (outcome, _) = travel(&["long", "a", "long"], CancellationToken::new()).await;
    let Outcome::Completed { output } = &outcome else { panic!("{outcome:?}") };
    assert!(output.text.len() < 60_000, "{}", output.text.len());
    assert!(output.text.contains("seen a"));
}
