//! Directories that change while programs read them.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir, open};

use crate::mounted;

/// The names that one call says which has little room. None at the end.
fn some_names(directory: &OwnedFd) -> Vec<String> {
    let mut buffer = Vec::with_capacity(1024);
    let mut list = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = list.next() {
        let entry = entry.unwrap();
        names.push(entry.file_name().to_str().unwrap().to_owned());
        if list.is_buffer_empty() {
            break;
        }
    }
    names
}

/// One that deletes what it has read, as `rm -r` does, while another one reads all of it: the kernel has one list for both.
#[test]
fn a_reader_misses_no_name_for_another_ones_list() {
    let Some(mounted) = mounted(|options| options) else {
        return;
    };
    let files: Vec<_> = (0..300).map(|n| format!("{n:030}")).collect();
    for name in &files {
        fs::write(mounted.source.join(name), "").unwrap();
    }
    let count = || fs::read_dir(&mounted.at).unwrap().count();
    assert_eq!(count(), files.len());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let reader = open(&mounted.at, flags, Mode::empty()).unwrap();
    let mut seen = some_names(&reader);
    let gone = seen.iter().find(|name| !name.starts_with('.')).unwrap();
    fs::remove_file(mounted.at.join(gone)).unwrap();
    // The kernel asks anew, and has the whole list then.
    for _ in 0..2 {
        assert_eq!(count(), files.len() - 1);
    }
    loop {
        let more = some_names(&reader);
        if more.is_empty() {
            break;
        }
        seen.extend(more);
    }
    seen.retain(|name| !name.starts_with('.'));
    seen.sort_unstable();
    assert_eq!(seen, files);
}
