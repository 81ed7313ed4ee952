//! The grant: proof that somebody said yes.

use windlass_protocol::Access;

/// The right to touch exactly these things. Its field is private and it has no public maker, so a
/// grant that nobody gave cannot be written down.
#[derive(Debug)]
pub struct Grant {
    accesses: Vec<Access>,
}

impl Grant {
    pub(crate) fn over(accesses: impl IntoIterator<Item = Access>) -> Grant {
        Grant { accesses: accesses.into_iter().collect() }
    }

    /// True if it opens this. The right to change a file includes the right to look at it.
    pub fn covers(&self, wanted: &Access) -> bool {
        self.accesses.iter().any(|given| match (given, wanted) {
            (Access::Edit { path: given }, Access::Read { path: wanted }) => given == wanted,
            (given, wanted) => given == wanted,
        })
    }
}
