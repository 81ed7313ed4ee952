//! From a grant to a job: what a yes opens, and what it does not.

use crate::yard::{alive, nap, run, until};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use windlass_permission::{Decision, Grant, Policy, Rules};
use windlass_protocol::{Access, Answer, Mode, SessionId};
use windlass_sandbox::{
    Backend, Error, Exit, Hooks, Hosts, Reach, Shell, Start, Stdin, Task, Walls, Word, Workspace,
    World, probe,
};

fn bubblewrap() -> Walls {
    let backend = probe().backend.clone();
    assert!(matches!(backend, Backend::Bubblewrap { .. }), "{:?}", probe().words);
    Walls::Exactly(backend)
}

const NOBODY: &str = "\"00000000-0000-0000-0000-000000000000\"";

/// A workspace with everything a command needs.
struct Site {
    folder: TempDir,
    workspace: Workspace,
    session: SessionId,
}

impl Site {
    fn new(walls: Walls, reach: Reach) -> Site {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = folder.path().join("w");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        // What a project brings along is not the shell, wherever the search path leads.
        let fake = root.join("bin/bash");
        std::fs::write(&fake, "#!/bin/sh\necho fake\n").unwrap();
        std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let path = format!("{}:/usr/bin:/bin", root.join("bin").display());
        let shell = Shell {
            walls,
            inherited: vec![("PATH".into(), path.into())],
            reach,
            write: Vec::new(),
            home: None,
            private: Vec::new(),
            hooks: Hooks::Skip,
        };
        let workspace = Workspace::at(&root).unwrap().with_shell(shell);
        Site { folder, workspace, session: serde_json::from_str(NOBODY).unwrap() }
    }

    fn world(&self, accesses: Vec<Access>, mode: Mode) -> World {
        let rules = Rules::parse(&serde_json::json!("allow")).unwrap();
        let policy = Policy::new(rules).in_mode(mode);
        let grant: Grant = match policy.decide(accesses, &[]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(question) => question.answered(&Answer::Once).unwrap(),
            Decision::Denied { reason } => panic!("{reason}"),
        };
        self.workspace.look(grant)
    }

    async fn start(&self, command: &str, more: Vec<Access>) -> Arc<Task> {
        self.start_in(Mode::Auto, command, more).await
    }

    async fn start_in(&self, mode: Mode, command: &str, mut more: Vec<Access>) -> Arc<Task> {
        more.push(Access::Run { command: command.to_owned(), folder: ".".to_owned() });
        let (session, stdin) = (self.session, Stdin::Pipe);
        let start = Start { session, command, folder: ".", stdin };
        self.world(more, mode).start(start).await.unwrap()
    }
}

fn text(task: &Task) -> String {
    let heard = task.heard();
    String::from_utf8_lossy(&[heard.head, heard.tail].concat()).into_owned()
}

fn whole() -> Access {
    Access::Connect { host: "*".to_owned() }
}

pub fn what_was_let_out_gets_no_input() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let command = "cat; echo over";
        let free = site.start(command, Vec::new()).await;
        free.write(b"on\n").await.unwrap();
        until("its echo", || text(&free) == "on\n").await;
        for more in [Access::Leave { command: command.to_owned() }, whole()] {
            let task = site.start(command, vec![more.clone()]).await;
            task.ended().await;
            assert_eq!(text(&task), "over\n", "{more:?}");
            assert!(matches!(task.write(b"x").await, Err(Error::NoInput)), "{more:?}");
        }
        site.workspace.end_jobs(site.session).await;
    });
}

pub fn the_shell_is_the_systems_and_its_folder_its_own() {
    run(async {
        for walls in [bubblewrap(), Walls::Exactly(Backend::Landlock), Walls::Off] {
            let site = Site::new(walls.clone(), Reach::Listed(Hosts::none()));
            let command = "echo real; stat -c %a \"$TMPDIR\"; cat";
            let task = site.start(command, Vec::new()).await;
            until("its words", || text(&task) == "real\n700\n").await;
            site.workspace.end_jobs(site.session).await;
            assert!(task.gone(), "{walls:?}");
        }
    });
}

/// A session that was dropped in the middle of everything could say nothing.
pub fn a_session_that_goes_without_a_word_leaves_nothing() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let (news, nap) = (site.workspace.news(site.session), nap());
        let task = site.start(&format!("sleep {nap} & sleep {nap}"), Vec::new()).await;
        until("its sleepers", || alive(&nap).len() >= 2).await;
        let again = site.workspace.news(site.session);
        drop(news);
        assert!(!task.gone() && alive(&nap).len() >= 2, "the session was opened again");
        drop(again);
        until("the end", || task.gone() && alive(&nap).is_empty()).await;
    });
}

/// Whoever keeps copies of files asks this number whether to compare them.
pub fn files_count_as_stirred_while_a_command_runs_and_once_more_after_it() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let mut news = site.workspace.news(site.session);
        let before = site.workspace.stirred();
        assert_eq!(site.workspace.stirred(), before);
        let task = site.start("read line; echo x > made.txt", Vec::new()).await;
        let (one, two) = (site.workspace.stirred(), site.workspace.stirred());
        assert!(before < one && one < two);
        task.write(b"on\n").await.unwrap();
        until("its end", || task.gone()).await;
        let after = site.workspace.stirred();
        assert!(two < after, "it may have changed something since it was last asked");
        assert_eq!(site.workspace.stirred(), after);
        let found = site.workspace.census(&|path| path.ends_with(".txt"), 10);
        assert!(
            matches!(found.as_slice(), [(path, glance)] if path == "made.txt" && glance.size == 2)
        );
        assert!(site.workspace.census(&|_| true, 0).is_empty());

        site.workspace.tell(site.session, "something".to_owned());
        assert!(matches!(news.recv().await, Some(Word::Tell(text)) if text == "something"));
        drop(news);
        // Nobody is there to hear it.
        site.workspace.tell(site.session, "nothing".to_owned());
    });
}

pub fn only_its_own_processes_are_named() {
    run(async {
        for walls in [bubblewrap(), Walls::Exactly(Backend::Landlock)] {
            let site = Site::new(walls.clone(), Reach::Listed(Hosts::none()));
            let nap = nap();
            // A program that merely bears the name of what holds a cage open.
            let command = format!("cp /usr/bin/sleep bwrap; ./bwrap {nap} & sleep 0.2");
            let task = site.start(&command, Vec::new()).await;
            let ending = task.ended().await;
            let names: Vec<&str> = ending.still.iter().map(|left| left.name.as_str()).collect();
            assert_eq!((names.as_slice(), ending.more), (&["bwrap"][..], 0), "{walls:?}");
            assert!(ending.still[0].line.contains(&nap), "{ending:?}");
            site.workspace.end_jobs(site.session).await;
            assert!(alive(&nap).is_empty());
        }
    });
}

pub fn what_leads_to_the_network_ends_with_the_command_and_is_not_repeated() {
    run(async {
        let hosts = Hosts::parse(&["listed.invalid".to_owned()]).unwrap();
        let site = Site::new(bubblewrap(), Reach::Listed(hosts));
        let script = "echo $HTTPS_PROXY; printf 'windlass:%s' \"${HTTPS_PROXY#*windlass:}\" | \
                      sed 's/@.*//' | tr -d '\\n' | base64 -w0; echo; \
                      for i in 1 2 3; do curl -sS -m 5 http://other.invalid/; done; \
                      python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & \
                      for i in {1..50}; do curl -s -m 5 http://localhost:8123/ && break; \
                      sleep 0.1; done; kill %1";
        let task = site.start(script, Vec::new()).await;
        task.ended().await;
        let raw = text(&task);
        let token = raw.split("windlass:").nth(1).unwrap().split('@').next().unwrap().to_owned();
        assert!(token.len() > 20, "{raw}");
        let encoded = raw.lines().nth(1).unwrap().to_owned();
        assert!(raw.contains("Directory listing"), "its own loopback is reached: {raw}");
        let pieces: String = task.unread().into_iter().map(|piece| piece.text).collect();
        for told in [pieces, task.mask(&raw)] {
            assert!(!told.contains(&token) && !told.contains(&encoded), "{told}");
            assert!(told.contains("windlass:…@127.0.0.1"), "{told}");
        }
        let reached = task.reached(0);
        assert_eq!(reached.len(), 1, "{reached:?}");
        assert_eq!((reached[0].host.as_str(), reached[0].times), ("other.invalid:80", 3));
        let remarks = task.last_remarks().join("\n");
        assert!(remarks.contains("other.invalid:80"), "{remarks}");
        assert!(task.last_remarks().is_empty(), "they are made once");
        site.workspace.end_jobs(site.session).await;
    });
}

pub fn landlock_has_no_network_and_the_model_is_told() {
    run(async {
        let hosts = Hosts::parse(&["listed.invalid".to_owned()]).unwrap();
        let site = Site::new(Walls::Exactly(Backend::Landlock), Reach::Listed(hosts));
        let task = site.start("env | grep -ci proxy; exec 3<>/dev/tcp/127.0.0.1/1", vec![whole()]);
        let task = task.await;
        assert_ne!(task.ended().await.exit, Exit::Code(0));
        assert!(text(&task).starts_with("0\n"), "{}", text(&task));
        let remarks = task.last_remarks().join("\n");
        assert!(remarks.contains("needs bubblewrap"), "{remarks}");
        site.workspace.end_jobs(site.session).await;
    });
}

pub fn nothing_is_written_in_plan() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let task = site.start_in(Mode::Plan, "echo x > new", Vec::new()).await;
        task.ended().await;
        assert!(!Path::new(&site.folder.path().join("w/new")).exists());
        assert!(task.last_remarks().join("\n").contains("Nothing can be written"));
        site.workspace.end_jobs(site.session).await;
    });
}

pub fn jobs_are_told_of_and_can_be_ended() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let mut news = site.workspace.news(site.session);
        let awaited = site.start("echo one", Vec::new()).await;
        awaited.ended().await;
        let nap = nap();
        let left = site.start(&format!("echo begun; sleep {nap}"), Vec::new()).await;
        let world = site.world(Vec::new(), Mode::Auto);
        world.announce(site.session, &left);
        until("it speaks", || left.watch().borrow().last.contains("begun")).await;
        let now = windlass_protocol::Millis(1_000_000);
        let rows: Vec<_> = site.workspace.jobs(site.session).iter().map(|it| it.row(now)).collect();
        assert_eq!(rows.len(), 1, "what is waited for is no job: {rows:?}");
        assert_eq!((rows[0].id, rows[0].running, rows[0].exit), (left.id(), true, None));
        assert!(rows[0].tail == "begun" && rows[0].since <= now, "{rows:?}");
        assert!(site.workspace.job(site.session, awaited.id()).is_none());
        // Looking at it takes nothing away from whoever reads it.
        assert_eq!(left.heard_on(&mut 0)[0].text, left.unread()[0].text);
        // Its beginning is told, and what it says.
        let mut heard = news.recv().await;
        while !matches!(&heard, Some(Word::Job(job)) if job.row(now).tail == "begun") {
            heard = news.recv().await;
        }
        site.workspace.job(site.session, left.id()).unwrap().kill().await;
        let (mut told, mut gone) = (String::new(), false);
        while told.is_empty() || !gone {
            match news.recv().await {
                Some(Word::Tell(text)) => told = text,
                Some(Word::Job(job)) => gone = !job.row(now).running,
                None => panic!("the end was not told"),
            }
        }
        assert!(told.starts_with(&format!("Job {} has ended", left.id())), "{told}");
        assert!(!site.workspace.jobs(site.session)[0].row(now).running);
        assert_eq!(alive(&nap), Vec::<i32>::new());
    });
}

/// Somebody who says a lot is not listened to all the time.
pub fn a_job_that_never_stops_talking_is_told_of_now_and_then() {
    run(async {
        let site = Site::new(bubblewrap(), Reach::Listed(Hosts::none()));
        let mut news = site.workspace.news(site.session);
        let talker = site.start("seq 1 30000; yes", Vec::new()).await;
        site.world(Vec::new(), Mode::Auto).announce(site.session, &talker);
        let (start, mut words) = (std::time::Instant::now(), 0);
        while start.elapsed() < std::time::Duration::from_secs(2) {
            let word = tokio::time::timeout(std::time::Duration::from_secs(2), news.recv()).await;
            assert!(matches!(word, Ok(Some(Word::Job(_)))));
            words += 1;
        }
        assert!((2..=8).contains(&words), "{words}");
        let said = talker.said();
        assert!(said.len() <= 32 << 10 && said.lines().all(|line| line == "y"), "{}", said.len());
        talker.kill().await;
    });
}
