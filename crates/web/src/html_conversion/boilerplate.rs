//! Separates the main text of a page from boilerplate.
//!
//! Documentation is the most frequent content, and a search for a single article would lose its
//! signatures and headings. So the filter works the other way round: it keeps everything that is
//! not known as boilerplate by its element, its role or the words of its class and id. A part that
//! contains much of the text is never boilerplate, whatever its name. This module performs no I/O.
//! Start reading at [`BoilerplateFilter::new`].

use super::tree::{HtmlNode, HtmlTree, NodeKind};
use std::ops::Range;

/// Elements without readable text, such as `nav` and `svg`.
const DROPPED_ELEMENTS: [&str; 24] = [
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
/// ARIA roles of parts around the main text.
const BOILERPLATE_ROLES: [&str; 9] = [
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
/// Words in a class or id that mark boilerplate.
const BOILERPLATE_WORDS: [&str; 57] = [
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
/// Whole class names and ids that mark boilerplate, because their single words have other meanings,
/// too.
const BOILERPLATE_NAMES: [&str; 13] = [
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
/// Inline and code elements, whose classes have other purposes.
const EXEMPT_ELEMENTS: [&str; 10] =
    ["a", "code", "pre", "em", "strong", "b", "i", "table", "tbody", "figure"];

/// Selection of the nodes of an `HtmlTree` that are kept.
pub(super) struct BoilerplateFilter<'t, 'a> {
    pub(super) tree: &'t HtmlTree<'a>,
    dropped: Vec<bool>,
    /// Nodes of the main text.
    pub(super) main_content: Range<usize>,
    /// True if there is readable text outside of `main_content`.
    pub(super) is_partial: bool,
}

impl<'t, 'a> BoilerplateFilter<'t, 'a> {
    pub(super) fn new(tree: &'t HtmlTree<'a>) -> BoilerplateFilter<'t, 'a> {
        let whole = 0..tree.nodes.len();
        let mut filter = BoilerplateFilter {
            tree,
            dropped: vec![false; whole.end],
            main_content: whole,
            is_partial: false,
        };
        filter.drop_boilerplate();
        filter.select_main_content();
        filter
    }

    /// Returns true if a node is dropped.
    pub(super) fn is_dropped(&self, at: usize) -> bool {
        self.dropped.get(at).copied().unwrap_or(true)
    }

    /// Returns the length of the kept text in a range.
    pub(super) fn kept_length(&self, part: Range<usize>) -> usize {
        let mut length = 0;
        let mut at = part.start;
        while at < part.end {
            let subtree = self.tree.subtree(at);
            if !self.is_dropped(at) {
                length += self.tree.text_length(at..at + 1);
                at += 1;
            } else {
                at = subtree.end.max(at + 1);
            }
        }
        length
    }

    fn drop_boilerplate(&mut self) {
        let total = self.tree.text_length(self.main_content.clone());
        // End of the `main` or `article` elements seen so far.
        let mut main_until = 0;
        let mut at = 0;
        while let Some(node) = self.tree.nodes.get(at) {
            let part = self.tree.subtree(at);
            let zone = if at < main_until { ContentZone::Main } else { ContentZone::Surrounding };
            if self.is_boilerplate(at, node, zone, total) {
                if let Some(marks) = self.dropped.get_mut(part.clone()) {
                    marks.fill(true);
                }
                at = part.end;
                continue;
            }
            if matches!(node.name(), "main" | "article") || node.attribute("role") == Some("main") {
                main_until = main_until.max(part.end);
            }
            at += 1;
        }
    }

    fn is_boilerplate(
        &self,
        at: usize,
        node: &HtmlNode<'_>,
        zone: ContentZone,
        total: usize,
    ) -> bool {
        let NodeKind::Element { name, .. } = &node.kind else { return false };
        let name = name.as_str();
        let part = self.tree.subtree(at);
        if DROPPED_ELEMENTS.contains(&name) || is_hidden(node) {
            return true;
        }
        if matches!(name, "a" | "span") && self.is_anchor_mark(node, part.clone()) {
            return true;
        }
        let contains = |wanted: &[&str]| {
            self.tree.nodes_in(part.clone()).any(|(_, node)| wanted.contains(&node.name()))
        };
        // The element contains over 40 % of the text, so it is kept whatever its name.
        let is_large = 5 * self.tree.text_length(part.clone()) > 2 * total;
        if matches!(name, "html" | "body" | "main" | "article") || node.is_heading() {
            return false;
        }
        let is_surrounding = match (name, zone) {
            ("footer" | "aside", ContentZone::Surrounding) => true,
            ("header", ContentZone::Surrounding) => !contains(&["h1"]),
            ("footer", ContentZone::Main) => !contains(&["p", "pre", "blockquote"]),
            _ => false,
        };
        let has_role = node.attribute("role").is_some_and(|role| BOILERPLATE_ROLES.contains(&role));
        // Inside the main text, an `aside` is a remark that belongs to it.
        let has_role = has_role && !(name == "aside" && zone == ContentZone::Main);
        let has_name =
            has_boilerplate_name(node) || (name == "div" && self.is_source_dump(part.clone()));
        (is_surrounding || has_role || has_name)
            && !is_large
            && !contains(&["h1", "main", "article"])
    }

    /// Returns true for a link that only marks its own position: `¶`, `§`, `#`, or `Source` next to
    /// a heading.
    fn is_anchor_mark(&self, node: &HtmlNode<'_>, part: Range<usize>) -> bool {
        if node.name_words().any(|word| word == "src") && node.name() == "a" {
            return true;
        }
        let href = node.attribute("href");
        let Some(href) = href.filter(|_| node.name() == "a") else { return false };
        let text = self.tree.text(part.clone());
        let text = text.replace("&para;", "").replace("&sect;", "").replace("&ZeroWidthSpace;", "");
        let text = if text.starts_with("&#") { "" } else { &text };
        let is_symbol = !text.chars().any(char::is_alphanumeric);
        let has_image = self.tree.nodes_in(part).any(|(_, node)| node.name() == "img");
        is_symbol && !has_image && (href.starts_with('#') || text.trim().is_empty())
    }

    /// Returns true for the source listing of an item, which pdoc adds to its documentation.
    fn is_source_dump(&self, part: Range<usize>) -> bool {
        let mut first = self.tree.nodes_in(part).take(6).map(|(_, node)| node);
        let class = first.next().and_then(|node| node.attribute("class"));
        let is_source_line =
            |node: &HtmlNode<'_>| node.attribute("id").is_some_and(|id| id.contains("L-"));
        class.is_some_and(|class| class.contains("pdoc-code")) && first.any(is_source_line)
    }

    /// Selects the only `main` or `article` element, if it contains at least a quarter of the kept
    /// text.
    fn select_main_content(&mut self) {
        let total = self.kept_length(self.main_content.clone());
        let mut main = self.main_content.clone();
        for wanted in ["main", "article"] {
            let found = self.tree.nodes_in(main.clone()).filter(|(at, node)| {
                let role = node.attribute("role") == Some("main");
                !self.is_dropped(*at) && (node.name() == wanted || (wanted == "main" && role))
            });
            let [only] = found.map(|(at, _)| at).collect::<Vec<_>>()[..] else { continue };
            let part = self.tree.subtree(only);
            if 4 * self.kept_length(part.clone()) >= self.kept_length(main.clone()) {
                main = part;
            }
        }
        self.is_partial = self.kept_length(main.clone()) < total;
        self.main_content = main;
    }

    /// Returns the headline of the page.
    pub(super) fn headline(&self) -> PageHeadline<'a> {
        let first = |part: Range<usize>| {
            let mut nodes = self.tree.nodes_in(part);
            nodes.find(|(at, node)| node.name() == "h1" && !self.is_dropped(*at)).map(|(at, _)| at)
        };
        if first(self.main_content.clone()).is_some() {
            return PageHeadline::InContent;
        }
        if let Some(title) = self.tree.title {
            return PageHeadline::Title(title);
        }
        let outside = first(0..self.tree.nodes.len());
        outside.map_or(PageHeadline::None, |at| {
            PageHeadline::OutsideContent(self.tree.text(self.tree.subtree(at)))
        })
    }
}

/// Headline of a page: an `h1` or its `title`.
pub(super) enum PageHeadline<'a> {
    /// The main text has its own `h1`.
    InContent,
    /// An `h1` outside of the main text, undecoded.
    OutsideContent(String),
    /// The `title` of the page, undecoded.
    Title(&'a str),
    None,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentZone {
    /// Inside an element that declares itself as the main text.
    Main,
    Surrounding,
}

fn is_hidden(node: &HtmlNode<'_>) -> bool {
    let style = node.attribute("style").unwrap_or_default();
    let style: String = style.chars().filter(|c| !c.is_whitespace()).collect();
    node.attribute("hidden").is_some_and(|value| value != "until-found")
        || node.attribute("aria-hidden") == Some("true")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

fn has_boilerplate_name(node: &HtmlNode<'_>) -> bool {
    let skips = |word: &str| matches!(word, "skip" | "jump" | "share");
    if EXEMPT_ELEMENTS.contains(&node.name()) {
        return node.name() == "a" && node.name_words().any(skips)
            || node.name() == "table" && node.name_words().any(|word| word == "metadata");
    }
    let names = [node.attribute("class"), node.attribute("id")];
    let names = names.into_iter().flatten().flat_map(str::split_ascii_whitespace);
    node.name_words().any(|word| {
        BOILERPLATE_WORDS.iter().any(|boilerplate| word.eq_ignore_ascii_case(boilerplate))
    }) || names.into_iter().any(|name| BOILERPLATE_NAMES.contains(&name))
}
