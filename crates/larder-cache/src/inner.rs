//! What is changed under the cache's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::ahead::Ahead;
use super::cache::Shared;
use super::epochs::Epochs;
use super::error::CacheError;
use super::frames::Claimed;
use super::free::FreeFrames;
use super::key::{FileId, Key, TenantId};
use super::opened::Opened;
use super::round::Round;
use super::rule::{CacheRule, NamedRule, Use};
use super::shadows::Shadows;
use super::stats::{CacheStats, FileStats};
use super::unsynced::Unsynced;
use super::victims::{Gone, Others, Victims};
use super::write_back::BATCH;
use larder::internal::order::elsewhere;
use larder_policy::{Admission, Arrival, Block, Frame, PolicyError, Reason, Shadow};

/// A use of a block, or what else becomes of it, as [`BlockCache::record`](super::BlockCache::record) reports it.
///
/// ```
/// # use larder_cache::{BlockCache, FileId, MemoryStorage};
/// # use std::sync::{Arc, Mutex};
/// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
/// let all = Arc::new(Mutex::new(Vec::new()));
/// let log = Arc::clone(&all);
/// cache.record(Some(Box::new(move |access| log.lock().unwrap().push(access))));
/// let file = cache.file(FileId(1))?;
/// let mut handle = cache.handle();
/// handle.read(&file, 7)?;
/// handle.read(&file, 7)?;
/// drop(handle);
/// let hits: Vec<bool> = all.lock().unwrap().iter().map(|access| access.hit).collect();
/// assert_eq!(hits, [false, true]);
/// # Ok::<(), larder_cache::CacheError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The file.
    pub file: FileId,
    /// Index of the block in it.
    pub index: u64,
    /// The identity by which the rule knows the block.
    pub block: Block,
    /// The request that it belongs to.
    pub request: u32,
    /// What was done with it.
    pub kind: AccessKind,
    /// It was in memory.
    pub hit: bool,
}

/// What is done with a block, in the words of `larder sim`.
///
/// ```
/// use larder_cache::AccessKind;
/// assert_eq!(AccessKind::Readahead.name(), "readahead");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It is used, and read if it is not in memory. So are all hits.
    Read,
    /// It is written whole, and was not in memory.
    Write,
    /// It is read ahead; that is no use.
    Readahead,
    /// It is forgotten: invalidated, truncated, or it came and could not be read or kept. No use either.
    Remove,
}

impl AccessKind {
    /// Its name in a trace.
    ///
    /// ```
    /// assert_eq!(larder_cache::AccessKind::Write.name(), "write");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Readahead => "readahead",
            Self::Remove => "remove",
        }
    }
}

impl From<Reason> for AccessKind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Demand => Self::Read,
            Reason::Write => Self::Write,
            Reason::Readahead => Self::Readahead,
        }
    }
}

/// What is called for every use.
pub(super) type Recorder = Box<dyn FnMut(Access) + Send>;

pub(super) struct Inner {
    /// The name of the rule.
    policy: &'static str,
    pub(super) rule: Box<dyn CacheRule>,
    pub(super) free: FreeFrames,
    shadows: Shadows,
    /// In the order in which they are written back.
    pub(super) dirty: BTreeMap<Key, Frame>,
    /// Written since their file was last synced.
    pub(super) unsynced: Unsynced,
    /// Dirty blocks that the rule wants to be written: as many as go at once, further ones are asked for again.
    pub(super) asked: BTreeSet<Key>,
    /// Where writing went on to when room was last made.
    pub(super) swept: Key,
    /// Where the pass over dirty blocks is, of which each call of `maintain` writes a part.
    pub(super) round: Round,
    ahead: Ahead,
    /// Being read from the storage or written to it.
    pub(super) moving: Ahead,
    pub(super) files: Vec<Opened>,
    pub(super) numbers: HashMap<FileId, u32>,
    /// Numbers that no file has any more, the one that rests longest first.
    pub(super) vacant: VecDeque<u32>,
    /// Numbers that were given again.
    pub(super) births: u64,
    /// What files that are not open any more have counted, and room for those that are.
    pub(super) former: HashMap<TenantId, FileStats>,
    pub(super) counts: CacheStats,
    recorder: Option<Recorder>,
    epochs: Epochs,
    /// Blocks that are being read now.
    pub(super) loading: usize,
    /// Threads that wait for a block that moves.
    pub(super) waiting: usize,
}

impl Inner {
    pub(super) fn new((policy, rule): NamedRule, frames: usize) -> Result<Self, CacheError> {
        let marks = || Ahead::new(frames).ok_or(CacheError::Memory { frames });
        Ok(Self {
            policy,
            rule,
            free: FreeFrames::new(frames as Frame),
            shadows: Shadows::new(frames),
            dirty: BTreeMap::new(),
            unsynced: Unsynced::new(frames),
            asked: BTreeSet::new(),
            swept: Key(0),
            round: Round::new(),
            ahead: marks()?,
            moving: marks()?,
            files: Vec::new(),
            numbers: HashMap::new(),
            vacant: VecDeque::new(),
            births: 0,
            former: HashMap::new(),
            counts: CacheStats::default(),
            recorder: None,
            epochs: Epochs::new(),
            loading: 0,
            waiting: 0,
        })
    }

    /// Uses of blocks that were found in frames, reported some time after they were used. With `settle`, blocks whose
    /// uses would tell the rule nothing until something else happens are marked, so that those uses are only counted.
    /// The handle that noted the uses knows of no file born after `since`.
    pub(super) fn hits(&mut self, shared: &Shared, uses: &mut [Use], since: u64, settle: bool) {
        if self.births > since {
            self.void(uses, since);
        }
        let uses = &*uses;
        let marks = if settle {
            self.epochs.open(&shared.now, &shared.frames)
        } else {
            None
        };
        if self.rule.touch_all(uses, shared, marks) {
            self.stir(shared);
        }
        if self.ahead.any() {
            for used in uses {
                if used.frame != Use::MANY && shared.frames.key(used.frame) == used.key {
                    self.ahead.take(used.frame);
                }
            }
        }
        let (mut file, mut count) = (0, 0);
        for used in uses {
            if used.key.file() != file {
                self.count_hits(file, count, since);
                (file, count) = (used.key.file(), 0);
            }
            count += used.count();
        }
        self.count_hits(file, count, since);
        if self.recorder.is_some() {
            for used in uses.iter().filter(|used| used.frame != Use::MANY) {
                self.tell(used.key, used.request, AccessKind::Read, true);
            }
        }
    }

    /// Uses of files whose number is another one's by now are counted, and no more.
    #[cold]
    fn void(&self, uses: &mut [Use], since: u64) {
        for used in uses {
            if self.files[used.key.file() as usize].born > since {
                (used.request, used.frame) = (used.count() as u32, Use::MANY);
            }
        }
    }

    fn count_hits(&mut self, file: u32, count: u64, since: u64) {
        self.counts.hits += count;
        let opened = self.files.get_mut(file as usize);
        if let Some(opened) = opened.filter(|opened| opened.born <= since) {
            opened.stats.hits += count;
        }
    }

    /// Something else than uses is about to happen: what was settled may no longer be.
    pub(super) fn stir(&mut self, shared: &Shared) {
        self.epochs.end(&shared.now, &shared.frames);
    }

    /// Calls `recorder` for every use from now on. Returns the former one.
    pub(super) fn record(
        &mut self,
        shared: &Shared,
        recorder: Option<Recorder>,
    ) -> Option<Recorder> {
        self.epochs
            .tell_all(recorder.is_some(), &shared.now, &shared.frames);
        core::mem::replace(&mut self.recorder, recorder)
    }

    /// Changes how many frames the rule chooses among.
    pub(super) fn resize(&mut self, shared: &Shared, frames: usize) -> Result<(), PolicyError> {
        self.stir(shared);
        self.rule.resize(frames)
    }

    fn tell(&mut self, key: Key, request: u32, kind: AccessKind, hit: bool) {
        // One that panics is not called again, least of all while its panic goes up.
        if let Some(mut recorder) = self.recorder.take() {
            let _other_caches = elsewhere();
            recorder(Access {
                file: self.files[key.file() as usize].id,
                index: key.index(),
                block: Block(key.0),
                request,
                kind,
                hit,
            });
            self.recorder = Some(recorder);
        }
    }

    /// Reports to the recorder that a block which came is not there any more.
    pub(super) fn not_kept(&mut self, key: Key) {
        self.tell(key, 0, AccessKind::Remove, false);
    }

    /// Counts a miss, and reports it to the rule, before room is made.
    pub(super) fn miss(
        &mut self,
        shared: &Shared,
        key: Key,
        reason: Reason,
        request: u32,
    ) -> Admission {
        self.stir(shared);
        if reason != Reason::Readahead {
            self.counts.misses += 1;
            self.files[key.file() as usize].stats.misses += 1;
        }
        self.tell(key, request, reason.into(), false);
        let shadow = self.rule.recall(&mut self.shadows, key);
        let refaults = u64::from(shadow.is_some() && reason != Reason::Readahead);
        self.counts.refaults += refaults;
        self.files[key.file() as usize].stats.refaults += refaults;
        self.rule.miss(Block(key.0), shadow, reason)
    }

    /// Gives a block that is not in memory a frame. The caller holds the frame and fills it.
    #[inline(always)]
    pub(super) fn admit<'c>(
        &mut self,
        shared: &'c Shared,
        key: Key,
        reason: Reason,
        request: u32,
        admission: Admission,
    ) -> Result<Claimed<'c>, CacheError> {
        let Some(mut claimed) = self.room(shared) else {
            return Err(self.pinned());
        };
        if let Err(error) = claimed.take_page() {
            claimed = self.other_page(shared, claimed).ok_or(error)?;
        }
        let frame = claimed.frame();
        self.stir(shared);
        shared.table.insert(&shared.frames, key, frame);
        if reason == Reason::Readahead {
            self.ahead.put(frame);
        }
        let read_ahead = u64::from(reason == Reason::Readahead);
        self.counts.read_ahead += read_ahead;
        let stats = &mut self.files[key.file() as usize].stats;
        stats.read_ahead += read_ahead;
        stats.resident += 1;
        self.loading += 1;
        self.moving.put(frame);
        self.rule.insert(
            frame,
            Arrival {
                block: Block(key.0),
                reason,
                request,
                admission,
            },
        );
        Ok(claimed)
    }

    #[cold]
    fn pinned(&self) -> CacheError {
        CacheError::Pinned {
            frames: self.rule.capacity(),
        }
    }

    /// The pool has reached its limit: the page of another block will do, with its frame.
    #[cold]
    fn other_page<'c>(&mut self, shared: &'c Shared, without: Claimed<'c>) -> Option<Claimed<'c>> {
        let other = self.let_go(shared, 1);
        self.set_free(shared, Some(without));
        other
    }

    /// An empty frame, if there is one. Of a cache that is full it is the one of a block that leaves for it, with its page.
    #[inline(always)]
    fn room<'c>(&mut self, shared: &'c Shared) -> Option<Claimed<'c>> {
        let over = self.rule.over();
        if over > 0 {
            return self.let_go(shared, over);
        }
        self.free_frame(shared)
    }

    /// A frame that holds nothing. Not one that a thread looks at which expects its former block there: that thread may take its time
    /// until it lets go, and all others wait for the cache's lock.
    #[inline(always)]
    fn free_frame<'c>(&mut self, shared: &'c Shared) -> Option<Claimed<'c>> {
        let frame = self.free.pop(&shared.frames)?;
        let claimed = shared.frames.try_claim(frame);
        claimed.or_else(|| self.next_free_frame(shared, frame))
    }

    #[cold]
    fn next_free_frame<'c>(&mut self, shared: &'c Shared, busy: Frame) -> Option<Claimed<'c>> {
        let next = self.free_frame(shared);
        self.free.push(&shared.frames, busy);
        next
    }

    /// Takes up to `wanted` clean blocks out that no thread holds. Returns how many.
    pub(super) fn evict(&mut self, shared: &Shared, wanted: usize) -> usize {
        let before = self.rule.len();
        let latest = self.let_go(shared, wanted);
        self.set_free(shared, latest);
        before - self.rule.len()
    }

    /// Time passes for the rule, which may let blocks go.
    pub(super) fn tick(&mut self, shared: &Shared) {
        self.stir(shared);
        let mut victims = Victims::new(shared, &self.dirty);
        self.rule.age(&mut victims);
        let Victims { latest, others, .. } = victims;
        let latest = self.take_out(shared, latest, others);
        self.set_free(shared, latest);
    }

    /// [`evict`](Self::evict), where the frame of the latest one stays in the caller's hands.
    #[inline]
    fn let_go<'c>(&mut self, shared: &'c Shared, wanted: usize) -> Option<Claimed<'c>> {
        self.stir(shared);
        let mut victims = Victims::new(shared, &self.dirty);
        self.rule.let_go(&mut victims, wanted);
        let Victims {
            latest,
            others,
            asked,
            ..
        } = victims;
        let room = BATCH - self.asked.len();
        self.asked.extend(asked.into_iter().take(room));
        self.take_out(shared, latest, others)
    }

    #[inline(always)]
    fn take_out<'c>(
        &mut self,
        shared: &'c Shared,
        latest: Option<Gone<'c>>,
        others: Option<Box<Others<'c>>>,
    ) -> Option<Claimed<'c>> {
        if let Some(others) = others {
            self.take_out_others(shared, *others);
        }
        let Gone { page, shadow } = latest?;
        self.left(shared, page.frame(), shadow);
        Some(page)
    }

    #[cold]
    fn take_out_others(&mut self, shared: &Shared, others: Others<'_>) {
        for frame in others.kept {
            let block = Block(shared.frames.key(frame).0);
            let arrival = Arrival::demand(block, 0, Admission::default());
            self.rule.insert(frame, arrival);
        }
        for Gone { page, shadow } in others.before {
            self.left(shared, page.frame(), shadow);
            self.set_free(shared, Some(page));
        }
    }

    fn set_free(&mut self, shared: &Shared, empty: Option<Claimed<'_>>) {
        if let Some(page) = empty {
            let frame = page.frame();
            drop(page);
            self.free.push(&shared.frames, frame);
        }
    }

    /// A block has left the rule: it is in memory no more. The frame, which the caller holds, has nothing but its page then.
    fn left(&mut self, shared: &Shared, frame: Frame, shadow: Option<Shadow>) {
        let key = shared.frames.key(frame);
        shared.table.remove(&shared.frames, frame);
        self.leaves(key, true);
        let wasted = u64::from(self.ahead.take(frame));
        self.counts.evictions += 1;
        self.counts.wasted += wasted;
        let stats = &mut self.files[key.file() as usize].stats;
        stats.evictions += 1;
        stats.wasted += wasted;
        self.gone(key);
        if let Some(shadow) = shadow {
            self.rule.keep(&mut self.shadows, key, shadow);
        }
    }

    /// The pages of frames that hold nothing go back to the pool.
    pub(super) fn give_back(&self, shared: &Shared) {
        for frame in self.free.iter(&shared.frames) {
            if let Some(mut claimed) = shared.frames.try_claim(frame) {
                claimed.give_back();
            }
        }
    }

    /// A block is gone for other reasons than the rule's: it was invalidated, or could not be read.
    pub(super) fn forget(&mut self, shared: &Shared, frame: Frame, invalidated: bool) {
        let key = shared.frames.key(frame);
        self.not_kept(key);
        self.clean(key);
        self.leaves(key, !invalidated);
        shared.table.remove(&shared.frames, frame);
        self.stir(shared);
        self.rule.remove(frame);
        self.ahead.take(frame);
        self.free.push(&shared.frames, frame);
        self.gone(key);
    }

    pub(super) fn stats(&self, shared: &Shared) -> CacheStats {
        CacheStats {
            resident: self.rule.len(),
            dirty: self.dirty.len(),
            files: self.numbers.len(),
            capacity: self.rule.capacity(),
            table_bytes: shared.bytes()
                + self.rule.bytes()
                + self.shadows.bytes()
                + self.ahead.bytes()
                + self.moving.bytes(),
            policy: self.policy,
            explanation: self.rule.explain(),
            ..self.counts.clone()
        }
    }
}
