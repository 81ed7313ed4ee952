//! Hooks from the config: who brings them says in which order they are asked, and what their cage is.

use super::Setup;
use crate::screen;
use anyhow::bail;
use std::sync::Arc;
use windlass_plugin::hook::{Check, Form, Program, Spec};
use windlass_project::{HookCommand, HookSpec, Layer, Lodging, Standing};
use windlass_sandbox::{Hold, Hosts, Keep, Servant};
use windlass_toolkit::{Berth, Hook, Runtime};

/// Where a project keeps its hooks, so that tools cannot change them and trust is about them.
const FOLDER: &str = ".windlass/hooks/";

impl Setup {
    /// The hooks, in the order they are asked: the person's own, those of plugins, then the project's.
    /// Without one of their own nothing is done, because it may be there to say no.
    pub(super) fn hooks(&self, runtime: &Runtime) -> anyhow::Result<Vec<Arc<dyn Hook>>> {
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        let mut specs: Vec<&HookSpec> = self.config.hooks.iter().collect();
        specs.sort_by_key(|spec| spec.layer);
        let mut hooks: Vec<Arc<dyn Hook>> = Vec::new();
        for spec in specs {
            let made = self.hook(spec).and_then(|made| Program::new(made, &berth));
            match made {
                Ok(hook) => hooks.push(Arc::new(hook)),
                Err(why) => {
                    let whose = match spec.layer {
                        Layer::Project => "the project's",
                        Layer::Plugin => "a plugin's",
                        Layer::User | Layer::Flag | Layer::Managed => {
                            bail!("the hook {}: {why}", spec.name)
                        }
                    };
                    screen::note(&format!("note: {whose} hook {} is left out: {why}", spec.name));
                }
            }
        }
        Ok(hooks)
    }

    fn hook(&self, spec: &HookSpec) -> Result<Spec, String> {
        let (program, arguments) = match &spec.command {
            HookCommand::Argv(words) => match words.split_first() {
                Some((program, arguments)) => (program.clone(), arguments.to_vec()),
                None => return Err("it names no command".to_owned()),
            },
            HookCommand::Shell(line) => ("bash".to_owned(), vec!["-c".to_owned(), line.clone()]),
        };
        let network = Hosts::parse(&spec.network).map_err(|error| format!("network: {error}"))?;
        let workspace = if spec.write { Hold::Write } else { Hold::Read };
        let plugin = spec.plugin.as_ref();
        // Claude's look around in the project, where that is safe; ours lie where they run.
        let claudes = spec.form == windlass_project::Form::Claude;
        let here = claudes && self.config.standing == Standing::Trusted;
        let folder = plugin.filter(|_| !here).map_or(&self.root, |plugin| &plugin.root).clone();
        let servant = Servant {
            name: format!("hook/{}", spec.name),
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            folder,
            env: plugin.map(Lodging::env).unwrap_or_default(),
            keep: Keep {
                workspace,
                write: plugin.map(|plugin| plugin.data.clone()).into_iter().collect(),
                network,
                walls: None,
            },
        };
        Ok(Spec {
            name: spec.name.clone(),
            point: spec.point,
            matcher: spec.matcher.clone(),
            servant,
            timeout: spec.timeout,
            form: match spec.form {
                windlass_project::Form::Ours => Form::Ours,
                windlass_project::Form::Claude => {
                    Form::Claude { servers: self.config.servers.keys().cloned().collect() }
                }
            },
            check: match (spec.layer, &spec.plugin) {
                (Layer::Project, _) => Some(self.unchanged()),
                (_, Some(plugin)) => {
                    let plugin = plugin.clone();
                    Some(Arc::new(move || plugin.check()))
                }
                (Layer::User | Layer::Plugin | Layer::Flag | Layer::Managed, None) => None,
            },
        })
    }

    /// A project's hooks are run as they were when the folder was trusted, or not at all.
    fn unchanged(&self) -> Check {
        let files = self.config.surveyed(FOLDER);
        Arc::new(move || match files.iter().find(|file| !file.is_intact()) {
            None => Ok(()),
            Some(file) => Err(format!(
                "{} has changed since you trusted this folder; look at it with `windlass trust`",
                file.name
            )),
        })
    }
}
