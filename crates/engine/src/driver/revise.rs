//! What hooks make of a request: what a model is told of tools, and how it is to answer.
//!
//! A definition is shown to them once in a process, and stays what they made of it, since what a model
//! was told of tools does not change. What they will not have told is not there for the model.

use super::Driver;
use super::hooks::Place;
use crate::host::Settings;
use crate::session::Input;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OnceCell, mpsc};
use windlass_protocol::{Fault, Mode, Options, Point, Verdict};
use windlass_toolkit::{Definition, Firing, Heard, Matter, Runtime, Snapshot, foreign};

/// The definitions that hooks have seen, by tool: what named each, and what they made of it.
pub(super) type Seen = Arc<Mutex<BTreeMap<String, (String, Option<Definition>)>>>;

/// The tools of the step under way, taken stock of when somebody first needs them.
pub(super) type Offer = Arc<OnceCell<Snapshot>>;

/// Hooks that may revise a request.
#[derive(Clone)]
pub(super) struct Revision {
    place: Place,
    mode: Mode,
    inputs: mpsc::Sender<Input>,
    seen: Seen,
}

impl Driver {
    /// The hooks at a point, if there are any.
    pub(super) fn revision(&self, point: Point) -> Option<Revision> {
        let revision = || Revision {
            place: self.place(),
            mode: self.runtime.policy.mode(),
            inputs: self.inputs.clone(),
            seen: Arc::clone(&self.seen),
        };
        self.is_heard(point).then(revision)
    }
}

impl Revision {
    /// The tools as hooks want a model to be told of them.
    pub(super) async fn of_tools(&self, snapshot: Snapshot) -> Snapshot {
        let mut seen = self.seen.lock().await;
        let mut revised = BTreeMap::new();
        for (tool, definition) in snapshot.told() {
            let Definition { description, schema } = definition;
            let digest = foreign::digest(&json!({"description": description, "schema": schema}));
            let known = seen.get(tool).filter(|(was, _)| *was == digest);
            let made = match known {
                Some((_, made)) => made.clone(),
                None => {
                    let made = self.of_definition(tool, definition).await;
                    seen.insert(tool.to_owned(), (digest, made.clone()));
                    made
                }
            };
            if made.as_ref() != Some(definition) {
                revised.insert(tool.to_owned(), made);
            }
        }
        snapshot.revised(&revised)
    }

    async fn of_definition(&self, tool: &str, definition: &Definition) -> Option<Definition> {
        let matter = Matter::Definition { tool: tool.to_owned(), definition: definition.clone() };
        let (mut firings, heard) = self.place.fire(self.mode, matter).await;
        let made = match heard {
            Ok(Heard { matter: Matter::Definition { definition, .. }, .. }) => Some(definition),
            Ok(_) | Err(_) => None,
        };
        // A schema that somebody wrote is a stranger's, whoever that is.
        let made = match made {
            Some(Definition { description, schema }) if schema != definition.schema => {
                match foreign::tame(&schema) {
                    Ok(schema) => Some(Definition { description, schema }),
                    Err(reason) => {
                        if let Some(Firing { verdict, .. }) = firings.last_mut() {
                            *verdict = Verdict::Failed { reason };
                        }
                        None
                    }
                }
            }
            made => made,
        };
        self.tell(firings).await;
        made
    }

    /// How the model is to answer, as hooks want it. What its answer has to fit, and what the
    /// provider is sent besides, is neither shown nor changed.
    pub(super) async fn of_options(&self, options: &Options) -> Result<Options, Fault> {
        let Options { answer, extra, .. } = options.clone();
        let shown = Options { answer: None, extra: Default::default(), ..options.clone() };
        let mut params = json!(shown);
        if let Value::Object(params) = &mut params {
            params.retain(|key, value| !value.is_null() && key != "extra");
        }
        let (firings, heard) = self.place.fire(self.mode, Matter::Params { params }).await;
        self.tell(firings).await;
        let params = match heard {
            Ok(Heard { matter: Matter::Params { params }, .. }) => params,
            Ok(_) => return Ok(options.clone()),
            Err(stopped) => return Err(Fault::Config { message: stopped.to_string() }),
        };
        let read = serde_json::from_value::<Options>(params);
        let read = read.map_err(|error| Fault::Config {
            message: format!("what a hook made of the params cannot be used: {error}"),
        })?;
        Ok(Options { answer, extra, ..read })
    }

    async fn tell(&self, firings: Vec<Firing>) {
        if !firings.is_empty() {
            let _ = self.inputs.send(Input::Hooked { call: None, firings }).await;
        }
    }
}

/// The tools of a step; whoever needs them first takes stock.
pub(super) async fn tools<'a>(
    offer: &'a Offer,
    (runtime, settings): (&Runtime, &Settings),
    revision: Option<&Revision>,
) -> &'a Snapshot {
    let taken = async {
        let snapshot = runtime.snapshot(&settings.scene()).await;
        match revision {
            Some(revision) => revision.of_tools(snapshot).await,
            None => snapshot,
        }
    };
    offer.get_or_init(|| taken).await
}
