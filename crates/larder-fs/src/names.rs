//! Names: looking up, making, removing and moving files and directories.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::data::OpenFile;
use crate::filesystem::FileSystem;
use crate::inode::{Inode, Ours};
use crate::system::{Attr, Caller, Sys, open_path, stat, stat_at};

/// A file that was found, for one answer to the kernel.
pub(crate) struct Entry {
    pub(crate) inode: Arc<Inode>,
    pub(crate) attr: Attr,
}

/// What a file or directory is made with.
#[derive(Clone, Copy)]
pub(crate) struct New {
    pub(crate) caller: Caller,
    pub(crate) mode: u32,
    pub(crate) mask: u32,
}

fn permissions(mode: u32) -> Permissions {
    Permissions::from_raw_mode(mode & 0o7777)
}

/// A name that stays in its directory.
fn checked(name: &[u8]) -> Sys<&[u8]> {
    match name {
        b"" | b"." | b".." => Err(Errno::INVAL),
        _ if name.contains(&b'/') => Err(Errno::INVAL),
        _ => Ok(name),
    }
}

/// Whether a caller may surely open a file with these flags: it is the caller's own. For any other the caller's further groups, access
/// control lists and capabilities count too, which only the kernel knows.
fn is_plainly_allowed(attr: &Attr, caller: Caller, flags: u32) -> bool {
    let (reads, writes) = (0o400, 0o200);
    let access = match flags as i32 & libc::O_ACCMODE {
        libc::O_RDONLY => reads,
        libc::O_WRONLY => writes,
        _ => reads | writes,
    };
    let wanted = match flags as i32 & libc::O_TRUNC {
        0 => access,
        _ => access | writes,
    };
    let is_file = attr.file_type() == FileType::RegularFile;
    is_file && attr.uid == caller.uid && attr.mode & wanted == wanted
}

impl FileSystem {
    /// # Errors
    /// `ENOENT`: there is no such name.
    pub(crate) fn look_up(&self, parent: &Inode, name: &[u8]) -> Sys<Entry> {
        self.source.call();
        let attr = stat_at(parent.fd(), checked(name)?)?;
        if let Some(inode) = self.find(attr) {
            return Ok(self.entry(parent, name, inode));
        }
        self.not_too_many();
        let fd = open_path(parent.fd(), name)?;
        self.new_entry(parent, name, fd)
    }

    fn entry(&self, parent: &Inode, name: &[u8], inode: Arc<Inode>) -> Entry {
        inode.set_place(parent.id, name);
        let attr = self.shown(&inode);
        Entry { inode, attr }
    }

    fn new_entry(&self, parent: &Inode, name: &[u8], fd: OwnedFd) -> Sys<Entry> {
        let attr = stat(&fd)?;
        let inode = match self.find(attr) {
            Some(inode) => inode,
            None => self.inodes.add(fd, attr)?,
        };
        Ok(self.entry(parent, name, inode))
    }

    /// The inode of a file that is known, for one answer to the kernel.
    fn find(&self, attr: Attr) -> Option<Arc<Inode>> {
        let inode = self.inodes.find(attr.key(), 1)?;
        match self.refresh(&inode, attr, Ours::No, None) {
            // There is a file with this number, so it is another one.
            Err(Errno::STALE) if inode.id != self.root.id => {
                self.inodes.disown(&inode);
                if inode.state().changed {
                    self.note_conflict(&inode);
                }
                self.forget(inode.id, 1);
                None
            }
            // What is known may be old.
            _ => Some(inode),
        }
    }

    /// What was just made is looked up.
    fn made(&self, parent: &Inode, name: &[u8]) -> Sys<Entry> {
        parent.stale();
        let fd = open_path(parent.fd(), name)?;
        self.new_entry(parent, name, fd)
    }

    /// The inode that a name leads to, if the mount knows it.
    fn known(&self, parent: &Inode, name: &[u8]) -> Option<Arc<Inode>> {
        let attr = stat_at(parent.fd(), name).ok()?;
        self.inodes.find(attr.key(), 0)
    }

    pub(crate) fn make_node(&self, parent: &Inode, name: &[u8], new: New, rdev: u32) -> Sys<Entry> {
        let name = checked(name)?;
        self.source.call();
        let kind = FileType::from_raw_mode(new.mode);
        self.identity.creates(new.caller, new.mask, || {
            rustix::fs::mknodat(parent.fd(), name, kind, permissions(new.mode), rdev.into())
        })?;
        self.made(parent, name)
    }

    pub(crate) fn make_directory(&self, parent: &Inode, name: &[u8], new: New) -> Sys<Entry> {
        let name = checked(name)?;
        self.source.call();
        self.identity.creates(new.caller, new.mask, || {
            rustix::fs::mkdirat(parent.fd(), name, permissions(new.mode))
        })?;
        self.made(parent, name)
    }

    pub(crate) fn make_symlink(
        &self,
        parent: &Inode,
        name: &[u8],
        target: &[u8],
        caller: Caller,
    ) -> Sys<Entry> {
        let name = checked(name)?;
        self.source.call();
        self.identity.creates(caller, 0, || {
            rustix::fs::symlinkat(target, parent.fd(), name)
        })?;
        self.made(parent, name)
    }

    /// Makes a file and opens it.
    pub(crate) fn create(
        &self,
        parent: &Inode,
        name: &[u8],
        new: New,
        flags: u32,
    ) -> Sys<(Entry, u64, Arc<OpenFile>)> {
        let name = checked(name)?;
        self.not_too_many();
        self.not_too_many_open();
        self.source.call();
        let open =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = self.identity.creates(new.caller, new.mask, || {
            rustix::fs::openat(parent.fd(), name, open, permissions(new.mode))
        });
        let fd = match fd {
            Err(Errno::EXIST) if flags & libc::O_EXCL as u32 == 0 => {
                return self.open_found(parent, name, new.caller, flags);
            }
            fd => fd?,
        };
        parent.stale();
        let entry = self.opened_entry(parent, name, &fd)?;
        self.open_created(entry, fd)
    }

    /// Opens a file that others made since the kernel looked for its name. The kernel takes it for a new one, and so checks no permission.
    ///
    /// # Errors
    /// `ESTALE`: the kernel is to look for the name again, and to check whether the caller may open what it finds.
    fn open_found(
        &self,
        parent: &Inode,
        name: &[u8],
        caller: Caller,
        flags: u32,
    ) -> Sys<(Entry, u64, Arc<OpenFile>)> {
        let mut entry = self.look_up(parent, name).map_err(|_| Errno::STALE)?;
        let opened = match is_plainly_allowed(&entry.attr, caller, flags) {
            true => self.open(&entry.inode, flags, true),
            false => Err(Errno::STALE),
        };
        let (handle, file, _) = opened.inspect_err(|_| self.forget(entry.inode.id, 1))?;
        entry.attr = self.shown(&entry.inode);
        Ok((entry, handle, file))
    }

    /// Makes a file without a name and opens it.
    pub(crate) fn create_unnamed(
        &self,
        parent: &Inode,
        new: New,
        flags: u32,
    ) -> Sys<(Entry, u64, Arc<OpenFile>)> {
        self.source.call();
        let exclusive = OFlags::from_bits_retain(flags) & OFlags::EXCL;
        let open = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | exclusive;
        let directory = self
            .proc_fds
            .reopen(parent.fd(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let fd = self.identity.creates(new.caller, new.mask, || {
            rustix::fs::openat(&directory, c".", open, permissions(new.mode))
        })?;
        let entry = self.opened_entry(parent, b"", &fd)?;
        self.open_created(entry, fd)
    }

    fn opened_entry(&self, parent: &Inode, name: &[u8], fd: &OwnedFd) -> Sys<Entry> {
        use std::os::fd::AsFd;
        let path = self.proc_fds.reopen(fd.as_fd(), OFlags::PATH)?;
        self.new_entry(parent, name, path)
    }

    fn open_created(&self, entry: Entry, fd: OwnedFd) -> Sys<(Entry, u64, Arc<OpenFile>)> {
        let inode = &entry.inode;
        let opened = self.created_data(inode, fd);
        let file = opened.and_then(|opened| self.open_file(inode, opened));
        let (handle, file) = file.inspect_err(|_| self.forget(inode.id, 1))?;
        Ok((entry, handle, file))
    }

    pub(crate) fn link(&self, inode: &Arc<Inode>, parent: &Inode, name: &[u8]) -> Sys<Entry> {
        let name = checked(name)?;
        self.own_change(inode, Ours::Attributes, || {
            self.proc_fds.link(inode.fd(), parent.fd(), name)?;
            parent.stale();
            Ok(())
        })?;
        let key = inode.state().attr.key();
        let inode = self.inodes.find(key, 1).ok_or(Errno::STALE)?;
        Ok(self.entry(parent, name, inode))
    }

    pub(crate) fn unlink(&self, parent: &Inode, name: &[u8], directory: bool) -> Sys<()> {
        let name = checked(name)?;
        self.source.call();
        let inode = self.known(parent, name);
        let _own = inode.as_ref().map(|inode| inode.own(Ours::Attributes));
        let flags = if directory {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        rustix::fs::unlinkat(parent.fd(), name, flags)?;
        parent.stale();
        if let Some(inode) = &inode {
            self.lost_a_name(inode);
        }
        Ok(())
    }

    /// What has no name and is not open is never written: the kernel lets go of it next.
    fn lost_a_name(&self, inode: &Inode) {
        let _ = self.look(inode, Ours::Attributes);
    }

    pub(crate) fn rename(
        &self,
        from: &Inode,
        name: &[u8],
        to: &Inode,
        new_name: &[u8],
        flags: u32,
    ) -> Sys<()> {
        let (name, new_name) = (checked(name)?, checked(new_name)?);
        self.source.call();
        let flags = RenameFlags::from_bits_retain(flags);
        let moved = self.known(from, name);
        let target = stat_at(to.fd(), new_name).ok();
        let over = target.and_then(|attr| self.inodes.find(attr.key(), 0));
        let replaces =
            target.is_some() && !flags.intersects(RenameFlags::EXCHANGE | RenameFlags::NOREPLACE);
        if replaces && let Some(moved) = moved.as_ref().filter(|moved| moved.is_file()) {
            // The new content before the old one goes: after a crash there is one of them.
            let opened = moved.opened().clone();
            if let Some(opened) = opened {
                self.write_back(moved, &opened)?;
            }
        }
        let _own =
            [&moved, &over].map(|inode| inode.as_ref().map(|inode| inode.own(Ours::Attributes)));
        rustix::fs::renameat_with(from.fd(), name, to.fd(), new_name, flags)?;
        from.stale();
        to.stale();
        if let Some(moved) = &moved {
            moved.set_place(to.id, new_name);
            let _ = self.look(moved, Ours::Attributes);
        }
        let moved = moved.as_ref().map(|moved| moved.id);
        if let Some(over) = over.as_ref().filter(|over| moved != Some(over.id)) {
            if flags.contains(RenameFlags::EXCHANGE) {
                over.set_place(from.id, name);
            }
            self.lost_a_name(over);
        }
        Ok(())
    }

    pub(crate) fn read_link(&self, inode: &Inode) -> Sys<Vec<u8>> {
        self.source.call();
        let target = rustix::fs::readlinkat(inode.fd(), c"", Vec::new())?;
        Ok(target.into_bytes())
    }

    /// The kernel takes back so many answers that named this inode.
    pub(crate) fn forget(&self, id: u64, lookups: u64) {
        if let Ok(inode) = self.inodes.get(id)
            && id != 1
        {
            self.inodes.forget(&inode, lookups);
            if !inode.is_known() {
                self.let_go(&inode);
            }
            self.retire(&inode);
        }
    }

    /// There are as many inodes as the budget allows, or more: the kernel is not to learn of any that it did not ask for.
    pub(crate) fn is_crowded(&self) -> bool {
        self.inodes.len() >= self.inodes.most()
    }

    /// Has inodes given up where there are too many, and waits a moment where there are far too many. Not for long: the kernel
    /// holds the directory, in which names may have to be forgotten.
    fn not_too_many(&self) {
        let (len, most) = (self.inodes.len(), self.inodes.most());
        if len > most {
            self.notes.wake();
        }
        if len > most + most / 4 {
            let times = (len / most).min(10) as u64;
            std::thread::sleep(std::time::Duration::from_micros(200 * times * times));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::{BLOCK, change_seen, with_file, with_source, write};
    use std::sync::atomic::Ordering;

    /// A new file of this user's, or of the user with the next number.
    fn new(other: bool) -> New {
        let uid = rustix::process::geteuid().as_raw() + u32::from(other);
        let gid = rustix::process::getegid().as_raw();
        New {
            caller: Caller { uid, gid },
            mode: 0o600,
            mask: 0,
        }
    }

    #[test]
    fn what_this_mount_changes_itself_is_no_change_by_others() {
        with_file(|system, file| {
            let inode = &file.inode;
            let chmod = || {
                let done = system.proc_fds.chmod(inode.fd(), permissions(0o640));
                done.unwrap();
            };
            let outside_changes = || {
                assert!(system.look_up(&system.root, b"file").is_ok());
                system.counters.outside_changes.load(Ordering::Relaxed)
            };
            {
                let _own = inode.own(Ours::Attributes);
                change_seen(inode, chmod);
                assert_eq!(outside_changes(), 0);
            }
            change_seen(inode, chmod);
            assert_eq!(outside_changes(), 1);
        });
    }

    #[test]
    fn a_file_that_others_made_meanwhile_is_opened_for_its_owner_alone() {
        with_source(|system, _| {
            let create = |other, flags: i32| {
                let made = system.create(&system.root, b"file", new(other), flags as u32);
                made.map(|(entry, ..)| entry.attr.size)
            };
            assert_eq!(create(true, libc::O_RDWR), Err(Errno::STALE));
            assert_eq!(
                create(false, libc::O_RDWR | libc::O_EXCL),
                Err(Errno::EXIST)
            );
            assert_eq!(create(false, libc::O_RDWR), Ok(10 * BLOCK));
            assert_eq!(create(false, libc::O_WRONLY | libc::O_TRUNC), Ok(0));
        });
    }

    #[test]
    fn only_a_file_that_the_owner_may_open_so_is_plainly_allowed() {
        let caller = new(false).caller;
        let allowed = |mode, flags: i32| {
            let attr = Attr {
                mode,
                uid: caller.uid,
                ..Attr::default()
            };
            is_plainly_allowed(&attr, caller, flags as u32)
        };
        assert!(allowed(libc::S_IFREG | 0o600, libc::O_RDWR | libc::O_TRUNC));
        assert!(allowed(libc::S_IFREG | 0o400, libc::O_RDONLY));
        for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_TRUNC] {
            assert!(!allowed(libc::S_IFREG | 0o477, flags), "{flags:o}");
        }
        assert!(!allowed(libc::S_IFREG | 0o277, libc::O_RDONLY));
        assert!(!allowed(libc::S_IFIFO | 0o600, libc::O_RDWR));
    }

    #[test]
    fn a_file_that_got_its_name_late_is_kept() {
        with_source(|system, path| {
            let made = system.create_unnamed(&system.root, new(false), libc::O_RDWR as u32);
            let Ok((entry, handle, file)) = made else {
                eprintln!("skipped: no file without a name in {}", path.display());
                return;
            };
            let inode = &entry.inode;
            assert!(write(system, &file, 0, BLOCK, true));
            // As where the answer to a question from before the link comes after it.
            let linked = system.proc_fds.link(inode.fd(), system.root.fd(), b"name");
            linked.unwrap();
            assert!(inode.is_dead());
            drop(file);
            system.release(handle);
            system.forget(inode.id, 1);
            let opened = inode.opened().clone().unwrap();
            assert!(!inode.is_dead());
            system.write_back(inode, &opened).unwrap();
            let content = std::fs::read(path.join("name")).unwrap();
            assert_eq!(content, [1; BLOCK as usize]);
        });
    }

    #[test]
    fn a_file_that_took_the_number_of_another_has_an_inode_of_its_own() {
        with_source(|system, _| {
            let look_up = || system.look_up(&system.root, b"file").unwrap().inode;
            let old = look_up();
            assert_eq!(look_up().id, old.id);
            // As where a server calls the file stale that it had under this number.
            system.inodes.disown(&old);
            let new = look_up();
            assert_ne!(new.id, old.id);
            assert_eq!(look_up().id, new.id);
            system.forget(old.id, 2);
            assert_eq!(look_up().id, new.id);
            assert!(old.is_unused() && !new.is_unused());
        });
    }

    #[test]
    fn a_rename_over_a_file_that_is_not_known_writes_first() {
        with_source(|system, path| {
            let root = &system.root;
            let made = system.create(root, b"new", new(false), libc::O_RDWR as u32);
            let (_, _, file) = made.unwrap();
            assert!(write(system, &file, 0, BLOCK, true));
            assert!(std::fs::read(path.join("new")).unwrap().is_empty());
            system.rename(root, b"new", root, b"file", 0).unwrap();
            let content = std::fs::read(path.join("file")).unwrap();
            assert_eq!(content, [1; BLOCK as usize]);
        });
    }
}
