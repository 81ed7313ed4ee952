//! Mentions in a prompt: `@PATH` and `@NAME` of an agent.

/// Characters that may stand before the `@` of a mention, besides whitespace.
const OPENING_CHARS: &str = "([{\"'`,";

/// Characters that end a sentence or close a bracket after a mention.
const CLOSING_CHARS: [char; 11] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '`'];

/// Returns the mentions of a prompt in order, each once, without the `@`: words, or text in double
/// quotes. An e-mail address is not a mention.
pub fn mentions(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (_, mention) in mention_offsets(text) {
        if !found.contains(&mention) {
            found.push(mention);
        }
    }
    found
}

/// Returns every mention of a prompt with the byte offset of its `@`.
pub fn mention_offsets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut previous = None;
    for (offset, character) in text.char_indices() {
        let starts_word = previous.is_none_or(|previous: char| {
            previous.is_whitespace() || OPENING_CHARS.contains(previous)
        });
        previous = Some(character);
        if character != '@' || !starts_word {
            continue;
        }
        let rest = text.get(offset + 1..).unwrap_or_default();
        let mention = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((quoted, _)) => quoted,
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        if !mention.is_empty() {
            found.push((offset, mention));
        }
    }
    found
}

/// Returns a mention without the punctuation of the sentence around it.
pub fn trim_mention(mention: &str) -> &str {
    mention.trim_end_matches(CLOSING_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_words_or_quoted_text_after_an_at_sign() {
        let text = "@README.md compare (@src/a.rs) with @\"my notes.txt\", not me@example.org; \
                    @README.md @ again\n@explore";
        assert_eq!(mentions(text), ["README.md", "src/a.rs)", "my notes.txt", "explore"]);
        assert_eq!(trim_mention("src/a.rs)."), "src/a.rs");
        assert_eq!(mentions("no mention"), Vec::<&str>::new());
        assert_eq!(mention_offsets("@a b@c @a"), [(0, "a"), (7, "a")]);
    }
}
