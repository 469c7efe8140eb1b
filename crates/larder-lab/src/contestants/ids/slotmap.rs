//! The crate slotmap: slots with a generation in the key.

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use super::{IdSource, Start};

/// `SlotMap<DefaultKey, ()>`, bounded by us: the last freed first. An identifier's upper half is its generation.
#[derive(Debug)]
pub struct SlotMapIds {
    slots: SlotMap<DefaultKey, ()>,
    count: usize,
}

/// The crate's slots count from 1.
fn id_of(key: DefaultKey) -> u64 {
    key.data().as_ffi() - 1
}

impl IdSource for SlotMapIds {
    const ABOUT: &'static str = "crate slotmap, SlotMap<_, ()> with a bound of ours: the last freed first, with generations";

    fn start(start: &Start) -> anyhow::Result<Self> {
        let count = usize::try_from(start.count())?;
        let mut slots = SlotMap::with_capacity(count);
        for _ in 0..count {
            slots.insert(());
        }
        for id in start.free_ids() {
            slots.remove(KeyData::from_ffi(Self::first(id) + 1).into());
        }
        Ok(Self { slots, count })
    }

    fn first(index: u32) -> u64 {
        1 << 32 | u64::from(index)
    }

    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        if self.slots.len() == self.count {
            return None;
        }
        Some(id_of(self.slots.insert(())))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.slots
            .remove(KeyData::from_ffi(id + 1).into())
            .is_some()
    }
}
