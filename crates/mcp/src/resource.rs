//! Resources of servers, as three tools for all of them. A rule for a server's tools covers its
//! resources, too: they fall under `SERVER_resources`.

use crate::call::{Broke, Terms, told};
use crate::content;
use crate::list::Pages;
use crate::server::Server;
use async_trait::async_trait;
use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool, foreign};

/// How long a page or a resource may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many of a server's resources are told.
const MOST: usize = 200;

/// The servers that have resources.
pub(crate) type Holders = Arc<[Arc<Server>]>;

/// Which of the lists.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// What there is.
    Plain,
    /// What can be asked for by filling in an address.
    Templates,
}

/// Lists what servers have.
pub(crate) struct ListResources {
    pub(crate) holders: Holders,
    pub(crate) kind: Kind,
}

/// Reads one.
pub(crate) struct ReadResource {
    pub(crate) holders: Holders,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// The server; all of them if left out.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct One {
    /// The server that has it.
    server: String,
    /// Its address, as the list has it.
    uri: String,
}

fn touched(server: &str) -> Access {
    Access::Use { tool: foreign::sanitized(server, "resources") }
}

fn chosen<'a>(holders: &'a Holders, server: Option<&str>) -> Result<Vec<&'a Arc<Server>>, Failure> {
    let fits = |holder: &&Arc<Server>| server.is_none_or(|server| holder.name() == server);
    let chosen: Vec<_> = holders.iter().filter(fits).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = holders.iter().map(|holder| holder.name()).collect();
        return Err(Failure::new(format!(
            "No server of that name has resources. There are: {}.",
            names.join(", ")
        )));
    }
    Ok(chosen)
}

#[async_trait]
impl Tool for ListResources {
    type Input = Which;

    fn name(&self) -> &str {
        match self.kind {
            Kind::Plain => "list_mcp_resources",
            Kind::Templates => "list_mcp_resource_templates",
        }
    }

    fn batched(&self) -> bool {
        false
    }

    fn listed(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Which>(match self.kind {
            Kind::Plain => "Lists the resources that servers have, by address.",
            Kind::Templates => "Lists the forms of addresses that servers have resources at.",
        })
    }

    fn access(&self, input: &Which) -> Vec<Access> {
        match &input.server {
            Some(server) => vec![touched(server)],
            None => self.holders.iter().map(|holder| touched(holder.name())).collect(),
        }
    }

    async fn run(&self, input: Which, cx: &Cx<'_>) -> Result<Output, Failure> {
        let mut lines = Vec::new();
        for holder in chosen(&self.holders, input.server.as_deref())? {
            lines.push(format!("{}:", holder.name()));
            match listed(holder, self.kind, cx).await {
                Ok(some) if some.is_empty() => lines.push("  (none)".into()),
                Ok(some) => lines.extend(some),
                Err(failure) => lines.push(format!("  (not listed: {failure})")),
            }
        }
        let title = self.name().to_owned();
        Ok(Output { title, text: lines.join("\n"), ..Output::default() })
    }
}

async fn listed(server: &Arc<Server>, kind: Kind, cx: &Cx<'_>) -> Result<Vec<String>, Failure> {
    let link = server.link(cx.world.mode(), &cx.cancel).await?;
    let mut lines = Vec::new();
    let mut pages = Pages::default();
    while let Some(params) = pages.next() {
        let request = match kind {
            Kind::Plain => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params))
            }
            Kind::Templates => ClientRequest::ListResourceTemplatesRequest(
                ListResourceTemplatesRequest::with_param(params),
            ),
        };
        let answer = link.request(request, &terms(cx)).await;
        let next = match answer.map_err(|broke| broke.failure(server.name()))? {
            ServerResult::ListResourcesResult(page) => {
                lines.extend(
                    page.resources.iter().map(|it| line(&it.uri, &it.name, &it.description)),
                );
                page.next_cursor
            }
            ServerResult::ListResourceTemplatesResult(page) => {
                let all = page.resource_templates.iter();
                lines.extend(all.map(|it| line(&it.uri_template, &it.name, &it.description)));
                page.next_cursor
            }
            _ => return Err(Broke::Odd.failure(server.name())),
        };
        if lines.len() > MOST {
            lines.truncate(MOST);
            lines.push("  (and more)".into());
            break;
        }
        pages.read(next);
    }
    Ok(lines)
}

fn line(uri: &str, name: &str, description: &Option<String>) -> String {
    let first = description.as_deref().and_then(|text| text.lines().next()).unwrap_or(name);
    format!("  {} — {}", told(uri), told(first))
}

fn terms<'a>(cx: &Cx<'a>) -> Terms<'a> {
    Terms { idle: PATIENCE, most: PATIENCE, cancel: cx.cancel.clone(), caller: Some(cx.caller) }
}

#[async_trait]
impl Tool for ReadResource {
    type Input = One;

    fn name(&self) -> &str {
        "read_mcp_resource"
    }

    fn batched(&self) -> bool {
        false
    }

    fn listed(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<One>("Reads a resource that a server has, by its address.")
    }

    fn access(&self, input: &One) -> Vec<Access> {
        vec![touched(&input.server)]
    }

    async fn run(&self, input: One, cx: &Cx<'_>) -> Result<Output, Failure> {
        let holder = chosen(&self.holders, Some(&input.server))?;
        let Some(server) = holder.first() else { return Err(Failure::new("no such server")) };
        let link = server.link(cx.world.mode(), &cx.cancel).await?;
        let params = ReadResourceRequestParams::new(input.uri.clone());
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let answer = link.request(request, &terms(cx)).await;
        match answer.map_err(|broke| broke.failure(server.name()))? {
            ServerResult::ReadResourceResult(result) => {
                Ok(content::resource(&told(&input.uri), result.contents, cx.caller).await)
            }
            _ => Err(Broke::Odd.failure(server.name())),
        }
    }
}
