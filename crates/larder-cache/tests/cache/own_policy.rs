//! A cache under a rule that its user wrote.

use larder_cache::{BlockCache, CacheError, FileId, MemoryStorage};
use larder_policy::{Arrival, Frame, FrameState, Frames, Policy, PolicyError, Touch};

/// The block that came last leaves first.
struct Stack {
    frames: Vec<Frame>,
    capacity: usize,
}

impl Stack {
    fn new(capacity: usize) -> Result<Self, PolicyError> {
        let frames = Vec::new();
        Ok(Self { frames, capacity })
    }
}

impl Policy for Stack {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn len(&self) -> usize {
        self.frames.len()
    }

    fn insert(&mut self, frame: Frame, _: Arrival) {
        self.frames.push(frame);
    }

    fn touch(&mut self, _: Frame, _: Touch) {}

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let loose = |frame: &Frame| frames.state(*frame) != FrameState::Pinned;
        let Some(at) = self.frames.iter().rposition(loose) else {
            return 0;
        };
        let frame = self.frames.remove(at);
        frames.evicted(frame, None);
        1 + if wanted > 1 {
            self.evict(frames, wanted - 1)
        } else {
            0
        }
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.retain(|&other| other != frame);
    }

    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        self.capacity = capacity;
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
    }
}

fn builder() -> larder_cache::BlockCacheBuilder {
    BlockCache::builder(MemoryStorage::default())
        .bytes(4 * larder::os::page_size())
        .read_ahead(0)
}

#[test]
fn the_rule_of_the_user_chooses_which_block_leaves() {
    let cache = builder().own_policy("stack", Stack::new).build().unwrap();
    assert_eq!(cache.stats().policy, "stack");
    let file = cache.file(FileId(1)).unwrap();
    // Each round finds the first three blocks; the others take the place of each other.
    for _ in 0..3 {
        for block in 0..6 {
            cache.handle().read(&file, block).unwrap();
        }
    }
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2 * 3, 6 + 2 * 3));
}

/// It passes a dirty block again at each eviction.
#[test]
fn a_rule_that_parks_nothing_goes_on_as_before() {
    let builder = builder().own_policy("stack", Stack::new);
    let cache = builder.dirty_share(1.0).build().unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    handle.read(&file, 0).unwrap();
    for block in 1..4 {
        handle.overwrite(&file, block).unwrap().fill(block as u8);
    }
    for block in 10..20 {
        handle.read(&file, block).unwrap();
        // A use of one that was passed.
        assert_eq!(handle.read(&file, 2).unwrap()[0], 2);
        handle.report();
        assert_eq!(cache.check(), Ok(()));
    }
    assert_eq!((cache.stats().dirty, cache.stats().written), (3, 0));
    file.invalidate(3..4).unwrap();
    file.sync().unwrap();
    for block in 20..30 {
        handle.read(&file, block).unwrap();
    }
    let now = [1, 2, 3].map(|block| handle.read(&file, block).unwrap()[0]);
    assert_eq!(now, [1, 2, 0]);
    assert_eq!(cache.check(), Ok(()));
}

#[test]
fn what_the_rule_refuses_the_cache_refuses() {
    let refused = |frames| Err::<Stack, _>(PolicyError::Capacity { frames, most: 2 });
    let error = builder().own_policy("stack", refused).build().err();
    assert!(matches!(
        error,
        Some(CacheError::Policy(PolicyError::Capacity {
            frames: 4,
            most: 2
        }))
    ));
}
