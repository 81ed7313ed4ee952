//! What a model sees of code and of the web: language servers, formatters, engines that search, and
//! hosts of the person's own.
//!
//! A project may add rows and change what stands in known ones, once it is trusted. It cannot open
//! the way out of its folder, read the environment, or take the place of a row of the person's own.

use super::Config;
use super::mcp::{Wrong, filled, unfit_name, wrong};
use super::settings::{Formatter, LanguageServer, Rows, Search, SearchEngine, WebSettings};
use crate::config::Outside;
use crate::file::{File, Layer, Origin};
use crate::pointer;
use std::collections::BTreeMap;

/// What is said about it, with who says so.
#[derive(Clone, Debug, Default)]
pub struct Senses {
    /// Language servers.
    pub code: Said<LanguageServer>,
    /// Formatters.
    pub formats: Said<Formatter>,
    /// The engine that searches, by name.
    pub engine: Option<(String, Origin)>,
    /// Engines of the person's own, and what they say of known ones.
    pub engines: BTreeMap<String, (SearchEngine, Origin)>,
    /// Hosts that may be fetched from although they are not public, as they are written.
    pub inside: Vec<(String, Origin)>,
}

/// Rows, unless there are to be none.
#[derive(Clone, Debug)]
pub struct Said<T> {
    /// Who wants none of them.
    pub off: Option<Origin>,
    /// What is said of each.
    pub rows: BTreeMap<String, (T, Origin)>,
}

impl<T> Default for Said<T> {
    fn default() -> Said<T> {
        Said { off: None, rows: BTreeMap::new() }
    }
}

/// What can be said row by row.
trait Row: Sized {
    /// Its place in a config.
    const KEY: &'static str;
    /// The row with everything in it resolved, or what is wrong.
    fn checked(self, own: bool, outside: &dyn Outside) -> Result<Self, Wrong>;
    /// Where what is said of it is kept.
    fn said(senses: &mut Senses) -> &mut Said<Self>;
}

impl Row for LanguageServer {
    const KEY: &'static str = "lsp";

    fn checked(mut self, own: bool, outside: &dyn Outside) -> Result<Self, Wrong> {
        names_program(self.command.as_deref())?;
        if let (false, Some(true)) = (own, self.write) {
            return wrong("/write", "a project's server only looks");
        }
        let named = self.extensions.iter().flat_map(BTreeMap::keys);
        are_extensions(named)?;
        self.env = filled("/env", self.env, (own, outside))?;
        Ok(self)
    }

    fn said(senses: &mut Senses) -> &mut Said<Self> {
        &mut senses.code
    }
}

impl Row for Formatter {
    const KEY: &'static str = "formatter";

    fn checked(mut self, own: bool, outside: &dyn Outside) -> Result<Self, Wrong> {
        names_program(self.command.as_deref())?;
        are_extensions(self.extensions.iter().flatten())?;
        self.env = filled("/env", self.env, (own, outside))?;
        Ok(self)
    }

    fn said(senses: &mut Senses) -> &mut Said<Self> {
        &mut senses.formats
    }
}

fn names_program(command: Option<&[String]>) -> Result<(), Wrong> {
    match command {
        Some(command) if command.first().is_none_or(|program| program.trim().is_empty()) => {
            wrong("/command", "it names no program")
        }
        Some(command) if command.iter().any(|part| part.contains('\0')) => {
            wrong("/command", "no program can be given this")
        }
        Some(_) | None => Ok(()),
    }
}

fn are_extensions<'a>(mut named: impl Iterator<Item = &'a String>) -> Result<(), Wrong> {
    let unfit = |name: &&String| name.len() < 2 || !name.starts_with('.') || name.contains('/');
    match named.find(unfit) {
        Some(name) => wrong("/extensions", format!("`{name}` is no end of a name, such as `.rs`")),
        None => Ok(()),
    }
}

impl Config {
    pub(super) fn take_senses(
        &mut self,
        layer: Layer,
        file: &mut File,
        (code, formats): (Option<Rows<LanguageServer>>, Option<Rows<Formatter>>),
        outside: &dyn Outside,
    ) {
        self.take_rows(layer, file, code, outside);
        self.take_rows(layer, file, formats, outside);
    }

    fn take_rows<T: Row>(
        &mut self,
        layer: Layer,
        file: &mut File,
        rows: Option<Rows<T>>,
        outside: &dyn Outside,
    ) {
        let top = pointer::join("", T::KEY);
        let rows = match rows {
            None => return,
            Some(Rows::All(on)) => return self.switch::<T>(layer, file, on),
            Some(Rows::Each(_)) if layer == Layer::Managed => {
                return file.fault(&top, "the managed policy can only say `false` here");
            }
            Some(Rows::Each(rows)) => rows,
        };
        for (name, row) in rows {
            let pointer = pointer::join(&top, &name);
            let known = T::said(&mut self.senses).rows.get(&name);
            let own = |(_, origin): &(T, Origin)| origin.layer == Layer::User;
            let taken = layer == Layer::Project && known.is_some_and(own);
            let checked = match unfit_name(&name) {
                _ if file.marred.contains(&pointer) => continue,
                Some(why) => Err(("", why)),
                None if taken => Err(("", format!("your own config already speaks of `{name}`"))),
                None => row.checked(layer != Layer::Project, outside),
            };
            match checked {
                Err((at, why)) => file.fault(&format!("{pointer}{at}"), &why),
                Ok(row) => {
                    if let Some(value) = file.at(&pointer).cloned() {
                        self.show_all(&format!("{}.{name}", T::KEY), &value, &pointer, file);
                    }
                    let origin = file.origin(&pointer).clone();
                    T::said(&mut self.senses).rows.insert(name, (row, origin));
                }
            }
        }
    }

    /// Switches all rows off, or on again. What the managed policy switches off stays off, and a
    /// project switches nothing on.
    fn switch<T: Row>(&mut self, layer: Layer, file: &mut File, on: bool) {
        let top = pointer::join("", T::KEY);
        let off = T::said(&mut self.senses).off.clone();
        match (on, off, layer) {
            (true, _, Layer::Managed) => {
                file.fault(&top, "the managed policy can only say `false` here");
            }
            (true, Some(held), _) if held.layer == Layer::Managed || layer == Layer::Project => {
                file.fault(&top, &format!("it is switched off ({held})"));
            }
            // Whoever says the same as before does not take their place.
            (false, Some(_), _) => {}
            (on, ..) => {
                let origin = file.origin(&top).clone();
                self.show(T::KEY, &on.to_string(), &origin);
                T::said(&mut self.senses).off = (!on).then_some(origin);
            }
        }
    }

    /// Where words of a search go, and which hosts need not be public, is the person's to say.
    pub(super) fn take_web(
        &mut self,
        layer: Layer,
        file: &mut File,
        (search, web): (Option<Search>, Option<WebSettings>),
        outside: &dyn Outside,
    ) {
        if layer == Layer::Project {
            if search.is_some() {
                file.fault("/search", "a project cannot choose where searches go");
            }
            if web.is_some() {
                file.fault("/web", "a project cannot open hosts that are not public");
            }
            return;
        }
        if let Some(web) = web {
            let hosts = web.inside.into_iter().enumerate();
            let placed = hosts.map(|(number, host)| {
                (host, file.origin(&format!("/web/inside/{number}")).clone())
            });
            self.senses.inside = placed.collect();
            let origin = file.origin("/web").clone();
            let hosts: Vec<&str> =
                self.senses.inside.iter().map(|(host, _)| host.as_str()).collect();
            self.show("web.inside", &hosts.join(", "), &origin);
        }
        let Some(search) = search else { return };
        if let Some(name) = search.provider {
            let origin = file.origin("/search/provider").clone();
            self.show("search.provider", &name, &origin);
            self.senses.engine = Some((name, origin));
        }
        for (name, mut engine) in search.engines {
            let pointer = pointer::join("/search/engines", &name);
            if let Some(why) = unfit_name(&name) {
                file.fault(&pointer, &why);
                continue;
            }
            let key = engine.api_key.take().map(|key| ("api_key".to_owned(), key));
            match filled("/api_key", key.into_iter().collect(), (true, outside)) {
                Err((at, why)) => file.fault(&format!("{pointer}{at}"), &why),
                Ok(filled) => {
                    engine.api_key = filled.into_values().next();
                    if let Some(value) = file.at(&pointer).cloned() {
                        let name = format!("search.engines.{name}");
                        self.show_all(&name, &value, &pointer, file);
                    }
                    let origin = file.origin(&pointer).clone();
                    self.senses.engines.insert(name, (engine, origin));
                }
            }
        }
    }
}
