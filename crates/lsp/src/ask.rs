//! Questions about code: who is asked, how, and what is done where the answer is empty.
//!
//! Start reading at [`ask`].

use crate::document::LONGEST;
use crate::house::{House, kind};
use crate::name::{near, ranked};
use crate::place::{Encoding, Point, Text};
use crate::server::Server;
use crate::show::{self, Order, Places, Raw};
use crate::sweep;
use crate::talk::{Link, Refusal};
use crate::{Answer, At, Question};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;
use windlass_sandbox::{Entry, World};
use windlass_toolkit::{Cx, Failure};

/// How long a call waits for a server's start.
const START: Duration = Duration::from_secs(30);
/// How long it waits for a server that has much to do before it can answer.
const BUSY: Duration = Duration::from_secs(20);
/// How many servers are started to look for symbols.
const STARTED: usize = 3;
/// How often a server that has only just heard of a file is asked again, and how soon.
const AGAIN: u32 = 5;
const SOON: Duration = Duration::from_millis(200);
/// How many names beside an empty place are tried.
const TRIED: usize = 3;

impl At {
    /// What the model calls it.
    fn name(self) -> &'static str {
        match self {
            At::Definition => "goToDefinition",
            At::References => "findReferences",
            At::Hover => "hover",
            At::Implementation => "goToImplementation",
            At::Calls => "prepareCallHierarchy",
            At::Incoming => "incomingCalls",
            At::Outgoing => "outgoingCalls",
        }
    }

    /// What the protocol calls it.
    fn method(self) -> &'static str {
        match self {
            At::Definition => "textDocument/definition",
            At::References => "textDocument/references",
            At::Hover => "textDocument/hover",
            At::Implementation => "textDocument/implementation",
            At::Calls | At::Incoming | At::Outgoing => "textDocument/prepareCallHierarchy",
        }
    }

    /// What may do instead, where a server does not know it.
    fn instead(self) -> &'static str {
        match self {
            At::Definition => "use grep",
            At::References | At::Hover => "use goToDefinition or grep",
            At::Implementation | At::Calls | At::Incoming => "use findReferences or grep",
            At::Outgoing => "use goToDefinition or read",
        }
    }
}

/// Asks about code.
pub(crate) async fn ask(house: &House, cx: &Cx<'_>, question: Question) -> Result<Answer, Failure> {
    let asking = Asking { house, cx };
    let work = async {
        match question {
            Question::At { what, path, line, character } => {
                asking.at(what, &path, (line, character)).await
            }
            Question::Outline { path } => asking.outline(&path).await,
            Question::Symbols { path, query } => asking.symbols(path.as_deref(), &query).await,
        }
    };
    tokio::select! {
        biased;
        () = cx.cancel.cancelled() => Err(Failure::new("interrupted before there was an answer")),
        answer = work => answer,
    }
}

struct Asking<'a> {
    house: &'a House,
    cx: &'a Cx<'a>,
}

/// A server that runs, and the file it was asked about.
struct Open {
    server: Arc<Server>,
    link: Arc<Link>,
    path: String,
    text: Text,
    hope: Hope,
}

/// Why a server that knows nothing may know something soon.
struct Hope {
    /// How often it is asked again, as it has only just heard of the file.
    again: u32,
    /// If it is busy, it is waited for once.
    idle: bool,
}

impl Asking<'_> {
    /// Has the first server that knows an operation open a file.
    async fn open(&self, path: &str, operation: Operation) -> Result<Open, Failure> {
        let path = self.cx.world.locate(path)?;
        let text = self.text(&path).await?;
        let mut unable = Vec::new();
        let servers = self.house.serving(&self.cx.world, &path);
        if servers.is_empty() {
            let absent = self.house.absent(&self.cx.world, &path);
            return Err(Failure::new(absent.unwrap_or_default()));
        }
        for server in servers {
            let link = self.link(&server).await?;
            if link.offers(operation.method) {
                let again = if link.desk().document(&path).is_some() { 0 } else { AGAIN };
                self.hold(&link, &path, &text);
                let hope = Hope { again, idle: true };
                return Ok(Open { server, link, path, text, hope });
            }
            unable.push(server.row().name.clone());
        }
        let Operation { name, instead, .. } = operation;
        let verb = if unable.len() == 1 { "does" } else { "do" };
        Err(Failure::new(format!("{} {verb} not know {name}; {instead}", unable.join(" and "))))
    }

    fn hold(&self, link: &Arc<Link>, path: &str, text: &Text) {
        sweep::compare(self.house, &self.cx.world, link);
        sweep::begin(self.house, link);
        let send = |(method, params)| link.notify(method, params);
        let glance = self.house.workspace().glance(path);
        link.desk().hold(&send, (path, text.whole()), glance);
    }

    async fn link(&self, server: &Arc<Server>) -> Result<Arc<Link>, Failure> {
        if let Some(link) = server.ready() {
            return Ok(link);
        }
        self.cx.caller.progress(format!("{} is starting", server.row().name));
        server.link(START).await.map_err(Failure::new)
    }

    async fn text(&self, path: &str) -> Result<Text, Failure> {
        let path = path.to_owned();
        self.cx
            .blocking(move |world| {
                let Entry::File(file) = world.read(&path)? else {
                    return Err(Failure::new(format!("{path} is a folder; name a file")));
                };
                let mut bytes = Vec::new();
                let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
                let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
                if let Err(error) = read {
                    return Err(Failure::new(format!("{path} could not be read: {error}")));
                }
                if bytes.len() > LONGEST {
                    let words = format!("{path} is too long for language servers; use grep");
                    return Err(Failure::new(words));
                }
                let text = sweep::decode(bytes);
                let words = || format!("{path} is not UTF-8 text, which language servers need");
                Ok(Text::new(text.ok_or_else(|| Failure::new(words()))?))
            })
            .await
    }

    /// Asks a server, and once more if it ended meanwhile.
    async fn request(&self, open: &mut Open, ask: &Ask) -> Result<Value, Failure> {
        let limit = self.house.patience().answer;
        let name = open.server.row().name.clone();
        for again in [true, false] {
            match open.link.request(ask.method, ask.params.clone(), limit).await {
                Ok(answer) => return Ok(answer),
                Err(Refusal::Lost(_)) if again => {
                    let again = open.server.link_again(START).await;
                    open.link = again.map_err(Failure::new)?;
                    self.hold(&open.link, &open.path, &open.text);
                }
                Err(refusal) => return Err(Failure::new(refused(&name, refusal, limit))),
            }
        }
        Err(Failure::new(format!("{name} ended twice; use grep")))
    }

    /// Asks about a place, and about a name beside it if there is nothing.
    async fn at(
        &self,
        what: At,
        path: &str,
        (line, character): (u32, u32),
    ) -> Result<Answer, Failure> {
        let operation =
            Operation { name: what.name(), method: what.method(), instead: what.instead() };
        let mut open = self.open(path, operation).await?;
        let encoding = open.link.encoding();
        let Some(point) = open.text.theirs(line, character, encoding) else {
            let lines = open.text.lines();
            return Err(Failure::new(format!(
                "{path} has {lines} lines, so there is nothing at line {line}. Lines count from 1, \
                 as read shows them"
            )));
        };
        let mut answer = self.place(what, &mut open, point).await?;
        while answer.is_none() && self.may_know_soon(&mut open.hope, &open.server, &open.link).await
        {
            answer = self.place(what, &mut open, point).await?;
        }
        let mut notes = Vec::new();
        if answer.is_none() {
            let source = open.text.line(line - 1).to_owned();
            for (at, name) in near(&source, character).into_iter().take(TRIED) {
                let point = open.text.theirs(line, at, encoding).unwrap_or(point);
                answer = self.place(what, &mut open, point).await?;
                if answer.is_some() {
                    notes.push(format!(
                        "nothing at {line}:{character}; this is for `{name}` at {line}:{at}"
                    ));
                    break;
                }
            }
        }
        let answer = match answer {
            None => self.nothing(&open, what.name()),
            Some(Said::Prose(prose)) => Answer { prose, ..Answer::default() },
            Some(Said::Places(raws)) => self.places(encoding, Order::Sorted, raws).await?,
        };
        let notes = notes.into_iter().chain(answer.notes).collect();
        Ok(Answer { notes, ..answer })
    }

    /// What a server says of one place; none if it says nothing.
    async fn place(
        &self,
        what: At,
        open: &mut Open,
        point: Point,
    ) -> Result<Option<Said>, Failure> {
        let mut params = json!({
            "textDocument": {"uri": open.link.desk().uri(&open.path)},
            "position": point.json(),
        });
        if let (At::References, Some(params)) = (what, params.as_object_mut()) {
            params.insert("context".into(), json!({"includeDeclaration": true}));
        }
        let answer = self.request(open, &Ask { method: what.method(), params }).await?;
        let raws = match what {
            At::Hover => {
                let prose = show::hover(&answer);
                return Ok((!prose.is_empty()).then_some(Said::Prose(prose)));
            }
            At::Definition | At::References | At::Implementation => show::locations(&answer),
            At::Calls => show::callables(&answer),
            At::Incoming | At::Outgoing => {
                let Some(item) = answer.get(0) else { return Ok(None) };
                let params = json!({"item": item});
                let incoming = what == At::Incoming;
                let method = match incoming {
                    true => "callHierarchy/incomingCalls",
                    false => "callHierarchy/outgoingCalls",
                };
                let answer = self.request(open, &Ask { method, params }).await?;
                if incoming { show::callers(&answer) } else { show::callees(&answer) }
            }
        };
        Ok((!raws.is_empty()).then_some(Said::Places(raws)))
    }

    /// Waits until a server may know more than it did: one that is busy until it is not, one that
    /// has only just heard of the file for a moment. False if there is nothing to wait for.
    async fn may_know_soon(&self, hope: &mut Hope, server: &Server, link: &Link) -> bool {
        if let Some(busy) = link.busy() {
            self.cx.caller.progress(format!("{}: {busy}", server.row().name));
            return std::mem::take(&mut hope.idle) && link.idle(BUSY).await;
        }
        let Some(left) = hope.again.checked_sub(1) else { return false };
        hope.again = left;
        tokio::time::sleep(SOON).await;
        true
    }

    fn nothing(&self, open: &Open, name: &str) -> Answer {
        let server = &open.server.row().name;
        let note = match open.link.busy() {
            Some(busy) => format!("{server} is still at work ({busy}); ask again later"),
            None => format!("{server} knows nothing for {name} there"),
        };
        Answer { notes: vec![note], ..Answer::default() }
    }

    async fn places(
        &self,
        encoding: Encoding,
        order: Order,
        raws: Vec<Raw>,
    ) -> Result<Answer, Failure> {
        let root = self.house.workspace().root().to_owned();
        let found = move |world: &World| Ok(show::places(world, &root, encoding, order, &raws));
        Ok(told(self.cx.blocking(found).await?))
    }

    /// The symbols of a file.
    async fn outline(&self, path: &str) -> Result<Answer, Failure> {
        let operation = Operation {
            name: "documentSymbol",
            method: "textDocument/documentSymbol",
            instead: "use grep",
        };
        let mut open = self.open(path, operation).await?;
        let uri = open.link.desk().uri(&open.path);
        let params = json!({"textDocument": {"uri": uri}});
        let ask = Ask { method: operation.method, params };
        let mut raws = show::outline(&self.request(&mut open, &ask).await?, &uri);
        while raws.is_empty() && self.may_know_soon(&mut open.hope, &open.server, &open.link).await
        {
            raws = show::outline(&self.request(&mut open, &ask).await?, &uri);
        }
        if raws.is_empty() {
            return Ok(self.nothing(&open, operation.name));
        }
        self.places(open.link.encoding(), Order::Given, raws).await
    }

    /// The symbols of the workspace.
    async fn symbols(&self, path: Option<&str>, query: &str) -> Result<Answer, Failure> {
        let operation = Operation {
            name: "workspaceSymbol",
            method: "workspace/symbol",
            instead: "use documentSymbol or grep",
        };
        if let Some(path) = path {
            let mut open = self.open(path, operation).await?;
            let ask = Ask { method: operation.method, params: json!({"query": query}) };
            let mut raws = show::symbols(&self.request(&mut open, &ask).await?);
            while raws.is_empty()
                && self.may_know_soon(&mut open.hope, &open.server, &open.link).await
            {
                raws = show::symbols(&self.request(&mut open, &ask).await?);
            }
            if raws.is_empty() {
                return Ok(self.nothing(&open, operation.name));
            }
            let raws = ranked(query, raws);
            return self.places(open.link.encoding(), Order::Given, raws).await;
        }
        let servers = self.everyone();
        if servers.is_empty() {
            return Err(Failure::new(
                "No language server is known for what stands at the root. Name a filePath whose \
                 server is to be asked, or use grep",
            ));
        }
        let asked = servers.iter().map(|server| self.look_for(server, operation, query));
        let mut whole = Answer::default();
        for answer in join_all(asked).await {
            match answer {
                Ok(answer) => {
                    whole.found.extend(answer.found);
                    whole.notes.extend(answer.notes);
                }
                Err(failure) => whole.notes.push(failure.text),
            }
        }
        Ok(whole)
    }

    /// Servers that run, and a few that would serve what stands at the root.
    fn everyone(&self) -> Vec<Arc<Server>> {
        let mut all = self.house.running();
        let mut started = 0;
        for server in self.house.at_root(&self.cx.world) {
            if started < STARTED && !all.iter().any(|known| Arc::ptr_eq(known, &server)) {
                started += 1;
                all.push(server);
            }
        }
        all
    }

    async fn look_for(
        &self,
        server: &Arc<Server>,
        operation: Operation,
        query: &str,
    ) -> Result<Answer, Failure> {
        let link = self.link(server).await?;
        let name = &server.row().name;
        let Operation { name: asked, method, instead } = operation;
        if !link.offers(method) {
            return Err(Failure::new(format!("{name} does not know {asked}; {instead}")));
        }
        let mut hope = Hope { again: self.introduce(server, &link).await?, idle: true };
        let limit = self.house.patience().answer;
        let raws = loop {
            let answer = link.request(method, json!({"query": query}), limit).await;
            let answer = answer.map_err(|refusal| Failure::new(refused(name, refusal, limit)))?;
            let raws = show::symbols(&answer);
            if !raws.is_empty() || !self.may_know_soon(&mut hope, server, &link).await {
                break raws;
            }
        };
        self.places(link.encoding(), Order::Given, ranked(query, raws)).await
    }

    /// Opens some file of the project at a server that knows none: many look at nothing before.
    /// Says how often it may be asked again because of that.
    async fn introduce(&self, server: &Server, link: &Arc<Link>) -> Result<u32, Failure> {
        if !link.desk().recent().is_empty() {
            return Ok(0);
        }
        let (row, workspace) = (server.row().clone(), self.house.workspace().clone());
        let first = move |world: &World| {
            let found = workspace.census(&|path| kind(&row, path).is_some(), 1).into_iter().next();
            let text = found.and_then(|(path, _)| Some((sweep::text(world, &path)?, path)));
            Ok(text.filter(|(text, _)| text.len() <= LONGEST))
        };
        let Some((text, path)) = self.cx.blocking(first).await? else { return Ok(0) };
        self.hold(link, &path, &Text::new(text));
        Ok(3 * AGAIN)
    }
}

/// What is asked, by all its names.
#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    method: &'static str,
    instead: &'static str,
}

struct Ask {
    method: &'static str,
    params: Value,
}

/// What a server said of a place.
enum Said {
    Prose(String),
    Places(Vec<Raw>),
}

fn refused(name: &str, refusal: Refusal, limit: Duration) -> String {
    match refusal {
        Refusal::Error { message, .. } => {
            format!("{name} could not answer: {}", crate::judge::cut(message.trim(), 300))
        }
        Refusal::Late => {
            format!("{name} did not answer within {} s. Try again, or use grep", limit.as_secs())
        }
        Refusal::Lost(why) => format!("{name} has ended ({why}). Try again, or use grep"),
    }
}

fn told(places: Places) -> Answer {
    let mut notes = Vec::new();
    if places.more > 0 {
        notes.push(format!("and {} more; narrow the question", places.more));
    }
    match places.hidden {
        0 => {}
        1 => notes.push("1 result in a file that may not be read is left out".to_owned()),
        more => notes.push(format!("{more} results in files that may not be read are left out")),
    }
    Answer { found: places.found, prose: String::new(), notes }
}
