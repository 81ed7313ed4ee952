//! The handle of a model: its catalog entry, its client and its request options.

use crate::session::{ContextWindow, SessionModel};
use std::sync::Arc;
use windlass_llm::Client;
use windlass_llm::catalog::Model;
use windlass_protocol::ModelOptions;

/// A model, the client that reaches its provider, and the options of its requests.
#[derive(Clone)]
pub struct ModelHandle {
    /// Client for the model's provider.
    pub client: Arc<Client>,
    /// Capabilities, limits and price of the model.
    pub model: Arc<Model>,
    /// Options sent with each `ModelRequest`.
    pub options: Arc<ModelOptions>,
}

/// A model and its name as recorded in the log, `provider/model`.
pub type NamedModel = (ModelHandle, Arc<str>);

impl ModelHandle {
    /// Returns the limits and the price of the model for a session.
    pub(crate) fn session_model(&self, name: &str) -> SessionModel {
        let window = ContextWindow {
            context: self.model.context.unwrap_or_default(),
            output: self.model.output.unwrap_or_default(),
        };
        SessionModel { name: name.to_owned(), window, price: self.model.price }
    }

    /// Creates a handle for a model that is not in the catalog: see `Model::unlisted`.
    pub fn from_model_name(client: Client, model: &str) -> ModelHandle {
        let model = Arc::new(Model::unlisted(model));
        ModelHandle { client: Arc::new(client), model, options: Arc::default() }
    }

    /// Removes the schema that the answer has to match.
    pub(crate) fn without_answer_schema(mut self) -> ModelHandle {
        if self.options.answer.is_some() {
            Arc::make_mut(&mut self.options).answer = None;
        }
        self
    }
}
