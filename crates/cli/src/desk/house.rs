//! What the desk's answers come from: the config as it was read, and the engines that are built of it
//! when somebody needs one.
//!
//! A house is never changed. When the config is, another one takes its place.

use super::{Done, standing};
use crate::setup::{Setup, Wishes};
use crate::{args, session};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use windlass_engine::{Asked, Engine};
use windlass_project::{Flags, Places, Request as Asking, Since, Standing, Trust};
use windlass_protocol::wire::{Answered, Request};
use windlass_protocol::{Fault, Query, Reply, SessionId};

/// The config, and what is built of it.
pub(crate) struct House {
    pub(crate) setup: Setup,
    pub(super) flags: Flags,
    /// The agent that works in new sessions, if the person named one.
    pub(super) agent: Option<String>,
    /// Knows the sessions there are, and asks no model.
    bare: OnceCell<Arc<Engine>>,
    /// Can answer prompts.
    engine: OnceCell<Arc<Engine>>,
    /// What stays when another house takes the place of this one.
    pub(super) kept: Arc<Kept>,
}

/// What holds as long as the desk is open.
#[derive(Default)]
pub(crate) struct Kept {
    /// The folder as the person was shown it last.
    shown: Mutex<Option<Asking>>,
    /// The person does not trust it.
    declined: AtomicBool,
}

impl House {
    /// Reads the config.
    pub(crate) fn read(args: &args::Screen) -> anyhow::Result<House> {
        let flags = args.bounds.flags(args.model.clone());
        House::of(Setup::places()?, flags, args.agent.clone(), Arc::default())
    }

    /// Reads the config of these places, for this folder.
    pub(super) fn of(
        places: (Places, PathBuf),
        flags: Flags,
        agent: Option<String>,
        kept: Arc<Kept>,
    ) -> anyhow::Result<House> {
        let setup = Setup::gather(places, flags.clone())?;
        let (bare, engine) = (OnceCell::new(), OnceCell::new());
        Ok(House { setup, flags, agent, bare, engine, kept })
    }

    /// The same read again, with a word of the person's that changed.
    pub(super) fn again(&self, flags: Flags) -> Result<House, Fault> {
        let places = (self.setup.places.clone(), self.setup.root.clone());
        let again = House::of(places, flags, self.agent.clone(), Arc::clone(&self.kept));
        again.map_err(|error| fault(&error))
    }

    /// The session to begin with, if the person wants to go on with one.
    pub(crate) async fn first(&self, args: &args::Screen) -> anyhow::Result<Option<SessionId>> {
        match (&args.session, args.r#continue) {
            (Some(id), _) => Ok(Some(session::find(&*self.bare().await?, id).await?)),
            (None, true) => Ok(Some(crate::run::last(&*self.bare().await?, &self.setup).await?)),
            (None, false) => Ok(None),
        }
    }

    /// An engine that looks at things. It is there at once.
    pub(super) async fn bare(&self) -> Result<Arc<Engine>, Fault> {
        let build = || async { self.setup.host().await.map(Arc::new) };
        self.bare.get_or_try_init(build).await.cloned().map_err(|error| fault(&error))
    }

    /// An engine that can answer prompts, or why there is none. The first time takes a while, if
    /// there are servers to start.
    pub(super) async fn engine(&self) -> Result<Arc<Engine>, Fault> {
        if self.is_trusted() && self.kept.declined.load(Ordering::Relaxed) {
            let message =
                "this folder is no longer trusted, and its config could not be read again";
            return Err(Fault::Config { message: message.to_owned() });
        }
        let build = || async {
            let model = self.asked()?;
            let wishes = Wishes { agent: self.agent.clone(), stays: true, ..Wishes::default() };
            self.setup.host_with(model, wishes).await.map(Arc::new)
        };
        self.engine.get_or_try_init(build).await.cloned().map_err(|error| fault(&error))
    }

    /// The model of the config, ready to be asked.
    pub(super) fn asked(&self) -> Result<Asked, Fault> {
        let choose = || self.setup.choose(None)?.asked(None);
        choose().map_err(|error| fault(&error))
    }

    /// Takes over what another house has built, so that no server is started twice, with this one's
    /// model.
    pub(super) async fn take_over(&self, other: &House, asked: Asked) -> Result<(), Fault> {
        let name = self.setup.config.model.as_ref().map(|(name, _)| name.as_str());
        let engine = other.engine().await?.asking(asked, name.unwrap_or_default());
        // It is new, so nobody was faster.
        let _ = self.engine.set(Arc::new(engine));
        Ok(())
    }

    /// True if it is known what will be built: nobody is going to be asked whether to trust the folder.
    pub(super) fn is_settled(&self) -> bool {
        self.is_trusted() && self.setup.config.model.is_some()
    }

    /// Builds what a prompt needs before there is one. What goes wrong is told when somebody asks.
    pub(super) async fn warm_up(&self) -> Done {
        let _ = self.engine().await;
        Done::Nothing
    }

    /// True if an engine that can answer prompts was built.
    pub(super) fn has_engine(&self) -> bool {
        self.engine.initialized()
    }

    /// Answers what needs no session to be opened or closed.
    pub(super) async fn answer(&self, request: Request) -> Result<Answered, Fault> {
        match request {
            Request::Standing => Ok(self.standing()),
            Request::Query { query } => self.query(query).await,
            Request::Keep { name, bytes } => self.keep(name, &bytes).await,
            Request::KeepFile { path } => self.keep_file(&path).await,
            Request::Recall { blob } => self.recall(&blob).await,
            Request::Thumbnail { blob, width, height } => {
                self.thumbnail(&blob, (width, height)).await
            }
            Request::List { what } => self.list(what).await,
            Request::Doctor => {
                let places = (&self.setup.places, self.setup.root.as_path());
                let rows = crate::doctor::rows(places, Ok(&self.setup)).await;
                Ok(Answered::Rows { rows })
            }
            Request::Export { session, form } => self.export(session, form).await,
            Request::LookAtTrust => self.look_at_trust(),
            Request::LookAround => Ok(Answered::Found { found: self.look_around().await }),
            Request::Set { name, value } => self.set(&name, &value),
            Request::Do { .. }
            | Request::Begin { .. }
            | Request::Open { .. }
            | Request::Fork { .. }
            | Request::Delete { .. }
            | Request::Model { .. }
            | Request::Trust { .. }
            | Request::Command { .. }
            | Request::Login { .. } => {
                Err(Fault::Internal { message: "this is for the loop to do".to_owned() })
            }
        }
    }

    async fn query(&self, query: Query) -> Result<Answered, Fault> {
        // Most of it is on the disk; this is known to the one that works.
        let engine = match &query {
            Query::Tools | Query::Context { .. } | Query::Jobs { .. } => {
                match self.engine().await {
                    Ok(engine) => engine,
                    Err(_) => self.bare().await?,
                }
            }
            Query::Sessions { .. }
            | Query::Events { .. }
            | Query::Transcript { .. }
            | Query::Changes { .. }
            | Query::Prompts { .. }
            | Query::Find { .. }
            | Query::Search { .. } => self.bare().await?,
        };
        let reply: Reply = engine.query(query).await?;
        Ok(Answered::Reply { reply })
    }

    pub(super) fn standing(&self) -> Answered {
        let declined = self.kept.declined.load(Ordering::Relaxed);
        Answered::Standing { standing: Box::new(standing::of(self, declined)) }
    }

    fn look_at_trust(&self) -> Result<Answered, Fault> {
        let look = || -> anyhow::Result<Asking> {
            Setup::check_root(&self.setup.places, &self.setup.root)?;
            Ok(Trust::read(&self.setup.places)?.request(&self.setup.root)?)
        };
        let asking = look().map_err(|error| fault(&error))?;
        let would = asking.files.iter().chain(&asking.wishes).cloned().collect();
        let since = match &asking.since {
            Since::Never => None,
            Since::Same => Some(Vec::new()),
            Since::Unknown => Some(vec!["what it was like then was not kept".to_owned()]),
            Since::Changed(lines) => Some(lines.clone()),
        };
        *self.shown() = Some(asking);
        Ok(Answered::Trust { would, since })
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Option<Asking>> {
        self.kept.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trusts the folder as it was shown.
    pub(super) fn trust(&self) -> Result<(), Fault> {
        let Some(asking) = self.shown().take() else {
            let message = "look at what the folder would do first";
            return Err(Fault::Config { message: message.to_owned() });
        };
        let trust = || Trust::read(&self.setup.places)?.add(asking);
        trust().map_err(|error| Fault::Config { message: error.to_string() })?;
        self.kept.declined.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Does not trust it for as long as the desk is open; and not later, where it was trusted.
    pub(super) fn decline(&self) -> Result<(), Fault> {
        self.kept.declined.store(true, Ordering::Relaxed);
        let shown = self.shown().as_ref().is_some_and(|asking| asking.since == Since::Same);
        if !shown && !self.is_trusted() {
            return Ok(());
        }
        let revoke = || Trust::read(&self.setup.places)?.remove(&self.setup.root);
        revoke().map(drop).map_err(|error| Fault::Config { message: error.to_string() })
    }

    /// True if the folder was trusted when its config was read.
    pub(super) fn is_trusted(&self) -> bool {
        self.setup.config.standing == Standing::Trusted
    }
}

/// What went wrong, for a front end.
pub(super) fn fault(error: &anyhow::Error) -> Fault {
    match error.downcast_ref::<Fault>() {
        Some(fault) => fault.clone(),
        None => Fault::Config { message: crate::words(error) },
    }
}
