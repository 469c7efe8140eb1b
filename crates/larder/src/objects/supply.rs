//! How objects get from slabs into magazines, constructed, and back.

use core::any::Any;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cache::Cache;
use super::error::ObjectError;
use super::slabs::Batch;
use crate::magazine::{MAX_ROUNDS, Supply};
use crate::os::lock::order::{Rank, calls};

/// Of how many constructed objects one more is constructed ahead: a constructor may be dear in time and memory, so the
/// first get makes one object and not a magazine's worth.
const AHEAD: u64 = 8;

/// Why a fetch failed.
pub(super) enum Failure<E> {
    /// For want of memory.
    Get(ObjectError),
    /// The constructor said so.
    Constructor(E),
    /// The constructor panicked. Unwinding goes on where the caller is, past the stock.
    Panic(Box<dyn Any + Send>),
}

impl<E> Failure<E> {
    /// Whether pages or metadata were missing, which other caches may have.
    pub(super) fn is_short(&self) -> bool {
        matches!(
            self,
            Self::Get(ObjectError::Pages(_) | ObjectError::System(_))
        )
    }
}

/// What constructs an object in place.
pub(super) trait Construct {
    /// Why it could not.
    type Error;

    /// Constructs an object.
    ///
    /// # Safety
    /// The memory at `at` has the cache's layout and is the callee's for the time of the call.
    unsafe fn construct(&self, at: NonNull<u8>) -> Result<(), Self::Error>;
}

/// A cache as the supplier of its stock.
pub(super) struct Objects<'a, C> {
    pub(super) cache: &'a Cache,
    pub(super) constructor: C,
    /// Called before memory grows: it may return to the slabs what lies free elsewhere.
    pub(super) spare: Option<&'a dyn Fn()>,
    /// Set if the one object that a fetch brought is zero, as far as is known.
    pub(super) untouched: Option<&'a Cell<bool>>,
}

impl<C: Construct> Supply for Objects<'_, C> {
    type Error = Failure<C::Error>;

    /// A panic is never swallowed, whatever other CPUs have in stock.
    fn is_final(failure: &Self::Error) -> bool {
        matches!(failure, Failure::Panic(_))
    }

    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error> {
        let cache = self.cache;
        let most = rounds.len();
        let enough = most.min(cache.fetch_enough());
        let fresh = cache.fresh(enough);
        let mut unmade = [0_u64; MAX_ROUNDS.div_ceil(64)];
        let mut spare = self.spare;
        let n = loop {
            let mut n = 0;
            cache.slabs().take(
                cache.ground(),
                Batch::new(enough, most),
                fresh,
                |addr, constructed| {
                    rounds[n] = addr;
                    unmade[n / 64] |= u64::from(!constructed) << (n % 64);
                    n += 1;
                },
            );
            if n > 0 {
                break n;
            }
            match spare.take() {
                Some(spare) if !cache.grow_ready().map_err(Failure::Get)? => spare(),
                Some(_) => {}
                None => cache.grow().map_err(Failure::Get)?,
            }
        };
        if let (Some(untouched), 1) = (self.untouched, n) {
            let number = cache.inner().map.entry(rounds[0]);
            untouched.set(cache.slabs().is_untouched(cache.ground(), number));
        }
        if !cache.hooks.constructs {
            return Ok(n);
        }
        self.construct(&mut rounds[..n], &unmade)
    }

    fn accept(&self, rounds: &[usize]) {
        self.cache.bring_home(rounds, true);
    }
}

impl<C: Construct> Objects<'_, C> {
    /// Constructs what is not yet, and moves to the front what is afterwards. Says how many these are: at least one.
    fn construct(&self, objects: &mut [usize], unmade: &[u64]) -> Result<usize, Failure<C::Error>> {
        let cache = self.cache;
        let mut good = 0;
        let mut made = [0_u64; MAX_ROUNDS.div_ceil(64)];
        let mut failure = None;
        for i in 0..objects.len() {
            let addr = objects[i];
            if unmade[i / 64] >> (i % 64) & 1 != 0 {
                let at = NonNull::new(addr as *mut u8);
                let done = match (&failure, at) {
                    (None, Some(at)) => {
                        let _outside = calls("a constructor", Rank::Reaper);
                        // SAFETY: the object was taken from its slab, and no other thread uses it.
                        catch_unwind(AssertUnwindSafe(|| unsafe {
                            self.constructor.construct(at)
                        }))
                        .map_err(Failure::Panic)
                        .and_then(|r| r.map_err(Failure::Constructor))
                        .map_err(|f| failure = Some(f))
                        .is_ok()
                    }
                    _ => false,
                };
                if !done {
                    cache.bring_home(&[addr], false);
                    continue;
                }
                made[good / 64] |= 1 << (good % 64);
            }
            objects[good] = addr;
            good += 1;
        }
        let made = objects[..good]
            .iter()
            .enumerate()
            .filter(|(i, _)| made[i / 64] >> (i % 64) & 1 != 0)
            .map(|(_, &addr)| addr);
        let made = cache.set_constructed(made);
        cache.constructed.fetch_add(made, Ordering::Relaxed);
        match failure {
            // The objects that were had are worth more than the error; the caller that needs the next object gets the
            // error again. A panic is never swallowed.
            Some(Failure::Panic(payload)) => {
                cache.bring_home(&objects[..good], true);
                Err(Failure::Panic(payload))
            }
            Some(failure) if good == 0 => Err(failure),
            _ => Ok(good),
        }
    }
}

impl Cache {
    /// Objects that a fetch may construct.
    fn fresh(&self, room: usize) -> usize {
        let exist = self
            .constructed
            .load(Ordering::Relaxed)
            .saturating_sub(self.destroyed.load(Ordering::Relaxed));
        usize::try_from(exist / AHEAD + 1).map_or(room, |n| n.min(room))
    }
}

/// For caches without a constructor, and where none is needed.
pub(super) struct Plain;

impl Construct for Plain {
    type Error = core::convert::Infallible;
    unsafe fn construct(&self, _: NonNull<u8>) -> Result<(), Self::Error> {
        Ok(())
    }
}
