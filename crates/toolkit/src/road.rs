//! The road: the one way a call is carried out, for every tool and every caller.
//!
//! repair → unwrap → before-hooks → parse → access → permission → world → run → after-hooks → bound.
//! Hooks come before permission, because one that rewrote the arguments after it would run what
//! nobody approved; bounding comes last, so that no hook can exceed it.

use crate::bound::{self, Limits};
use crate::finish::{self, Ran};
use crate::hook::{self, Firing, Hook, Matter, Moment};
use crate::ledger::Entries;
pub use crate::meaning::INVALID;
use crate::meaning::Understood;
use crate::registry::{Registry, Snapshot};
use crate::tool::{Caller, Cx, Failure, Intent, Permit, Prepared, Scene};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Decision, Grant, Policy, Question};
use windlass_protocol::{Access, Answer, Author, CallId, Mode, Outcome, Output, Repair, SessionId};
use windlass_sandbox::Workspace;

/// How long a call that changes something may take to stop when it is told to. After that nobody
/// can say what it did.
const GRACE: Duration = Duration::from_secs(2);

/// What a person is shown of a call that would fail, where the reason would tell a secret.
const VEILED: &str = "It would fail. Why is not shown, because that would tell what is there.";

/// How often it is looked whether a batch has been made.
const BLINK: Duration = Duration::from_millis(20);

/// What a workspace's sessions share: its tools, hooks, rules and folder.
pub struct Runtime {
    /// The tools.
    pub registry: Registry,
    /// The hooks, in the order they run.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// The rules.
    pub policy: Policy,
    /// The folder.
    pub workspace: Workspace,
    /// How much a model is given.
    pub limits: Limits,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The session it belongs to.
    pub session: SessionId,
    /// Names it.
    pub id: CallId,
    /// Who made it. A model reaches what it was offered; a person reaches every tool.
    pub by: Author,
    /// The tool, as it was spelled.
    pub tool: String,
    /// The arguments, as they were written.
    pub arguments: String,
}

/// A call that has been understood and decided on.
struct Ready {
    prepared: Box<dyn Prepared>,
    intent: Intent,
    pass: Pass,
}

enum Pass {
    Granted(Grant),
    Pending(Question),
}

impl Runtime {
    /// The same in another mode, or in the laxest there may be.
    pub fn in_mode(&self, mode: Mode) -> Runtime {
        Runtime {
            registry: self.registry.clone(),
            hooks: self.hooks.clone(),
            policy: self.policy.clone().in_mode(mode),
            workspace: self.workspace.clone(),
            limits: self.limits,
        }
    }

    /// The tools of one step.
    pub async fn snapshot(&self, scene: &Scene) -> Snapshot {
        self.registry.snapshot(scene, &self.policy).await
    }

    /// Carries a call out. Whatever happens, it ends in exactly one outcome.
    #[tracing::instrument(name = "Tool.execute", skip_all, fields(tool = %call.tool, session = %call.session, call = %call.id))]
    pub async fn travel(
        &self,
        snapshot: &Snapshot,
        call: Call,
        caller: &dyn Caller,
        cancel: CancellationToken,
    ) -> Outcome {
        let mut firings = Vec::new();
        let ready = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(never_ran()),
            ready = self.prepare(snapshot, &call, &mut firings) => ready,
        };
        finish::tell(caller, firings).await;
        let (meant, ready) = match ready {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        let read_only = ready.intent.read_only;
        let (session, id, by, scene) = (call.session, call.id, call.by, &snapshot.scene);
        let cx = |world| Cx {
            session,
            call: id,
            by,
            world: Arc::new(world),
            cancel: cancel.clone(),
            caller,
            scene,
            runtime: self,
        };
        let permitted = async {
            match caller.permit(ready.intent).await {
                Permit::Answer(answer) => Ok(answer),
                Permit::Look => {
                    let preview = match &ready.pass {
                        Pass::Granted(_) => None,
                        Pass::Pending(question) => {
                            let cx = cx(self.workspace.look(question.preview()));
                            match ready.prepared.preview(&cx).await {
                                Ok(preview) => preview,
                                Err(failure) if question.reveals() => return Err(failure),
                                // Why it fails would tell what the person may want kept closed.
                                Err(_) => Some(VEILED.to_owned()),
                            }
                        }
                    };
                    Ok(caller.ask(preview.map(|text| self.short(&text))).await)
                }
            }
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return never_ran(),
            answer = permitted => match answer {
                Ok(answer) => answer,
                Err(failure) => return Outcome::Failed { text: self.short(&failure.text) },
            },
        };
        let grant = match (ready.pass, &answer) {
            (Pass::Granted(grant), answer) if answer.is_yes() => Some(grant),
            (Pass::Granted(_), _) => None,
            (Pass::Pending(question), answer) => question.answered(answer),
        };
        let Some(grant) = grant else { return refused(answer) };
        let (ledger, mut entries) = Entries::open();
        let under_way = entries.under_way();
        let cx = cx(self.workspace.open(grant, ledger));
        let ran = tokio::select! {
            biased;
            ran = ready.prepared.run(&cx) => ran,
            never = entries.serve(caller) => match never {},
            outcome = stopped(&cancel, read_only, &under_way) => return outcome,
        };
        let output = match ran {
            Ok(output) => output,
            Err(failure) if cancel.is_cancelled() => {
                return Outcome::Interrupted { text: self.short(&failure.text) };
            }
            Err(failure) => return Outcome::Failed { text: self.short(&failure.text) },
        };
        self.finished(&call, caller, meant, output).await
    }

    /// What comes of a call that ran, once hooks have seen it.
    async fn finished(
        &self,
        call: &Call,
        caller: &dyn Caller,
        meant: Ran,
        output: Output,
    ) -> Outcome {
        let folder = self.folder();
        let moment = self.moment(call, &folder);
        match finish::hooked(&self.hooks, (&moment, caller), meant, output).await {
            Ok(output) => {
                let output = finish::bounded(output, self.limits, caller).await;
                Outcome::Completed { output }
            }
            Err(failure) => Outcome::Failed { text: self.short(&failure.text) },
        }
    }

    /// What a call would do, for a person to look at, whole. Nothing is done and nothing recorded.
    pub async fn preview(
        &self,
        snapshot: &Snapshot,
        call: Call,
        caller: &dyn Caller,
    ) -> Result<Option<String>, Outcome> {
        let (_, ready) = self.prepare(snapshot, &call, &mut Vec::new()).await?;
        let grant = match ready.pass {
            Pass::Pending(question) => question.preview(),
            Pass::Granted(grant) => grant,
        };
        let world = Arc::new(self.workspace.look(grant));
        let (cancel, scene) = (CancellationToken::new(), &snapshot.scene);
        let (session, by) = (call.session, call.by);
        let runtime = self;
        let cx = Cx { session, call: call.id, by, world, cancel, caller, scene, runtime };
        let failed = |failure: Failure| Outcome::Failed { text: self.short(&failure.text) };
        let preview = ready.prepared.preview(&cx).await.map_err(failed)?;
        Ok(preview.map(|text| bound::plain(&text)))
    }

    /// From what was written to what it would do: nothing is touched here.
    async fn prepare(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        firings: &mut Vec<Firing>,
    ) -> Result<(Ran, Ready), Outcome> {
        let Understood { tool, arguments, mut prepared, mut repaired, mut ask } =
            self.understood(snapshot, call, firings).await?;
        if let Some(parts) = prepared.parts() {
            let (batch, changes, asks) = self.batch(snapshot, call, (parts, firings)).await;
            prepared = Box::new(batch);
            ask = ask.or(asks);
            if !changes.is_empty() {
                let plain = || Repair { arguments: call.arguments.clone(), changes: Vec::new() };
                repaired.get_or_insert_with(plain).changes.extend(changes);
            }
        }
        let declared = prepared.access();
        let accesses: Result<Vec<Access>, _> =
            declared.iter().map(|access| self.workspace.resolve(access)).collect();
        let accesses =
            accesses.map_err(|error| Outcome::Denied { text: self.short(&error.to_string()) })?;
        let spelled: Vec<Access> =
            declared.iter().map(|access| self.workspace.spelled(access)).collect();
        let decision = self.doubted(self.policy.decide(accesses, &spelled), ask);
        let ran = Ran { tool: tool.name().to_owned(), arguments };
        let (pass, accesses, asking) = match decision {
            Decision::Allowed(grant) => {
                let accesses = grant.accesses().to_vec();
                (Pass::Granted(grant), accesses, None)
            }
            Decision::Denied { reason } => {
                let text = self.short(&format!(
                    "This call is not permitted: {reason}. If you cannot go on without it, say so."
                ));
                return Err(Outcome::Denied { text });
            }
            Decision::Ask(question) => {
                self.may_ask(call, &ran.tool, &question, firings).await?;
                let (accesses, reason) = (question.accesses().to_vec(), question.reason());
                let asking = Some(reason.to_owned());
                (Pass::Pending(question), accesses, asking)
            }
        };
        let (offer, coverable) = match &pass {
            Pass::Pending(question) => (question.offer().cloned(), question.coverable()),
            Pass::Granted(_) => (None, true),
        };
        let read_only = accesses.iter().all(Access::read_only);
        let intent = Intent { accesses, read_only, asking, offer, coverable, repaired };
        Ok((ran, Ready { prepared, intent, pass }))
    }

    /// What a decision becomes if a hook wants a person to be asked. A no stays one.
    fn doubted(&self, decision: Decision, ask: Option<String>) -> Decision {
        let Some(reason) = ask.map(|ask| self.short(&ask)) else { return decision };
        match decision {
            Decision::Allowed(grant) => self.policy.doubt(grant.accesses().to_vec(), reason),
            Decision::Ask(question) => {
                let reason = format!("{reason}; {}", question.reason());
                self.policy.doubt(question.accesses().to_vec(), reason)
            }
            Decision::Denied { reason } => Decision::Denied { reason },
        }
    }

    /// Hears the hooks that have a say in what a person is asked.
    async fn may_ask(
        &self,
        call: &Call,
        tool: &str,
        question: &Question,
        firings: &mut Vec<Firing>,
    ) -> Result<(), Outcome> {
        let (accesses, reason) = (question.accesses().to_vec(), question.reason().to_owned());
        let matter = Matter::Asked { tool: tool.to_owned(), accesses, reason };
        let folder = self.folder();
        let (fired, heard) = hook::fire(&self.hooks, &self.moment(call, &folder), matter).await;
        firings.extend(fired);
        match heard {
            Ok(_) => Ok(()),
            Err(stopped) => Err(Outcome::Denied { text: self.short(&stopped.to_string()) }),
        }
    }

    pub(crate) fn moment<'a>(&self, call: &Call, folder: &'a str) -> Moment<'a> {
        let (session, call) = (call.session, Some(call.id));
        Moment { session, call, folder, mode: self.policy.mode() }
    }

    pub(crate) fn folder(&self) -> String {
        self.workspace.root().to_string_lossy().into_owned()
    }

    pub(crate) fn short(&self, text: &str) -> String {
        finish::short(text, self.limits)
    }
}

/// Resolves when a call has to be given up. One that only looks is dropped at once; one that
/// changes something gets time to stop by itself.
/// A batch of changes that is on record is waited for, so that none is left half made.
async fn stopped(cancel: &CancellationToken, read_only: bool, under_way: &AtomicBool) -> Outcome {
    cancel.cancelled().await;
    if read_only {
        return Outcome::Interrupted { text: "Interrupted before it was done.".into() };
    }
    tokio::time::sleep(GRACE).await;
    while under_way.load(Ordering::SeqCst) {
        tokio::time::sleep(BLINK).await;
    }
    Outcome::Unknown
}

fn never_ran() -> Outcome {
    Outcome::Interrupted { text: "Interrupted before it ran; nothing was done.".into() }
}

fn refused(answer: Answer) -> Outcome {
    match answer {
        Answer::No { reason: Some(reason) } => Outcome::Denied {
            text: format!("The person said no to this call: {}", bound::plain(&reason)),
        },
        Answer::No { reason: None }
        | Answer::Once
        | Answer::Session
        | Answer::Project
        | Answer::Like { .. } => {
            Outcome::Denied { text: "The person said no to this call.".into() }
        }
    }
}
