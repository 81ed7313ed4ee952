//! A request whose client is known.

use super::connection::Connection;
use crate::request_checks::ClientIdentity;
use crate::routes::{ParameterValues, Route, invalid};
use crate::{Caller, ClientAttendance, WatchOptions};
use axum::http::header::HeaderMap;
use windlass_protocol::{ClientInfo, EventCursor, RequestError};

/// The parts of a request that its answer needs, once its client is known.
pub(super) struct ServedRequest {
    pub(super) connection: Connection,
    pub(super) route: &'static Route,
    pub(super) client: Option<ClientIdentity>,
    pub(super) parameters: ParameterValues,
    pub(super) headers: HeaderMap,
}

impl ServedRequest {
    /// Returns the client as the host knows it.
    pub(super) fn caller(&self, client: &ClientIdentity) -> Caller {
        Caller {
            client: ClientInfo { name: client.user.clone(), kind: client.kind },
            right: client.right,
            workspace: self.parameters.workspace.clone(),
            through_node: client.through_node,
            tenant: client.tenant.clone(),
        }
    }

    /// Returns the name of the client.
    pub(super) fn known_client(&self) -> Result<String, RequestError> {
        let client = self.client.as_ref().ok_or(RequestError::Unauthorized)?;
        Ok(client.name.clone())
    }

    /// Returns the part of a session's events that the client asks for.
    pub(super) fn watch_options(&self) -> Result<WatchOptions, RequestError> {
        let last_event_id = self.headers.get("last-event-id").map(|value| value.to_str());
        let after = match last_event_id {
            Some(Ok(cursor)) => Some(cursor),
            Some(Err(_)) => return Err(invalid("The header `Last-Event-ID` is not a cursor.")),
            None => self.parameters.text("after"),
        };
        let after = after.map(str::parse::<EventCursor>).transpose();
        Ok(WatchOptions {
            after: after.map_err(|error| invalid(error.to_string()))?,
            user: match self.parameters.text("user") {
                Some("true") => ClientAttendance::Present,
                Some(_) => ClientAttendance::Absent,
                None => ClientAttendance::Unknown,
            },
            without_live_events: self.parameters.text("live") == Some("none"),
        })
    }
}
