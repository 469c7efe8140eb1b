//! Many values at once.

use core::ptr::NonNull;

use super::super::error::ObjectError;
use super::super::raw::object;
use super::super::supply::Failure;
use super::cache::unfold;
use super::{Object, ObjectCache};

/// Rounds that lie on the stack on their way.
const ROUNDS: usize = 64;

impl<T, E> ObjectCache<T, E> {
    /// Fills the empty places of `out` with values, many by one operation on the stock, and says how many it filled: all,
    /// unless memory ends or the constructor fails.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let cache = ObjectCache::new(&family, || [0_u8; 100])?;
    /// let mut values = [const { None }; 200];
    /// assert_eq!(cache.get_many(&mut values)?, 200);
    /// assert_eq!(cache.put_many(&mut values), 200);
    /// assert!(values.iter().all(Option::is_none));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get`](Self::get); only when not a single place was filled.
    ///
    /// # Panics
    /// When the constructor does. What was filled before stays.
    pub fn get_many<'c>(
        &'c self,
        out: &mut [Option<Object<'c, T>>],
    ) -> Result<usize, ObjectError<E>> {
        let mut empty = out.iter().filter(|place| place.is_none()).count();
        let mut places = out.iter_mut().filter(|place| place.is_none());
        let mut filled = 0;
        while empty > 0 {
            let mut rounds = [0; ROUNDS];
            let wanted = empty.min(ROUNDS);
            let supply = self.supply();
            let got = self.cache.inner().patiently(
                || self.cache.stock.get_many(&mut rounds[..wanted], &supply),
                Failure::is_short,
            );
            self.cache.shelved();
            let got = match got {
                Ok(got) => got,
                Err(failure) if filled == 0 => return Err(unfold(failure)),
                // A panic of the constructor goes on; the places that are filled own their values.
                Err(Failure::Panic(payload)) => std::panic::resume_unwind(payload),
                Err(_) => break,
            };
            for (&round, place) in rounds[..got].iter().zip(&mut places) {
                // SAFETY: the object is this cache's, constructed, and no other caller uses it.
                *place = Some(unsafe { Object::new(object(round).cast(), self.cache) });
            }
            filled += got;
            empty -= got;
            if got < wanted {
                break;
            }
        }
        Ok(filled)
    }

    /// Puts the values of `values` back, many by one operation on the stock, leaves every place empty, and says how many there
    /// were. A value of another cache goes back to its own.
    ///
    /// ```
    /// use larder::objects::{Family, ObjectCache};
    /// let family = Family::new()?;
    /// let (one, other) = (ObjectCache::new(&family, || 1)?, ObjectCache::new(&family, || 2)?);
    /// let mut values = [Some(one.get()?), None, Some(other.get()?)];
    /// assert_eq!(one.put_many(&mut values), 2);
    /// assert_eq!((*one.get()?, *other.get()?), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn put_many(&self, values: &mut [Option<Object<'_, T>>]) -> usize {
        let mut put = 0;
        for chunk in values.chunks_mut(ROUNDS) {
            let (mut rounds, mut n) = ([0; ROUNDS], 0);
            for value in chunk.iter_mut().filter_map(Option::take) {
                put += 1;
                // A debug build looks at each; and another cache's is dropped, which puts it back.
                if cfg!(debug_assertions) || !value.cache().is(self.cache) {
                    continue;
                }
                let at: NonNull<T> = value.into_raw();
                rounds[n] = at.as_ptr() as usize;
                n += 1;
            }
            if n > 0 {
                let bytes = n * self.cache.shape.stride;
                self.cache.inner().upkeep_of_put(bytes);
                self.cache
                    .stock
                    .put_many(&rounds[..n], &self.cache.as_supply());
                self.cache.shelved();
            }
        }
        put
    }
}
