//! Servers at an address.

use crate::link::{Broken, Line, Link};
use crate::spec::{Lifecycle, Way};
use crate::wire::transport_within;
use std::sync::Arc;

/// Connects to the server at an address.
pub(crate) async fn connect(
    way: &Way,
    line: Arc<Line>,
    lifecycle: Option<Lifecycle>,
) -> Result<Link, Broken> {
    let Way::Remote { url, headers, auth, reach } = way else {
        return Err(Broken::new("it has no address"));
    };
    let transport = transport_within(*reach, url, headers, auth);
    let transport = transport.map_err(|failure| Broken::new(failure.text))?;
    Link::over(transport, line, lifecycle).await
}
