//! An identifier that knows which of its owners it belongs to.

use core::fmt;

/// Index and generation in one word, as [`Tagged`](super::Tagged) made it: a plain number that may be copied, stored
/// and sent anywhere, and is refused once what it stood for is gone.
///
/// ```
/// use larder::ids::Handle;
///
/// let handle = Handle::from_raw(0x3_0007);
/// assert_eq!(u32::try_from(handle.raw()), Ok(0x3_0007));
/// assert_eq!(handle.to_string(), "0x30007");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u64);

impl Handle {
    /// A handle from its number. Any number will do: a wrong one is refused when it is used.
    ///
    /// ```
    /// # use core::cell::RefCell;
    /// # use larder::ids::{Handle, Ids, Tagged, Widths, rule::Lowest};
    /// # let tags = Tagged::new(RefCell::new(Ids::new(0u32..1000, Lowest)?), Widths::W32)?;
    /// let number: u64 = tags.alloc()?.raw();      // sent to another program, and back
    /// assert!(tags.is_live(Handle::from_raw(number)));
    /// # Ok::<(), larder::ids::IdError>(())
    /// ```
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number, which has as many bits as [`Widths::word`](super::Widths::word) says.
    ///
    /// ```
    /// # use larder::ids::Handle;
    /// assert_eq!(Handle::from_raw(7).raw(), 7);
    /// ```
    pub const fn raw(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
