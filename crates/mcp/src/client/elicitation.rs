//! Questions that a server asks the user during a call (MCP elicitation): a form, with one user
//! question for each field. If the replies do not fit the form, the server gets a decline, and if no
//! user was asked, a cancel: a server tells the model that the user declined only if one did.

use crate::client::sanitize_server_text::clean_server_text;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Number, Value};
use windlass_protocol::display_text::is_plain_name;
use windlass_protocol::{QuestionOption, UserQuestion};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{QuestionEffect, ToolCaller, schema_violations};

/// Forms with more fields are not shown.
const MAX_FORM_FIELDS: usize = 8;
/// Limits the options that one field offers.
const MAX_FIELD_OPTIONS: usize = 50;
/// Limits the server text in one user question.
const MAX_QUESTION_CHARS: usize = 600;

/// Words, without spaces and punctuation, by which a question asks for a secret.
const SECRET_WORDS: [&str; 17] = [
    "password",
    "passwort",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "token",
    "seedphrase",
    "recoveryphrase",
    "recoverycode",
    "creditcard",
    "2facode",
];

/// Asks the user the questions of an elicitation request, through `ToolCaller::ask_user`.
pub(crate) async fn ask_elicitation(
    params: &ElicitRequestParams,
    caller: Option<&dyn ToolCaller>,
    server: &str,
) -> ElicitResult {
    let declined = ElicitResult::new(ElicitationAction::Decline);
    let canceled = ElicitResult::new(ElicitationAction::Cancel);
    let (
        Some(caller),
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. },
    ) = (caller, params)
    else {
        return canceled;
    };
    let Ok(schema) = serde_json::to_value(requested_schema) else { return canceled };
    let Some(form) = ElicitationForm::parse(message, &schema) else { return canceled };
    // A server must not ask for secrets this way, because its question can pretend to be ours.
    if form.fields.iter().any(ElicitationField::asks_for_secret) {
        caller.report_progress(format!(
            "declined a question of the MCP server {server} for a secret"
        ));
        return declined;
    }
    let asker = match is_plain_name(server) {
        true => format!("MCP server {server}"),
        false => "MCP server".to_owned(),
    };
    let questions = form.fields.iter().map(|field| field.question.clone());
    let questions =
        questions.map(|question| UserQuestion { asker: Some(asker.clone()), ..question }).collect();
    let replies = caller.ask_user(questions, QuestionEffect::None).await.unwrap_or_default();
    // No user is there, or the user dismissed the questions.
    if replies.is_empty() {
        return canceled;
    }
    match form.to_content(&schema, &replies) {
        Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        None => declined,
    }
}

struct ElicitationForm {
    fields: Vec<ElicitationField>,
}

struct ElicitationField {
    name: String,
    kind: ElicitationFieldKind,
    required: bool,
    question: UserQuestion,
    /// The value of each option label.
    label_values: Vec<(String, Value)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElicitationFieldKind {
    Text,
    Number,
    Choice,
    Choices,
}

impl ElicitationForm {
    fn parse(message: &str, schema: &Value) -> Option<ElicitationForm> {
        let properties = schema.get("properties")?.as_object()?;
        if properties.is_empty() || properties.len() > MAX_FORM_FIELDS {
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
            .map(|(name, property)| ElicitationField::parse(message, (name, property), &required));
        Some(ElicitationForm { fields: fields.collect() })
    }

    /// Converts the replies into the content that the form's schema requires; `None` if they do not
    /// fit it.
    fn to_content(&self, schema: &Value, replies: &[Vec<String>]) -> Option<Value> {
        let mut content = Map::new();
        for (index, field) in self.fields.iter().enumerate() {
            let answers = replies.get(index).map(Vec::as_slice).unwrap_or_default();
            let answers: Vec<&str> = answers
                .iter()
                .map(|answer| answer.trim())
                .filter(|answer| !answer.is_empty())
                .collect();
            match field.parse_value(&answers) {
                Some(value) => {
                    content.insert(field.name.clone(), value);
                }
                None if field.required => return None,
                None => {}
            }
        }
        let content = Value::Object(content);
        let schema = untrusted_schema::sanitize_schema(schema).ok()?;
        schema_violations(&schema, &content).ok()?.is_empty().then_some(content)
    }
}

impl ElicitationField {
    fn parse(
        message: &str,
        (name, property): (&String, &Value),
        required: &[&str],
    ) -> ElicitationField {
        let required = required.contains(&name.as_str());
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let title = text("title").unwrap_or(name);
        let (kind, mut label_values) = parse_choices(property);
        if let Some(default) = property.get("default") {
            // The default comes first.
            match label_values.iter().position(|(_, value)| value == default) {
                Some(index) => label_values.swap(0, index),
                None if kind == ElicitationFieldKind::Text
                    || kind == ElicitationFieldKind::Number =>
                {
                    let label = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                    label_values.push((clean_server_text(&label), default.clone()));
                }
                None => {}
            }
        }
        let mut question = clean_server_text(message);
        question.push_str(&format!("\n{}", clean_server_text(title)));
        if let Some(description) = text("description") {
            question.push_str(&format!(": {}", clean_server_text(description)));
        }
        if !required {
            question.push_str(" (optional)");
        }
        let option = |(label, _): &(String, Value)| QuestionOption {
            label: label.clone(),
            description: String::new(),
        };
        let user_question = UserQuestion {
            header: clean_server_text(title).chars().take(30).collect(),
            question: question.chars().take(MAX_QUESTION_CHARS).collect(),
            options: label_values.iter().map(option).collect(),
            allow_multiple: kind == ElicitationFieldKind::Choices,
            allow_custom: matches!(kind, ElicitationFieldKind::Text | ElicitationFieldKind::Number),
            asker: None,
            is_permission: false,
        };
        ElicitationField {
            name: name.clone(),
            kind,
            required,
            question: user_question,
            label_values,
        }
    }

    /// Returns true if the user would have to type a key, a password or the like.
    fn asks_for_secret(&self) -> bool {
        let text = format!("{} {}", self.name, self.question.question).to_lowercase();
        let letters: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
        self.question.allow_custom && SECRET_WORDS.iter().any(|word| letters.contains(word))
    }

    fn parse_value(&self, answers: &[&str]) -> Option<Value> {
        let value_of = |answer: &&str| {
            let option = self.label_values.iter().find(|(label, _)| label == answer);
            option.map(|(_, value)| value.clone())
        };
        let first = answers.first();
        match self.kind {
            ElicitationFieldKind::Choice => value_of(first?),
            ElicitationFieldKind::Choices if answers.is_empty() => None,
            ElicitationFieldKind::Choices => {
                answers.iter().map(value_of).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            ElicitationFieldKind::Text => {
                let first = first?;
                Some(value_of(first).unwrap_or_else(|| Value::String((*first).to_owned())))
            }
            ElicitationFieldKind::Number => {
                let first = first?;
                value_of(first).or_else(|| first.parse::<Number>().ok().map(Value::Number))
            }
        }
    }
}

/// Reads the options of a field (`enum`, `oneOf`, `anyOf`): their labels and values.
fn parse_choices(property: &Value) -> (ElicitationFieldKind, Vec<(String, Value)>) {
    let options_in = |schema: &Value| {
        let enum_options = schema.get("enum").and_then(Value::as_array);
        let names = schema.get("enumNames").and_then(Value::as_array);
        let enum_options =
            enum_options.into_iter().flatten().enumerate().filter_map(move |(index, value)| {
                let name = names.and_then(|names| names.get(index)?.as_str());
                Some((clean_server_text(name.or(value.as_str())?), value.clone()))
            });
        let titled_options =
            ["oneOf", "anyOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
        let titled_options = titled_options.flatten().filter_map(|option| {
            let value = option.get("const")?;
            let label = option.get("title").and_then(Value::as_str).or(value.as_str())?;
            Some((clean_server_text(label), value.clone()))
        });
        enum_options.chain(titled_options).take(MAX_FIELD_OPTIONS).collect::<Vec<_>>()
    };
    let choices = options_in(property);
    if !choices.is_empty() {
        return (ElicitationFieldKind::Choice, choices);
    }
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => {
            let options = vec![("Yes".to_owned(), true.into()), ("No".to_owned(), false.into())];
            (ElicitationFieldKind::Choice, options)
        }
        Some("integer" | "number") => (ElicitationFieldKind::Number, Vec::new()),
        Some("array") => (
            ElicitationFieldKind::Choices,
            property.get("items").map(options_in).unwrap_or_default(),
        ),
        Some(_) | None => (ElicitationFieldKind::Text, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(schema: &Value, replies: &[&[&str]]) -> Option<Value> {
        let to_strings = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let replies: Vec<Vec<String>> = replies.iter().map(to_strings).collect();
        ElicitationForm::parse("Who?", schema).unwrap().to_content(schema, &replies)
    }

    #[test]
    fn replies_are_converted_to_the_types_of_the_form() {
        let schema = json!({"type": "object", "required": ["name", "age"], "properties": {
            "name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean", "default": false},
            "unit": {"type": "string", "oneOf": [{"const": "c", "title": "Celsius"}, {"const": "f", "title": "F"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        }});
        let all = content(&schema, &[&["Ann"], &["7"], &["Yes"], &["Celsius"], &["b", "a"]]);
        let expected =
            json!({"name": "Ann", "age": 7, "sure": true, "unit": "c", "tags": ["b", "a"]});
        assert_eq!(all, Some(expected));
        assert_eq!(content(&schema, &[&["Ann"], &["7"]]), Some(json!({"name": "Ann", "age": 7})));
        let wrong: [&[&[&str]]; 4] =
            [&[&["Ann"], &["seven"]], &[&["Ann"], &["-1"]], &[&["A"], &["7"]], &[&[], &["7"]]];
        for wrong in wrong {
            assert_eq!(content(&schema, wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_form_that_asks_for_a_secret_is_recognized() {
        let asks_for_secret = |message: &str, property: Value| {
            let schema = json!({"properties": {"value": property}});
            ElicitationForm::parse(message, &schema).unwrap().fields[0].asks_for_secret()
        };
        let text = || json!({"type": "string"});
        for message in [
            "Windlass: your session has expired. Enter your OpenAI API key",
            "Your pass-word, please",
            "Paste the GitHub TOKEN",
            "What are the words of your seed phrase?",
        ] {
            assert!(asks_for_secret(message, text()), "{message}");
        }
        assert!(asks_for_secret("Who?", json!({"type": "string", "title": "Api_Key"})));
        assert!(asks_for_secret("Who?", json!({"type": "string", "description": "password"})));
        assert!(!asks_for_secret("Who are you?", text()));
        assert!(!asks_for_secret("Rotate the API key?", json!({"type": "boolean"})));
    }

    #[test]
    fn a_form_with_too_many_or_no_fields_is_rejected() {
        let many: Map<String, Value> =
            (0..9).map(|at| (at.to_string(), json!({"type": "string"}))).collect();
        assert!(ElicitationForm::parse("", &json!({"properties": many})).is_none());
        assert!(ElicitationForm::parse("", &json!({"properties": {}})).is_none());
        assert!(ElicitationForm::parse("", &json!({"properties": 7})).is_none());
    }
}
