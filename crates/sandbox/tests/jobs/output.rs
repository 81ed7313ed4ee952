//! What commands say and read.

use crate::yard::{order, run, said, soak, start, text, until, with};
use std::time::{Duration, Instant};
use windlass_sandbox::{Error, Exit, Jobs, Stdin};

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let row = status.lines().find(|row| row.starts_with("VmRSS:")).unwrap();
    row.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub fn both_streams_keep_their_order() {
    run(async {
        let jobs = Jobs::new();
        let script = "for i in {1..500}; do echo out $i; echo err $i >&2; done";
        let (text, _) = said(&jobs, script).await;
        let expected: String = (1..=500).map(|i| format!("out {i}\nerr {i}\n")).collect();
        assert_eq!(text, expected);
    });
}

pub fn last_words_through_a_pipe_are_heard() {
    run(async {
        let jobs = Jobs::new();
        let mut late = 0;
        for _ in 0..20 {
            let job = start(&jobs, "exec > >(cat; echo end); echo begin").await;
            job.ended().await;
            late += i32::from(text(&job) != "begin\nend\n");
            job.left().await;
            until("its last words", || text(&job) == "begin\nend\n").await;
            let (text, _) = said(&jobs, "sleep 5 & head -c 60000 /dev/zero | tr '\\0' x").await;
            assert_eq!(text.len(), 60_000, "what is in the pipe is heard though it stays open");
        }
        // Nobody can tell how long the other side of a pipe takes on a busy machine.
        assert!(late <= 4, "{late} of 20 too late");
        jobs.end_all().await;
    });
}

pub fn a_flood_is_counted_exactly_in_bounded_memory() {
    run(async {
        let jobs = Jobs::new();
        start(&jobs, "yes | head -c 10000000").await.ended().await;
        let before = resident();
        let seconds = if soak() { 10 } else { 2 };
        let job = start(&jobs, "exec yes").await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let grown = resident().saturating_sub(before);
        job.kill().await;
        let ending = job.ended().await;
        let heard = job.read();
        assert_eq!(ending.exit, Exit::Signal(15));
        println!("yes for {seconds} s: {} MB, {grown} KiB more resident", heard.bytes / 1_000_000);
        assert!(grown < 20_000, "{grown} KiB");
        assert_eq!(heard.lines, heard.bytes.div_ceil(2));
        assert!(heard.bytes > 20_000_000, "{}", heard.bytes);
        for count in [1u64, 2, 65_535, 65_536, 65_537, 327_680, 327_681, 5_000_001] {
            let job = start(&jobs, &format!("yes | head -c {count}")).await;
            job.ended().await;
            let heard = job.read();
            assert_eq!((heard.bytes, heard.lines), (count, count.div_ceil(2)));
            let kept = (heard.head.len() + heard.tail.len()) as u64;
            assert_eq!(kept, count.min(327_680));
        }
    });
}

pub fn three_hundred_megabytes_are_counted() {
    run(async {
        let jobs = Jobs::new();
        let began = Instant::now();
        let script = "head -c 300000000 /dev/zero; printf 'the end'";
        let job = start(&jobs, script).await;
        job.ended().await;
        let heard = job.read();
        println!("300 MB took {:?}", began.elapsed());
        assert_eq!((heard.bytes, heard.lines), (300_000_007, 1));
        assert!(heard.tail.ends_with(b"\0the end"));
        assert_eq!(heard.missing(), 300_000_007 - (320 << 10));
    });
}

pub fn bytes_that_are_not_text_are_kept() {
    run(async {
        let jobs = Jobs::new();
        let job = start(&jobs, "printf '\\000\\377\\x80a\\033[1m\\r\\n'").await;
        job.ended().await;
        assert_eq!(job.read().head, b"\0\xff\x80a\x1b[1m\r\n");
        let piece = job.read_on(0);
        assert_eq!(piece.text, "\0\u{fffd}\u{fffd}a\x1b[1m\r\n");
        assert_eq!(piece.next, job.read().bytes);
    });
}

pub fn one_that_never_stops_talking_in_the_background_holds_up_nobody() {
    run(async {
        let jobs = Jobs::new();
        let began = Instant::now();
        let job = start(&jobs, "yes & echo done").await;
        let ending = job.ended().await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!((ending.still.len(), ending.still[0].name.as_str()), (1, "yes"));
        let first = job.read().bytes;
        until("more of it", || job.read().bytes > first + 10_000_000).await;
        job.kill().await;
        assert!(job.gone());
    });
}

pub fn what_it_says_can_be_watched() {
    run(async {
        let jobs = Jobs::new();
        let job =
            start(&jobs, "for i in {1..60}; do echo line $i; sleep 0.01; done; sleep 0.3").await;
        let mut watch = job.watch();
        let mut seen = Vec::new();
        let mut place = 0;
        let mut pieces = String::new();
        let watching = async {
            while watch.changed().await.is_ok() {
                let glimpse = watch.borrow_and_update().clone();
                seen.push((Instant::now(), glimpse.clone()));
                let piece = job.read_on(place);
                pieces += &piece.text;
                place = piece.next;
            }
        };
        tokio::select! { () = watching => {}, _ = job.ended() => {} }
        pieces += &job.read_on(place).text;
        assert!((3..20).contains(&seen.len()), "{} times", seen.len());
        // The last of them is the end of the thread's work, whenever that is.
        let steps = seen.windows(2).take(seen.len().saturating_sub(2));
        assert!(steps.into_iter().all(|two| two[1].0 - two[0].0 > Duration::from_millis(60)));
        assert!(seen.iter().any(|(_, glimpse)| glimpse.last.lines().count() == 5));
        assert_eq!(job.watch().borrow().last.lines().last(), Some("line 60"));
        assert_eq!(pieces, text(&job));
    });
}

pub fn its_input_is_closed_or_written() {
    run(async {
        let jobs = Jobs::new();
        assert_eq!(said(&jobs, "cat; echo end").await.0, "end\n");
        let echo = "while read -r x && [ \"$x\" != . ]; do echo \"$x\"; done; echo end";
        let job = jobs.start(with(Stdin::Pipe, echo)).await.unwrap();
        job.write(b"one\n").await.unwrap();
        until("its echo", || text(&job) == "one\n").await;
        job.write("zwei é\n.\n".as_bytes()).await.unwrap();
        job.ended().await;
        assert_eq!(text(&job), "one\nzwei é\nend\n");
        let closed = start(&jobs, "true").await;
        assert!(matches!(closed.write(b"x").await, Err(Error::NoInput)));

        let job = jobs.start(with(Stdin::Pipe, "head -c 3000000 | wc -c")).await.unwrap();
        job.write(&vec![b'x'; 3_000_000]).await.unwrap();
        job.ended().await;
        assert_eq!(text(&job).trim(), "3000000");
    });
}

pub fn one_that_does_not_read_holds_up_nobody() {
    run(async {
        let jobs = Jobs::new();
        let job = jobs.start(with(Stdin::Pipe, "sleep 600")).await.unwrap();
        let large = vec![b'x'; 1 << 20];
        let short = Duration::from_millis(300);
        assert!(tokio::time::timeout(short, job.write(&large)).await.is_err());
        let job = jobs.start(with(Stdin::Pipe, "sleep 600")).await.unwrap();
        let began = Instant::now();
        let unread = job.write(&large).await;
        let Err(Error::Unread { taken, whole }) = unread else { panic!("{unread:?}") };
        assert!((1..1 << 20).contains(&taken) && whole == 1 << 20, "{taken} of {whole}");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        job.write(b"").await.unwrap();
        job.kill().await;
        assert!(matches!(job.write(&large).await, Err(Error::Deaf)));
        let job = jobs.start(with(Stdin::Pipe, "exec <&-; echo on; sleep 600")).await.unwrap();
        until("its start", || text(&job) == "on\n").await;
        let words = job.write(b"x").await.unwrap_err().to_string();
        assert!(words.contains("no longer reads"), "{words}");
        job.kill().await;
    });
}

pub fn a_long_command_runs() {
    run(async {
        let jobs = Jobs::new();
        for (what, count) in [("x", 60_000), ("é\u{1}\"", 20_000), ("\\\n", 30_000)] {
            let long = what.repeat(count);
            let job = start(&jobs, &format!("cat <<'END' | wc -c\n{long}\nEND")).await;
            job.ended().await;
            assert_eq!(text(&job).trim(), (long.len() + 1).to_string());
        }
        let mut large = order("env | wc -c");
        for number in 0..200 {
            large.env.push((format!("NAME_{number}").into(), "v".repeat(2000).into()));
        }
        let job = jobs.start(large).await.unwrap();
        job.ended().await;
        assert!(text(&job).trim().parse::<u64>().unwrap() > 400_000);
    });
}

pub fn many_at_once_are_told_apart() {
    run(async {
        let jobs = Jobs::new();
        let began = Instant::now();
        let mut all = Vec::new();
        for number in 0..50 {
            let script =
                format!("for i in 1 2 3; do echo {number}; sleep 0.05; done; exit {number}");
            all.push(start(&jobs, &script).await);
        }
        for (number, job) in all.iter().enumerate() {
            let ending = job.ended().await;
            assert_eq!(ending.exit, Exit::Code(number as i32));
            assert!(ending.still.is_empty(), "{:?}", ending.still);
            assert_eq!(text(job), format!("{number}\n").repeat(3));
        }
        println!("50 at once took {:?}", began.elapsed());
        until("their leaving", || all.iter().all(|job| job.gone())).await;
        said(&jobs, "true").await;
        assert!(jobs.list().len() <= 33, "the oldest are forgotten: {}", jobs.list().len());
    });
}

pub fn nothing_is_inherited() {
    run(async {
        let jobs = Jobs::new();
        let mut order = order(
            "env; umask; ls -l /proc/self/fd | grep -c ' -> '; ps -o sid= -p $$ || true; trap",
        );
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(b"\xff\xfe".to_vec());
        order.env.push(("ODD".into(), odd));
        let job = jobs.start(order).await.unwrap();
        job.ended().await;
        let said = String::from_utf8_lossy(&job.read().head).into_owned();
        let raw = job.read().head;
        assert!(raw.windows(6).any(|part| part == b"ODD=\xff\xfe"), "{said}");
        let names: Vec<&str> =
            said.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let own = ["PATH", "ODD", "WINDLASS_JOB", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"];
        assert!(names.iter().all(|name| own.contains(name)), "{names:?}");
        // Input, both outputs, and the folder that ls itself reads.
        assert!(said.lines().any(|line| line == "4"), "{said}");
        let pid = job.pid().unwrap().to_string();
        assert!(said.lines().any(|line| line.trim() == pid), "a session of its own: {said}");
        assert!(!said.contains("trap --"), "no signal is ignored: {said}");
    });
}
