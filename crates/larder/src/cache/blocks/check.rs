//! Whether the parts of a cache agree: for tests.

use super::cache::{BlockCache, Shared};
use super::key::{Key, MOST_FILES};
use crate::cache::policy::Frame;

impl BlockCache {
    /// Walks everything and says what does not hold. Looks at each frame and each list, under the cache's lock: for tests and debug
    /// builds. Nobody needs to be idle.
    ///
    /// ```
    /// # use larder::cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(0))?;
    /// cache.handle().overwrite(&file, 3)?.fill(1);
    /// assert_eq!(cache.check(), Ok(()));
    /// # Ok::<(), larder::cache::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// A sentence that names the frame and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let Shared {
            table,
            frames,
            changed,
            ..
        } = &*self.shared;
        let inner = self.shared.inner();
        inner.rule.check()?;
        let holds = |key: Key| key != Key::NONE && key.file() != MOST_FILES;
        let mut resident = vec![0_usize; inner.files.len()];
        for frame in 0..frames.len() as Frame {
            let key = frames.key(frame);
            if changed.has(frame) && inner.dirty.get(&key) != Some(&frame) {
                return Err(format!(
                    "frame {frame} may be changed unseen and is not dirty"
                ));
            }
            if !holds(key) {
                continue;
            }
            if table.find(frames, key) != Some(frame) {
                return Err(format!(
                    "frame {frame} holds {key:?}, and the table does not say so"
                ));
            }
            match resident.get_mut(key.file() as usize) {
                Some(count) => *count += 1,
                None => return Err(format!("frame {frame} holds a block of no file")),
            }
        }
        let unsynced = inner.unsynced.iter().map(|(key, (frame, _))| (key, frame));
        for (key, &frame) in inner.dirty.iter().chain(unsynced) {
            if frames.key(frame) != *key {
                return Err(format!(
                    "{key:?} is to be written, and frame {frame} does not hold it"
                ));
            }
        }
        let all: usize = resident.iter().sum();
        if all != inner.rule.len() {
            let rule = inner.rule.len();
            return Err(format!(
                "{all} frames hold a block, and the rule has {rule}"
            ));
        }
        for ((opened, count), number) in inner.files.iter().zip(resident).zip(0_u32..) {
            if opened.stats.resident != count {
                let said = opened.stats.resident;
                return Err(format!(
                    "file {number} has {count} blocks in memory, not {said}"
                ));
            }
        }
        Ok(())
    }
}
