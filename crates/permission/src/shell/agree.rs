//! Puts two findings together: one reading if they agree, everything either saw if not.

use super::doubt::Doubt;
use super::finding::Finding;
use super::{Item, Reading, Redirect, Segment, Word};
use std::collections::HashSet;
use std::fmt::Write as _;

/// What to say of a text that nobody reads.
pub(super) fn unread(text: &str, guard: Finding) -> Reading {
    let mut items = guard.items;
    items.push(whole(text));
    Reading { items, beyond: true, doubts: sentences(guard.doubts) }
}

/// `guard` is what was doubted before; a parser that did not get through says nothing.
pub(super) fn agree(
    text: &str,
    guard: Finding,
    sitter: Result<Finding, Doubt>,
    brush: Result<Finding, Doubt>,
) -> Reading {
    let mut doubts = guard.doubts;
    let failed = sitter.is_err() || brush.is_err();
    let mut found = Vec::new();
    for finding in [sitter, brush] {
        match finding {
            Ok(finding) => {
                doubts.extend(&finding.doubts);
                found.push(finding.items);
            }
            Err(doubt) => {
                doubts.insert(doubt);
            }
        }
    }
    let mut found = found.into_iter();
    let mut items = found.next().unwrap_or_default();
    if let Some(other) = found.next()
        && !same(&items, &other)
    {
        doubts.insert(Doubt::Differ);
        add(&mut items, other);
    }
    // Each of them hides commands that the other one would have seen.
    let partial = [Doubt::Depth, Doubt::Segments, Doubt::Broken];
    if failed || partial.iter().any(|doubt| doubts.contains(doubt)) {
        items.push(whole(text));
    }
    let beyond = [Doubt::Depth, Doubt::Segments].iter().any(|doubt| doubts.contains(doubt));
    Reading { items, beyond, doubts: sentences(doubts) }
}

fn sentences(doubts: impl IntoIterator<Item = Doubt>) -> Vec<String> {
    doubts.into_iter().map(|doubt| doubt.says().to_owned()).collect()
}

/// All of it as one command that nobody knows.
fn whole(text: &str) -> Item {
    let words = vec![Word::Opaque(text.to_owned())];
    Item::Command(Segment { text: text.to_owned(), words, ..Segment::default() })
}

fn same(one: &[Item], other: &[Item]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|pair| match pair {
            (Item::Command(one), Item::Command(other)) => is(one, other),
            (one, other) => one == other,
        })
}

/// True if they are one command, however each parser shows it.
fn is(one: &Segment, other: &Segment) -> bool {
    key(one) == key(other)
}

/// Adds what was not seen before, each in a scope of its own: where it stands is not known.
fn add(items: &mut Vec<Item>, other: Vec<Item>) {
    let mut seen: HashSet<String> = items.iter().filter_map(segment).map(key).collect();
    for item in other {
        if segment(&item).is_some_and(|segment| seen.insert(key(segment))) {
            items.extend([Item::Enter, item, Item::Leave]);
        }
    }
}

fn segment(item: &Item) -> Option<&Segment> {
    match item {
        Item::Command(segment) => Some(segment),
        Item::Enter | Item::Leave => None,
    }
}

/// All of a command that counts. How an unknown word is written does not: each parser shows it in
/// its own way, and it is doubted anyway.
fn key(segment: &Segment) -> String {
    let Segment { text: _, assignments, words, redirects, piped } = segment;
    let mut key = format!("{piped} {} {}", words.len(), assignments.len());
    let mut add = |word: &Word| match word {
        Word::Plain(text) => drop(write!(key, " plain {text:?}")),
        Word::Pattern(text) => drop(write!(key, " pattern {text:?}")),
        Word::Opaque(_) => key.push_str(" opaque"),
    };
    words.iter().for_each(&mut add);
    for (name, value) in assignments {
        add(&Word::Plain(name.clone()));
        add(value);
    }
    for Redirect { kind, target } in redirects {
        add(&Word::Plain(format!("{kind:?}")));
        add(target);
    }
    key
}
