//! Attributes, extended attributes, and what the whole file system has.

use std::sync::Arc;

use rustix::fs::{
    AtFlags, Gid, Mode as Permissions, StatVfs, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
};
use rustix::io::Errno;

use crate::filesystem::FileSystem;
use crate::inode::{Inode, Ours, State};
use crate::system::{Attr, ProcFds, Sys, Time, now};

/// What is to be changed of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) atime: Option<Option<Time>>,
    pub(crate) mtime: Option<Option<Time>>,
    /// The caller may not keep a file's right to run as its owner.
    pub(crate) kill_ids: bool,
}

/// A time that is to be set, or left as it is; `Some(None)` is now.
fn timespec(time: Option<Option<Time>>, now: Time) -> Timespec {
    let (tv_sec, nanoseconds) = match time {
        Some(time) => time.unwrap_or(now),
        None => {
            return Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            };
        }
    };
    Timespec {
        tv_sec,
        tv_nsec: nanoseconds.into(),
    }
}

/// Times that a write-back gives to the source, or that programs see after it.
fn shown_times(state: &State) -> (Time, Time) {
    (state.attr.mtime, state.attr.ctime)
}

impl FileSystem {
    pub(crate) fn change(&self, inode: &Arc<Inode>, changes: Changes) -> Sys<Attr> {
        let fd = inode.fd();
        // The system takes this number for "as it is"; no file has it.
        if [changes.uid, changes.gid].contains(&Some(u32::MAX)) {
            return Err(Errno::INVAL);
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (
                changes.uid.map(Uid::from_raw),
                changes.gid.map(Gid::from_raw),
            );
            self.own_change(inode, Ours::Attributes, || {
                rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH)
            })?;
        }
        if let Some(mode) = changes.mode {
            let mode = Permissions::from_raw_mode(mode & 0o7777);
            self.own_change(inode, Ours::Attributes, || self.proc_fds.chmod(fd, mode))?;
        }
        if let Some(size) = changes.size {
            self.truncate(inode, size, changes.kill_ids)?;
        }
        if changes.atime.is_some() || changes.mtime.is_some() {
            self.set_times(inode, changes.atime, changes.mtime)?;
        }
        self.attributes(inode)
    }

    fn set_times(
        &self,
        inode: &Inode,
        atime: Option<Option<Time>>,
        mtime: Option<Option<Time>>,
    ) -> Sys<()> {
        let now = now();
        let times = Timestamps {
            last_access: timespec(atime, now),
            last_modification: timespec(mtime, now),
        };
        // First here: what is written back from now on is to have this time, and not that of the write.
        let (former, set) = {
            let mut state = inode.state();
            let former = shown_times(&state);
            if state.changed {
                state.attr.ctime = now;
                if let Some(time) = mtime {
                    state.attr.mtime = time.unwrap_or(now);
                }
            }
            (former, shown_times(&state))
        };
        self.own_change(inode, Ours::Times, || {
            let done = rustix::fs::utimensat(inode.fd(), c"", &times, AtFlags::EMPTY_PATH);
            let mut state = inode.state();
            // Unless a write has set others since.
            if done.is_err() && state.changed && shown_times(&state) == set {
                (state.attr.mtime, state.attr.ctime) = former;
            }
            done
        })
    }

    /// Blocks and files of the source, less what is still to be written to it.
    pub(crate) fn whole(&self) -> Sys<StatVfs> {
        self.source.call();
        let mut stat = rustix::fs::fstatvfs(self.root.fd())?;
        let dirty = self.dirty_bytes() / stat.f_frsize.max(1);
        stat.f_bfree = stat.f_bfree.saturating_sub(dirty);
        stat.f_bavail = stat.f_bavail.saturating_sub(dirty);
        Ok(stat)
    }

    /// The path by which extended attributes are reached. Symbolic links have none of a user's.
    fn attribute_path(inode: &Inode) -> Sys<String> {
        match inode.kind {
            rustix::fs::FileType::Symlink => Err(Errno::OPNOTSUPP),
            _ => Ok(ProcFds::path(inode.fd())),
        }
    }

    /// An extended attribute; its length only, if that is asked for.
    pub(crate) fn extended(
        &self,
        inode: &Inode,
        name: &[u8],
        room: usize,
    ) -> Sys<Result<Vec<u8>, usize>> {
        self.source.call();
        let path = Self::attribute_path(inode)?;
        if room == 0 {
            return rustix::fs::getxattr_query(path, name).map(Err);
        }
        let mut value = vec![0; room.min(64 << 10)];
        let len = rustix::fs::getxattr(path, name, &mut value[..])?;
        value.truncate(len);
        Ok(Ok(value))
    }

    pub(crate) fn list_extended(&self, inode: &Inode, room: usize) -> Sys<Result<Vec<u8>, usize>> {
        self.source.call();
        let path = match Self::attribute_path(inode) {
            Ok(path) => path,
            Err(_) => return Ok(if room == 0 { Err(0) } else { Ok(Vec::new()) }),
        };
        if room == 0 {
            return rustix::fs::listxattr_query(path).map(Err);
        }
        let mut names = vec![0; room.min(64 << 10)];
        let len = rustix::fs::listxattr(path, &mut names[..])?;
        names.truncate(len);
        Ok(Ok(names))
    }

    /// Sets an extended attribute. An access control list may take the right to run as the group, if the caller is not of it: then it
    /// `kills_group_id`.
    pub(crate) fn set_extended(
        &self,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        flags: u32,
        kills_group_id: bool,
    ) -> Sys<()> {
        let (path, flags) = (
            Self::attribute_path(inode)?,
            XattrFlags::from_bits_retain(flags),
        );
        self.own_change(inode, Ours::Attributes, || {
            rustix::fs::setxattr(path, name, value, flags)
        })?;
        match kills_group_id {
            true => self.kill_group_id(inode),
            false => Ok(()),
        }
    }

    /// Takes the right to run as the group, of which the source's mode was looked at just now.
    fn kill_group_id(&self, inode: &Inode) -> Sys<()> {
        let mode = inode.state().attr.mode;
        if mode & libc::S_ISGID == 0 {
            return Ok(());
        }
        let kept = Permissions::from_raw_mode(mode & 0o7777 & !libc::S_ISGID);
        self.own_change(inode, Ours::Attributes, || {
            self.proc_fds.chmod(inode.fd(), kept)
        })
    }

    pub(crate) fn remove_extended(&self, inode: &Inode, name: &[u8]) -> Sys<()> {
        let path = Self::attribute_path(inode)?;
        self.own_change(inode, Ours::Attributes, || {
            rustix::fs::removexattr(path, name)
        })
    }
}
