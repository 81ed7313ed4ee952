//! Commands on a terminal of their own.

use crate::yard::{alive, nap, run, text, until, with};
use windlass_sandbox::{Exit, Jobs, Stdin};

const TERMINAL: Stdin = Stdin::Terminal { rows: 31, cols: 97 };

pub fn it_is_a_terminal_of_the_size_that_was_asked_for() {
    run(async {
        let jobs = Jobs::new();
        let script = "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo x >/dev/tty; exit 5";
        let job = jobs.start(with(TERMINAL, script)).await.unwrap();
        let ending = job.ended().await;
        let said = text(&job);
        assert_eq!(ending.exit, Exit::Code(5), "{said}");
        let lines: Vec<&str> = said.split("\r\n").collect();
        assert!(lines[0].starts_with("/dev/pts/"), "{said}");
        assert_eq!(&lines[1..], ["31 97", "all", "x", ""], "line ends stay as a terminal has them");
        until("its leaving", || job.gone()).await;
    });
}

pub fn a_conversation_works() {
    run(async {
        let jobs = Jobs::new();
        let job = jobs.start(with(TERMINAL, "python3 -i -c 'print(1+1)'")).await.unwrap();
        until("its prompt", || text(&job).contains(">>>")).await;
        job.write(b"6*7*1000\n").await.unwrap();
        until("its answer", || text(&job).contains("42000")).await;
        let place = job.read().bytes;
        job.write(b"import sys; sys.stdout.isatty()\n").await.unwrap();
        until("its answer", || job.read_on(place).text.contains("True")).await;
        job.write(b"\x04").await.unwrap();
        assert_eq!(job.ended().await.exit, Exit::Code(0));
    });
}

pub fn what_is_typed_can_interrupt() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let job = jobs.start(with(TERMINAL, &format!("echo on; sleep {nap}"))).await.unwrap();
        until("its start", || text(&job).contains("on") && !alive(&nap).is_empty()).await;
        job.write(b"\x03").await.unwrap();
        assert!(matches!(job.ended().await.exit, Exit::Signal(2) | Exit::Code(130)));
        assert!(text(&job).contains("^C"));
        until("the end of the nap", || alive(&nap).is_empty()).await;
    });
}

pub fn what_it_starts_ends_with_it() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let script = format!("setsid -f sleep {nap}; bash -i -c 'sleep {nap} & sleep {nap}'; true");
        let job = jobs.start(with(TERMINAL, &script)).await.unwrap();
        until("its naps", || alive(&nap).len() >= 5).await;
        job.kill_after(std::time::Duration::from_millis(300)).await;
        assert!(job.gone());
        assert_eq!(alive(&nap), [0; 0]);
        job.ended().await;
    });
}
