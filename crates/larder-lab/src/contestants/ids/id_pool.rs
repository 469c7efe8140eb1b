//! The crate id-pool: a vector of free ranges.

use super::{IdSource, Start};

/// `IdPool`: the lowest free identifier, from a sorted vector of ranges.
#[derive(Debug)]
pub struct Pool {
    pool: id_pool::IdPool,
}

impl IdSource for Pool {
    const ABOUT: &'static str = "crate id-pool: a vector of free ranges, the lowest first";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let end = u32::try_from(start.count())?;
        let mut pool = id_pool::IdPool::new_ranged(0..end);
        for _ in 0..end {
            pool.request_id();
        }
        // From above: each range goes to the end of the vector.
        let free: Vec<u32> = start.free_ids().collect();
        for &id in free.iter().rev() {
            pool.return_id(id)
                .map_err(|id| anyhow::anyhow!("id-pool did not take {id} back"))?;
        }
        Ok(Self { pool })
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.pool.request_id().map(u64::from)
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.pool.return_id(id as u32).is_ok()
    }

    // It notices a part of them only.
    const CHECKS: bool = false;
}
