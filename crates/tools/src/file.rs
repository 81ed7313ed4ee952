//! A file as it stands, compared with what the caller has seen of it, and changed.
//!
//! What nobody has read is not overwritten, and neither is what somebody else has changed since:
//! the digest of the content decides, so that touching a file is not a change. What is written has
//! been groomed by the project's formatter, and language servers hear of it.

use crate::Senses;
use crate::format::{Draft, groom};
use crate::text::Text;
use serde_json::json;
use similar::TextDiff;
use std::sync::Arc;
use std::time::Duration;
use windlass_lsp::{Code, Review};
use windlass_protocol::{Author, BlobRef, Display, Output};
use windlass_sandbox::{Content, Rewrite};
use windlass_toolkit::{Cx, Failure};

/// The longest diff that counts as having shown a file.
const LONGEST_DIFF: usize = 16 * 1024;

/// How long two contents are compared for a diff, and how large they may be.
const PATIENCE: Duration = Duration::from_millis(500);
const LARGEST_DIFFED: usize = 2 << 20;

/// Where front ends find how many errors a change brought.
const DIAGNOSTICS: &str = "diagnostics";

/// A file that may be changed.
pub(crate) struct Standing {
    /// The resolved path.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) content: Option<Content>,
}

/// What a file is to become.
pub(crate) struct Proposal {
    pub(crate) path: String,
    pub(crate) before: Option<Arc<[u8]>>,
    pub(crate) after: Arc<[u8]>,
    /// What a person is shown.
    pub(crate) diff: String,
    /// Whatever should be said about it.
    pub(crate) notes: Vec<String>,
}

impl Standing {
    /// Looks at a file.
    pub(crate) async fn of(cx: &Cx<'_>, path: &str) -> Result<Standing, Failure> {
        let path = path.to_owned();
        cx.blocking(move |world| {
            let content = world.load(&path)?;
            Ok(Standing { path: world.locate(&path)?, content })
        })
        .await
    }

    /// Looks at a file that is to be changed: the caller must know what it holds.
    pub(crate) async fn known(cx: &Cx<'_>, path: &str) -> Result<Standing, Failure> {
        let standing = Standing::of(cx, path).await?;
        standing.check(cx).await?;
        Ok(standing)
    }

    /// Refuses if a model has not seen what the file holds. If the difference can be shown, it
    /// counts as seen from then on. A person knows what they are doing.
    pub(crate) async fn check(&self, cx: &Cx<'_>) -> Result<(), Failure> {
        let Some(content) = self.content.as_ref().filter(|_| cx.by == Author::Model) else {
            return Ok(());
        };
        let path = &self.path;
        let Some(seen) = cx.caller.seen(path) else {
            let text = format!("{path} has not been read in this session. Read it first");
            return Err(Failure::new(text));
        };
        let (name, bytes) = (path.clone(), Arc::clone(&content.bytes));
        let compared = cx.blocking(move |_| {
            if seen.digest == BlobRef::of(&bytes) {
                return Ok(None);
            }
            let shown = match seen.bytes.map(|before| diff(&name, &before, &bytes)) {
                Some(Difference::Whole(shown)) if shown.len() <= LONGEST_DIFF => Some(shown),
                Some(Difference::Whole(_) | Difference::Unshown(_)) | None => None,
            };
            Ok(Some(shown))
        });
        Err(Failure::new(match compared.await? {
            None => return Ok(()),
            Some(Some(shown)) => {
                cx.caller.show(path, &content.bytes);
                format!(
                    "{path} was changed by somebody else since you last saw it; nothing was \
                     written. Take this into account and try again:\n{shown}"
                )
            }
            Some(None) => format!(
                "{path} was changed by somebody else since you last saw it; nothing was written. \
                 Read it again"
            ),
        }))
    }
}

impl Proposal {
    /// A change of a file that was looked at; `None` if it would change nothing.
    pub(crate) fn new(path: String, before: Option<Arc<[u8]>>, after: Vec<u8>) -> Option<Proposal> {
        if before.as_deref() == Some(after.as_slice()) {
            return None;
        }
        let diff = diff(&path, before.as_deref().unwrap_or_default(), &after).text();
        Some(Proposal { path, before, after: after.into(), diff, notes: Vec::new() })
    }

    /// The same as the project's formatter would have it. A preview shows this, too: what is
    /// written is what was shown.
    pub(crate) async fn groomed(
        mut self,
        senses: &Senses,
        cx: &Cx<'_>,
    ) -> Result<Proposal, Failure> {
        let (path, origin, after) = (self.path.clone(), self.before.clone(), self.after.clone());
        let groomed = groom(senses, cx, vec![Draft { path, origin, after }]).await?;
        for groomed in groomed {
            if let Some(after) = groomed.after {
                if self.before.as_ref() == Some(&after) {
                    return Err(Failure::new(taken_back(&self.path)));
                }
                let (path, before) = (self.path.clone(), self.before.clone().unwrap_or_default());
                self.after = Arc::clone(&after);
                let shown = cx.blocking(move |_| Ok(diff(&path, &before, &after).text()));
                self.diff = shown.await?;
            }
            self.notes.extend(groomed.note);
        }
        Ok(self)
    }

    /// Makes it so, unless somebody else has changed the file in the meantime.
    pub(crate) async fn carry_out(
        self,
        senses: &Senses,
        cx: &Cx<'_>,
        done: String,
    ) -> Result<Output, Failure> {
        let Proposal { path, before, after, diff, notes } = self;
        let rewrite = Rewrite { path: path.clone(), before, after: Some(after), mode: None };
        let review = carry_out(senses, cx, vec![rewrite]).await?;
        let text = std::iter::once(done).chain(notes).collect::<Vec<_>>().join("\n");
        let display = Display::Diff { unified: diff };
        Ok(reviewed(Output { title: path, text, display, ..Output::default() }, review))
    }
}

/// What is said where the formatter makes nothing of a change.
pub(crate) fn taken_back(path: &str) -> String {
    format!(
        "{path} would be the same as before once it is formatted; nothing changed. Leave its layout \
         to the formatter"
    )
}

/// An output with what language servers make of the change.
pub(crate) fn reviewed(mut output: Output, review: Option<Review>) -> Output {
    if let Some(Review { text, new, left, .. }) = review {
        output.metadata.insert(DIAGNOSTICS.to_owned(), json!({"new": new, "left": left}));
        if !text.is_empty() {
            output.text.push('\n');
            output.text.push_str(&text);
        }
    }
    output
}

/// Changes files, all or none.
pub(crate) async fn change(cx: &Cx<'_>, rewrites: Vec<Rewrite>) -> Result<Vec<Rewrite>, Failure> {
    if cx.cancel.is_cancelled() {
        return Err(Failure::new("interrupted before anything was written"));
    }
    cx.blocking(move |world| {
        world.change(&rewrites)?;
        Ok(rewrites)
    })
    .await
}

/// The same, for what the caller wrote: it knows from then on what the files hold, and a model hears
/// what language servers make of them.
pub(crate) async fn carry_out(
    senses: &Senses,
    cx: &Cx<'_>,
    rewrites: Vec<Rewrite>,
) -> Result<Option<Review>, Failure> {
    let code = senses.code.as_ref();
    let before = code.map(|code| {
        let paths: Vec<String> = rewrites.iter().map(|rewrite| rewrite.path.clone()).collect();
        code.before(&cx.world, &paths)
    });
    let rewrites = change(cx, rewrites).await?;
    for Rewrite { path, after, .. } in &rewrites {
        if let Some(after) = after {
            cx.caller.show(path, after);
        }
    }
    if let Some(formats) = &senses.formats {
        formats.heard();
    }
    let Some((code, before)) = code.zip(before) else { return Ok(None) };
    // What was written is written: nothing that goes wrong from here on is a failure of the call.
    let Ok(now) = texts(cx, rewrites).await else { return Ok(None) };
    Ok(match cx.by {
        Author::Model => tokio::select! {
            // Servers hear of it, even if nobody waits for what they say.
            biased;
            review = code.after(&cx.world, cx.session, before, now, &cx.cancel) => review,
            () = cx.cancel.cancelled() => None,
        },
        Author::Person => {
            code.changed(&cx.world, now);
            None
        }
    })
}

/// Changes files as somebody else had them, and tells language servers without asking what they make
/// of it.
pub(crate) async fn put_back(
    code: Option<&Code>,
    cx: &Cx<'_>,
    rewrites: Vec<Rewrite>,
) -> Result<(), Failure> {
    let rewrites = change(cx, rewrites).await?;
    let Some(code) = code else { return Ok(()) };
    if let Ok(now) = texts(cx, rewrites).await {
        code.changed(&cx.world, now);
    }
    Ok(())
}

/// What files hold now, as text; nothing where they are gone. What is no text is left out.
async fn texts(
    cx: &Cx<'_>,
    rewrites: Vec<Rewrite>,
) -> Result<Vec<(String, Option<Arc<str>>)>, Failure> {
    cx.blocking(move |_| {
        let text = |Rewrite { path, after, .. }: Rewrite| match after {
            None => Some((path, None)),
            Some(bytes) => Some((path, Some(text_of(&bytes)?))),
        };
        Ok(rewrites.into_iter().filter_map(text).collect())
    })
    .await
}

/// A text as others are told it. One in UTF-8 keeps its line ends, but not its byte-order mark.
fn text_of(bytes: &[u8]) -> Option<Arc<str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            Some(text.strip_prefix('\u{feff}').unwrap_or(text).into())
        }
        Ok(_) | Err(_) => Some(Text::decode(bytes.to_vec()).ok()?.view().into()),
    }
}

/// The difference between two contents.
pub(crate) enum Difference {
    /// In unified form.
    Whole(String),
    /// A sentence in its place.
    Unshown(String),
}

impl Difference {
    /// What is shown of it.
    pub(crate) fn text(self) -> String {
        match self {
            Difference::Whole(text) | Difference::Unshown(text) => text,
        }
    }
}

/// Compares two contents. It may take a while.
pub(crate) fn diff(path: &str, before: &[u8], after: &[u8]) -> Difference {
    let (from, to) = (before.len(), after.len());
    let unshown =
        |why| Difference::Unshown(format!("{path}: {from} bytes become {to} bytes; {why}\n"));
    if from.max(to) > LARGEST_DIFFED {
        return unshown("too many to show");
    }
    let texts = [before, after].map(|bytes| Text::decode(bytes.to_vec()));
    let [Ok(before), Ok(after)] = texts else { return unshown("they are no text") };
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    let diff = config.diff_lines(before.view(), after.view());
    let (old, new) = (format!("a/{path}"), format!("b/{path}"));
    Difference::Whole(diff.unified_diff().header(&old, &new).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_to_compare_is_not_shown() {
        let large = vec![b'x'; LARGEST_DIFFED + 1];
        assert!(matches!(diff("a", &large, b"y"), Difference::Unshown(_)));
        assert!(matches!(diff("a", b"x\n", b"y\n"), Difference::Whole(_)));
    }

    #[test]
    fn others_are_told_texts_in_whatever_encoding_and_nothing_else() {
        assert_eq!(text_of("\u{feff}a\r\nä".as_bytes()).as_deref(), Some("a\r\nä"));
        assert_eq!(text_of(b"\xff\xfea\0\n\0").as_deref(), Some("a\n"));
        assert_eq!(text_of(b"").as_deref(), Some(""));
        assert_eq!(text_of(&[0, 159, 146, 150, 0, 1, 2, 255]), None);
    }

    #[test]
    fn a_review_is_told_last_and_counted() {
        let output = || Output { text: "Edited a.".into(), ..Output::default() };
        assert_eq!(reviewed(output(), None), output());
        let review = Review { text: "This brings 1 new error.".into(), new: 1, left: 2 };
        let told = reviewed(output(), Some(review));
        assert_eq!(told.text, "Edited a.\nThis brings 1 new error.");
        assert_eq!(told.metadata.get("diagnostics"), Some(&json!({"new": 1, "left": 2})));
    }
}
