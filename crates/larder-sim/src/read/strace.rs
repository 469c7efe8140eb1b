//! The text that strace prints (`-f`, best with `-y`): files, positions and processes are followed, and what was read and
//! written becomes requests.
//!
//! | call | what it is here |
//! |---|---|
//! | open, openat, creat | a description with a position; O_TRUNC drops the file's pages |
//! | read, readv, pread64, preadv, sendfile, copy_file_range | a request that reads as many bytes as were returned |
//! | write, writev, pwrite64, pwritev, copy_file_range | one that writes |
//! | mmap of a file | one that reads the mapped range (strace does not show which pages were used), or nothing, by option |
//! | fstat, newfstatat and statx of a descriptor, fallocate | where the file ends, and its mappings with it |
//! | lseek, dup, fcntl, close, fork, clone, execve, chdir | followed |
//! | rename | the file, or all files below a directory, have other paths |
//! | unlink, rename over a file, truncate | the pages are removed |
//!
//! Files are distinguished by their paths. Pipes, sockets, /dev, /proc and /sys are no files.

use super::super::options::ReadOptions;
use super::super::record::Kind;
use super::super::sink::{About, Sink};
use super::LineParser;
use super::names::Kept;
use super::strace_files::Files;
use super::strace_line::{Call, Line, parse};
use std::collections::HashMap;

pub(super) struct Strace {
    files: Files,
    /// By process: the beginning of an unfinished call.
    unfinished: HashMap<u32, Kept<Vec<u8>>>,
    /// Mappings count as read.
    mapped: bool,
}

impl LineParser for Strace {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), String> {
        match parse(line)? {
            Line::Nothing => Ok(()),
            Line::Gone(pid) => {
                self.unfinished.remove(&pid);
                self.files.exit(pid);
                Ok(())
            }
            Line::Unfinished { pid, text } => {
                let text = self.files.keep(text.to_vec())?;
                self.unfinished.insert(pid, text);
                Ok(())
            }
            Line::Resumed {
                pid,
                time,
                name,
                rest,
            } => {
                // A call that began before the trace did.
                let Some(mut whole) = self.unfinished.remove(&pid) else {
                    return Ok(());
                };
                if !whole.starts_with(name) {
                    return Err(format!(
                        "process {pid} resumes {}, but another call was going on",
                        super::number::shown(name)
                    ));
                }
                whole.extend_from_slice(rest);
                let call = Call::of(pid, time, &whole)?;
                self.call(&call, sink)
            }
            Line::Call(call) => self.call(&call, sink),
        }
    }
}

impl Strace {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Self {
            files: Files::within(options.max_memory),
            unfinished: HashMap::new(),
            mapped: options.mapped,
        }
    }

    fn call(&mut self, call: &Call<'_>, sink: &mut Sink) -> Result<(), String> {
        let forks = self.unfinished.iter().filter(|(_, text)| is_fork(text));
        let mut parents = forks.map(|(pid, text)| (*pid, shares(text)));
        let parent = parents.next().filter(|_| parents.next().is_none());
        self.files.meet(call.pid, parent)?;
        let Some(result) = call.result.filter(|r| *r >= 0) else {
            return Ok(());
        };
        let result = result as u64;
        match call.name {
            b"fork" | b"vfork" | b"clone" | b"clone3" => {
                let child = u32::try_from(result).map_err(|_| "the child's number is too large")?;
                self.files.fork(call.pid, child, shares(call.whole))?;
            }
            b"execve" | b"execveat" => self.files.exec(call.pid)?,
            b"chdir" => self.files.chdir(call.pid, call.path(0))?,
            b"open" | b"creat" => {
                let flags = if call.name == b"creat" {
                    &b"O_TRUNC"[..]
                } else {
                    call.arg(1)
                };
                self.open(call, None, 0, flags, sink)?;
            }
            b"openat" | b"openat2" => self.open(call, Some(0), 1, call.arg(2), sink)?,
            b"close" => self.files.close(call.pid, call.fd(0).number),
            b"close_range" => {
                let last = call.fd(1).number.unwrap_or(i32::MAX);
                self.files.close_range(call.pid, call.fd(0).number, last);
            }
            b"dup" | b"dup2" | b"dup3" => {
                let close_on_exec = call.arg(2) == b"O_CLOEXEC";
                self.files
                    .dup(call.pid, call.fd(0), result, close_on_exec)?;
            }
            b"fcntl" | b"fcntl64" if call.arg(1).starts_with(b"F_DUPFD") => {
                let close_on_exec = call.arg(1) == b"F_DUPFD_CLOEXEC";
                self.files
                    .dup(call.pid, call.fd(0), result, close_on_exec)?;
            }
            b"fcntl" | b"fcntl64" if call.arg(1) == b"F_SETFD" => {
                self.files
                    .close_on_exec(call.pid, call.fd(0), call.arg(2) == b"FD_CLOEXEC");
            }
            b"lseek" => self.files.seek(call.pid, call.fd(0), result, call.arg(2))?,
            b"read" | b"readv" => self.transfer(call, 0, None, result, Kind::Read, sink)?,
            b"write" | b"writev" => self.transfer(call, 0, None, result, Kind::Write, sink)?,
            b"pread64" | b"pread" | b"preadv" | b"preadv2" => {
                self.transfer(call, 0, Some(3), result, Kind::Read, sink)?
            }
            b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => {
                self.transfer(call, 0, Some(3), result, Kind::Write, sink)?
            }
            b"sendfile" | b"sendfile64" => {
                let at = (call.arg(2) != b"NULL").then_some(2);
                self.transfer(call, 1, at, result, Kind::Read, sink)?;
            }
            b"copy_file_range" => {
                let at = |n: usize| (call.arg(n) != b"NULL").then_some(n);
                self.transfer(call, 0, at(1), result, Kind::Read, sink)?;
                self.transfer(call, 2, at(3), result, Kind::Write, sink)?;
            }
            b"mmap" | b"mmap2" if self.mapped && call.fd(4).number.is_some() => {
                self.map(call, sink).map_err(|why| {
                    format!("{why}; this is a mapping, which --mmap none leaves out")
                })?;
            }
            b"fstat" | b"fstat64" => self.stat(call, 1)?,
            // Of the descriptor itself where the path is empty.
            b"newfstatat" | b"fstatat64" if call.path(1).is_empty() => self.stat(call, 2)?,
            b"statx" if call.path(1).is_empty() => self.stat(call, 4)?,
            b"fallocate" if memchr::memmem::find(call.arg(1), b"KEEP_SIZE").is_none() => {
                let (at, len) = (call.number(2, "the offset")?, call.number(3, "the length")?);
                self.files
                    .reach(call.pid, call.fd(0), at.saturating_add(len))?;
            }
            b"ftruncate" | b"ftruncate64" => {
                let len = call.number(1, "the length")?;
                if let Some(file) = self.files.file(call.pid, call.fd(0))? {
                    self.files.cut(file, len, call.time, sink)?;
                }
            }
            b"truncate" | b"truncate64" => {
                let len = call.number(1, "the length")?;
                if let Some(file) = self.files.known(call.pid, None, call.path(0)) {
                    self.files.cut(file, len, call.time, sink)?;
                }
            }
            b"unlink" => self
                .files
                .unlink(call.pid, None, call.path(0), call.time, sink)?,
            b"unlinkat" => {
                self.files
                    .unlink(call.pid, Some(call.fd(0)), call.path(1), call.time, sink)?
            }
            b"rename" | b"renameat" | b"renameat2" => {
                let path = |dir: Option<usize>, path: usize| {
                    let dir = dir.map(|n| call.fd(n));
                    self.files.whole(call.pid, dir, call.path(path))
                };
                let (from, to) = match call.name {
                    b"rename" => (path(None, 0), path(None, 1)),
                    _ => (path(Some(0), 1), path(Some(2), 3)),
                };
                let exchange = memchr::memmem::find(call.arg(4), b"RENAME_EXCHANGE").is_some();
                self.files.rename(&from, &to, exchange, call.time, sink)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open(
        &mut self,
        call: &Call<'_>,
        dir: Option<usize>,
        path: usize,
        flags: &[u8],
        sink: &mut Sink,
    ) -> Result<(), String> {
        let dir = dir.map(|n| call.fd(n));
        let file = self
            .files
            .open(call.pid, dir, call.path(path), flags, call.returned())?;
        match file {
            Some(file) if memchr::memmem::find(flags, b"O_TRUNC").is_some() => {
                self.files.cut(file, 0, call.time, sink)
            }
            _ => Ok(()),
        }
    }

    /// The structure in this argument says the size of a descriptor's file.
    fn stat(&mut self, call: &Call<'_>, structure: usize) -> Result<(), String> {
        match call.size(structure) {
            Some(size) => self.files.stat(call.pid, call.fd(0), size),
            None => Ok(()),
        }
    }

    fn map(&mut self, call: &Call<'_>, sink: &mut Sink) -> Result<(), String> {
        let len = call.number(1, "mmap's length")?;
        let at = call.number(5, "the offset")?;
        match self
            .files
            .map(call.pid, call.fd(4), at, len, sink.block_size())?
        {
            Some((file, len)) => sink.bytes(at, len, self.about(call, Kind::Read, file)),
            None => Ok(()),
        }
    }

    fn about(&self, call: &Call<'_>, kind: Kind, file: u32) -> About {
        About {
            time: call.time,
            kind,
            file,
            tenant: self.files.tenant(call.pid),
        }
    }

    /// Bytes that were moved, at the position of a descriptor or at the offset that an argument says.
    fn transfer(
        &mut self,
        call: &Call<'_>,
        fd: usize,
        offset: Option<usize>,
        bytes: u64,
        kind: Kind,
        sink: &mut Sink,
    ) -> Result<(), String> {
        let said = match offset {
            Some(n) if call.arg(n) == b"-1" => None,
            Some(n) => Some(call.number(n, "the offset")?),
            None => None,
        };
        let Some((file, at)) =
            self.files
                .advance(call.pid, call.fd(fd), said, bytes, kind, sink.block_size())?
        else {
            return Ok(());
        };
        sink.bytes(at, bytes, self.about(call, kind, file))
    }
}

fn is_fork(text: &[u8]) -> bool {
    [&b"vfork("[..], b"clone(", b"clone3(", b"fork("]
        .iter()
        .any(|name| text.starts_with(name))
}

/// Whether the child shares its parent's descriptors.
fn shares(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"CLONE_FILES").is_some()
}
