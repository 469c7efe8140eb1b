//! Classes of heaps as the environment wants them: plain, or with every block recorded and checked.
//!
//! Nothing of the checks is on the way of an allocation that a magazine serves: the heaps of checked classes have no magazines,
//! so every call misses and comes to the [`Checker`](super::call::Checker).

#[cfg(feature = "debug-heap")]
use core::any::Any;
use std::ffi::OsString;
#[cfg(feature = "debug-heap")]
use std::sync::Arc;

#[cfg(feature = "debug-heap")]
use super::debug::{DebugHeap, LiveBlock, Options, say};
use super::{Classes, Heap};
use crate::objects::Family;
use crate::os::decided::Decided;
#[cfg(feature = "debug-heap")]
use crate::os::{Linux, OsError};

/// The words for explicit heaps, as those of `LARDER_MALLOC_DEBUG`.
const VARIABLE: &str = "LARDER_HEAP_DEBUG";

/// Fewest pages of a private heap's slabs: as many as slabs can have, since they all go at once.
const PRIVATE_SLAB_PAGES: usize = 64;

impl Classes {
    /// Classes over `family`. Their caches are made when the first object of a class is asked for.
    ///
    /// ```
    /// use larder::{heap::{Classes, Heap}, objects::Family};
    /// let classes = Classes::new(&Family::new()?);
    /// let heaps = [Heap::new(&classes), Heap::new(&classes)];
    /// assert!(heaps[0].classes().is_same(heaps[1].classes()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(family: &Family) -> Self {
        by_environment(family).unwrap_or_else(|| Self::plain(family, false))
    }
}

#[cfg(feature = "debug-heap")]
impl Classes {
    /// Classes whose heaps record every block, surround it and look at it again, as [`debug`](super::debug) says: a
    /// second free, a free of what is no block, another layout, writes around and after. Each misuse is reported on
    /// standard error, and the process ends unless the options say that it goes on. What is damaged and was not freed
    /// is reported when the classes go.
    ///
    /// [`new`](Self::new) and [`Heap::private`] make such classes by themselves where `LARDER_HEAP_DEBUG` in the environment
    /// says so (`on`, or the words of [`Options`]). The words about leaks mean nothing here, since classes end their objects;
    /// a touched guard page is a plain fault.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, Heap, debug::Options}, objects::Family};
    /// let classes = Classes::checked(&Family::new()?, Options::default())?;
    /// let heap = Heap::new(&classes);
    /// let layout = Layout::new::<[u8; 100]>();
    /// let object = heap.alloc(layout)?;
    /// let mut live = Vec::new();
    /// classes.for_each_live(|block| live.push((block.address, block.size)));
    /// assert_eq!(live, [(object.as_ptr() as usize, 100)]);
    /// // SAFETY: taken above with this layout, put once. Twice would end the process here.
    /// unsafe { heap.dealloc(object, layout) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The system's refusal of memory for the records.
    pub fn checked(family: &Family, options: Options) -> Result<Self, OsError> {
        let under = Self::plain(family, true);
        let debug = DebugHeap::new(under, Arc::new(Linux), options)?;
        Ok(Self::with(family, 1, false, Some(Box::new(debug))))
    }

    /// What is checked; `None` where nothing is.
    ///
    /// ```
    /// use larder::{heap::{Classes, debug::Options}, objects::Family};
    /// let classes = Classes::checked(&Family::new()?, Options::default())?;
    /// assert_eq!(classes.debug_options().map(|options| options.redzone), Some(32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn debug_options(&self) -> Option<&Options> {
        self.debug_heap().map(DebugHeap::options)
    }

    /// Shows every live block of these classes' heaps where they are [checked](Self::checked), else none. Each is shown once,
    /// and those that come and go meanwhile may be missed. Takes time in proportion to the blocks that there were at most.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, debug::Options}, objects::Family};
    /// let classes = Classes::checked(&Family::new()?, Options::default())?;
    /// classes.alloc(Layout::new::<[u8; 100]>())?;
    /// let mut bytes = 0;
    /// classes.for_each_live(|block| bytes += block.size);
    /// assert_eq!(bytes, 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_live(&self, mut f: impl FnMut(LiveBlock)) {
        if let Some(debug) = self.debug_heap() {
            debug.for_each_live(&mut f);
        }
    }

    /// Looks at the redzones of all blocks and at all freed blocks that are kept, where they are
    /// [checked](Self::checked). Reports each damage, and ends the process unless [`Options::keep_going`] is set.
    /// Returns how many there were.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Classes, debug::Options}, objects::Family};
    /// let mut options = Options::default();
    /// options.keep_going = true;
    /// let classes = Classes::checked(&Family::new()?, options)?;
    /// let block = classes.alloc(Layout::new::<[u8; 100]>())?;
    /// assert_eq!(classes.check(), 0);
    /// // SAFETY: one byte behind the block lies in its redzone, where no other code looks meanwhile.
    /// unsafe { block.add(100).write(7) };
    /// assert_eq!(classes.check(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> usize {
        self.debug_heap().map_or(0, DebugHeap::check)
    }

    fn debug_heap(&self) -> Option<&DebugHeap> {
        let checker: &dyn Any = self.checker()?;
        checker.downcast_ref()
    }
}

impl Heap {
    /// A heap with slabs of its own: dropping it ends all its objects, large ones included, without visiting them: in
    /// constant time for a slab and for a large object, whose list lies in metadata. A large object has two pages at least.
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::Heap, objects::Family};
    /// let family = Family::new()?;
    /// let heap = Heap::private(&family);
    /// for _ in 0..1000 {
    ///     heap.alloc(Layout::new::<[u64; 5]>())?;
    /// }
    /// drop(heap);                                     // and all of them are gone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn private(family: &Family) -> Self {
        let plain = || Classes::with(family, PRIVATE_SLAB_PAGES, true, None);
        Self::new(&by_environment(family).unwrap_or_else(plain))
    }
}

#[cfg(feature = "debug-heap")]
impl Heap {
    /// As [`private`](Self::private), with every block recorded and looked at: see [`Classes::checked`].
    ///
    /// ```
    /// use std::alloc::Layout;
    /// use larder::{heap::{Heap, debug::Options}, objects::Family};
    /// let heap = Heap::private_checked(&Family::new()?, Options::default())?;
    /// heap.alloc(Layout::new::<u64>())?;
    /// assert_eq!(heap.classes().check(), 0, "nothing is damaged");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Classes::checked`].
    pub fn private_checked(family: &Family, options: Options) -> Result<Self, OsError> {
        Ok(Self::new(&Classes::checked(family, options)?))
    }
}

/// The classes that `LARDER_HEAP_DEBUG` asks for, if it does.
#[cfg(feature = "debug-heap")]
fn by_environment(family: &Family) -> Option<Classes> {
    static ASKED: Decided<Option<Options>> = Decided::new();
    let options = ASKED.get_or_decide(|| {
        let text = words()?;
        let Some(text) = text.to_str() else {
            say(format_args!("{VARIABLE} is no text; it is ignored"));
            return None;
        };
        Options::read(text, &mut |bad| {
            say(format_args!("{VARIABLE}: {bad}; it is ignored"));
        })
    })?;
    let classes = Classes::checked(family, options);
    if classes.is_err() {
        say(format_args!(
            "there is no memory for a debug heap; going on without it"
        ));
    }
    classes.ok()
}

/// None: nothing is checked here, which is said where `LARDER_HEAP_DEBUG` asks for it.
#[cfg(not(feature = "debug-heap"))]
fn by_environment(_: &Family) -> Option<Classes> {
    static SAID: Decided<()> = Decided::new();
    SAID.get_or_decide(|| {
        if let Some(words) = words() {
            super::call::say_unchecked(VARIABLE, words.as_encoded_bytes());
        }
    });
    None
}

/// What the environment asks for. Not in a program that runs with more rights than its caller.
fn words() -> Option<OsString> {
    // SAFETY: it only reads a number.
    if cfg!(not(miri)) && unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    std::env::var_os(VARIABLE)
}
