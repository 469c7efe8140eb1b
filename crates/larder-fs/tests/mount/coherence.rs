//! What others change in the source while the mount has something newer, or has looked a moment ago.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use larder_fs::Coherence;

use crate::mounted;

#[test]
fn what_others_append_to_a_dirty_file_stays() {
    let Some(mounted) = mounted(|options| options.dirty_age(Duration::from_secs(3600))) else {
        return;
    };
    let behind = mounted.source.join("file");
    fs::write(&behind, [1; 4096]).unwrap();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .open(mounted.at.join("file"))
        .unwrap();
    file.write_all_at(&[2], 0).unwrap();
    let mut others = OpenOptions::new().append(true).open(&behind).unwrap();
    others.write_all(&[3; 10_000]).unwrap();
    file.sync_all().unwrap();
    let mut content = [vec![2], vec![1; 4095], vec![3; 10_000]].concat();
    assert!(mounted.get("file") == content, "by the mount");
    // A part of a block keeps the rest of it.
    file.write_all_at(&[4], 5000).unwrap();
    file.sync_all().unwrap();
    content[5000] = 4;
    assert!(mounted.behind("file") == content, "in the source");
    assert_eq!(mounted.mount.stats().conflicts, 1);
}

#[test]
fn a_name_that_others_made_meanwhile_is_opened_by_its_permissions() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let long = Coherence::Ttl(Duration::from_secs(3600));
    let Some(mounted) = mounted(|options| options.coherence(long)) else {
        return;
    };
    fs::set_permissions(&mounted.at, fs::Permissions::from_mode(0o777)).unwrap();
    let may_open = [
        ("of-another", 0, 0o600, false),
        ("for-all", 0, 0o666, true),
        ("own", 1234, 0o600, true),
        ("own-but-closed", 1234, 0o400, false),
    ];
    for (name, owner, mode, may_open) in may_open {
        // The kernel remembers that there is no such name.
        assert!(!mounted.at.join(name).exists());
        let behind = mounted.source.join(name);
        fs::write(&behind, "text").unwrap();
        chown(&behind, Some(owner), None).unwrap();
        fs::set_permissions(&behind, fs::Permissions::from_mode(mode)).unwrap();
        let shell = Command::new("sh")
            .args(["-c", &format!("printf more >>{name}")])
            .current_dir(&mounted.at)
            .uid(1234)
            .gid(1234)
            .output()
            .unwrap();
        assert_eq!(shell.status.success(), may_open, "{name}: {shell:?}");
        let wanted: &[u8] = if may_open { b"textmore" } else { b"text" };
        assert_eq!(mounted.get(name), wanted, "{name}");
    }
}
