//! How many frames a rule can have.

use super::PolicyError;

/// Most frames of a rule: numbers above are kept for marks.
///
/// ```
/// use larder_policy::{Lru, MOST_FRAMES, Policy, PolicyError};
/// let why = Lru::new(MOST_FRAMES + 1).unwrap_err();
/// assert_eq!(why, PolicyError::Capacity { frames: MOST_FRAMES + 1, most: MOST_FRAMES });
/// ```
pub const MOST_FRAMES: usize = u32::MAX as usize - 16;

/// Checks a capacity.
pub(super) fn capacity(frames: usize) -> Result<usize, PolicyError> {
    if frames == 0 || frames > MOST_FRAMES {
        return Err(PolicyError::Capacity {
            frames,
            most: MOST_FRAMES,
        });
    }
    Ok(frames)
}
