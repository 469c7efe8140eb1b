//! larder's own, for many threads.

use larder::ids::{IdRange, IdSpace, Rule};

use super::Common;

impl<R: Rule<Order: Send> + Default> Common for IdSpace<R>
where
    Self: Sync,
{
    fn make(count: u64) -> anyhow::Result<Self> {
        Ok(Self::new(IdRange::new(0, count - 1)?, R::default())?)
    }

    #[inline]
    fn get(&self) -> Option<u64> {
        self.alloc().ok()
    }

    #[inline]
    fn put(&self, id: u64) -> bool {
        self.free(id).is_ok()
    }
}
