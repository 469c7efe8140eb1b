//! Whether the parts of a cache agree: for tests.

use super::cache::{BlockCache, Shared};
use super::key::{Key, MOST_FILES};
use larder_policy::Frame;

impl BlockCache {
    /// Walks everything and says what does not hold. Looks at each frame and each list, under the cache's lock: for
    /// tests and debug builds. No thread needs to be idle.
    ///
    /// ```
    /// # use larder_cache::{BlockCache, FileId, MemoryStorage};
    /// let cache = BlockCache::builder(MemoryStorage::default()).build()?;
    /// let file = cache.file(FileId(0))?;
    /// cache.handle().overwrite(&file, 3)?.fill(1);
    /// assert_eq!(cache.check(), Ok(()));
    /// # Ok::<(), larder_cache::CacheError>(())
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
        let unsynced = inner
            .unsynced
            .here()
            .iter()
            .map(|(key, (frame, _))| (key, frame));
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
        let free = inner.free.check(frames)?;
        if all + free != frames.len() {
            let len = frames.len();
            return Err(format!(
                "{all} frames hold a block and {free} are free, but there are {len}"
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::super::{FileId, MemoryStorage};
    use super::*;

    /// A cache of 8 frames, of which 3 hold a block, 2 held one, and 3 never did.
    fn cache() -> BlockCache {
        let cache = BlockCache::builder(MemoryStorage::default())
            .bytes(8 * larder::os::page_size())
            .read_ahead(0)
            .build()
            .unwrap();
        let file = cache.file(FileId(1)).unwrap();
        let mut handle = cache.handle();
        for index in 0..5 {
            handle.read(&file, index).unwrap();
        }
        file.invalidate(1..3).unwrap();
        drop(handle);
        assert_eq!(cache.check(), Ok(()));
        cache
    }

    /// What is said after something was done to the free frames.
    fn wrong(break_it: impl FnOnce(&Shared)) -> String {
        let cache = cache();
        break_it(&cache.shared);
        let said = cache.check();
        said.expect_err("nobody noticed")
    }

    #[test]
    fn a_frame_that_is_lost_is_missed() {
        let said = wrong(|shared| {
            shared.inner().free.pop(&shared.frames);
        });
        assert_eq!(
            said,
            "3 frames hold a block and 4 are free, but there are 8"
        );
        let said = wrong(|shared| {
            let mut inner = shared.inner();
            for _ in 0..3 {
                inner.free.pop(&shared.frames);
            }
        });
        assert_eq!(
            said,
            "3 frames hold a block and 2 are free, but there are 8"
        );
    }

    #[test]
    fn a_frame_is_free_once_and_then_holds_nothing() {
        let said = wrong(|shared| shared.inner().free.push(&shared.frames, 1));
        assert_eq!(said, "the list of free frames has no end");
        let said = wrong(|shared| shared.inner().free.push(&shared.frames, 7));
        assert!(said.contains("frame 7 was never taken"), "{said}");
        let said = wrong(|shared| shared.frames.set_key(6, Key::free(0)));
        assert!(said.contains("frame 6 was never taken"), "{said}");
        let said = wrong(|shared| {
            shared.frames.set_key(1, Key::NONE);
        });
        assert!(said.contains("frame 1, which is not free"), "{said}");
    }
}
