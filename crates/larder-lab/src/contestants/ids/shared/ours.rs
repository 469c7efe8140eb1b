//! larder's own, for many threads.

use larder::ids::{IdRange, IdSpace, SharedRule};

use super::{LocalIds, SharedIds};

/// [`IdSpace`] by a rule with its default parameters.
#[derive(Debug)]
pub struct OurSpace<R: SharedRule>(IdSpace<R>);

impl<R: SharedRule + Default> SharedIds for OurSpace<R>
where
    IdSpace<R>: Sync,
{
    type Local<'a>
        = &'a Self
    where
        R: 'a;

    fn new(count: u64) -> anyhow::Result<Self> {
        Ok(Self(IdSpace::new(
            IdRange::new(0, count - 1)?,
            R::default(),
        )?))
    }

    fn local(&self, _: usize, _: usize) -> &Self {
        self
    }
}

impl<R: SharedRule> LocalIds for &OurSpace<R> {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        self.0.alloc().ok()
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.0.free(id).is_ok()
    }
}
