//! The handle of a model: its catalog entry, its client and its request options.

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

impl ModelHandle {
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
