//! Processes, their descriptors, and files by path: what strace's calls do to them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::record::{Kind, tenant_of};
use super::super::sink::{About, Sink};
use super::names::{Kept, Names};
use super::ranges::Ranges;
use super::strace_line::Fd;

/// What a descriptor points to; shared by dup and fork.
#[derive(Debug, Clone, Copy)]
struct Description {
    file: u32,
    position: u64,
    append: bool,
    /// The file's size at the last stat of it.
    size: Option<u64>,
}

#[derive(Debug, Clone)]
struct Descriptor {
    description: Arc<Mutex<Description>>,
    close_on_exec: bool,
}

/// Descriptors by their numbers. A tree: a hash table would keep its size when they are closed, and so would its clones.
type Table = BTreeMap<i32, Kept<Descriptor>>;

#[derive(Debug)]
struct Process {
    table: Arc<Mutex<Table>>,
    tenant: u16,
}

/// Approximate bytes of a description, and of a process with an empty table, beside their entries.
const DESCRIPTION: u64 = 64;
const PROCESS: u64 = 512;

#[derive(Debug)]
struct File {
    /// As far as calls have shown it: a file may be larger.
    size: u64,
    /// Blocks.
    used: Kept<Ranges>,
}

/// All state that is followed.
#[derive(Debug)]
pub(super) struct Files {
    processes: HashMap<u32, Kept<Process>>,
    directories: HashMap<u32, Kept<Vec<u8>>>,
    met: u32,
    names: Names,
    files: Vec<File>,
    /// Directories with a name below them that was met.
    folders: HashMap<Box<[u8]>, Kept<()>>,
}

/// Whether a path names a file with pages.
fn has_pages(path: &[u8]) -> bool {
    path.starts_with(b"/")
        && ![&b"/dev/"[..], b"/proc/", b"/sys/"]
            .iter()
            .any(|p| path.starts_with(p))
}

/// A path from the root on, without `.` and `..`.
fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    let base = if path.starts_with(b"/") {
        &b""[..]
    } else {
        base
    };
    for part in base.split(|b| *b == b'/').chain(path.split(|b| *b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut whole = Vec::new();
    for part in parts {
        whole.push(b'/');
        whole.extend_from_slice(part);
    }
    whole
}

/// Where a path lies when `from` is called `to`; none if that does not change it.
fn moved(path: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let below = path.strip_prefix(from)?;
    (below.is_empty() || below.starts_with(b"/")).then(|| [to, below].concat())
}

/// Only one thread reads a trace: nothing waits.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Files {
    /// Nothing yet; names, processes and what they have open take this many bytes at most.
    pub(super) fn within(most: u64) -> Self {
        Self {
            processes: HashMap::new(),
            directories: HashMap::new(),
            met: 0,
            names: Names::within(most),
            files: Vec::new(),
            folders: HashMap::new(),
        }
    }

    /// A text that is kept.
    pub(super) fn keep(&self, text: Vec<u8>) -> Result<Kept<Vec<u8>>, String> {
        let bytes = text.len() as u64;
        self.names.keep(text, bytes)
    }

    fn new_process(&mut self, pid: u32, table: Arc<Mutex<Table>>) -> Result<(), String> {
        let process = Process {
            table,
            tenant: tenant_of(u64::from(self.met)),
        };
        self.met = self.met.saturating_add(1);
        let process = self.names.keep(process, PROCESS)?;
        self.processes.insert(pid, process);
        Ok(())
    }

    fn table(&self, pid: u32) -> MutexGuard<'_, Table> {
        lock(&self.processes[&pid].table)
    }

    /// A process makes a call: if it is new, and one other process is in the middle of a fork, it is the child of that one.
    pub(super) fn meet(&mut self, pid: u32, parent: Option<(u32, bool)>) -> Result<(), String> {
        if self.processes.contains_key(&pid) {
            return Ok(());
        }
        match parent {
            Some((parent, shared)) if self.processes.contains_key(&parent) => {
                self.fork(parent, pid, shared)
            }
            _ => self.new_process(pid, Arc::default()),
        }
    }

    pub(super) fn fork(&mut self, parent: u32, child: u32, shared: bool) -> Result<(), String> {
        if self.processes.contains_key(&child) {
            return Ok(()); // it spoke before its parent's call returned
        }
        let table = &self.processes[&parent].table;
        let table = if shared {
            Arc::clone(table)
        } else {
            Arc::new(Mutex::new(lock(table).clone()))
        };
        if let Some(directory) = self.directories.get(&parent).cloned() {
            self.directories.insert(child, directory);
        }
        self.new_process(child, table)
    }

    pub(super) fn exit(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.directories.remove(&pid);
    }

    pub(super) fn exec(&mut self, pid: u32) -> Result<(), String> {
        let mut kept = self.table(pid).clone();
        kept.retain(|_, d| !d.close_on_exec);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.table = Arc::new(Mutex::new(kept));
        }
        self.names.check()
    }

    pub(super) fn tenant(&self, pid: u32) -> u16 {
        self.processes.get(&pid).map_or(0, |p| p.tenant)
    }

    pub(super) fn chdir(&mut self, pid: u32, path: &[u8]) -> Result<(), String> {
        let whole = self.keep(self.whole(pid, None, path))?;
        self.directories.insert(pid, whole);
        Ok(())
    }

    /// A path from the root on: from a directory's descriptor if strace said what it is, else from the working directory.
    pub(super) fn whole(&self, pid: u32, dir: Option<Fd<'_>>, path: &[u8]) -> Vec<u8> {
        let here = || {
            self.directories
                .get(&pid)
                .map_or(&b"/(here)"[..], |directory| directory.as_slice())
        };
        let base = dir.and_then(|d| d.path).unwrap_or_else(here);
        joined(base, path)
    }

    fn number(&mut self, path: &[u8]) -> Result<u32, String> {
        let number = self.names.number(path)?;
        if self.files.len() <= number as usize {
            let used = self.names.keep(Ranges::default(), 0)?;
            self.files.push(File { size: 0, used });
            self.note_folders(path)?;
        }
        Ok(number)
    }

    /// There is a name at this path.
    fn note_folders(&mut self, path: &[u8]) -> Result<(), String> {
        for end in memchr::memrchr_iter(b'/', path) {
            let folder = &path[..end];
            if self.folders.contains_key(folder) {
                break; // and so are those above
            }
            let kept = self.names.keep((), end as u64)?;
            self.folders.insert(folder.into(), kept);
        }
        Ok(())
    }

    /// The file of a path, if it was met.
    pub(super) fn known(&self, pid: u32, dir: Option<Fd<'_>>, path: &[u8]) -> Option<u32> {
        self.names.known(&self.whole(pid, dir, path))
    }

    /// A file is opened; its number, if it is one with pages.
    pub(super) fn open(
        &mut self,
        pid: u32,
        dir: Option<Fd<'_>>,
        path: &[u8],
        flags: &[u8],
        returned: Fd<'_>,
    ) -> Result<Option<u32>, String> {
        let Some(fd) = returned.number else {
            return Err("the returned descriptor is no number".to_owned());
        };
        let has = |flag: &[u8]| memchr::memmem::find(flags, flag).is_some();
        let whole = match returned.path {
            Some(path) => path.to_vec(),
            None => self.whole(pid, dir, path),
        };
        // A file without a name has the name of its directory here.
        let unnamed = has(b"O_TMPFILE") && returned.path.is_none();
        if !has_pages(&whole) || has(b"O_PATH") || unnamed {
            self.table(pid).remove(&fd);
            return Ok(None);
        }
        let file = self.number(&whole)?;
        let description = Description {
            file,
            position: 0,
            append: has(b"O_APPEND"),
            size: None,
        };
        self.point(pid, fd, description, has(b"O_CLOEXEC"))?;
        Ok(Some(file))
    }

    /// A number for a new description.
    fn point(
        &self,
        pid: u32,
        fd: i32,
        description: Description,
        close_on_exec: bool,
    ) -> Result<Arc<Mutex<Description>>, String> {
        let description = Arc::new(Mutex::new(description));
        self.share(pid, fd, &description, close_on_exec)?;
        Ok(description)
    }

    /// A number, perhaps another one, for what is open.
    fn share(
        &self,
        pid: u32,
        fd: i32,
        description: &Arc<Mutex<Description>>,
        close_on_exec: bool,
    ) -> Result<(), String> {
        let descriptor = Descriptor {
            description: Arc::clone(description),
            close_on_exec,
        };
        let descriptor = self.names.keep(descriptor, DESCRIPTION)?;
        self.table(pid).insert(fd, descriptor);
        Ok(())
    }

    /// What a descriptor points to. A descriptor that strace names without an open was open before: its position is taken as 0.
    fn description(
        &mut self,
        pid: u32,
        fd: Fd<'_>,
    ) -> Result<Option<Arc<Mutex<Description>>>, String> {
        let Some(number) = fd.number else {
            return Ok(None);
        };
        let path = fd
            .path
            .map(|path| path.strip_suffix(b" (deleted)").unwrap_or(path));
        if path.is_some_and(|path| !has_pages(path)) {
            return Ok(None);
        }
        let known = self.table(pid).get(&number).map(|d| d.description.clone());
        match (known, path) {
            (None, Some(path)) => {
                let description = Description {
                    file: self.number(path)?,
                    position: 0,
                    append: false,
                    size: None,
                };
                self.point(pid, number, description, false).map(Some)
            }
            (known, _) => Ok(known),
        }
    }

    /// The file of a descriptor.
    pub(super) fn file(&mut self, pid: u32, fd: Fd<'_>) -> Result<Option<u32>, String> {
        Ok(self.description(pid, fd)?.map(|d| lock(&d).file))
    }

    pub(super) fn close(&mut self, pid: u32, fd: Option<i32>) {
        if let Some(fd) = fd {
            self.table(pid).remove(&fd);
        }
    }

    pub(super) fn close_range(&mut self, pid: u32, first: Option<i32>, last: i32) {
        if let Some(first) = first {
            self.table(pid).retain(|fd, _| *fd < first || *fd > last);
        }
    }

    /// A second number for what a descriptor points to.
    pub(super) fn dup(
        &mut self,
        pid: u32,
        from: Fd<'_>,
        to: u64,
        close_on_exec: bool,
    ) -> Result<(), String> {
        let Ok(to) = i32::try_from(to) else {
            return Ok(());
        };
        match self.description(pid, from)? {
            Some(description) => self.share(pid, to, &description, close_on_exec)?,
            None => self.close(pid, Some(to)),
        }
        Ok(())
    }

    pub(super) fn close_on_exec(&mut self, pid: u32, fd: Fd<'_>, close_on_exec: bool) {
        let mut table = self.table(pid);
        if let Some(descriptor) = fd.number.and_then(|fd| table.get_mut(&fd)) {
            descriptor.close_on_exec = close_on_exec;
        }
    }

    pub(super) fn seek(
        &mut self,
        pid: u32,
        fd: Fd<'_>,
        to: u64,
        whence: &[u8],
    ) -> Result<(), String> {
        if let Some(description) = self.description(pid, fd)? {
            let mut description = lock(&description);
            description.position = to;
            let file = &mut self.files[description.file as usize];
            if whence == b"SEEK_END" {
                file.size = file.size.max(to);
            }
        }
        Ok(())
    }

    /// A stat said the size of the file.
    pub(super) fn stat(&mut self, pid: u32, fd: Fd<'_>, size: u64) -> Result<(), String> {
        if let Some(description) = self.description(pid, fd)? {
            let mut description = lock(&description);
            description.size = Some(size);
            self.files[description.file as usize].size = size;
        }
        Ok(())
    }

    /// The file reaches to this byte at least.
    pub(super) fn reach(&mut self, pid: u32, fd: Fd<'_>, end: u64) -> Result<(), String> {
        if let Some(file) = self.file(pid, fd)? {
            let file = &mut self.files[file as usize];
            file.size = file.size.max(end);
        }
        Ok(())
    }

    /// A range is mapped: the file, and the bytes of the range that lie in it. Without a stat these are all: the file was
    /// there before, and its size is not known.
    pub(super) fn map(
        &mut self,
        pid: u32,
        fd: Fd<'_>,
        at: u64,
        len: u64,
        block_size: u64,
    ) -> Result<Option<(u32, u64)>, String> {
        let Some(description) = self.description(pid, fd)? else {
            return Ok(None);
        };
        let Description { file, size, .. } = *lock(&description);
        let state = &mut self.files[file as usize];
        // What was written or allocated since the stat is a part of it.
        let len = size.map_or(len, |size| len.min(size.max(state.size).saturating_sub(at)));
        if len > 0 {
            let end = at.saturating_add(len);
            state.used.add(at / block_size, end.div_ceil(block_size));
            state.used.count();
            self.names.check()?;
        }
        Ok(Some((file, len)))
    }

    /// Bytes are moved: the file and the offset. `said` is an explicit offset, which does not move the position.
    pub(super) fn advance(
        &mut self,
        pid: u32,
        fd: Fd<'_>,
        said: Option<u64>,
        bytes: u64,
        kind: Kind,
        block_size: u64,
    ) -> Result<Option<(u32, u64)>, String> {
        let Some(description) = self.description(pid, fd)? else {
            return Ok(None);
        };
        let mut description = lock(&description);
        let Description {
            file,
            position,
            append,
            ..
        } = *description;
        let state = &mut self.files[file as usize];
        let at = match said {
            Some(offset) => offset,
            None if append && kind == Kind::Write => state.size,
            None => position,
        };
        let end = at
            .checked_add(bytes)
            .ok_or_else(|| format!("{bytes} bytes from byte {at} on pass 64 bits"))?;
        if said.is_none() {
            description.position = end;
        }
        state.size = state.size.max(end);
        state.used.add(at / block_size, end.div_ceil(block_size));
        state.used.count();
        self.names.check()?;
        Ok(Some((file, at)))
    }

    /// The file is `len` bytes long from now on: later blocks are gone.
    pub(super) fn cut(
        &mut self,
        file: u32,
        len: u64,
        time: u64,
        sink: &mut Sink,
    ) -> Result<(), String> {
        let state = &mut self.files[file as usize];
        state.size = len;
        let size = sink.block_size();
        let about = About {
            time,
            kind: Kind::Remove,
            file,
            tenant: 0,
        };
        let gone = state.used.cut(len.div_ceil(size));
        state.used.count();
        for (mut at, end) in gone {
            while at < end {
                let blocks = (end - at).min(1 << 16);
                sink.bytes(at.saturating_mul(size), blocks.saturating_mul(size), about)?;
                at += blocks;
            }
        }
        Ok(())
    }

    pub(super) fn unlink(
        &mut self,
        pid: u32,
        dir: Option<Fd<'_>>,
        path: &[u8],
        time: u64,
        sink: &mut Sink,
    ) -> Result<(), String> {
        let whole = self.whole(pid, dir, path);
        self.remove(&whole, time, sink)
    }

    fn remove(&mut self, path: &[u8], time: u64, sink: &mut Sink) -> Result<(), String> {
        match self.names.forget(path) {
            Some(file) => self.cut(file, 0, time, sink),
            None => Ok(()),
        }
    }

    /// What is below a directory goes along with it. `exchange`: the new name was there, and becomes the old one.
    pub(super) fn rename(
        &mut self,
        from: &[u8],
        to: &[u8],
        exchange: bool,
        time: u64,
        sink: &mut Sink,
    ) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        if !exchange {
            self.remove(to, time, sink)?;
        }
        let back = |path: &[u8]| moved(path, to, from).filter(|_| exchange);
        let new = |path: &[u8]| moved(path, from, to).or_else(|| back(path));
        let is_folder = |path| self.folders.contains_key(path);
        if is_folder(from) || exchange && is_folder(to) {
            for file in self.names.rename(new)? {
                self.cut(file, 0, time, sink)?;
            }
            let folders: Vec<_> = self.folders.keys().filter_map(|path| new(path)).collect();
            for mut folder in folders {
                folder.push(b'/');
                self.note_folders(&folder)?;
            }
        } else {
            let one = self.names.forget(from);
            let other = exchange.then(|| self.names.forget(to)).flatten();
            for (path, file) in [(to, one), (from, other)] {
                if let Some(file) = file {
                    self.names.set(path, file)?;
                    self.note_folders(path)?;
                }
            }
        }
        for directory in self.directories.values_mut() {
            if let Some(path) = new(directory) {
                let bytes = path.len() as u64;
                *directory = self.names.keep(path, bytes)?;
            }
        }
        Ok(())
    }
}
