//! Heaps against a model, which knows the owner of each block of bytes, and what was written there.

use std::alloc::Layout;
use std::ptr::NonNull;

use larder::heap::{AllocError, Classes, Heap};
use larder::os::rseq::Mode;

use super::bytes::{Bytes, MOST_STEPS, family};

/// Heaps of shared classes; one more is private, and then come the classes themselves.
const HEAPS: usize = 3;

/// One live object: every byte of it has the same value.
struct Live {
    at: NonNull<u8>,
    layout: Layout,
    stamp: u8,
}

impl Live {
    fn new(at: NonNull<u8>, layout: Layout, stamp: u8) -> Self {
        assert_eq!(at.as_ptr() as usize % layout.align(), 0, "{layout:?}");
        // SAFETY: the object has this many bytes.
        unsafe { at.write_bytes(stamp, layout.size()) };
        Self { at, layout, stamp }
    }

    fn check(&self, bytes: usize) {
        // SAFETY: the object has this many bytes, all written.
        let bytes = unsafe { std::slice::from_raw_parts(self.at.as_ptr(), bytes) };
        assert!(
            bytes.iter().all(|&b| b == self.stamp),
            "{:?} was overwritten",
            self.layout
        );
    }
}

struct World {
    heaps: Vec<Heap>,
    classes: Classes,
    shared: Vec<Live>,
    private: Option<Heap>,
    its: Vec<Live>,
    stamp: u8,
    /// Whether an allocation may be refused.
    short: bool,
}

fn size(bytes: &mut Bytes<'_>) -> usize {
    match bytes.byte() {
        0..160 => bytes.byte(),
        160..230 => bytes.number() % 5000,
        _ => bytes.number() * 5,
    }
}

fn layout(bytes: &mut Bytes<'_>) -> Layout {
    let size = size(bytes);
    let align = 1 << (bytes.byte().saturating_sub(200) % 14);
    Layout::from_size_align(size, align).unwrap_or(Layout::new::<u64>())
}

impl World {
    fn alloc(&self, heap: usize, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let got = match (self.heaps.get(heap), zeroed) {
            (Some(heap), false) => heap.alloc(layout),
            (Some(heap), true) => heap.alloc_zeroed(layout),
            (None, false) => self.classes.alloc(layout),
            (None, true) => self.classes.alloc_zeroed(layout),
        };
        self.looked_at(got)
    }

    fn looked_at(&self, got: Result<NonNull<u8>, AllocError>) -> Option<NonNull<u8>> {
        assert!(
            got.is_ok() || self.short,
            "nothing was refused: {:?}",
            got.err()
        );
        got.ok()
    }

    fn free(&self, heap: usize, object: Live, known: bool) {
        object.check(object.layout.size());
        let Live { at, layout, .. } = object;
        // SAFETY: an object of these classes with this layout, gone from the lists.
        unsafe {
            match (self.heaps.get(heap), known) {
                (Some(heap), true) => heap.dealloc(at, layout),
                (Some(heap), false) => heap.dealloc_by_address(at),
                (None, true) => self.classes.dealloc(at, layout),
                (None, false) => self.classes.dealloc_by_address(at),
            }
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        self.stamp = self.stamp.wrapping_add(1);
        let (op, heap) = (bytes.byte(), bytes.byte() % (HEAPS + 1));
        match op % 16 {
            0..5 => {
                let layout = layout(bytes);
                let zeroed = op >= 128;
                if let Some(at) = self.alloc(heap, layout, zeroed) {
                    if zeroed {
                        let all = Live {
                            at,
                            layout,
                            stamp: 0,
                        };
                        all.check(layout.size());
                    }
                    self.shared.push(Live::new(at, layout, self.stamp));
                }
            }
            5..9 if !self.shared.is_empty() => {
                let which = bytes.below(self.shared.len());
                let object = self.shared.swap_remove(which);
                self.free(heap, object, op >= 128);
            }
            9 | 10 if !self.shared.is_empty() && heap < HEAPS => {
                let which = bytes.below(self.shared.len());
                let object = self.shared.swap_remove(which);
                let new = Layout::from_size_align(size(bytes), object.layout.align())
                    .unwrap_or(object.layout);
                // SAFETY: as in `free`, unless there is an error.
                let moved = unsafe { self.heaps[heap].realloc(object.at, object.layout, new) };
                match self.looked_at(moved) {
                    Some(at) => {
                        let kept = Live { at, ..object };
                        kept.check(kept.layout.size().min(new.size()));
                        self.shared.push(Live::new(at, new, self.stamp));
                    }
                    None => {
                        object.check(object.layout.size());
                        self.shared.push(object);
                    }
                }
            }
            11 if heap < HEAPS => self.heaps[heap].trim(),
            12 if heap < HEAPS => self.heaps[heap] = Heap::new(&self.classes),
            13 => {
                self.classes.family().maintain();
            }
            14 => {
                let family = self.classes.family().clone();
                let heap = self.private.get_or_insert_with(|| Heap::private(&family));
                let layout = layout(bytes);
                let got = heap.alloc(layout);
                if let Some(at) = self.looked_at(got) {
                    self.its.push(Live::new(at, layout, self.stamp));
                }
                if op >= 192 {
                    // Its objects go with it, and no other heap's do. Some of them are freed before.
                    for (i, object) in self.its.drain(..).enumerate() {
                        object.check(object.layout.size());
                        if let Some(heap) = &self.private
                            && (i + op) % 3 == 0
                        {
                            // SAFETY: taken from this heap, and gone from the list.
                            unsafe { heap.dealloc_by_address(object.at) };
                        }
                    }
                    self.private = None;
                }
            }
            _ => {
                self.classes.family().trim();
            }
        }
    }

    fn finish(mut self) {
        let mut spans: Vec<_> = self
            .shared
            .iter()
            .chain(&self.its)
            .map(|o| (o.at.as_ptr() as usize, o.layout.size().max(1)))
            .collect();
        spans.sort_unstable();
        assert!(
            spans.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0),
            "objects overlap"
        );
        for object in core::mem::take(&mut self.shared) {
            let usable = self.classes.usable_size(object.at);
            assert!(usable.is_some_and(|bytes| bytes >= object.layout.size()));
            self.free(HEAPS, object, true);
        }
        if let Some(heap) = self.private.take() {
            // The others go with their heap.
            for (i, object) in self.its.drain(..).enumerate() {
                object.check(object.layout.size());
                if i % 2 == 0 {
                    // SAFETY: taken from this heap, put once.
                    unsafe { heap.dealloc_by_address(object.at) };
                }
            }
        }
        let family = self.classes.family().clone();
        drop(self);
        family.trim();
        assert_eq!(family.large_held_bytes(), 0);
        assert_eq!(family.pool().stats().out_bytes, 0, "pages were lost");
        assert_eq!(family.metadata_bytes(), 0, "metadata was lost");
    }
}

/// Plays a program; panics where heaps and model disagree.
pub(crate) fn play(program: &[u8], per_cpu: Mode) {
    let mut bytes = Bytes(program);
    let (Some(family), short) = family(&mut bytes, per_cpu) else {
        return;
    };
    let classes = Classes::new(&family);
    let mut world = World {
        heaps: (0..HEAPS).map(|_| Heap::new(&classes)).collect(),
        classes,
        shared: Vec::new(),
        private: None,
        its: Vec::new(),
        stamp: 0,
        short,
    };
    drop(family);
    for _ in 0..MOST_STEPS {
        if bytes.is_empty() {
            break;
        }
        world.step(&mut bytes);
    }
    world.finish();
}
