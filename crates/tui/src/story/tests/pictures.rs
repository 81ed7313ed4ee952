//! Pictures: seen where there are colours, described elsewhere, and asked for only when in sight.

use super::*;
use crate::theme::{Depth, Theme};
use base64::Engine as _;
use expect_test::expect;
use windlass_protocol::wire::PictureSize;
use windlass_protocol::{Attachment, BlobRef};

fn picture(name: &str) -> Attachment {
    let blob = BlobRef::of(name.as_bytes());
    Attachment { name: name.into(), mime: "image/png".into(), blob }
}

fn gave_picture(name: &str) -> Outcome {
    let attachments = vec![picture(name)];
    Outcome::Completed { output: Output { attachments, ..Output::default() } }
}

impl Scene {
    fn coloured(size: (u16, u16), depth: Depth) -> Scene {
        let mut scene = Scene::open(size);
        scene.look.theme = Theme { depth, ..Theme::default() };
        scene
    }

    /// Draws, and asks for what is in sight; gives what was asked for.
    fn fetches(&mut self) -> Vec<(u32, u32)> {
        self.frame();
        self.with(|story, cx| story.fetch(cx));
        let sizes = self.sent.iter().map(|up| match &up.request {
            Request::Thumbnail { width, height, .. } => (*width, *height),
            other => panic!("{other:?}"),
        });
        sizes.collect()
    }

    /// Answers what was asked with a grey picture of so many pixels.
    fn shows(&mut self, width: u32, height: u32) {
        let up = self.sent.pop_front().unwrap();
        let bytes = vec![0x80_u8; (width * height * 3) as usize];
        let bytes = base64::engine::general_purpose::STANDARD.encode(bytes);
        let of = PictureSize { width: 640, height: 480, bytes: 11_300 };
        let answer = Ok(Answered::Pixels { width, bytes, of });
        assert!(self.with(|story, cx| story.answer(up.id, &answer, cx)));
    }
}

fn looked_at(scene: &mut Scene) {
    let (prompt, when) = (prompt(1), Delivery::Steer);
    let attachments = vec![picture("plan.png")];
    scene.fact(Fact::Prompted { prompt, text: "build this".into(), attachments, when });
    scene.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
    scene.facts([
        called(1, "read", r#"{"filePath":"shot.png"}"#),
        started(1),
        settled(1, gave_picture("shot.png")),
    ]);
}

#[test]
fn a_picture_is_drawn_where_it_stands() {
    let mut scene = Scene::coloured((60, 20), Depth::Many);
    looked_at(&mut scene);
    assert_eq!(scene.fetches(), [(56, 20)], "one at a time");
    scene.shows(12, 6);
    assert_eq!(scene.fetches(), [(56, 20)]);
    scene.shows(8, 3);
    assert!(scene.fetches().is_empty() && !scene.story.misses());
    expect![[r#"
        60×20
        › build this
          plan.png · picture, 640×480 PNG, 12 kB
          ▀▀▀▀▀▀▀▀▀▀▀▀
          ▀▀▀▀▀▀▀▀▀▀▀▀
          ▀▀▀▀▀▀▀▀▀▀▀▀

        ✓ Read shot.png
            shot.png · picture, 640×480 PNG, 12 kB
            ▀▀▀▀▀▀▀▀
            ▀▀▀▀▀▀▀▀"#]]
    .assert_eq(&format!("60×20\n{}", scene.frame()));
    scene.story.toggle(Details::One);
    assert_eq!(scene.fetches(), [(56, 40)], "opened it is larger");
}

#[test]
fn without_colours_it_is_described() {
    for (depth, ascii) in [(Depth::Sixteen, false), (Depth::None, false), (Depth::True, true)] {
        let mut scene = Scene::coloured((60, 20), depth);
        scene.look.ascii = ascii;
        looked_at(&mut scene);
        assert_eq!(scene.fetches(), [(1, 1)]);
        scene.shows(1, 1);
        scene.fetches();
        let refused = Err(Fault::Config { message: "it is damaged".into() });
        let up = scene.sent.pop_front().unwrap();
        assert!(scene.with(|story, cx| story.answer(up.id, &refused, cx)));
        assert!(scene.fetches().is_empty(), "what cannot be shown is not asked for again");
        let frame = scene.frame();
        assert!(!frame.contains('▀'), "{frame}");
        let dot = if ascii { '-' } else { '·' };
        let times = if ascii { "x" } else { "×" };
        assert!(
            frame.contains(&format!("plan.png {dot} picture, 640{times}480 PNG, 12 kB")),
            "{frame}"
        );
        assert!(frame.contains(&format!("shot.png {dot} picture, PNG")), "{frame}");
    }
}

#[test]
fn what_is_not_in_sight_is_not_asked_for_and_few_are_kept() {
    let mut scene = Scene::coloured((60, 12), Depth::True);
    for number in 0..100 {
        scene.facts([
            called(number, "read", r#"{"filePath":"shot.png"}"#),
            started(number),
            settled(number, gave_picture(&format!("{number}.png"))),
            said(&"A line.\n\n".repeat(20)),
        ]);
    }
    assert!(scene.fetches().is_empty());
    let mut asked = 0;
    for _ in 0..1_000 {
        scene.go(Scroll::Lines(-5));
        while !scene.fetches().is_empty() {
            asked += 1;
            scene.shows(4, 4);
        }
    }
    assert_eq!(asked, 100, "each once");
    assert!(scene.story.pictures.held() <= 48);
}
