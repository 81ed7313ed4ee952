//! The programming language of a code block on a web page.

use super::tree::HtmlNode;

/// Languages that a class may name without a prefix.
const CODE_LANGUAGES: [&str; 22] = [
    "rust",
    "python",
    "javascript",
    "typescript",
    "js",
    "ts",
    "java",
    "kotlin",
    "go",
    "ruby",
    "php",
    "swift",
    "bash",
    "sh",
    "json",
    "toml",
    "yaml",
    "html",
    "css",
    "sql",
    "c",
    "cpp",
];
/// Prefixes of a class that names a language, as in `language-rust`.
const LANGUAGE_CLASS_PREFIXES: [&str; 4] =
    ["language-", "lang-", "highlight-source-", "highlight-"];
/// Values that name no language.
const NON_LANGUAGE_NAMES: [&str; 8] =
    ["auto", "none", "default", "plain", "plaintext", "text", "txt", "notranslate"];

/// Returns the programming language that an element names in `class` or `data-lang`.
pub(super) fn code_language<'n>(node: &HtmlNode<'n>) -> Option<&'n str> {
    let is_language = |name: &&str| {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c));
        !name.is_empty() && name.len() <= 20 && is_plain && !NON_LANGUAGE_NAMES.contains(name)
    };
    if let Some(name) = node.attribute("data-lang").filter(is_language) {
        return Some(name);
    }
    let classes = node.attribute("class").unwrap_or_default();
    let prefixed = classes.split_ascii_whitespace().find_map(|class| {
        let prefix = LANGUAGE_CLASS_PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix));
        prefix.filter(is_language)
    });
    let bare_name = || {
        let mut classes = classes.split_ascii_whitespace();
        classes.find(|class| CODE_LANGUAGES.contains(class)).filter(|_| node.name() != "a")
    };
    prefixed.or_else(bare_name)
}
