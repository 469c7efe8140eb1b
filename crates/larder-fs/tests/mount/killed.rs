//! The daemon is killed at any moment: what was synced is there, and nothing is mixed.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use larder_fs::MountOptions;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use crate::uring::{Offered, least_bytes};
use crate::{directory, mounted, opened_by_the_kernel};

const DAEMON: &str = "LARDER_FS_TEST_DAEMON";
/// How often the daemon is killed.
const KILLS: &str = "LARDER_FS_KILLS";
/// After so many kills it goes on with new files, so that looking at them takes no longer.
const FRESH: u32 = 20;
const BLOCK: usize = 4096;
/// Blocks that are written again and again.
const BLOCKS: usize = 64;

/// No test: the daemon of the other one, which starts this program again. Source, mountpoint, for other tools mode and bytes, `kernel` for
/// files that the kernel opens by itself, and `ring` for io_uring, and `broken` for rings that fail when the source has a file of that name.
#[test]
fn daemon() {
    let Ok(text) = std::env::var(DAEMON) else {
        return;
    };
    let words: Vec<_> = text.split(':').collect();
    let options = MountOptions::new(words[0], words[1])
        .cache_bytes(1 << 20)
        .dirty_age(Duration::from_millis(30));
    let options = match words.get(2..) {
        Some(["ring", ..]) => options.cache_bytes(least_bytes()).io_uring(true),
        Some(["kernel"]) => opened_by_the_kernel(options),
        Some([mode, bytes, ring @ ..]) => {
            let seconds = Duration::from_secs(5);
            options
                .mode(mode.parse().unwrap())
                .cache_bytes(bytes.parse().unwrap())
                .dirty_age(seconds)
                .io_uring(!ring.is_empty())
        }
        _ => options,
    };
    let mount = options.mount().unwrap();
    println!("ready");
    if words.contains(&"broken") {
        let now = Path::new(words[0]).join("broken");
        std::thread::spawn(move || {
            while !now.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            break_rings();
        });
    }
    mount.wait().unwrap();
    // Whose end is asked for gets its answer first.
    drop(mount);
    // The test has closed its end of this output, to which the harness would write.
    std::process::exit(0);
}

/// Puts another file in the place of each ring of this process.
fn break_rings() {
    let other = fs::File::open("/dev/null").unwrap();
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        let is_ring = fs::read_link(&path).is_ok_and(|to| to.ends_with("anon_inode:[io_uring]"));
        if is_ring {
            let name = path.file_name().and_then(|name| name.to_str());
            let number: i32 = name.and_then(|name| name.parse().ok()).unwrap();
            // SAFETY: the number stays that of an open file.
            let done = unsafe { libc::dup2(other.as_raw_fd(), number) };
            assert_eq!(done, number);
        }
    }
}

/// What is mounted there goes in any case.
pub(crate) struct Mountpoint<P: AsRef<Path>>(pub(crate) P);

impl<P: AsRef<Path>> Drop for Mountpoint<P> {
    fn drop(&mut self) {
        let _ = unmount(self.0.as_ref(), UnmountFlags::DETACH);
    }
}

/// A daemon of its own process.
pub(crate) struct Daemon(Child);

/// This program as a daemon of its own process, which says on a line of its output that it is ready. `more` is nothing, `:ring`, `:kernel`, or a mode and
/// bytes of the cache.
pub(crate) fn daemon_command(source: &Path, at: &Path, more: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "killed::daemon", "--nocapture"])
        .env(
            DAEMON,
            format!("{}:{}{more}", source.display(), at.display()),
        )
        .stdout(Stdio::piped());
    // A daemon that is stopped would keep a test that is killed from ending.
    let with_the_test = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec there is one system call, which touches no memory.
    unsafe { command.pre_exec(with_the_test) };
    command
}

impl Daemon {
    pub(crate) fn start(source: &Path, at: &Path) -> Self {
        Self::start_with(source, at, "")
    }

    pub(crate) fn start_with(source: &Path, at: &Path, with: &str) -> Self {
        let child = daemon_command(source, at, with).spawn().unwrap();
        let mut daemon = Self(child);
        let lines = BufReader::new(daemon.0.stdout.take().unwrap()).lines();
        let ready = lines
            .map_while(Result::ok)
            .any(|line| line.ends_with("ready"));
        assert!(ready, "the daemon mounts");
        daemon
    }

    /// Whether it has ended, and well. None while it runs.
    pub(crate) fn ended(&mut self) -> Option<bool> {
        let status = self.0.try_wait().unwrap();
        status.map(|status| status.success())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was acknowledged.
#[derive(Clone)]
struct Acknowledged {
    /// Bytes of the log.
    log: u64,
    /// The version of each block.
    blocks: Vec<u32>,
    /// The version of the file that is replaced as a whole, which is never synced.
    whole: u32,
}

impl Acknowledged {
    /// A source without files, but for the one that is replaced.
    fn begin(source: &Path) -> Self {
        for name in ["log", "blocks", "new"] {
            let _ = fs::remove_file(source.join(name));
        }
        fs::write(source.join("whole"), whole(1)).unwrap();
        Self::found(source)
    }

    /// What is there after a kill: the next writer goes on behind it.
    fn found(source: &Path) -> Self {
        let blocks = fs::read(source.join("blocks")).unwrap_or_default();
        let first = |at: usize| blocks.get(at * BLOCK..).map_or(0, version);
        Self {
            log: fs::metadata(source.join("log")).map_or(0, |found| found.len()),
            blocks: (0..BLOCKS).map(first).collect(),
            whole: fs::read(source.join("whole")).map_or(0, |found| version(&found)),
        }
    }
}

/// A byte of the log.
fn letter(at: u64) -> u8 {
    (at % 251) as u8 + 1
}

fn block(version: u32) -> Vec<u8> {
    version.to_ne_bytes().repeat(BLOCK / 4)
}

/// The version that a block or a whole file begins with.
fn version(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |has| u32::from_ne_bytes(*has))
}

/// Content of the file that is replaced: no multiple of a block.
fn whole(version: u32) -> Vec<u8> {
    version.to_ne_bytes().repeat(2_500 + version as usize % 100)
}

/// Writes until the daemon is gone. Returns what was acknowledged, and the last version that was begun.
fn write(at: &Path, known: &Acknowledged) -> (Acknowledged, u32) {
    let mut synced = known.clone();
    let mut version = known.blocks.iter().copied().max().unwrap_or(0);
    version = version.max(known.whole);
    let open = |name: &str| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(at.join(name))
    };
    let (Ok(log), Ok(blocks)) = (open("log"), open("blocks")) else {
        return (synced, version);
    };
    let mut now = known.clone();
    for turn in 0_u32.. {
        let piece: Vec<u8> = (now.log..now.log + 700 + u64::from(turn % 5) * 1000)
            .map(letter)
            .collect();
        version += 1;
        let which = (turn as usize * 7) % BLOCKS;
        let done = log
            .write_all_at(&piece, now.log)
            .and_then(|()| blocks.write_all_at(&block(version), (which * BLOCK) as u64));
        if done.is_err() {
            break;
        }
        now.log += piece.len() as u64;
        now.blocks[which] = version;
        if turn % 3 == 0 {
            if log.sync_data().and_then(|()| blocks.sync_all()).is_err() {
                break;
            }
            (synced.log, synced.blocks) = (now.log, now.blocks.clone());
        }
        if turn % 5 == 0 {
            let replaced = fs::write(at.join("new"), whole(version))
                .and_then(|()| fs::rename(at.join("new"), at.join("whole")));
            if replaced.is_err() {
                break;
            }
            synced.whole = version;
        }
    }
    (synced, version)
}

fn verify(source: &Path, synced: &Acknowledged, last: u32) {
    let log = fs::read(source.join("log")).unwrap_or_default();
    assert!(
        log.len() as u64 >= synced.log,
        "{} of {} synced bytes of the log",
        log.len(),
        synced.log
    );
    // Where a block were not there, though it lies before the end, there would be zeroes.
    let wrong = log
        .iter()
        .zip(0..)
        .position(|(&byte, at)| byte != letter(at));
    assert_eq!(wrong, None, "of {} bytes, {} synced", log.len(), synced.log);
    let blocks = fs::read(source.join("blocks")).unwrap_or_default();
    for (at, &least) in synced.blocks.iter().enumerate() {
        let Some(found) = blocks.get(at * BLOCK..(at + 1) * BLOCK) else {
            assert_eq!(least, 0, "block {at} is not there");
            continue;
        };
        let has = version(found);
        assert!(
            has >= least && has <= last,
            "block {at} has version {has}, {least} was synced"
        );
        assert!(found == block(has), "block {at} is mixed");
    }
    // A name is with the source at once, and what is under it was written before.
    let replaced = fs::read(source.join("whole")).unwrap_or_default();
    let has = version(&replaced);
    assert!(
        has >= synced.whole && has <= last,
        "the file that is replaced has version {has}, {} was acknowledged",
        synced.whole
    );
    assert!(
        replaced == whole(has),
        "the file that is replaced is not whole: {} bytes",
        replaced.len()
    );
}

#[test]
fn a_killed_daemon_loses_nothing_that_was_synced() {
    if let Some(first) = mounted(|options| options) {
        drop(first);
        kill_again_and_again("");
    }
}

#[test]
fn opened_by_the_kernel_it_does_not_either() {
    if let Some(first) = mounted(opened_by_the_kernel) {
        drop(first);
        kill_again_and_again(":kernel");
    }
}

#[test]
fn by_io_uring_it_does_not_either() {
    let Some(_offered) = Offered::new() else {
        return;
    };
    if let Some(first) = mounted(|options| options.cache_bytes(least_bytes()).io_uring(true)) {
        drop(first);
        kill_again_and_again(":ring");
    }
}

fn kill_again_and_again(with: &str) {
    let kills = std::env::var(KILLS).map_or(20, |text| text.parse().expect("a number of kills"));
    let (source, at) = (directory(), directory());
    let _mountpoint = Mountpoint(at.path());
    let mut known = Acknowledged::begin(source.path());
    let (mut bytes, mut behind) = (0, 0);
    let mut seed = 12_345_u64;
    for kill in 0..kills {
        let daemon = Daemon::start_with(source.path(), at.path(), with);
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let pause = Duration::from_micros(20_000 + (seed >> 33) % 150_000);
        let path = at.path().to_owned();
        let before = known.clone();
        let writer = std::thread::spawn(move || write(&path, &before));
        std::thread::sleep(pause);
        // The next one takes away what this one leaves.
        drop(daemon);
        let (synced, last) = writer.join().unwrap();
        verify(source.path(), &synced, last);
        bytes += synced.log - known.log;
        known = Acknowledged::found(source.path());
        behind += known.log - synced.log;
        if (kill + 1) % FRESH == 0 {
            known = Acknowledged::begin(source.path());
        }
    }
    println!(
        "{kills} kills: none of {bytes} synced bytes of the log lost, {behind} more were there"
    );
    assert!(bytes > 0, "something was synced");
    drop(Daemon::start_with(source.path(), at.path(), with));
}
