//! What stands behind a depot.

/// Where rounds come from when the depot has none, and where rounds go that the depot gives up.
///
/// ```
/// use std::sync::Mutex;
/// use larder::magazine::Supply;
///
/// /// Numbers that are not in use.
/// struct Free(Mutex<Vec<usize>>);
///
/// impl Supply for Free {
///     type Error = &'static str;
///     fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error> {
///         let mut free = self.0.lock().map_err(|_| "a thread panicked")?;
///         let n = rounds.len().min(free.len());
///         let left = free.len() - n;
///         rounds[..n].copy_from_slice(&free[left..]);
///         free.truncate(left);
///         if n == 0 { Err("all are in use") } else { Ok(n) }
///     }
///     fn accept(&self, rounds: &[usize]) {
///         self.0.lock().unwrap().extend(rounds);
///     }
/// }
///
/// let supply = Free(Mutex::new(vec![1, 2, 3]));
/// let mut rounds = [0; 2];
/// assert_eq!(supply.fetch(&mut rounds), Ok(2));
/// assert!(!Free::is_final(&"all are in use"), "another CPU may have some");
/// supply.accept(&rounds);
/// assert_eq!(*supply.0.lock().unwrap(), [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Supply {
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
