//! Chips: parts of the prompt that occupy one reserved character, and texts that contain them.

use super::cursor;
use windlass_protocol::Attachment;
use windlass_protocol::prompt_mentions::{mention_offsets, mentions, trim_mention};

/// A pasted text or an attachment that occupies one cluster of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PromptChip {
    /// Pasted text that is too long to show.
    PastedText(String),
    /// An image or a document.
    AttachedFile(Attachment),
    /// An `@` that is only text, because it was pasted or did not attach a file when it was sent.
    PlainAtSign,
}

impl PromptChip {
    /// Returns the label shown in the prompt.
    pub(super) fn label(&self) -> String {
        match self {
            PromptChip::PastedText(text) => match text.lines().count() {
                0 | 1 => format!("[pasted {} characters]", text.chars().count()),
                lines => format!("[pasted {lines} lines]"),
            },
            PromptChip::AttachedFile(file) => {
                let kind = if file.mime_type.starts_with("image/") { "image" } else { "file" };
                format!("[{kind}: {}]", file.name)
            }
            PromptChip::PlainAtSign => "@".to_owned(),
        }
    }

    /// Returns the text sent to the model.
    pub(super) fn expanded_text(&self) -> String {
        match self {
            PromptChip::PastedText(text) => text.clone(),
            PromptChip::AttachedFile(_) | PromptChip::PlainAtSign => self.label(),
        }
    }
}

/// A text with its chips, numbered in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TextWithChips {
    pub(super) text: String,
    pub(super) chips: Vec<PromptChip>,
}

impl TextWithChips {
    /// Restores a prompt that was sent. Its attachments go where the text has their labels, or else
    /// to the end. A mention that attached no file stays text: it may be from a pasted block.
    pub(super) fn from_sent(text: &str, files: &[Attachment]) -> TextWithChips {
        let mentions = mention_offsets(text);
        let mut content = TextWithChips { text: text.to_owned(), chips: Vec::new() };
        // From the end, so that the offsets before it stay valid.
        for (offset, mention) in mentions.iter().rev() {
            if !files.iter().any(|file| names_file(mention, file))
                && let Some(at_sign) = add_chip(&mut content.chips, PromptChip::PlainAtSign)
            {
                content.text.replace_range(*offset..offset + 1, &at_sign);
            }
        }
        for file in files {
            // The files that it mentions are read again when the prompt is sent.
            if mentions.iter().any(|(_, mention)| names_file(mention, file)) {
                continue;
            }
            let chip = PromptChip::AttachedFile(file.clone());
            let label = chip.label();
            let Some(placeholder) = add_chip(&mut content.chips, chip) else { break };
            match content.text.contains(&label) {
                true => content.text = content.text.replacen(&label, &placeholder, 1),
                false if content.text.ends_with(char::is_whitespace) => {
                    content.text.push_str(&placeholder);
                }
                false => content.text = format!("{} {placeholder}", content.text),
            }
        }
        content
    }

    /// Returns true if sending this text would attach exactly these files, as far as it is known:
    /// the files that it mentions are read again.
    pub(super) fn has_sent_files(&self, files: &[Attachment]) -> bool {
        let typed = typed_text(&self.text);
        let mentioned = mentions(&typed);
        let attached = attachments(&self.text, &self.chips);
        attached.iter().all(|file| files.contains(file))
            && files.iter().all(|file| {
                attached.contains(file) || mentioned.iter().any(|mention| names_file(mention, file))
            })
    }

    /// Returns pasted text without mentions: its author must not choose the files that are sent.
    pub(super) fn from_paste(text: &str) -> TextWithChips {
        TextWithChips::from_sent(text, &[])
    }
}

/// Returns true if a mention is of this file.
fn names_file(mention: &str, file: &Attachment) -> bool {
    mention == file.name || trim_mention(mention) == file.name
}

/// Returns the attachments in a text, without duplicates.
pub(super) fn attachments(text: &str, chips: &[PromptChip]) -> Vec<Attachment> {
    let mut files: Vec<Attachment> = Vec::new();
    for number in text.chars().filter_map(cursor::chip_number) {
        if let Some(PromptChip::AttachedFile(file)) = chips.get(number)
            && !files.contains(file)
        {
            files.push(file.clone());
        }
    }
    files
}

/// Returns a text with spaces in place of its chips, so that only typed mentions are left. Offsets
/// stay valid.
pub(super) fn typed_text(text: &str) -> String {
    let mut typed = String::with_capacity(text.len());
    for character in text.chars() {
        match cursor::chip_number(character) {
            Some(_) => typed.extend(std::iter::repeat_n(' ', character.len_utf8())),
            None => typed.push(character),
        }
    }
    typed
}

/// Adds a chip, or finds the same one; returns its placeholder, or `None` if there are too many.
pub(super) fn add_chip(chips: &mut Vec<PromptChip>, chip: PromptChip) -> Option<String> {
    let number = chips.iter().position(|existing| *existing == chip).unwrap_or(chips.len());
    let placeholder = cursor::chip_char(number)?;
    if number == chips.len() {
        chips.push(chip);
    }
    Some(placeholder.to_string())
}

/// Copies a text with its chips to other chips. A chip that finds no place is dropped.
pub(super) fn copy_chips(text: &str, chips: &[PromptChip], target: &mut Vec<PromptChip>) -> String {
    let mut copy = String::with_capacity(text.len());
    for character in text.chars() {
        match cursor::chip_number(character) {
            Some(number) => {
                let chip = chips.get(number).cloned();
                let placeholder = chip.and_then(|chip| add_chip(target, chip));
                copy.push_str(&placeholder.unwrap_or_default());
            }
            None => copy.push(character),
        }
    }
    copy
}
