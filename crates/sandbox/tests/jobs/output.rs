//! Tests of the output and the standard input of commands.

use crate::support::{
    block_on, is_soak, output_text, run_command, spawn_spec, spawn_spec_with_stdin, start_command,
    wait_until,
};
use std::time::{Duration, Instant};
use windlass_sandbox::{Error, ProcessExit, StdinMode, SupervisorClient};

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let row = status.lines().find(|row| row.starts_with("VmRSS:")).unwrap();
    row.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub fn stdout_and_stderr_keep_their_order() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let script = "for i in {1..500}; do echo out $i; echo err $i >&2; done";
        let (text, _) = run_command(&jobs, script).await;
        let expected: String = (1..=500).map(|i| format!("out {i}\nerr {i}\n")).collect();
        assert_eq!(text, expected);
    });
}

pub fn output_still_in_a_pipe_at_exit_is_read() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let mut late = 0;
        for _ in 0..20 {
            let job = start_command(&jobs, "exec > >(cat; echo end); echo begin").await;
            job.wait_for_exit().await;
            late += i32::from(output_text(&job) != "begin\nend\n");
            job.wait_until_gone().await;
            wait_until("the last output", || output_text(&job) == "begin\nend\n").await;
            let (text, _) =
                run_command(&jobs, "sleep 5 & head -c 60000 /dev/zero | tr '\\0' x").await;
            assert_eq!(text.len(), 60_000, "the content of a pipe that stays open is read");
        }
        // On a busy machine the other side of the pipe may write after the exit.
        assert!(late <= 4, "{late} of 20 outputs were late");
        jobs.end_all().await;
    });
}

pub fn a_flood_is_counted_exactly_in_bounded_memory() {
    block_on(async {
        let jobs = SupervisorClient::new();
        start_command(&jobs, "yes | head -c 10000000").await.wait_for_exit().await;
        let before = resident_kib();
        let seconds = if is_soak() { 10 } else { 2 };
        let job = start_command(&jobs, "exec yes").await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let grown = resident_kib().saturating_sub(before);
        job.kill().await;
        let report = job.wait_for_exit().await;
        let output = job.output();
        assert_eq!(report.exit, ProcessExit::Signal(15));
        println!(
            "yes for {seconds} s: {} MB, {grown} KiB more resident",
            output.total_bytes / 1_000_000
        );
        assert!(grown < 20_000, "{grown} KiB");
        assert_eq!(output.total_lines, output.total_bytes.div_ceil(2));
        assert!(output.total_bytes > 20_000_000, "{}", output.total_bytes);
        for count in [1u64, 2, 65_535, 65_536, 65_537, 327_680, 327_681, 5_000_001] {
            let job = start_command(&jobs, &format!("yes | head -c {count}")).await;
            job.wait_for_exit().await;
            let output = job.output();
            assert_eq!((output.total_bytes, output.total_lines), (count, count.div_ceil(2)));
            let kept = (output.head.len() + output.tail.len()) as u64;
            assert_eq!(kept, count.min(327_680));
        }
    });
}

pub fn three_hundred_megabytes_are_counted() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let began = Instant::now();
        let script = "head -c 300000000 /dev/zero; printf 'the end'";
        let job = start_command(&jobs, script).await;
        job.wait_for_exit().await;
        let output = job.output();
        println!("300 MB took {:?}", began.elapsed());
        assert_eq!((output.total_bytes, output.total_lines), (300_000_007, 1));
        assert!(output.tail.ends_with(b"\0the end"));
        assert_eq!(output.dropped_bytes(), 300_000_007 - (320 << 10));
    });
}

pub fn output_that_is_not_utf8_is_preserved() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job = start_command(&jobs, "printf '\\000\\377\\x80a\\033[1m\\r\\n'").await;
        job.wait_for_exit().await;
        assert_eq!(job.output().head, b"\0\xff\x80a\x1b[1m\r\n");
        let chunk = job.output_since(0);
        assert_eq!(chunk.text, "\0\u{fffd}\u{fffd}a\x1b[1m\r\n");
        assert_eq!(chunk.next_offset, job.output().total_bytes);
    });
}

pub fn endless_background_output_does_not_delay_the_exit() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let began = Instant::now();
        let job = start_command(&jobs, "yes & echo done").await;
        let report = job.wait_for_exit().await;
        assert!(
            began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
            "{:?}",
            began.elapsed()
        );
        assert_eq!((report.leftover.len(), report.leftover[0].name.as_str()), (1, "yes"));
        let first = job.output().total_bytes;
        wait_until("more output", || job.output().total_bytes > first + 10_000_000).await;
        job.kill().await;
        assert!(job.is_gone());
    });
}

pub fn output_can_be_watched() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job =
            start_command(&jobs, "for i in {1..60}; do echo line $i; sleep 0.01; done; sleep 0.3")
                .await;
        let mut watch = job.watch_output();
        let mut updates = Vec::new();
        let mut offset = 0;
        let mut chunks = String::new();
        let watching = async {
            while watch.changed().await.is_ok() {
                let preview = watch.borrow_and_update().clone();
                updates.push((Instant::now(), preview.clone()));
                let chunk = job.output_since(offset);
                chunks += &chunk.text;
                offset = chunk.next_offset;
            }
        };
        tokio::select! { () = watching => {}, _ = job.wait_for_exit() => {} }
        chunks += &job.output_since(offset).text;
        assert!((3..20).contains(&updates.len()), "{} times", updates.len());
        // The last update comes when the reader thread ends, without the usual interval.
        let steps = updates.windows(2).take(updates.len().saturating_sub(2));
        assert!(steps.into_iter().all(|two| two[1].0 - two[0].0 > Duration::from_millis(60)));
        assert!(updates.iter().any(|(_, preview)| preview.last_lines.lines().count() == 5));
        assert_eq!(job.watch_output().borrow().last_lines.lines().last(), Some("line 60"));
        assert_eq!(chunks, output_text(&job));
    });
}

pub fn stdin_is_closed_or_written() {
    block_on(async {
        let jobs = SupervisorClient::new();
        assert_eq!(run_command(&jobs, "cat; echo end").await.0, "end\n");
        let echo = "while read -r x && [ \"$x\" != . ]; do echo \"$x\"; done; echo end";
        let job = jobs.start(spawn_spec_with_stdin(StdinMode::Pipe, echo)).await.unwrap();
        job.write_stdin(b"one\n").await.unwrap();
        wait_until("the echo", || output_text(&job) == "one\n").await;
        job.write_stdin("zwei é\n.\n".as_bytes()).await.unwrap();
        job.wait_for_exit().await;
        assert_eq!(output_text(&job), "one\nzwei é\nend\n");
        let closed = start_command(&jobs, "true").await;
        assert!(matches!(closed.write_stdin(b"x").await, Err(Error::NoStdin)));

        let job = jobs
            .start(spawn_spec_with_stdin(StdinMode::Pipe, "head -c 3000000 | wc -c"))
            .await
            .unwrap();
        job.write_stdin(&vec![b'x'; 3_000_000]).await.unwrap();
        job.wait_for_exit().await;
        assert_eq!(output_text(&job).trim(), "3000000");
    });
}

pub fn a_process_that_does_not_read_stdin_blocks_no_writer() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job = jobs.start(spawn_spec_with_stdin(StdinMode::Pipe, "sleep 600")).await.unwrap();
        let large = vec![b'x'; 1 << 20];
        let short = Duration::from_millis(300);
        assert!(tokio::time::timeout(short, job.write_stdin(&large)).await.is_err());
        let job = jobs.start(spawn_spec_with_stdin(StdinMode::Pipe, "sleep 600")).await.unwrap();
        let began = Instant::now();
        let result = job.write_stdin(&large).await;
        let Err(Error::StdinNotRead { written, total }) = result else { panic!("{result:?}") };
        assert!((1..1 << 20).contains(&written) && total == 1 << 20, "{written} of {total}");
        assert!(
            began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(10)),
            "{:?}",
            began.elapsed()
        );
        job.write_stdin(b"").await.unwrap();
        job.kill().await;
        assert!(matches!(job.write_stdin(&large).await, Err(Error::StdinClosed)));
        let job = jobs
            .start(spawn_spec_with_stdin(StdinMode::Pipe, "exec <&-; echo on; sleep 600"))
            .await
            .unwrap();
        wait_until("the start", || output_text(&job) == "on\n").await;
        let error = job.write_stdin(b"x").await.unwrap_err().to_string();
        assert!(error.contains("closed its stdin"), "{error}");
        job.kill().await;
    });
}

pub fn a_long_command_runs() {
    block_on(async {
        let jobs = SupervisorClient::new();
        for (text, count) in [("x", 60_000), ("é\u{1}\"", 20_000), ("\\\n", 30_000)] {
            let long = text.repeat(count);
            let job = start_command(&jobs, &format!("cat <<'END' | wc -c\n{long}\nEND")).await;
            job.wait_for_exit().await;
            assert_eq!(output_text(&job).trim(), (long.len() + 1).to_string());
        }
        let mut large = spawn_spec("env | wc -c");
        for number in 0..200 {
            large.env.push((format!("NAME_{number}").into(), "v".repeat(2000).into()));
        }
        let job = jobs.start(large).await.unwrap();
        job.wait_for_exit().await;
        assert!(output_text(&job).trim().parse::<u64>().unwrap() > 400_000);
    });
}

pub fn concurrent_jobs_are_kept_apart() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let began = Instant::now();
        let mut all = Vec::new();
        for number in 0..50 {
            let script =
                format!("for i in 1 2 3; do echo {number}; sleep 0.05; done; exit {number}");
            all.push(start_command(&jobs, &script).await);
        }
        for (number, job) in all.iter().enumerate() {
            let report = job.wait_for_exit().await;
            assert_eq!(report.exit, ProcessExit::Code(number as i32));
            assert!(report.leftover.is_empty(), "{:?}", report.leftover);
            assert_eq!(output_text(job), format!("{number}\n").repeat(3));
        }
        println!("50 at once took {:?}", began.elapsed());
        wait_until("the end of all jobs", || all.iter().all(|job| job.is_gone())).await;
        run_command(&jobs, "true").await;
        assert!(jobs.list().len() <= 33, "the oldest jobs are removed: {}", jobs.list().len());
    });
}

pub fn a_command_inherits_nothing() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let mut spec = spawn_spec(
            "env; umask; ls -l /proc/self/fd | grep -c ' -> '; ps -o sid= -p $$ || true; trap",
        );
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(b"\xff\xfe".to_vec());
        spec.env.push(("ODD".into(), odd));
        let job = jobs.start(spec).await.unwrap();
        job.wait_for_exit().await;
        let output = String::from_utf8_lossy(&job.output().head).into_owned();
        let raw = job.output().head;
        assert!(raw.windows(6).any(|part| part == b"ODD=\xff\xfe"), "{output}");
        let names: Vec<&str> =
            output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let allowed = ["PATH", "ODD", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"];
        assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
        // Stdin, stdout, stderr, and the folder that `ls` reads.
        assert!(output.lines().any(|line| line == "4"), "{output}");
        let pid = job.pid().unwrap().to_string();
        assert!(
            output.lines().any(|line| line.trim() == pid),
            "the command leads its own session: {output}"
        );
        assert!(!output.contains("trap --"), "no signal is ignored: {output}");
    });
}
