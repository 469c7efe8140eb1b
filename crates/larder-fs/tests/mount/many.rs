//! More inodes than the budget allows.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use larder_fs::Coherence;

use crate::{Mounted, mounted, soon};

/// A source of 20 directories with 100 files each, whose contents are those of their numbers, and fewer inodes than these.
pub(crate) fn with_many(content: impl Fn(usize, usize) -> Vec<u8>) -> Option<Mounted> {
    let small = mounted(|options| options.cache_bytes(1 << 20).coherence(Coherence::Exclusive))?;
    for directory in 0..20 {
        let path = small.source.join(format!("{directory}"));
        fs::create_dir(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("{file}")), content(directory, file)).unwrap();
        }
    }
    assert!(small.mount.stats().most_inodes < 1000);
    Some(small)
}

#[test]
fn a_working_directory_keeps_its_name() {
    let Some(mounted) = with_many(|_, _| Vec::new()) else {
        return;
    };
    let own = mounted.at.join("7");
    let mut shell = Command::new("sh")
        .args(["-c", "read line; exec readlink /proc/self/cwd"])
        .current_dir(&own)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let most = mounted.mount.stats().most_inodes;
    for _ in 0..3 {
        for directory in 0..20 {
            for file in 0..100 {
                fs::metadata(mounted.at.join(format!("{directory}/{file}"))).unwrap();
            }
        }
        soon(
            || mounted.mount.stats().inodes <= most + most / 4,
            "the others go",
        );
    }
    assert!(mounted.mount.stats().invalidated > most);
    shell.stdin.take().unwrap().write_all(b"\n").unwrap();
    let said = shell.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&said.stdout).trim(),
        own.to_str().unwrap()
    );
}

#[test]
fn find_sees_every_size() {
    let Some(mounted) = with_many(|_, file| vec![1; file % 4 * 512]) else {
        return;
    };
    let most = mounted.mount.stats().most_inodes;
    for _ in 0..3 {
        for blocks in 0..4 {
            let mut find = Command::new("timeout");
            find.args(["60", "find", "-type", "f", "-size", &blocks.to_string()]);
            let found = find.current_dir(&mounted.at).output().unwrap();
            assert!(found.status.success(), "{found:?}");
            let lines = found.stdout.iter().filter(|byte| **byte == b'\n');
            assert_eq!(lines.count(), 500, "files of {blocks} blocks");
        }
        soon(
            || mounted.mount.stats().inodes <= most + most / 4,
            "the others go",
        );
    }
}
