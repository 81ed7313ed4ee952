//! The tenants of a fleet, their users, and the tokens of users.
//!
//! A token is stored as a digest. Each node reads all valid tokens once in a while, so that a request
//! needs no statement.

use super::claim_registry::TenantId;
use super::database::{PgQuery, PostgresDatabase};
use super::quotas::{TenantLimits, UsageCounts};
use crate::StorageError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;
use windlass_protocol::{AccessRight, Cost, UnixMillis};

/// A tenant: a team whose sessions no other tenant sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRow {
    pub id: TenantId,
    pub name: String,
    pub is_disabled: bool,
    /// Folders that its sessions may work in; all folders of a node if empty.
    pub roots: Vec<String>,
    pub limits: TenantLimits,
    /// A managed policy for its sessions, as JSON with comments.
    pub policy: Option<String>,
}

/// The users, sessions and usage of a tenant, for its operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantCounts {
    pub users: u64,
    pub sessions: u64,
    /// Usage of its sessions today.
    pub used: UsageCounts,
}

/// A user of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRow {
    pub tenant: String,
    pub name: String,
    pub right: AccessRight,
    pub is_disabled: bool,
    pub tokens: u64,
}

/// A token of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTokenRow {
    pub tenant: String,
    pub user: String,
    pub name: String,
    pub right: AccessRight,
    pub created_at: UnixMillis,
    pub expires_at: Option<UnixMillis>,
}

/// A token to be stored.
#[derive(Clone, Debug)]
pub struct NewUserToken<'a> {
    pub tenant: &'a str,
    pub user: &'a str,
    pub name: &'a str,
    /// SHA-256 of its text.
    pub digest: [u8; 32],
    pub right: AccessRight,
    /// Days until it expires; `None` if it does not.
    pub days: Option<u32>,
}

/// A token that is valid, as a node checks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidToken {
    pub digest: [u8; 32],
    pub tenant: TenantId,
    pub tenant_name: String,
    pub user: String,
    pub name: String,
    /// The right of the token or of the user, whichever is less.
    pub right: AccessRight,
    pub expires_at: Option<UnixMillis>,
}

/// The reason why an entry was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamChange {
    Done,
    /// An entry with this name exists.
    Exists,
    /// There is no such tenant, user or token.
    NotFound,
}

const TENANTS_QUERY: &str = "
    SELECT id, name, is_disabled, roots, max_open_sessions, max_steps_per_day, max_tokens_per_day,
      max_cost_per_day, max_cost_per_month, policy
    FROM tenant ORDER BY name";

/// It reads all sessions, so nodes do not execute it.
const TENANT_COUNTS_QUERY: &str = "
    SELECT tenant.id,
      (SELECT count(*) FROM fleet_user WHERE fleet_user.tenant = tenant.id),
      (SELECT count(*) FROM session WHERE session.tenant = tenant.id AND head > 0),
      used.steps, used.tokens, used.cost
    FROM tenant, LATERAL (
      SELECT coalesce(sum(steps), 0)::bigint AS steps, coalesce(sum(tokens), 0)::bigint AS tokens,
        coalesce(sum(cost_micros), 0)::bigint AS cost
      FROM usage WHERE usage.tenant = tenant.id AND day = (now() AT TIME ZONE 'UTC')::date) AS used";

const USERS_QUERY: &str = "
    SELECT tenant.name, fleet_user.name, access_right, fleet_user.is_disabled,
      (SELECT count(*) FROM access_token AS token
       WHERE token.tenant = fleet_user.tenant AND token.user_name = fleet_user.name)
    FROM fleet_user JOIN tenant ON tenant.id = fleet_user.tenant
    WHERE $1::text IS NULL OR tenant.name = $1
    ORDER BY tenant.name, fleet_user.name";

const TOKENS_QUERY: &str = "
    SELECT tenant.name, user_name, token.name, access_right,
      (extract(epoch FROM created_at) * 1000)::bigint,
      (extract(epoch FROM expires_at) * 1000)::bigint
    FROM access_token AS token JOIN tenant ON tenant.id = token.tenant
    WHERE $1::text IS NULL OR tenant.name = $1
    ORDER BY tenant.name, user_name, token.name";

const VALID_TOKENS_QUERY: &str = "
    SELECT digest, tenant.id, tenant.name, token.user_name, token.name, token.access_right,
      fleet_user.access_right, (extract(epoch FROM expires_at) * 1000)::bigint
    FROM access_token AS token
      JOIN fleet_user ON fleet_user.tenant = token.tenant AND fleet_user.name = token.user_name
        AND NOT fleet_user.is_disabled
      JOIN tenant ON tenant.id = token.tenant AND NOT tenant.is_disabled
    WHERE expires_at IS NULL OR expires_at > now()";

impl PostgresDatabase {
    /// Returns all tenants.
    pub async fn tenants(&self) -> Result<Vec<TenantRow>, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(TENANTS_QUERY)).await?;
        let tenant = |row: &PgRow| {
            Ok(TenantRow {
                id: TenantId(row.try_get(0)?),
                name: row.try_get(1)?,
                is_disabled: row.try_get(2)?,
                roots: row.try_get(3)?,
                limits: TenantLimits {
                    open_sessions: decode_limit(row, 4)?,
                    steps_per_day: decode_limit(row, 5)?,
                    tokens_per_day: decode_limit(row, 6)?,
                    cost_per_day: decode_limit(row, 7)?.map(Cost),
                    cost_per_month: decode_limit(row, 8)?.map(Cost),
                },
                policy: row.try_get(9)?,
            })
        };
        Ok(rows.iter().map(tenant).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Returns the numbers of all tenants.
    pub async fn tenant_counts(&self) -> Result<BTreeMap<TenantId, TenantCounts>, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(TENANT_COUNTS_QUERY)).await?;
        let counts = |row: &PgRow| {
            let number = |column: usize| row.try_get::<i64, _>(column).map(|n| n as u64);
            let used =
                UsageCounts { steps: number(3)?, tokens: number(4)?, cost: Cost(number(5)?) };
            let counts = TenantCounts { users: number(1)?, sessions: number(2)?, used };
            Ok((TenantId(row.try_get(0)?), counts))
        };
        Ok(rows.iter().map(counts).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Adds a tenant.
    pub async fn add_tenant(
        &self,
        name: &str,
        roots: &[String],
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            let query = "INSERT INTO tenant (name, roots) VALUES ($1, $2)
                         ON CONFLICT (name) DO NOTHING RETURNING 1";
            sqlx::query(query).bind(name).bind(roots)
        };
        self.change(query, TeamChange::Exists).await
    }

    /// Sets the folders that the sessions of a tenant may work in.
    pub async fn set_tenant_roots(
        &self,
        name: &str,
        roots: &[String],
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            sqlx::query("UPDATE tenant SET roots = $2 WHERE name = $1 RETURNING 1")
                .bind(name)
                .bind(roots)
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Sets the limits of a tenant.
    pub async fn set_tenant_limits(
        &self,
        name: &str,
        limits: &TenantLimits,
    ) -> Result<TeamChange, StorageError> {
        let number = |limit: Option<u64>| limit.map(|max| i64::try_from(max).unwrap_or(i64::MAX));
        let cost = |limit: Option<Cost>| number(limit.map(|cost| cost.0));
        let query = || {
            let query = "UPDATE tenant SET max_open_sessions = $2, max_steps_per_day = $3,
                           max_tokens_per_day = $4, max_cost_per_day = $5, max_cost_per_month = $6
                         WHERE name = $1 RETURNING 1";
            sqlx::query(query)
                .bind(name)
                .bind(number(limits.open_sessions))
                .bind(number(limits.steps_per_day))
                .bind(number(limits.tokens_per_day))
                .bind(cost(limits.cost_per_day))
                .bind(cost(limits.cost_per_month))
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Sets the policy of a tenant, or removes it.
    pub async fn set_tenant_policy(
        &self,
        name: &str,
        policy: Option<&str>,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            sqlx::query("UPDATE tenant SET policy = $2 WHERE name = $1 RETURNING 1")
                .bind(name)
                .bind(policy)
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Disables a tenant, or enables it again. Nodes close the sessions of a disabled tenant.
    pub async fn set_tenant_disabled(
        &self,
        name: &str,
        is_disabled: bool,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            sqlx::query("UPDATE tenant SET is_disabled = $2 WHERE name = $1 RETURNING 1")
                .bind(name)
                .bind(is_disabled)
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Returns the users of a tenant, or of all.
    pub async fn users(&self, tenant: Option<&str>) -> Result<Vec<UserRow>, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(USERS_QUERY).bind(tenant)).await?;
        let user = |row: &PgRow| {
            Ok(UserRow {
                tenant: row.try_get(0)?,
                name: row.try_get(1)?,
                right: parse_right(row.try_get(2)?)?,
                is_disabled: row.try_get(3)?,
                tokens: row.try_get::<i64, _>(4)? as u64,
            })
        };
        Ok(rows.iter().map(user).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Adds a user, or sets the right of one.
    pub async fn set_user(
        &self,
        tenant: &str,
        name: &str,
        right: AccessRight,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            let query = "INSERT INTO fleet_user (tenant, name, access_right)
                         SELECT id, $2, $3 FROM tenant WHERE name = $1
                         ON CONFLICT (tenant, name) DO UPDATE
                         SET access_right = excluded.access_right RETURNING 1";
            sqlx::query(query).bind(tenant).bind(name).bind(right.to_string())
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Disables a user, or enables it again. The tokens of a disabled user do not work.
    pub async fn set_user_disabled(
        &self,
        tenant: &str,
        name: &str,
        is_disabled: bool,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            let query = "UPDATE fleet_user SET is_disabled = $3 FROM tenant
                         WHERE tenant.name = $1 AND fleet_user.tenant = tenant.id
                           AND fleet_user.name = $2 RETURNING 1";
            sqlx::query(query).bind(tenant).bind(name).bind(is_disabled)
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Returns the tokens of a tenant, or of all.
    pub async fn user_tokens(
        &self,
        tenant: Option<&str>,
    ) -> Result<Vec<UserTokenRow>, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(TOKENS_QUERY).bind(tenant)).await?;
        let token = |row: &PgRow| {
            Ok(UserTokenRow {
                tenant: row.try_get(0)?,
                user: row.try_get(1)?,
                name: row.try_get(2)?,
                right: parse_right(row.try_get(3)?)?,
                created_at: UnixMillis(row.try_get::<i64, _>(4)? as u64),
                expires_at: decode_time(row, 5)?,
            })
        };
        Ok(rows.iter().map(token).collect::<Result<_, sqlx::Error>>()?)
    }

    /// Stores a token. `NotFound` if there is no such user.
    pub async fn add_user_token(
        &self,
        token: &NewUserToken<'_>,
    ) -> Result<TeamChange, StorageError> {
        let exists = || {
            let query = "SELECT 1 FROM fleet_user JOIN tenant ON tenant.id = fleet_user.tenant
                         WHERE tenant.name = $1 AND fleet_user.name = $2";
            sqlx::query(query).bind(token.tenant).bind(token.user)
        };
        if self.fetch_with_retries(exists).await?.is_empty() {
            return Ok(TeamChange::NotFound);
        }
        // A second attempt after a lost answer finds its own digest.
        let query = || {
            let query = "INSERT INTO access_token AS token
                           (digest, tenant, user_name, name, access_right, expires_at)
                         SELECT $1, tenant.id, $3, $4, $5, now() + make_interval(days => $6)
                         FROM tenant WHERE name = $2
                         ON CONFLICT (tenant, user_name, name) DO UPDATE
                         SET digest = excluded.digest WHERE token.digest = excluded.digest
                         RETURNING 1";
            sqlx::query(query)
                .bind(token.digest.as_slice())
                .bind(token.tenant)
                .bind(token.user)
                .bind(token.name)
                .bind(token.right.to_string())
                .bind(token.days.map(|days| i32::try_from(days).unwrap_or(i32::MAX)))
        };
        self.change(query, TeamChange::Exists).await
    }

    /// Removes a token.
    pub async fn revoke_user_token(
        &self,
        tenant: &str,
        user: &str,
        name: &str,
    ) -> Result<TeamChange, StorageError> {
        let query = || {
            let query = "DELETE FROM access_token AS token USING tenant
                         WHERE tenant.name = $1 AND token.tenant = tenant.id
                           AND user_name = $2 AND token.name = $3 RETURNING 1";
            sqlx::query(query).bind(tenant).bind(user).bind(name)
        };
        self.change(query, TeamChange::NotFound).await
    }

    /// Returns the tokens that are valid now, of all tenants.
    pub async fn valid_tokens(&self) -> Result<Vec<ValidToken>, StorageError> {
        let rows = self.fetch_with_retries(|| sqlx::query(VALID_TOKENS_QUERY)).await?;
        let token = |row: &PgRow| -> Result<ValidToken, sqlx::Error> {
            let digest: Vec<u8> = row.try_get(0)?;
            let (own, of_user) = (parse_right(row.try_get(5)?)?, parse_right(row.try_get(6)?)?);
            Ok(ValidToken {
                digest: digest.try_into().map_err(|_| decode_error("the digest of a token"))?,
                tenant: TenantId(row.try_get(1)?),
                tenant_name: row.try_get(2)?,
                user: row.try_get(3)?,
                name: row.try_get(4)?,
                // What needs more is for the operators of nodes.
                right: own.min(of_user).min(AccessRight::Write),
                expires_at: decode_time(row, 7)?,
            })
        };
        // One that this version cannot read is none, and says nothing about the others.
        let read = |row: &PgRow| {
            token(row).inspect_err(|error| tracing::warn!(%error, "a token is not valid here")).ok()
        };
        Ok(rows.iter().filter_map(read).collect())
    }

    /// Executes a change that returns a row if it was made.
    pub(super) async fn change<'q>(
        &self,
        query: impl Fn() -> PgQuery<'q> + Send,
        otherwise: TeamChange,
    ) -> Result<TeamChange, StorageError> {
        let rows = self.fetch_with_retries(query).await?;
        Ok(if rows.is_empty() { otherwise } else { TeamChange::Done })
    }
}

fn decode_limit(row: &PgRow, column: usize) -> Result<Option<u64>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(|limit| limit as u64))
}

fn decode_time(row: &PgRow, column: usize) -> Result<Option<UnixMillis>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(|millis| UnixMillis(millis as u64)))
}

/// Reads a right. One that this version does not know is refused.
fn parse_right(text: String) -> Result<AccessRight, sqlx::Error> {
    let rights = [AccessRight::Read, AccessRight::Write, AccessRight::Admin];
    let right = rights.into_iter().find(|right| right.to_string() == text);
    right.ok_or_else(|| decode_error("a right"))
}

fn decode_error(what: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{what} in the database is not one of this version").into())
}
