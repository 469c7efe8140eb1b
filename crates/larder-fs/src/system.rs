//! Attributes of the source's files, and the identity under which a thread makes new ones.

use std::cell::Cell;
use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::thread::{CapabilitySets, UnshareFlags};

/// What a call of the system says.
pub(crate) type Sys<T> = Result<T, Errno>;

/// Seconds and nanoseconds since 1970.
pub(crate) type Time = (i64, u32);

/// The time now, by the clock that file systems take: one that is more exact would put what is written here behind what the source
/// makes a moment later.
pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec as u32)
}

/// Attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Attr {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) blksize: u32,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

impl Attr {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// What names the file among all of the system.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

// The fields have other widths on other processors.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
impl From<Stat> for Attr {
    fn from(stat: Stat) -> Self {
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            nlink: stat.st_nlink as u32,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            rdev: stat.st_rdev as u64,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            blksize: stat.st_blksize as u32,
            atime: (stat.st_atime as i64, stat.st_atime_nsec as u32),
            mtime: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            ctime: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// Attributes of what a descriptor stands for, also one that was opened for its path only.
pub(crate) fn stat(fd: impl AsFd) -> Sys<Attr> {
    rustix::fs::fstat(fd).map(Attr::from)
}

/// The name of a descriptor below [`ProcFds`].
pub(crate) struct FdName([u8; 12], usize);

impl FdName {
    fn new(fd: RawFd) -> Self {
        struct Into<'a>(&'a mut FdName);
        impl std::fmt::Write for Into<'_> {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                let (at, end) = (self.0.1, self.0.1 + text.len());
                self.0.0[at..end].copy_from_slice(text.as_bytes());
                self.0.1 = end;
                Ok(())
            }
        }
        let mut name = Self([0; 12], 0);
        // A number of 32 bits with its sign has 11 digits at most.
        let _ = write!(Into(&mut name), "{fd}");
        name
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// `/proc/self/fd`, by which a descriptor that was opened for its path only can be opened for its data.
pub(crate) struct ProcFds(OwnedFd);

impl ProcFds {
    pub(crate) fn open() -> Sys<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open("/proc/self/fd", flags, Mode::empty()).map(Self)
    }

    /// Opens what a descriptor stands for.
    pub(crate) fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Sys<OwnedFd> {
        let name = FdName::new(fd.as_raw_fd());
        rustix::fs::openat(
            &self.0,
            name.bytes(),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }

    /// Whether [`reopen`](Self::reopen) would be allowed, to read and perhaps to write.
    pub(crate) fn may_reopen(&self, fd: BorrowedFd<'_>, write: bool) -> bool {
        use rustix::fs::Access;
        let name = FdName::new(fd.as_raw_fd());
        let mut access = Access::READ_OK;
        access.set(Access::WRITE_OK, write);
        rustix::fs::accessat(&self.0, name.bytes(), access, AtFlags::empty()).is_ok()
    }

    pub(crate) fn chmod(&self, fd: BorrowedFd<'_>, mode: Mode) -> Sys<()> {
        let name = FdName::new(fd.as_raw_fd());
        rustix::fs::chmodat(&self.0, name.bytes(), mode, AtFlags::empty())
    }

    /// Gives what a descriptor stands for another name.
    pub(crate) fn link(&self, fd: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> Sys<()> {
        let empty = rustix::fs::linkat(fd, c"", dir, name, AtFlags::EMPTY_PATH);
        if empty != Err(Errno::NOENT) {
            return empty;
        }
        // Without the capability to link a descriptor.
        let old = FdName::new(fd.as_raw_fd());
        rustix::fs::linkat(&self.0, old.bytes(), dir, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// The path of a descriptor, for calls that take nothing else.
    pub(crate) fn path(fd: BorrowedFd<'_>) -> String {
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }
}

/// On whose behalf the kernel asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Makes new files belong to their callers, where this process may do that.
pub(crate) struct Identity {
    /// This process's own, with all it is permitted; none if it is not root.
    root: Option<(u32, u32, CapabilitySets)>,
}

thread_local! {
    /// This thread has a file mode mask of its own.
    static OWN_MASK: Cell<bool> = const { Cell::new(false) };
}

impl Identity {
    pub(crate) fn new() -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let sets = rustix::thread::capabilities(None).ok();
        let root = sets.filter(|_| uid.is_root()).map(|sets| {
            let effective = sets.permitted;
            (
                uid.as_raw(),
                gid.as_raw(),
                CapabilitySets { effective, ..sets },
            )
        });
        Self { root }
    }

    /// Makes a file: what `work` creates belongs to the caller, and lacks the permissions that its mask takes.
    ///
    /// Whether the caller may create it was checked by the kernel, by the modes that this file system shows. So the source need
    /// not agree again, for which it would need the caller's further groups: the thread keeps the daemon's capabilities.
    pub(crate) fn creates<T>(&self, caller: Caller, mask: u32, work: impl FnOnce() -> T) -> T {
        if !OWN_MASK.get() {
            // SAFETY: of what threads share this takes only the mask, the root and the working directory of this thread, which
            // is the daemon's own; no descriptor is concerned.
            let own = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) };
            OWN_MASK.set(own.is_ok());
        }
        rustix::process::umask(Mode::from_raw_mode(mask & 0o777));
        let _back = self.become_caller(caller);
        work()
    }

    fn become_caller(&self, caller: Caller) -> Option<Back> {
        let &(uid, gid, sets) = self.root.as_ref()?;
        if (caller.uid, caller.gid) == (uid, gid) {
            return None;
        }
        let back = Back { uid, gid };
        set_fs_ids(caller.uid, caller.gid);
        // A file system identity other than root's drops the capabilities that go with files.
        let _ = rustix::thread::set_capabilities(None, sets);
        Some(back)
    }
}

/// The thread is the daemon again when this is dropped.
struct Back {
    uid: u32,
    gid: u32,
}

impl Drop for Back {
    fn drop(&mut self) {
        set_fs_ids(self.uid, self.gid);
    }
}

/// Of this thread alone.
fn set_fs_ids(uid: u32, gid: u32) {
    // SAFETY: the calls take numbers and change the identity by which this thread uses files, nothing in memory.
    unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
    }
}

/// Raises the number of descriptors this process may have to what the system allows, and says how many that is.
pub(crate) fn raise_descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: Some(1 << 20),
        maximum: Some(1 << 20),
    };
    let hard = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    // Root may raise it beyond the hard limit. Others get what they may have.
    if now.maximum.is_some_and(|most| most >= 1 << 20)
        || setrlimit(Resource::Nofile, wanted).is_err()
    {
        let _ = setrlimit(Resource::Nofile, hard);
    }
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20) as usize
}

/// Whether Linux is at least this release.
pub(crate) fn is_linux(least: [u32; 3]) -> bool {
    is_release(&rustix::system::uname().release().to_string_lossy(), least)
}

fn is_release(text: &str, least: [u32; 3]) -> bool {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut numbers = numbers.map(|number| number.parse().unwrap_or(0));
    let release: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    release >= least
}

/// Whether a directory lies on a file system that other machines change.
pub(crate) fn is_network(fd: impl AsFd) -> bool {
    // NFS, SMB, CIFS, AFS, Ceph, 9P, FUSE.
    const NETWORK: [u64; 8] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x5346_414f,
        0x00c3_6400,
        0x0102_1997,
        0x6573_5546,
    ];
    #[allow(clippy::cast_sign_loss)]
    rustix::fs::fstatfs(fd).is_ok_and(|stat| NETWORK.contains(&(stat.f_type as u64 & 0xffff_ffff)))
}

/// Opens a name for its path only: itself, where it is a symbolic link.
pub(crate) fn open_path(dir: BorrowedFd<'_>, name: &[u8]) -> Sys<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Attributes of a name.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> Sys<Attr> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(Attr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let least = [6, 18, 10];
        for (text, is) in [
            ("6.18.44-fc-v657", true),
            ("6.18.10", true),
            ("6.18.9-amd64", false),
            ("6.9.0", false),
            ("6.19", true),
            ("7.0.0-rc1", true),
            ("5.15.200", false),
        ] {
            assert_eq!(is_release(text, least), is, "{text}");
        }
    }
}
