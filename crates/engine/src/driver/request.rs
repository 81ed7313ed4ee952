//! A request to the model: what goes into it, and how what comes back reaches the session.

use super::revise::{Offer, Revision, tools};
use super::{Driver, stamp};
use crate::host::Asked;
use crate::session::Input;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use windlass_llm::{ModelEvent, Request};
use windlass_protocol::{Fault, Message, Messages, Options, Part, Point, Purpose, Role};

impl Driver {
    /// Asks the model in a task of its own; what it says comes back as inputs.
    pub(super) fn call_model(
        &mut self,
        (turn, step): (u32, u32),
        purpose: Purpose,
        system: Arc<str>,
        mut messages: Messages,
    ) {
        if purpose == Purpose::Summary {
            let parts = vec![Part::text(include_str!("../prompt/summary.md"))];
            messages.push(Message { role: Role::User, seq: 0, model: None, parts });
        }
        self.snapshot = Offer::default();
        let (runtime, settings) = (Arc::clone(&self.runtime), Arc::clone(&self.settings));
        let (inputs, offer) = (self.inputs.clone(), Arc::clone(&self.snapshot));
        let (log, session) = (Arc::clone(&self.log), self.claim.session);
        let purse = Arc::clone(&self.family.purse);
        let (spending, spent) = oneshot::channel();
        self.spending = Some(spending);
        let broke = self.inputs.clone();
        let (album, draft) = (Arc::clone(&self.album), Arc::clone(&self.draft));
        let revision = self.revision(Point::ToolDefinition);
        let params = self.revision(Point::Params);
        let hand_on = {
            let inputs = inputs.clone();
            async move |event| inputs.send(Input::Model { turn, step, event }).await.is_ok()
        };
        let ask = async move {
            let Some(Asked { client, model, options }) = settings.model.clone() else {
                let message = "no model is set".to_owned();
                hand_on(ModelEvent::Failed(Fault::Config { message })).await;
                return;
            };
            let options = match suited(options, purpose, params.as_ref()).await {
                Ok(options) => options,
                Err(fault) => {
                    hand_on(ModelEvent::Failed(fault)).await;
                    return;
                }
            };
            let entry = match purse.enter(|| stamp().at).await {
                Ok(entry) => entry,
                Err(what) => {
                    let _ = broke.send(Input::Broke { turn, step, what }).await;
                    return;
                }
            };
            let files = album.lock().await.of(&*log, &messages, &model).await;
            let tools = match purpose {
                Purpose::Answer if model.calls => {
                    tools(&offer, (&runtime, &settings), revision.as_ref()).await.offered()
                }
                Purpose::Answer | Purpose::Summary => Vec::new(),
            };
            let request = Request {
                model,
                name: Arc::clone(&settings.model_name),
                system,
                messages,
                files,
                tools,
                options,
                cache_key: Some(session.to_string()),
                draft,
            };
            let (sink, mut events) = mpsc::channel(16);
            let stream = async move { client.step(&request, &sink).await };
            let listen = async {
                while let Some(event) = events.recv().await {
                    if !hand_on(event).await {
                        return;
                    }
                }
            };
            tokio::join!(stream, listen);
            if entry.is_some() {
                let _ = spent.await;
            }
        };
        self.model = Some(self.tasks.spawn(async move {
            let mut asking = JoinSet::new();
            asking.spawn(ask);
            if let Some(Err(error)) = asking.join_next().await {
                let event = ModelEvent::Failed(Fault::Internal { message: error.to_string() });
                let _ = inputs.send(Input::Model { turn, step, event }).await;
            }
        }));
    }
}

/// How the model is to answer. What holds for answers does not hold for a summary.
async fn suited(
    options: Arc<Options>,
    purpose: Purpose,
    params: Option<&Revision>,
) -> Result<Arc<Options>, Fault> {
    let options = match params {
        Some(params) => Arc::new(params.of_options(&options).await?),
        None => options,
    };
    Ok(match purpose {
        Purpose::Answer => options,
        Purpose::Summary => {
            Arc::new(Options { answer: None, tool_choice: None, ..(*options).clone() })
        }
    })
}
