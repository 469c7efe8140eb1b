//! Heaps whose every block is recorded and looked at: classes with a debug heap behind them.
//!
//! Nothing of it is on the way of an allocation that a magazine serves: the heaps of such classes have no magazines, so every call
//! misses and comes here.

use core::alloc::Layout;
use core::fmt::Write;
use core::ptr::NonNull;
use std::sync::Arc;

use super::debug::{Call, Claim, DebugHeap, LiveBlock, Options, Origin, Outcome, Output};
use super::{AllocError, Classes, Heap};
use crate::objects::Family;
use crate::os::decided::Decided;
use crate::os::{Linux, OsError};

/// The words for explicit heaps, as those of `LARDER_MALLOC_DEBUG`.
const VARIABLE: &str = "LARDER_HEAP_DEBUG";

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
        Ok(Self::over(family, debug))
    }

    /// What `LARDER_HEAP_DEBUG` asks for, if it does.
    pub(super) fn by_environment(family: &Family) -> Option<Self> {
        let options = asked()?;
        match Self::checked(family, options) {
            Ok(classes) => Some(classes),
            Err(_) => {
                say(format_args!(
                    "there is no memory for a debug heap; going on without it"
                ));
                None
            }
        }
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
        self.debug().map(DebugHeap::options)
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
        if let Some(debug) = self.debug() {
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
        self.debug().map_or(0, DebugHeap::check)
    }

    /// A block of checked classes.
    #[cold]
    pub(super) fn alloc_checked(
        debug: &DebugHeap,
        layout: Layout,
        zeroed: bool,
    ) -> Result<NonNull<u8>, AllocError> {
        debug.alloc(layout, zeroed, Origin::Malloc)
    }

    /// Takes a block of checked classes back; an address that is no block's is reported.
    ///
    /// # Safety
    /// As for [`free`](Self::free); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn free_checked(debug: &DebugHeap, at: NonNull<u8>, layout: Option<Layout>) {
        let claim = claim(Call::Free, layout);
        // SAFETY: the caller's promise.
        if let Outcome::Unknown = unsafe { debug.free(at, claim) } {
            debug.invalid(at, claim);
        }
    }

    /// # Safety
    /// As for [`realloc`](Self::realloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn realloc_checked(
        debug: &DebugHeap,
        at: NonNull<u8>,
        old: Option<Layout>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let claim = claim(Call::Realloc, old);
        // SAFETY: the caller's promise.
        match unsafe { debug.realloc(at, new, claim) } {
            Outcome::Done(result) => result,
            Outcome::Unknown => {
                debug.invalid(at, claim);
                // The process goes on after a misuse: the owner of the old block is unknown.
                Self::alloc_checked(debug, new, false)
            }
        }
    }
}

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

    /// A block of checked classes, counted as so many bytes as were asked for.
    #[cold]
    pub(super) fn alloc_checked(
        &self,
        debug: &DebugHeap,
        layout: Layout,
        zeroed: bool,
    ) -> Result<NonNull<u8>, AllocError> {
        self.account().room(layout.size())?;
        let object = Classes::alloc_checked(debug, layout, zeroed)?;
        self.account().take(layout.size());
        self.warn();
        Ok(object)
    }

    /// # Safety
    /// As for [`Classes::free_checked`].
    #[cold]
    pub(super) unsafe fn free_checked(
        &self,
        debug: &DebugHeap,
        at: NonNull<u8>,
        layout: Option<Layout>,
    ) {
        self.account().give(debug.live_size(at).unwrap_or(0));
        // SAFETY: the caller's promise.
        unsafe { Classes::free_checked(debug, at, layout) };
    }

    /// # Safety
    /// As for [`realloc`](Self::realloc); misuse that can be found is reported.
    #[cold]
    pub(super) unsafe fn realloc_checked(
        &self,
        debug: &DebugHeap,
        at: NonNull<u8>,
        old: Option<Layout>,
        new: Layout,
    ) -> Result<NonNull<u8>, AllocError> {
        let had = debug.live_size(at).unwrap_or(0);
        let old_size = old.map_or(had, |old| old.size());
        if new.size() > old_size {
            self.account().room(new.size() - old_size)?;
        }
        // SAFETY: the caller's promise.
        let to = unsafe { Classes::realloc_checked(debug, at, old, new) }?;
        self.account().give(had);
        self.account().take(new.size());
        self.warn();
        Ok(to)
    }
}

fn claim(otherwise: Call, layout: Option<Layout>) -> Claim {
    Claim {
        call: if layout.is_some() {
            Call::Dealloc
        } else {
            otherwise
        },
        size: layout.map(|layout| layout.size()),
        align: layout.map(|layout| layout.align()),
    }
}

/// What the environment asks for, looked at once. Not in a program that runs with more rights than its caller.
fn asked() -> Option<Options> {
    static ASKED: Decided<Option<Options>> = Decided::new();
    ASKED.get_or_decide(|| {
        // SAFETY: it only reads a number.
        if cfg!(not(miri)) && unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            return None;
        }
        let text = std::env::var_os(VARIABLE)?;
        let Some(text) = text.to_str() else {
            say(format_args!("{VARIABLE} is no text; it is ignored"));
            return None;
        };
        Options::read(text, &mut |bad| {
            say(format_args!("{VARIABLE}: {bad}; it is ignored"));
        })
    })
}

fn say(text: core::fmt::Arguments<'_>) {
    let _ = writeln!(Output::new(), "larder: {text}");
}
