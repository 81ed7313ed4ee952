//! A workspace with a mock site, a mock name resolver and a caller that approves everything.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, PermissionAnswer, PermissionMode, SessionId,
};
use windlass_sandbox::{HostAllowlist, NameResolver, Workspace};
use windlass_testkit::mock_http_server::{MockHttpServer, RecordedRequest, ResponsePart};
use windlass_toolkit::{
    CallFailure, CallIntent, PermissionReply, Registry, StepContext, ToolCall, ToolCaller,
    ToolRuntime,
};
use windlass_tools::ToolIntegrations;
use windlass_web::WebClient;

/// Successive addresses of a name; the last entry repeats.
pub type ResolverAnswers = Vec<Vec<&'static str>>;

/// A resolver that records the names it resolves.
pub struct MockResolver {
    answers: Mutex<Vec<(&'static str, ResolverAnswers)>>,
    pub resolved_names: Mutex<Vec<String>>,
}

impl NameResolver for MockResolver {
    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        self.resolved_names.lock().unwrap().push(name.to_owned());
        let mut all_answers = self.answers.lock().unwrap();
        let Some((_, answers)) = all_answers.iter_mut().find(|(known, _)| *known == name) else {
            // All other test names resolve to the loopback address.
            return if name.ends_with(".test") { vec![[127, 0, 0, 1].into()] } else { Vec::new() };
        };
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        answer.iter().map(|address| address.parse().unwrap()).collect()
    }
}

/// A caller that approves everything, and records the requested and the reported hosts.
#[derive(Default)]
pub struct ApprovingCaller {
    pub asked_hosts: Mutex<Vec<String>>,
    pub reported_hosts: Mutex<Vec<(String, Option<String>)>>,
}

#[async_trait]
impl ToolCaller for ApprovingCaller {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        match intent.ask_reason {
            Some(_) => {
                let hosts = intent.accesses.iter().map(|access| access.subject().to_owned());
                self.asked_hosts.lock().unwrap().extend(hosts);
                PermissionReply::ShowPreview
            }
            None => PermissionReply::Answer(PermissionAnswer::Once),
        }
    }

    async fn ask_permission(&self, _: Option<String>) -> PermissionAnswer {
        PermissionAnswer::Once
    }

    fn report_host(&self, host: String, refused: Option<String>) {
        self.reported_hosts.lock().unwrap().push((host, refused));
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        Ok(BlobRef::for_bytes(&bytes))
    }
}

/// A mock site, and a workspace that fetches from it.
pub struct WebFetchTestEnv {
    pub site: MockHttpServer,
    pub resolver: Arc<MockResolver>,
    pub caller: ApprovingCaller,
    runtime: ToolRuntime,
    _folder: TempDir,
}

/// The hosts that may be on this machine.
#[derive(Clone, Copy)]
pub enum TestPrivateHosts {
    /// `a.test` to `d.test`, at the port of the site.
    TestHosts,
    None,
}

impl WebFetchTestEnv {
    pub fn new(
        answer: impl Fn(&RecordedRequest) -> Vec<ResponsePart> + Send + Sync + 'static,
    ) -> WebFetchTestEnv {
        WebFetchTestEnv::with(TestPrivateHosts::TestHosts, |_| json!({}), Vec::new(), answer)
    }

    pub fn with(
        private_hosts: TestPrivateHosts,
        rules: impl Fn(u16) -> Value,
        names: Vec<(&'static str, ResolverAnswers)>,
        answer: impl Fn(&RecordedRequest) -> Vec<ResponsePart> + Send + Sync + 'static,
    ) -> WebFetchTestEnv {
        let site = MockHttpServer::start(answer);
        let port = site.port();
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let hosts: Vec<String> = match private_hosts {
            TestPrivateHosts::TestHosts => {
                ["a", "b", "c", "d"].iter().map(|name| format!("{name}.test:{port}")).collect()
            }
            TestPrivateHosts::None => Vec::new(),
        };
        let resolver =
            Arc::new(MockResolver { answers: Mutex::new(names), resolved_names: Mutex::default() });
        let workspace = Workspace::open(folder.path())
            .unwrap()
            .with_private_hosts(HostAllowlist::parse(&hosts).unwrap())
            .with_name_resolver(Arc::clone(&resolver) as Arc<dyn NameResolver>);
        let registry = Registry::default();
        let web = WebClient::new(Vec::new(), "windlass/test".to_owned());
        windlass_tools::register(
            &registry,
            &ToolIntegrations { web: Arc::new(web), ..ToolIntegrations::default() },
        );
        let rules = PermissionRules::parse(&rules(port)).unwrap();
        let runtime = ToolRuntime {
            registry,
            hooks: Vec::new(),
            policy: Policy::new(rules).with_mode(PermissionMode::Auto),
            workspace,
            limits: Default::default(),
        };
        WebFetchTestEnv {
            site,
            resolver,
            caller: ApprovingCaller::default(),
            runtime,
            _folder: folder,
        }
    }

    /// Fetches a path of `a.test`.
    pub fn get(&self, path: &str) -> CallOutcome {
        self.fetch(json!({"url": self.url("a", path)}))
    }

    pub fn url(&self, name: &str, path: &str) -> String {
        format!("http://{name}.test:{}{path}", self.site.port())
    }

    pub fn fetch(&self, arguments: Value) -> CallOutcome {
        self.fetch_with_cancel(arguments, CancellationToken::new())
    }

    pub fn fetch_with_cancel(&self, arguments: Value, cancel: CancellationToken) -> CallOutcome {
        run(async {
            let snapshot = self.runtime.snapshot(&StepContext::default()).await;
            let call = ToolCall {
                session: SessionId(Default::default()),
                id: CallId(Default::default()),
                author: CallAuthor::Model,
                tool: "webfetch".to_owned(),
                arguments: arguments.to_string(),
                allowed_calls: Vec::new(),
            };
            self.runtime.execute(&snapshot, call, &self.caller, cancel).await
        })
    }

    /// Returns the requested paths.
    pub fn paths(&self) -> Vec<String> {
        self.site.requests().into_iter().map(|request| request.path).collect()
    }
}

/// Runs a future with a time limit.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), future).await };
    runtime.block_on(limited).expect("timed out")
}

/// Asserts that a call failed with a message that contains `text`.
#[track_caller]
pub fn assert_failed(outcome: &CallOutcome, text: &str) {
    assert!(!matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    assert!(outcome.text().contains(text), "{text:?} is not in {:?}", outcome.text());
}

/// Asserts that a call completed with an output that contains `text`.
#[track_caller]
pub fn assert_completed(outcome: &CallOutcome, text: &str) {
    assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
    assert!(outcome.text().contains(text), "{text:?} is not in {:?}", outcome.text());
}

/// Returns the peak memory of this process, in bytes.
pub fn peak_memory() -> u64 {
    windlass_testkit::peak_memory::peak_kb() * 1024
}
