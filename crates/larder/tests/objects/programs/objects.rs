//! Caches of objects against a model, which knows the owner of each object, what was written there, and what is constructed.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::NonNull;

use larder::objects::{Callbacks, Family, Misuse, ObjectError, Owner, RawCache, RawHandle};
use larder::os::rseq::Mode;

use super::bytes::{Bytes, MOST_STEPS, family};

/// What constructed objects begin with while they are not in use.
const MARK: u64 = 0x6d61_726b_6d61_726b;
/// Caches at a time, and handles of each.
const CACHES: usize = 4;
const HANDLES: usize = 2;
const MOST_HELD: usize = 600;

thread_local! {
    /// Objects that constructors made and destructors ended, and a turn at which the constructor refuses.
    static MADE: Cell<u64> = const { Cell::new(0) };
    static ENDED: Cell<u64> = const { Cell::new(0) };
    static REFUSE: Cell<bool> = const { Cell::new(false) };
}

fn word(at: NonNull<u8>) -> NonNull<u64> {
    at.cast()
}

unsafe fn construct(at: NonNull<u8>, _: *mut ()) -> bool {
    if REFUSE.get() {
        return false;
    }
    MADE.set(MADE.get() + 1);
    // SAFETY: an object of at least 8 bytes, aligned to 8.
    unsafe { word(at).write(MARK) };
    true
}

unsafe fn destroy(at: NonNull<u8>, _: *mut ()) {
    ENDED.set(ENDED.get() + 1);
    // SAFETY: as above; it was constructed.
    unsafe {
        assert_eq!(
            word(at).read(),
            MARK,
            "ended what is not constructed, or in use"
        );
        word(at).write(0);
    }
}

/// A cache, its handles, and the objects that are out: with a number that was written at both ends.
struct One {
    cache: RawCache,
    handles: Vec<RawHandle>,
    held: Vec<(NonNull<u8>, u64)>,
    size: usize,
    constructs: bool,
}

impl One {
    fn create(family: &Family, bytes: &mut Bytes<'_>) -> Option<Self> {
        let kind = bytes.byte();
        let size = 16
            + 8 * match kind % 3 {
                0 => bytes.byte(),
                1 => bytes.number() % 1000,
                _ => bytes.number() / 2,
            };
        let layout = Layout::from_size_align(size, 8).ok()?;
        let constructs = kind & 8 != 0;
        let mut options = RawCache::builder(layout)
            .type_stable(kind & 16 != 0)
            .colour(kind & 32 == 0)
            .slab_pages(bytes.byte() % 8)
            .magazine(1 + bytes.byte() % 9, 15);
        if kind & 64 != 0 {
            options = options.limit_bytes((1 + bytes.byte()) << 16);
        }
        if constructs {
            let callbacks = Callbacks {
                construct: Some(construct),
                destroy: Some(destroy),
                ..Callbacks::default()
            };
            // SAFETY: the functions use thread-locals of the one thread that there is.
            options = unsafe { options.callbacks(callbacks) };
        }
        let cache = options.build(family).ok()?;
        Some(Self {
            cache,
            handles: Vec::new(),
            held: Vec::new(),
            size,
            constructs,
        })
    }

    fn last(&self, at: NonNull<u8>) -> NonNull<u64> {
        // SAFETY: the last word of the object.
        unsafe { at.add(self.size - 8).cast() }
    }

    fn take(&mut self, at: NonNull<u8>, token: u64) {
        // SAFETY: the object is the model's alone.
        unsafe {
            assert!(
                !self.constructs || word(at).read() == MARK,
                "not constructed"
            );
            word(at).write(token);
            self.last(at).write(token);
        }
        self.held.push((at, token));
    }

    /// Takes an object off the list that is to be put.
    fn give(&mut self, which: usize) -> NonNull<u8> {
        let (at, token) = self.held.swap_remove(which);
        // SAFETY: as above.
        unsafe {
            assert_eq!(
                (word(at).read(), self.last(at).read()),
                (token, token),
                "two owners"
            );
            word(at).write(MARK);
        }
        at
    }

    fn step(&mut self, op: usize, bytes: &mut Bytes<'_>, token: u64, short: bool) {
        let excused = |error: ObjectError, constructs: bool| {
            let excused = match error {
                ObjectError::Limit { .. } => true,
                ObjectError::Refused => constructs && REFUSE.get(),
                _ => short,
            };
            assert!(excused, "nothing was refused: {error}");
        };
        let room = self.held.len() < MOST_HELD;
        match op % 12 {
            0..3 if room => match self.cache.get() {
                Ok(at) => self.take(at, token),
                Err(error) => excused(error, self.constructs),
            },
            3 if room => {
                let mut many = vec![NonNull::dangling(); bytes.byte() % 50];
                match self.cache.get_many(&mut many) {
                    Ok(n) => many[..n].iter().for_each(|&at| self.take(at, token)),
                    Err(error) => excused(error, self.constructs),
                }
            }
            4 if room && !self.handles.is_empty() => {
                let which = bytes.below(self.handles.len());
                match self.handles[which].get() {
                    Ok(at) => self.take(at, token),
                    Err(error) => excused(error, self.constructs),
                }
            }
            5 | 6 if !self.held.is_empty() => {
                let at = self.give(bytes.below(self.held.len()));
                // SAFETY: taken from this cache, gone from the list.
                unsafe { self.cache.put_checked(at) }.unwrap_or_else(|misuse| panic!("{misuse}"));
            }
            7 if !self.held.is_empty() && !self.handles.is_empty() => {
                let which = bytes.below(self.handles.len());
                let at = self.give(bytes.below(self.held.len()));
                // SAFETY: as above.
                unsafe { self.handles[which].put(at) };
            }
            8 if !self.held.is_empty() => {
                let n = bytes.below(self.held.len());
                let many: Vec<_> = (0..=n.min(40))
                    .filter_map(|_| {
                        let last = self.held.len().checked_sub(1)?;
                        Some(self.give(last))
                    })
                    .collect();
                // SAFETY: as above.
                unsafe { self.cache.put_many(&many) };
            }
            9 if self.handles.len() < HANDLES => self.handles.push(self.cache.handle()),
            9 => drop(self.handles.pop()),
            10 => {
                self.cache.maintain();
            }
            _ => {
                self.cache.trim();
            }
        }
    }

    /// What an address says, and what is no object of this cache.
    fn look(&self, family: &Family, other: Option<&Self>) {
        let Some(&(at, _)) = self.held.last() else {
            return;
        };
        assert_eq!(
            family.owner(at.as_ptr()),
            Some(Owner::Cache(self.cache.number()))
        );
        // SAFETY: inside of the object.
        let inside = unsafe { at.add(8) };
        let addr = inside.as_ptr() as usize;
        // SAFETY: what is no object of this cache is not taken, which is what is tested.
        unsafe {
            assert_eq!(
                self.cache.put_checked(inside),
                Err(Misuse::Misaligned { addr })
            );
            if let Some(other) = other {
                let addr = at.as_ptr() as usize;
                assert_eq!(other.cache.put_checked(at), Err(Misuse::Foreign { addr }));
            }
        }
    }

    /// Puts everything back, and checks that everything is there.
    fn finish(mut self) {
        while let Some(last) = self.held.len().checked_sub(1) {
            let at = self.give(last);
            // SAFETY: taken from this cache, gone from the list.
            unsafe { self.cache.put_checked(at) }.unwrap_or_else(|misuse| panic!("{misuse}"));
        }
        self.handles.clear();
        self.cache.trim();
        let stats = self.cache.stats();
        assert_eq!((stats.out, stats.refused), (0, 0), "an object was lost");
    }

    /// Drops the cache with objects in use.
    fn end(mut self) {
        for &(at, _) in &self.held {
            // SAFETY: the object is the model's until the cache is dropped; its destructor wants it so.
            unsafe { word(at).write(MARK) };
        }
        self.handles.pop();
    }
}

/// Plays a program; panics where caches and model disagree.
pub(crate) fn play(program: &[u8], per_cpu: Mode) {
    let mut bytes = Bytes(program);
    let (Some(family), short) = family(&mut bytes, per_cpu) else {
        return;
    };
    MADE.set(0);
    ENDED.set(0);
    REFUSE.set(false);
    let mut caches: Vec<One> = Vec::new();
    let mut large: Vec<(NonNull<u8>, usize)> = Vec::new();
    for token in 1..=MOST_STEPS as u64 {
        if bytes.is_empty() {
            break;
        }
        let op = bytes.byte();
        match op {
            0..16 if caches.len() < CACHES => caches.extend(One::create(&family, &mut bytes)),
            16..24 if !caches.is_empty() => {
                let which = bytes.below(caches.len());
                caches.swap_remove(which).end();
            }
            24..28 => {
                family.maintain();
            }
            28..32 => {
                family.trim();
            }
            32..36 => REFUSE.set(!REFUSE.get()),
            36..44 if large.len() < 8 => {
                let (size, align) = (1 + bytes.number() * 4, 1 << (bytes.byte() % 18));
                match family.get_large(size, align) {
                    Ok(at) => {
                        assert!((at.as_ptr() as usize).is_multiple_of(align));
                        // SAFETY: a run of at least this many bytes.
                        unsafe { at.write_bytes(token as u8, size) };
                        large.push((at, size));
                    }
                    Err(error) => assert!(short, "nothing was refused: {error}"),
                }
            }
            44..52 if !large.is_empty() => {
                let (at, size) = large.swap_remove(bytes.below(large.len()));
                // SAFETY: the run is the model's, and put once.
                unsafe {
                    assert_eq!(at.read(), at.add(size - 1).read(), "a run was overwritten");
                    family
                        .put_large(at)
                        .unwrap_or_else(|misuse| panic!("{misuse}"));
                }
            }
            _ if !caches.is_empty() => {
                let which = bytes.below(caches.len());
                caches[which].step(op, &mut bytes, token, short);
                let other = caches.get(which + 1);
                caches[which].look(&family, other);
            }
            _ => caches.extend(One::create(&family, &mut bytes)),
        }
    }
    REFUSE.set(false);
    for (at, _) in large {
        // SAFETY: as above.
        unsafe { family.put_large(at) }.unwrap_or_else(|misuse| panic!("{misuse}"));
    }
    caches.into_iter().for_each(One::finish);
    family.trim();
    assert_eq!(
        MADE.get(),
        ENDED.get(),
        "what was constructed was not ended once"
    );
    assert_eq!(family.pool().stats().out_bytes, 0, "pages were lost");
    assert_eq!(family.metadata_bytes(), 0, "metadata was lost");
}
