//! What of a page is its text, and what is furniture.
//!
//! Documentation is read more than anything else, and whoever looks for one article in a page loses
//! its signatures and headings. So this goes the other way: everything stays that is not known to be
//! furniture by its element, its role or the words it is named by; and nothing that holds much of the
//! text is furniture, whatever it is called. Pure. Start reading at [`Sieve::new`].

use super::tree::{Kind, Node, Tree};
use std::ops::Range;

/// Elements that hold nothing to read.
const DROPPED: [&str; 24] = [
    "noscript",
    "template",
    "svg",
    "canvas",
    "object",
    "embed",
    "video",
    "audio",
    "map",
    "button",
    "select",
    "option",
    "datalist",
    "label",
    "legend",
    "dialog",
    "nav",
    "head",
    "link",
    "base",
    "clipboard-copy",
    "progress",
    "meter",
    "applet",
];
/// Roles of what stands around the text.
const ROLES: [&str; 9] = [
    "navigation",
    "banner",
    "contentinfo",
    "search",
    "dialog",
    "alertdialog",
    "complementary",
    "menu",
    "menubar",
];
/// Words by which furniture is named.
const WORDS: [&str; 57] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "ajax",
    "announcement",
    "banner",
    "boring",
    "breadcrumb",
    "breadcrumbs",
    "catlinks",
    "clipboard",
    "consent",
    "cookie",
    "cookies",
    "copybutton",
    "crumbs",
    "editsection",
    "gdpr",
    "gutter",
    "hideme",
    "jump",
    "lineno",
    "linenos",
    "linenumber",
    "linenumbers",
    "masthead",
    "menu",
    "metadata",
    "navbar",
    "navbox",
    "navigation",
    "newsletter",
    "noprint",
    "numbering",
    "onetrust",
    "pager",
    "pagination",
    "popup",
    "promo",
    "recommend",
    "recommended",
    "related",
    "share",
    "sharing",
    "sidebar",
    "signup",
    "skip",
    "social",
    "sponsor",
    "sponsored",
    "subscribe",
    "toc",
    "toolbar",
    "topbar",
    "pullquote",
    "rightside",
];
/// Whole names of furniture whose words mean other things, too.
const NAMES: [&str; 13] = [
    "TableOfContents",
    "table-of-contents",
    "table-header",
    "test-arrow",
    "post-menu",
    "siteSub",
    "p-lang-btn",
    "foot",
    "topic-category",
    "post-form",
    "more-topics__list",
    "lang",
    "sub-heading",
];
/// Elements that are part of a line or are code, and are named for other reasons.
const SPARED: [&str; 10] =
    ["a", "code", "pre", "em", "strong", "b", "i", "table", "tbody", "figure"];

/// Which nodes of a tree are read.
pub(super) struct Sieve<'t, 'a> {
    pub(super) tree: &'t Tree<'a>,
    dropped: Vec<bool>,
    /// The part that is the text of the page.
    pub(super) root: Range<usize>,
    /// True if there is something to read besides it.
    pub(super) partial: bool,
}

impl<'t, 'a> Sieve<'t, 'a> {
    pub(super) fn new(tree: &'t Tree<'a>) -> Sieve<'t, 'a> {
        let whole = 0..tree.nodes.len();
        let mut sieve =
            Sieve { tree, dropped: vec![false; whole.end], root: whole, partial: false };
        sieve.drop_furniture();
        sieve.choose();
        sieve
    }

    /// True if a node is left out.
    pub(super) fn drops(&self, at: usize) -> bool {
        self.dropped.get(at).copied().unwrap_or(true)
    }

    /// How much of a part is read.
    pub(super) fn weight(&self, part: Range<usize>) -> usize {
        let mut weight = 0;
        let mut at = part.start;
        while at < part.end {
            let own = self.tree.part(at);
            if !self.drops(at) {
                weight += self.tree.weight(at..at + 1);
                at += 1;
            } else {
                at = own.end.max(at + 1);
            }
        }
        weight
    }

    fn drop_furniture(&mut self) {
        let total = self.tree.weight(self.root.clone());
        // Where the innermost of what surely is text ends.
        let mut text_until = 0;
        let mut at = 0;
        while let Some(node) = self.tree.nodes.get(at) {
            let part = self.tree.part(at);
            let place = if at < text_until { Place::Text } else { Place::Around };
            if self.furniture(at, node, place, total) {
                if let Some(marks) = self.dropped.get_mut(part.clone()) {
                    marks.fill(true);
                }
                at = part.end;
                continue;
            }
            if matches!(node.name(), "main" | "article") || node.attribute("role") == Some("main") {
                text_until = text_until.max(part.end);
            }
            at += 1;
        }
    }

    fn furniture(&self, at: usize, node: &Node<'_>, place: Place, total: usize) -> bool {
        let Kind::Element { name, .. } = &node.kind else { return false };
        let name = name.as_str();
        let part = self.tree.part(at);
        if DROPPED.contains(&name) || hidden(node) {
            return true;
        }
        if matches!(name, "a" | "span") && self.mark(node, part.clone()) {
            return true;
        }
        let holds = |wanted: &[&str]| {
            self.tree.within(part.clone()).any(|(_, node)| wanted.contains(&node.name()))
        };
        // Whatever it is called: it holds the page.
        let much = 5 * self.tree.weight(part.clone()) > 2 * total;
        if matches!(name, "html" | "body" | "main" | "article") || node.heading() {
            return false;
        }
        let around = match (name, place) {
            ("footer" | "aside", Place::Around) => true,
            ("header", Place::Around) => !holds(&["h1"]),
            ("footer", Place::Text) => !holds(&["p", "pre", "blockquote"]),
            _ => false,
        };
        let role = node.attribute("role").is_some_and(|role| ROLES.contains(&role));
        // In a text, an aside is said by the way, and is not beside it.
        let role = role && !(name == "aside" && place == Place::Text);
        let named = named(node) || (name == "div" && self.source_dump(part.clone()));
        (around || role || named) && !much && !holds(&["h1", "main", "article"])
    }

    /// A link or a sign that only says where it is: `¶`, `§`, `#`, or `Source` beside a heading.
    fn mark(&self, node: &Node<'_>, part: Range<usize>) -> bool {
        if node.words().any(|word| word == "src") && node.name() == "a" {
            return true;
        }
        let href = node.attribute("href");
        let Some(href) = href.filter(|_| node.name() == "a") else { return false };
        let text = self.tree.text(part.clone());
        let text = text.replace("&para;", "").replace("&sect;", "").replace("&ZeroWidthSpace;", "");
        let text = if text.starts_with("&#") { "" } else { &text };
        let silent = !text.chars().any(char::is_alphanumeric);
        let pictured = self.tree.within(part).any(|(_, node)| node.name() == "img");
        silent && !pictured && (href.starts_with('#') || text.trim().is_empty())
    }

    /// True for the source of an item, which documentation made by pdoc holds besides its text.
    fn source_dump(&self, part: Range<usize>) -> bool {
        let mut first = self.tree.within(part).take(6).map(|(_, node)| node);
        let named = first.next().and_then(|node| node.attribute("class"));
        let dumped = |node: &Node<'_>| node.attribute("id").is_some_and(|id| id.contains("L-"));
        named.is_some_and(|class| class.contains("pdoc-code")) && first.any(dumped)
    }

    /// The one part that says it is the text of the page, if it is most of it.
    fn choose(&mut self) {
        let all = self.weight(self.root.clone());
        let mut kept = self.root.clone();
        for wanted in ["main", "article"] {
            let found = self.tree.within(kept.clone()).filter(|(at, node)| {
                let role = node.attribute("role") == Some("main");
                !self.drops(*at) && (node.name() == wanted || (wanted == "main" && role))
            });
            let [only] = found.map(|(at, _)| at).collect::<Vec<_>>()[..] else { continue };
            let part = self.tree.part(only);
            if 4 * self.weight(part.clone()) >= self.weight(kept.clone()) {
                kept = part;
            }
        }
        self.partial = self.weight(kept.clone()) < all;
        self.root = kept;
    }

    /// What the page is headed by.
    pub(super) fn headline(&self) -> Headline<'a> {
        let first = |part: Range<usize>| {
            let mut nodes = self.tree.within(part);
            nodes.find(|(at, node)| node.name() == "h1" && !self.drops(*at)).map(|(at, _)| at)
        };
        if first(self.root.clone()).is_some() {
            return Headline::Inside;
        }
        if let Some(title) = self.tree.title {
            return Headline::Title(title);
        }
        let outside = first(0..self.tree.nodes.len());
        outside.map_or(Headline::None, |at| Headline::Outside(self.tree.text(self.tree.part(at))))
    }
}

/// What a page is headed by.
pub(super) enum Headline<'a> {
    /// Its text has a heading of its own.
    Inside,
    /// A heading that is not part of it, undecoded.
    Outside(String),
    /// What it calls itself, undecoded.
    Title(&'a str),
    None,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Within what says that it is text.
    Text,
    Around,
}

fn hidden(node: &Node<'_>) -> bool {
    let style = node.attribute("style").unwrap_or_default();
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect();
    node.attribute("hidden").is_some_and(|how| how != "until-found")
        || node.attribute("aria-hidden") == Some("true")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

fn named(node: &Node<'_>) -> bool {
    let skips = |word: &str| matches!(word, "skip" | "jump" | "share");
    if SPARED.contains(&node.name()) {
        return node.name() == "a" && node.words().any(skips)
            || node.name() == "table" && node.words().any(|word| word == "metadata");
    }
    let whole = [node.attribute("class"), node.attribute("id")];
    let whole = whole.into_iter().flatten().flat_map(str::split_ascii_whitespace);
    node.words().any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
        || whole.into_iter().any(|name| NAMES.contains(&name))
}
