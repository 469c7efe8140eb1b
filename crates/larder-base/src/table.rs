//! Arrays whose memory may be refused.

use alloc::vec::Vec;

/// There is no memory for an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

/// An array of `len` copies of `value`.
///
/// # Errors
/// [`NoMemory`].
pub fn table<T: Clone>(len: usize, value: T) -> Result<Vec<T>, NoMemory> {
    let mut table = Vec::new();
    grow(&mut table, len, value)?;
    Ok(table)
}

/// Makes an array at least `len` long, with `value` in the new places.
///
/// # Errors
/// [`NoMemory`]; the array is then unchanged.
pub fn grow<T: Clone>(table: &mut Vec<T>, len: usize, value: T) -> Result<(), NoMemory> {
    let more = len.saturating_sub(table.len());
    table.try_reserve_exact(more).map_err(|_| NoMemory {
        bytes: more.saturating_mul(size_of::<T>()),
    })?;
    if more > 0 {
        table.resize(len, value);
    }
    Ok(())
}
