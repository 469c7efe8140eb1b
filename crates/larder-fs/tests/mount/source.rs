//! A source that is full or slow, and a trace of its use.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use larder_fs::{DiskModel, Mount, MountOptions};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::{directory, mounted};

/// A small file system in memory, which goes at the end.
struct Small(PathBuf);

impl Small {
    fn new(at: &Path, bytes: usize) -> Option<Self> {
        let size = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        match mount("larder-test", at, "tmpfs", MountFlags::empty(), &*size) {
            Ok(()) => Some(Self(at.to_owned())),
            Err(error) => {
                eprintln!("skipped: mounting a tmpfs: {error}");
                None
            }
        }
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// A source that has room for a MiB, and a place to mount it. None where nothing can be mounted.
fn small_source() -> Option<(TempDir, TempDir, Small)> {
    drop(mounted(|options| options)?);
    let (source, at) = (directory(), directory());
    let small = Small::new(source.path(), 1 << 20)?;
    Some((source, at, small))
}

/// Nothing is written because of its age.
fn mount_patient(source: &Path, at: &Path) -> Mount {
    MountOptions::new(source, at)
        .cache_bytes(16 << 20)
        .dirty_age(Duration::from_secs(3600))
        .mount()
        .unwrap()
}

#[test]
fn a_full_source_is_reported_and_loses_nothing() {
    let Some((source, at, _small)) = small_source() else {
        return;
    };
    let mount = mount_patient(source.path(), at.path());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(at.path().join("file"))
        .unwrap();
    let mut other = file.try_clone().unwrap();
    file.write_all(&[1; 300_000]).unwrap();
    let second = File::open(at.path().join("file")).unwrap();
    // Others fill the source behind the mount's back.
    fs::write(source.path().join("ballast"), vec![0; 800_000]).unwrap();
    let full = |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    full(file.sync_all().unwrap_err());
    full(second.sync_all().unwrap_err());
    // What is known to be too much is refused at once.
    let mut refused = None;
    for _ in 0..100 {
        refused = other.write_all(&[2; 100_000]).err();
        if refused.is_some() {
            break;
        }
    }
    full(refused.expect("a write is refused"));
    let len = fs::metadata(at.path().join("file")).unwrap().len();
    fs::remove_file(source.path().join("ballast")).unwrap();
    if len < 900_000 {
        file.sync_all().unwrap();
        assert_eq!(fs::metadata(source.path().join("file")).unwrap().len(), len);
    }
    let all = fs::read(at.path().join("file")).unwrap();
    assert!(all[..300_000].iter().all(|&byte| byte == 1));
    assert!(all[300_000..].iter().all(|&byte| byte == 2));
    drop((file, other, second));
    fs::remove_file(at.path().join("file")).unwrap();
    mount.unmount().unwrap();
}

#[test]
fn what_the_source_does_not_take_at_the_end_is_tried_again() {
    let Some((source, at, _small)) = small_source() else {
        return;
    };
    let mount = mount_patient(source.path(), at.path());
    fs::write(at.path().join("file"), [1; 300_000]).unwrap();
    let ballast = source.path().join("ballast");
    fs::write(&ballast, vec![0; 900_000]).unwrap();
    unmount(at.path(), UnmountFlags::empty()).unwrap();
    std::thread::scope(|scope| {
        let end = scope.spawn(|| mount.wait());
        std::thread::sleep(Duration::from_millis(500));
        assert!(!end.is_finished(), "it has given up");
        fs::remove_file(&ballast).unwrap();
        end.join().unwrap().unwrap();
    });
    assert!(fs::read(source.path().join("file")).unwrap() == [1; 300_000]);
}

#[test]
fn what_is_free_is_told_without_what_is_written_already() {
    let Some((source, at, _small)) = small_source() else {
        return;
    };
    let mount = mount_patient(source.path(), at.path());
    let free = |path: &Path| rustix::fs::statvfs(path).unwrap().f_bavail;
    let before = free(at.path());
    fs::write(at.path().join("file"), vec![1; 400 << 10]).unwrap();
    assert!(before - free(at.path()) >= 100, "{before} blocks");
    mount.sync().unwrap();
    assert_eq!(free(at.path()), free(source.path()));
    mount.unmount().unwrap();
}

/// The source's own file system goes while files are open and dirty.
#[test]
fn a_source_that_vanishes_is_an_error_and_not_an_end() {
    let Some(below) = mounted(|options| options) else {
        return;
    };
    let at = directory();
    let mount = mount_patient(&below.at, at.path());
    fs::write(at.path().join("file"), [1; 10_000]).unwrap();
    mount.sync().unwrap();
    let path = at.path().join("file");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&[2; 10_000]).unwrap();
    // As where its process was killed.
    let connection = rustix::fs::stat(&below.at).unwrap().st_dev & 0xff;
    let abort = format!("/sys/fs/fuse/connections/{connection}/abort");
    if let Err(error) = fs::write(abort, "1") {
        return eprintln!("skipped: a connection cannot be ended: {error}");
    }
    assert!(file.sync_all().is_err());
    assert!(mount.sync().is_err());
    // What is in memory can be read, and what is not is an error.
    let reader = File::open(&path);
    if let Ok(reader) = reader {
        let mut page = [0; 4096];
        let _ = reader.read_at(&mut page, 0);
    }
    assert!(fs::read(at.path().join("none")).is_err());
    assert!(mount.unmount().is_err(), "it is still mounted");
    assert!(mount.stats().dirty_bytes >= 10_000);
    drop(file);
}

/// A source has room for what it has already, and a hole takes none.
#[test]
fn a_source_with_little_room_takes_what_needs_little() {
    let Some((source, at, _small)) = small_source() else {
        return;
    };
    fs::write(source.path().join("file"), vec![1; 700 << 10]).unwrap();
    let mount = mount_patient(source.path(), at.path());
    let mut options = OpenOptions::new();
    let file = options.write(true).open(at.path().join("file")).unwrap();
    file.write_all_at(&vec![2; 700 << 10], 0).unwrap();
    fs::write(at.path().join("more"), vec![3; 100 << 10]).unwrap();
    let sparse = File::create(at.path().join("sparse")).unwrap();
    sparse.write_all_at(&[4], 1 << 30).unwrap();
    drop((file, sparse));
    mount.unmount().unwrap();
    let behind = |name| fs::read(source.path().join(name)).unwrap();
    assert!(behind("file") == vec![2; 700 << 10]);
    assert!(behind("more") == vec![3; 100 << 10]);
    let sparse = fs::metadata(source.path().join("sparse")).unwrap();
    assert_eq!(sparse.len(), (1 << 30) + 1);
}

#[test]
fn a_slow_source_is_asked_once() {
    let disk = DiskModel {
        seek: Duration::from_millis(5),
        bytes_per_second: 50_000_000,
        per_call: Duration::ZERO,
    };
    let Some(mounted) = mounted(|options| options.disk(disk)) else {
        return;
    };
    fs::write(mounted.source.join("file"), vec![1; 1 << 20]).unwrap();
    let file = File::open(mounted.at.join("file")).unwrap();
    let read = || {
        let mut page = [0; 4096];
        for at in (0..256).map(|n| n * 37 % 256) {
            file.read_exact_at(&mut page, at * 4096).unwrap();
            assert_eq!(page, [1; 4096]);
        }
    };
    let begun = Instant::now();
    read();
    // The model's own time, which the first pass must have taken.
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let before = mounted.mount.stats();
    assert!(before.backing_read_bytes >= 1 << 20);
    read();
    let after = mounted.mount.stats();
    assert_eq!(after.backing_reads, before.backing_reads);
    assert!(
        after.hits + 64 >= before.hits + 256,
        "{} and {}",
        before.hits,
        after.hits
    );
}

#[test]
fn random_reads_are_not_amplified() {
    let Some(mounted) = mounted(|options| options.cache_bytes(16 << 20)) else {
        return;
    };
    fs::write(mounted.source.join("file"), vec![1; 4 << 20]).unwrap();
    let file = File::open(mounted.at.join("file")).unwrap();
    let mut page = [0; 4096];
    for n in 0..1024_u64 {
        file.read_exact_at(&mut page, n * 619 % 1024 * 4096)
            .unwrap();
    }
    let read = mounted.mount.stats().backing_read_bytes;
    assert!(read <= (4 << 20) / 20 * 21, "{read}");
}

#[test]
fn a_sequential_reader_is_read_ahead_of() {
    let Some(mounted) = mounted(|options| options.cache_bytes(16 << 20)) else {
        return;
    };
    fs::write(mounted.source.join("file"), vec![1; 4 << 20]).unwrap();
    let file = File::open(mounted.at.join("file")).unwrap();
    let mut page = [0; 4096];
    for n in 0..1024_u64 {
        file.read_exact_at(&mut page, n * 4096).unwrap();
    }
    // 32 blocks at a time, after the first few, by whatever threads the requests came.
    let reads = mounted.mount.stats().backing_reads;
    assert!(reads <= 40, "{reads}");
}

#[test]
fn the_trace_has_every_use() {
    let directory = directory();
    let path = directory.path().join("trace.csv");
    let Some(mounted) = mounted(|options| options.trace(&path).threads(1)) else {
        return;
    };
    mounted.put("file", vec![1; 40_960]);
    assert_eq!(mounted.get("file").len(), 40_960);
    // Uses that the rule had not heard of by now would be missing.
    fs::remove_file(mounted.at.join("file")).unwrap();
    mounted.mount.unmount().unwrap();
    let stats = mounted.mount.stats();
    let trace = fs::read_to_string(&path).unwrap();
    assert!(trace.starts_with("op,id,request\n"));
    let uses = trace
        .lines()
        .filter(|line| line.starts_with("read,") || line.starts_with("write,"))
        .count() as u64;
    assert_eq!(uses, stats.hits + stats.misses, "{trace}");
}
