//! The slots of one cache by page number: chains in a table of a power of two.

use core::ptr;

use crate::frames::Slot;

const FIRST: usize = 64;

/// Page numbers are dense, so their low bits spread them evenly.
#[derive(Debug)]
pub(crate) struct Table {
    chains: Vec<*mut Slot>,
    /// Where the chains are, and how many there are less one: a search needs no more.
    first: *mut *mut Slot,
    mask: u32,
    len: usize,
}

impl Table {
    /// None: no memory.
    pub(crate) fn new() -> Option<Self> {
        let mut chains = chains(FIRST)?;
        Some(Self {
            first: chains.as_mut_ptr(),
            mask: FIRST as u32 - 1,
            chains,
            len: 0,
        })
    }

    /// Slots in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn chains(&self) -> usize {
        self.chains.len()
    }

    /// The head of the chain that a key is in.
    #[inline]
    fn chain(&self, key: u32) -> *mut *mut Slot {
        // SAFETY: `first` points to as many heads as the mask says.
        unsafe { self.first.add((key & self.mask) as usize) }
    }

    /// The slot of a page; null if it has none.
    ///
    /// # Safety
    /// The slots in the table are alive.
    #[inline]
    pub(crate) unsafe fn find(&self, key: u32) -> *mut Slot {
        // SAFETY: a chain's head is there.
        let mut slot = unsafe { *self.chain(key) };
        // SAFETY: the caller's word; chains lead from slot to slot.
        while let Some(here) = unsafe { slot.as_ref() }
            && here.key != key
        {
            slot = here.next;
        }
        slot
    }

    /// Puts a slot in, under its key. Where there is no memory for a larger table, chains become longer.
    ///
    /// # Safety
    /// The slot is in no table, and the slots in this one are alive.
    pub(crate) unsafe fn insert(&mut self, slot: *mut Slot) {
        if self.len >= self.chains.len()
            && let Some(mut wider) = chains(2 * self.chains.len())
        {
            self.first = wider.as_mut_ptr();
            self.mask = wider.len() as u32 - 1;
            for mut at in core::mem::replace(&mut self.chains, wider) {
                while !at.is_null() {
                    // SAFETY: the caller's word.
                    let next = unsafe { (*at).next };
                    // SAFETY: as above.
                    unsafe { self.link(at) };
                    at = next;
                }
            }
        }
        // SAFETY: the caller's word.
        unsafe { self.link(slot) };
        self.len += 1;
    }

    /// # Safety
    /// The slot is alive.
    unsafe fn link(&mut self, slot: *mut Slot) {
        // SAFETY: the caller's word.
        let slot_ref = unsafe { &mut *slot };
        let chain = self.chain(slot_ref.key);
        // SAFETY: a chain's head is there.
        unsafe {
            slot_ref.next = *chain;
            *chain = slot;
        }
    }

    /// Takes a slot out that is in.
    ///
    /// # Safety
    /// The slots in the table are alive, and this is one of them.
    pub(crate) unsafe fn remove(&mut self, slot: *mut Slot) {
        // SAFETY: the caller's word.
        let (key, next) = unsafe { ((*slot).key, (*slot).next) };
        let mut at = self.chain(key);
        // SAFETY: `at` is the chain's head or the link of a slot before this one.
        unsafe {
            while *at != slot {
                at = &raw mut (**at).next;
            }
            *at = next;
        }
        self.len -= 1;
    }
}

fn chains(len: usize) -> Option<Vec<*mut Slot>> {
    let mut chains = Vec::new();
    chains.try_reserve_exact(len).ok()?;
    chains.resize(len, ptr::null_mut());
    Some(chains)
}
