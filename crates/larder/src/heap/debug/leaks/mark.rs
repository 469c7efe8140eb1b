//! The search: which live blocks can be reached from the roots.

use super::super::heap::DebugHeap;
use super::super::inner::Inner;
use super::super::records::LIVE;
use super::LeakStats;
use super::memory::{Reader, each_word, range};
use super::roots::{Maps, without};
use super::threads::{Here, Stopped};
use crate::heap::Origin;
use crate::os::{MetaSlice, OsError, ZeroIsValid};

/// Reached from the roots.
const REACHED: u32 = 1;
/// Not reached from the roots, but from another one that is not.
const INDIRECT: u32 = 2;
/// So much of a stack's upper end may be the C library's block and what is thread-local.
const TOP: usize = 64 << 10;
/// Most ranges of the debug heap's own memory.
const MOST_OWN: usize = 96;

/// A live block.
#[derive(Debug, Clone, Copy)]
struct Block {
    at: usize,
    /// One byte further where there are none.
    end: usize,
    size: usize,
    record: u32,
    state: u32,
}

// SAFETY: numbers.
unsafe impl ZeroIsValid for Block {}

/// Blocks of one origin that cannot be reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) stack: u32,
    pub(super) origin: Origin,
    pub(super) bytes: usize,
    pub(super) blocks: usize,
    /// So many of them are reached from others that cannot be reached.
    pub(super) indirect: usize,
}

// SAFETY: numbers, and an origin, whose first is 0.
unsafe impl ZeroIsValid for Group {}

/// The live blocks by address, and those that were reached and not looked into yet.
struct Marks {
    blocks: MetaSlice<Block>,
    count: usize,
    pending: MetaSlice<u32>,
    waiting: usize,
}

impl Marks {
    /// The block that an address lies in. A pointer behind the end keeps nothing, but one to a block of no bytes does.
    fn find(&self, address: usize) -> Option<usize> {
        let blocks = &self.blocks[..self.count];
        let after = blocks.partition_point(|block| block.at <= address);
        let found = after.checked_sub(1)?;
        (address < blocks[found].end).then_some(found)
    }

    fn reach(&mut self, address: usize) {
        if let Some(found) = self.find(address)
            && self.blocks[found].state == 0
        {
            self.blocks[found].state = REACHED;
            self.pending[self.waiting] = found as u32;
            self.waiting += 1;
        }
    }

    /// Whether any block lies in a range: then it is the heap's.
    fn any_in(&self, from: usize, to: usize) -> bool {
        let blocks = &self.blocks[..self.count];
        let first = blocks.partition_point(|block| block.at < from);
        blocks.get(first).is_some_and(|block| block.at < to)
    }

    fn spread(&mut self) {
        while self.waiting > 0 {
            self.waiting -= 1;
            let Block { at, end, .. } = self.blocks[self.pending[self.waiting] as usize];
            // SAFETY: a live block of the heap, whose lock is held.
            unsafe { each_word(at, end, &mut |_, word| self.reach(word)) };
        }
    }

    /// Finds out which of those that cannot be reached lie behind others.
    fn mark_indirect(&mut self) {
        for i in 0..self.count {
            let Block { at, end, state, .. } = self.blocks[i];
            if state & REACHED == 0 {
                // SAFETY: as above.
                unsafe {
                    each_word(at, end, &mut |_, word| {
                        if let Some(found) = self.find(word)
                            && found != i
                            && self.blocks[found].state & REACHED == 0
                        {
                            self.blocks[found].state |= INDIRECT;
                        }
                    });
                }
            }
        }
    }
}

/// What was found.
pub(super) struct Found(Marks);

/// Searches. The lock is held, so that no block comes or goes.
pub(super) fn find(heap: &DebugHeap, inner: &Inner, here: &Here) -> Result<Found, OsError> {
    let system = heap.storage.system();
    let all = || {
        let used = inner.records.after(0);
        used.filter(|(_, record)| record.state == LIVE)
    };
    let live = all().count();
    let mut marks = Marks {
        blocks: MetaSlice::new(system.clone(), live.max(1))?,
        count: live,
        pending: MetaSlice::new(system.clone(), live.max(1))?,
        waiting: 0,
    };
    for (block, (number, record)) in marks.blocks.iter_mut().zip(all()) {
        *block = Block {
            at: record.at,
            end: record.at + record.size.max(1),
            size: record.size,
            record: number,
            state: 0,
        };
    }
    marks.blocks[..live].sort_unstable_by_key(|block| block.at);
    let mut reader = Reader::new(system)?;
    let stopped = Stopped::all();
    let maps = Maps::read(system)?;
    let mut own = [(0, 0); MOST_OWN];
    let mut owns = 0;
    let mut keep = |(from, to): (usize, usize)| {
        if to > from && owns < MOST_OWN {
            own[owns] = (from, to);
            owns += 1;
        }
    };
    inner.own(&mut keep);
    reader.own().into_iter().for_each(&mut keep);
    keep(range(&marks.blocks));
    keep(range(&marks.pending));
    keep(maps.own());
    let own = &mut own[..owns];
    own.sort_unstable();
    // In the child of a fork, the stacks of the parent's threads are all that is left of them.
    let complete = stopped.all && !heap.is_forked();
    here.registers.iter().for_each(|&word| marks.reach(word));
    maps.each(&mut |mapping, below| {
        if marks.any_in(mapping.from, mapping.to) {
            return;
        }
        // A stack is in use from its top on.
        let inside = |at: &usize| (mapping.from..mapping.to).contains(at);
        let mut tops = stopped.stacks().chain([here.stack]).filter(inside);
        let from = match tops.next() {
            Some(top) => tops.fold(top, usize::min),
            None if complete && mapping.is_like_a_stack(below) => {
                // Of a thread that is gone the C library keeps its own block at the upper end, which begins with its
                // own address. What the thread left below that is no root.
                let top = mapping.to.saturating_sub(TOP).max(mapping.from);
                let mut begun = false;
                reader.each(top, mapping.to, &mut |at, word| {
                    begun |= word == at && at.is_multiple_of(64);
                    if begun {
                        marks.reach(word);
                    }
                });
                return;
            }
            None => mapping.from,
        };
        without(from, mapping.to, own, &mut |from, to| {
            reader.each(from, to, &mut |_, word| marks.reach(word));
        });
    });
    marks.spread();
    marks.mark_indirect();
    Ok(Found(marks))
}

impl Found {
    fn lost(&self) -> impl Iterator<Item = &Block> {
        self.0.blocks[..self.0.count]
            .iter()
            .filter(|block| block.state & REACHED == 0)
    }

    pub(super) fn stats(&self) -> LeakStats {
        let mut stats = LeakStats {
            live: self.0.count,
            ..LeakStats::default()
        };
        for block in self.lost() {
            stats.blocks += 1;
            stats.bytes += block.size;
        }
        stats
    }

    /// Blocks that came from the same place, the most bytes first.
    pub(super) fn groups(mut self, inner: &Inner) -> Result<Groups, OsError> {
        let count = self.lost().count();
        let mut groups = MetaSlice::<Group>::new(inner.records.system().clone(), count.max(1))?;
        let key = |block: &Block| {
            let record = inner.records.get(block.record);
            (record.alloc_stack, record.origin as u8)
        };
        let all = self.0.count;
        // Lost ones first, and of these those of one place together.
        self.0.blocks[..all].sort_unstable_by_key(|b| (b.state & REACHED, key(b)));
        let mut used = 0;
        for block in &self.0.blocks[..count] {
            let record = inner.records.get(block.record);
            let (stack, origin) = (record.alloc_stack, record.origin);
            let is_same = |g: &Group| g.stack == stack && g.origin == origin;
            if used == 0 || !is_same(&groups[used - 1]) {
                groups[used] = Group {
                    stack,
                    origin,
                    bytes: 0,
                    blocks: 0,
                    indirect: 0,
                };
                used += 1;
            }
            let group = &mut groups[used - 1];
            group.bytes += block.size;
            group.blocks += 1;
            group.indirect += usize::from(block.state & INDIRECT != 0);
        }
        groups[..used].sort_unstable_by_key(|g| (core::cmp::Reverse(g.bytes), g.stack));
        Ok(Groups { groups, used })
    }
}

/// Groups in order.
pub(super) struct Groups {
    groups: MetaSlice<Group>,
    used: usize,
}

impl Groups {
    pub(super) fn as_slice(&self) -> &[Group] {
        &self.groups[..self.used]
    }
}
