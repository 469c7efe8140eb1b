//! Access control lists.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{XattrFlags, fsetxattr};
use rustix::io::Errno;

use crate::{directory, mounted};

const USER: u32 = 1234;
const GROUP: u32 = 4321;

/// A list, as the attribute has it: the version, and a tag, permissions and a number for each.
fn list() -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, number: u32| {
        let (tag, permissions) = (tag.to_le_bytes(), permissions.to_le_bytes());
        [&tag[..], &permissions, &number.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    [
        2_u32.to_le_bytes().to_vec(),
        entry(1, 7, none),
        entry(2, 4, USER + 1),
        entry(4, 5, none),
        entry(16, 5, none),
        entry(32, 5, none),
    ]
    .concat()
}

/// Sets a list as the file's owner, who is not of its group.
fn set_list(file: &File) -> Result<(), Errno> {
    let work = || {
        // SAFETY: the calls take numbers and change the identity by which this thread uses files, nothing in memory.
        unsafe {
            libc::setfsgid(USER);
            libc::setfsuid(USER);
        }
        fsetxattr(
            file,
            "system.posix_acl_access",
            &list(),
            XattrFlags::empty(),
        )
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A file of another user that runs as its group.
fn make(path: &Path) {
    fs::write(path, "").unwrap();
    chown(path, Some(USER), Some(GROUP)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o2755)).unwrap();
}

#[test]
fn a_list_of_one_who_is_not_of_the_group_takes_its_right() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let open = |path: &Path| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap()
    };
    let plain = directory();
    let path = plain.path().join("file");
    make(&path);
    if let Err(error) = set_list(&open(&path)) {
        eprintln!("skipped: no lists: {error}");
        return;
    }
    let wanted = fs::metadata(&path).unwrap().mode();
    assert_eq!(wanted & libc::S_ISGID, 0);
    let behind = mounted.source.join("file");
    make(&behind);
    let file = open(&mounted.at.join("file"));
    assert_eq!(
        file.metadata().unwrap().mode() & libc::S_ISGID,
        libc::S_ISGID
    );
    set_list(&file).unwrap();
    assert_eq!(fs::metadata(&behind).unwrap().mode(), wanted);
    assert_eq!(file.metadata().unwrap().mode(), wanted);
}
