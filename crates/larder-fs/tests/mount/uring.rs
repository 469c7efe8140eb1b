//! The same by io_uring. Where the kernel does not take requests so, and this user may not switch it on, each test says so and passes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use larder_fs::{DiskModel, FsError, Mode, MountOptions};
use rustix::mount::{UnmountFlags, unmount};

use crate::killed::{Daemon, Mountpoint};
use crate::{Mounted, directory, mounted, soon};

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// How many tests need the kernel to offer it, and whether they have switched it on.
static USERS: Mutex<(usize, bool)> = Mutex::new((0, false));

/// The kernel offers io_uring while this is there.
pub(crate) struct Offered;

impl Offered {
    pub(crate) fn new() -> Option<Self> {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        let now = fs::read_to_string(PARAMETER);
        let off = match now.as_deref().map(str::trim) {
            Ok("Y") => false,
            Ok(_) => true,
            Err(error) => {
                eprintln!("skipped: {PARAMETER}: {error}");
                return None;
            }
        };
        if off && let Err(error) = fs::write(PARAMETER, "Y") {
            eprintln!("skipped: {PARAMETER} is N: {error}");
            return None;
        }
        users.0 += 1;
        users.1 |= off;
        Some(Self)
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        users.0 -= 1;
        if users.0 == 0 && std::mem::take(&mut users.1) {
            let _ = fs::write(PARAMETER, "N");
        }
    }
}

/// The smallest cache that has room for the buffers of all CPUs.
pub(crate) fn least_bytes() -> usize {
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let last = possible.trim().rsplit(['-', ',']).next().unwrap();
    (last.parse::<usize>().unwrap() + 1) * (2 << 20)
}

/// A mount whose requests come so.
pub(crate) fn by_ring(
    with: impl FnOnce(MountOptions) -> MountOptions,
) -> Option<(Mounted, Offered)> {
    let offered = Offered::new()?;
    let mounted = mounted(|options| with(options.cache_bytes(least_bytes()).io_uring(true)))?;
    Some((mounted, offered))
}

#[test]
fn requests_come_by_the_ring() {
    let Some((mounted, _offered)) = by_ring(|options| options) else {
        return;
    };
    let content: Vec<_> = (0..1_000_000_u32).map(|n| (n / 7) as u8).collect();
    mounted.put("file", &content);
    assert_eq!(mounted.get("file"), content);
    mounted.mount.drop_caches().unwrap();
    // By reads that miss, in pieces of every length.
    let file = File::open(mounted.at.join("file")).unwrap();
    let mut at = 0;
    for len in (1..200_000).step_by(7919) {
        let mut piece = vec![0; len.min(content.len() - at)];
        file.read_exact_at(&mut piece, at as u64).unwrap();
        assert_eq!(piece, content[at..at + piece.len()]);
        at = (at + len) % content.len();
    }
    let stats = mounted.mount.stats();
    assert!(stats.misses > 0 && stats.hits > 0);
    let all: u64 = stats.operations.values().map(|one| one.count).sum();
    assert!(stats.ring_requests > 0 && stats.ring_requests <= all);
    assert!(
        stats.ring_requests >= stats.operations["read"].count + stats.operations["write"].count
    );
    drop(file);
    mounted.mount.unmount().unwrap();
    assert_eq!(mounted.behind("file"), content);
}

#[test]
fn long_names_and_attributes_come_whole() {
    let Some((mounted, _offered)) = by_ring(|options| options) else {
        return;
    };
    let name = "n".repeat(255);
    mounted.put(&name, "text");
    assert_eq!(mounted.get(&name), b"text");
    let target = "t/".repeat(2000);
    std::os::unix::fs::symlink(&target, mounted.at.join("link")).unwrap();
    let found = fs::read_link(mounted.at.join("link")).unwrap();
    assert_eq!(found.to_str(), Some(target.as_str()));
    // As long as the source's file system takes them.
    let path = mounted.at.join(&name);
    let value = (1..=65_536_usize).rev().step_by(1000).find_map(|len| {
        let value = vec![b'v'; len];
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, "user.long", &value, flags)
            .is_ok()
            .then_some(value)
    });
    if let Some(value) = value {
        let mut found = vec![0; value.len()];
        let len = rustix::fs::getxattr(&path, "user.long", &mut found).unwrap();
        assert_eq!(found[..len], value);
    }
    for n in 0..3000 {
        File::create(mounted.at.join(format!("{n:0200}"))).unwrap();
    }
    assert_eq!(fs::read_dir(&mounted.at).unwrap().count(), 3002);
}

/// Programs end with an error or with what they asked for, and none waits for ever.
#[test]
fn a_mount_goes_while_requests_are_on_their_way() {
    let seek = Duration::from_millis(3);
    let disk = DiskModel {
        seek,
        bytes_per_second: 0,
        per_call: Duration::ZERO,
    };
    for how in ["detached", "forced", "dropped"] {
        let Some((mounted, _offered)) = by_ring(|options| options.disk(disk)) else {
            return;
        };
        let content = vec![3; 4 << 20];
        fs::write(mounted.source.join("file"), &content).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for n in 0..8_usize {
                let (mounted, stop) = (&mounted, &stop);
                scope.spawn(move || {
                    let mut at = n * 100;
                    while !stop.load(Ordering::Relaxed) {
                        let read = File::open(mounted.at.join("file")).and_then(|file| {
                            let mut page = [0; 4096];
                            file.read_exact_at(&mut page, (at % 1000 * 4096) as u64)?;
                            assert_eq!(page, [3; 4096]);
                            fs::write(mounted.at.join(format!("{n}")), page)
                        });
                        if read.is_err() {
                            break;
                        }
                        at += 37;
                    }
                });
            }
            soon(
                || mounted.mount.stats().misses > 50,
                "they read what is not in memory",
            );
            match how {
                "forced" => {
                    let _ = unmount(&mounted.at, UnmountFlags::FORCE | UnmountFlags::DETACH);
                }
                _ => mounted.mount.detach().unwrap(),
            }
            stop.store(true, Ordering::Relaxed);
        });
        let source = mounted.source.clone();
        if how != "dropped" {
            mounted.mount.wait().unwrap();
        }
        assert_eq!(fs::read(source.join("file")).unwrap(), content, "{how}");
        drop(mounted);
    }
}

#[test]
fn one_thread_serves_all_queues() {
    let Some((mounted, _offered)) = by_ring(|options| options.threads(1)) else {
        return;
    };
    std::thread::scope(|scope| {
        for n in 0..16_u8 {
            let mounted = &mounted;
            scope.spawn(move || {
                let name = n.to_string();
                for len in 0..200 {
                    mounted.put(&name, vec![n; len * 50]);
                    assert_eq!(mounted.get(&name), vec![n; len * 50]);
                }
            });
        }
    });
    mounted.mount.unmount().unwrap();
}

#[test]
fn where_it_is_missing_a_line_says_what_to_do() {
    // No other test needs it meanwhile.
    let users = loop {
        let users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if users.0 == 0 {
            break users;
        }
        drop(users);
        std::thread::sleep(Duration::from_millis(5));
    };
    let on = fs::read_to_string(PARAMETER).is_ok_and(|text| text.trim() == "Y");
    if on && fs::write(PARAMETER, "N").is_err() {
        eprintln!("skipped: the kernel offers it");
        return;
    }
    let (source, at) = (directory(), directory());
    let options = MountOptions::new(source.path(), at.path()).cache_bytes(least_bytes());
    let refused = options.clone().io_uring(true).mount();
    if on {
        fs::write(PARAMETER, "Y").unwrap();
    }
    drop(users);
    match refused {
        Err(error @ FsError::IoUring(_)) => {
            let text = error.to_string();
            let helps = text.contains("echo Y > /sys/module/fuse") || text.contains("Linux 6.14");
            assert!(helps && !text.contains('\n'), "{text}");
        }
        Err(FsError::Fuse { what, error }) => return eprintln!("skipped: {what}: {error}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("mounted"),
    }
    // Without it the same mount can be had: nothing is left of the first.
    let mount = options.mount().unwrap();
    assert_eq!(mount.stats().ring_requests, 0);
    mount.unmount().unwrap();
    // Too small for the buffers.
    let small = MountOptions::new(source.path(), at.path()).cache_bytes(1 << 20);
    let refused = small.io_uring(true).mount();
    assert!(matches!(refused, Err(FsError::IoUring(_))));
}

#[test]
fn other_modes_take_it_too() {
    for mode in [Mode::Shared, Mode::Bypass] {
        let Some(_offered) = Offered::new() else {
            return;
        };
        let (source, at) = (directory(), directory());
        let options = MountOptions::new(source.path(), at.path()).mode(mode);
        let mount = match options.cache_bytes(least_bytes()).io_uring(true).mount() {
            Ok(mount) => mount,
            Err(FsError::Mode { what, .. } | FsError::Fuse { what, .. }) => {
                eprintln!("skipped: {what}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        match fs::write(at.path().join("file"), vec![3; 100_000]) {
            Err(error) => eprintln!("skipped: {error}"),
            Ok(()) => assert_eq!(fs::read(at.path().join("file")).unwrap(), [3; 100_000]),
        }
        assert!(mount.stats().ring_requests > 0);
        mount.unmount().unwrap();
    }
}

/// A program that waits for an answer gets an error, and what was written reaches the source.
#[test]
fn a_ring_that_fails_ends_the_mount() {
    let Some(_offered) = Offered::new() else {
        return;
    };
    if mounted(|options| options.cache_bytes(least_bytes()).io_uring(true)).is_none() {
        return;
    }
    let (source, at) = (directory(), directory());
    let _mountpoint = Mountpoint(at.path());
    let mut daemon = Daemon::start_with(source.path(), at.path(), ":ring:broken");
    let path = at.path().join("file");
    let content = vec![5; 300_000];
    fs::write(&path, &content).unwrap();
    fs::write(source.path().join("broken"), "").unwrap();
    let (says, said) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while fs::read(&path).is_ok() {}
        says.send(()).unwrap();
    });
    let error = said.recv_timeout(Duration::from_secs(60));
    soon(|| daemon.ended().is_some(), "the daemon ends");
    let ended_well = daemon.ended();
    // Reads that are stuck end with the daemon.
    drop(daemon);
    assert!(error.is_ok(), "a read waits for ever");
    reader.join().unwrap();
    assert_eq!(ended_well, Some(true));
    assert!(fs::read(source.path().join("file")).unwrap() == content);
    assert_eq!(
        fs::read_dir(at.path()).unwrap().count(),
        0,
        "nothing is mounted"
    );
}
