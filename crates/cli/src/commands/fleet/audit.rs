//! Implements `windlass fleet audit`: who answered what.

use crate::now_millis;
use crate::terminal::output;
use serde_json::json;
use windlass_protocol::display_text::{format_age, to_one_line, truncate_chars};
use windlass_protocol::{ApprovalScope, Fact, PermissionAnswer, UnixMillis};
use windlass_storage::postgres::{PostgresDatabase, UserAnswer};

/// Maximum length of a question or an answer in the list.
const MAX_TEXT_CHARS: usize = 200;

/// Prints the answers of users, the latest first.
pub(super) async fn print_answers(
    database: &PostgresDatabase,
    (tenant, days): (Option<&str>, u32),
    (limit, is_json): (u32, bool),
) -> anyhow::Result<()> {
    let now = now_millis();
    let since = UnixMillis(now.0.saturating_sub(u64::from(days) * UnixMillis::PER_DAY));
    let answers = database.user_answers(since, tenant, limit).await?;
    if is_json {
        let row = |answer: &UserAnswer| {
            json!({
                "tenant": answer.tenant, "session": answer.session, "title": answer.title,
                "at": answer.at, "client": answer.origin.as_ref().map(|origin| &origin.client),
                "question": answer.question, "answer": answer.answer,
            })
        };
        let rows: Vec<serde_json::Value> = answers.iter().map(row).collect();
        output::print_json(&serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    if answers.is_empty() {
        output::print_note("no user has answered a question in this time");
    }
    for answer in &answers {
        let user = answer.origin.as_ref().map_or("an earlier answer", |origin| &origin.client.name);
        output::print_line(&format!(
            "{:>4}  {}/{user}  {}  {}: {}",
            format_age(answer.at, now),
            answer.tenant,
            answer.session,
            describe_answer(answer.answer.as_ref()),
            describe_question(answer.question.as_ref()),
        ));
    }
    Ok(())
}

fn describe_answer(answer: Option<&Fact>) -> String {
    let text = match answer {
        Some(Fact::PermissionAnswered { answer, .. }) => match answer {
            PermissionAnswer::Once => "allowed once".to_owned(),
            PermissionAnswer::Session
            | PermissionAnswer::Kind { scope: ApprovalScope::Session } => {
                "allowed for the session".to_owned()
            }
            PermissionAnswer::Project
            | PermissionAnswer::Kind { scope: ApprovalScope::Project } => {
                "allowed for the project".to_owned()
            }
            PermissionAnswer::No { reason: None } => "denied".to_owned(),
            PermissionAnswer::No { reason: Some(reason) } => format!("denied ({reason})"),
            PermissionAnswer::Unavailable { .. } => "denied, no user was there".to_owned(),
        },
        Some(Fact::QuestionAnswered { answers, .. }) => {
            let answers: Vec<String> = answers.iter().map(|answers| answers.join(", ")).collect();
            format!("answered `{}`", answers.join("; "))
        }
        _ => "an answer that this version cannot read".to_owned(),
    };
    truncate_chars(&to_one_line(&text), MAX_TEXT_CHARS)
}

fn describe_question(question: Option<&Fact>) -> String {
    let text = match question {
        Some(Fact::PermissionAsked { accesses, .. }) => {
            let accesses: Vec<String> = accesses.iter().map(|access| access.describe()).collect();
            accesses.join("; ")
        }
        Some(Fact::QuestionAsked { questions, .. }) => {
            let questions: Vec<&str> =
                questions.iter().map(|question| question.question.as_str()).collect();
            questions.join(" ")
        }
        _ => "a question that this version cannot read".to_owned(),
    };
    truncate_chars(&to_one_line(&text), MAX_TEXT_CHARS)
}
