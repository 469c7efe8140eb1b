//! A record of what a daemon changes in its source, in order, as the system's calls say it.
//!
//! The daemon is traced, so nothing in it is made for this, and no call can be forgotten in it. Calls that change something wait for
//! each other: their order in the record is the one in which they were done.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use crate::killed::daemon_command;

/// A file or directory of the source, by the order in which they were made. The source itself is number 0.
pub(crate) type Object = usize;

/// A name in a directory.
pub(crate) type Name = (Object, Vec<u8>);

/// A call that changes the source, or makes changes safe.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Make {
        name: Name,
        object: Object,
    },
    Unlink {
        name: Name,
    },
    Rename {
        from: Name,
        to: Name,
    },
    Write {
        object: Object,
        offset: u64,
        bytes: Vec<u8>,
    },
    SetLen {
        object: Object,
        len: u64,
    },
    Punch {
        object: Object,
        offset: u64,
        len: u64,
    },
    Sync {
        object: Object,
    },
    SyncAll,
}

/// Calls by their numbers, those that the record has and those that the test has no use for.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Open,
    MakeDirectory,
    Unlink,
    Rename,
    Write,
    SetLen,
    Allocate,
    Sync,
    SyncAll,
    Unknown,
}

fn kind(number: u64) -> Option<Kind> {
    Some(match number.cast_signed() as libc::c_long {
        libc::SYS_openat => Kind::Open,
        libc::SYS_mkdirat => Kind::MakeDirectory,
        libc::SYS_unlinkat => Kind::Unlink,
        libc::SYS_renameat2 => Kind::Rename,
        libc::SYS_pwrite64 | libc::SYS_pwritev => Kind::Write,
        libc::SYS_ftruncate => Kind::SetLen,
        libc::SYS_fallocate => Kind::Allocate,
        libc::SYS_fsync | libc::SYS_fdatasync => Kind::Sync,
        libc::SYS_syncfs => Kind::SyncAll,
        libc::SYS_mknodat | libc::SYS_linkat | libc::SYS_symlinkat => Kind::Unknown,
        libc::SYS_copy_file_range | libc::SYS_pwritev2 | libc::SYS_truncate => Kind::Unknown,
        _ => return None,
    })
}

/// A thread stops at the beginning and the end of each call.
enum Stop {
    Begin { number: u64, arguments: [u64; 6] },
    End { value: i64 },
}

fn ptrace(request: libc::c_uint, thread: i32, address: usize, data: *mut u64) -> io::Result<()> {
    // SAFETY: of the requests made here only that of `stop` writes, to where `data` points, no more than `address` bytes.
    match unsafe { libc::ptrace(request as _, thread, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Data of a request that takes a number.
fn number(number: i32) -> *mut u64 {
    std::ptr::without_provenance_mut(number.cast_unsigned() as usize)
}

/// At which call a thread stands.
fn stop(thread: i32) -> Option<Stop> {
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    // `struct ptrace_syscall_info`: what it is, two addresses, and then the number and the arguments, or the value.
    let mut info = [0_u64; 11];
    let size = size_of_val(&info);
    ptrace(GET_SYSCALL_INFO, thread, size, info.as_mut_ptr()).ok()?;
    match info[0].to_ne_bytes()[0] {
        1 => Some(Stop::Begin {
            number: info[3],
            arguments: info[4..10].try_into().unwrap(),
        }),
        2 => Some(Stop::End {
            value: info[3].cast_signed(),
        }),
        _ => None,
    }
}

/// The record so far.
#[derive(Default)]
pub(crate) struct Record(Mutex<Vec<Change>>);

impl Record {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A daemon whose changes are recorded.
pub(crate) struct Recorder {
    pub(crate) record: Arc<Record>,
    tracer: Option<JoinHandle<()>>,
    daemon: Pid,
    /// Kept, so that the daemon can write to it.
    output: BufReader<ChildStdout>,
}

impl Recorder {
    /// None, and a line that says why, where a process cannot be traced.
    pub(crate) fn start(source: &Path, at: &Path, more: &str) -> Option<Self> {
        let record = Arc::new(Record::default());
        let (sender, receiver) = channel();
        let mut tracer = Tracer::new(source, Arc::clone(&record));
        let mut command = daemon_command(source, at, more);
        // SAFETY: between fork and exec there is one system call, which touches no memory.
        unsafe { command.pre_exec(|| ptrace(libc::PTRACE_TRACEME as _, 0, 0, number(0))) };
        // The thread that starts it is the one that may trace it.
        let tracer = std::thread::spawn(move || {
            let begun = command.spawn().and_then(|mut child| {
                let output = child.stdout.take().unwrap();
                tracer.begin(&child)?;
                Ok((Pid::from_child(&child), output))
            });
            let begins = begun.is_ok();
            sender.send(begun).unwrap();
            if begins {
                tracer.follow();
            }
        });
        let begun: io::Result<(Pid, ChildStdout)> = receiver.recv().unwrap();
        let (daemon, output) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                eprintln!("skipped: tracing a process: {error}");
                return None;
            }
        };
        let mut recorder = Self {
            record,
            tracer: Some(tracer),
            daemon,
            output: BufReader::new(output),
        };
        let lines = recorder.output.by_ref().lines();
        let ready = lines
            .map_while(Result::ok)
            .any(|line| line.ends_with("ready"));
        assert!(ready, "the daemon mounts");
        Some(recorder)
    }

    /// Waits for the daemon's end.
    pub(crate) fn end(mut self) -> Vec<Change> {
        self.tracer.take().unwrap().join().expect("the record");
        let mut record = self.record.0.lock().unwrap();
        std::mem::take(&mut record)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(tracer) = self.tracer.take() {
            let _ = kill_process(self.daemon, Signal::KILL);
            let _ = tracer.join();
        }
    }
}

struct Tracer {
    process: i32,
    record: Arc<Record>,
    /// By device and number, which may be those of a file that is gone.
    objects: HashMap<(u64, u64), Object>,
    made: Object,
    /// Calls that have begun.
    calls: HashMap<i32, (Kind, [u64; 6])>,
    /// The thread that changes something.
    turn: Option<i32>,
    waiting: VecDeque<i32>,
}

fn key(path: impl AsRef<Path>) -> (u64, u64) {
    let found = fs::metadata(path).unwrap();
    (found.dev(), found.ino())
}

impl Tracer {
    fn new(source: &Path, record: Arc<Record>) -> Self {
        Self {
            process: 0,
            record,
            objects: HashMap::from([(key(source), 0)]),
            made: 0,
            calls: HashMap::new(),
            turn: None,
            waiting: VecDeque::new(),
        }
    }

    /// Waits until the program begins.
    fn begin(&mut self, child: &Child) -> io::Result<()> {
        self.process = child.id().cast_signed();
        let (thread, _) = wait(self.process).expect("a child");
        let options =
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
        ptrace(libc::PTRACE_SETOPTIONS as _, thread, 0, number(options))?;
        go_on(thread, 0);
        Ok(())
    }

    /// Records until the process ends.
    fn follow(&mut self) {
        const CALL: i32 = libc::SIGTRAP | 0x80;
        while let Some((thread, status)) = wait(-1) {
            if !libc::WIFSTOPPED(status) {
                self.calls.remove(&thread);
                self.waiting.retain(|&waiting| waiting != thread);
                self.next_after(thread);
                continue;
            }
            match libc::WSTOPSIG(status) {
                CALL => {
                    if self.call(thread) {
                        go_on(thread, 0);
                    }
                }
                // A new thread, or one that makes one.
                libc::SIGSTOP | libc::SIGTRAP => go_on(thread, 0),
                signal => go_on(thread, signal),
            }
        }
    }

    /// Returns whether the thread goes on.
    fn call(&mut self, thread: i32) -> bool {
        match stop(thread) {
            Some(Stop::Begin { number, arguments }) => {
                let Some(kind) = kind(number) else {
                    return true;
                };
                if matches!(kind, Kind::Open)
                    && arguments[2] & libc::O_CREAT.cast_unsigned() as u64 == 0
                {
                    return true;
                }
                self.calls.insert(thread, (kind, arguments));
                if self.turn.is_some() {
                    self.waiting.push_back(thread);
                    return false;
                }
                self.turn = Some(thread);
            }
            Some(Stop::End { value }) => {
                if let Some((kind, arguments)) = self.calls.remove(&thread) {
                    if value >= 0
                        && let Some(change) = self.change(kind, arguments, value)
                    {
                        self.record.0.lock().unwrap().push(change);
                    }
                    self.next_after(thread);
                }
            }
            None => {}
        }
        true
    }

    fn next_after(&mut self, thread: i32) {
        if self.turn == Some(thread) {
            self.turn = self.waiting.pop_front();
            if let Some(next) = self.turn {
                go_on(next, 0);
            }
        }
    }

    fn path(&self, fd: u64) -> String {
        format!("/proc/{}/fd/{}", self.process, fd.cast_signed())
    }

    /// None for what is not in the source, such as the daemon's socket.
    fn object(&self, fd: u64) -> Option<Object> {
        let found = fs::metadata(self.path(fd)).ok()?;
        self.objects.get(&(found.dev(), found.ino())).copied()
    }

    fn name(&self, directory: u64, address: u64) -> Option<Name> {
        let memory = File::open(format!("/proc/{}/mem", self.process)).unwrap();
        let mut name = Vec::new();
        for at in address.. {
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at).unwrap();
            if byte == [0] {
                break;
            }
            name.push(byte[0]);
        }
        Some((self.object(directory)?, name))
    }

    fn make(&mut self, name: Name, key: (u64, u64)) -> Change {
        self.made += 1;
        self.objects.insert(key, self.made);
        Change::Make {
            name,
            object: self.made,
        }
    }

    fn change(&mut self, kind: Kind, arguments: [u64; 6], value: i64) -> Option<Change> {
        let [first, second, third, fourth, ..] = arguments;
        match kind {
            Kind::Open => {
                let name = self.name(first, second)?;
                assert!(third & libc::O_EXCL.cast_unsigned() as u64 != 0);
                let key = key(self.path(value.cast_unsigned()));
                Some(self.make(name, key))
            }
            Kind::MakeDirectory => {
                let name = self.name(first, second)?;
                let path = std::ffi::OsString::from_vec(name.1.clone());
                let key = key(Path::new(&self.path(first)).join(path));
                Some(self.make(name, key))
            }
            Kind::Unlink => Some(Change::Unlink {
                name: self.name(first, second)?,
            }),
            Kind::Rename => Some(Change::Rename {
                from: self.name(first, second)?,
                to: self.name(third, fourth)?,
            }),
            Kind::Write => {
                let object = self.object(first)?;
                // No other call has changed it since.
                let mut bytes = vec![0; value.cast_unsigned() as usize];
                let file = File::open(self.path(first)).unwrap();
                file.read_exact_at(&mut bytes, fourth).unwrap();
                Some(Change::Write {
                    object,
                    offset: fourth,
                    bytes,
                })
            }
            Kind::SetLen => Some(Change::SetLen {
                object: self.object(first)?,
                len: second,
            }),
            Kind::Allocate => {
                let object = self.object(first)?;
                let punches = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                assert_eq!(second, punches.cast_unsigned() as u64);
                Some(Change::Punch {
                    object,
                    offset: third,
                    len: fourth,
                })
            }
            Kind::Sync => Some(Change::Sync {
                object: self.object(first)?,
            }),
            Kind::SyncAll => Some(Change::SyncAll),
            Kind::Unknown => panic!("a call that the record does not have: {arguments:x?}"),
        }
    }
}

/// The next of this thread's children that stopped or ended, with its threads. None when all have ended.
fn wait(process: i32) -> Option<(i32, i32)> {
    let mut status = 0;
    // Not those that other tests started.
    let flags = libc::__WALL | libc::__WNOTHREAD;
    loop {
        // SAFETY: it writes the status into a local variable.
        let thread = unsafe { libc::waitpid(process, &raw mut status, flags) };
        if thread > 0 {
            return Some((thread, status));
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return None;
        }
    }
}

/// One that was killed meanwhile does not go on.
fn go_on(thread: i32, signal: i32) {
    let _ = ptrace(libc::PTRACE_SYSCALL as _, thread, 0, number(signal));
}
