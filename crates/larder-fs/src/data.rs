//! Open files: reading, writing, and what makes content safe.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use larder_cache::{BlockRef, CacheError, CacheHandle, CachedFile};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use rustix::fs::{FallocateFlags, Mode as Permissions, SeekFrom};
use rustix::io::Errno;

use crate::filesystem::{FileSystem, STARTERS, errno};
use crate::inode::{Inode, Opened, Ours};
use crate::options::Coherence;
use crate::system::Sys;
use crate::transport::BackingId;

const SET_IDS: u32 = libc::S_ISUID | libc::S_ISGID;

/// A file that a program has open.
pub(crate) struct OpenFile {
    pub(crate) inode: Arc<Inode>,
    pub(crate) opened: Arc<Opened>,
    /// This opener's own, so that it learns of failed writes by itself.
    cached: CachedFile,
    /// Keeps the kernel's number of the source's file.
    pub(crate) passthrough: OnceLock<Arc<BackingId>>,
}

/// None if another thread has the file and this one must not wait.
fn shared(inode: &Inode, may_wait: bool) -> Option<RwLockReadGuard<'_, ()>> {
    match may_wait {
        true => Some(inode.io.read()),
        false => inode.io.try_read(),
    }
}

fn alone(inode: &Inode) -> RwLockWriteGuard<'_, ()> {
    inode.io.write()
}

/// An open file that neither becomes shorter nor gets other content from elsewhere while this is there.
struct Steady(Arc<OpenFile>);

impl Steady {
    /// None if another thread has the file and this one must not wait.
    fn new(file: &Arc<OpenFile>, may_wait: bool) -> Option<Self> {
        std::mem::forget(shared(&file.inode, may_wait)?);
        Some(Self(Arc::clone(file)))
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // SAFETY: `new` took the lock for reading and dropped no guard of it. Another thread may give it back: that is what the
        // feature `send_guard` is for.
        unsafe { self.0.inode.io.force_unlock_read() }
    }
}

/// What becomes of a read.
pub(crate) enum Read<T> {
    /// All was in memory.
    Done(T),
    /// Another thread has the file.
    Locked,
    Missed(Reading),
}

/// What a program writes.
pub(crate) struct Write<'d> {
    pub(crate) offset: u64,
    pub(crate) data: &'d [u8],
    /// Those of the open file, as they are now and not as it was opened, and those of this write alone.
    pub(crate) flags: u32,
    /// The kernel kept it of a mapping.
    pub(crate) cached: bool,
    /// The program may not keep the file's right to run as its owner.
    pub(crate) kill_ids: bool,
}

impl Write<'_> {
    fn has(&self, flag: i32) -> bool {
        self.flags & flag as u32 == flag as u32
    }

    /// It goes to the end of the file, wherever that is.
    fn appends(&self) -> bool {
        self.has(libc::O_APPEND) && !self.cached
    }

    /// It is synced before it is answered, with the file's attributes if that is true.
    fn syncs(&self) -> Option<bool> {
        match self.has(libc::O_SYNC) {
            true => Some(true),
            false => self.has(libc::O_DSYNC).then_some(false),
        }
    }
}

/// A file's data that is open for one call, so that it is not closed as idle meanwhile.
struct Lent<'s> {
    system: &'s FileSystem,
    inode: &'s Inode,
    opened: Arc<Opened>,
}

impl<'s> Lent<'s> {
    fn new(system: &'s FileSystem, inode: &'s Arc<Inode>) -> Sys<Self> {
        let opened = system.open_data(inode, true)?;
        Ok(Self {
            system,
            inode,
            opened,
        })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.system.close(self.inode);
    }
}

/// A read of which not all is in memory.
pub(crate) struct Reading {
    file: Steady,
    offset: u64,
    len: usize,
    block: usize,
}

impl Reading {
    fn cached(&self) -> &CachedFile {
        &self.file.0.cached
    }

    /// Bytes that it is for.
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }

    fn blocks(&self) -> Range<u64> {
        let end = self.offset + self.len as u64;
        self.offset / self.block as u64..end.div_ceil(self.block as u64)
    }

    /// What is asked for of these blocks.
    fn pieces<'p>(&self, pages: &'p [BlockRef<'_>]) -> Vec<&'p [u8]> {
        let mut from = (self.offset % self.block as u64) as usize;
        let mut left = self.len;
        let piece = |page: &'p BlockRef<'_>| {
            let n = left.min(self.block - from);
            let piece = &page[from..from + n];
            (left, from) = (left - n, 0);
            piece
        };
        pages.iter().map(piece).collect()
    }

    /// All blocks, if they are in memory and this waits for no other thread.
    fn hit<'f>(
        &'f self,
        handle: &mut CacheHandle,
    ) -> Result<Option<Vec<BlockRef<'f>>>, CacheError> {
        handle.request(|handle| {
            // From the end: a sequential reader finds the first ones, which came ahead, and misses the last. They would be used
            // twice, here and by the read that follows.
            let blocks = self.blocks().rev();
            let pages = blocks.map(|index| handle.try_read(self.cached(), index));
            let pages = pages.collect::<Result<Option<Vec<_>>, _>>()?;
            Ok(pages.map(|mut pages| {
                pages.reverse();
                pages
            }))
        })
    }

    /// Reads, and waits for the source.
    pub(crate) fn wait<T>(
        &self,
        handle: &mut CacheHandle,
        reply: impl FnOnce(&[&[u8]]) -> T,
    ) -> Sys<T> {
        let mut pages = Vec::new();
        match handle.read_many(self.cached(), self.blocks(), &mut pages) {
            Ok(()) => Ok(reply(&self.pieces(&pages))),
            // More blocks than the cache can hold at a time go one by one.
            Err(CacheError::Pinned { .. }) => {
                let all = copy_blocks(handle, self.cached(), self.blocks()).map_err(cache_errno)?;
                let within = (self.offset % self.block as u64) as usize;
                Ok(reply(&[&all[within..within + self.len]]))
            }
            Err(error) => Err(errno(&error)),
        }
    }
}

fn cache_errno(error: CacheError) -> Errno {
    errno(&error)
}

impl FileSystem {
    /// Opens a file. Returns its handle, and whether the kernel may keep the pages that it has of it.
    pub(crate) fn open(
        &self,
        inode: &Arc<Inode>,
        flags: u32,
        kill_ids: bool,
    ) -> Sys<(u64, Arc<OpenFile>, bool)> {
        if !inode.is_file() {
            return Err(Errno::INVAL);
        }
        let old = match self.coherence {
            Coherence::Exclusive => false,
            Coherence::Ttl(ttl) => inode.state().checked.is_none_or(|at| at.elapsed() >= ttl),
            Coherence::Strict | Coherence::Open => true,
        };
        let same = !old || !self.look(inode, Ours::No)?;
        self.not_too_many_open();
        let write = flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32;
        let opened = self.open_data(inode, write)?;
        let (handle, file) = self.open_file(inode, opened)?;
        if write && flags & libc::O_TRUNC as u32 != 0 {
            let cut = self.truncate(inode, 0, kill_ids);
            cut.inspect_err(|_| self.release(handle))?;
        }
        Ok((handle, file, same))
    }

    /// A handle for data that was opened and counted.
    pub(crate) fn open_file(
        &self,
        inode: &Arc<Inode>,
        opened: Arc<Opened>,
    ) -> Sys<(u64, Arc<OpenFile>)> {
        let file = self.file_of(inode, opened)?;
        let mut number = 0;
        let make = |handle| {
            number = handle;
            Some(Arc::clone(&file))
        };
        match self.files.add(make) {
            Some(_) => Ok((number, file)),
            None => {
                self.close(inode);
                Err(Errno::NFILE)
            }
        }
    }

    /// Data that was opened and counted, as a program's.
    fn file_of(&self, inode: &Arc<Inode>, opened: Arc<Opened>) -> Sys<Arc<OpenFile>> {
        let cached = self.cached(inode).inspect_err(|_| self.close(inode))?;
        Ok(Arc::new(OpenFile {
            inode: Arc::clone(inode),
            opened,
            cached,
            passthrough: OnceLock::new(),
        }))
    }

    /// The open file of a request that names none, where the kernel opens and closes files by itself. It stays open until no request
    /// has it. None if the source would have to open it, and may not be asked.
    pub(crate) fn lasting(
        &self,
        inode: &Arc<Inode>,
        write: bool,
        may_ask: bool,
    ) -> Sys<Option<Arc<OpenFile>>> {
        if !inode.is_file() {
            return Err(Errno::BADF);
        }
        let ready = |lasting: &Option<Arc<OpenFile>>| {
            let file = lasting.as_ref();
            file.filter(|file| !write || file.opened.backing.is_writable())
                .cloned()
        };
        // Another thread may be opening it.
        let there = inode.try_lasting().and_then(|lasting| ready(&lasting));
        if there.is_some() || !may_ask {
            return Ok(there);
        }
        self.not_too_many_open();
        let mut lasting = inode.lasting();
        if let Some(file) = ready(&lasting) {
            return Ok(Some(file));
        }
        let opened = self.open_data(inode, write)?;
        if let Some(file) = &*lasting {
            // It is open for writing from now on, and was counted already.
            let file = Arc::clone(file);
            drop(lasting);
            self.close(inode);
            return Ok(Some(file));
        }
        let file = self.file_of(inode, opened)?;
        *lasting = Some(Arc::clone(&file));
        Ok(Some(file))
    }

    /// The file of a handle becomes that of requests that name none, unless there is one.
    pub(crate) fn release_lasting(&self, handle: u64) {
        let Some(file) = self.files.remove(handle) else {
            return;
        };
        let inode = Arc::clone(&file.inode);
        let mut lasting = inode.lasting();
        if lasting.is_none() {
            *lasting = Some(file);
            return;
        }
        drop((lasting, file));
        self.close(&inode);
    }

    /// Closes the open file of requests that name none, unless one has it, or a program may have it open with a right that this one would
    /// not get again.
    pub(crate) fn let_go(&self, inode: &Inode) {
        let unused = |file: &mut Arc<OpenFile>| {
            let write = file.opened.backing.is_writable();
            Arc::strong_count(file) == 1
                && (!inode.is_known() || self.proc_fds.may_reopen(inode.fd(), write))
        };
        let gone = inode.lasting().take_if(unused);
        if gone.is_some() {
            drop(gone);
            self.close(inode);
        }
    }

    /// One open file less.
    fn close(&self, inode: &Inode) {
        {
            let _slot = inode.opened();
            inode.opens.fetch_sub(1, Ordering::AcqRel);
        }
        self.retire(inode);
    }

    pub(crate) fn file(&self, handle: u64) -> Sys<Arc<OpenFile>> {
        self.files.get(handle).ok_or(Errno::BADF)
    }

    pub(crate) fn release(&self, handle: u64) {
        if let Some(file) = self.files.remove(handle) {
            let inode = Arc::clone(&file.inode);
            drop(file);
            self.close(&inode);
        }
    }

    /// A program closes one of its descriptors.
    pub(crate) fn flush(&self, file: &OpenFile) -> Sys<()> {
        self.write_back(&file.inode, &file.opened)
    }

    /// Reads, if all is in memory, and hands the pieces to `reply`. Else the read is yet to be done. Unless it `may_wait`, it waits for no
    /// other thread.
    pub(crate) fn read<T>(
        &self,
        handle: &mut CacheHandle,
        file: &Arc<OpenFile>,
        offset: u64,
        len: usize,
        may_wait: bool,
        reply: impl FnOnce(&[&[u8]]) -> T,
    ) -> Sys<Read<T>> {
        let Some(steady) = Steady::new(file, may_wait) else {
            return Ok(Read::Locked);
        };
        let mut reading = Reading {
            file: steady,
            offset,
            len,
            block: self.cache.block_size(),
        };
        let size = file.inode.size.load(Ordering::Acquire);
        reading.len = (len as u64).min(size.saturating_sub(offset)) as usize;
        if reading.len == 0 {
            return Ok(Read::Done(reply(&[])));
        }
        let Some(pages) = reading.hit(handle).map_err(cache_errno)? else {
            return Ok(Read::Missed(reading));
        };
        self.counters
            .read_bytes
            .fetch_add(reading.len(), Ordering::Relaxed);
        Ok(Read::Done(reply(&reading.pieces(&pages))))
    }

    /// Has a thread of the cache read, and hand the pieces to `reply`.
    pub(crate) fn read_later(
        &self,
        reading: Reading,
        reply: impl Fn(Sys<&[&[u8]]>) + Send + 'static,
    ) {
        self.counters
            .read_bytes
            .fetch_add(reading.len(), Ordering::Relaxed);
        let (file, blocks) = (Arc::clone(&reading.file.0), reading.blocks());
        let cache = self.cache.clone();
        let done = move |pages: Result<Vec<BlockRef<'_>>, CacheError>| match pages {
            Ok(pages) => reply(Ok(&reading.pieces(&pages))),
            Err(CacheError::Pinned { .. }) => {
                let waited = reading.wait(&mut cache.handle(), |pieces| reply(Ok(pieces)));
                if let Err(error) = waited {
                    reply(Err(error));
                }
            }
            Err(error) => reply(Err(errno(&error))),
        };
        let starter = &self.starters[file.inode.id as usize % STARTERS];
        let mut starter = starter.lock().unwrap_or_else(PoisonError::into_inner);
        starter.start_read(&file.cached, blocks, done);
    }

    /// Writes, at the end if the write's flags say so. Returns how many bytes; none if it would wait and must not: then it is to be done
    /// again, as a whole.
    pub(crate) fn write(
        &self,
        handle: &mut CacheHandle,
        file: &OpenFile,
        write: &Write<'_>,
        may_wait: bool,
    ) -> Sys<Option<usize>> {
        let inode = &file.inode;
        let appends = write.appends();
        let len = write.data.len() as u64;
        let end = write
            .offset
            .checked_add(len)
            .filter(|&end| i64::try_from(end).is_ok());
        let end = end.ok_or(Errno::FBIG)?;
        let syncs = write.syncs();
        let waits = syncs.is_some() || self.write_through;
        if !may_wait && (waits || write.kill_ids && Self::without_ids(inode).is_some()) {
            return Ok(None);
        }
        if write.kill_ids {
            // It may find that others have changed the file, and takes the file's lock then.
            self.kill_ids(inode)?;
        }
        // Beside others within the file, which does not become shorter while this is held; else alone.
        let mut beside = None;
        if !appends && end <= inode.size.load(Ordering::Acquire) {
            beside = shared(inode, may_wait);
            if beside.is_none() {
                return Ok(None);
            }
            // The file may have become shorter in between.
            beside = beside.filter(|_| end <= inode.size.load(Ordering::Acquire));
        }
        let alone = match beside {
            Some(_) => None,
            None if may_wait => Some(alone(inode)),
            None => match inode.io.try_write() {
                None => return Ok(None),
                alone => alone,
            },
        };
        let size = inode.size.load(Ordering::Acquire);
        let offset = if appends { size } else { write.offset };
        let end = offset + len;
        // A hole before it takes no room.
        let grows = end.saturating_sub(size.max(offset));
        if !may_wait {
            if grows > 0 && !self.try_reserve(grows) {
                return Ok(None);
            }
        } else if grows > 0 && !self.reserve(grows) {
            return Err(Errno::NOSPC);
        }
        self.changes(inode);
        let (data, cached) = (write.data, &file.cached);
        let written = match may_wait {
            true => self.write_blocks(handle, cached, offset, data, size),
            false => match handle.try_write_at(cached, offset, data) {
                Ok(true) => (data.len(), Ok(())),
                Ok(false) => return Ok(None),
                Err(error) => (0, Err(error)),
            },
        };
        let done = match written {
            (0, Err(error)) => return Err(errno(&error)),
            (done, _) => done,
        };
        inode.size.fetch_max(offset + done as u64, Ordering::AcqRel);
        drop((beside, alone));
        self.counters
            .written_bytes
            .fetch_add(done as u64, Ordering::Relaxed);
        match syncs {
            Some(all) => self.sync(file, all)?,
            None if self.write_through => self.write_back(inode, &file.opened)?,
            None => {}
        }
        Ok(Some(done))
    }

    /// Returns how many bytes were written, and why not all.
    fn write_blocks(
        &self,
        handle: &mut CacheHandle,
        cached: &CachedFile,
        offset: u64,
        data: &[u8],
        size: u64,
    ) -> (usize, Result<(), CacheError>) {
        let block = self.cache.block_size() as u64;
        handle.request(|handle| {
            let mut done = 0;
            while done < data.len() {
                let at = offset + done as u64;
                let (index, within) = (at / block, (at % block) as usize);
                let n = (block as usize - within).min(data.len() - done);
                let end = at + n as u64;
                // Nothing of the block stays as it was.
                let whole = within == 0 && (n as u64 == block || end >= size);
                let page = with_room(|| match whole {
                    true => handle.overwrite_until(cached, index, end),
                    false => handle.write_until(cached, index, end),
                });
                match page {
                    Ok(mut page) => page[within..within + n].copy_from_slice(&data[done..done + n]),
                    Err(error) => return (done, Err(error)),
                }
                done += n;
            }
            (done, Ok(()))
        })
    }

    /// The mode of a file after a write by another than the owner; none if it stays.
    fn without_ids(inode: &Inode) -> Option<u32> {
        let mode = inode.state().attr.mode;
        let group_runs = mode & libc::S_IXGRP != 0;
        let kept = mode & !libc::S_ISUID & if group_runs { !libc::S_ISGID } else { u32::MAX };
        (mode & SET_IDS != 0 && kept != mode).then_some(kept)
    }

    /// A write by another than the owner takes the right to run as the owner.
    fn kill_ids(&self, inode: &Inode) -> Sys<()> {
        let Some(kept) = Self::without_ids(inode) else {
            return Ok(());
        };
        let mode = Permissions::from_raw_mode(kept & 0o7777);
        self.own_change(inode, Ours::Attributes, || {
            self.proc_fds.chmod(inode.fd(), mode)?;
            inode.state().attr.mode = kept;
            Ok(())
        })
    }

    /// Makes a file safe on the source's disk, with its attributes if `all`.
    pub(crate) fn sync(&self, file: &OpenFile, all: bool) -> Sys<()> {
        let Opened { backing, cached } = &*file.opened;
        let _ = cached.write_back();
        let settled = self.settle(&file.inode, &file.opened);
        // What cannot be written is reported here, once for each opener.
        let synced = backing.with_attributes(all, || file.cached.sync());
        synced.map_err(cache_errno).and(settled)
    }

    /// The file has `size` bytes from now on.
    pub(crate) fn truncate(&self, inode: &Arc<Inode>, size: u64, kill_ids: bool) -> Sys<()> {
        if i64::try_from(size).is_err() {
            return Err(Errno::FBIG);
        }
        let lent = Lent::new(self, inode)?;
        let opened = &*lent.opened;
        let turn = alone(inode);
        let file = opened.backing.file();
        self.source.call();
        if !self.caches() {
            rustix::fs::ftruncate(&file, size)?;
            drop(turn);
            return self.look(inode, Ours::Times).map(drop);
        }
        let had = inode.size.load(Ordering::Acquire);
        if size > had {
            // What lies before the new hole comes first, so that there is no hole where something was written.
            opened.cached.write_back().map_err(cache_errno)?;
            backing_len(opened, size, true)?;
            self.changes(inode);
            opened.cached.set_end(size);
        } else {
            // Where the source refuses, nothing has changed here.
            backing_len(opened, size, false)?;
            self.changes(inode);
            match opened.cached.truncate(size) {
                Ok(()) => {}
                // `set_end` would wait for the holder, which may be this thread with an answer that the kernel has not taken.
                Err(held @ CacheError::Held { .. }) => return Err(cache_errno(held)),
                // The last block cannot be read. What it had behind the end is gone from the source.
                Err(_) => opened.cached.set_end(size),
            }
            // What was cut may have been written meanwhile, behind the source's end.
            backing_len(opened, size, false)?;
        }
        inode.size.store(size, Ordering::Release);
        if kill_ids {
            drop(turn);
            self.kill_ids(inode)?;
        }
        Ok(())
    }

    /// Takes or gives back room in the middle of a file, as the source does it.
    pub(crate) fn allocate(&self, file: &OpenFile, mode: u32, offset: u64, len: u64) -> Sys<()> {
        let Opened { backing, cached } = &*file.opened;
        let inode = &file.inode;
        let flags = FallocateFlags::from_bits_retain(mode);
        let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
        let turn = alone(inode);
        self.source.call();
        if !self.caches() {
            rustix::fs::fallocate(&*backing.file(), flags, offset, len)?;
            drop(turn);
            return self.look(inode, Ours::Times).map(drop);
        }
        cached.write_back().map_err(cache_errno)?;
        self.settle_held(inode, &file.opened)?;
        let size = inode.size.load(Ordering::Acquire);
        backing.touch();
        rustix::fs::fallocate(&*backing.file(), flags, offset, len)?;
        self.changes(inode);
        let block = self.cache.block_size() as u64;
        let moves = FallocateFlags::COLLAPSE_RANGE | FallocateFlags::INSERT_RANGE;
        let cuts = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        let blocks = match flags {
            flags if flags.intersects(moves) => Some(offset / block..u64::MAX),
            flags if flags.intersects(cuts) => Some(offset / block..end.div_ceil(block)),
            _ => None,
        };
        if let Some(blocks) = blocks {
            cached.invalidate(blocks).map_err(cache_errno)?;
        }
        let new = match flags {
            flags if flags.contains(FallocateFlags::COLLAPSE_RANGE) => size - len,
            flags if flags.contains(FallocateFlags::INSERT_RANGE) => size + len,
            flags if flags.contains(FallocateFlags::KEEP_SIZE) => size,
            _ => size.max(end),
        };
        if new != size {
            cached.set_end(new);
            inode.size.store(new, Ordering::Release);
        }
        let blocks = crate::system::stat(&*backing.file())?.blocks;
        inode.state().attr.blocks = blocks;
        Ok(())
    }

    /// Where data or a hole begins, as the source has it.
    pub(crate) fn seek(&self, file: &OpenFile, offset: u64, whence: u32) -> Sys<u64> {
        let to = match whence as i32 {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        self.write_back(&file.inode, &file.opened)?;
        self.source.call();
        rustix::fs::seek(&*file.opened.backing.file(), to)
    }

    /// Copies between two files as the source does it, which may share the blocks.
    pub(crate) fn copy(
        &self,
        from: &OpenFile,
        mut at: u64,
        to: &OpenFile,
        mut target: u64,
        len: u64,
    ) -> Sys<u64> {
        if !self.caches() {
            return Err(Errno::OPNOTSUPP);
        }
        if !to.opened.backing.is_writable() {
            return Err(Errno::BADF);
        }
        self.write_back(&from.inode, &from.opened)?;
        let same = from.inode.id == to.inode.id;
        // In one order for all, so that two copies do not wait for each other.
        let (first, second) = match from.inode.id < to.inode.id {
            true => (&from.inode, &to.inode),
            false => (&to.inode, &from.inode),
        };
        let _first = alone(first);
        let _second = (!same).then(|| alone(second));
        let (source, cached) = (from.opened.backing.file(), &to.opened.cached);
        from.opened.cached.write_back().map_err(cache_errno)?;
        cached.write_back().map_err(cache_errno)?;
        let size = to.inode.size.load(Ordering::Acquire);
        self.changes(&to.inode);
        to.opened.backing.touch();
        self.source.call();
        let (begun, len) = (target, len.min(1 << 30) as usize);
        let output = to.opened.backing.file();
        let done =
            rustix::fs::copy_file_range(&*source, Some(&mut at), &*output, Some(&mut target), len)?;
        let end = begun + done as u64;
        let block = self.cache.block_size() as u64;
        cached
            .invalidate(begun / block..end.div_ceil(block))
            .map_err(cache_errno)?;
        if end > size {
            cached.set_end(end);
            to.inode.size.store(end, Ordering::Release);
        }
        Ok(done as u64)
    }
}

/// The source's file has this length, or if it is not to grow, no more than this.
fn backing_len(opened: &Opened, size: u64, grows: bool) -> Sys<()> {
    let file = opened.backing.file();
    if grows || crate::system::stat(file.as_fd())?.size > size {
        opened.backing.touch();
        rustix::fs::ftruncate(&*file, size)?;
    }
    Ok(())
}

/// Gets a block for a thread that holds none. A small part of the cache may be held by answers that are on their way to the kernel:
/// they let go of it soon.
fn with_room<T>(mut get: impl FnMut() -> Result<T, CacheError>) -> Result<T, CacheError> {
    for _ in 0..1000 {
        match get() {
            Err(CacheError::Pinned { .. }) => std::thread::sleep(Duration::from_millis(1)),
            got => return got,
        }
    }
    get()
}

fn copy_blocks(
    handle: &mut CacheHandle,
    cached: &CachedFile,
    blocks: Range<u64>,
) -> Result<Vec<u8>, CacheError> {
    let mut all = Vec::new();
    for index in blocks {
        all.extend_from_slice(&with_room(|| handle.read(cached, index))?);
    }
    Ok(all)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::MountOptions;
    use crate::inode::Seen;
    use crate::system::stat;
    use rustix::fs::{IFlags, ioctl_setflags};
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    pub(crate) const BLOCK: u64 = 4096;

    /// A file system, and its source, which has a file of ten blocks.
    pub(crate) fn with_source<T>(test: impl FnOnce(&FileSystem, &Path) -> T) -> T {
        let source = tempfile::tempdir().unwrap();
        std::fs::write(source.path().join("file"), [7; 10 * BLOCK as usize]).unwrap();
        let system = MountOptions::new(source.path(), source.path())
            .cache_bytes(2 << 20)
            .prepare(source.path())
            .unwrap();
        test(&system, source.path())
    }

    /// A file system and the file of its source, open.
    pub(crate) fn with_file<T>(test: impl FnOnce(&FileSystem, &Arc<OpenFile>) -> T) -> T {
        with_source(|system, _| {
            let inode = system.look_up(&system.root, b"file").unwrap().inode;
            let (_, file, _) = system.open(&inode, libc::O_RDWR as u32, false).unwrap();
            test(system, &file)
        })
    }

    /// Changes a file until its source says that it was changed: times go in steps.
    pub(crate) fn change_seen(inode: &Inode, change: impl Fn()) {
        let seen = || Seen::of(&stat(inode.fd()).unwrap());
        let before = seen();
        while seen() == before {
            change();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_sync_of_a_clean_file_waits_for_no_reader() {
        with_file(|system, file| {
            let _reader = file.inode.io.read();
            system.sync(file, true).unwrap();
        });
    }

    /// Waits until another thread wants a file for itself, of which this one has the lock beside others.
    fn until_wanted(inode: &Inode) {
        while inode.io.try_read().is_some() {
            std::thread::yield_now();
        }
    }

    /// Whether a write was done.
    pub(crate) fn write(
        system: &FileSystem,
        file: &OpenFile,
        offset: u64,
        len: u64,
        may_wait: bool,
    ) -> bool {
        write_with(system, file, 0, offset..offset + len, may_wait)
    }

    /// Whether a write with these flags was done.
    fn write_with(
        system: &FileSystem,
        file: &OpenFile,
        flags: i32,
        bytes: Range<u64>,
        may_wait: bool,
    ) -> bool {
        let len = bytes.end - bytes.start;
        let write = Write {
            offset: bytes.start,
            data: &vec![1; len as usize],
            flags: flags as u32,
            cached: false,
            kill_ids: false,
        };
        let done = system.write(&mut system.cache.handle(), file, &write, may_wait);
        let done = done.unwrap();
        assert!(done.is_none_or(|done| done as u64 == len));
        done.is_some()
    }

    #[test]
    fn a_write_that_must_not_wait_reads_nothing() {
        with_file(|system, file| {
            let reads = || system.source.calls.reads.load(Ordering::Relaxed);
            assert!(write(system, file, 0, BLOCK, false), "a whole block");
            assert!(write(system, file, 100, 100, false), "a part of it");
            // The second block stays as it is, so that it can be done again.
            for _ in 0..3 {
                assert!(!write(system, file, 2 * BLOCK, BLOCK + 100, false));
            }
            assert_eq!(reads(), 0);
            assert!(write(system, file, 2 * BLOCK, BLOCK + 100, true));
            assert!(reads() > 0);
            let before = reads();
            assert!(write(system, file, 2 * BLOCK, BLOCK + 100, false));
            assert_eq!(reads(), before);
        });
    }

    #[test]
    fn nor_does_it_wait_for_a_lock() {
        with_file(|system, file| {
            let lock = alone(&file.inode);
            assert!(!write(system, file, 0, BLOCK, false));
            let read = |may_wait| {
                let handle = &mut system.cache.handle();
                system.read(handle, file, 0, 10, may_wait, |_| {}).unwrap()
            };
            assert!(matches!(read(false), Read::Locked));
            drop(lock);
            assert!(matches!(read(false), Read::Missed(_)));
            let lock = shared(&file.inode, true);
            assert!(write(system, file, 0, BLOCK, false), "beside others");
            assert!(!write(system, file, 10 * BLOCK, 1, false), "it grows");
            drop(lock);
        });
    }

    /// A block of another request: of a read whose answer is on its way, or of a write that waits for a further block. So it is
    /// handed on, and what waits is the thread that takes it.
    #[test]
    fn nor_for_a_block_that_another_request_has() {
        with_file(|system, file| {
            let mut other = system.cache.handle();
            let refuses = |what: &str| {
                assert!(!write(system, file, 0, 3 * BLOCK, false), "{what}");
                assert!(!write(system, file, 2 * BLOCK - 10, 20, false), "{what}");
                assert!(write(system, file, 0, BLOCK, false), "another block");
            };
            let reads = other.read(&file.cached, 1).unwrap();
            refuses("a read has it");
            drop(reads);
            assert!(write(system, file, 0, 3 * BLOCK, false));
            let mut writes = other.write(&file.cached, 1).unwrap();
            refuses("a write has it");
            std::thread::scope(|scope| {
                let handed_on = scope.spawn(|| write(system, file, 0, 3 * BLOCK, true));
                writes.fill(9);
                drop(writes);
                assert!(handed_on.join().unwrap());
            });
            let block = other.read(&file.cached, 1).unwrap();
            assert!(block.iter().all(|&byte| byte == 1), "the later one");
        });
    }

    #[test]
    fn nor_for_what_the_source_has_to_write_first() {
        with_file(|system, file| {
            for flags in [libc::O_SYNC, libc::O_DSYNC] {
                assert!(!write_with(system, file, flags, 0..BLOCK, false));
                assert!(write_with(system, file, flags, 0..BLOCK, true));
            }
        });
        with_file(|system, file| {
            let dirty = || system.cache.stats().dirty as f64;
            // By default.
            let share = system.cache.stats().capacity as f64 * 0.25;
            let written = || system.source.calls.writes.load(Ordering::Relaxed);
            // Room with the source is looked for by one that may wait.
            assert!(!write(system, file, 10 * BLOCK, BLOCK, false));
            assert!(write(system, file, 10 * BLOCK, BLOCK, true));
            let blocks = 11..11 + 2 * share as u64;
            let done = |&index: &u64| write(system, file, index * BLOCK, BLOCK, false);
            let done = blocks.clone().take_while(done).count();
            assert!(dirty() <= share && dirty() > share - 3.0, "{}", dirty());
            assert_eq!(written(), 0);
            let mut rest = blocks.skip(done);
            assert!(rest.all(|index| write(system, file, index * BLOCK, BLOCK, true)));
            assert!(written() > 0);
        });
    }

    #[test]
    fn what_is_appended_is_there_once() {
        with_file(|system, file| {
            let size = || file.inode.size.load(Ordering::Relaxed);
            let append = |len, may_wait| write_with(system, file, libc::O_APPEND, 0..len, may_wait);
            assert!(append(100, true));
            system.write_back(&file.inode, &file.opened).unwrap();
            system.cache.trim(usize::MAX).unwrap();
            // The first block has to be read.
            assert!(!append(2 * BLOCK, false));
            assert_eq!(size(), 10 * BLOCK + 100);
            assert!(append(2 * BLOCK, true));
            assert_eq!(size(), 12 * BLOCK + 100);
        });
    }

    /// A thread that finds a change by others waits for a write that goes on, and does not drop what that has written.
    #[test]
    fn a_look_drops_nothing_of_a_write_beside_it() {
        with_file(|system, file| {
            let (inode, behind) = (&file.inode, file.opened.backing.file());
            change_seen(inode, || {
                behind.write_all_at(&[2; 100], 5 * BLOCK).unwrap();
            });
            std::thread::scope(|scope| {
                let beside = shared(inode, true);
                let look = scope.spawn(|| system.look_up(&system.root, b"file").is_ok());
                until_wanted(inode);
                // What `write` does, which would wait behind the other thread.
                system.changes(inode);
                let mut handle = system.cache.handle();
                let (cached, data) = (&file.cached, [1; BLOCK as usize]);
                let size = inode.size.load(Ordering::Relaxed);
                let (done, result) = system.write_blocks(&mut handle, cached, 0, &data, size);
                result.unwrap();
                assert_eq!(done, data.len());
                drop(beside);
                assert!(look.join().unwrap());
            });
            system.write_back(inode, &file.opened).unwrap();
            let mut page = [0; BLOCK as usize];
            behind.read_exact_at(&mut page, 0).unwrap();
            assert_eq!(page, [1; BLOCK as usize]);
            let conflicts = system.counters.conflicts.load(Ordering::Relaxed);
            assert_eq!(conflicts, 1, "what others wrote");
        });
    }

    #[test]
    fn an_answer_from_before_a_write_changes_nothing() {
        with_file(|system, file| {
            let inode = &file.inode;
            let before = stat(inode.fd()).unwrap();
            let version = inode.state().version;
            assert!(write(system, file, 10 * BLOCK, BLOCK, true));
            system.write_back(inode, &file.opened).unwrap();
            for asked in [None, Some(version)] {
                assert!(!system.refresh(inode, before, Ours::No, asked).unwrap());
                assert!(
                    !system
                        .refresh(inode, before, Ours::Attributes, asked)
                        .unwrap()
                );
                assert_eq!(inode.size.load(Ordering::Relaxed), 11 * BLOCK);
            }
            let changes = &system.counters.outside_changes;
            assert_eq!(changes.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn a_file_that_is_cut_by_its_name_is_open_meanwhile() {
        with_source(|system, _| {
            let inode = system.look_up(&system.root, b"file").unwrap().inode;
            let opens = || inode.opens.load(Ordering::Acquire);
            std::thread::scope(|scope| {
                let beside = shared(&inode, true);
                let cut = scope.spawn(|| system.truncate(&inode, BLOCK, false));
                until_wanted(&inode);
                assert_eq!(opens(), 1);
                drop(beside);
                cut.join().unwrap().unwrap();
            });
            assert_eq!(opens(), 0);
        });
    }

    #[test]
    fn a_cut_that_the_source_refuses_changes_nothing() {
        with_source(|system, source| {
            let inode = system.look_up(&system.root, b"file").unwrap().inode;
            let (_, file, _) = system.open(&inode, libc::O_RDWR as u32, false).unwrap();
            assert!(write(system, &file, 8 * BLOCK, BLOCK, true));
            let own = std::fs::File::open(source.join("file")).unwrap();
            let flags = rustix::fs::ioctl_getflags(&own);
            let append = flags.map(|flags| flags | IFlags::APPEND);
            if append
                .and_then(|flags| ioctl_setflags(&own, flags))
                .is_err()
            {
                eprintln!("not run: it needs root, and a file system with append-only files");
                return;
            }
            let refused = system.truncate(&inode, 100, false);
            ioctl_setflags(&own, flags.unwrap()).unwrap();
            assert_eq!(refused.unwrap_err(), Errno::PERM);
            assert_eq!(inode.size.load(Ordering::Acquire), 10 * BLOCK);
            let mut handle = system.cache.handle();
            for (index, byte) in [(0, 7), (8, 1), (9, 7)] {
                let block = handle.read(&file.cached, index).unwrap();
                assert_eq!(block[..], [byte; BLOCK as usize], "{index}");
            }
            system.truncate(&inode, 100, false).unwrap();
            assert_eq!(own.metadata().unwrap().len(), 100);
        });
    }
}
