//! A stock of objects of one's own.

use core::convert::Infallible;
use core::ptr::NonNull;

use super::error::ObjectError;
use super::raw::{RawCache, fill_objects, object, rounds_of, unfold};
use super::supply::Failure;
use crate::magazine::{MAX_ROUNDS, OwnMagazine};

/// A magazine of objects behind `&mut`: no lock, no atomic, no thread-local, and it can move between threads.
/// Objects may be put through the cache or another handle instead, and the other way round. It keeps its cache alive.
///
/// A new handle has no magazines; it takes them when it first needs them. A get takes 6 instructions and a put 6, beside
/// the call (`docs/objects.md` says how that was counted).
///
/// ```
/// use std::alloc::Layout;
/// use larder::objects::{Family, RawCache};
/// let family = Family::new()?;
/// let cache = RawCache::new(&family, Layout::new::<u64>())?;
/// let mut handle = cache.handle();
/// let object = handle.get()?;
/// // SAFETY: taken above, put once.
/// unsafe { handle.put(object) };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RawHandle {
    magazine: OwnMagazine,
    /// An owner of the same cache.
    cache: RawCache,
}

impl RawCache {
    /// A stock of one's own over this cache. It costs nothing until it is used.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut handle = cache.handle();
    /// let object = handle.get()?;
    /// // SAFETY: taken above, put once; it may as well be put through the cache.
    /// unsafe { handle.put(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn handle(&self) -> RawHandle {
        RawHandle::new(self)
    }
}

impl RawHandle {
    pub(super) fn new(cache: &RawCache) -> Self {
        Self {
            magazine: OwnMagazine::none(),
            cache: RawCache {
                cache: cache.cache.own(),
                construct: cache.construct,
            },
        }
    }

    /// An object: see [`RawCache::get`].
    ///
    /// # Errors
    /// See [`ObjectError`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut handle = cache.handle();
    /// let object = handle.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { handle.put(object) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get(&mut self) -> Result<NonNull<u8>, ObjectError> {
        match self.magazine.try_get() {
            Some(round) => Ok(object(round)),
            None => self.get_slow(),
        }
    }

    /// Puts an object back. Debug builds check the pointer.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// let mut handle = cache.handle();
    /// let object = cache.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { handle.put(object) };
    /// assert_eq!(handle.get()?, object, "the last one put is the next one taken");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// See [`RawCache::put`].
    #[inline]
    pub unsafe fn put(&mut self, object: NonNull<u8>) {
        if cfg!(debug_assertions) && self.cache.refuses(object) {
            return;
        }
        if !self.magazine.try_put(object.as_ptr() as usize) {
            self.put_slow(object);
        }
    }

    /// Fills `out` with objects and says how many there are: all, unless memory ends or the constructor refuses. A copy for
    /// each magazine's worth, no lock, and an exchange with the depot between them.
    ///
    /// ```
    /// use std::{alloc::Layout, ptr::NonNull};
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut handle = cache.handle();
    /// let mut objects = [NonNull::dangling(); 300];
    /// let got = handle.get_many(&mut objects)?;
    /// assert_eq!(got, 300);
    /// // SAFETY: taken above, each put once.
    /// unsafe { handle.put_many(&objects[..got]) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`ObjectError`]; only when there is not a single one.
    pub fn get_many(&mut self, out: &mut [NonNull<u8>]) -> Result<usize, ObjectError> {
        let mut n = 0;
        while n < out.len() {
            let magazine = &mut self.magazine;
            let Ok(many) = fill_objects(&mut out[n..], |rounds| {
                Ok::<_, Infallible>(magazine.try_get_many(rounds))
            });
            n += many;
            if n == out.len() {
                break;
            }
            match self.refill() {
                Ok(round) => out[n] = object(round),
                Err(failure) if n == 0 => return Err(unfold(failure)),
                Err(failure @ Failure::Panic(_)) => {
                    // No other part of the program knows of these objects.
                    // SAFETY: taken above.
                    unsafe { self.put_many(&out[..n]) };
                    return Err(unfold(failure));
                }
                Err(_) => break,
            }
            n += 1;
        }
        Ok(n)
    }

    /// Puts many objects back, with a copy for each magazine's worth. Debug builds check each pointer.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// let mut handle = cache.handle();
    /// let objects = [cache.get()?, cache.get()?];
    /// // SAFETY: taken above, each put once.
    /// unsafe { handle.put_many(&objects) };
    /// assert_eq!(handle.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// As for [`put`](Self::put), for each.
    pub unsafe fn put_many(&mut self, mut objects: &[NonNull<u8>]) {
        while let [first, rest @ ..] = objects {
            // Those in front that may be put together: all, unless it is looked at each.
            let good = match cfg!(debug_assertions) {
                true => {
                    let check = |o: &&NonNull<u8>| self.cache.cache.check(o.as_ptr() as usize);
                    objects
                        .iter()
                        .take(MAX_ROUNDS)
                        .take_while(|o| check(o).is_ok())
                        .count()
                }
                false => objects.len(),
            };
            objects = match self.magazine.try_put_many(rounds_of(&objects[..good])) {
                0 => {
                    // SAFETY: the caller's promise.
                    unsafe { self.put(*first) };
                    rest
                }
                given => &objects[given..],
            };
        }
    }

    /// The cache.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// assert_eq!(cache.handle().cache().number(), cache.number());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cache(&self) -> &RawCache {
        &self.cache
    }

    /// Objects in this handle.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut handle = cache.handle();
    /// let object = handle.get()?;
    /// let before = handle.len();
    /// // SAFETY: taken above, put once.
    /// unsafe { handle.put(object) };
    /// assert_eq!(handle.len(), before + 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.magazine.len()
    }

    /// True when this handle has no object in stock.
    ///
    /// ```
    /// # let family = larder::objects::Family::new()?;
    /// # let cache = larder::objects::RawCache::new(&family, std::alloc::Layout::new::<u64>())?;
    /// let mut handle = cache.handle();
    /// assert!(handle.is_empty());
    /// handle.get()?;
    /// assert!(!handle.is_empty(), "others came with it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the magazine to the depot: constant time, no object is looked at. The handle takes others when it needs
    /// them. For a thread that will not use the handle for long: no other thread can take what is in it.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::objects::{Family, RawCache};
    /// let family = Family::new()?;
    /// let cache = RawCache::new(&family, Layout::new::<[u64; 4]>())?;
    /// let mut handle = cache.handle();
    /// let object = handle.get()?;
    /// // SAFETY: taken above, put once.
    /// unsafe { handle.put(object) };
    /// handle.flush();
    /// assert!(handle.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&mut self) {
        self.magazine.give_up(&self.cache.cache.stock);
    }

    #[cold]
    #[inline(never)]
    fn get_slow(&mut self) -> Result<NonNull<u8>, ObjectError> {
        self.refill().map(object).map_err(unfold)
    }

    /// A round when the loaded magazine has none.
    fn refill(&mut self) -> Result<usize, Failure<()>> {
        let (magazine, cache) = (&mut self.magazine, &self.cache);
        let stock = &cache.cache.stock;
        cache.cache.inner().patiently(
            || magazine.get(stock, &cache.supply(), stock.owner_rounds()),
            Failure::is_short,
        )
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&mut self, object: NonNull<u8>) {
        let shared = &self.cache.cache;
        shared.inner().upkeep_of_put(shared.magazine_bytes());
        if cfg!(debug_assertions) || !self.cache.refuses(object) {
            let round = object.as_ptr() as usize;
            let most = shared.stock.owner_rounds();
            self.magazine
                .put(round, &shared.stock, &self.cache.supply(), most);
        }
    }
}

impl Drop for RawHandle {
    /// Constant time; see [`flush`](Self::flush).
    fn drop(&mut self) {
        self.flush();
    }
}
