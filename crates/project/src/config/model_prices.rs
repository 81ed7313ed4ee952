//! Token prices that the config sets for a model.

use schemars::JsonSchema;
use serde::Deserialize;

/// Token prices of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPriceSettings {
    /// The price of input tokens.
    #[schemars(range(min = 0))]
    pub input: Option<f64>,
    /// The price of output tokens, including reasoning.
    #[schemars(range(min = 0))]
    pub output: Option<f64>,
    /// The price of input tokens that are read from the cache.
    #[schemars(range(min = 0))]
    pub cache_read: Option<f64>,
    /// The price of input tokens that are written to the cache.
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
}
