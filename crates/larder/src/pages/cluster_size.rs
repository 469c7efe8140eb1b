//! How large a cluster is.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use super::block::MAX_CLUSTER_PAGES;
use super::error::PoolError;
use crate::os::half_l2_pages;

/// How many pages are populated and given back together.
///
/// ```
/// use larder::pages::ClusterSize;
/// assert_eq!("64".parse(), Ok(ClusterSize::pages(64)?));
/// assert_eq!("auto".parse(), Ok(ClusterSize::AUTO));
/// assert!(ClusterSize::pages(0).is_err());
/// # Ok::<(), larder::pages::PoolError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterSize(Option<usize>);

impl ClusterSize {
    /// What the settings of the pool say was measured, else chosen from this machine's caches: the largest power of two
    /// that fills at most half of the L2 cache, between 64 (above 33 pages the kernel flushes the TLB once instead of page
    /// by page) and 512 (2 MiB).
    pub const AUTO: Self = Self(None);

    /// A number of pages from 1 to [`MAX_CLUSTER_PAGES`].
    ///
    /// ```
    /// use larder::pages::{ClusterSize, MAX_CLUSTER_PAGES};
    /// assert_eq!(ClusterSize::pages(64)?.resolve(), 64);
    /// assert!(ClusterSize::pages(MAX_CLUSTER_PAGES + 1).is_err());
    /// # Ok::<(), larder::pages::PoolError>(())
    /// ```
    ///
    /// # Errors
    /// Names the number when it is out of range.
    pub fn pages(pages: usize) -> Result<Self, PoolError> {
        if (1..=MAX_CLUSTER_PAGES).contains(&pages) {
            Ok(Self(Some(pages)))
        } else {
            Err(PoolError::ClusterSize { pages })
        }
    }

    /// The number of pages, without settings.
    ///
    /// ```
    /// use larder::pages::ClusterSize;
    /// assert!((64..=512).contains(&ClusterSize::AUTO.resolve()));
    /// ```
    #[must_use]
    pub fn resolve(self) -> usize {
        self.0
            .unwrap_or_else(|| (1 << half_l2_pages().max(1).ilog2()).clamp(64, 512))
    }

    /// This size, or what was measured instead of [`AUTO`](Self::AUTO).
    pub(super) fn or(self, measured: Self) -> Self {
        Self(self.0.or(measured.0))
    }
}

impl FromStr for ClusterSize {
    type Err = PoolError;
    fn from_str(text: &str) -> Result<Self, PoolError> {
        if text == "auto" {
            return Ok(Self::AUTO);
        }
        text.parse()
            .map_err(|_: ParseIntError| PoolError::ClusterText)
            .and_then(Self::pages)
    }
}

impl fmt::Display for ClusterSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pages) => pages.fmt(f),
            None => f.write_str("auto"),
        }
    }
}
