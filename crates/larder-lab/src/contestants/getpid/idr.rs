//! IDR: the radix tree of pointers that gives out ids in Linux since 4.15 (2017).

use super::{PID_MAX, Space};

/// No node, no pointer.
const NONE: u32 = u32::MAX;
/// What stands for a pointer to a task: the tree stores it and never follows it.
const POINTER: u32 = 1;

/// A tree of nodes with 64 slots; a slot is a pointer, to a node or to the object that has the id, and a tag bit says
/// whether something is free below it. `alloc` is `idr_alloc_cyclic`: the next free id after the last one, else from the
/// beginning. Simplified from its description (`lib/idr.c`, `lib/radix-tree.c`): all levels exist at once, no RCU, no lock.
#[derive(Debug)]
pub struct Idr {
    nodes: Vec<Node>,
    spare: Vec<u32>,
    root: u32,
    levels: u32,
    end: u64,
    next: u64,
}

#[derive(Debug, Clone)]
struct Node {
    /// Bit set: something is free there.
    free: u64,
    used: u32,
    slots: [u32; 64],
}

impl Idr {
    /// The ids 1 to `end - 1`, at most 2^30 of them.
    #[must_use]
    pub fn with_end(end: u64) -> Self {
        let end = end.clamp(2, 1 << 30);
        let bits = 64 - (end - 1).leading_zeros();
        let mut idr = Self {
            nodes: Vec::new(),
            spare: Vec::new(),
            root: 0,
            levels: bits.div_ceil(6),
            end,
            next: 1,
        };
        idr.root = idr.make();
        idr.take(0);
        idr
    }

    fn make(&mut self) -> u32 {
        let node = Node {
            free: u64::MAX,
            used: 0,
            slots: [NONE; 64],
        };
        if let Some(at) = self.spare.pop() {
            self.nodes[at as usize] = node;
            at
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        }
    }

    /// The first free id from `from` on, if any below `end`.
    fn free_from(&self, from: u64) -> Option<u64> {
        if from >= self.end {
            return None;
        }
        self.free_below(self.root, self.levels - 1, from, 0)
            .filter(|id| *id < self.end)
    }

    /// The same in one node, whose ids begin at `base`.
    fn free_below(&self, node: u32, level: u32, from: u64, base: u64) -> Option<u64> {
        let node = &self.nodes[node as usize];
        let span = 1u64 << (6 * level);
        let first = from.saturating_sub(base) / span;
        let mut tags = node.free & u64::MAX.checked_shl(first as u32).unwrap_or(0);
        while tags != 0 {
            let slot = tags.trailing_zeros();
            let start = base + u64::from(slot) * span;
            let child = node.slots[slot as usize];
            if level == 0 || child == NONE {
                return Some(start.max(from));
            }
            if let Some(id) = self.free_below(child, level - 1, from, start) {
                return Some(id);
            }
            tags &= tags - 1;
        }
        None
    }
}

impl Default for Idr {
    /// The ids of 2002, 1 to 32767.
    fn default() -> Self {
        Self::with_end(u64::from(PID_MAX))
    }
}

impl Space for Idr {
    fn after(mut self, last: u64) -> Self {
        self.next = last + 1;
        self
    }

    /// Stores a pointer under an id.
    fn take(&mut self, id: u64) -> bool {
        if id >= self.end {
            return false;
        }
        let mut path = [0u32; 6];
        let mut at = self.root;
        for level in (0..self.levels).rev() {
            path[level as usize] = at;
            if level == 0 {
                break;
            }
            let slot = slot_of(id, level);
            let mut child = self.nodes[at as usize].slots[slot];
            if child == NONE {
                child = self.make();
                let node = &mut self.nodes[at as usize];
                node.slots[slot] = child;
                node.used += 1;
            }
            at = child;
        }
        let leaf = &mut self.nodes[at as usize];
        let slot = slot_of(id, 0);
        if leaf.slots[slot] != NONE {
            return false;
        }
        leaf.slots[slot] = POINTER;
        leaf.used += 1;
        for level in 0..self.levels {
            let node = &mut self.nodes[path[level as usize] as usize];
            node.free &= !(1 << slot_of(id, level));
            if node.free != 0 {
                break;
            }
        }
        true
    }

    fn take_all(&mut self) -> bool {
        (1..self.end).all(|id| self.take(id))
    }

    fn alloc(&mut self) -> Option<u64> {
        let id = self.free_from(self.next).or_else(|| self.free_from(1))?;
        self.take(id);
        self.next = id + 1;
        Some(id)
    }

    /// Removes the pointer of an id.
    fn free(&mut self, id: u64) -> bool {
        if id >= self.end {
            return false;
        }
        let mut path = [NONE; 6];
        let mut at = self.root;
        for level in (0..self.levels).rev() {
            path[level as usize] = at;
            if level > 0 {
                at = self.nodes[at as usize].slots[slot_of(id, level)];
                if at == NONE {
                    return false;
                }
            }
        }
        if self.nodes[at as usize].slots[slot_of(id, 0)] == NONE {
            return false;
        }
        let mut empty = true;
        for level in 0..self.levels {
            let node = &mut self.nodes[path[level as usize] as usize];
            let slot = slot_of(id, level);
            node.free |= 1 << slot;
            if empty {
                if level > 0 {
                    self.spare.push(node.slots[slot]);
                }
                node.slots[slot] = NONE;
                node.used -= 1;
                empty = node.used == 0;
            }
        }
        true
    }

    /// Bytes held by nodes; 2.6's and 4.15's pointers have 8 bytes where these have 4.
    fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }
}

fn slot_of(id: u64, level: u32) -> usize {
    (id >> (6 * level)) as usize & 63
}
