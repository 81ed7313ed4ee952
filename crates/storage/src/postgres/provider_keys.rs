//! The API keys of tenants, sealed by the nodes: the database cannot open them.

use super::claim_registry::TenantId;
use super::database::PostgresDatabase;
use super::team::TeamChange;
use crate::StorageError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use windlass_protocol::UnixMillis;

/// The key of a tenant for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderKeyRow {
    pub tenant: TenantId,
    pub tenant_name: String,
    pub provider: String,
    pub sealed: Vec<u8>,
    pub changed_at: UnixMillis,
}

impl PostgresDatabase {
    /// Returns the keys of all tenants, or of one.
    pub async fn provider_keys(
        &self,
        tenant: Option<&str>,
    ) -> Result<Vec<ProviderKeyRow>, StorageError> {
        let query = || {
            sqlx::query(
                "SELECT tenant.id, tenant.name, provider, sealed,
                   (extract(epoch FROM changed_at) * 1000)::bigint
                 FROM provider_key JOIN tenant ON tenant.id = provider_key.tenant
                 WHERE $1::text IS NULL OR tenant.name = $1
                 ORDER BY tenant.name, provider",
            )
            .bind(tenant)
        };
        let key = |row: &PgRow| {
            Ok(ProviderKeyRow {
                tenant: TenantId(row.try_get(0)?),
                tenant_name: row.try_get(1)?,
                provider: row.try_get(2)?,
                sealed: row.try_get(3)?,
                changed_at: UnixMillis(row.try_get::<i64, _>(4)? as u64),
            })
        };
        let rows = self.fetch_with_retries(query).await?;
        Ok(rows.iter().map(key).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Stores the key of a tenant for a provider, in place of the one that it has.
    pub async fn set_provider_key(
        &self,
        tenant: TenantId,
        provider: &str,
        sealed: &[u8],
    ) -> Result<(), StorageError> {
        let query = || {
            sqlx::query(
                "INSERT INTO provider_key (tenant, provider, sealed) VALUES ($1, $2, $3)
                 ON CONFLICT (tenant, provider) DO UPDATE
                 SET sealed = excluded.sealed, changed_at = now()",
            )
            .bind(tenant.0)
            .bind(provider)
            .bind(sealed)
        };
        self.fetch_with_retries(query).await?;
        Ok(())
    }

    /// Removes the key of a tenant for a provider.
    pub async fn remove_provider_key(
        &self,
        tenant: &str,
        provider: &str,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            sqlx::query(
                "DELETE FROM provider_key USING tenant
                 WHERE tenant.name = $1 AND provider_key.tenant = tenant.id AND provider = $2
                 RETURNING 1",
            )
            .bind(tenant)
            .bind(provider)
        };
        self.change(query, TeamChange::NotFound).await
    }
}
