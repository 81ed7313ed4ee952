//! Titles: what a session is called, asked of its model once, when its first turn has ended well.
//!
//! The request stands outside of the conversation: it has its own few words, no tools, no place in the
//! provider's cache, and one try. Nobody waits for it, and what cannot be used is forgotten.

use super::{Driver, stamp};
use crate::care::one_line;
use crate::host::Asked;
use crate::session::Input;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_llm::{ModelEvent, Request};
use windlass_protocol::text::{beginning, hides};
use windlass_protocol::{
    Effort, Fault, Finish, Message, Messages, Options, Part, Role, Transcript, Usage,
};

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of the prompt and of the answer it is found from, in bytes.
const LONGEST_PART: usize = 2_000;

/// A longer one is none, in characters.
const LONGEST: usize = 50;

/// What the model may write, in tokens: a model that cannot but think needs some for that.
const OUTPUT: u64 = 100;
const OUTPUT_THINKING: u64 = 2_000;

/// What it says is not listened to for longer, in bytes.
const LONGEST_SAID: usize = 4_000;

impl Driver {
    /// Asks for a title, if this session is to have one. It is told like anything else that happens.
    pub(super) fn find_title(&mut self) {
        let transcript = self.session.transcript();
        let child = !self.family.ancestors.is_empty() || transcript.parent.is_some();
        if !self.settings.titles || child || self.session.is_named() {
            return;
        }
        let (Some(asked), Some(messages)) = (self.settings.model.clone(), exchange(transcript))
        else {
            return;
        };
        let (inputs, purse) = (self.inputs.clone(), Arc::clone(&self.family.purse));
        let (name, terms) = (Arc::clone(&self.settings.model_name), self.settings.terms());
        self.tasks.spawn(async move {
            let Ok(entry) = purse.enter(|| stamp().at).await else { return };
            let asking = tokio::time::timeout(PATIENCE, ask(asked, name, messages)).await;
            let (said, usage) = match asking {
                Ok(Ok(answer)) => answer,
                Ok(Err(fault)) => return tracing::debug!(%fault, "no title was found"),
                Err(_) => return tracing::debug!("no title was found in time"),
            };
            purse.spend(&usage, terms.cost(&usage));
            drop(entry);
            match title(&said) {
                Some(title) => drop(inputs.send(Input::Titled { title, usage }).await),
                None => tracing::debug!(?usage, "what was found is no title"),
            }
        });
    }
}

/// What a title is found from: how the first prompt and the answer to it begin.
fn exchange(transcript: &Transcript) -> Option<Messages> {
    let said = |message: &Arc<Message>| {
        let text = |part: &Part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
        };
        message.parts.iter().filter_map(text).collect::<String>()
    };
    let (messages, by) = (&transcript.messages, |role| move |it: &&Arc<Message>| it.role == role);
    let prompt = messages.iter().find(by(Role::User)).map(said)?;
    let answer = messages.iter().rfind(by(Role::Assistant)).map(said).unwrap_or_default();
    let text =
        format!("<asked>\n{}\n</asked>\n<answered>\n{}\n</answered>", part(&prompt), part(&answer));
    let parts = vec![Part::text(text)];
    Some([Arc::new(Message { role: Role::User, seq: 0, model: None, parts })].into_iter().collect())
}

fn part(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST_PART)).unwrap_or_default()
}

async fn ask(asked: Asked, name: Arc<str>, messages: Messages) -> Result<(String, Usage), Fault> {
    let Asked { client, model, options } = asked;
    let thinks = model.reasons && !model.efforts.contains(&Effort::None);
    let options = Options {
        max_output: Some(if thinks { OUTPUT_THINKING } else { OUTPUT }),
        effort: Some(Effort::None),
        tool_choice: None,
        parallel_calls: None,
        answer: None,
        ..(*options).clone()
    };
    let request = Request {
        model,
        name,
        system: include_str!("../prompt/title.md").into(),
        messages,
        files: Default::default(),
        tools: Vec::new(),
        options: Arc::new(options),
        cache_key: None,
        draft: Arc::default(),
    };
    let (sink, mut events) = mpsc::channel(16);
    let listen = async move {
        let mut said = String::new();
        while let Some(event) = events.recv().await {
            match event {
                ModelEvent::Text(text) if said.len() <= LONGEST_SAID => said.push_str(&text),
                ModelEvent::Ended { finish: Finish::Stop, usage } => return Ok((said, usage)),
                // What was cut off is no title, but was paid for.
                ModelEvent::Ended { usage, .. } => return Ok((String::new(), usage)),
                ModelEvent::Failed(fault) => return Err(fault),
                ModelEvent::Text(_)
                | ModelEvent::Reasoning(_)
                | ModelEvent::Sealed(_)
                | ModelEvent::Call { .. } => {}
            }
        }
        Err(Fault::Internal { message: "the answer did not end".to_owned() })
    };
    let ((), answer) = tokio::join!(client.step(&request, &sink), listen);
    answer
}

/// What a model said, if it can stand in a list.
fn title(said: &str) -> Option<String> {
    // What begins a sequence for a terminal goes with all of it, later.
    let mute = |sign: char| sign.is_control() && !sign.is_whitespace() && sign != '\u{1b}';
    let plain: String = said.chars().filter(|sign| !hides(*sign) && !mute(*sign)).collect();
    let line = one_line(&plain);
    let title = line.trim_matches(['"', '\'', '`', '*', '#', '“', '”', ' ']);
    let fits = !title.is_empty() && beginning(title, LONGEST) == title;
    fits.then(|| title.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_stand_in_a_list_is_a_title() {
        for (said, expected) in [
            ("Mend the roof", Some("Mend the roof")),
            (" \"Mend the roof\"\n", Some("Mend the roof")),
            ("**Mend\nthe\troof**", Some("Mend the roof")),
            ("Mend \u{202e}foor\u{202c} \u{1b}[31mred\u{200b}", Some("Mend foor red")),
            ("", None),
            ("\u{200b} \n\u{7}", None),
            ("\"\"", None),
        ] {
            let found = title(said);
            assert_eq!(found.as_deref(), expected, "{said:?}");
        }
        assert_eq!(title(&"é".repeat(LONGEST)), Some("é".repeat(LONGEST)));
        assert_eq!(title(&"é".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn what_it_is_found_from_is_cut_between_characters() {
        assert_eq!(part("é"), "é");
        let long = "é".repeat(LONGEST_PART);
        assert_eq!(part(&long).len(), LONGEST_PART);
        assert_eq!(part(&format!("x{long}")).len(), LONGEST_PART - 1);
    }
}
