//! Mode `bypass`: programs read and write the source's files themselves, and see what the source has.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use larder_fs::{FsError, Mode, MountOptions};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::{Mounted, mounted};

/// None, and a line that says why, where the kernel cannot do it: it refuses users without the right to it, and sources that are
/// stacked themselves.
pub(crate) fn bypass() -> Option<Mounted> {
    let mounted = mounted(|options| options.mode(Mode::Bypass))?;
    match fs::write(mounted.at.join("first"), "text") {
        Ok(()) => Some(mounted),
        Err(error) => {
            eprintln!("skipped: opening a file in mode bypass: {error}");
            None
        }
    }
}

fn open(path: impl AsRef<Path>) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path).unwrap()
}

impl Mounted {
    /// The mount and the source have this content and length, and the cache has seen none of it.
    fn both(&self, name: &str, content: &[u8]) {
        assert!(self.get(name) == content, "{name} by the mount");
        assert!(self.behind(name) == content, "{name} in the source");
        self.same_attributes(name);
        let stats = self.mount.stats();
        assert_eq!(stats.hits + stats.misses, 0);
        assert_eq!((stats.resident_bytes, stats.dirty_bytes), (0, 0));
    }

    fn same_attributes(&self, name: &str) {
        let seen = |root: &Path| {
            let found = fs::metadata(root.join(name)).unwrap();
            let times = (found.mtime(), found.mtime_nsec());
            (found.ino(), found.len(), found.nlink(), found.mode(), times)
        };
        assert_eq!(seen(&self.at), seen(&self.source), "attributes of {name}");
    }
}

#[test]
fn reads_and_writes_are_the_sources() {
    let Some(mounted) = bypass() else {
        return;
    };
    mounted.both("first", b"text");
    mounted.put("file", vec![3; 100_000]);
    mounted.both("file", &[3; 100_000]);
    let file = open(mounted.at.join("file"));
    file.write_all_at(&[4; 5000], 6000).unwrap();
    file.write_all_at(&[5; 10], 200_000).unwrap();
    let mut content = vec![3; 100_000];
    content[6000..11_000].fill(4);
    content.resize(200_000, 0);
    content.extend([5; 10]);
    mounted.both("file", &content);
    // What others write into the source is seen at once.
    let behind = open(mounted.source.join("file"));
    behind.write_all_at(&[6; 100], 50_000).unwrap();
    content[50_000..50_100].fill(6);
    let mut found = vec![0; content.len()];
    file.read_exact_at(&mut found, 0).unwrap();
    assert!(found == content);
    fs::copy(mounted.at.join("file"), mounted.at.join("copy")).unwrap();
    mounted.both("copy", &content);
    let stats = mounted.mount.stats();
    assert_eq!(stats.backing_reads + stats.backing_writes, 0);
    drop(file);
    mounted.mount.unmount().unwrap();
    assert!(mounted.behind("file") == content);
}

#[test]
fn appends_go_to_the_end() {
    let Some(mounted) = bypass() else {
        return;
    };
    let path = mounted.at.join("log");
    std::thread::scope(|scope| {
        for byte in [1, 2] {
            let mut options = OpenOptions::new();
            let mut file = options.append(true).create(true).open(&path).unwrap();
            scope.spawn(move || {
                for _ in 0..500 {
                    file.write_all(&[byte; 7]).unwrap();
                }
            });
        }
    });
    let all = mounted.get("log");
    assert_eq!(all.len(), 7000);
    let whole = |piece: &[u8]| piece == [1; 7] || piece == [2; 7];
    assert!(all.chunks(7).all(whole));
    mounted.both("log", &all);
}

#[test]
fn truncation_is_the_sources() {
    let Some(mounted) = bypass() else {
        return;
    };
    let before = open(mounted.at.join("file"));
    before.write_all_at(&[1; 10_000], 0).unwrap();
    before.set_len(5000).unwrap();
    mounted.both("file", &[1; 5000]);
    let by_path = OpenOptions::new().write(true).open(mounted.at.join("file"));
    by_path.unwrap().set_len(9000).unwrap();
    mounted.both("file", &[vec![1; 5000], vec![0; 4000]].concat());
    assert_eq!(before.metadata().unwrap().len(), 9000);
    drop(File::create(mounted.at.join("file")).unwrap());
    mounted.both("file", b"");
    before.write_all_at(&[2; 10], 0).unwrap();
    mounted.both("file", &[2; 10]);
}

#[test]
fn a_mapping_is_the_sources() {
    let Some(mounted) = bypass() else {
        return;
    };
    mounted.put("file", vec![1; 8192]);
    let file = open(mounted.at.join("file"));
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping, used within its length and unmapped once. No other thread uses it.
    unsafe {
        let at = mmap(std::ptr::null_mut(), 8192, protection, flags, &file, 0).unwrap();
        let byte = at.cast::<u8>().add(5000);
        assert_eq!(byte.read_volatile(), 1);
        byte.write_volatile(9);
        // Before it is synced: the pages are those of the source's file.
        assert_eq!(mounted.behind("file")[5000], 9);
        file.write_all_at(&[7], 5000).unwrap();
        assert_eq!(byte.read_volatile(), 7);
        let behind = open(mounted.source.join("file"));
        behind.write_all_at(&[8], 5000).unwrap();
        assert_eq!(byte.read_volatile(), 8);
        msync(at, 8192, MsyncFlags::SYNC).unwrap();
        munmap(at, 8192).unwrap();
    }
    let content = [vec![1; 5000], vec![8], vec![1; 3191]].concat();
    mounted.both("file", &content);
}

#[test]
fn two_handles_see_each_other() {
    let Some(mounted) = bypass() else {
        return;
    };
    fs::write(mounted.source.join("file"), vec![1; 10_000]).unwrap();
    let mut before = File::open(mounted.at.join("file")).unwrap();
    let after = open(mounted.at.join("file"));
    after.write_all_at(&[2; 20_000], 0).unwrap();
    let mut found = Vec::new();
    before.read_to_end(&mut found).unwrap();
    assert!(found == [2; 20_000]);
    assert_eq!(before.metadata().unwrap().len(), 20_000);
    let refused = before.write_all_at(&[9], 0).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
    drop(before);
    after.write_all_at(&[3; 5000], 0).unwrap();
    mounted.both("file", &[vec![3; 5000], vec![2; 15_000]].concat());
    after.sync_all().unwrap();
}

#[test]
fn names_go_while_a_file_is_open() {
    let Some(mounted) = bypass() else {
        return;
    };
    mounted.put("file", "old");
    let file = open(mounted.at.join("file"));
    fs::rename(mounted.at.join("file"), mounted.at.join("other")).unwrap();
    file.write_all_at(b"new", 0).unwrap();
    mounted.both("other", b"new");
    // Another one takes its name.
    mounted.put("third", "third");
    let third = open(mounted.at.join("third"));
    fs::rename(mounted.at.join("third"), mounted.at.join("other")).unwrap();
    mounted.both("other", b"third");
    file.write_all_at(b"still here", 0).unwrap();
    let mut found = [0; 10];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"still here");
    let attributes = file.metadata().unwrap();
    assert_eq!((attributes.nlink(), attributes.len()), (0, 10));
    mounted.both("other", b"third");
    fs::remove_file(mounted.at.join("other")).unwrap();
    assert!(!mounted.source.join("other").exists());
    third.write_all_at(&[4; 5000], 0).unwrap();
    let mut found = [0; 5000];
    third.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [4; 5000]);
    let attributes = third.metadata().unwrap();
    assert_eq!((attributes.nlink(), attributes.len()), (0, 5000));
}

#[test]
fn a_sync_reaches_the_source() {
    let Some(mounted) = bypass() else {
        return;
    };
    let file = open(mounted.at.join("file"));
    file.write_all_at(&[1; 5000], 0).unwrap();
    let before = mounted.mount.stats().backing_syncs;
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    assert_eq!(mounted.mount.stats().backing_syncs, before + 2);
}

#[test]
fn a_read_only_mount_reads_the_source() {
    let Some(writable) = bypass() else {
        return;
    };
    let at = crate::directory();
    let source = crate::directory();
    fs::write(source.path().join("file"), [1; 5000]).unwrap();
    let options = MountOptions::new(source.path(), at.path()).mode(Mode::Bypass);
    let mount = options.read_only(true).mount().unwrap();
    assert_eq!(fs::read(at.path().join("file")).unwrap(), [1; 5000]);
    let refused = fs::write(at.path().join("file"), "other").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    let open = File::open(at.path().join("file")).unwrap();
    assert!(matches!(mount.unmount(), Err(FsError::InUse { .. })));
    drop(open);
    mount.unmount().unwrap();
    drop(writable);
}

#[test]
fn a_program_runs_and_is_replaced() {
    let Some(mounted) = bypass() else {
        return;
    };
    // By another process: a descriptor that can write, which a new process inherits for a moment, would keep it from running.
    let (path, behind) = (mounted.at.join("program"), mounted.source.join("program"));
    let mut copy = Command::new("cp");
    copy.arg("/bin/sleep").arg(&behind);
    assert!(copy.status().unwrap().success());
    // One that is read by the mount runs from the source.
    let read = File::open(&path).unwrap();
    let status = Command::new(&behind).arg("0").status().unwrap();
    assert!(status.success());
    drop(read);
    let mut running = Command::new(&path).arg("1000").spawn().unwrap();
    // No program may write to one that runs, but another file may take its name.
    let busy = OpenOptions::new().write(true).open(&path).unwrap_err();
    assert_eq!(busy.raw_os_error(), Some(libc::ETXTBSY));
    mounted.put("new", "text");
    fs::rename(mounted.at.join("new"), &path).unwrap();
    mounted.both("program", b"text");
    running.kill().unwrap();
    running.wait().unwrap();
}
