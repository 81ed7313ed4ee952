//! What tools know of this folder besides its files: language servers, formatters and the web.
//!
//! Servers and formatters run what a project says, so there are none before its folder is trusted.
//! Which engine searches is the person's to say, so a project has no say in it.

use super::Setup;
use crate::{redact, screen};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_lsp::sign::Sign;
use windlass_lsp::{Code, Keeping, Patience, Row, Spec};
use windlass_permission::Decision;
use windlass_project::{Formatter, Journal, Keys, LanguageServer, Said, Standing};
use windlass_protocol::Access;
use windlass_toolkit::{Berth, Runtime};
use windlass_tools::Senses;
use windlass_tools::format::{self, Formats};
use windlass_web::{Engine, Web};

impl Setup {
    /// What tools know here. Nothing is started.
    pub(super) fn senses(&self, runtime: &Runtime) -> Senses {
        let trusted = self.config.standing == Standing::Trusted;
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        let servers = self.language_servers();
        let agent = format!("windlass/{}", env!("CARGO_PKG_VERSION"));
        let web = Some(Arc::new(Web::new(self.engines(), agent)));
        if !trusted {
            if servers.iter().any(|row| self.begins_here(row)) {
                screen::note(
                    "note: language servers and formatters start once you trust this folder: \
                     `windlass trust`",
                );
            }
            return Senses { web, ..Senses::default() };
        }
        let formats = self.formatters();
        let formats =
            (!formats.is_empty()).then(|| Arc::new(Formats::open(formats, berth.clone())));
        let keeping = Arc::new(Kept(Journal::of(&self.places, "lsp")));
        let spec = Spec { rows: servers, berth, keeping, patience: Patience::default() };
        let code = (!spec.rows.is_empty()).then(|| Code::open(spec));
        Senses { code, formats, web }
    }

    /// The engines that search, with the keys there are in the environment or where keys are kept, the
    /// person's choice first.
    fn engines(&self) -> Vec<Engine> {
        let senses = &self.config.senses;
        let known = windlass_web::engines();
        let keys = Keys::open(&self.places);
        let kept = keys.list().unwrap_or_default();
        let key = |engine: &Engine| {
            let set = |name: &String| Setup::env(name).filter(|key| !key.trim().is_empty());
            let key = engine.env.iter().find_map(set).map(SecretString::from).or_else(|| {
                kept.iter().find(|(name, _)| *name == engine.name)?;
                keys.get(&engine.name).ok().flatten().map(|(secret, _)| secret)
            });
            key.iter().for_each(|key| redact::know(key.expose_secret()));
            key
        };
        let mut engines: Vec<Engine> = Vec::new();
        for (name, (said, origin)) in &senses.engines {
            let row = known.iter().find(|row| row.name == *said.like.as_ref().unwrap_or(name));
            let Some(row) = row else {
                let names: Vec<&str> = known.iter().map(|row| row.name.as_str()).collect();
                screen::note(&format!(
                    "note: {origin}: search.engines.{name} is left out: `like` names one of {}",
                    names.join(", ")
                ));
                continue;
            };
            let mut engine = row.like(name.clone(), said.url.clone());
            // A variable belongs to the known address; at another one it has to be named.
            if row.name == *name && said.url.is_none() {
                engine.env.clone_from(&row.env);
            }
            engine.key = said.api_key.clone().or_else(|| key(&engine));
            engines.push(engine);
        }
        for mut row in known {
            if !senses.engines.contains_key(&row.name) {
                row.key = key(&row);
                engines.push(row);
            }
        }
        if let Some((wanted, origin)) = &senses.engine {
            match engines.iter().position(|engine| engine.name == *wanted) {
                Some(at) => engines = vec![engines.swap_remove(at)],
                None => screen::note(&format!(
                    "note: {origin}: there is no engine `{wanted}`; searches are not offered"
                )),
            }
            engines.retain(|engine| engine.name == *wanted);
        }
        engines
    }

    /// The rows of formatters, the person's own first.
    pub(crate) fn formatters(&self) -> Vec<format::Row> {
        merged(format::known(), &self.config.senses.formats)
    }

    /// The formatters that this folder is set up for. None of it is read before it is trusted.
    pub(crate) fn formatters_here(&self) -> Vec<format::Row> {
        let looks = |runtime: Runtime| {
            let top = vec![Access::Read { path: ".".to_owned() }];
            match runtime.policy.decide(top, &[]) {
                Decision::Allowed(grant) => Some(runtime.workspace.look(grant)),
                Decision::Ask(_) | Decision::Denied { .. } => None,
            }
        };
        let trusted = self.config.standing == Standing::Trusted;
        let runtime = trusted.then(|| self.runtime(self.mode()).ok()).flatten();
        let Some(world) = runtime.and_then(looks) else { return Vec::new() };
        let set_up = |row: &format::Row| {
            !row.when.is_empty() && row.when.iter().all(|sign| sign.holds(&world, "."))
        };
        self.formatters().into_iter().filter(set_up).collect()
    }

    /// True if something at the top of this folder says that it is a project of a server's kind. It
    /// is looked at and not opened.
    pub(crate) fn begins_here(&self, row: &Row) -> bool {
        row.roots.iter().flatten().any(|name| Setup::is_there(&self.root.join(name)))
    }

    /// The rows of language servers, the person's own first.
    pub(crate) fn language_servers(&self) -> Vec<Row> {
        merged(windlass_lsp::known(), &self.config.senses.code)
    }
}

/// A row of what this program knows, which a config may change.
trait Alterable: Sized {
    /// What a config says of it.
    type Said;
    /// Where it says so.
    const KEY: &'static str;
    fn name(&self) -> &str;
    fn is_off(said: &Self::Said) -> bool;
    /// One that nobody knows but the person; `None` if something is missing.
    fn new(name: &str, said: &Self::Said) -> Option<Self>;
    /// The same row with what is said of it.
    fn altered(self, said: &Self::Said) -> Self;
}

/// Known rows as a config changes them, behind those that only it knows.
fn merged<R: Alterable>(known: Vec<R>, said: &Said<R::Said>) -> Vec<R> {
    if said.off.is_some() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (name, (row, origin)) in &said.rows {
        if known.iter().any(|known| known.name() == name) || R::is_off(row) {
            continue;
        }
        match R::new(name, row) {
            Some(row) => rows.push(row),
            None => screen::note(&format!(
                "note: {origin}: {}.{name} is left out: a new row needs `command` and `extensions`",
                R::KEY
            )),
        }
    }
    rows.extend(known.into_iter().filter_map(|row| match said.rows.get(row.name()) {
        None => Some(row),
        Some((said, _)) if R::is_off(said) => None,
        Some((said, _)) => Some(row.altered(said)),
    }));
    rows
}

impl Alterable for Row {
    type Said = LanguageServer;
    const KEY: &'static str = "lsp";

    fn name(&self) -> &str {
        &self.name
    }

    fn is_off(said: &LanguageServer) -> bool {
        said.enabled == Some(false)
    }

    fn new(name: &str, server: &LanguageServer) -> Option<Row> {
        let row = Row {
            name: name.to_owned(),
            language: name.to_owned(),
            command: server.command.clone()?,
            local: Vec::new(),
            extensions: server.extensions.clone()?,
            files: BTreeMap::new(),
            roots: Vec::new(),
            alone: server.roots.is_none(),
            beside: false,
            when: Vec::new(),
            env: BTreeMap::new(),
            initialization: serde_json::Value::Null,
            settings: serde_json::Value::Null,
            settle: 0,
            memory: 2_048,
            write: false,
            warnings: false,
            install: String::new(),
        };
        Some(row.altered(server))
    }

    fn altered(mut self, server: &LanguageServer) -> Row {
        let row = &mut self;
        if let Some(command) = &server.command {
            // Whoever names a program means that one, and not what the project brings.
            (row.command, row.local) = (command.clone(), Vec::new());
        }
        if let Some(extensions) = &server.extensions {
            row.extensions = extensions.clone();
        }
        if let Some(roots) = &server.roots {
            row.roots = vec![roots.clone()];
        }
        if let Some(language) = &server.language {
            row.language = language.clone();
        }
        if let Some(initialization) = &server.initialization {
            row.initialization = initialization.clone();
        }
        if let Some(settings) = &server.settings {
            row.settings = settings.clone();
        }
        if let Some(memory) = server.memory {
            row.memory = memory.get().into();
        }
        if let Some(install) = &server.install {
            row.install = install.clone();
        }
        row.write = server.write.unwrap_or(false);
        row.env.extend(exposed(&server.env));
        self
    }
}

impl Alterable for format::Row {
    type Said = Formatter;
    const KEY: &'static str = "formatter";

    fn name(&self) -> &str {
        &self.name
    }

    fn is_off(said: &Formatter) -> bool {
        said.enabled == Some(false)
    }

    fn new(name: &str, formatter: &Formatter) -> Option<format::Row> {
        let row = format::Row {
            name: name.to_owned(),
            command: formatter.command.clone()?,
            local: Vec::new(),
            extensions: formatter.extensions.clone()?,
            files: Vec::new(),
            when: Vec::new(),
            env: BTreeMap::new(),
            timeout: 2_000,
            install: String::new(),
        };
        Some(row.altered(formatter))
    }

    fn altered(mut self, formatter: &Formatter) -> format::Row {
        let row = &mut self;
        if let Some(command) = &formatter.command {
            (row.command, row.local) = (command.clone(), Vec::new());
        }
        if let Some(extensions) = &formatter.extensions {
            row.extensions = extensions.clone();
        }
        if let Some(when) = &formatter.when {
            row.when = vec![Sign::Any(when.iter().cloned().map(Sign::File).collect())];
        }
        if let Some(timeout) = formatter.timeout {
            row.timeout = timeout.get().into();
        }
        row.env.extend(exposed(&formatter.env));
        self
    }
}

/// An environment as a program sees it.
fn exposed(env: &BTreeMap<String, SecretString>) -> impl Iterator<Item = (String, String)> {
    env.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
}

/// Keeps what servers say with the person's data.
struct Kept(Journal);

impl Keeping for Kept {
    fn journal(&self, server: &str, line: &str) {
        if let Err(error) = self.0.write(server, line) {
            tracing::debug!(server, %error, "its journal cannot be written");
        }
    }
}
