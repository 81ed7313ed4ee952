//! The copy picker (`/copy`): copies an answer, a prompt or a code block to the clipboard.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::transcript::CopyableMessage;
use crate::ui_context::{UiContext, UiEffect};
use pulldown_cmark::{CodeBlockKind, Event as MarkdownEvent, Parser, Tag, TagEnd};
use windlass_protocol::display_text::{pluralize, to_one_line};

/// A text that can be copied: a message or one of its code blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyableText {
    /// The kind of text: `answer`, `prompt`, or `code` and its language.
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Returns the messages, newest first, each followed by its code blocks.
pub(crate) fn copyable_texts(messages: Vec<CopyableMessage>) -> Vec<CopyableText> {
    let mut texts = Vec::new();
    for message in messages {
        let blocks = code_blocks(&message.text);
        let kind = if message.is_answer { "answer" } else { "prompt" };
        texts.push(CopyableText { kind: kind.to_owned(), text: message.text });
        texts.extend(blocks);
    }
    texts
}

/// Returns the code blocks of a Markdown text.
fn code_blocks(markdown: &str) -> Vec<CopyableText> {
    let mut blocks = Vec::new();
    let mut open_block: Option<CopyableText> = None;
    for event in Parser::new(markdown) {
        match event {
            MarkdownEvent::Start(Tag::CodeBlock(kind)) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split_whitespace().next(),
                    CodeBlockKind::Indented => None,
                };
                let kind = language.map_or("code".to_owned(), |name| format!("code {name}"));
                open_block = Some(CopyableText { kind, text: String::new() });
            }
            MarkdownEvent::Text(text) => {
                if let Some(block) = &mut open_block {
                    block.text.push_str(&text);
                }
            }
            MarkdownEvent::End(TagEnd::CodeBlock) => blocks.extend(open_block.take()),
            _ => {}
        }
    }
    blocks.retain(|block| !block.text.trim().is_empty());
    blocks
}

/// `ListController` of the copy picker.
#[derive(Debug)]
pub struct CopyPicker;

impl CopyPicker {
    /// Opens the picker with the texts of the session, the last answer first.
    pub(crate) fn open(texts: Vec<CopyableText>) -> ListPanel<CopyPicker> {
        let item = |text: CopyableText| {
            let lines = text.text.lines().count();
            let first = text.text.lines().find(|line| !line.trim().is_empty());
            let indent = if text.kind.starts_with("code") { "  " } else { "" };
            let item = ListItem {
                prefix: indent.to_owned(),
                ..ListItem::new(to_one_line(first.unwrap_or_default()))
                    .with_column(text.kind)
                    .with_column(pluralize(lines, "line"))
            };
            (item, text.text)
        };
        let items = texts.into_iter().map(item).collect();
        ListPanel::new(FilterList::with_items(items, "Nothing to copy yet"), CopyPicker)
    }
}

impl ListController for CopyPicker {
    type RowValue = String;

    fn title(&self) -> &'static str {
        "Copy to the clipboard"
    }

    fn key_hints(&self, _: &FilterList<String>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::ChooseRow, "copy"), (UiCommand::Escape, "close")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<String>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        let (ListKeyOutcome::RowChosen, Some((item, text))) = (action, list.selected()) else {
            return ListControllerDecision::Stay;
        };
        cx.push_effect(UiEffect::CopyToClipboard(text.clone()));
        let kind = item.columns.first().cloned().unwrap_or_default();
        let lines = item.columns.last().cloned().unwrap_or_default();
        let hint = format!("Copied to the clipboard: {kind}, {lines}");
        ListControllerDecision::Close(PanelResult::ShowHint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_follow_their_message() {
        let answer = "Run this:\n\n```sh\ncargo test\n```\n\n- and\n\n  ~~~\n  a ``` b\n  ~~~\n";
        let messages = vec![
            CopyableMessage { is_answer: true, text: answer.to_owned() },
            CopyableMessage { is_answer: false, text: "How?".to_owned() },
        ];
        let texts = copyable_texts(messages);
        let kinds: Vec<&str> = texts.iter().map(|text| text.kind.as_str()).collect();
        assert_eq!(kinds, ["answer", "code sh", "code", "prompt"]);
        assert_eq!(texts.get(1).map(|text| text.text.as_str()), Some("cargo test\n"));
        assert_eq!(texts.get(2).map(|text| text.text.as_str()), Some("a ``` b\n"));
    }
}
