//! Allocated segments by address. The owner of the core changes the table; others may look.
//!
//! Linear hashing (Litwin, VLDB 1980): one insertion splits at most one bucket, so the table grows with its contents
//! and no caller ever waits for a rehash. Buckets never move, so a reader needs no lock; what it misses while a bucket is
//! split, the owner finds.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use super::tag::{NONE, Tag, TagArray, Tags};
use crate::os::grown::Grown;
use crate::os::{OsError, System};

/// Buckets at first, in the first page.
const FIRST: u32 = 1024;

/// Links that a reader without the lock follows at most: it may be led astray, but not for ever.
const LOOKS: u32 = 32;

/// Chains of tags, linked by `right`.
#[derive(Debug)]
pub(crate) struct Hash {
    buckets: Grown<AtomicU32>,
    /// Buckets in use, and in the upper half the mask of as many bits as the last of them needs.
    shape: AtomicU64,
    /// Segments in the table.
    many: AtomicU32,
    /// Addresses are multiples of two to this power.
    shift: u32,
}

impl Hash {
    /// # Errors
    /// The system's refusal of addresses for `most` buckets, or of memory for the first.
    pub(super) fn new(system: Arc<dyn System>, shift: u32, most: u32) -> Result<Self, OsError> {
        Ok(Self {
            buckets: Grown::new(system, most.max(FIRST))?,
            shape: AtomicU64::new(shape(FIRST)),
            many: AtomicU32::new(0),
            shift,
        })
    }

    /// Segments in the table.
    pub(super) fn len(&self) -> u32 {
        self.many.load(Ordering::Relaxed)
    }

    /// Bytes that buckets may use.
    pub(crate) fn bytes(&self) -> usize {
        self.buckets.room() * size_of::<u32>()
    }

    /// Buckets in use.
    pub(super) fn buckets(&self) -> u32 {
        self.shape.load(Ordering::Relaxed) as u32
    }

    /// The best bits of a product are the upper ones (Knuth 6.4), and the table wants them at the lower end.
    #[inline]
    fn mix(&self, addr: u64) -> u32 {
        (addr >> self.shift)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .swap_bytes() as u32
    }

    /// The bucket of an address: by as many bits as the last one needs, or one less where that bucket is not there yet.
    #[inline]
    fn bucket(&self, addr: u64, shape: u64) -> u32 {
        let (used, mask) = (shape as u32, (shape >> 32) as u32);
        let bucket = self.mix(addr) & mask;
        if bucket < used {
            bucket
        } else {
            bucket & (mask >> 1)
        }
    }

    fn bucket_now(&self, addr: u64) -> u32 {
        self.bucket(addr, self.shape.load(Ordering::Relaxed))
    }

    /// Looks without the lock for a segment that begins at `addr`. That it finds nothing may mean that the table was just
    /// changing, and what it finds may be a tag that has been given up. About 30 instructions.
    #[inline]
    pub(crate) fn glimpse<'t>(&self, tags: &'t TagArray, addr: u64) -> Option<(u32, Tag<'t>)> {
        let bucket = self.bucket(addr, self.shape.load(Ordering::Acquire));
        let number = self.buckets[bucket].load(Ordering::Acquire);
        // Number 0 will do: it describes nothing.
        let tag = tags.get(number);
        if tag.start() == addr {
            return Some((number, tag));
        }
        Self::glimpse_on(tags, addr, tag.right())
    }

    #[inline(never)]
    fn glimpse_on(tags: &TagArray, addr: u64, mut number: u32) -> Option<(u32, Tag<'_>)> {
        for _ in 0..LOOKS {
            let tag = tags.get(number);
            if number == NONE || tag.start() == addr {
                return Some((number, tag));
            }
            number = tag.right();
        }
        None
    }

    /// The segment that begins at `addr`, or `NONE`.
    pub(super) fn find(&self, tags: Tags<'_>, addr: u64) -> u32 {
        self.chain(tags, self.bucket_now(addr))
            .find(|&tag| tags.get(tag).start() == addr)
            .unwrap_or(NONE)
    }

    /// The segments of a bucket.
    pub(super) fn chain<'t>(&self, tags: Tags<'t>, bucket: u32) -> impl Iterator<Item = u32> + 't {
        let mut at = self.buckets[bucket].load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            let tag = (at != NONE).then_some(at)?;
            at = tags.get(tag).right();
            Some(tag)
        })
    }

    /// Adds a segment.
    pub(super) fn insert(&self, tags: Tags<'_>, tag: u32) {
        self.push(tags, self.bucket_now(tags.get(tag).start()), tag);
        let many = self.len() + 1;
        self.many.store(many, Ordering::Relaxed);
        if many > self.buckets() {
            self.split(tags);
        }
    }

    /// Removes a segment that is there.
    pub(super) fn remove(&self, tags: Tags<'_>, tag: u32) {
        let bucket = self.bucket_now(tags.get(tag).start());
        let next = tags.get(tag).right();
        if self.buckets[bucket].load(Ordering::Relaxed) == tag {
            self.buckets[bucket].store(next, Ordering::Release);
        } else if let Some(before) = self
            .chain(tags, bucket)
            .find(|&t| tags.get(t).right() == tag)
        {
            tags.get(before).set_right(next);
        }
        self.many.store(self.len() - 1, Ordering::Relaxed);
    }

    fn push(&self, tags: Tags<'_>, bucket: u32, tag: u32) {
        let head = &self.buckets[bucket];
        tags.get(tag).set_right(head.load(Ordering::Relaxed));
        head.store(tag, Ordering::Release);
    }

    /// Adds a bucket and shares the chain of the one that stood for it. Without memory the chains grow a little longer.
    fn split(&self, tags: Tags<'_>) {
        let used = self.buckets();
        if used as usize >= self.buckets.room() && self.buckets.grow().is_err() {
            return;
        }
        // Of `used` in binary without its highest bit: the bucket that has stood for the new one.
        let old = used & (u32::MAX >> (used.leading_zeros() + 1));
        let mut tag = self.buckets[old].load(Ordering::Relaxed);
        self.buckets[old].store(NONE, Ordering::Release);
        self.shape.store(shape(used + 1), Ordering::Release);
        while tag != NONE {
            let next = tags.get(tag).right();
            self.push(tags, self.bucket_now(tags.get(tag).start()), tag);
            tag = next;
        }
    }
}

/// Number of buckets and mask in one word.
fn shape(used: u32) -> u64 {
    let mask = u32::MAX >> (used - 1).leading_zeros();
    u64::from(mask) << 32 | u64::from(used)
}
