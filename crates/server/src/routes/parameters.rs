//! Parameters in the path and the query of a route, and their text forms.

use super::errors::invalid;
use super::{Route, WORKSPACE_PARAMETER};
use serde_json::Value;
use url::form_urlencoded;
use windlass_protocol::{BlobRef, EventCursor, RequestError, SessionId};

/// A parameter of a route.
#[derive(Clone, Copy, Debug)]
pub struct RouteParameter {
    /// Name in the path or the query.
    pub name: &'static str,
    /// Place of the parameter.
    pub place: ParameterPlace,
    /// Type of the value.
    pub value: ParameterType,
    /// Path of the field in the JSON of the request; empty if the server itself reads it.
    pub field: &'static str,
    /// One-sentence description.
    pub description: &'static str,
}

/// Place of a [`RouteParameter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    /// Segment of the path.
    Path,
    /// Query parameter that must be there.
    RequiredQuery,
    /// Query parameter.
    Query,
    /// Query parameter with this value if it is absent.
    QueryWithDefault(&'static str),
}

/// Type of a [`RouteParameter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    /// Any text.
    Text,
    /// ID of a session.
    Session,
    /// Reference to a blob.
    Blob,
    /// Name of a token.
    TokenName,
    /// Number of 32 bits.
    Number32,
    /// Number of 64 bits.
    Number64,
    /// `true` or `false`.
    Flag,
    /// Position in a log, with or without epochs.
    Cursor,
    /// One of these texts.
    Choice(&'static [&'static str]),
}

impl ParameterType {
    /// Converts the text of a parameter into the JSON of its field.
    fn to_json(self, text: &str) -> Option<Value> {
        match self {
            ParameterType::Text => Some(Value::from(text)),
            ParameterType::Session => {
                text.parse::<SessionId>().ok().map(|id| Value::from(id.to_string()))
            }
            ParameterType::Blob => BlobRef::parse(text).map(|_| Value::from(text)),
            ParameterType::TokenName => {
                crate::access_tokens::is_token_name(text).then(|| Value::from(text))
            }
            ParameterType::Number32 => text.parse::<u32>().ok().map(Value::from),
            ParameterType::Number64 => text.parse::<u64>().ok().map(Value::from),
            ParameterType::Flag => text.parse::<bool>().ok().map(Value::from),
            ParameterType::Cursor => {
                text.parse::<EventCursor>().ok().map(|cursor| Value::from(cursor.position.seq))
            }
            ParameterType::Choice(choices) => choices.contains(&text).then(|| Value::from(text)),
        }
    }

    /// Describes the values that the type accepts.
    fn expected(self) -> String {
        match self {
            ParameterType::Text => "a text".to_owned(),
            ParameterType::Session => "the id of a session".to_owned(),
            ParameterType::Blob => "64 lower-case hex digits".to_owned(),
            ParameterType::TokenName => "the name of a token".to_owned(),
            ParameterType::Number32 => "a number up to 4294967295".to_owned(),
            ParameterType::Number64 => "a number".to_owned(),
            ParameterType::Flag => "`true` or `false`".to_owned(),
            ParameterType::Cursor => "the `id` of an event, or the number of a fact".to_owned(),
            ParameterType::Choice(choices) => format!("one of: {}", choices.join(", ")),
        }
    }
}

/// The parameters of a request, as texts that their types accept.
#[derive(Debug, Default)]
pub(crate) struct ParameterValues {
    /// Values by parameter, in the order of [`Route::parameters`].
    values: Vec<(&'static RouteParameter, String)>,
    /// Folder that the request is about.
    pub(crate) workspace: Option<String>,
}

impl ParameterValues {
    /// Reads and checks the parameters of a request. Unknown query parameters are ignored.
    pub(crate) fn read(
        route: &'static Route,
        in_path: &[(&'static str, String)],
        query: Option<&str>,
    ) -> Result<ParameterValues, RequestError> {
        let query = query.unwrap_or_default().as_bytes();
        let mut in_query: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query) {
            let is_known = name == WORKSPACE_PARAMETER
                || route.parameters.iter().any(|parameter| parameter.name == name);
            if is_known && in_query.iter().any(|(other, _)| *other == name) {
                return Err(invalid(format!("The parameter `{name}` is there twice. Remove one.")));
            }
            in_query.push((name.into_owned(), value.into_owned()));
        }
        let mut take = |name: &str| {
            let index = in_query.iter().position(|(other, _)| other == name)?;
            Some(in_query.swap_remove(index).1)
        };
        let mut values = Vec::new();
        for parameter in route.parameters {
            let text = match parameter.place {
                ParameterPlace::Path => in_path
                    .iter()
                    .find(|(name, _)| *name == parameter.name)
                    .map(|(_, value)| value.clone()),
                ParameterPlace::RequiredQuery | ParameterPlace::Query => take(parameter.name),
                ParameterPlace::QueryWithDefault(default) => {
                    Some(take(parameter.name).unwrap_or_else(|| default.to_owned()))
                }
            };
            match text {
                Some(text) if parameter.value.to_json(&text).is_some() => {
                    values.push((parameter, text));
                }
                Some(_) => {
                    let (name, expected) = (parameter.name, parameter.value.expected());
                    return Err(invalid(format!("The parameter `{name}` must be {expected}.")));
                }
                None if parameter.place == ParameterPlace::Query => {}
                None => {
                    let name = parameter.name;
                    return Err(invalid(format!("The parameter `{name}` is missing. Add it.")));
                }
            }
        }
        Ok(ParameterValues { values, workspace: take(WORKSPACE_PARAMETER) })
    }

    /// Returns the text of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = self.values.iter().find(|(parameter, _)| parameter.name == name);
        value.map(|(_, text)| text.as_str())
    }

    /// Returns the fields of the request that the parameters set.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.values.iter().filter(|(parameter, _)| !parameter.field.is_empty()).filter_map(
            |(parameter, text)| parameter.value.to_json(text).map(|value| (parameter.field, value)),
        )
    }
}
