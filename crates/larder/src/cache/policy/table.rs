//! Arrays by frame, whose memory may be refused.

use super::PolicyError;

/// Most frames of a rule: numbers above are kept for marks.
///
/// ```
/// use larder::cache::policy::{Lru, MOST_FRAMES, Policy, PolicyError};
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

/// An array of `len` times `value`.
pub(super) fn table<T: Clone>(len: usize, value: T) -> Result<Vec<T>, PolicyError> {
    let mut table = Vec::new();
    grow(&mut table, len, value)?;
    Ok(table)
}

/// Makes an array at least `len` long, with `value` in what is new.
pub(super) fn grow<T: Clone>(table: &mut Vec<T>, len: usize, value: T) -> Result<(), PolicyError> {
    let more = len.saturating_sub(table.len());
    table
        .try_reserve_exact(more)
        .map_err(|_| PolicyError::Memory {
            bytes: more.saturating_mul(size_of::<T>()),
        })?;
    if more > 0 {
        table.resize(len, value);
    }
    Ok(())
}
