//! Tests of images: drawn with colors, described without them, and requested only when visible.

use super::*;
use crate::theme::{ColorDepth, Theme};
use base64::Engine as _;
use expect_test::expect;
use windlass_protocol::frontend_messages::ImageSize;
use windlass_protocol::{Attachment, BlobRef};

fn image_attachment(name: &str) -> Attachment {
    let blob = BlobRef::for_bytes(name.as_bytes());
    Attachment { name: name.into(), mime_type: "image/png".into(), blob }
}

fn image_outcome(name: &str) -> CallOutcome {
    let attachments = vec![image_attachment(name)];
    CallOutcome::Completed { output: ToolOutput { attachments, ..ToolOutput::default() } }
}

impl TestTranscript {
    fn with_color_depth(size: (u16, u16), depth: ColorDepth) -> TestTranscript {
        let mut env = TestTranscript::open(size);
        env.appearance.theme = Theme { color_depth: depth, ..Theme::default() };
        env
    }

    /// Draws a frame, requests a visible image, and returns the sizes of all requests.
    fn fetch_visible_image(&mut self) -> Vec<(u32, u32)> {
        self.frame();
        self.with(|transcript, cx| transcript.fetch_image(cx));
        let sizes = self.sent.iter().map(|message| match &message.request {
            FrontendRequest::Thumbnail { width, height, .. } => (*width, *height),
            other => panic!("{other:?}"),
        });
        sizes.collect()
    }

    /// Answers the first request with a gray image of this size in pixels.
    fn answer_with_thumbnail(&mut self, width: u32, height: u32) {
        let message = self.sent.pop_front().unwrap();
        let bytes = vec![0x80_u8; (width * height * 3) as usize];
        let bytes = base64::engine::general_purpose::STANDARD.encode(bytes);
        let original_size = ImageSize { width: 640, height: 480, bytes: 11_300 };
        let response = Ok(HostResponse::Thumbnail { width, bytes, original_size });
        assert!(self.with(|transcript, cx| transcript.on_response(message.id, &response, cx)));
    }
}

fn add_image_turn(env: &mut TestTranscript) {
    let prompt = prompt(1);
    env.fact(Fact::PromptSubmitted {
        prompt,
        text: "build this".into(),
        attachments: vec![image_attachment("plan.png")],
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    });
    env.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt) });
    env.facts([
        tool_called(1, "read", r#"{"filePath":"shot.png"}"#),
        call_started(1),
        call_settled(1, image_outcome("shot.png")),
    ]);
}

#[test]
fn an_image_is_drawn_below_its_name() {
    let mut env = TestTranscript::with_color_depth((60, 20), ColorDepth::Ansi256);
    add_image_turn(&mut env);
    assert_eq!(env.fetch_visible_image(), [(56, 20)], "images are requested one at a time");
    env.answer_with_thumbnail(12, 6);
    assert_eq!(env.fetch_visible_image(), [(56, 20)]);
    env.answer_with_thumbnail(8, 3);
    assert!(env.fetch_visible_image().is_empty() && !env.transcript.needs_image());
    expect![[r#"
        60×20
        › build this
          plan.png · image, 640×480 PNG, 12 kB
          ▀▀▀▀▀▀▀▀▀▀▀▀
          ▀▀▀▀▀▀▀▀▀▀▀▀
          ▀▀▀▀▀▀▀▀▀▀▀▀

        ✓ Read shot.png
            shot.png · image, 640×480 PNG, 12 kB
            ▀▀▀▀▀▀▀▀
            ▀▀▀▀▀▀▀▀"#]]
    .assert_eq(&format!("60×20\n{}", env.frame()));
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    assert_eq!(env.fetch_visible_image(), [(56, 40)], "an expanded image is larger");
}

#[test]
fn without_colors_an_image_is_described() {
    for (depth, ascii) in [
        (ColorDepth::Ansi16, false),
        (ColorDepth::Monochrome, false),
        (ColorDepth::TrueColor, true),
    ] {
        let mut env = TestTranscript::with_color_depth((60, 20), depth);
        env.appearance.ascii = ascii;
        add_image_turn(&mut env);
        assert_eq!(env.fetch_visible_image(), [(1, 1)]);
        env.answer_with_thumbnail(1, 1);
        env.fetch_visible_image();
        let fault_response = Err(Fault::Config { message: "it is damaged".into() });
        let message = env.sent.pop_front().unwrap();
        assert!(env.with(|transcript, cx| transcript.on_response(message.id, &fault_response, cx)));
        assert!(
            env.fetch_visible_image().is_empty(),
            "an image that failed is not requested again"
        );
        let frame = env.frame();
        assert!(!frame.contains('▀'), "{frame}");
        let separator = if ascii { '-' } else { '·' };
        let times_sign = if ascii { "x" } else { "×" };
        assert!(
            frame.contains(&format!("plan.png {separator} image, 640{times_sign}480 PNG, 12 kB")),
            "{frame}"
        );
        assert!(frame.contains(&format!("shot.png {separator} image, PNG")), "{frame}");
    }
}

#[test]
fn only_visible_images_are_requested_and_few_are_kept() {
    let mut env = TestTranscript::with_color_depth((60, 12), ColorDepth::TrueColor);
    for number in 0..100 {
        env.facts([
            tool_called(number, "read", r#"{"filePath":"shot.png"}"#),
            call_started(number),
            call_settled(number, image_outcome(&format!("{number}.png"))),
            model_text(&"A line.\n\n".repeat(20)),
        ]);
    }
    assert!(env.fetch_visible_image().is_empty());
    let mut request_count = 0;
    for _ in 0..1_000 {
        env.scroll_and_load(ScrollTarget::Lines(-5));
        while !env.fetch_visible_image().is_empty() {
            request_count += 1;
            env.answer_with_thumbnail(4, 4);
        }
    }
    assert_eq!(request_count, 100, "each image is requested once");
    assert!(env.transcript.images.len() <= 48);
}
