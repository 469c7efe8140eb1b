//! Why a snapshot was refused.

use alloc::string::String;

use crate::ids::IdError;

/// Why a snapshot could not be taken, read, written or restored.
///
/// ```
/// use larder::ids::{Snapshot, SnapshotError};
/// assert!(matches!(Snapshot::from_bytes(b"GIF89a"), Err(SnapshotError::Foreign)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes do not begin as a snapshot does.
    #[error(
        "these bytes are no snapshot of identifiers; give what `to_bytes` or `save` has written"
    )]
    Foreign,
    /// Written by another version of larder.
    #[error(
        "the snapshot has version {found} and this larder reads {known}; use the larder that wrote it"
    )]
    Version {
        /// What the bytes say.
        found: u16,
        /// What is understood here.
        known: u16,
    },
    /// Torn or altered: nothing in it can be relied on.
    #[error(
        "the snapshot is damaged: {what}; restore from another copy or rebuild from the live identifiers"
    )]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// Larger than the caller allows.
    #[error(
        "the snapshot has {found} {unit} and at most {most} are allowed; if you trust its source, allow more by `load_at_most`, `read_from_at_most` or `from_bytes_at_most`"
    )]
    TooLarge {
        /// What the snapshot says it has.
        found: u64,
        /// Of what: bytes, identifiers.
        unit: &'static str,
        /// What was allowed.
        most: u64,
    },
    /// Taken under another rule.
    #[error(
        "the snapshot was taken under the rule {saved}, not {given}; restore it under that one, or use `restore_into`"
    )]
    Rule {
        /// The rule in the snapshot.
        saved: String,
        /// The rule it was to be restored under.
        given: String,
    },
    /// A name of a rule that is too long to be one.
    #[error("the rule's name has {length} bytes; a snapshot has room for 255")]
    RuleName {
        /// Its length.
        length: usize,
    },
    /// The identifiers themselves.
    #[error(transparent)]
    Ids(#[from] IdError),
    /// The file or the stream.
    #[cfg(feature = "std")]
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Not even the bytes.
pub(super) fn no_memory<E>(_: E) -> SnapshotError {
    SnapshotError::Ids(IdError::OutOfMemory)
}
