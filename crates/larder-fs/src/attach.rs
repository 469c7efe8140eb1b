//! Attaching the file system to a mountpoint and detaching it: by the system's calls as root, else by `fusermount3`.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode as Permissions, OFlags, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};

use crate::error::FsError;
use crate::reply::Device;

/// Options that are flags of the system's call.
fn flag(option: &str) -> Option<(MountFlags, bool)> {
    Some(match option {
        "ro" => (MountFlags::RDONLY, true),
        "rw" => (MountFlags::RDONLY, false),
        "nosuid" => (MountFlags::NOSUID, true),
        "suid" => (MountFlags::NOSUID, false),
        "nodev" => (MountFlags::NODEV, true),
        "dev" => (MountFlags::NODEV, false),
        "noexec" => (MountFlags::NOEXEC, true),
        "exec" => (MountFlags::NOEXEC, false),
        "noatime" => (MountFlags::NOATIME, true),
        "atime" => (MountFlags::NOATIME, false),
        "dirsync" => (MountFlags::DIRSYNC, true),
        _ => return None,
    })
}

fn failed(what: &'static str) -> impl FnOnce(Errno) -> FsError {
    move |error| FsError::Fuse {
        what,
        error: error.into(),
    }
}

/// Mounts, and returns the connection to the kernel.
pub(crate) fn attach(
    source: &Path,
    mountpoint: &Path,
    options: &[String],
) -> Result<Device, FsError> {
    let root = rustix::process::geteuid().is_root();
    let mut all = vec!["default_permissions".to_owned()];
    if root {
        all.push("allow_other".to_owned());
    }
    all.extend(options.iter().cloned());
    if !root {
        return by_helper(source, mountpoint, &all);
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/fuse", flags, Permissions::empty());
    let device = device.map_err(failed("opening /dev/fuse"))?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mut data = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0",
        device.as_raw_fd()
    );
    for option in &all {
        match flag(option) {
            Some((bit, set)) => flags.set(bit, set),
            None => data = format!("{data},{option}"),
        }
    }
    let data = std::ffi::CString::new(data).map_err(|_| failed("mounting")(Errno::INVAL))?;
    mount(source, mountpoint, "fuse.larder", flags, &*data).map_err(failed("mounting"))?;
    Ok(Arc::new(device))
}

/// `fusermount3` may mount, and sends the connection through a socket.
fn by_helper(source: &Path, mountpoint: &Path, options: &[String]) -> Result<Device, FsError> {
    let what = "mounting by fusermount3";
    // The helper inherits one end. Another program that starts at this moment may have it too, until it ends.
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let (ours, theirs) =
        rustix::net::socketpair(family, kind, SocketFlags::empty(), None).map_err(failed(what))?;
    // A comma would end the name.
    let name = source.display().to_string();
    let name = name.replace('\\', "\\\\").replace(',', "\\,");
    let options = format!("fsname={name},subtype=larder,{}", options.join(","));
    let output = Command::new("fusermount3")
        .arg("-o")
        .arg(options)
        .arg("--")
        .arg(mountpoint)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .output()
        .map_err(|error| FsError::Fuse { what, error })?;
    drop(theirs);
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(FsError::Fuse {
            what,
            error: io::Error::other(text),
        });
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 1];
    let into = &mut [io::IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(&ours, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        .map_err(failed(what))?;
    let device = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let device: OwnedFd = device.ok_or_else(|| failed(what)(Errno::NODATA))?;
    Ok(Arc::new(device))
}

/// Unmounts; `lazily` also while programs use it, which keep what they have.
pub(crate) fn detach(mountpoint: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily {
        UnmountFlags::DETACH
    } else {
        UnmountFlags::empty()
    };
    match unmount(mountpoint, flags) {
        Err(Errno::PERM) => {
            let mut command = Command::new("fusermount3");
            command
                .arg("-u")
                .args(lazily.then_some("-z"))
                .arg("--")
                .arg(mountpoint);
            let output = command.output()?;
            match output.status.success() {
                true => Ok(()),
                false => Err(Errno::BUSY.into()),
            }
        }
        done => Ok(done?),
    }
}

/// The kernel's number of the connection of what is mounted there.
pub(crate) fn connection(mountpoint: &Path) -> Option<u32> {
    // The kernel is not to ask the file system.
    let found = statx(
        CWD,
        mountpoint,
        AtFlags::STATX_DONT_SYNC,
        StatxFlags::empty(),
    );
    // The minor number of its device, which is no disk.
    let found = found.ok().filter(|found| found.stx_dev_major == 0);
    found.map(|found| found.stx_dev_minor)
}

/// Ends a connection, so that programs get an error for what they wait for. By the file system of FUSE's connections where it is
/// mounted, else as an administrator, who has to do it otherwise (`umount -f`).
pub(crate) fn break_off(number: u32, mountpoint: &Path) {
    let by_number = std::fs::write(format!("/sys/fs/fuse/connections/{number}/abort"), "1");
    // Not what another program has mounted there since.
    if by_number.is_err() && connection(mountpoint) == Some(number) {
        // It unmounts too, unless the mount is in use; the connection has ended in any case.
        let _ = unmount(mountpoint, UnmountFlags::FORCE);
    }
}

/// Whether a FUSE file system of this program is mounted there.
pub(crate) fn is_mounted(mountpoint: &Path) -> bool {
    mount_lines().any(|line| line.mountpoint == mountpoint)
}

/// The mountpoints of a user's file systems of this program.
pub(crate) fn all_mounted(user: u32) -> Vec<PathBuf> {
    let user = format!("user_id={user}");
    let of_user = |line: &MountLine| line.options.split(',').any(|has| has == user);
    let lines = mount_lines().filter(of_user);
    lines.map(|line| line.mountpoint).collect()
}

/// Is this directory mounted by this program, or one above or below it?
pub(crate) fn is_source(path: &Path) -> bool {
    mount_lines().any(|line| path.starts_with(&line.source) || line.source.starts_with(path))
}

/// What is mounted by this program.
struct MountLine {
    source: PathBuf,
    mountpoint: PathBuf,
    options: String,
}

fn mount_lines() -> impl Iterator<Item = MountLine> {
    let all = std::fs::read("/proc/self/mounts").unwrap_or_default();
    let path = |path: &[u8]| PathBuf::from(OsString::from_vec(plain(path)));
    let line = |line: &[u8]| {
        let mut words = line.split(|&byte| byte == b' ');
        let (source, mountpoint) = (words.next()?, words.next()?);
        let (kind, options) = (words.next()?, words.next()?);
        (kind == b"fuse.larder").then(|| MountLine {
            source: path(source),
            mountpoint: path(mountpoint),
            options: String::from_utf8_lossy(options).into_owned(),
        })
    };
    let lines: Vec<_> = all.split(|&byte| byte == b'\n').filter_map(line).collect();
    lines.into_iter()
}

/// A path as it is; the kernel writes blanks and the like as a backslash and three octal digits.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = path;
    while let [first, others @ ..] = rest {
        let octal = others.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|octal| std::str::from_utf8(octal).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &others[3..];
            }
            None => {
                plain.push(*first);
                rest = others;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_they_are() {
        assert_eq!(plain(b"/a\\040b\\134/c"), b"/a b\\/c");
        assert_eq!(plain(b"/plain"), b"/plain");
    }
}
