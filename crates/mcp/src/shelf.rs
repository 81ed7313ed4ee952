//! Which of a server's tools are ours: what was looked at, what it lists now, and how the one stands to
//! the other. What a model was told at once stays as it was told.

use crate::list::Listed;
use crate::pipe::lock;
use crate::server::Server;
use crate::spec::{Pinned, PinnedTool};
use crate::tool::{Foreign, Place, Standing, definition};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_toolkit::{Budget, Definition, foreign};

/// What is known of a server's tools.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) pins: Option<Pinned>,
    /// What is registered, by the name it has here.
    pub(crate) shelf: BTreeMap<String, Shelved>,
}

/// A tool as it is registered.
#[derive(Clone)]
pub(crate) struct Shelved {
    remote: String,
    told: Definition,
    place: Place,
    digest: String,
    standing: Standing,
}

impl Server {
    /// Registers what was known the last time: told at once if all of it fits.
    pub(crate) fn register_pinned(self: &Arc<Self>, budget: &mut Budget) {
        let Some(pins) = self.pins() else { return };
        let told = pins.tools.iter().filter_map(|tool| {
            Some((foreign::sanitized(self.name(), &tool.name), definition(&tool.definition).ok()?))
        });
        let told: Vec<(String, Definition)> = told.collect();
        let fits = budget.lists(told.iter().map(|(name, told)| (name.as_str(), told)));
        let place = if fits { Place::Listed } else { Place::Found };
        let tools = pins.tools.iter().map(|tool| (tool, Standing::Same, None)).collect();
        self.shelve(tools, place);
    }

    /// Takes over what it lists now. What was looked at stays what was looked at.
    pub(crate) fn adopt(self: &Arc<Self>, listed: Listed, learnt: Option<Pinned>) {
        let name = self.name();
        for why in &listed.left_out {
            self.keeping.notice(format!("{name}: {why}"));
        }
        let mut known = lock(&self.known);
        if known.pins.is_none() {
            let Some(mut learnt) = learnt else { return };
            learnt.tools = listed.tools.values().cloned().collect();
            self.keeping.pin(name, &learnt);
            self.keeping.journal(name, &format!("its {} tools are new", learnt.tools.len()));
            known.pins = Some(learnt);
        } else if let (Some(learnt), Some(pins)) = (learnt, &mut known.pins) {
            let fresh = Pinned { tools: pins.tools.clone(), ..learnt };
            if *pins != fresh {
                self.keeping.pin(name, &fresh);
                *pins = fresh;
            }
        }
        let pins = known.pins.clone();
        drop(known);
        let pinned: BTreeMap<&str, &PinnedTool> = pins
            .iter()
            .flat_map(|pins| &pins.tools)
            .map(|tool| (tool.name.as_str(), tool))
            .collect();
        let tools = listed.tools.values().map(|live| match pinned.get(live.name.as_str()) {
            Some(old) if old.digest == live.digest => (live, Standing::Same, None),
            Some(old) => (live, Standing::Changed, Some(&old.definition)),
            None => (live, Standing::New, None),
        });
        self.shelve(tools.collect(), Place::Found);
    }

    /// Puts tools into the registry, those that are not there as they are.
    fn shelve(self: &Arc<Self>, tools: Vec<(&PinnedTool, Standing, Option<&Value>)>, place: Place) {
        let Some(registry) = self.registry.get() else { return };
        for (tool, standing, pinned) in tools {
            let name = foreign::sanitized(self.name(), &tool.name);
            let before = lock(&self.known).shelf.get(&name).cloned();
            let (told, place) = match &before {
                Some(before) if before.remote != tool.name => {
                    let (one, other) = (&before.remote, &tool.name);
                    let text = format!("{one} and {other} of {} are both {name}", self.name());
                    self.keeping.notice(format!("{text}; the second is left out"));
                    continue;
                }
                Some(before) if before.digest == tool.digest && before.standing == standing => {
                    continue;
                }
                // What a model was told at once stays; what it finds follows what was agreed to.
                Some(before) if before.place == Place::Listed || standing != Standing::Same => {
                    (Ok(before.told.clone()), before.place)
                }
                Some(before) => (definition(&tool.definition), before.place),
                None => (definition(&tool.definition), place),
            };
            let told = match told {
                Ok(told) => told,
                Err(why) => {
                    self.keeping.notice(format!("{name} is left out: {why}"));
                    continue;
                }
            };
            let (remote, digest) = (tool.name.clone(), tool.digest.clone());
            let shelved = Shelved {
                remote: remote.clone(),
                told: told.clone(),
                place,
                digest: digest.clone(),
                standing,
            };
            let (live, pinned) = (tool.definition.clone(), pinned.cloned());
            let server = Arc::clone(self);
            let entry = Foreign {
                server,
                name: name.clone(),
                remote,
                told,
                place,
                standing,
                digest,
                live,
                pinned,
            };
            if let Err(clash) = registry.admit(self.name(), entry) {
                self.keeping.notice(clash.to_string());
            }
            lock(&self.known).shelf.insert(name, shelved);
        }
    }

    /// Somebody looked at a definition and agreed: it is the one from now on.
    pub(crate) fn accept(self: &Arc<Self>, tool: &Foreign) {
        if tool.standing == Standing::Same {
            return;
        }
        let accepted = PinnedTool {
            name: tool.remote.clone(),
            digest: tool.digest.clone(),
            definition: tool.live.clone(),
        };
        self.repin(|tools| {
            tools.retain(|old| old.name != accepted.name);
            tools.push(accepted.clone());
        });
        self.shelve(vec![(&accepted, Standing::Same, None)], tool.place);
    }

    /// Somebody looked at all of them and agreed.
    pub(crate) fn accept_all(self: &Arc<Self>, live: &BTreeMap<String, PinnedTool>) {
        self.repin(|tools| *tools = live.values().cloned().collect());
        let all = live.values().map(|tool| (tool, Standing::Same, None)).collect();
        self.shelve(all, Place::Found);
    }

    fn repin(&self, change: impl FnOnce(&mut Vec<PinnedTool>)) {
        let mut known = lock(&self.known);
        if let Some(pins) = &mut known.pins {
            change(&mut pins.tools);
            pins.tools.sort_by(|one, other| one.name.cmp(&other.name));
            self.keeping.pin(self.name(), pins);
        }
    }
}
