//! A page written anew with a handful of plain elements, which any converter reads the same way.
//!
//! Every element that comes out was opened and is closed here, so nothing is nested wrongly; links
//! lead somewhere else or are text; code is one block with its language; a table is a table of data.
//! Pure. Start reading at [`write`].

use super::sieve::{Headline, Sieve};
use super::tree::{Kind, Node};
use std::collections::HashMap;
use std::ops::Range;

/// Elements that stay what they are.
const KEPT: [&str; 34] = [
    "p",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "em",
    "i",
    "b",
    "strong",
    "code",
    "br",
    "hr",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "sup",
    "sub",
    "del",
    "s",
    "kbd",
    "samp",
    "q",
    "caption",
    "a",
];
/// Elements that are only boxes.
const BOXES: [&str; 20] = [
    "section", "article", "main", "header", "footer", "aside", "figure", "details", "summary",
    "form", "fieldset", "center", "address", "menu", "hgroup", "dir", "tfoot", "body", "search",
    "picture",
];
/// Languages that a class may name by themselves.
const LANGUAGES: [&str; 22] = [
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
/// What a class says before a language.
const PREFIXES: [&str; 4] = ["language-", "lang-", "highlight-source-", "highlight-"];
/// Names of no language.
const NO_LANGUAGES: [&str; 8] =
    ["auto", "none", "default", "plain", "plaintext", "text", "txt", "notranslate"];

/// Writes what a sieve leaves.
pub(super) fn write(sieve: &Sieve<'_, '_>) -> String {
    let mut page = Page {
        sieve,
        out: String::new(),
        ends: Vec::new(),
        tables: HashMap::new(),
        lists: HashMap::new(),
    };
    match sieve.headline() {
        Headline::Inside | Headline::None => {}
        Headline::Outside(text) => page.headline(&text),
        Headline::Title(text) => page.headline(text),
    }
    page.write(sieve.root.clone());
    page.out
}

struct Page<'s, 't, 'a> {
    sieve: &'s Sieve<'t, 'a>,
    out: String,
    /// What is open: where it ends, and its end.
    ends: Vec<(usize, String)>,
    /// How tables were found to be used, by where they are.
    tables: HashMap<usize, Option<Rows>>,
    /// Which lists hold sections.
    lists: HashMap<usize, bool>,
}

/// What becomes of an element.
enum Fate {
    /// Its tags go, what is in it stays.
    Unwrapped,
    /// Written as an element, with these attributes.
    Element(&'static str, String),
    /// Written as an element at the end of which more stands.
    Trailed(&'static str, &'static str),
    /// Written already, with all in it.
    Done,
}

impl Page<'_, '_, '_> {
    fn headline(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            self.out.push_str(&format!("<h1>{}</h1>", text.replace('<', "&lt;")));
        }
    }

    fn write(&mut self, part: Range<usize>) {
        let mut at = part.start;
        while at < part.end {
            self.close(at);
            let Some(node) = self.sieve.tree.nodes.get(at) else { break };
            let own = self.sieve.tree.part(at);
            if self.sieve.drops(at) {
                at = own.end.max(at + 1);
                continue;
            }
            at = match &node.kind {
                Kind::Text(text) => {
                    self.out.push_str(&text.replace(['\u{200b}', '\u{feff}'], ""));
                    at + 1
                }
                Kind::Element { .. } => match self.fate(at, node) {
                    Fate::Unwrapped => at + 1,
                    Fate::Element(name, attributes) => {
                        self.out.push_str(&format!("<{name}{attributes}>"));
                        if !matches!(name, "br" | "hr" | "img" | "input") {
                            self.ends.push((own.end, format!("</{name}>")));
                        }
                        at + 1
                    }
                    Fate::Trailed(name, trail) => {
                        self.out.push_str(&format!("<{name}>"));
                        self.ends.push((own.end, format!("</{name}>{trail}")));
                        at + 1
                    }
                    Fate::Done => own.end,
                },
            };
        }
        self.close(usize::MAX);
    }

    /// Ends what has ended.
    fn close(&mut self, at: usize) {
        while let Some((_, end)) = self.ends.pop_if(|(end, _)| *end <= at) {
            self.out.push_str(&end);
        }
    }

    fn fate(&mut self, at: usize, node: &Node<'_>) -> Fate {
        let plain = |name| Fate::Element(name, String::new());
        match node.name() {
            "pre" => self.code(at, node),
            "a" => self.link(at, node),
            "img" => self.picture(node),
            "input" => {
                let checkbox = node.attribute("type") == Some("checkbox");
                match checkbox && self.under(at, "li") {
                    true if node.attribute("checked").is_some() => {
                        Fate::Element("input", " type=\"checkbox\" checked".to_owned())
                    }
                    true => Fate::Element("input", " type=\"checkbox\"".to_owned()),
                    false => Fate::Unwrapped,
                }
            }
            "dl" => plain("ul"),
            "dt" => Fate::Trailed("li", ""),
            "dd" => self.meaning(at),
            "var" | "dfn" => plain("i"),
            // A time is set apart from the name before it by its looks.
            "time" => {
                self.out.push(' ');
                Fate::Unwrapped
            }
            "span" | "div" if self.apart(node) => Fate::Trailed("span", " "),
            "tt" => plain("code"),
            "figcaption" => plain("p"),
            "table" | "thead" | "tbody" | "tr" | "th" | "td" | "caption" => self.cell(at, node),
            "li" if self.bare(at) => Fate::Done,
            "ul" | "ol" | "li" if self.sectioned(at) => plain("div"),
            "ol" => {
                let start = node.attribute("start").filter(|start| start.parse::<u32>().is_ok());
                let start = start.map(|start| format!(" start=\"{start}\"")).unwrap_or_default();
                Fate::Element("ol", start)
            }
            // The only paragraph of an item would set it apart from the next.
            "p" | "div" if self.alone_in_item(at) => Fate::Unwrapped,
            "p" | "div" if self.heads(at) => Fate::Unwrapped,
            name if BOXES.contains(&name) => plain("div"),
            name => match KEPT.iter().find(|kept| **kept == name) {
                Some(kept) => plain(kept),
                None => Fate::Unwrapped,
            },
        }
    }

    /// The elements around a node, from the innermost.
    fn around(&self, at: usize) -> impl Iterator<Item = &Node<'_>> {
        let up = |at: &usize| self.sieve.tree.nodes.get(*at).and_then(|node| node.parent);
        let parents = std::iter::successors(up(&at), up);
        parents.filter_map(|parent| self.sieve.tree.nodes.get(parent))
    }

    fn under(&self, at: usize, name: &str) -> bool {
        self.around(at).take(3).any(|node| node.name() == name)
    }

    /// Words for those who do not see a page, and columns of a list that is laid out as a table.
    fn apart(&self, node: &Node<'_>) -> bool {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split_ascii_whitespace().any(|class| {
            matches!(class, "visually-hidden" | "sr-only" | "col-first" | "col-second")
        })
    }

    /// True for an item with nothing to read in it.
    fn bare(&self, at: usize) -> bool {
        let part = self.sieve.tree.part(at);
        let shown = |node: &Node<'_>| match node.name() {
            "img" => node.attribute("alt").is_some_and(|alt| !alt.trim().is_empty()),
            _ => false,
        };
        self.sieve.tree.weight(part.clone()) == 0
            && !self.sieve.tree.within(part).any(|(_, node)| shown(node))
    }

    fn heads(&self, at: usize) -> bool {
        self.around(at).take(3).any(Node::heading)
    }

    fn alone_in_item(&self, at: usize) -> bool {
        let Some(parent) = self.sieve.tree.nodes.get(at).and_then(|node| node.parent) else {
            return false;
        };
        let part = self.sieve.tree.part(parent);
        let item = self.sieve.tree.nodes.get(parent);
        item.is_some_and(|item| item.name() == "li") && {
            let own = self.sieve.tree.part(at);
            // Before it comes nothing, and after it at most a list.
            self.sieve.tree.weight(part.start..own.start) == 0
        }
    }

    /// True for a list that is used to lay out sections.
    fn sectioned(&mut self, at: usize) -> bool {
        let tree = self.sieve.tree;
        let node = tree.nodes.get(at);
        let list = match node.map(Node::name) {
            Some("li") => node.and_then(|node| node.parent),
            _ => Some(at),
        };
        let Some(list) = list else { return false };
        *self
            .lists
            .entry(list)
            .or_insert_with(|| tree.within(tree.part(list)).any(|(_, node)| node.heading()))
    }

    /// What a term means: it stands behind the term, in one item.
    fn meaning(&mut self, at: usize) -> Fate {
        let item = "</li>";
        let term = self.sieve.tree.nodes.get(at).and_then(|node| node.parent);
        let listed = term.and_then(|term| self.sieve.tree.nodes.get(term));
        if listed.is_some_and(|list| list.name() == "dl") && self.out.ends_with(item) {
            self.out.truncate(self.out.len() - item.len());
            return Fate::Trailed("div", item);
        }
        let spaced = self.out.trim_end().ends_with(item);
        if spaced {
            self.out.truncate(self.out.trim_end().len() - item.len());
            return Fate::Trailed("div", item);
        }
        Fate::Trailed("div", "")
    }

    /// A block of code: its text as it is, and its language.
    fn code(&mut self, at: usize, node: &Node<'_>) -> Fate {
        let tree = self.sieve.tree;
        let part = tree.part(at);
        let mut text = String::new();
        let mut inside = part.start + 1;
        while inside < part.end {
            if self.sieve.drops(inside) {
                inside = tree.part(inside).end.max(inside + 1);
                continue;
            }
            match tree.nodes.get(inside).map(|node| &node.kind) {
                Some(Kind::Text(piece)) => text.push_str(piece),
                Some(Kind::Element { name, .. })
                    if matches!(name.as_str(), "br" | "div" | "p" | "tr" | "li")
                        && (name == "br" || !text.ends_with('\n') && !text.is_empty()) =>
                {
                    text.push('\n');
                }
                Some(Kind::Element { .. }) | None => {}
            }
            inside += 1;
        }
        // A column of numbers counts the lines of the code beside it.
        let numbers = text.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
        if text.trim().is_empty() || (numbers && self.around(at).any(|node| node.name() == "td")) {
            return Fate::Done;
        }
        let within =
            tree.within(part).find(|(_, node)| node.name() == "code").map(|(_, node)| node);
        let near = [Some(node), within].into_iter().flatten().chain(self.around(at).take(3));
        let language = near.filter_map(language).next();
        let class = language.map(|name| format!(" class=\"language-{name}\"")).unwrap_or_default();
        let text = text.trim_matches('\n').trim_end();
        self.out.push_str(&format!("<pre><code{class}>{text}\n</code></pre>"));
        Fate::Done
    }

    /// A link to another page; one within the page is text, and so is one in a heading.
    fn link(&self, at: usize, node: &Node<'_>) -> Fate {
        let href = node.attribute("href").unwrap_or_default().trim();
        let scheme = href.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let leads = !href.is_empty()
            && !href.starts_with('#')
            && scheme.is_none_or(|scheme| {
                matches!(scheme.as_str(), "http" | "https" | "mailto") || scheme.contains('/')
            });
        let inside = self
            .around(at)
            .take(4)
            .any(|node| node.heading() || matches!(node.name(), "a" | "code"));
        match leads && !inside && self.sieve.tree.weight(self.sieve.tree.part(at)) > 0 {
            true => Fate::Element("a", format!(" href=\"{}\"", quoted(href))),
            false => Fate::Unwrapped,
        }
    }

    /// A picture that says what it shows.
    fn picture(&self, node: &Node<'_>) -> Fate {
        let alt = node.attribute("alt").unwrap_or_default().trim();
        let tried = ["src", "data-src", "data-original"];
        let mut sources = tried.iter().filter_map(|name| node.attribute(name));
        let source = sources.find(|source| !source.trim_start().starts_with("data:"));
        match (alt, source) {
            ("", _) => Fate::Unwrapped,
            (alt, Some(source)) if node.words().all(|word| word != "emoji") => {
                let (source, alt) = (quoted(source), quoted(alt));
                Fate::Element("img", format!(" src=\"{source}\" alt=\"{alt}\""))
            }
            _ => Fate::Unwrapped,
        }
    }

    /// A part of a table, or a box where a table is used to lay out a page.
    fn cell(&mut self, at: usize, node: &Node<'_>) -> Fate {
        let tree = self.sieve.tree;
        let up = |at: &usize| tree.nodes.get(*at).and_then(|node| node.parent);
        let mut above = std::iter::successors(Some(at), up);
        let table = above.find(|at| tree.nodes.get(*at).is_some_and(|node| node.name() == "table"));
        let layout = match table {
            Some(table) => match self.tables.get(&table) {
                Some(known) => *known,
                None => {
                    let found = self.layout(table);
                    self.tables.insert(table, found);
                    found
                }
            },
            None => Some(Rows::Many),
        };
        let name = node.name();
        match layout {
            Some(Rows::One) if matches!(name, "td" | "th") => Fate::Trailed("span", " "),
            Some(Rows::One) if name == "table" => Fate::Element("p", String::new()),
            Some(Rows::One) => Fate::Unwrapped,
            Some(Rows::Many) if name == "caption" => Fate::Element("p", String::new()),
            Some(Rows::Many) if matches!(name, "td" | "th") && self.inline(at) => {
                Fate::Trailed("span", " ")
            }
            Some(Rows::Many) => Fate::Element("div", String::new()),
            None => {
                let span = |name: &str| {
                    let value = node.attribute(name).filter(|value| value.parse::<u8>().is_ok());
                    value.map(|value| format!(" {name}=\"{value}\"")).unwrap_or_default()
                };
                let kept = KEPT.iter().find(|kept| **kept == name);
                let spans = format!("{}{}", span("colspan"), span("rowspan"));
                kept.map_or(Fate::Unwrapped, |kept| Fate::Element(kept, spans))
            }
        }
    }

    /// True for a cell without boxes in it.
    fn inline(&self, at: usize) -> bool {
        let part = at + 1..self.sieve.tree.part(at).end;
        self.sieve.tree.within(part).all(|(_, node)| {
            let name = node.name();
            !BOXES.contains(&name)
                && !matches!(
                    name,
                    "p" | "div" | "table" | "ul" | "ol" | "dl" | "pre" | "blockquote"
                )
                && !node.heading()
        })
    }

    /// How a table lays out a page; none if it is one of data.
    fn layout(&self, table: usize) -> Option<Rows> {
        let tree = self.sieve.tree;
        let node = tree.nodes.get(table)?;
        let part = table + 1..tree.part(table).end;
        let count = |names: &[&str]| {
            let found = tree.within(part.clone());
            found.filter(|(_, node)| names.contains(&node.name())).count()
        };
        let rows = if count(&["tr"]) == 1 { Rows::One } else { Rows::Many };
        let boxed = count(&["pre", "table", "ul", "ol", "dl", "blockquote", "h1", "h2", "h3"]) > 0;
        if boxed {
            return Some(Rows::Many);
        }
        let role = matches!(node.attribute("role"), Some("presentation" | "none"));
        let old = node.attribute("border") == Some("0") || node.attribute("cellpadding").is_some();
        let bare = count(&["th"]) == 0 && (old || matches!(rows, Rows::One));
        (role || bare).then_some(rows)
    }
}

/// How many rows a table has.
#[derive(Clone, Copy)]
enum Rows {
    One,
    Many,
}

/// The language that an element names.
fn language<'n>(node: &Node<'n>) -> Option<&'n str> {
    let known = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(c));
        !name.is_empty() && name.len() <= 20 && plain && !NO_LANGUAGES.contains(name)
    };
    if let Some(name) = node.attribute("data-lang").filter(known) {
        return Some(name);
    }
    let classes = node.attribute("class").unwrap_or_default();
    let named = classes.split_ascii_whitespace().find_map(|class| {
        let prefix = PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix));
        prefix.filter(known)
    });
    let alone = || {
        let mut classes = classes.split_ascii_whitespace();
        classes.find(|class| LANGUAGES.contains(class)).filter(|_| node.name() != "a")
    };
    named.or_else(alone)
}

fn quoted(value: &str) -> String {
    value.replace('"', "&quot;").replace(['<', '>', '\n', '\r'], "")
}
