//! A source that stands still: what is in memory is answered, and programs that are killed end.
//!
//! The source is a mount of another process, which a signal stops and lets go on. So nothing depends on time, but for
//! the last test. But each new process of the tests beside would wait for it, so these run alone.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use larder_fs::{Coherence, DiskModel, Mount, MountOptions};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::killed::{Daemon, Mountpoint};
use crate::uring::{Offered, by_ring, least_bytes};
use crate::{directory, mounted, soon};

const BLOCK: usize = 4096;
/// More than threads that answer, and than those that read for them.
const MISSES: usize = 100;
/// For what must not wait.
const LIMIT: Duration = Duration::from_secs(30);

/// A mount of a source that can be stopped. The fields go in this order.
struct Stoppable {
    mount: Mount,
    at: PathBuf,
    _inner: Mountpoint<TempDir>,
    daemon: Daemon,
    _places: [TempDir; 2],
}

/// A process that is stopped, until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        let stopped = Self(process);
        // With all its threads.
        waitpid(Some(process), WaitOptions::UNTRACED).unwrap();
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

impl Stoppable {
    /// None where nothing can be mounted. The source has a file of so many blocks, each of which holds its number.
    fn new(blocks: usize, with: impl Fn(MountOptions) -> MountOptions) -> Option<Self> {
        drop(mounted(|options| options)?);
        let (source, middle, at) = (directory(), directory(), directory());
        let content = (0..blocks)
            .flat_map(|n| [n as u8; BLOCK])
            .collect::<Vec<_>>();
        fs::write(source.path().join("file"), content).unwrap();
        let daemon = Daemon::start(source.path(), middle.path());
        let inner = Mountpoint(middle);
        let options = MountOptions::new(inner.0.path(), at.path())
            .cache_bytes(16 << 20)
            .read_ahead(0)
            .dirty_age(Duration::from_secs(3600))
            .coherence(Coherence::Exclusive);
        let mount = with(options).mount().unwrap();
        Some(Self {
            mount,
            at: at.path().to_owned(),
            _inner: inner,
            daemon,
            _places: [source, at],
        })
    }

    /// The file, of which block 0 is in memory; the source stands still from now on.
    fn stopped(&self) -> (File, Stopped) {
        let file = File::open(self.at.join("file")).unwrap();
        assert_eq!(read(&file, 0), 0);
        (file, Stopped::new(self.daemon.pid()))
    }

    /// A call for a name takes long, once: with rings those that follow are handed on.
    fn slow_names(&self) {
        let stopped = Stopped::new(self.daemon.pid());
        thread::scope(|scope| {
            let stopped = stopped;
            let (sender, threads) = channel();
            let path = self.at.join("slow");
            scope.spawn(move || {
                sender.send(thread_id()).unwrap();
                assert!(fs::metadata(path).is_err());
            });
            let thread = threads.recv().unwrap();
            soon(|| is_in(thread, &[libc::SYS_statx]), "it asks");
            thread::sleep(Duration::from_millis(100));
            drop(stopped);
        });
    }
}

fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Reads a block, and returns its number.
fn read(file: &File, n: usize) -> u8 {
    let mut page = [0; BLOCK];
    file.read_exact_at(&mut page, (n * BLOCK) as u64).unwrap();
    assert_eq!(page, [page[0]; BLOCK]);
    page[0]
}

/// Whether a thread waits within a call that reads a descriptor.
fn is_reading(thread: u32, fd: RawFd) -> bool {
    let call = fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let reads = |call: libc::c_long| format!("{call} {fd:#x} ");
    call.starts_with(&reads(libc::SYS_pread64)) || call.starts_with(&reads(libc::SYS_read))
}

/// Whether a thread waits within one of these calls.
fn is_in(thread: u32, calls: &[libc::c_long]) -> bool {
    let call = fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let number = call
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number: libc::c_long| calls.contains(&number))
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_misses() {
    if let Some(stoppable) = Stoppable::new(MISSES + 1, |options| options) {
        hits_come_first(&stoppable, MISSES);
    }
}

/// As many misses as have an entry, but one, also where all come from one CPU.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn by_io_uring_they_do_not_either() {
    let Some(_offered) = Offered::new() else {
        return;
    };
    let by_ring = |options: MountOptions| options.cache_bytes(8 * least_bytes()).io_uring(true);
    if let Some(stoppable) = Stoppable::new(MISSES + 1, by_ring) {
        hits_come_first(&stoppable, 12);
        assert!(stoppable.mount.stats().ring_requests > 0);
    }
}

fn hits_come_first(stoppable: &Stoppable, misses: usize) {
    let (file, stopped) = stoppable.stopped();
    let (sender, replies) = channel();
    thread::scope(|scope| {
        // It goes on before the threads are waited for, also after a panic.
        let stopped = stopped;
        let (started, threads) = channel();
        for n in 1..=misses {
            let (file, sender, started) = (&file, sender.clone(), started.clone());
            scope.spawn(move || {
                started.send(thread_id()).unwrap();
                sender.send((n, read(file, n))).unwrap();
            });
        }
        for _ in 0..misses {
            let thread = threads.recv().unwrap();
            soon(|| is_reading(thread, file.as_raw_fd()), "it reads");
        }
        let hit = sender.clone();
        let file = &file;
        scope.spawn(move || hit.send((0, read(file, 0))).unwrap());
        // Nothing else is answered before the source goes on.
        let first = replies.recv_timeout(LIMIT);
        drop(stopped);
        assert_eq!(first, Ok((0, 0)), "a hit, and before the misses");
    });
    drop(sender);
    let mut all: Vec<_> = replies.into_iter().collect();
    all.sort_unstable();
    let each = (1..=misses).map(|n| (n, n as u8));
    assert_eq!(all, each.collect::<Vec<_>>());
    drop(file);
    stoppable.mount.unmount().unwrap();
}

/// Threads, each with a call that the source keeps while it stands still, and meanwhile reads of what is in memory.
fn hits_beside(
    stoppable: &Stoppable,
    threads: usize,
    calls: &[libc::c_long],
    call: impl Fn(usize) + Sync,
) {
    let (file, stopped) = stoppable.stopped();
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        // It goes on before the threads are waited for, also after a panic.
        let stopped = stopped;
        let (started, ids) = channel();
        for n in 1..=threads {
            let (started, call, ended) = (started.clone(), &call, &ended);
            scope.spawn(move || {
                started.send(thread_id()).unwrap();
                call(n);
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        for _ in 0..threads {
            let thread = ids.recv().unwrap();
            soon(|| is_in(thread, calls), "it calls");
        }
        let (sender, hits) = channel();
        let file = &file;
        scope.spawn(move || while sender.send(read(file, 0)).is_ok() {});
        // For a while, in which all of them come to the source.
        for _ in 0..40 {
            assert_eq!(hits.recv_timeout(LIMIT), Ok(0), "a hit");
            thread::sleep(Duration::from_millis(5));
            while hits.try_recv().is_ok() {}
        }
        assert_eq!(ended.load(Ordering::Relaxed), 0, "the source keeps them");
        drop((hits, stopped));
    });
    assert_eq!(ended.load(Ordering::Relaxed), threads);
}

/// As many as have an entry of a ring, but one, also where all come from one CPU.
const BY_RING: usize = 12;

/// Does it with a mount over `/dev/fuse`, and by io_uring where the kernel has it.
fn by_both_ways(blocks: usize, test: impl Fn(&Stoppable, usize)) {
    if let Some(stoppable) = Stoppable::new(blocks, |options| options) {
        test(&stoppable, MISSES);
        stoppable.mount.unmount().unwrap();
    }
    let Some(_offered) = Offered::new() else {
        return;
    };
    let by_ring = |options: MountOptions| options.cache_bytes(8 * least_bytes()).io_uring(true);
    if let Some(stoppable) = Stoppable::new(blocks, by_ring) {
        // Names go to the source in place, unless that takes long. To cut a file asks for an attribute, too.
        stoppable.slow_names();
        test(&stoppable, BY_RING);
        stoppable.mount.unmount().unwrap();
        assert!(stoppable.mount.stats().ring_requests > 0);
    }
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_names() {
    by_both_ways(1, |stoppable, threads| {
        hits_beside(stoppable, threads, &[libc::SYS_statx], |n| {
            assert!(fs::metadata(stoppable.at.join(format!("none-{n}"))).is_err());
        });
    });
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_attributes() {
    by_both_ways(1, |stoppable, threads| {
        let file = File::open(stoppable.at.join("file")).unwrap();
        let mut value = [0; 10];
        let none = rustix::fs::fgetxattr(&file, "user.none", &mut value).unwrap_err();
        hits_beside(stoppable, threads, &[libc::SYS_fgetxattr], |_| {
            let error = rustix::fs::fgetxattr(&file, "user.none", &mut [0; 10]).unwrap_err();
            assert_eq!(error, none);
        });
    });
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_syncs() {
    by_both_ways(1, |stoppable, threads| {
        let dirty = |n| {
            let path = stoppable.at.join(format!("dirty-{n}"));
            let mut file = File::create(path).unwrap();
            file.write_all(&[n as u8; 10_000]).unwrap();
            file
        };
        let files: Vec<_> = (1..=threads).map(dirty).collect();
        hits_beside(stoppable, threads, &[libc::SYS_fsync], |n| {
            files[n - 1].sync_all().unwrap();
        });
    });
}

/// Each changes a part of a block that is not in memory.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_writes() {
    by_both_ways(MISSES + 1, |stoppable, threads| {
        let path = stoppable.at.join("file");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        hits_beside(stoppable, threads, &[libc::SYS_pwrite64], |n| {
            file.write_all_at(&[255; 100], (n * BLOCK + 10) as u64)
                .unwrap();
        });
    });
}

/// Threads of the mount that wait for the kernel's requests.
fn serving() -> usize {
    let serves = |task: &fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let thread = task.file_name().to_str().unwrap().parse().unwrap();
        name.trim_end() == "larder-worker" && is_in(thread, &[libc::SYS_read])
    };
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.map(Result::unwrap).filter(serves).count()
}

/// One call shows that the source stands still. However many follow, hits have as many threads as before.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn as_many_threads_serve_hits_as_serve_at_a_time() {
    let Some(stoppable) = Stoppable::new(1, |options| options.threads(2)) else {
        return;
    };
    let (file, stopped) = stoppable.stopped();
    thread::scope(|scope| {
        // It goes on before the threads are waited for, also after a panic.
        let stopped = stopped;
        let look = |n: usize| {
            let (sender, threads) = channel();
            let path = stoppable.at.join(format!("none-{n}"));
            scope.spawn(move || {
                sender.send(thread_id()).unwrap();
                assert!(fs::metadata(path).is_err());
            });
            let thread = threads.recv().unwrap();
            soon(|| is_in(thread, &[libc::SYS_statx]), "it asks");
        };
        look(0);
        thread::sleep(Duration::from_millis(100));
        (1..MISSES).for_each(look);
        // For a while, in which all of them come to the mount.
        for _ in 0..40 {
            assert_eq!(read(&file, 0), 0);
            thread::sleep(Duration::from_millis(5));
        }
        soon(|| serving() == 2, "two threads serve");
        drop(stopped);
    });
    drop(file);
    stoppable.mount.unmount().unwrap();
}

/// Two at once, where two threads are all there are: one waits for the source, and the other one for its block.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_two_writers_of_a_block() {
    let two = |options: MountOptions| options.threads(1).cache_bytes(1 << 20);
    for _ in 0..5 {
        let Some(stoppable) = Stoppable::new(2, two) else {
            return;
        };
        let path = stoppable.at.join("file");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        hits_beside(&stoppable, 2, &[libc::SYS_pwrite64], |n| {
            file.write_all_at(&[255; 100], (BLOCK + n * 1000) as u64)
                .unwrap();
        });
        drop(file);
        stoppable.mount.unmount().unwrap();
    }
}

/// Readers of a file that is being made longer wait for its lock.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn hits_do_not_wait_for_a_files_lock() {
    by_both_ways(1, |stoppable, threads| {
        let path = stoppable.at.join("other");
        fs::write(&path, [7; BLOCK]).unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&path);
        let other = open().unwrap();
        other.sync_all().unwrap();
        let locks = AtomicBool::new(false);
        let calls = [libc::SYS_ftruncate, libc::SYS_pread64];
        hits_beside(stoppable, threads, &calls, |n| {
            if n == 1 {
                other.set_len(100_000).unwrap();
                return locks.store(true, Ordering::Relaxed);
            }
            // The first ones may come before the lock is taken.
            while !locks.load(Ordering::Relaxed) {
                assert_eq!(read(&other, 0), 7);
            }
        });
    });
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn a_program_that_is_killed_does_not_wait() {
    if let Some(stoppable) = Stoppable::new(2, |options| options) {
        killed_ones_end(&stoppable);
    }
}

#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn by_io_uring_it_does_not_either() {
    let Some(_offered) = Offered::new() else {
        return;
    };
    let by_ring = |options: MountOptions| options.cache_bytes(8 * least_bytes()).io_uring(true);
    if let Some(stoppable) = Stoppable::new(2, by_ring) {
        killed_ones_end(&stoppable);
    }
}

fn killed_ones_end(stoppable: &Stoppable) {
    let mut missing = File::open(stoppable.at.join("file")).unwrap();
    missing.seek(SeekFrom::Start(BLOCK as u64)).unwrap();
    // It begins before the source stands still: a new process closes what this one has open of the source, and so waits for it.
    let mut shell = Command::new("sh")
        .args(["-c", "read go; read line <&2"])
        .stdin(Stdio::piped())
        .stderr(missing)
        .spawn()
        .unwrap();
    let (file, stopped) = stoppable.stopped();
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let input = format!("/proc/{}/fd/0", shell.id());
    let is_file = || fs::read_link(&input).is_ok_and(|path| path.ends_with("file"));
    soon(|| is_file() && is_reading(shell.id(), 0), "it reads");
    shell.kill().unwrap();
    soon(|| shell.try_wait().unwrap().is_some(), "it ends");
    drop(stopped);
    assert_eq!(read(&file, 1), 1);
    drop(file);
    stoppable.mount.unmount().unwrap();
}

/// One whose request is set aside: the only other thread is with the source.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn a_killed_program_does_not_wait_with_what_is_set_aside() {
    let two = |options: MountOptions| {
        // With its end the program closes a file, which the other one has changed.
        let options = options.close_to_open(false);
        options.threads(1).cache_bytes(1 << 20)
    };
    let Some(stoppable) = Stoppable::new(3, two) else {
        return;
    };
    let path = stoppable.at.join("file");
    let open = || OpenOptions::new().write(true).open(&path).unwrap();
    let (writer, mut other) = (open(), open());
    other.seek(SeekFrom::Start(2 * BLOCK as u64)).unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", "read go; printf text >&2"])
        .stdin(Stdio::piped())
        .stderr(other)
        .spawn()
        .unwrap();
    let (file, stopped) = stoppable.stopped();
    let misses = || stoppable.mount.stats().misses;
    let before = misses();
    thread::scope(|scope| {
        let stopped = stopped;
        scope.spawn(|| writer.write_all_at(&[255; 100], BLOCK as u64).unwrap());
        soon(|| misses() > before, "it comes to the source");
        shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
        soon(|| is_in(shell.id(), &[libc::SYS_write]), "it writes");
        assert_eq!(read(&file, 0), 0);
        shell.kill().unwrap();
        soon(|| shell.try_wait().unwrap().is_some(), "it ends");
        drop(stopped);
    });
    assert_eq!(read(&file, 2), 2, "it did not write");
    drop((file, writer));
    stoppable.mount.unmount().unwrap();
}

/// A source that is slow for names as well: what is in memory comes meanwhile. Beside other tests each hit waits for a CPU.
#[test]
#[ignore = "alone: --ignored --test-threads=1"]
fn by_io_uring_calls_hold_up_no_hits() {
    let per_call = Duration::from_millis(50);
    let disk = DiskModel {
        seek: Duration::ZERO,
        bytes_per_second: 0,
        per_call,
    };
    let Some((mounted, _offered)) = by_ring(|options| options.disk(disk)) else {
        return;
    };
    mounted.put("file", vec![5; 4096]);
    let file = File::open(mounted.at.join("file")).unwrap();
    let stop = AtomicBool::new(false);
    let (reads, calls) = thread::scope(|scope| {
        let calls: Vec<_> = (0..2)
            .map(|thread| {
                let (mounted, stop) = (&mounted, &stop);
                scope.spawn(move || {
                    let mut n = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        let _ = fs::metadata(mounted.at.join(format!("none-{thread}-{n}")));
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        let begun = Instant::now();
        let mut reads = 0_u64;
        while begun.elapsed() < Duration::from_secs(2) {
            let mut page = [0; 4096];
            file.read_exact_at(&mut page, 0).unwrap();
            assert_eq!(page, [5; 4096]);
            reads += 1;
        }
        stop.store(true, Ordering::Relaxed);
        let calls: u64 = calls.into_iter().map(|call| call.join().unwrap()).sum();
        (reads, calls)
    });
    assert!(calls > 5, "{calls} calls");
    assert!(reads > 20 * calls, "{reads} reads beside {calls} calls");
}
