//! Pages as `bytes::Bytes`.

use super::PageBuf;

impl From<PageBuf> for bytes::Bytes {
    /// Without a copy; the page goes back when the last clone is dropped.
    ///
    /// ```
    /// let pool = larder::pages::PagePool::new()?;
    /// let bytes = bytes::Bytes::from(pool.get_zeroed()?);
    /// assert_eq!(bytes.slice(10..12).as_ref(), [0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn from(page: PageBuf) -> Self {
        Self::from_owner(page)
    }
}
