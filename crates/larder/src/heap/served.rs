//! Which path the objects of size classes took.

use super::class::CLASSES;
use super::classes::Classes;
use crate::os::rseq::Mode;

/// What the CPUs' magazines of size classes have served: a measurement of them can tell whether the objects came by the
/// path that it means to measure. Read without stopping any thread, so the numbers are of slightly different moments.
///
/// ```
/// use std::alloc::Layout;
/// use larder::{heap::Classes, objects::Family};
/// let classes = Classes::new(&Family::new()?);
/// classes.alloc(Layout::new::<u64>())?;
/// let served = classes.served();
/// assert_eq!(served.misses, 1, "nothing was ready");
/// println!("{} objects came from magazines that are {}", served.hits, served.mode);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// How the CPUs' magazines are reached: by restartable sequences, or under locks.
    pub mode: Mode,
    /// Objects that came from a CPU's magazines.
    pub hits: u64,
    /// Objects that were asked for when a CPU's magazines were empty.
    pub misses: u64,
}

impl Served {
    /// Share of the objects that came from a CPU's magazines by a restartable sequence, 0 to 1; `None` where the CPUs'
    /// magazines were asked for none.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// assert_eq!(classes.served().rseq_share(), None);
    /// let layout = Layout::new::<[u64; 5]>();
    /// for _ in 0..100 {
    ///     let object = classes.alloc(layout)?;
    ///     // SAFETY: taken above with this layout, put once.
    ///     unsafe { classes.dealloc(object, layout) };
    /// }
    /// println!("{:?} of them by restartable sequences", classes.served().rseq_share());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rseq_share(&self) -> Option<f64> {
        let gets = self.hits.saturating_add(self.misses);
        let by_rseq = match self.mode {
            Mode::PerCpu(_) => self.hits,
            Mode::Locked(_) => 0,
        };
        (gets > 0).then(|| by_rseq as f64 / gets as f64)
    }
}

impl Classes {
    /// What the CPUs' magazines of all classes have served. [Heaps](super::Heap) have magazines of their own, and large objects
    /// none: neither counts here. Takes time in proportion to the classes and the CPUs.
    ///
    /// ```
    /// use larder::{heap::Classes, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let served = classes.served();
    /// assert_eq!((served.hits, served.misses), (0, 0));
    /// # Ok::<(), larder::pages::PoolError>(())
    /// ```
    #[must_use]
    pub fn served(&self) -> Served {
        let caches = (0..CLASSES).filter_map(|class| self.cache(class));
        caches.fold(
            Served {
                mode: self.family().mode(),
                hits: 0,
                misses: 0,
            },
            |sum, cache| {
                let (hits, misses) = cache.hits_and_misses();
                Served {
                    hits: sum.hits.saturating_add(hits),
                    misses: sum.misses.saturating_add(misses),
                    ..sum
                }
            },
        )
    }
}
