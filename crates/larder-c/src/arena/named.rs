//! An arena behind a handle, with the name that its errors carry.

use core::ptr::NonNull;
use std::sync::Arc;

use larder::arena::{Arena, Extent, Import, Refusal};

use crate::error::Failed;
use crate::mark::opaque;

/// Ranges of numbers: addresses, page indexes, identifiers, blocks of a disk. Every function except
/// larder_arena_free and larder_arena_destroy may be called by many threads at once.
pub struct larder_arena {
    _opaque: [u8; 0],
}

/// An arena and the name that its errors carry.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) arena: Arena,
    _name: Option<Name>,
}

/// The text of a name, in memory that stays where it is. It is dropped after the arena, which takes it as static.
/// What the arena's errors say is written before the arena can go, so it is not read later.
#[derive(Debug)]
pub(crate) struct Name(NonNull<str>);

// SAFETY: text that never changes.
unsafe impl Send for Name {}
// SAFETY: as above.
unsafe impl Sync for Name {}

impl Name {
    /// A copy of a name.
    pub(crate) fn new(name: &str) -> Result<Self, Failed> {
        let mut own = String::new();
        own.try_reserve_exact(name.len())
            .map_err(|_| Failed::memory("a copy of the arena's name"))?;
        own.push_str(name);
        Ok(Self(NonNull::from(Box::leak(own.into_boxed_str()))))
    }

    /// # Safety
    /// The text is not read after this value is dropped.
    pub(crate) unsafe fn text(&self) -> &'static str {
        // SAFETY: leaked above, taken back in `drop` only, and never changed.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // SAFETY: leaked in `new`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Named {
    /// # Safety
    /// The arena's name is this one or static.
    pub(crate) unsafe fn new(arena: Arena, name: Option<Name>) -> Self {
        Self { arena, _name: name }
    }
}

impl Import for Named {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        self.arena.import(size, align)
    }

    fn release(&self, span: Extent) {
        self.arena.release(span);
    }
}

opaque!(larder_arena, Arc<Named>, b"ldraren1", "arena");
