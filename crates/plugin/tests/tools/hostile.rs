//! What no tool should do. A call ends in time, in little memory, and the next one works.

use crate::yard::{Person, Yard, python, run, text};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{Mode, Outcome};

/// What this process has in memory, in MiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    (pages * 4096) >> 20
}

/// One that does as the argument `do` says.
fn rogue() -> String {
    let definition = json!({"name": "rogue", "description": "x", "access": {"read": []},
        "timeout_ms": 1500,
        "schema": {"type": "object", "properties": {"do": {"type": "string"}}}});
    python(
        &definition,
        r#"
def flood(piece, times):
    try:
        for _ in range(times): sys.stdout.write(piece)
        sys.stdout.flush()
    except BrokenPipeError: os._exit(1)
do = ask["arguments"].get("do")
if do is None: say(result="fine")
elif do == "hang": time.sleep(600)
elif do == "flood": flood(json.dumps({"id": 99999, "result": "x"}) + "\n", 10000000)
elif do == "progress": flood(json.dumps({"id": ask["id"], "progress": "x" * 1000}) + "\n", 1000000)
elif do == "die":
    sys.stdout.write('{"id": ' + str(ask["id"]) + ', "resu'); sys.stdout.flush(); os._exit(3)
elif do == "nonsense": print("hello, world", flush=True)
elif do == "wrong id": print(json.dumps({"id": 4711, "result": "x"}), flush=True)
elif do == "no id": print(json.dumps({"result": "x"}), flush=True)
elif do == "text id": print(json.dumps({"id": str(ask["id"]), "result": "x"}), flush=True)
elif do == "neither": say()
elif do == "number": say(result=7)
elif do == "long line": flood("x" * (1 << 20), 1024)
elif do == "long answer": say(result="x" * (9 << 20))
elif do == "deep": print('{"id": %d, "result": %s' % (ask["id"], "[" * 100000), flush=True)
elif do == "bytes": sys.stdout.buffer.write(b"\xff\xfe\x00\n"); sys.stdout.flush()
elif do == "close": os.close(1); time.sleep(600)
elif do == "asks": 
    while True: say(ask={"question": "more?"}); sys.stdin.readline()
elif do == "complain":
    for _ in range(20): sys.stderr.write("x" * (1 << 20))
    say(result="fine")
elif do == "twice": say(result="fine"); say(result="again")
"#
        .trim(),
    )
}

pub fn whatever_it_does_a_call_ends_in_time_and_the_next_one_works() {
    run(async {
        let yard = Yard::new("rogue", &rogue()).await;
        assert_eq!(yard.text("rogue", json!({})).await, "fine");
        let before = resident();
        for (what, says) in [
            ("hang", "did not answer within 1500 ms"),
            ("flood", "more than anybody asked for"),
            ("progress", "did not answer within 1500 ms"),
            ("die", "exited with code 3"),
            ("nonsense", "`hello, world`"),
            ("wrong id", "did not answer within 1500 ms"),
            ("no id", "no answer"),
            ("text id", "no answer"),
            ("neither", "neither `result` nor `error`"),
            ("number", "not understood"),
            ("long line", "more than 8 MiB"),
            ("long answer", "more than 8 MiB"),
            ("deep", "no answer"),
            ("bytes", "no answer"),
            ("close", "did not answer within 1500 ms"),
            ("asks", "questions"),
            ("complain", "fine"),
            ("twice", "fine"),
        ] {
            let since = Instant::now();
            let said = yard.text("rogue", json!({"do": what})).await;
            let took = since.elapsed();
            println!("{what}: {took:?}");
            assert!(said.contains(says), "{what}: {said}");
            assert!(said.len() < 4_000, "{what}: {} bytes", said.len());
            assert!(took < Duration::from_secs(8), "{what}: {took:?}");
            assert_eq!(yard.text("rogue", json!({})).await, "fine", "after {what}");
        }
        let more = resident().saturating_sub(before);
        assert!(more < 100, "{more} MiB more");
    });
}

pub fn one_that_never_describes_itself_is_given_up() {
    run(async {
        for (program, says) in [
            ("#!/bin/sh\nsleep 600\n", "did not answer `describe` within 5 s"),
            ("#!/bin/sh\nexit 4\n", "exited with code 4"),
            ("#!/no/such/thing\n", ""),
            ("#!/bin/sh\necho hello\n", "no answer"),
            ("#!/bin/sh\necho '{\"id\":1,\"error\":\"no key\"}'\nsleep 9\n", "no key"),
            ("#!/bin/sh\nhead -c 9000000 /dev/zero\nsleep 9\n", "8 MiB"),
        ] {
            let yard = Yard::silent("t", program, None);
            let since = Instant::now();
            let failure = yard.program.describe().await.unwrap_err();
            assert!(failure.text.contains(says), "{program}: {}", failure.text);
            assert!(since.elapsed() < Duration::from_secs(8), "{program}");
        }
    });
}

pub fn one_that_does_not_stop_is_ended() {
    run(async {
        let definition = json!({"name": "t", "description": "x"});
        let body = "open('pid', 'w').write(str(os.getpid()))\n\
                    time.sleep(0 if os.path.exists('quick') else 600)\nsay(result='done')";
        let yard = Yard::new("t", &python(&definition, body)).await;
        let cancel = CancellationToken::new();
        let stop = async {
            while !yard.path("pid").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cancel.cancel();
        };
        let person = Person::default();
        let call = yard.call_as(Mode::Full, "t", json!({}), &person, cancel.clone());
        let since = Instant::now();
        let (outcome, ()) = tokio::join!(call, stop);
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{outcome:?}");
        assert!(since.elapsed() < Duration::from_secs(4));
        std::fs::write(yard.path("quick"), "").unwrap();
        assert_eq!(yard.text("t", json!({})).await, "done");
    });
}

pub fn a_looking_call_that_is_dropped_does_not_confuse_the_next() {
    run(async {
        let definition = json!({"name": "t", "description": "x", "access": {"read": []},
            "schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
        let body = "n = ask['arguments']['n']\ntime.sleep(n)\nsay(result=str(n))";
        let yard = Yard::new("t", &python(&definition, body)).await;
        for (first, limit) in [(0.5, 4), (600.0, 6)] {
            let cancel = CancellationToken::new();
            let stop = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            };
            let person = Person::default();
            let call = yard.call_as(Mode::Full, "t", json!({"n": first}), &person, cancel.clone());
            let (outcome, ()) = tokio::join!(call, stop);
            assert!(text(outcome).starts_with("interrupted"));
            let since = Instant::now();
            assert_eq!(yard.text("t", json!({"n": 0})).await, "0", "after {first}");
            assert!(since.elapsed() < Duration::from_secs(limit), "after {first}");
        }
    });
}

pub fn a_tool_that_keeps_failing_is_left_alone_for_a_while() {
    run(async {
        let yard = Yard::silent("t", "#!/bin/sh\nexit 5\n", None);
        assert!(yard.program.describe().await.unwrap_err().text.contains("exited with code 5"));
        let said = yard.program.describe().await.unwrap_err().text;
        assert!(said.contains("tried again in 1 s"), "{said}");
    });
}
