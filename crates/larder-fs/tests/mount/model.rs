//! Random operations on the mount and on a plain directory have the same results and leave the same tree.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use larder_fs::{Mode, MountOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::bypass::bypass;
use crate::uring::{Offered, least_bytes};
use crate::{directory, mounted, opened_by_the_kernel};

const NAMES: [&str; 6] = ["a", "b", "c", "d/a", "d/b", "e"];

#[derive(Debug, Clone)]
enum Operation {
    Write {
        name: usize,
        at: u64,
        len: usize,
        byte: u8,
    },
    Append {
        name: usize,
        len: usize,
        byte: u8,
    },
    Read {
        name: usize,
        at: u64,
        len: usize,
    },
    Truncate {
        name: usize,
        len: u64,
    },
    Create {
        name: usize,
        truncate: bool,
    },
    Allocate {
        name: usize,
        mode: FallocateFlags,
        at: u64,
        len: u64,
    },
    Seek {
        name: usize,
        at: u64,
        hole: bool,
    },
    Copy {
        from: usize,
        to: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Link {
        from: usize,
        to: usize,
    },
    Symlink {
        to: usize,
    },
    Unlink {
        name: usize,
    },
    MakeDirectory {
        name: usize,
    },
    RemoveDirectory {
        name: usize,
    },
    Chmod {
        name: usize,
        mode: u32,
    },
    Stat {
        name: usize,
    },
    List {
        name: usize,
    },
    Sync {
        name: usize,
    },
    /// Not one of the programs: blocks leave.
    Drop,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let name = 0..NAMES.len();
    let at = prop_oneof![
        Just(0_u64),
        0..20_000_u64,
        (0..80_u64).prop_map(|n| n * 4096),
        0..400_000_u64
    ];
    let len = prop_oneof![Just(4096_usize), 0..300_usize, 0..70_000_usize];
    let end = prop_oneof![Just(0_u64), 0..9000_u64, 0..400_000_u64];
    let mode = prop_oneof![
        Just(FallocateFlags::empty()),
        Just(FallocateFlags::KEEP_SIZE),
        Just(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE),
        Just(FallocateFlags::ZERO_RANGE),
    ];
    prop_oneof![
        6 => (name.clone(), at.clone(), len.clone(), 1..=255_u8).prop_map(|(name, at, len, byte)| Write { name, at, len, byte }),
        2 => (name.clone(), len.clone(), 1..=255_u8).prop_map(|(name, len, byte)| Append { name, len, byte }),
        6 => (name.clone(), at.clone(), len.clone()).prop_map(|(name, at, len)| Read { name, at, len }),
        2 => (name.clone(), end).prop_map(|(name, len)| Truncate { name, len }),
        3 => (name.clone(), any::<bool>()).prop_map(|(name, truncate)| Create { name, truncate }),
        1 => (name.clone(), mode, at.clone(), 1..50_000_u64).prop_map(|(name, mode, at, len)| Allocate { name, mode, at, len }),
        1 => (name.clone(), 0..400_000_u64, any::<bool>()).prop_map(|(name, at, hole)| Seek { name, at, hole }),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Copy { from, to }),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| Rename { from, to }),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Link { from, to }),
        1 => name.clone().prop_map(|to| Symlink { to }),
        2 => name.clone().prop_map(|name| Unlink { name }),
        1 => name.clone().prop_map(|name| MakeDirectory { name }),
        1 => name.clone().prop_map(|name| RemoveDirectory { name }),
        1 => (name.clone(), 0o600..0o7777_u32).prop_map(|(name, mode)| Chmod { name, mode: mode | 0o600 }),
        2 => name.clone().prop_map(|name| Stat { name }),
        1 => name.clone().prop_map(|name| List { name }),
        1 => name.prop_map(|name| Sync { name }),
        1 => Just(Drop),
    ]
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// What a program sees of a file, without what differs between file systems.
fn seen(path: &Path) -> io::Result<String> {
    let found = fs::symlink_metadata(path)?;
    let size = if found.is_dir() { 0 } else { found.len() };
    let links = if found.is_dir() { 0 } else { found.nlink() };
    Ok(format!("{:o} {size} {links}", found.mode()))
}

fn run(root: &Path, operation: &Operation) -> io::Result<Vec<u8>> {
    use Operation::*;
    let path = |name: usize| root.join(NAMES[name]);
    let nothing = |()| Vec::new();
    match *operation {
        Write {
            name,
            at,
            len,
            byte,
        } => open(&path(name))?
            .write_all_at(&vec![byte; len], at)
            .map(nothing),
        Append { name, len, byte } => {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path(name))?;
            file.write_all(&vec![byte; len]).map(nothing)
        }
        Read { name, at, len } => {
            let mut bytes = vec![0; len];
            let file = File::open(path(name))?;
            let mut have = 0;
            while have < len {
                match file.read_at(&mut bytes[have..], at + have as u64)? {
                    0 => break,
                    n => have += n,
                }
            }
            bytes.truncate(have);
            Ok(bytes)
        }
        Truncate { name, len } => open(&path(name))?.set_len(len).map(nothing),
        Create { name, truncate } => {
            let mut options = OpenOptions::new();
            options
                .write(true)
                .create(true)
                .truncate(truncate)
                .open(path(name))
                .map(drop)
                .map(nothing)
        }
        Allocate {
            name,
            mode,
            at,
            len,
        } => {
            let file = open(&path(name))?;
            rustix::fs::fallocate(file, mode, at, len)?;
            Ok(Vec::new())
        }
        Seek { name, at, hole } => {
            // Of a directory each file system says something else.
            let file = open(&path(name))?;
            let from = if hole {
                SeekFrom::Hole(at)
            } else {
                SeekFrom::Data(at)
            };
            // Where a file system has room without content it may say either. What it calls a hole must be zeroes.
            let content = fs::read(path(name))?;
            let len = content.len() as u64;
            let found = match rustix::fs::seek(file, from) {
                Err(Errno::NXIO) => len,
                found => found?,
            };
            assert!(
                (at..=len.max(at)).contains(&found) || at >= len,
                "{found} from {at} of {len}"
            );
            let from = at.min(len) as usize;
            let holes = &content[from..if hole { from } else { found as usize }];
            assert!(
                holes.iter().all(|&byte| byte == 0),
                "data before {found} from {at}"
            );
            Ok(Vec::new())
        }
        Copy { from, to } => fs::copy(path(from), path(to)).map(|n| n.to_string().into_bytes()),
        Rename { from, to } => fs::rename(path(from), path(to)).map(nothing),
        Link { from, to } => fs::hard_link(path(from), path(to)).map(nothing),
        Symlink { to } => std::os::unix::fs::symlink("a", path(to)).map(nothing),
        Unlink { name } => fs::remove_file(path(name)).map(nothing),
        MakeDirectory { name } => fs::create_dir(path(name)).map(nothing),
        RemoveDirectory { name } => fs::remove_dir(path(name)).map(nothing),
        Chmod { name, mode } => {
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).map(nothing)
        }
        Stat { name } => seen(&path(name)).map(String::into_bytes),
        List { name } => {
            let mut names: Vec<_> = fs::read_dir(path(name).parent().expect("has one"))?
                .map(|entry| entry.map(|entry| entry.file_name().into_encoded_bytes()))
                .collect::<Result<_, _>>()?;
            names.sort();
            Ok(names.join(&b'/'))
        }
        Sync { name } => open(&path(name))?.sync_all().map(nothing),
        Drop => Ok(Vec::new()),
    }
}

/// Paths, what programs see of them, and content.
fn tree(root: &Path) -> BTreeMap<String, (String, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(at).expect("a directory") {
            let path = entry.expect("an entry").path();
            let found = fs::symlink_metadata(&path).expect("is there");
            let content = match found.file_type() {
                kind if kind.is_file() => fs::read(&path).expect("reads"),
                kind if kind.is_symlink() => fs::read_link(&path)
                    .expect("a link")
                    .into_os_string()
                    .into_encoded_bytes(),
                _ => {
                    left.push(path.clone());
                    Vec::new()
                }
            };
            let name = path
                .strip_prefix(root)
                .expect("inside")
                .to_string_lossy()
                .into_owned();
            all.insert(name, (seen(&path).expect("is there"), content));
        }
    }
    all
}

fn same(with: impl Fn(MountOptions) -> MountOptions) {
    // Enough for the largest files to be evicted from the cache while they are used.
    let with = |options: MountOptions| with(options.cache_bytes(1 << 20));
    let Some(first) = mounted(with) else {
        return;
    };
    drop(first);
    let mut runner = TestRunner::new(Config {
        cases: std::env::var("LARDER_FS_CASES").map_or(24, |n| n.parse().expect("a number")),
        max_shrink_iters: 3000,
        failure_persistence: None,
        ..Config::default()
    });
    let all = proptest::collection::vec(operation(), 1..80);
    let result = runner.run(&all, |operations| {
        let mounted = mounted(with).expect("as before");
        let plain = directory();
        for root in [&mounted.at, plain.path()] {
            fs::create_dir(root.join("d")).expect("a directory");
        }
        for (at, operation) in operations.iter().enumerate() {
            let (ours, theirs) = (run(&mounted.at, operation), run(plain.path(), operation));
            let error =
                |result: &io::Result<_>| result.as_ref().err().and_then(io::Error::raw_os_error);
            prop_assert_eq!(
                error(&ours),
                error(&theirs),
                "operation {}: {:?}",
                at,
                operation
            );
            prop_assert!(
                ours.ok() == theirs.ok(),
                "operation {}: {:?}",
                at,
                operation
            );
            if matches!(operation, Operation::Drop) {
                mounted.mount.drop_caches().expect("writes back");
            }
        }
        let wanted = tree(plain.path());
        prop_assert!(tree(&mounted.at) == wanted, "the mount's tree");
        mounted.mount.unmount().expect("unmounts");
        prop_assert!(tree(&mounted.source) == wanted, "the source's tree");
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn own_is_as_a_plain_directory() {
    same(|options| options);
}

#[test]
fn shared_is_as_a_plain_directory() {
    same(|options| options.mode(Mode::Shared));
}

#[test]
fn opened_by_the_kernel_it_is_as_a_plain_directory() {
    same(opened_by_the_kernel);
}

#[test]
fn by_io_uring_it_is_as_a_plain_directory() {
    let Some(_offered) = Offered::new() else {
        return;
    };
    // Most of a cache that small would be the ring's buffers.
    same(|options| options.cache_bytes(least_bytes()).io_uring(true));
    same(|options| {
        let options = options.cache_bytes(least_bytes());
        options.io_uring(true).mode(Mode::Shared)
    });
    same(|options| {
        let options = options.cache_bytes(least_bytes());
        opened_by_the_kernel(options.io_uring(true))
    });
}

#[test]
fn bypass_is_as_a_plain_directory() {
    if bypass().is_some() {
        same(|options| options.mode(Mode::Bypass));
    }
}
