//! Processes, their descriptors, and files by path: what strace's calls do to them.

use std::collections::HashMap;

use super::super::record::{Kind, tenant_of};
use super::super::sink::{About, Sink};
use super::names::Names;
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

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    description: usize,
    close_on_exec: bool,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    table: usize,
    tenant: u16,
}

#[derive(Debug, Default)]
struct File {
    /// As far as calls have shown it: a file may be larger.
    size: u64,
    /// Blocks.
    used: Ranges,
}

/// All state that is followed.
#[derive(Debug)]
pub(super) struct Files {
    processes: HashMap<u32, Process>,
    directories: HashMap<u32, Vec<u8>>,
    met: u32,
    tables: Vec<HashMap<i32, Descriptor>>,
    descriptions: Vec<Description>,
    names: Names,
    files: Vec<File>,
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

impl Files {
    /// Nothing yet; the names of files take this many bytes at most.
    pub(super) fn within(most: u64) -> Self {
        Self {
            processes: HashMap::new(),
            directories: HashMap::new(),
            met: 0,
            tables: Vec::new(),
            descriptions: Vec::new(),
            names: Names::within(most),
            files: Vec::new(),
        }
    }

    fn new_process(&mut self, pid: u32, table: usize) -> Process {
        let process = Process {
            table,
            tenant: tenant_of(u64::from(self.met)),
        };
        self.met = self.met.saturating_add(1);
        self.processes.insert(pid, process);
        process
    }

    fn new_table(&mut self, table: HashMap<i32, Descriptor>) -> usize {
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// A process makes a call: if it is new, and one other process is in the middle of a fork, it is the child of that one.
    pub(super) fn meet(&mut self, pid: u32, parent: Option<(u32, bool)>) {
        if self.processes.contains_key(&pid) {
            return;
        }
        match parent {
            Some((parent, shared)) if self.processes.contains_key(&parent) => {
                self.fork(parent, pid, shared)
            }
            _ => {
                let table = self.new_table(HashMap::new());
                self.new_process(pid, table);
            }
        }
    }

    pub(super) fn fork(&mut self, parent: u32, child: u32, shared: bool) {
        if self.processes.contains_key(&child) {
            return; // it spoke before its parent's call returned
        }
        let table = self.processes[&parent].table;
        let table = if shared {
            table
        } else {
            self.new_table(self.tables[table].clone())
        };
        self.new_process(child, table);
        if let Some(directory) = self.directories.get(&parent).cloned() {
            self.directories.insert(child, directory);
        }
    }

    pub(super) fn exit(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid)
            && self.processes.values().all(|p| p.table != process.table)
        {
            self.tables[process.table] = HashMap::new();
        }
        self.directories.remove(&pid);
    }

    pub(super) fn exec(&mut self, pid: u32) {
        let table = self.processes[&pid].table;
        let mut kept = self.tables[table].clone();
        kept.retain(|_, d| !d.close_on_exec);
        let table = self.new_table(kept);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.table = table;
        }
    }

    pub(super) fn tenant(&self, pid: u32) -> u16 {
        self.processes.get(&pid).map_or(0, |p| p.tenant)
    }

    pub(super) fn chdir(&mut self, pid: u32, path: &[u8]) {
        let whole = self.whole(pid, None, path);
        self.directories.insert(pid, whole);
    }

    /// A path from the root on: from a directory's descriptor if strace said what it is, else from the working directory.
    fn whole(&self, pid: u32, dir: Option<Fd<'_>>, path: &[u8]) -> Vec<u8> {
        let here = || {
            self.directories
                .get(&pid)
                .map_or(&b"/(here)"[..], Vec::as_slice)
        };
        let base = dir.and_then(|d| d.path).unwrap_or_else(here);
        joined(base, path)
    }

    fn number(&mut self, path: &[u8]) -> Result<u32, String> {
        let number = self.names.number(path)?;
        while self.files.len() <= number as usize {
            self.files.push(File::default());
        }
        Ok(number)
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
        let table = self.processes[&pid].table;
        if !has_pages(&whole) || has(b"O_PATH") {
            self.tables[table].remove(&fd);
            return Ok(None);
        }
        let file = self.number(&whole)?;
        self.point(
            table,
            fd,
            Description {
                file,
                position: 0,
                append: has(b"O_APPEND"),
                size: None,
            },
            has(b"O_CLOEXEC"),
        );
        Ok(Some(file))
    }

    fn point(
        &mut self,
        table: usize,
        fd: i32,
        description: Description,
        close_on_exec: bool,
    ) -> usize {
        let n = self.descriptions.len();
        self.descriptions.push(description);
        self.tables[table].insert(
            fd,
            Descriptor {
                description: n,
                close_on_exec,
            },
        );
        n
    }

    /// What a descriptor points to. A descriptor that strace names without an open was open before: its position is taken as 0.
    fn description(&mut self, pid: u32, fd: Fd<'_>) -> Result<Option<usize>, String> {
        let (Some(number), table) = (fd.number, self.processes[&pid].table) else {
            return Ok(None);
        };
        if let Some(path) = fd.path {
            let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
            if !has_pages(path) {
                return Ok(None);
            }
            if !self.tables[table].contains_key(&number) {
                let file = self.number(path)?;
                return Ok(Some(self.point(
                    table,
                    number,
                    Description {
                        file,
                        position: 0,
                        append: false,
                        size: None,
                    },
                    false,
                )));
            }
        }
        Ok(self.tables[table].get(&number).map(|d| d.description))
    }

    /// The file of a descriptor.
    pub(super) fn file(&mut self, pid: u32, fd: Fd<'_>) -> Result<Option<u32>, String> {
        Ok(self
            .description(pid, fd)?
            .map(|d| self.descriptions[d].file))
    }

    pub(super) fn close(&mut self, pid: u32, fd: Option<i32>) {
        let table = self.processes[&pid].table;
        if let Some(fd) = fd {
            self.tables[table].remove(&fd);
        }
    }

    pub(super) fn close_range(&mut self, pid: u32, first: Option<i32>, last: i32) {
        let table = self.processes[&pid].table;
        if let Some(first) = first {
            self.tables[table].retain(|fd, _| *fd < first || *fd > last);
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
        let description = self.description(pid, from)?;
        let table = self.processes[&pid].table;
        match description {
            Some(description) => self.tables[table].insert(
                to,
                Descriptor {
                    description,
                    close_on_exec,
                },
            ),
            None => self.tables[table].remove(&to),
        };
        Ok(())
    }

    pub(super) fn close_on_exec(&mut self, pid: u32, fd: Fd<'_>, close_on_exec: bool) {
        let table = self.processes[&pid].table;
        if let Some(descriptor) = fd.number.and_then(|fd| self.tables[table].get_mut(&fd)) {
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
        if let Some(d) = self.description(pid, fd)? {
            let description = &mut self.descriptions[d];
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
        if let Some(d) = self.description(pid, fd)? {
            let description = &mut self.descriptions[d];
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
        let Some(d) = self.description(pid, fd)? else {
            return Ok(None);
        };
        let Description { file, size, .. } = self.descriptions[d];
        let state = &mut self.files[file as usize];
        // What was written or allocated since the stat is a part of it.
        let len = size.map_or(len, |size| len.min(size.max(state.size).saturating_sub(at)));
        if len > 0 {
            let end = at.saturating_add(len);
            state.used.add(at / block_size, end.div_ceil(block_size));
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
        let Some(d) = self.description(pid, fd)? else {
            return Ok(None);
        };
        let Description {
            file,
            position,
            append,
            ..
        } = self.descriptions[d];
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
            self.descriptions[d].position = end;
        }
        state.size = state.size.max(end);
        state.used.add(at / block_size, end.div_ceil(block_size));
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
        for (mut at, end) in state.used.cut(len.div_ceil(size)) {
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
        match self.names.forget(&whole) {
            Some(file) => self.cut(file, 0, time, sink),
            None => Ok(()),
        }
    }

    pub(super) fn rename(
        &mut self,
        pid: u32,
        from: (Option<Fd<'_>>, &[u8]),
        to: (Option<Fd<'_>>, &[u8]),
        time: u64,
        sink: &mut Sink,
    ) -> Result<(), String> {
        let to_path = self.whole(pid, to.0, to.1);
        let from_path = self.whole(pid, from.0, from.1);
        if from_path == to_path {
            return Ok(());
        }
        self.unlink(pid, to.0, to.1, time, sink)?;
        if let Some(file) = self.names.forget(&from_path) {
            self.names.set(&to_path, file)?;
        }
        Ok(())
    }
}
