//! What the guide promises, sentence by sentence.

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use larder_fs::{Coherence, Control, DiskModel, FsError, MountOptions, Tune, mounts, unanswered};
use rustix::fs::{CWD, OFlags, RenameFlags, fcntl_setfl, renameat_with};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::many::with_many;
use crate::{Mounted, mounted, opened_by_the_kernel, soon};

/// A test of a mount by default, and of one whose files the kernel opens and closes by itself.
fn in_both_ways(with: impl Fn(MountOptions) -> MountOptions, test: impl Fn(Mounted)) {
    for silent in [false, true] {
        let ways = |options| match silent {
            true => opened_by_the_kernel(with(options)),
            false => with(options),
        };
        match mounted(ways) {
            Some(mounted) => test(mounted),
            None => return,
        }
    }
}

#[test]
fn what_dies_young_is_never_written() {
    in_both_ways(
        |options| options,
        |mounted| {
            for n in 0..20 {
                mounted.put("young", vec![n; 50_000]);
                assert_eq!(mounted.get("young"), vec![n; 50_000]);
                fs::remove_file(mounted.at.join("young")).unwrap();
            }
            mounted.mount.sync().unwrap();
            let stats = mounted.mount.stats();
            assert_eq!(stats.backing_written_bytes, 0);
            assert!(
                stats.never_written_bytes >= 20 * 50_000,
                "{}",
                stats.never_written_bytes
            );
        },
    );
}

#[test]
fn rename_over_a_file_writes_the_new_content_first() {
    in_both_ways(
        |options| options.dirty_age(Duration::from_secs(3600)),
        |mounted| {
            mounted.put("file", "old");
            mounted.mount.sync().unwrap();
            mounted.put("new", vec![7; 10_000]);
            assert!(
                mounted.behind("new").is_empty(),
                "nothing is written before it must"
            );
            fs::rename(mounted.at.join("new"), mounted.at.join("file")).unwrap();
            assert_eq!(mounted.behind("file"), vec![7; 10_000]);
        },
    );
}

#[test]
fn an_unlinked_file_lives_while_it_is_open() {
    in_both_ways(
        |options| options,
        |mounted| {
            let path = mounted.at.join("file");
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .unwrap();
            file.write_all(&[1; 9000]).unwrap();
            fs::remove_file(&path).unwrap();
            file.write_all(&[2; 9000]).unwrap();
            mounted.mount.drop_caches().unwrap();
            file.rewind().unwrap();
            let mut all = Vec::new();
            file.read_to_end(&mut all).unwrap();
            assert_eq!(all, [vec![1; 9000], vec![2; 9000]].concat());
            assert_eq!(file.metadata().unwrap().nlink(), 0);
            drop(file);
            let before = mounted.mount.stats().inodes;
            soon(
                || mounted.mount.stats().inodes < before || before == 1,
                "the inode goes",
            );
        },
    );
}

#[test]
fn appends_by_two_do_not_meet() {
    in_both_ways(
        |options| options,
        |mounted| {
            let path = mounted.at.join("log");
            std::thread::scope(|scope| {
                for byte in [1, 2] {
                    let mut file = OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(&path)
                        .unwrap();
                    scope.spawn(move || {
                        for _ in 0..500 {
                            file.write_all(&[byte; 7]).unwrap();
                        }
                    });
                }
            });
            let all = mounted.get("log");
            assert_eq!(all.len(), 7000);
            assert!(
                all.chunks(7)
                    .all(|piece| piece == [1; 7] || piece == [2; 7])
            );
            mounted.mount.unmount().unwrap();
            assert_eq!(mounted.behind("log"), all);
        },
    );
}

#[test]
fn a_write_goes_by_the_flags_that_its_file_has_now() {
    in_both_ways(
        |options| options,
        |mounted| {
            mounted.put("file", "text");
            let mut options = OpenOptions::new();
            let path = mounted.at.join("file");
            let file = options.read(true).append(true).open(path).unwrap();
            fcntl_setfl(&file, OFlags::empty()).unwrap();
            file.write_all_at(b"T", 0).unwrap();
            assert_eq!(mounted.get("file"), b"Text");
            fcntl_setfl(&file, OFlags::APPEND).unwrap();
            file.write_all_at(b"s", 0).unwrap();
            assert_eq!(mounted.get("file"), b"Texts");
        },
    );
}

#[test]
fn a_write_that_asks_for_a_sync_is_synced() {
    in_both_ways(
        |options| options.dirty_age(Duration::from_secs(3600)),
        |mounted| {
            let file = File::create(mounted.at.join("file")).unwrap();
            file.write_all_at(&[1; 5000], 0).unwrap();
            assert_eq!(mounted.behind("file"), b"");
            let before = mounted.mount.stats().backing_syncs;
            for (flags, byte) in [(ReadWriteFlags::DSYNC, 2), (ReadWriteFlags::SYNC, 3)] {
                let bytes = [byte; 5000];
                let done = pwritev2(&file, &[IoSlice::new(&bytes)], 0, flags).unwrap();
                assert_eq!(done, bytes.len());
                assert_eq!(mounted.behind("file"), bytes);
            }
            assert!(mounted.mount.stats().backing_syncs >= before + 2);
        },
    );
}

#[test]
fn what_others_change_is_found_at_open() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    fs::write(mounted.source.join("file"), vec![1; 20_000]).unwrap();
    assert_eq!(mounted.get("file"), vec![1; 20_000]);
    fs::write(mounted.source.join("file"), vec![2; 30_000]).unwrap();
    assert_eq!(mounted.get("file"), vec![2; 30_000]);
    assert_eq!(mounted.mount.stats().outside_changes, 1);
    // What is dirty here wins, and that is counted.
    let file = OpenOptions::new()
        .write(true)
        .open(mounted.at.join("file"))
        .unwrap();
    file.write_all_at(&[3; 100], 0).unwrap();
    fs::write(mounted.source.join("file"), vec![4; 10]).unwrap();
    assert_eq!(mounted.get("file")[..100], [3; 100]);
    assert_eq!(mounted.mount.stats().conflicts, 1);
}

#[test]
fn a_second_mount_of_a_source_is_refused() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let other = crate::directory();
    let again = MountOptions::new(&mounted.source, other.path()).mount();
    assert!(matches!(again, Err(FsError::Busy { .. })));
    let inside = mounted.source.join("inside");
    fs::create_dir(&inside).unwrap();
    for (source, at) in [
        (&mounted.source, &inside),
        (&inside, &mounted.source),
        (&inside, &inside),
    ] {
        let nested = MountOptions::new(source, at).mount();
        assert!(matches!(nested, Err(FsError::Nested { .. })));
    }
}

#[test]
fn directories_within_each_other_are_not_mounted_at_a_time() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let at = [crate::directory(), crate::directory()];
    let [outer, middle, inner] = ["a", "a/b", "a/b/c"].map(|name| mounted.source.join(name));
    fs::create_dir_all(&inner).unwrap();
    let within = MountOptions::new(&inner, at[0].path()).mount();
    assert!(matches!(within, Err(FsError::Busy { path }) if path == mounted.source));
    mounted.mount.unmount().unwrap();
    let mount = |source: &PathBuf, n: usize| MountOptions::new(source, at[n].path()).mount();
    let held = mount(&middle, 0).unwrap();
    for other in [&outer, &inner, &middle] {
        let refused = mount(other, 1);
        assert!(matches!(refused, Err(FsError::Busy { .. })), "{other:?}");
    }
    // Beside it there is room.
    let beside = outer.join("d");
    fs::create_dir(&beside).unwrap();
    drop(mount(&beside, 1).unwrap());
    held.unmount().unwrap();
    drop(mount(&outer, 1).unwrap());
}

#[test]
fn a_file_that_lost_its_name_unopened_can_be_read_where_it_is_known() {
    let Some(mounted) = mounted(|options| options.dirty_age(Duration::from_secs(3600))) else {
        return;
    };
    let content: Vec<u8> = (0..50_000).map(|n| (n % 251) as u8).collect();
    mounted.put("file", &content);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let path = mounted.at.join("file");
    let known = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
    fs::remove_file(&path).unwrap();
    let again = format!("/proc/self/fd/{}", known.as_raw_fd());
    assert!(fs::read(&again).unwrap() == content);
    drop(known);
    soon(|| mounted.mount.stats().dirty_bytes == 0, "it is forgotten");
    assert_eq!(mounted.mount.stats().backing_written_bytes, 0);
}

#[test]
fn what_is_written_is_no_newer_than_what_is_made_after_it() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let time = |name: &str| {
        fs::metadata(mounted.at.join(name))
            .unwrap()
            .modified()
            .unwrap()
    };
    for n in 0..200 {
        let (written, made) = (format!("{n}.o"), format!("{n}.stamp"));
        mounted.put(&written, "text");
        mounted.put(&made, "");
        assert!(time(&written) <= time(&made), "{n}");
    }
}

#[test]
fn dropping_forgets_what_is_known_of_names_and_attributes() {
    let options = |options: MountOptions| options.coherence(Coherence::Exclusive);
    let Some(mounted) = mounted(options) else {
        return;
    };
    let sub = |root: &Path| root.join("sub");
    fs::create_dir(sub(&mounted.at)).unwrap();
    for name in ["sub/file", "sub/other"] {
        mounted.put(name, "text");
    }
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    let seen = || {
        let names = fs::read_dir(sub(&mounted.at)).unwrap().count();
        (
            names,
            mode(sub(&mounted.at)),
            mode(mounted.at.join("sub/file")),
        )
    };
    let before @ (names, of_sub, of_file) = seen();
    // Behind the back of a mount that looks for nothing.
    let set = |path: PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(sub(&mounted.source), of_sub ^ 0o022).unwrap();
    set(mounted.source.join("sub/file"), of_file ^ 0o022).unwrap();
    fs::remove_file(mounted.source.join("sub/other")).unwrap();
    assert_eq!(seen(), before);
    assert!(fs::metadata(mounted.at.join("sub/other")).is_ok());
    mounted.mount.drop_caches().unwrap();
    assert_eq!(seen(), (names - 1, of_sub ^ 0o022, of_file ^ 0o022));
    assert!(fs::metadata(mounted.at.join("sub/other")).is_err());
}

#[test]
fn what_tune_refuses_changes_nothing() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let state = || {
        let stats = mounted.mount.stats();
        (stats.rule, stats.capacity_bytes)
    };
    let before = state();
    let tune = |bytes| Tune {
        cache_bytes: Some(bytes),
        rule: Some("lirs".to_owned()),
        ..Tune::default()
    };
    let much = mounted.mount.tune(&tune(64 << 20)).unwrap_err();
    assert!(matches!(much, FsError::Most { most, .. } if most == 4 << 20));
    let little = mounted.mount.tune(&tune(1 << 10)).unwrap_err();
    assert!(matches!(little, FsError::Budget { .. }));
    assert_eq!(state(), before);
}

#[test]
fn names_change_places_and_files_have_none_as_on_the_source() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let [one, two] = ["one", "two"].map(|name| mounted.at.join(name));
    mounted.put("one", "1");
    mounted.put("two", "2");
    let rename = |flags| renameat_with(CWD, &one, CWD, &two, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(
        (mounted.get("one"), mounted.get("two")),
        (vec![b'2'], vec![b'1'])
    );
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let mut unnamed = match rustix::fs::open(&mounted.at, flags, mode) {
        Ok(file) => File::from(file),
        Err(error) => return eprintln!("skipped: a file without a name: {error}"),
    };
    unnamed.write_all(b"words").unwrap();
    assert_eq!(fs::read_dir(&mounted.at).unwrap().count(), 2);
    let path = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(CWD, path, CWD, mounted.at.join("named"), follow).unwrap();
    drop(unnamed);
    assert_eq!(mounted.get("named"), b"words");
    mounted.mount.unmount().unwrap();
    assert_eq!(
        (mounted.behind("one"), mounted.behind("named")),
        (b"2".to_vec(), b"words".to_vec())
    );
}

#[test]
fn locks_hold_among_the_programs_of_a_mount() {
    use rustix::fs::{FlockOperation, fcntl_lock, flock};
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    mounted.put("file", "text");
    let open = || {
        let path = mounted.at.join("file");
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap()
    };
    let (one, two) = (open(), open());
    flock(&one, FlockOperation::LockExclusive).unwrap();
    let try_two = || flock(&two, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(try_two(), Err(Errno::WOULDBLOCK));
    flock(&one, FlockOperation::Unlock).unwrap();
    try_two().unwrap();
    fcntl_lock(&one, FlockOperation::LockExclusive).unwrap();
    // Those of fcntl are between processes.
    let ask =
        "import fcntl,sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)";
    let other = Command::new("python3")
        .args(["-c", ask])
        .arg(mounted.at.join("file"))
        .output();
    match other {
        Ok(output) => assert!(!output.status.success()),
        Err(error) => eprintln!("skipped: another process: {error}"),
    }
}

#[test]
fn times_stay_as_programs_saw_them() {
    in_both_ways(
        |options| options.dirty_age(Duration::from_millis(50)),
        |mounted| {
            mounted.put("file", "text");
            let before = fs::metadata(mounted.at.join("file")).unwrap();
            soon(
                || mounted.behind("file") == b"text" && mounted.mount.stats().dirty_bytes == 0,
                "written back",
            );
            let time = || {
                fs::metadata(mounted.source.join("file"))
                    .unwrap()
                    .modified()
                    .unwrap()
            };
            soon(
                || time() == before.modified().unwrap(),
                "the source has the time",
            );
            let after = fs::metadata(mounted.at.join("file")).unwrap();
            assert_eq!(after.modified().unwrap(), before.modified().unwrap());
            assert_eq!(
                (after.ctime(), after.ctime_nsec()),
                (before.ctime(), before.ctime_nsec())
            );
        },
    );
}

#[test]
fn make_rebuilds_nothing() {
    // Write-back goes by the age of inodes, here against the order of writing, and gives each file another time. (`cp` would have the
    // source copy, in the order of writing.)
    let seek = Duration::from_millis(10);
    let disk = DiskModel {
        seek,
        bytes_per_second: 0,
        per_call: Duration::ZERO,
    };
    let Some(mounted) = mounted(|options| options.disk(disk).coherence(Coherence::Strict)) else {
        return;
    };
    for name in ["c", "b"] {
        mounted.put(name, "old");
    }
    mounted.mount.sync().unwrap();
    let make = || Command::new("make").arg("-C").arg(&mounted.at).output();
    mounted.put(
        "Makefile",
        "all: c\nb: a\n\tsed p a >b\nc: b\n\tsed p b >c\n",
    );
    mounted.put("a", "text");
    let Ok(first) = make() else {
        eprintln!("skipped: there is no make");
        return;
    };
    assert!(first.status.success(), "{first:?}");
    assert!(String::from_utf8_lossy(&first.stdout).contains("sed p b"));
    mounted.mount.drop_caches().unwrap();
    let second = make().unwrap();
    assert!(
        !String::from_utf8_lossy(&second.stdout).contains("sed"),
        "{second:?}"
    );
}

#[test]
fn files_belong_to_their_makers() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    fs::set_permissions(&mounted.at, fs::Permissions::from_mode(0o777)).unwrap();
    let script = "umask 027; echo x >file; mkdir dir; ln -s file link; mkfifo pipe";
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(&mounted.at)
        .uid(1234)
        .gid(4321)
        .status()
        .unwrap();
    assert!(done.success());
    for (name, mode) in [
        ("file", 0o100_640),
        ("dir", 0o40_750),
        ("link", 0o120_777),
        ("pipe", 0o10_640),
    ] {
        let found = fs::symlink_metadata(mounted.source.join(name)).unwrap();
        assert_eq!(
            (found.uid(), found.gid(), found.mode()),
            (1234, 4321, mode),
            "{name}"
        );
    }
    // Another may not read it.
    let read = Command::new("cat")
        .arg(mounted.at.join("file"))
        .uid(1235)
        .gid(1235)
        .output()
        .unwrap();
    assert!(!read.status.success());
}

/// Another than the owner writes to a file with a right to run as the owner, which others have changed meanwhile.
#[test]
fn a_write_that_takes_a_right_finds_what_others_changed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let Some(mounted) = mounted(|options| options.coherence(Coherence::Exclusive)) else {
        return;
    };
    let behind = mounted.source.join("file");
    fs::write(&behind, [1; 10_000]).unwrap();
    fs::set_permissions(&behind, fs::Permissions::from_mode(0o4777)).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(mounted.at.join("file"))
        .unwrap();
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, 4096).unwrap();
    fs::write(&behind, [2; 12_000]).unwrap();
    let mut shell = Command::new("sh")
        .args(["-c", "printf text"])
        .stdout(file.try_clone().unwrap())
        .uid(1234)
        .gid(4321)
        .spawn()
        .unwrap();
    soon(|| shell.try_wait().unwrap().is_some(), "it writes");
    file.read_exact_at(&mut page, 4096).unwrap();
    assert_eq!(page, [2; 4096]);
    file.read_exact_at(&mut page, 0).unwrap();
    assert_eq!((&page[..4], page[4]), (b"text".as_slice(), 2));
    assert_eq!(file.metadata().unwrap().mode(), 0o100_777);
    assert_eq!(mounted.mount.stats().outside_changes, 1);
}

#[test]
fn what_the_kernel_opens_by_itself_is_not_asked_for() {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let release: [_; 3] = std::array::from_fn(|_| numbers.next().and_then(Result::ok));
    if release < [6, 18, 10].map(Some) {
        eprintln!("skipped: it needs Linux 6.18.10");
        return;
    }
    let Some(mounted) = mounted(opened_by_the_kernel) else {
        return;
    };
    let count = |name: &str| {
        let stats = mounted.mount.stats();
        stats.operations.get(name).map_or(0, |done| done.count)
    };
    mounted.put("first", "");
    // The answer says that it need not ask.
    mounted.get("first");
    for n in 0..50 {
        mounted.put(&n.to_string(), [n; 8192]);
    }
    let reads = count("read");
    for n in 0..50_u8 {
        assert_eq!(mounted.get(&n.to_string()), [n; 8192]);
        assert_eq!(mounted.get(&n.to_string()), [n; 8192]);
    }
    // What it wrote it has.
    assert!(count("open") <= 1 && count("flush") <= 1 && count("release") <= 1);
    assert_eq!((count("read"), mounted.mount.stats().open), (reads, 0));
    // A cut by opening is one by name.
    let mut options = OpenOptions::new();
    let path = mounted.at.join("7");
    drop(options.write(true).truncate(true).open(&path).unwrap());
    assert_eq!(mounted.get("7"), b"");
    let behind = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let files = targets.filter(|path| path.parent() == Some(&mounted.source));
        files.count() as u64
    };
    // Each inode but the root has a descriptor for its path here, and those with data one for that.
    let known = mounted.mount.stats().inodes - 1;
    assert!(behind() > known);
    mounted.mount.sync().unwrap();
    soon(|| behind() == known, "files are closed");
}

#[test]
fn close_to_open_and_write_through_write_at_once() {
    let Some(mounted) = mounted(|options| options.close_to_open(true)) else {
        return;
    };
    mounted.put("file", "closed");
    assert_eq!(mounted.behind("file"), b"closed");
    drop(mounted);
    let Some(mounted) = crate::mounted(|options| options.write_through(true)) else {
        return;
    };
    let file = File::create(mounted.at.join("file")).unwrap();
    file.write_all_at(b"written", 0).unwrap();
    assert_eq!(mounted.behind("file"), b"written");
}

#[test]
fn fsync_reaches_the_source() {
    in_both_ways(
        |options| options.dirty_age(Duration::from_secs(3600)),
        |mounted| {
            let file = File::create(mounted.at.join("file")).unwrap();
            file.write_all_at(&[5; 5000], 0).unwrap();
            assert_eq!(mounted.behind("file"), b"");
            file.sync_data().unwrap();
            assert_eq!(mounted.behind("file"), [5; 5000]);
            file.set_len(100_000).unwrap();
            file.sync_all().unwrap();
            assert_eq!(mounted.behind("file").len(), 100_000);
            assert!(mounted.mount.stats().backing_syncs >= 2);
        },
    );
}

#[test]
fn a_mapping_sees_and_makes_changes() {
    in_both_ways(
        |options| options,
        |mounted| {
            let path = mounted.at.join("file");
            mounted.put("file", vec![1; 8192]);
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap();
            use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
            // SAFETY: a new mapping, used within its length and unmapped once.
            unsafe {
                let at = mmap(std::ptr::null_mut(), 8192, protection, flags, &file, 0).unwrap();
                assert_eq!(*at.cast::<u8>().add(5000), 1);
                at.cast::<u8>().add(5000).write(9);
                msync(at, 8192, MsyncFlags::SYNC).unwrap();
                munmap(at, 8192).unwrap();
            }
            assert_eq!(mounted.get("file")[5000], 9);
            assert_eq!(mounted.behind("file")[5000], 9, "msync makes it safe");
        },
    );
}

#[test]
fn commands_come_by_the_socket() {
    let Some(mounted) = mounted(|options| options.most_bytes(16 << 20)) else {
        return;
    };
    mounted.put("file", vec![1; 100_000]);
    let control = Control::connect(&mounted.at).unwrap();
    let stats = control.stats().unwrap();
    assert_eq!(
        (stats.mode.as_str(), stats.rule.as_str()),
        ("own", "adaptive")
    );
    assert!(stats.dirty_bytes >= 100_000 && stats.operations["write"].count > 0);
    assert!(mounts().iter().any(|mount| mount.mountpoint == mounted.at));
    control.sync().unwrap();
    assert_eq!(
        (
            mounted.behind("file").len(),
            control.stats().unwrap().dirty_bytes
        ),
        (100_000, 0)
    );
    control.drop_caches().unwrap();
    assert_eq!(control.stats().unwrap().resident_bytes, 0);
    let cache_bytes = Some(16 << 20);
    let tune = Tune {
        cache_bytes,
        ..Tune::default()
    };
    control.tune(&tune).unwrap();
    assert!(control.stats().unwrap().capacity_bytes > 8 << 20);
    let busy = File::open(mounted.at.join("file")).unwrap();
    assert!(
        matches!(control.unmount(), Err(FsError::Refused(_))),
        "a program has a file open"
    );
    drop(busy);
    mounted.put("last", "words");
    soon(|| control.unmount().is_ok(), "unmounts");
    assert_eq!(mounted.behind("last"), b"words");
    assert!(fs::read_dir(&mounted.at).unwrap().next().is_none());
    mounted.mount.wait().unwrap();
}

/// The socket of a mount, which answers with its mountpoint.
fn socket(at: &Path) -> PathBuf {
    let of_login = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("larder"));
    let of_any = format!("/tmp/larder-{}", rustix::process::geteuid().as_raw());
    let directories = of_login
        .into_iter()
        .chain(["/run/larder".into(), of_any.into()]);
    let answers = |path: &PathBuf| {
        let mut line = String::new();
        let mut ask = || -> std::io::Result<usize> {
            let mut stream = UnixStream::connect(path)?;
            stream.write_all(b"\"Stats\"\n")?;
            stream.read_to_string(&mut line)
        };
        ask().is_ok() && line.contains(at.to_str().unwrap())
    };
    let mut all = directories
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten()
        .map(|entry| entry.unwrap().path());
    all.find(answers).expect("the socket")
}

#[test]
fn a_mount_without_its_socket_works_and_makes_another() {
    let Some(mounted) = mounted(|options| options.dirty_age(Duration::from_secs(3600))) else {
        return;
    };
    let path = socket(&mounted.at);
    // A directory in its place keeps it from being made anew.
    let replace = || {
        let other = path.with_extension("other");
        fs::create_dir(&other).unwrap();
        renameat_with(CWD, &other, CWD, &path, RenameFlags::EXCHANGE).unwrap();
        fs::remove_file(&other).unwrap();
    };
    replace();
    let error = Control::connect(&mounted.at).unwrap_err();
    assert!(matches!(error, FsError::NoMount { .. }));
    let text = error.to_string();
    assert!(
        text.contains(path.to_str().unwrap()) && text.contains("umount"),
        "{text}"
    );
    let all = mounts();
    assert!(all.iter().all(|mount| mount.mountpoint != mounted.at));
    assert!(unanswered(&all).contains(&mounted.at));
    mounted.put("file", "text");
    assert_eq!(mounted.get("file"), b"text");

    fs::remove_dir(&path).unwrap();
    soon(|| Control::connect(&mounted.at).is_ok(), "another socket");
    let all = mounts();
    assert!(all.iter().any(|mount| mount.mountpoint == mounted.at));
    assert!(!unanswered(&all).contains(&mounted.at));
    Control::connect(&mounted.at).unwrap().sync().unwrap();
    assert_eq!(mounted.behind("file"), b"text");

    // Nor does its end need one, and what is there instead stays.
    replace();
    mounted.put("last", "words");
    soon(|| mounted.mount.unmount().is_ok(), "unmounts");
    assert_eq!(mounted.behind("last"), b"words");
    drop(mounted);
    fs::remove_dir(&path).unwrap();
}

#[test]
fn a_plain_umount_writes_back() {
    let Some(mounted) = mounted(|options| options.dirty_age(Duration::from_secs(3600))) else {
        return;
    };
    mounted.put("last", "words");
    assert_eq!(mounted.behind("last"), b"");
    rustix::mount::unmount(&mounted.at, rustix::mount::UnmountFlags::empty()).unwrap();
    mounted.mount.wait().unwrap();
    assert_eq!(mounted.behind("last"), b"words");
}

#[test]
fn a_read_only_mount_changes_nothing() {
    let Some(mounted) = mounted(|options| options.read_only(true)) else {
        return;
    };
    fs::write(mounted.source.join("file"), "text").unwrap();
    assert_eq!(mounted.get("file"), b"text");
    let refused = fs::write(mounted.at.join("file"), "other").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    assert!(fs::remove_file(mounted.at.join("file")).is_err());
}

#[test]
fn inodes_stay_within_their_share() {
    let words = |directory, file| format!("{directory} {file}").into_bytes();
    let Some(mounted) = with_many(words) else {
        return;
    };
    let most = mounted.mount.stats().most_inodes;
    for _ in 0..2 {
        for directory in 0..20 {
            for file in 0..100 {
                assert_eq!(
                    mounted.get(&format!("{directory}/{file}")),
                    words(directory, file)
                );
            }
        }
    }
    soon(
        || mounted.mount.stats().inodes <= most + most / 4,
        "the others go",
    );
    assert!(mounted.mount.stats().invalidated > 0);
}

#[test]
fn names_links_and_attributes_are_the_sources() {
    let Some(mounted) = mounted(|options| options.cache_bytes(1 << 20)) else {
        return;
    };
    mounted.put("file", "text");
    fs::hard_link(mounted.at.join("file"), mounted.at.join("other")).unwrap();
    symlink("file", mounted.at.join("link")).unwrap();
    let numbers = |root: &Path, name| fs::symlink_metadata(root.join(name)).unwrap().ino();
    for name in ["file", "other", "link"] {
        assert_eq!(
            numbers(&mounted.at, name),
            numbers(&mounted.source, name),
            "{name}"
        );
    }
    assert_eq!(numbers(&mounted.at, "file"), numbers(&mounted.at, "other"));
    fs::write(mounted.at.join("other"), "by the other name").unwrap();
    assert_eq!(mounted.get("link"), b"by the other name");
    // A long directory is read whole, while it changes.
    fs::create_dir(mounted.at.join("d")).unwrap();
    for n in 0..3000 {
        File::create(mounted.at.join(format!("d/{n:0100}"))).unwrap();
    }
    let list = fs::read_dir(mounted.at.join("d")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for entry in list {
        let entry = entry.unwrap();
        fs::remove_file(entry.path()).unwrap();
        assert!(seen.insert(entry.file_name()));
    }
    assert_eq!(seen.len(), 3000);
    assert_eq!(fs::read_dir(mounted.source.join("d")).unwrap().count(), 0);
}
