//! Dirty blocks in the way of evictions: a rule passes each of them once, until it is clean or used.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use larder_cache::{BlockCache, CacheHandle, CachedFile, FileId, MemoryStorage};
use larder_policy::{
    Admission, Arrival, Block, Frame, FrameState, Frames, Policy, PolicyError, Reason, Shadow,
    Touch, Visitor, rules, with_rule,
};

const FRAMES: usize = 512;
/// Blocks that are dirty, which come first.
const DIRTY: u64 = 256;
/// Blocks that come in each round, and are used once.
const MISSES: u64 = 2000;

/// What a rule asked, and what it was called with.
#[derive(Default)]
struct Watch {
    looks: AtomicU64,
    /// Of these, how many were at frames that must stay.
    passes: AtomicU64,
    parked: Mutex<HashSet<Frame>>,
    wrong: Mutex<Option<String>>,
}

impl Watch {
    /// A frame that is parked is named by no call but `unpark`, and the rule does not name it.
    fn names(&self, call: &str, frame: Frame) {
        if self.parked.lock().unwrap().contains(&frame) {
            self.say(format!("{call}: frame {frame} is parked"));
        }
    }

    fn say(&self, wrong: String) {
        self.wrong.lock().unwrap().get_or_insert(wrong);
    }

    fn counts(&self) -> [u64; 2] {
        [&self.looks, &self.passes].map(|count| count.load(Ordering::SeqCst))
    }
}

/// A rule that is watched.
struct Watched<P> {
    rule: P,
    watch: Arc<Watch>,
}

/// The cache, as such a rule sees it.
struct Looking<'l, F> {
    frames: &'l mut F,
    watch: &'l Watch,
}

impl<F: Frames> Frames for Looking<'_, F> {
    fn state(&self, frame: Frame) -> FrameState {
        self.watch.names("a look", frame);
        self.watch.looks.fetch_add(1, Ordering::SeqCst);
        let state = self.frames.state(frame);
        if state == FrameState::Pinned {
            self.watch.passes.fetch_add(1, Ordering::SeqCst);
        }
        state
    }

    fn evicted(&mut self, frame: Frame, shadow: Option<Shadow>) {
        self.watch.names("an eviction", frame);
        self.frames.evicted(frame, shadow);
    }

    fn write_back(&mut self, frame: Frame) {
        self.frames.write_back(frame);
    }
}

impl<P: Policy> Policy for Watched<P> {
    fn capacity(&self) -> usize {
        self.rule.capacity()
    }

    fn len(&self) -> usize {
        self.rule.len()
    }

    fn miss(&mut self, block: Block, shadow: Option<Shadow>, reason: Reason) -> Admission {
        self.rule.miss(block, shadow, reason)
    }

    fn insert(&mut self, frame: Frame, arrival: Arrival) {
        self.watch.names("insert", frame);
        self.rule.insert(frame, arrival);
    }

    fn touch(&mut self, frame: Frame, touch: Touch) {
        self.watch.names("touch", frame);
        self.rule.touch(frame, touch);
    }

    fn settled(&self, frame: Frame) -> bool {
        self.watch.names("settled", frame);
        self.rule.settled(frame)
    }

    fn unsettled(&mut self) -> bool {
        self.rule.unsettled()
    }

    fn evict<F: Frames>(&mut self, frames: &mut F, wanted: usize) -> usize {
        let watch = &*self.watch;
        self.rule.evict(&mut Looking { frames, watch }, wanted)
    }

    fn remove(&mut self, frame: Frame) {
        self.watch.names("remove", frame);
        self.rule.remove(frame);
    }

    fn invalidate(&mut self, frame: Frame) -> Option<Shadow> {
        self.watch.names("invalidate", frame);
        self.rule.invalidate(frame)
    }

    fn park(&mut self, frame: Frame) {
        self.watch.names("park", frame);
        self.watch.parked.lock().unwrap().insert(frame);
        self.rule.park(frame);
    }

    fn unpark(&mut self, frame: Frame) {
        if !self.watch.parked.lock().unwrap().remove(&frame) {
            self.watch
                .say(format!("unpark: frame {frame} is not parked"));
        }
        self.rule.unpark(frame);
    }

    fn rekey(&mut self, frame: Frame, block: Block) {
        self.watch.names("rekey", frame);
        self.rule.rekey(frame, block);
    }

    fn remembers(&self, shadow: Shadow) -> bool {
        self.rule.remembers(shadow)
    }

    fn shadow_bits(&self) -> Option<u32> {
        self.rule.shadow_bits()
    }

    fn whole_shadow(&self, low: u64) -> Shadow {
        self.rule.whole_shadow(low)
    }

    fn resize(&mut self, capacity: usize) -> Result<(), PolicyError> {
        self.rule.resize(capacity)
    }

    fn tick<F: Frames>(&mut self, frames: &mut F) {
        let watch = &*self.watch;
        self.rule.tick(&mut Looking { frames, watch });
    }

    fn drop_behind(&mut self, frame: Frame) {
        self.watch.names("drop_behind", frame);
        self.rule.drop_behind(frame);
    }

    fn check(&self) -> Result<(), String> {
        self.rule.check()
    }

    fn bytes(&self) -> usize {
        self.rule.bytes()
    }

    fn explain(&self) -> Vec<(&'static str, f64)> {
        self.rule.explain()
    }
}

/// Makes a cache under a rule that is watched, all of whose blocks may be dirty.
struct Build;

impl Visitor for Build {
    type Out = (BlockCache, Arc<Watch>);

    fn visit<P: Policy>(self, name: &'static str, rule: P) -> Self::Out {
        let watch = Arc::new(Watch::default());
        let watched = Watched {
            rule,
            watch: Arc::clone(&watch),
        };
        let cache = BlockCache::builder(MemoryStorage::default())
            .bytes(FRAMES * larder::os::page_size())
            .own_policy(name, move |_| Ok(watched))
            .read_ahead(0)
            .dirty_share(1.0)
            .build();
        (cache.unwrap(), watch)
    }
}

/// What a dirty block holds.
fn byte(index: u64) -> u8 {
    (index % 251) as u8 + 1
}

/// A cache under a rule that is watched, and a file whose first blocks are dirty.
fn with_dirty(rule: &str) -> (BlockCache, Arc<Watch>, CachedFile) {
    let (cache, watch) = with_rule(rule, FRAMES, Build).unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut handle = cache.handle();
    for index in 0..DIRTY {
        handle.overwrite(&file, index).unwrap().fill(byte(index));
    }
    drop(handle);
    (cache, watch, file)
}

/// Uses each dirty block.
fn use_dirty(handle: &mut CacheHandle, file: &CachedFile) {
    for index in 0..DIRTY {
        assert_eq!(handle.read(file, index).unwrap()[7], byte(index));
    }
    handle.report();
}

#[test]
fn a_dirty_block_is_passed_once_until_it_is_used_or_clean_under_every_rule() {
    for rule in rules() {
        let (cache, watch, file) = with_dirty(rule.name);
        let mut handle = cache.handle();
        let mut next = DIRTY;
        let mut come = |handle: &mut CacheHandle, blocks: u64| {
            for index in next..next + blocks {
                handle.read(&file, index).unwrap();
            }
            next += blocks;
        };
        come(&mut handle, FRAMES as u64 - DIRTY);
        for round in 0..3 {
            let (before, evictions) = (watch.counts(), cache.stats().evictions);
            come(&mut handle, MISSES);
            let evictions = cache.stats().evictions - evictions;
            let after = watch.counts();
            let [looks, passes] = [0, 1].map(|at| after[at] - before[at]);
            let said = format!(
                "{}, round {round}: {looks} looks and {passes} passes for {evictions} evictions",
                rule.name
            );
            assert_eq!(evictions, MISSES, "{said}");
            // Without parking, a list passes all of them at each eviction.
            let often = if rule.name.starts_with("linux-2.4") {
                64
            } else {
                4
            };
            assert!(passes <= often * DIRTY, "{said}");
            assert!(looks - passes <= 16 * evictions, "{said}");
            if ["fifo", "lru"].contains(&rule.name) {
                assert_eq!(passes, DIRTY, "{said}");
                assert_eq!(watch.parked.lock().unwrap().len() as u64, DIRTY);
            }
            // Some are written where the rule asks for that.
            let stats = cache.stats();
            assert_eq!(stats.dirty as u64 + stats.written, DIRTY, "{said}");
            use_dirty(&mut handle, &file);
            assert_eq!(cache.check(), Ok(()), "{said}");
        }
        come(&mut handle, MISSES);
        cache.write_back().unwrap();
        assert_eq!(cache.stats().dirty, 0);
        assert!(watch.parked.lock().unwrap().is_empty(), "{}", rule.name);
        come(&mut handle, MISSES);
        use_dirty(&mut handle, &file);
        assert_eq!(cache.check(), Ok(()), "{}", rule.name);
        assert_eq!(*watch.wrong.lock().unwrap(), None, "{}", rule.name);
    }
}

/// A smaller cache has more dirty blocks than frames, none of which can be written but by and by.
#[test]
fn a_cache_of_parked_blocks_shrinks_and_grows_under_every_rule() {
    for rule in rules() {
        let (cache, watch, file) = with_dirty(rule.name);
        let mut handle = cache.handle();
        let page = larder::os::page_size();
        for (round, frames) in [DIRTY as usize / 2, FRAMES, 3, 1, 40]
            .into_iter()
            .enumerate()
        {
            cache.set_bytes(frames * page).unwrap();
            assert!(cache.stats().resident <= frames);
            let said = format!("{}, {frames} frames", rule.name);
            assert_eq!(cache.check(), Ok(()), "{said}");
            for index in 0..64 {
                handle
                    .read(&file, 1000 * (1 + round as u64) + index)
                    .unwrap();
                handle.write(&file, index).unwrap()[0] = 9;
            }
            assert_eq!(cache.check(), Ok(()), "{said}");
        }
        cache.set_bytes(FRAMES * page).unwrap();
        use_dirty(&mut handle, &file);
        assert_eq!(*watch.wrong.lock().unwrap(), None, "{}", rule.name);
    }
}
