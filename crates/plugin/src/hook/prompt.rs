//! Runs a hook that is a prompt: a model judges the payload.

use serde_json::Value;
use windlass_toolkit::{HookContext, HookError, HookPayload, HookReply, Judgement};

/// Limits the payload in the prompt. A model must not judge a part of what it lets pass.
const MAX_PAYLOAD_BYTES: usize = 32 << 10;

/// Replaced by the payload in a prompt.
const PAYLOAD_PLACEHOLDER: &str = "$ARGUMENTS";

/// Asks the model of the session. An answer that is not a judgement is a failure.
pub(super) async fn judge_payload(
    prompt: &str,
    context: &HookContext<'_>,
    payload: &Value,
    hook_payload: HookPayload,
) -> Result<HookReply, HookError> {
    let Some(judge) = context.judge else {
        return Err(HookError::failed("no model can be asked here"));
    };
    let mut json = payload.to_string();
    if json.len() > MAX_PAYLOAD_BYTES && hook_payload.point().can_change_outcome() {
        let limit = MAX_PAYLOAD_BYTES >> 10;
        let reason = format!("the model cannot judge more than {limit} KiB at once");
        return Err(HookError::failed(reason));
    }
    json.truncate(json.floor_char_boundary(MAX_PAYLOAD_BYTES));
    let text = match prompt.contains(PAYLOAD_PLACEHOLDER) {
        true => prompt.replace(PAYLOAD_PLACEHOLDER, &json),
        false => format!("{prompt}\n\n{json}"),
    };
    let answer = judge.judge(&text).await.map_err(HookError::failed)?;
    match Judgement::parse(&answer) {
        Some(Judgement { ok: true, .. }) => Ok(HookReply::Continue(hook_payload)),
        Some(Judgement { reason, .. }) if reason.is_empty() => {
            Err(HookError::denied("no reason given"))
        }
        Some(Judgement { reason, .. }) => Err(HookError::denied(reason)),
        None => Err(HookError::failed("the model did not answer with a judgement")),
    }
}
