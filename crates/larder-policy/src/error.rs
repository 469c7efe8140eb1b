//! Why a rule could not be made or resized.

use larder_base::table::NoMemory;

/// Why a rule could not be made or resized.
///
/// ```
/// use larder_policy::{Lru, Policy, PolicyError, rule};
/// assert!(matches!(Lru::new(0), Err(PolicyError::Capacity { frames: 0, .. })));
/// let why = rule("lrru", 10).map(|_| ()).unwrap_err();
/// assert!(why.to_string().contains("lrru"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A capacity that no rule can have.
    #[error(
        "replacement rule: a capacity of {frames} frames was asked for; it must be 1 to {most}"
    )]
    Capacity {
        /// Frames asked for.
        frames: usize,
        /// Most frames a rule can number.
        most: usize,
    },
    /// There is no memory for the rule's arrays.
    #[error(
        "replacement rule: no memory for {bytes} bytes of state; take fewer frames or raise the limit"
    )]
    Memory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// A rule of this name does not exist.
    #[error("replacement rule: there is no rule {name:?}; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that there are, separated by commas.
        known: String,
    },
}

impl From<NoMemory> for PolicyError {
    fn from(NoMemory { bytes }: NoMemory) -> Self {
        Self::Memory { bytes }
    }
}
