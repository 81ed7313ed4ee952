//! Tests of hostile tools: a call ends in time, uses little memory, and the next one works.

use crate::support::{TestEnv, TestUser, python, run, text};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{CallOutcome, PermissionMode};

/// Returns the resident memory of this process in MiB.
fn resident_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    (pages * 4096) >> 20
}

/// Returns a tool that misbehaves as the argument `do` says.
fn rogue_program() -> String {
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

pub fn every_hostile_call_ends_in_time_and_the_next_one_works() {
    run(async {
        let env = TestEnv::new("rogue", &rogue_program()).await;
        assert_eq!(env.text("rogue", json!({})).await, "fine");
        let before = resident_mib();
        for (action, expected) in [
            ("hang", "did not answer within 1500 ms"),
            ("flood", "output that was not requested"),
            ("progress", "did not answer within 1500 ms"),
            ("die", "exited with code 3"),
            ("nonsense", "`hello, world`"),
            ("wrong id", "did not answer within 1500 ms"),
            ("no id", "not a valid response"),
            ("text id", "not a valid response"),
            ("neither", "neither `result` nor `error`"),
            ("number", "invalid response"),
            ("long line", "more than 8 MiB"),
            ("long answer", "more than 8 MiB"),
            ("deep", "not a valid response"),
            ("bytes", "not a valid response"),
            ("close", "did not answer within 1500 ms"),
            ("asks", "questions"),
            ("complain", "fine"),
            ("twice", "fine"),
        ] {
            let started = Instant::now();
            let text = env.text("rogue", json!({"do": action})).await;
            let elapsed = started.elapsed();
            println!("{action}: {elapsed:?}");
            assert!(text.contains(expected), "{action}: {text}");
            assert!(text.len() < 4_000, "{action}: {} bytes", text.len());
            assert!(
                elapsed < windlass_testkit::time_limits::limit(Duration::from_secs(8)),
                "{action}: {elapsed:?}"
            );
            assert_eq!(env.text("rogue", json!({})).await, "fine", "after {action}");
        }
        let growth = resident_mib().saturating_sub(before);
        assert!(growth < 100, "{growth} MiB more");
    });
}

pub fn a_program_without_a_valid_description_fails() {
    run(async {
        for (program, expected) in [
            ("#!/bin/sh\nsleep 600\n", "did not answer `describe` within 10 s"),
            ("#!/bin/sh\nexit 4\n", "exited with code 4"),
            ("#!/no/such/thing\n", ""),
            ("#!/bin/sh\necho hello\n", "not a valid response"),
            ("#!/bin/sh\necho '{\"id\":1,\"error\":\"no key\"}'\nsleep 9\n", "no key"),
            ("#!/bin/sh\nhead -c 9000000 /dev/zero\nsleep 9\n", "8 MiB"),
        ] {
            let env = TestEnv::without_describe("t", program, None);
            let started = Instant::now();
            let failure = env.program.describe().await.unwrap_err();
            assert!(failure.text.contains(expected), "{program}: {}", failure.text);
            assert!(
                started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(14)),
                "{program}"
            );
        }
    });
}

pub fn a_process_that_does_not_stop_is_ended() {
    run(async {
        let definition = json!({"name": "t", "description": "x"});
        let body = "open('pid', 'w').write(str(os.getpid()))\n\
                    time.sleep(0 if os.path.exists('quick') else 600)\nsay(result='done')";
        let env = TestEnv::new("t", &python(&definition, body)).await;
        let cancel = CancellationToken::new();
        let stop = async {
            while !env.path("pid").exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            cancel.cancel();
        };
        let user = TestUser::default();
        let call = env.call_as(PermissionMode::Full, "t", json!({}), &user, cancel.clone());
        let started = Instant::now();
        let (outcome, ()) = tokio::join!(call, stop);
        assert!(matches!(outcome, CallOutcome::Interrupted { .. }), "{outcome:?}");
        assert!(started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(4)));
        std::fs::write(env.path("quick"), "").unwrap();
        assert_eq!(env.text("t", json!({})).await, "done");
    });
}

pub fn a_dropped_read_only_call_does_not_affect_the_next_one() {
    run(async {
        let definition = json!({"name": "t", "description": "x", "access": {"read": []},
            "schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
        let body = "n = ask['arguments']['n']\ntime.sleep(n)\nsay(result=str(n))";
        let env = TestEnv::new("t", &python(&definition, body)).await;
        for (first, limit) in [(0.5, 4), (600.0, 6)] {
            let cancel = CancellationToken::new();
            let stop = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                cancel.cancel();
            };
            let user = TestUser::default();
            let call =
                env.call_as(PermissionMode::Full, "t", json!({"n": first}), &user, cancel.clone());
            let (outcome, ()) = tokio::join!(call, stop);
            assert!(text(outcome).starts_with("interrupted"));
            let started = Instant::now();
            assert_eq!(env.text("t", json!({"n": 0})).await, "0", "after {first}");
            assert!(started.elapsed() < Duration::from_secs(limit), "after {first}");
        }
    });
}

pub fn a_failing_tool_is_retried_after_a_delay() {
    run(async {
        let env = TestEnv::without_describe("t", "#!/bin/sh\nexit 5\n", None);
        assert!(env.program.describe().await.unwrap_err().text.contains("exited with code 5"));
        let text = env.program.describe().await.unwrap_err().text;
        assert!(text.contains("can be retried in 1 s"), "{text}");
    });
}
