//! Names: looking up, making, removing and moving files and directories.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::data::OpenFile;
use crate::filesystem::{FileSystem, Ours};
use crate::inode::Inode;
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

impl FileSystem {
    /// # Errors
    /// `ENOENT`: there is no such name.
    pub(crate) fn look_up(&self, parent: &Inode, name: &[u8]) -> Sys<Entry> {
        self.source.call();
        let attr = stat_at(parent.fd(), checked(name)?)?;
        if let Some(inode) = self.inodes.find(attr.key(), 1) {
            self.refresh(&inode, attr, Ours::No);
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
        let inode = match self.inodes.find(attr.key(), 1) {
            Some(inode) => {
                self.refresh(&inode, attr, Ours::No);
                inode
            }
            None => self.inodes.add(fd, attr)?,
        };
        Ok(self.entry(parent, name, inode))
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
        self.source.call();
        let open =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = self.identity.creates(new.caller, new.mask, || {
            rustix::fs::openat(parent.fd(), name, open, permissions(new.mode))
        });
        let fd = match fd {
            // Others made it since the kernel looked.
            Err(Errno::EXIST) if flags & libc::O_EXCL as u32 == 0 => {
                let mut entry = self.look_up(parent, name)?;
                let opened = self.open(&entry.inode, flags, false);
                let (handle, file, _) = opened.inspect_err(|_| self.forget(entry.inode.id, 1))?;
                entry.attr = self.shown(&entry.inode);
                return Ok((entry, handle, file));
            }
            fd => fd?,
        };
        parent.stale();
        let entry = self.opened_entry(parent, name, &fd)?;
        let file = self.open_created(&entry.inode, fd, flags);
        let (handle, file) = file.inspect_err(|_| self.forget(entry.inode.id, 1))?;
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
        let file = self.open_created(&entry.inode, fd, flags);
        let (handle, file) = file.inspect_err(|_| self.forget(entry.inode.id, 1))?;
        Ok((entry, handle, file))
    }

    fn opened_entry(&self, parent: &Inode, name: &[u8], fd: &OwnedFd) -> Sys<Entry> {
        use std::os::fd::AsFd;
        let path = self.proc_fds.reopen(fd.as_fd(), OFlags::PATH)?;
        self.new_entry(parent, name, path)
    }

    fn open_created(
        &self,
        inode: &Arc<Inode>,
        fd: OwnedFd,
        flags: u32,
    ) -> Sys<(u64, Arc<OpenFile>)> {
        let opened = self.created_data(inode, fd)?;
        self.open_file(inode, opened, flags)
    }

    pub(crate) fn link(&self, inode: &Arc<Inode>, parent: &Inode, name: &[u8]) -> Sys<Entry> {
        let name = checked(name)?;
        self.source.call();
        self.proc_fds.link(inode.fd(), parent.fd(), name)?;
        parent.stale();
        self.look(inode, Ours::Attributes)?;
        let key = inode.state().attr.key();
        let inode = self.inodes.find(key, 1).ok_or(Errno::STALE)?;
        Ok(self.entry(parent, name, inode))
    }

    pub(crate) fn unlink(&self, parent: &Inode, name: &[u8], directory: bool) -> Sys<()> {
        let name = checked(name)?;
        self.source.call();
        let inode = self.known(parent, name);
        let flags = if directory {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        rustix::fs::unlinkat(parent.fd(), name, flags)?;
        parent.stale();
        if let Some(inode) = inode {
            self.lost_a_name(&inode);
        }
        Ok(())
    }

    /// What has no name and is not open is never written.
    fn lost_a_name(&self, inode: &Inode) {
        let _ = self.look(inode, Ours::Attributes);
        if inode.is_file() && inode.is_dead() {
            self.discard(inode);
        }
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
        let over = self.known(to, new_name);
        let replaces =
            over.is_some() && !flags.intersects(RenameFlags::EXCHANGE | RenameFlags::NOREPLACE);
        if replaces && let Some(moved) = moved.as_ref().filter(|moved| moved.is_file()) {
            // The new content before the old one goes: after a crash there is one of them.
            let opened = moved.opened().clone();
            if let Some(opened) = opened {
                self.write_back(moved, &opened)?;
            }
        }
        rustix::fs::renameat_with(from.fd(), name, to.fd(), new_name, flags)?;
        from.stale();
        to.stale();
        if let Some(moved) = &moved {
            moved.set_place(to.id, new_name);
            let _ = self.look(moved, Ours::Attributes);
        }
        if let Some(over) =
            over.filter(|over| moved.as_ref().is_none_or(|moved| moved.id != over.id))
        {
            if flags.contains(RenameFlags::EXCHANGE) {
                over.set_place(from.id, name);
            }
            self.lost_a_name(&over);
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
