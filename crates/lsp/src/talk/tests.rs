//! A connection to a server that is made up: every word of it is said here.

use super::*;
use crate::frame::Frames;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Keeping for Notes {
    fn journal(&self, server: &str, line: &str) {
        lock(&self.0).push(format!("{server}: {line}"));
    }
}

/// The other end of a connection.
struct Fake {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    frames: Frames,
    rest: Vec<u8>,
}

impl Fake {
    async fn read(&mut self) -> Value {
        loop {
            let mut piece = self.rest.as_slice();
            let found = self.frames.step(&mut piece).unwrap();
            self.rest = piece.to_vec();
            if let Some(body) = found {
                return serde_json::from_slice(&body).unwrap();
            }
            let mut buffer = [0; 4096];
            let count = self.reader.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the connection ended");
            self.rest.extend_from_slice(&buffer[..count]);
        }
    }

    /// The next message of a method.
    async fn hear(&mut self, method: &str) -> Value {
        loop {
            let message = self.read().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn send(&mut self, message: Value) {
        self.write(&framed(message.to_string().as_bytes())).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    async fn answer(&mut self, asked: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }

    async fn ask(&mut self, id: Value, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }
}

const LIMIT: Duration = Duration::from_secs(2);

fn meeting() -> (Meeting<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>, Fake, Arc<Notes>) {
    let (ours, theirs) = duplex(64 << 10);
    let ((reader, writer), notes) = (split(ours), Arc::<Notes>::default());
    let row = json!({"name": "fake", "language": "x", "command": ["x"], "install": "x"});
    let meeting = Meeting {
        reader,
        writer,
        held: None,
        row: Arc::new(serde_json::from_value(row).unwrap()),
        keeping: Arc::clone(&notes) as Arc<dyn Keeping>,
        workspace: "/w".into(),
        root: "/w/sub".into(),
        terms: Terms { settings: json!({"a": 1}), uri: "file:///w".into(), name: "w".into() },
        first: json!({"processId": null}),
        silence: Duration::from_secs(10),
    };
    let (reader, writer) = split(theirs);
    (meeting, Fake { reader, writer, frames: Frames::default(), rest: Vec::new() }, notes)
}

async fn met(capabilities: Value) -> (Arc<Link>, Fake, Arc<Notes>) {
    let (meeting, mut fake, notes) = meeting();
    let hello = async {
        let asked = fake.read().await;
        assert_eq!((&asked["method"], &asked["id"]), (&json!("initialize"), &json!(1)));
        assert_eq!(asked["params"], json!({"processId": null}));
        fake.answer(&asked, json!({"capabilities": capabilities})).await;
        assert_eq!(fake.read().await["method"], "initialized");
        let told = fake.read().await;
        assert_eq!(told["method"], "workspace/didChangeConfiguration");
        assert_eq!(told["params"], json!({"settings": {"a": 1}}));
    };
    let (link, ()) = tokio::join!(Link::meet(meeting), hello);
    (Arc::new(link.unwrap()), fake, notes)
}

fn asking(link: &Arc<Link>, method: &'static str, limit: Duration) -> Asking {
    let link = Arc::clone(link);
    let mut set = JoinSet::new();
    set.spawn(async move { link.request(method, json!({"of": method}), limit).await });
    Asking(set)
}

struct Asking(JoinSet<Result<Value, Refusal>>);

impl Asking {
    async fn end(mut self) -> Result<Value, Refusal> {
        self.0.join_next().await.unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn answers_reach_who_asked_in_whatever_order_they_come() {
    let (link, mut fake, _) = met(json!({"positionEncoding": "utf-8"})).await;
    assert_eq!(link.encoding(), Encoding::Utf8);
    let first = asking(&link, "one", LIMIT);
    let one = fake.hear("one").await;
    let second = asking(&link, "two", LIMIT);
    let two = fake.hear("two").await;
    assert_eq!(two["params"], json!({"of": "two"}));
    fake.answer(&two, json!(2)).await;
    let error = json!({"code": -32801, "message": "changed\nmeanwhile", "data": {"again": true}});
    fake.send(json!({"jsonrpc": "2.0", "id": one["id"], "error": error})).await;
    assert_eq!(second.end().await, Ok(json!(2)));
    let message = "changed meanwhile".to_owned();
    let refusal = Refusal::Error { code: -32801, message, data: json!({"again": true}) };
    assert_eq!(first.end().await, Err(refusal));
    let nothing = asking(&link, "three", LIMIT);
    let three = fake.hear("three").await;
    fake.send(json!({"jsonrpc": "2.0", "id": three["id"]})).await;
    assert_eq!(nothing.end().await, Ok(Value::Null), "an answer without a result is null");
    assert!(!link.asked());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_waits_for_is_called_off() {
    let (link, mut fake, _) = met(json!({})).await;
    let began = Instant::now();
    assert_eq!(link.request("slow", Value::Null, LIMIT).await, Err(Refusal::Late));
    assert!(began.elapsed() < LIMIT + Duration::from_millis(200));
    let slow = fake.hear("slow").await;
    assert!(slow.get("params").is_none());
    assert_eq!(fake.hear("$/cancelRequest").await["params"]["id"], slow["id"]);
    let dropped = asking(&link, "dropped", LIMIT);
    let asked = fake.hear("dropped").await;
    drop(dropped);
    assert_eq!(fake.hear("$/cancelRequest").await["params"]["id"], asked["id"]);
    for _ in 0..1_000 {
        fake.answer(&asked, json!(1)).await;
    }
    let good = asking(&link, "good", LIMIT);
    let asked = fake.hear("good").await;
    fake.answer(&asked, json!(1)).await;
    fake.answer(&asked, json!(2)).await;
    assert_eq!(good.end().await, Ok(json!(1)), "answers to what was called off are no noise");
    assert_eq!(link.why_closed(), None);
}

#[tokio::test(start_paused = true)]
async fn no_more_questions_are_open_than_may_be() {
    let (link, mut fake, _) = met(json!({})).await;
    let mut all: Vec<_> = (0..OPEN).map(|_| asking(&link, "many", LIMIT)).collect();
    for _ in 0..OPEN {
        fake.hear("many").await;
    }
    let refused = link.request("one more", Value::Null, LIMIT).await;
    assert!(matches!(refused, Err(Refusal::Error { .. })), "{refused:?}");
    all.pop();
    fake.hear("$/cancelRequest").await;
    assert_eq!(link.request("now", Value::Null, LIMIT).await, Err(Refusal::Late));
    fake.hear("now").await;
    drop(fake);
    for each in all {
        assert!(matches!(each.end().await, Err(Refusal::Lost(_) | Refusal::Late)));
    }
}

#[tokio::test(start_paused = true)]
async fn everything_ends_at_once_with_the_connection() {
    for (bytes, why) in [
        (&b""[..], "it closed its output"),
        (b"Content-Length: 10\r\n\r\nhalf", "in the middle of a message"),
        (b"Content-Len", "in the middle of a message"),
        (b"Content-Length: 104857600\r\n\r\n", "more than 16 MB"),
        (b"Content-Length: x\r\n\r\n", "cannot be told"),
    ] {
        let (link, mut fake, _) = met(json!({})).await;
        let waiting = asking(&link, "x", Duration::from_secs(60));
        let idle = link.idle(LIMIT);
        fake.hear("x").await;
        let began = Instant::now();
        fake.write(bytes).await;
        let _ = fake.writer.shutdown().await;
        let Err(Refusal::Lost(said)) = waiting.end().await else { panic!("{why}") };
        assert!(said.contains(why), "{said}");
        assert!(began.elapsed() < Duration::from_millis(100));
        let after = link.request("y", Value::Null, LIMIT).await;
        assert_eq!(after, Err(Refusal::Lost(said)), "the same is said afterwards");
        link.notify("z", Value::Null);
        assert!(idle.await && !link.asked());
        link.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_answered_but_not_for_ever() {
    let (link, mut fake, notes) = met(json!({})).await;
    let items = json!({"items": [{"section": "a"}]});
    fake.ask(json!("odd id"), "workspace/configuration", items).await;
    let said = fake.read().await;
    assert_eq!((&said["id"], &said["result"]), (&json!("odd id"), &json!([1])));
    fake.ask(json!(7), "no/such", Value::Null).await;
    assert_eq!(fake.read().await["error"]["code"], -32601);
    fake.ask(json!(8), "window/showMessageRequest", json!({"message": "\u{1b}[31mUpdate\n?"}))
        .await;
    assert_eq!(fake.read().await["result"], Value::Null);
    assert_eq!(*lock(&notes.0), ["fake: Update ?"]);
    for _ in 0..100 {
        fake.tell("window/logMessage", json!({"message": "x".repeat(10_000)})).await;
    }
    for id in 0..150 {
        fake.ask(json!(id), "no/such", Value::Null).await;
        fake.read().await;
    }
    assert!(lock(&notes.0).len() <= 21 && link.why_closed().is_none());
    assert!(lock(&notes.0).iter().all(|line| line.chars().count() < 420));
    for id in 0..100 {
        fake.ask(json!(id), "no/such", Value::Null).await;
    }
    link.closed().await;
    assert!(link.why_closed().unwrap().contains("200 things in a second"));
}

#[tokio::test(start_paused = true)]
async fn noise_is_passed_over_until_it_is_too_much() {
    let (link, mut fake, _) = met(json!({})).await;
    for body in
        ["", "null", "[]", "{}", "{\"id\":99999}", "{\"id\":\"x\",\"result\":1}", "{\"id\":-1}"]
    {
        fake.write(&framed(body.as_bytes())).await;
    }
    fake.write(&framed(b"\xff\xfe")).await;
    fake.write(&framed("[".repeat(100_000).as_bytes())).await;
    let good = asking(&link, "good", LIMIT);
    let asked = fake.hear("good").await;
    fake.answer(&asked, json!(1)).await;
    assert_eq!(good.end().await, Ok(json!(1)));
    for id in 0..200 {
        fake.send(json!({"jsonrpc": "2.0", "id": 5_000 + id, "result": 1})).await;
    }
    link.closed().await;
    assert!(link.why_closed().unwrap().contains("too much that is no message"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_too_many_parts_is_not_taken_apart() {
    let (link, mut fake, _) = met(json!({})).await;
    let waiting = asking(&link, "x", LIMIT);
    let asked = fake.hear("x").await;
    let many = format!("{{\"id\":{},\"result\":[{}0]}}", asked["id"], "0,".repeat(500_000));
    let many = framed(many.as_bytes());
    let sent = tokio::time::timeout(LIMIT, fake.write(&many));
    let (said, sent) = tokio::join!(waiting.end(), sent);
    sent.unwrap();
    let Err(Refusal::Error { message, .. }) = said else { panic!("{said:?}") };
    assert!(message.contains("too large"), "{message}");
    assert_eq!(link.why_closed(), None);
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_read_is_given_up() {
    let (link, fake, _) = met(json!({})).await;
    let text = "x".repeat(1 << 20);
    link.notify("textDocument/didOpen", json!({"text": text}));
    let began = Instant::now();
    let said = link.request("x", Value::Null, Duration::from_secs(1)).await;
    assert_eq!((said, began.elapsed().as_millis() / 100), (Err(Refusal::Late), 10));
    link.closed().await;
    assert!(link.why_closed().unwrap().contains("for 5 s"), "{:?}", link.why_closed());
    assert!(began.elapsed() < Duration::from_secs(6));
    drop(fake);

    let (link, _fake, _) = met(json!({})).await;
    for _ in 0..100 {
        link.notify("textDocument/didOpen", json!({"text": text}));
    }
    let queued = link.wire.queued.load(Ordering::Relaxed);
    assert!(link.why_closed().unwrap().contains("does not read") && queued < QUEUE + (2 << 20));
}

#[tokio::test(start_paused = true)]
async fn one_that_stays_silent_is_given_up_after_three_questions() {
    let limit = Duration::from_secs(4);
    let (link, mut fake, _) = met(json!({})).await;
    for round in 0..3 {
        assert_eq!(link.why_closed(), None, "{round}");
        let (one, two) = (asking(&link, "a", limit), asking(&link, "b", limit));
        assert_eq!(one.end().await, Err(Refusal::Late));
        assert!(two.end().await.is_err(), "it is there all the same");
    }
    assert!(link.why_closed().unwrap().contains("3 questions in a row"));
    fake.hear("a").await;

    let (link, mut fake, _) = met(json!({})).await;
    for _ in 0..9 {
        assert_eq!(link.request("a", Value::Null, limit).await, Err(Refusal::Late));
        fake.tell("$/progress", json!({})).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(link.why_closed(), None, "it is slow, but there");
    for _ in 0..9 {
        let soon = Duration::from_millis(100);
        assert_eq!(link.request("a", Value::Null, soon).await, Err(Refusal::Late));
    }
    assert_eq!(link.why_closed(), None, "nobody gave it time");
}

#[tokio::test(start_paused = true)]
async fn what_it_offers_is_what_it_said_or_registered() {
    let (link, mut fake, _) =
        met(json!({"hoverProvider": true, "definitionProvider": false})).await;
    assert!(link.offers("textDocument/hover") && !link.offers("textDocument/definition"));
    assert!(!link.offers("textDocument/diagnostic") && !link.watches("a.c"));
    let registrations = json!({"registrations": [
        {"id": "d", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "x"}},
        {"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": [
            {"globPattern": {"baseUri": "file:///w/sub", "pattern": "**/*.c"}},
            {"globPattern": "*.h"}]}},
        {"id": "c", "method": "textDocument/prepareCallHierarchy"},
    ]});
    fake.ask(json!(1), "client/registerCapability", registrations).await;
    assert_eq!(fake.read().await["result"], Value::Null);
    assert_eq!(link.options("textDocument/diagnostic"), Some(json!({"identifier": "x"})));
    assert!(link.watches("sub/a.c") && !link.watches("a.c"));
    assert!(link.watches("sub/a.h") && !link.watches("a.h"), "it begins at its root");
    assert!(link.offers("callHierarchy/incomingCalls"));
    let gone = json!({"unregisterations": [{"id": "d", "method": "textDocument/diagnostic"}]});
    fake.ask(json!(2), "client/unregisterCapability", gone).await;
    fake.read().await;
    assert!(!link.offers("textDocument/diagnostic") && link.watches("sub/a.c"));
}

#[tokio::test(start_paused = true)]
async fn one_waits_for_its_work_but_no_longer_than_wanted() {
    let (link, mut fake, _) = met(json!({})).await;
    assert!(link.idle(Duration::ZERO).await && link.busy().is_none());
    let begin = json!({"kind": "begin", "title": "indexing", "percentage": 45});
    fake.tell("$/progress", json!({"token": 1, "value": begin})).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(link.busy().as_deref(), Some("indexing 45 %"));
    assert!(!link.idle(LIMIT).await);
    let end = json!({"token": 1, "value": {"kind": "end"}});
    let (idle, ()) = tokio::join!(link.idle(LIMIT), fake.tell("$/progress", end));
    assert!(idle && link.busy().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_first_answer_that_makes_no_sense_is_no_connection() {
    for (answer, why) in [
        (json!({"result": {"capabilities": null}}), "was not understood"),
        (json!({"result": [1]}), "was not understood"),
        (json!({"error": {"code": 1, "message": "no licence"}}), "refused to start: no licence"),
    ] {
        let (meeting, mut fake, _) = meeting();
        let hello = async {
            let asked = fake.read().await;
            let mut answer = answer.clone();
            answer["id"] = asked["id"].clone();
            fake.send(answer).await;
        };
        let (link, ()) = tokio::join!(Link::meet(meeting), hello);
        let said = link.err().unwrap();
        assert!(said.contains(why), "{said}");
    }
}
