//! A workspace, names of its own, and somebody who fetches.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Answer, Author, BlobRef, CallId, Mode, Outcome, SessionId};
use windlass_sandbox::{Hosts, Names, Workspace};
use windlass_testkit::site::{Asked, Piece, Site};
use windlass_toolkit::{Call, Caller, Failure, Intent, Permit, Registry, Runtime, Scene};
use windlass_tools::Senses;
use windlass_web::Web;

/// What a name leads to, one answer after the other; the last one stays.
pub type Answers = Vec<Vec<&'static str>>;

pub struct Book {
    own: Mutex<Vec<(&'static str, Answers)>>,
    pub looked_up: Mutex<Vec<String>>,
}

impl Names for Book {
    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        self.looked_up.lock().unwrap().push(name.to_owned());
        let mut own = self.own.lock().unwrap();
        let Some((_, answers)) = own.iter_mut().find(|(known, _)| *known == name) else {
            // All names of tests lead to the loopback.
            return if name.ends_with(".test") { vec![[127, 0, 0, 1].into()] } else { Vec::new() };
        };
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        answer.iter().map(|address| address.parse().unwrap()).collect()
    }
}

/// Somebody who says yes, and keeps what they see.
#[derive(Default)]
pub struct Person {
    pub asked: Mutex<Vec<String>>,
    pub reached: Mutex<Vec<(String, Option<String>)>>,
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Permit {
        match intent.asking {
            Some(_) => {
                let hosts = intent.accesses.iter().map(|access| access.subject().to_owned());
                self.asked.lock().unwrap().extend(hosts);
                Permit::Look
            }
            None => Permit::Answer(Answer::Once),
        }
    }

    async fn ask(&self, _: Option<String>) -> Answer {
        Answer::Once
    }

    fn reached(&self, host: String, refused: Option<String>) {
        self.reached.lock().unwrap().push((host, refused));
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        Ok(BlobRef::of(&bytes))
    }
}

/// A site, and a workspace to fetch from it in.
pub struct Yard {
    pub site: Site,
    pub book: Arc<Book>,
    pub person: Person,
    runtime: Runtime,
    _folder: TempDir,
}

/// Where the hosts of a test may be.
#[derive(Clone, Copy)]
pub enum Inside {
    /// `a.test` to `d.test` may be on this machine, at the site's port.
    Listed,
    /// None may.
    None,
}

impl Yard {
    pub fn new(answer: impl Fn(&Asked) -> Vec<Piece> + Send + Sync + 'static) -> Yard {
        Yard::with(Inside::Listed, |_| json!({}), Vec::new(), answer)
    }

    pub fn with(
        inside: Inside,
        rules: impl Fn(u16) -> Value,
        names: Vec<(&'static str, Answers)>,
        answer: impl Fn(&Asked) -> Vec<Piece> + Send + Sync + 'static,
    ) -> Yard {
        let site = Site::start(answer);
        let port = site.port();
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let hosts: Vec<String> = match inside {
            Inside::Listed => {
                ["a", "b", "c", "d"].iter().map(|name| format!("{name}.test:{port}")).collect()
            }
            Inside::None => Vec::new(),
        };
        let book = Arc::new(Book { own: Mutex::new(names), looked_up: Mutex::default() });
        let workspace = Workspace::at(folder.path())
            .unwrap()
            .with_inside(Hosts::parse(&hosts).unwrap())
            .with_names(Arc::clone(&book) as Arc<dyn Names>);
        let registry = Registry::default();
        let web = Web::new(Vec::new(), "windlass/test".to_owned());
        windlass_tools::register(
            &registry,
            &Senses { web: Some(Arc::new(web)), ..Senses::default() },
        );
        let rules = Rules::parse(&rules(port)).unwrap();
        let runtime = Runtime {
            registry,
            hooks: Vec::new(),
            policy: Policy::new(rules).in_mode(Mode::Auto),
            workspace,
            limits: Default::default(),
        };
        Yard { site, book, person: Person::default(), runtime, _folder: folder }
    }

    /// Fetches a path of `a.test`.
    pub fn get(&self, path: &str) -> Outcome {
        self.fetch(json!({"url": self.url("a", path)}))
    }

    pub fn url(&self, name: &str, path: &str) -> String {
        format!("http://{name}.test:{}{path}", self.site.port())
    }

    pub fn fetch(&self, arguments: Value) -> Outcome {
        self.fetch_until(arguments, CancellationToken::new())
    }

    pub fn fetch_until(&self, arguments: Value, cancel: CancellationToken) -> Outcome {
        run(async {
            let snapshot = self.runtime.snapshot(&Scene::default()).await;
            let call = Call {
                session: SessionId(Default::default()),
                id: CallId(Default::default()),
                by: Author::Model,
                tool: "webfetch".to_owned(),
                arguments: arguments.to_string(),
            };
            self.runtime.travel(&snapshot, call, &self.person, cancel).await
        })
    }

    /// The paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        self.site.asked().into_iter().map(|asked| asked.path).collect()
    }
}

/// Runs something that must not take long.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), work).await };
    runtime.block_on(limited).expect("it ends")
}

/// A call that failed, in these words.
#[track_caller]
pub fn failed(outcome: &Outcome, words: &str) {
    assert!(!matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert!(outcome.text().contains(words), "{words:?} is not in {:?}", outcome.text());
}

/// A call that did what it should, with these words in it.
#[track_caller]
pub fn done(outcome: &Outcome, words: &str) {
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert!(outcome.text().contains(words), "{words:?} is not in {:?}", outcome.text());
}

/// The most memory this process has had, in bytes.
pub fn memory() -> u64 {
    windlass_testkit::memory::most() * 1024
}
