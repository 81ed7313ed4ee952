//! Implements `windlass fleet key`: the API keys of tenants.

use crate::args::TenantKeyCommand;
use crate::now_millis;
use crate::sealed_keys::SealingKeys;
use crate::terminal::{output, secret_input};
use anyhow::{Context, bail};
use serde_json::json;
use windlass_protocol::display_text::{format_age, pluralize};
use windlass_storage::postgres::{PostgresDatabase, ProviderKeyRow, TeamChange};

/// Runs `windlass fleet key`.
pub(super) async fn run_key(
    database: &PostgresDatabase,
    command: TenantKeyCommand,
) -> anyhow::Result<()> {
    match command {
        TenantKeyCommand::Set { tenant, provider, key_file } => {
            let keys = SealingKeys::read(&key_file)?;
            let tenants = database.tenants().await?;
            let found = tenants.iter().find(|row| row.name == tenant);
            let id = found.with_context(|| super::no_tenant(&tenant))?.id;
            let question = format!("API key of {tenant} for {provider}: ");
            let key = secret_input::read_secret(&question)?;
            let key = key.context("no key was entered")?;
            let provider = crate::commands::auth::canonical_name(&provider);
            database.set_provider_key(id, provider, &keys.seal((id, provider), &key)?).await?;
            output::print_note(&format!("{tenant} uses its own API key for {provider}"));
        }
        TenantKeyCommand::Remove { tenant, provider } => {
            let provider = crate::commands::auth::canonical_name(&provider);
            if database.remove_provider_key(&tenant, provider).await? != TeamChange::Done {
                bail!(
                    "{tenant} has no API key for {provider}; `windlass fleet key list` lists all"
                );
            }
            output::print_note(&format!("removed the API key of {tenant} for {provider}"));
        }
        TenantKeyCommand::List { tenant, json } => {
            let rows = database.provider_keys(tenant.as_deref()).await?;
            if json {
                let row = |row: &ProviderKeyRow| {
                    json!({
                        "tenant": row.tenant_name, "provider": row.provider,
                        "changed_at": row.changed_at,
                    })
                };
                return super::print_json(rows.iter().map(row).collect());
            }
            if rows.is_empty() {
                output::print_note("no API keys of tenants: all use those of the nodes");
            }
            for row in &rows {
                let age = format_age(row.changed_at, now_millis());
                output::print_line(&format!(
                    "{:<20}  {:<20}  {age}",
                    row.tenant_name, row.provider
                ));
            }
        }
        TenantKeyCommand::Reseal { key_file } => {
            let keys = SealingKeys::read(&key_file)?;
            let rows = database.provider_keys(None).await?;
            for row in &rows {
                let owner = (row.tenant, row.provider.as_str());
                let opened = keys.open(owner, &row.sealed);
                let key = opened.with_context(|| format!("tenant {}", row.tenant_name))?;
                let sealed = keys.seal(owner, &key)?;
                database.set_provider_key(row.tenant, &row.provider, &sealed).await?;
            }
            output::print_note(&format!(
                "sealed {} with the first key of the file; the others are no longer needed",
                pluralize(rows.len(), "API key")
            ));
        }
    }
    Ok(())
}
