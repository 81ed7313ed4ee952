//! Patterns for the SQL operator `LIKE`.

use crate::StorageError;

/// Returns the `LIKE` pattern that finds a word in the JSON of a fact. Its escape character is a
/// backslash.
pub(crate) fn like_pattern(word: &str) -> Result<String, StorageError> {
    let json = serde_json::to_string(word)?;
    let inner = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
    let mut pattern = String::from("%");
    for character in inner.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    Ok(pattern)
}
