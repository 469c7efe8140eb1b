//! What stands behind a depot.

/// Where rounds come from when the depot has none, and where rounds go that the depot gives up.
pub(crate) trait Supply {
    /// Why there are no rounds.
    type Error;

    /// Writes fresh rounds to the front of `rounds` and says how many: at least one.
    ///
    /// # Errors
    /// When there is not a single one.
    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error>;

    /// Whether an error must reach the caller at once. Others are forgotten when rounds are found elsewhere.
    fn is_final(error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Takes rounds back. Called when the depot gives up what it does not need, and when no memory is left to keep a
    /// round in a magazine.
    fn accept(&self, rounds: &[usize]);
}
