//! A thread that writes back what is old, closes what is idle, and keeps the inodes within their share.
//!
//! It answers no requests. So it may ask the kernel to forget names and pages, for which the kernel may wait for an answer.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::filesystem::FileSystem;
use crate::inode::Inode;
use crate::reply::Device;
use crate::transport::{forget_name, forget_pages};

/// For asking the kernel to forget names, before what else there is to do.
const SHED_TIME: Duration = Duration::from_millis(100);

/// What other threads want of it.
#[derive(Default)]
pub(crate) struct Notes {
    wanted: Mutex<Wanted>,
    wake: Condvar,
    /// Where the next look for inodes to be given up begins.
    hand: AtomicUsize,
}

#[derive(Default)]
struct Wanted {
    /// Files whose content was changed by others: the kernel's pages are old.
    changed: HashSet<u64>,
    awake: bool,
    stop: bool,
}

impl Notes {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changed(&self, inode: u64) {
        self.wanted().changed.insert(inode);
        self.wake.notify_one();
    }

    /// There are too many inodes.
    pub(crate) fn wake(&self) {
        self.wanted().awake = true;
        self.wake.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.wanted().stop = true;
        self.wake.notify_one();
    }

    /// Waits until something is wanted or the time is over. None when the thread is to end.
    fn wait(&self, time: Duration) -> Option<HashSet<u64>> {
        let wanted = self.wanted();
        let idle = |wanted: &mut Wanted| !wanted.awake && !wanted.stop && wanted.changed.is_empty();
        let woken = self.wake.wait_timeout_while(wanted, time, idle);
        let (mut wanted, _) = woken.unwrap_or_else(PoisonError::into_inner);
        wanted.awake = false;
        (!wanted.stop).then(|| core::mem::take(&mut wanted.changed))
    }
}

impl FileSystem {
    /// Works until it is told to stop.
    pub(crate) fn keep_up(&self, device: &Device, interval: Duration) {
        let mut last = Instant::now();
        let (mut settled, mut fails) = (0, false);
        while let Some(changed) = self.notes.wait(interval.saturating_sub(last.elapsed())) {
            for inode in changed {
                forget_pages(device, inode);
            }
            if last.elapsed() >= interval {
                last = Instant::now();
                // What cannot be written is reported at the next sync of each opener, and tried again.
                let written = self.cache.maintain();
                if let Err(error) = &written
                    && !fails
                {
                    let source = Self::source_path(&self.root);
                    log::warn!("{source:?}: {error}; it is tried again");
                }
                fails = written.is_err();
                // Blocks that are due come first: where the source is slow the rest is done in parts.
                let end = last + interval;
                self.settle_idle(&mut settled, end);
                self.look_at_idle(end);
                self.look_for_room();
            }
            self.shed(device);
        }
    }

    /// Files whose blocks are all with the source get their size and time there; those that no program has open are closed. Goes on
    /// behind the file that was `settled` last, once around, but not when the time is over: then it does one.
    fn settle_idle(&self, settled: &mut u64, end: Instant) {
        for inode in self.active_behind(*settled) {
            *settled = inode.id;
            self.settle_one(&inode);
            if Instant::now() >= end {
                break;
            }
        }
        self.crowd.store(self.crowd_after(), Ordering::Relaxed);
    }

    /// Files that may be open before those that are not needed are closed, when all of these were closed just now.
    fn crowd_after(&self) -> usize {
        self.active().len().max(self.most_open / 2) + self.most_open / 2
    }

    /// All inodes whose data is open, from the one behind this number on.
    fn active_behind(&self, id: u64) -> Vec<Arc<Inode>> {
        let mut all: Vec<_> = self.active().values().cloned().collect();
        all.sort_unstable_by_key(|inode| (inode.id <= id, inode.id));
        all
    }

    fn settle_one(&self, inode: &Arc<Inode>) {
        // A sync is yet to say what cannot be written, if a program has it open.
        if !inode.state().changed || !inode.is_known() {
            self.let_go(inode);
        }
        if inode.is_dead() && inode.is_file() {
            self.discard(inode);
            self.retire(inode);
        }
        let opened = inode.opened().clone();
        if let Some(opened) = opened {
            if inode.state().changed
                && let Some(_io) = inode.io.try_write()
            {
                let _ = self.settle_held(inode, &opened);
            }
            self.close_idle(inode);
        }
    }

    /// Some of the idle inodes, in turn: those whose files others have deleted go. Not more when the time is over, but one.
    fn look_at_idle(&self, end: Instant) {
        for _ in 0..self.inodes.idle_len().min(256) {
            let Some(inode) = self.inodes.next_idle() else {
                break;
            };
            // One whose data is open comes again when that is closed.
            if inode.opened().is_none() {
                self.rest(&inode);
            }
            if Instant::now() >= end {
                break;
            }
        }
    }

    /// The source's file of an inode is closed when no program has it open and the source has all of it.
    fn close_idle(&self, inode: &Inode) {
        let mut slot = inode.opened();
        let needed = inode.opens.load(Ordering::Acquire) > 0 || inode.state().changed;
        if needed
            || slot
                .as_ref()
                .is_none_or(|opened| opened.cached.stats().dirty > 0)
        {
            return;
        }
        let gone = slot.take();
        self.source.remove(inode.id);
        let active = self.active().remove(&inode.id);
        drop(slot);
        drop((gone, active));
        self.retire(inode);
    }

    /// Closes files of the source that are idle where very many are open, so that there are descriptors for others. The caller has no lock of
    /// an inode.
    pub(crate) fn not_too_many_open(&self) {
        if self.active().len() < self.crowd.load(Ordering::Relaxed) {
            return;
        }
        let all: Vec<_> = self.active().values().cloned().collect();
        for inode in all {
            if !inode.state().changed {
                self.let_go(&inode);
                self.close_idle(&inode);
            }
        }
        // Those that are left are in use: the next look waits for many more.
        self.crowd.store(self.crowd_after(), Ordering::Relaxed);
    }

    /// Gives inodes up while there are more than the budget allows: idle ones, and then those that the kernel knows but has not
    /// asked for lately.
    fn shed(&self, device: &Device) {
        let most = self.inodes.most();
        while self.inodes.len() > most
            && let Some(inode) = self.inodes.next_idle()
        {
            // One whose data is open yet comes again when that is closed.
            if inode.opened().is_none() && self.inodes.remove(&inode) {
                self.discard(&inode);
            }
        }
        let len = self.inodes.len();
        if len <= most {
            return;
        }
        let mut excess = len - most + most / 8;
        // The kernel keeps a directory for itself while it asks for a name there. Old blocks do not wait for many of these.
        let end = Instant::now() + SHED_TIME;
        let mut at = self.notes.hand.load(Ordering::Relaxed);
        // Twice around: those that were used have a second chance. A directory goes only where nothing else can: one that is a
        // program's working directory would be without a name for it.
        let mut only_directories = true;
        for turn in 0..2 * len {
            let Some((slot, inode)) = self.inodes.next(at).or_else(|| self.inodes.next(0)) else {
                break;
            };
            at = slot + 1;
            let directory = inode.kind == FileType::Directory;
            if inode.id == 1
                || directory && (turn < len || !only_directories)
                || inode.opens.load(Ordering::Acquire) > 0
                || inode.used.swap(false, Ordering::Relaxed)
            {
                continue;
            }
            if let Some((parent, name)) = inode.place() {
                forget_name(device, parent, &name);
                only_directories &= directory;
                self.counters.invalidated.fetch_add(1, Ordering::Relaxed);
                excess -= 1;
                if excess == 0 || Instant::now() >= end {
                    break;
                }
            }
        }
        self.notes.hand.store(at, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::tests::with_source;

    const FILES: usize = 3;

    /// A file system, the inodes of a few files, each for one answer to the kernel, and the source.
    fn with_files(test: impl FnOnce(&FileSystem, &[Arc<Inode>], &Path)) {
        with_source(|system, source| {
            let make = |n: usize| {
                let name = n.to_string();
                std::fs::write(source.join(&name), "text").unwrap();
                let entry = system.look_up(&system.root, name.as_bytes());
                entry.unwrap().inode
            };
            let inodes: Vec<_> = (0..FILES).map(make).collect();
            test(system, &inodes, source);
        });
    }

    #[test]
    fn a_pass_without_time_settles_the_next_file() {
        with_files(|system, inodes, _| {
            for inode in inodes {
                system.open_data(inode, true).unwrap();
                system.changes(inode);
            }
            let changed = || inodes.iter().filter(|inode| inode.state().changed).count();
            let mut settled = 0;
            for left in (0..FILES).rev() {
                assert_eq!(changed(), left + 1);
                system.settle_idle(&mut settled, Instant::now());
            }
            assert_eq!(changed(), 0);
            // With time it goes once around, from wherever it stands.
            inodes.iter().for_each(|inode| system.changes(inode));
            let end = Instant::now() + Duration::from_secs(3600);
            system.settle_idle(&mut settled, end);
            assert_eq!(changed(), 0);
        });
    }

    #[test]
    fn a_pass_without_time_looks_at_the_next_idle_inode() {
        with_files(|system, inodes, source| {
            for (n, inode) in inodes.iter().enumerate() {
                system.inodes.forget(inode, 1);
                system.inodes.rest(inode);
                // The mount has not seen it.
                std::fs::remove_file(source.join(n.to_string())).unwrap();
            }
            let known = |inode: &&Arc<Inode>| system.inodes.get(inode.id).is_ok();
            let known = || inodes.iter().filter(known).count();
            for left in (0..FILES).rev() {
                assert_eq!(known(), left + 1);
                system.look_at_idle(Instant::now());
            }
            assert_eq!(known(), 0);
        });
    }

    #[test]
    fn where_very_many_files_are_open_idle_ones_are_closed() {
        with_files(|system, inodes, _| {
            let read = |inode| {
                let file = system.lasting(inode, false, true);
                file.unwrap().expect("it may ask")
            };
            system.crowd.store(FILES, Ordering::Relaxed);
            let used = read(&inodes[0]);
            read(&inodes[1]);
            system.open_data(&inodes[2], true).unwrap();
            system.changes(&inodes[2]);
            assert_eq!(system.active().len(), FILES);
            let last = system.look_up(&system.root, b"file").unwrap().inode;
            read(&last);
            let is_open = |inode: &Arc<Inode>| system.active().contains_key(&inode.id);
            assert_eq!([0, 1, 2].map(|n| is_open(&inodes[n])), [true, false, true]);
            // The next look waits for many more, or each file that is opened would look at all.
            assert!(is_open(&last) && system.crowd.load(Ordering::Relaxed) > FILES);
            drop(used);
        });
    }

    #[test]
    fn a_file_that_changes_again_and_again_is_noted_once() {
        let notes = Notes::default();
        (0..1000).for_each(|n| notes.changed(n % 2));
        let changed = notes.wait(Duration::ZERO).unwrap();
        assert_eq!(changed, HashSet::from([0, 1]));
    }
}
