//! Implements `windlass fleet`: the operator's view of a fleet, its tenants, users and tokens.

mod audit;
mod keys;
mod load;
mod status;

use super::serve::describe_expiry;
use crate::CliExit;
use crate::args::{
    FleetArgs, FleetCommand, TenantCommand, TenantSetArgs, UserCommand, UserName, UserTokenCommand,
};
use crate::fleet_node::open_database;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{Context, bail};
use serde_json::json;
use std::path::PathBuf;
use windlass_protocol::Cost;
use windlass_protocol::display_text::{pluralize, workspace_name};
use windlass_server::{is_token_name, token_digest, token_text};
use windlass_storage::postgres::{
    NewUserToken, PostgresDatabase, TeamChange, TenantCounts, TenantLimits, TenantRow,
};

/// The variable with the URL of the database.
const DATABASE_VARIABLE: &str = "WINDLASS_FLEET";

/// Runs `windlass fleet`.
pub(crate) async fn run_fleet(args: FleetArgs) -> anyhow::Result<CliExit> {
    if let FleetCommand::Load(args) = args.command {
        return Ok(if load::run_load(args).await? { CliExit::Done } else { CliExit::Failed });
    }
    let url = args.database.or_else(|| LoadedProject::env_variable(DATABASE_VARIABLE));
    let url = url.with_context(|| {
        format!("name the database with --database, or in the variable {DATABASE_VARIABLE}")
    })?;
    let database = open_database(&url)?;
    if let FleetCommand::Migrate = args.command {
        database.migrate().await.context("the tables could not be created")?;
        output::print_note("the tables are up to date");
        return Ok(CliExit::Done);
    }
    database.check_schema().await?;
    match args.command {
        FleetCommand::Migrate | FleetCommand::Load(_) => {}
        FleetCommand::Status { json } => status::print_status(&database, json).await?,
        FleetCommand::Drain { node } => status::drain_node(&database, &node).await?,
        FleetCommand::Audit { tenant, days, limit, json } => {
            let selected = (tenant.as_deref(), days);
            audit::print_answers(&database, selected, (limit, json)).await?;
        }
        FleetCommand::Tenant(command) => run_tenant(&database, command).await?,
        FleetCommand::User(command) => run_user(&database, command).await?,
        FleetCommand::Token(command) => run_token(&database, command).await?,
        FleetCommand::Key(command) => keys::run_key(&database, command).await?,
    }
    Ok(CliExit::Done)
}

async fn run_tenant(database: &PostgresDatabase, command: TenantCommand) -> anyhow::Result<()> {
    match command {
        TenantCommand::Add { name, root } => {
            check_name(&name)?;
            match database.add_tenant(&name, &absolute_folders(&root)?).await? {
                TeamChange::Done => output::print_note(&format!(
                    "added the tenant {name}; add its users: `windlass fleet user add {name}/USER`"
                )),
                TeamChange::Exists | TeamChange::NotFound => {
                    bail!(
                        "a tenant {name} exists. To change its folders: `windlass fleet tenant set`"
                    )
                }
            }
        }
        TenantCommand::Set(args) => set_tenant(database, args).await?,
        TenantCommand::Disable { name } => {
            expect_tenant(database.set_tenant_disabled(&name, true).await?, &name)?;
            output::print_note(&format!("disabled the tenant {name}"));
        }
        TenantCommand::Enable { name } => {
            expect_tenant(database.set_tenant_disabled(&name, false).await?, &name)?;
            output::print_note(&format!("enabled the tenant {name}"));
        }
        TenantCommand::List { json } => {
            let (tenants, counts) = (database.tenants().await?, database.tenant_counts().await?);
            let counts = |tenant: &TenantRow| counts.get(&tenant.id).copied().unwrap_or_default();
            if json {
                let row = |tenant: &TenantRow| {
                    let TenantCounts { users, sessions, used } = counts(tenant);
                    json!({
                        "name": tenant.name, "disabled": tenant.is_disabled,
                        "roots": tenant.roots, "users": users, "policy": tenant.policy,
                        "sessions": sessions,
                        "limits": {
                            "open_sessions": tenant.limits.open_sessions,
                            "steps_per_day": tenant.limits.steps_per_day,
                            "tokens_per_day": tenant.limits.tokens_per_day,
                            "cost_per_day": tenant.limits.cost_per_day,
                            "cost_per_month": tenant.limits.cost_per_month,
                        },
                        "used_today": {
                            "steps": used.steps, "tokens": used.tokens,
                            "cost": used.cost,
                        },
                    })
                };
                return print_json(tenants.iter().map(row).collect());
            }
            for tenant in &tenants {
                let TenantCounts { users, sessions, used } = counts(tenant);
                let roots = match tenant.roots.is_empty() {
                    true => "all folders".to_owned(),
                    false => tenant.roots.join(", "),
                };
                output::print_line(&format!(
                    "{:<20}  {}, {}, {} today, {}{}{}  {roots}",
                    tenant.name,
                    pluralize(users as usize, "user"),
                    pluralize(sessions as usize, "session"),
                    pluralize(used.steps as usize, "request"),
                    describe_limits(&tenant.limits),
                    if tenant.policy.is_some() { ", with a policy" } else { "" },
                    disabled_mark(tenant.is_disabled),
                ));
            }
        }
    }
    Ok(())
}

async fn set_tenant(database: &PostgresDatabase, args: TenantSetArgs) -> anyhow::Result<()> {
    let name = args.name;
    let tenants = database.tenants().await?;
    let Some(tenant) = tenants.iter().find(|tenant| tenant.name == name) else {
        return expect_tenant(TeamChange::NotFound, &name);
    };
    if !args.root.is_empty() {
        let change = database.set_tenant_roots(&name, &absolute_folders(&args.root)?).await?;
        expect_tenant(change, &name)?;
    }
    if let Some(file) = &args.policy {
        let policy = match file.as_str() {
            "none" => None,
            file => Some(LoadedProject::read_tenant_policy(file)?),
        };
        let change = database.set_tenant_policy(&name, policy.as_deref()).await?;
        expect_tenant(change, &name)?;
    }
    let before = tenant.limits;
    let limits = TenantLimits {
        open_sessions: args.max_open_sessions.map_or(before.open_sessions, |limit| limit.0),
        steps_per_day: args.max_steps_per_day.map_or(before.steps_per_day, |limit| limit.0),
        tokens_per_day: args.max_tokens_per_day.map_or(before.tokens_per_day, |limit| limit.0),
        cost_per_day: args.max_cost_per_day.map_or(before.cost_per_day, |limit| limit.0),
        cost_per_month: args.max_cost_per_month.map_or(before.cost_per_month, |limit| limit.0),
    };
    if limits != before {
        expect_tenant(database.set_tenant_limits(&name, &limits).await?, &name)?;
    }
    output::print_note(&format!("changed the tenant {name}: {}", describe_limits(&limits)));
    Ok(())
}

/// Names the limits of a tenant.
fn describe_limits(limits: &TenantLimits) -> String {
    let dollars = |Cost(micros): Cost| format!("${:.2}", micros as f64 / 1e6);
    let named = [
        limits.open_sessions.map(|max| format!("{max} open sessions")),
        limits.steps_per_day.map(|max| format!("{max} requests per day")),
        limits.tokens_per_day.map(|max| format!("{max} tokens per day")),
        limits.cost_per_day.map(|max| format!("{} per day", dollars(max))),
        limits.cost_per_month.map(|max| format!("{} per month", dollars(max))),
    ];
    let named: Vec<String> = named.into_iter().flatten().collect();
    if named.is_empty() { "no limits".to_owned() } else { format!("at most {}", named.join(", ")) }
}

async fn run_user(database: &PostgresDatabase, command: UserCommand) -> anyhow::Result<()> {
    match command {
        UserCommand::Add { user: UserName { tenant, user }, right } => {
            check_name(&user)?;
            expect_tenant(database.set_user(&tenant, &user, right.into()).await?, &tenant)?;
            output::print_note(&format!(
                "{tenant}/{user} may have tokens with the right `{}`; create one: `windlass fleet \
                 token add {tenant}/{user} NAME`",
                windlass_protocol::AccessRight::from(right)
            ));
        }
        UserCommand::Disable { user } => set_user_disabled(database, &user, true).await?,
        UserCommand::Enable { user } => set_user_disabled(database, &user, false).await?,
        UserCommand::List { tenant, json } => {
            let users = database.users(tenant.as_deref()).await?;
            if json {
                let row = |user: &windlass_storage::postgres::UserRow| {
                    json!({
                        "tenant": user.tenant, "name": user.name, "right": user.right,
                        "disabled": user.is_disabled, "tokens": user.tokens,
                    })
                };
                return print_json(users.iter().map(row).collect());
            }
            if users.is_empty() {
                output::print_note("no users; add one: `windlass fleet user add TENANT/USER`");
            }
            for user in &users {
                output::print_line(&format!(
                    "{:<30}  {:<5}  {}{}",
                    format!("{}/{}", user.tenant, user.name),
                    user.right.to_string(),
                    pluralize(user.tokens as usize, "token"),
                    disabled_mark(user.is_disabled),
                ));
            }
        }
    }
    Ok(())
}

async fn set_user_disabled(
    database: &PostgresDatabase,
    UserName { tenant, user }: &UserName,
    is_disabled: bool,
) -> anyhow::Result<()> {
    if database.set_user_disabled(tenant, user, is_disabled).await? != TeamChange::Done {
        bail!("there is no user {tenant}/{user}; `windlass fleet user list` lists all users");
    }
    let done = if is_disabled { "disabled" } else { "enabled" };
    output::print_note(&format!("{done} the user {tenant}/{user}"));
    Ok(())
}

async fn run_token(database: &PostgresDatabase, command: UserTokenCommand) -> anyhow::Result<()> {
    match command {
        UserTokenCommand::Add { user: UserName { tenant, user }, name, right, days } => {
            check_name(&name)?;
            let text = token_text(LoadedProject::random_bytes()?);
            let token = NewUserToken {
                tenant: &tenant,
                user: &user,
                name: &name,
                digest: token_digest(&text),
                right: right.into(),
                days,
            };
            match database.add_user_token(&token).await? {
                TeamChange::Done => {}
                TeamChange::NotFound => bail!(
                    "there is no user {tenant}/{user}; add it: `windlass fleet user add \
                     {tenant}/{user}`"
                ),
                TeamChange::Exists => bail!(
                    "{tenant}/{user} has a token {name}. Choose another name, or revoke it first"
                ),
            }
            output::print_note(&format!(
                "created the token {name} of {tenant}/{user}. Copy it now, it is not shown again:"
            ));
            output::print_line(&text);
        }
        UserTokenCommand::Revoke { user: UserName { tenant, user }, name } => {
            if database.revoke_user_token(&tenant, &user, &name).await? != TeamChange::Done {
                bail!("{tenant}/{user} has no token {name}; `windlass fleet token list` lists all");
            }
            output::print_note(&format!("revoked the token {name} of {tenant}/{user}"));
        }
        UserTokenCommand::List { tenant, json } => {
            let tokens = database.user_tokens(tenant.as_deref()).await?;
            if json {
                let row = |token: &windlass_storage::postgres::UserTokenRow| {
                    json!({
                        "tenant": token.tenant, "user": token.user, "name": token.name,
                        "right": token.right, "created_at": token.created_at,
                        "expires_at": token.expires_at,
                    })
                };
                return print_json(tokens.iter().map(row).collect());
            }
            if tokens.is_empty() {
                output::print_note(
                    "no tokens; add one: `windlass fleet token add TENANT/USER NAME`",
                );
            }
            for token in &tokens {
                output::print_line(&format!(
                    "{:<30}  {:<20}  {:<5}  {}",
                    format!("{}/{}", token.tenant, token.user),
                    token.name,
                    token.right.to_string(),
                    describe_expiry(token.expires_at),
                ));
            }
        }
    }
    Ok(())
}

fn disabled_mark(is_disabled: bool) -> &'static str {
    if is_disabled { ", disabled" } else { "" }
}

fn print_json(rows: Vec<serde_json::Value>) -> anyhow::Result<()> {
    output::print_json(&serde_json::to_string_pretty(&rows)?);
    Ok(())
}

fn expect_tenant(change: TeamChange, name: &str) -> anyhow::Result<()> {
    match change {
        TeamChange::Done => Ok(()),
        TeamChange::Exists | TeamChange::NotFound => {
            bail!(no_tenant(name))
        }
    }
}

fn no_tenant(name: &str) -> String {
    format!("there is no tenant {name}; `windlass fleet tenant list` lists all tenants")
}

fn check_name(name: &str) -> anyhow::Result<()> {
    if !is_token_name(name) {
        bail!("a name has up to 64 letters, digits, `.`, `_` and `-`, and does not begin with `.`");
    }
    Ok(())
}

/// Returns the folders as nodes name them. They need not exist on this machine.
fn absolute_folders(folders: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let name = |folder: &PathBuf| {
        let folder = LoadedProject::real_folder(folder).map_or_else(
            || std::path::absolute(folder).context("the path of a folder is not valid"),
            Ok,
        )?;
        Ok(workspace_name(&folder))
    };
    folders.iter().map(name).collect()
}
