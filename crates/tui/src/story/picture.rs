//! Pictures in the story: asked for when they come into sight, one after the other, and kept as long as
//! few others were seen since. Where the terminal has too few colours they are described.

use super::Story;
use super::fold::{Block, What};
use super::rows::{Lay, MARGIN, Source, inset};
use super::window::Window;
use crate::cx::{Cx, Look};
use crate::ink::Row;
use crate::lay::picture::{self, Pixels};
use crate::theme::Role;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use windlass_protocol::wire::{Answered, PictureSize, Request};
use windlass_protocol::{Attachment, BlobRef, Fact, Fault};

/// How many are kept; more than can be seen at once.
const MOST: usize = 48;
/// How many rows one takes while it is closed, and opened.
const CLOSED: u16 = 10;
const OPENED: u16 = 20;

/// A picture, and how many pixels of it are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    blob: BlobRef,
    size: (u32, u32),
}

/// What came of asking for a picture.
#[derive(Debug)]
enum Came {
    Here {
        pixels: Pixels,
        of: PictureSize,
    },
    /// It cannot be shown.
    Not,
}

/// The pictures that were seen last.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    held: VecDeque<(Wanted, Came)>,
    /// In sight, and not here.
    missing: Vec<Wanted>,
    asked: Option<(u64, Wanted)>,
}

impl Pictures {
    fn get(&self, wanted: &Wanted) -> Option<&Came> {
        self.held.iter().find(|(held, _)| held == wanted).map(|(_, came)| came)
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn keep(&mut self, wanted: Wanted, came: Came) {
        if self.held.len() >= MOST {
            self.held.pop_front();
        }
        self.held.push_back((wanted, came));
    }
}

/// How much of a picture is wanted. Without colours a pixel is enough: what it is like comes with it.
fn wanted(file: &Attachment, open: bool, width: usize, look: &Look) -> Wanted {
    let columns = u16::try_from(width).unwrap_or(u16::MAX);
    let rows = if open { OPENED } else { CLOSED };
    let size = picture::wanted((columns, rows), look).unwrap_or((1, 1));
    Wanted { blob: file.blob.clone(), size }
}

fn is_picture(file: &&Attachment) -> bool {
    file.mime.starts_with("image/")
}

/// The files that a block shows.
fn files<'a>(block: &'a Block, window: &'a Window) -> &'a [Attachment] {
    match &block.what {
        What::Prompt { asked: Some(asked), .. } => &asked.attachments,
        What::Call(call) => match call.settled.and_then(|seq| window.get(seq)) {
            Some(record) => match &record.fact {
                Fact::Settled { outcome, .. } => outcome.attachments(),
                _ => &[],
            },
            None => &[],
        },
        _ => &[],
    }
}

/// A file that goes with a prompt, or that a call gave: a line, and the picture if it is one.
pub(super) fn rows(file: &Attachment, open: bool, from: Source<'_>, lay: &Lay<'_>) -> Vec<Row> {
    if !is_picture(&file) {
        return lay.quiet(Role::Dim, &format!("file · {} · {}", file.name, file.mime));
    }
    let wanted = wanted(file, open, lay.wide(), lay.look);
    let Some(Came::Here { pixels, of }) = from.pictures.get(&wanted) else {
        return lay.quiet(Role::Dim, &format!("{} · picture, {}", file.name, kind(&file.mime)));
    };
    let PictureSize { width, height, bytes } = of;
    let size = bytes.div_ceil(1_000);
    let kind = kind(&file.mime);
    let like = format!("{} · picture, {width}×{height} {kind}, {size} kB", file.name);
    let mut rows = lay.quiet(Role::Dim, &like);
    if picture::wanted((8, 1), lay.look).is_some() {
        rows.extend(inset(picture::picture(pixels, lay.wide(), lay.look), MARGIN));
    }
    rows
}

/// `PNG`.
fn kind(mime: &str) -> String {
    mime.strip_prefix("image/").unwrap_or(mime).to_uppercase()
}

impl Story {
    /// Learns which pictures are in sight. It is called for what is drawn, and asks nothing itself.
    pub(super) fn see_pictures(&mut self, item: usize, lay: &Lay<'_>) {
        let Some(block) = self.fold.blocks.get(item) else { return };
        let open = self.is_open(block.key);
        for file in files(block, &self.window).iter().filter(is_picture) {
            let wanted = wanted(file, open, lay.wide(), lay.look);
            if self.pictures.get(&wanted).is_none() && !self.pictures.missing.contains(&wanted) {
                self.pictures.missing.push(wanted);
            }
        }
    }

    /// Nothing is in sight yet of what is drawn next.
    pub(super) fn look_away(&mut self) {
        self.pictures.missing.clear();
    }

    /// True if a picture is in sight that should be asked for.
    pub fn misses(&self) -> bool {
        self.pictures.asked.is_none() && !self.pictures.missing.is_empty()
    }

    /// Asks for a picture that is in sight; one is under way at a time, because each may be large for
    /// the host.
    pub fn fetch(&mut self, cx: &mut Cx<'_>) {
        if !self.misses() {
            return;
        }
        let wanted = self.pictures.missing.remove(0);
        let (blob, (width, height)) = (wanted.blob.clone(), wanted.size);
        let id = cx.ask(Request::Thumbnail { blob, width, height });
        self.pictures.asked = Some((id, wanted));
    }

    /// Takes in a picture that was asked for.
    pub(super) fn take_picture(&mut self, id: u64, answer: &Result<Answered, Fault>) -> bool {
        let Some((_, wanted)) = self.pictures.asked.take_if(|(asked, _)| *asked == id) else {
            return false;
        };
        let came = match answer {
            Ok(Answered::Pixels { width, bytes, of }) => {
                let pixels = Pixels {
                    width: usize::try_from(*width).unwrap_or_default(),
                    bytes: STANDARD.decode(bytes).unwrap_or_default(),
                };
                Came::Here { pixels, of: *of }
            }
            Ok(_) | Err(_) => Came::Not,
        };
        let shows =
            |block: &Block| files(block, &self.window).iter().any(|file| file.blob == wanted.blob);
        let keys = self.fold.blocks.iter().filter(|block| shows(block)).map(|block| block.key);
        for key in keys {
            self.laid.remove(&key);
        }
        self.count_laid();
        self.pictures.keep(wanted, came);
        true
    }
}
