//! What a server asks the person while a call is under way: a form, a question a field. Where nobody
//! is there, or what is said does not fit the form, the server hears a no.

use crate::call::told;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Number, Value};
use windlass_protocol::{Inquiry, Suggestion};
use windlass_toolkit::{Caller, Stake, fits, foreign};

/// So many fields may a form have.
const FIELDS: usize = 8;
/// So many answers are offered for one.
const OPTIONS: usize = 50;
/// How much of the server's words a question has.
const WORDS: usize = 600;

/// Puts a server's question to the person.
pub(crate) async fn put(params: &ElicitRequestParams, caller: Option<&dyn Caller>) -> ElicitResult {
    let declined = ElicitResult::new(ElicitationAction::Decline);
    let (
        Some(caller),
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. },
    ) = (caller, params)
    else {
        return declined;
    };
    let Ok(schema) = serde_json::to_value(requested_schema) else { return declined };
    let Some(form) = Form::read(message, &schema) else { return declined };
    let inquiries = form.fields.iter().map(|field| field.inquiry.clone()).collect();
    let Ok(replies) = caller.inquire(inquiries, Stake::Words).await else { return declined };
    match form.filled(&schema, &replies) {
        Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        None => declined,
    }
}

/// A form.
struct Form {
    fields: Vec<Field>,
}

/// One of its fields.
struct Field {
    name: String,
    kind: Kind,
    required: bool,
    inquiry: Inquiry,
    /// What a label stands for.
    meant: Vec<(String, Value)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Choice,
    Choices,
}

impl Form {
    fn read(message: &str, schema: &Value) -> Option<Form> {
        let properties = schema.get("properties")?.as_object()?;
        if properties.is_empty() || properties.len() > FIELDS {
            return None;
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields = properties
            .iter()
            .map(|(name, property)| Field::read(message, (name, property), &required));
        Some(Form { fields: fields.collect() })
    }

    /// What the person said, as the form wants it.
    fn filled(&self, schema: &Value, replies: &[Vec<String>]) -> Option<Value> {
        let mut content = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            let said = replies.get(at).map(Vec::as_slice).unwrap_or_default();
            let said: Vec<&str> =
                said.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
            match field.value(&said) {
                Some(value) => {
                    content.insert(field.name.clone(), value);
                }
                None if field.required => return None,
                None => {}
            }
        }
        let content = Value::Object(content);
        let schema = foreign::tame(schema).ok()?;
        fits(&schema, &content).ok()?.is_empty().then_some(content)
    }
}

impl Field {
    fn read(message: &str, (name, property): (&String, &Value), required: &[&str]) -> Field {
        let required = required.contains(&name.as_str());
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let title = text("title").unwrap_or(name);
        let (kind, mut meant) = choices(property);
        if let Some(default) = property.get("default") {
            // What is meant if nothing else is said comes first.
            match meant.iter().position(|(_, value)| value == default) {
                Some(at) => meant.swap(0, at),
                None if kind == Kind::Text || kind == Kind::Number => {
                    let label = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                    meant.push((told(&label), default.clone()));
                }
                None => {}
            }
        }
        let mut question = told(message);
        question.push_str(&format!("\n{}", told(title)));
        if let Some(description) = text("description") {
            question.push_str(&format!(": {}", told(description)));
        }
        if !required {
            question.push_str(" (may be left empty)");
        }
        let option = |(label, _): &(String, Value)| Suggestion {
            label: label.clone(),
            description: String::new(),
        };
        let inquiry = Inquiry {
            header: told(title).chars().take(30).collect(),
            question: question.chars().take(WORDS).collect(),
            options: meant.iter().map(option).collect(),
            multiple: kind == Kind::Choices,
            custom: matches!(kind, Kind::Text | Kind::Number),
        };
        Field { name: name.clone(), kind, required, inquiry, meant }
    }

    fn value(&self, said: &[&str]) -> Option<Value> {
        let known = |word: &&str| {
            let meant = self.meant.iter().find(|(label, _)| label == word);
            meant.map(|(_, value)| value.clone())
        };
        let first = said.first();
        match self.kind {
            Kind::Choice => known(first?),
            Kind::Choices if said.is_empty() => None,
            Kind::Choices => said.iter().map(known).collect::<Option<Vec<_>>>().map(Value::Array),
            Kind::Text => {
                let first = first?;
                Some(known(first).unwrap_or_else(|| Value::String((*first).to_owned())))
            }
            Kind::Number => {
                let first = first?;
                known(first).or_else(|| first.parse::<Number>().ok().map(Value::Number))
            }
        }
    }
}

/// What can be chosen in a field: labels, and what they stand for.
fn choices(property: &Value) -> (Kind, Vec<(String, Value)>) {
    let listed = |place: &Value| {
        let plain = place.get("enum").and_then(Value::as_array);
        let names = place.get("enumNames").and_then(Value::as_array);
        let plain = plain.into_iter().flatten().enumerate().filter_map(move |(at, value)| {
            let name = names.and_then(|names| names.get(at)?.as_str());
            Some((told(name.or(value.as_str())?), value.clone()))
        });
        let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| place.get(key)?.as_array());
        let titled = titled.flatten().filter_map(|each| {
            let value = each.get("const")?;
            let label = each.get("title").and_then(Value::as_str).or(value.as_str())?;
            Some((told(label), value.clone()))
        });
        plain.chain(titled).take(OPTIONS).collect::<Vec<_>>()
    };
    let choices = listed(property);
    if !choices.is_empty() {
        return (Kind::Choice, choices);
    }
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => {
            let both = vec![("Yes".to_owned(), true.into()), ("No".to_owned(), false.into())];
            (Kind::Choice, both)
        }
        Some("integer" | "number") => (Kind::Number, Vec::new()),
        Some("array") => (Kind::Choices, property.get("items").map(listed).unwrap_or_default()),
        Some(_) | None => (Kind::Text, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(schema: &Value, replies: &[&[&str]]) -> Option<Value> {
        let owned = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let replies: Vec<Vec<String>> = replies.iter().map(owned).collect();
        Form::read("Who?", schema).unwrap().filled(schema, &replies)
    }

    #[test]
    fn what_is_said_gets_the_type_that_the_form_wants() {
        let schema = json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean", "default": false},
            "unit": {"type": "string", "oneOf": [{"const": "c", "title": "Celsius"}, {"const": "f", "title": "F"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        }});
        let all = filled(&schema, &[&["Ann"], &["7"], &["Yes"], &["Celsius"], &["b", "a"]]);
        let wanted =
            json!({"name": "Ann", "age": 7, "sure": true, "unit": "c", "tags": ["b", "a"]});
        assert_eq!(all, Some(wanted));
        assert_eq!(filled(&schema, &[&["Ann"], &["7"]]), Some(json!({"name": "Ann", "age": 7})));
        let wrong: [&[&[&str]]; 4] =
            [&[&["Ann"], &["seven"]], &[&["Ann"], &["-1"]], &[&["A"], &["7"]], &[&[], &["7"]]];
        for wrong in wrong {
            assert_eq!(filled(&schema, wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_form_that_is_too_long_is_no_form() {
        let many: Map<String, Value> =
            (0..9).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
        assert!(Form::read("", &json!({"properties": many})).is_none());
        assert!(Form::read("", &json!({"properties": {}})).is_none());
        assert!(Form::read("", &json!({"properties": 7})).is_none());
    }
}
