//! A lock-free stack of small numbers, after Treiber (1986), with a tag against ABA.
//!
//! The numbers name nodes that live for ever, so a popper may read the link of a node that another thread just took:
//! the value is stale, and the tag makes the exchange fail. 40 bits of tag wrap after 10^12 operations during one
//! preemption of one popper.

use super::sync::{AtomicU64, Ordering};

/// Bits of a node's number.
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// The number that stands for no node.
pub(crate) const NIL: u32 = INDEX_MASK as u32;

/// Where the nodes keep the number of the next one. Both are relaxed atomic accesses: a popper may read the link of
/// a node that another thread is pushing elsewhere.
pub(crate) trait Links {
    /// Reads the link of node `index`.
    fn next(&self, index: u32) -> u32;
    /// Writes the link of node `index`.
    fn set_next(&self, index: u32, next: u32);
}

/// The stack's head: number of the top node, and the tag.
#[derive(Debug)]
pub(crate) struct Stack(AtomicU64);

impl Stack {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(u64::from(NIL)))
    }

    /// Puts node `index`, which the caller owns, on top. Returns how often another thread got in between.
    pub(crate) fn push(&self, links: &impl Links, index: u32) -> u32 {
        debug_assert!(index < NIL);
        let mut retries = 0;
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            links.set_next(index, (head & INDEX_MASK) as u32);
            // Release: the thread that pops the node sees its rounds and its link.
            match self.0.compare_exchange_weak(
                head,
                after(head, index),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return retries,
                Err(now) => head = now,
            }
            retries += 1;
        }
    }

    /// How often the stack was changed, modulo 2^40.
    pub(crate) fn changes(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> INDEX_BITS
    }

    /// Takes the top node, and how often another thread got in between.
    pub(crate) fn pop(&self, links: &impl Links) -> (Option<u32>, u32) {
        let mut retries = 0;
        // Acquire: the link read below was stored before the node became the top.
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            let top = (head & INDEX_MASK) as u32;
            if top == NIL {
                return (None, retries);
            }
            // May be stale when another thread has just taken the node; then the exchange fails.
            let next = links.next(top);
            match self.0.compare_exchange_weak(
                head,
                after(head, next),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return (Some(top), retries),
                Err(now) => head = now,
            }
            retries += 1;
        }
    }
}

/// The head that follows `head` with `index` on top: every change takes a new tag.
fn after(head: u64, index: u32) -> u64 {
    (((head >> INDEX_BITS).wrapping_add(1)) << INDEX_BITS) | u64::from(index)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::sync::AtomicU32;
    use super::*;

    /// Links in a plain vector.
    #[derive(Debug)]
    pub(crate) struct VecLinks(Vec<AtomicU32>);

    impl VecLinks {
        pub(crate) fn new(n: usize) -> Self {
            Self((0..n).map(|_| AtomicU32::new(NIL)).collect())
        }
    }

    impl Links for VecLinks {
        fn next(&self, index: u32) -> u32 {
            self.0[index as usize].load(Ordering::Relaxed)
        }
        fn set_next(&self, index: u32, next: u32) {
            self.0[index as usize].store(next, Ordering::Relaxed);
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn last_in_first_out() {
        let links = VecLinks::new(3);
        let stack = Stack::new();
        assert_eq!(stack.pop(&links).0, None);
        for i in 0..3 {
            stack.push(&links, i);
        }
        assert_eq!(
            [(); 4].map(|()| stack.pop(&links).0),
            [Some(2), Some(1), Some(0), None]
        );
    }

    #[cfg(not(loom))]
    #[test]
    fn every_change_takes_a_new_tag() {
        let links = VecLinks::new(1);
        let stack = Stack::new();
        stack.push(&links, 0);
        let before = stack.0.load(Ordering::Relaxed);
        stack.pop(&links);
        stack.push(&links, 0);
        let now = stack.0.load(Ordering::Relaxed);
        assert_eq!(before & INDEX_MASK, now & INDEX_MASK);
        assert_ne!(before, now, "same top, so only the tag tells the two apart");
    }

    /// A stack whose nodes have contents that only their owner may touch.
    #[cfg(loom)]
    struct World {
        stack: Stack,
        links: VecLinks,
        payload: Vec<loom::cell::UnsafeCell<u32>>,
    }

    // SAFETY: the cells are the subject of the test: loom reports accesses that nothing orders.
    #[cfg(loom)]
    unsafe impl Sync for World {}

    #[cfg(loom)]
    impl World {
        fn pop(&self) -> Option<u32> {
            let index = self.stack.pop(&self.links).0?;
            self.touch(index);
            Some(index)
        }

        fn push(&self, index: u32) {
            self.touch(index);
            self.stack.push(&self.links, index);
        }

        fn touch(&self, index: u32) {
            // SAFETY: the node is ours; loom checks that.
            self.payload[index as usize].with_mut(|p| unsafe { *p += 1 });
        }
    }

    /// `threads` threads each pop and push back `turns` times: no node has two owners, none is lost, and a thread that pops
    /// a node sees what its former owner did to it.
    #[cfg(loom)]
    fn no_node_is_owned_twice(nodes: u32, threads: usize, turns: usize, preemptions: usize) {
        use loom::sync::Arc;
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let world = Arc::new(World {
                stack: Stack::new(),
                links: VecLinks::new(nodes as usize),
                payload: (0..nodes).map(|_| loom::cell::UnsafeCell::new(0)).collect(),
            });
            for index in 0..nodes {
                world.push(index);
            }
            let work = move |world: &World| {
                for _ in 0..turns {
                    if let Some(index) = world.pop() {
                        world.push(index);
                    }
                }
            };
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let world = world.clone();
                    loom::thread::spawn(move || work(&world))
                })
                .collect();
            work(&world);
            for other in others {
                other.join().unwrap();
            }
            let mut left: Vec<_> = std::iter::from_fn(|| world.pop()).collect();
            left.sort_unstable();
            assert_eq!(left, (0..nodes).collect::<Vec<_>>());
        });
    }

    #[cfg(loom)]
    #[test]
    fn loom_two_threads_share_a_stack() {
        no_node_is_owned_twice(2, 2, 1, 10);
    }

    /// The shape of ABA: one thread takes two nodes and brings one back while the other holds a stale link.
    #[cfg(loom)]
    #[test]
    fn loom_two_threads_twice() {
        no_node_is_owned_twice(2, 2, 2, 5);
    }

    #[cfg(loom)]
    #[test]
    fn loom_three_threads_share_a_stack() {
        no_node_is_owned_twice(2, 3, 1, 3);
    }
}
