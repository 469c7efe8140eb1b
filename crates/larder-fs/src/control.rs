//! Commands to a mount, by a socket of its user: one line of JSON each, and one for the answer.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::attach::{all_mounted, is_mounted};
use crate::error::FsError;
use crate::mount::Shared;
use crate::options::FolderBudget;
use crate::stats::MountStats;

/// What is to change of a mount while it is used.
///
/// ```
/// use larder_fs::Tune;
/// assert_eq!(Tune::default().cache_bytes, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tune {
    /// Bytes of the cache, up to [`most_bytes`](crate::MountOptions::most_bytes).
    pub cache_bytes: Option<usize>,
    /// The replacement rule of all but the folders that have their own.
    pub rule: Option<String>,
    /// Parts of the cache for folders.
    pub budgets: Vec<FolderBudget>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Command {
    Stats,
    Sync,
    DropCaches,
    Tune(Tune),
    Unmount,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Stats(Box<MountStats>),
    Done,
    Failed(String),
}

/// For a place in a socket's queue, and for the answer of one of all mounts.
const PATIENCE: Duration = Duration::from_secs(2);

/// So often a mount looks whether its socket is still there.
const LOOK: Duration = Duration::from_secs(1);

/// Where the sockets of this user's mounts may be. A mount takes the first that it can have. One that is made at boot, or by cron, has no
/// `XDG_RUNTIME_DIR`, but the user who asks for it may: so commands look in all.
fn directories() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    let of_login = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let of_login = of_login.map(|dir| Path::new(&dir).join("larder"));
    let of_root = user.is_root().then(|| PathBuf::from("/run/larder"));
    let of_any = PathBuf::from(format!("/tmp/larder-{}", user.as_raw()));
    let mut all: Vec<_> = of_login.into_iter().chain(of_root).collect();
    all.push(of_any);
    // Root's may be that of its login.
    all.dedup();
    all
}

/// Is a directory this user's own and closed to others? Else another user could take commands there, or give answers.
fn check_own(directory: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(directory)?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !own || found.mode() & 0o077 != 0 {
        let text = format!(
            "{} is not this user's alone; remove it",
            directory.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// Those that are there, and are this user's own.
fn own_directories() -> impl Iterator<Item = PathBuf> {
    let all = directories().into_iter();
    all.filter(|directory| check_own(directory).is_ok())
}

/// A directory of this user's own, which is made if it is not there.
fn own_directory() -> io::Result<PathBuf> {
    let mut why = io::Error::from(io::ErrorKind::NotFound);
    for path in directories() {
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => why = error,
            _ => match check_own(&path) {
                Ok(()) => return Ok(path),
                Err(error) => why = error,
            },
        }
    }
    Err(why)
}

/// A name for any path (FNV-1a).
fn socket_name(mountpoint: &Path) -> String {
    let hash = mountpoint
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}.sock")
}

/// The socket of a mount, at which it listens.
pub(crate) struct Socket {
    listener: UnixListener,
    mountpoint: PathBuf,
    pub(crate) path: PathBuf,
    /// Device and number of what was made under the path.
    made: (u64, u64),
}

/// A connection to a socket. Where a process stands still, the queue of its socket has no room in the end, and a plain `connect` waits
/// for room for ever. This one waits [`PATIENCE`].
///
/// # Errors
/// Those of the system; `WouldBlock`: the queue has no room.
pub(crate) fn connected(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
    let socket: OwnedFd = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    // The time for sending is that for connecting too.
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address)).map_err(|error| {
        match error {
            Errno::AGAIN => {
                let text = "its process stands still, and its queue has no room";
                io::Error::new(io::ErrorKind::WouldBlock, text)
            }
            error => error.into(),
        }
    })?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

fn made(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Socket {
    pub(crate) fn new(mountpoint: &Path) -> io::Result<Self> {
        let name = socket_name(mountpoint);
        let path = own_directory()?.join(&name);
        // A queue without room has a listener too, which stands still.
        let listens = |directory: &PathBuf| match connected(&directory.join(&name)) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        if own_directories().any(|directory| listens(&directory)) {
            let text = format!(
                "another mount listens for {}; unmount it first",
                mountpoint.display()
            );
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        // A mount that was killed left it.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        set_socket_timeout(&listener, Timeout::Recv, Some(LOOK))?;
        Ok(Self {
            listener,
            mountpoint: mountpoint.to_owned(),
            made: made(&path)?,
            path,
        })
    }

    fn is_there(&self) -> bool {
        made(&self.path).is_ok_and(|made| made == self.made)
    }

    /// Answers commands until the mount has ended.
    pub(crate) fn serve(mut self, mount: &Arc<Shared>) {
        while !mount.is_finished() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // One that says nothing does not keep others out for long.
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
                    let _ = serve_one(&stream, mount);
                }
                // Temporary files are cleaned, and a user's directory goes when the user logs out.
                Err(_) if !self.is_there() => {
                    if let Ok(new) = Self::new(&self.mountpoint) {
                        self = new;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // No descriptor is left.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        // Another mount may have made its own there.
        if self.is_there() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn serve_one(stream: &UnixStream, mount: &Arc<Shared>) -> io::Result<()> {
    let mut line = String::new();
    // No command is longer.
    io::Read::take(stream, 1 << 20).read_to_line(&mut line)?;
    let Ok(command) = serde_json::from_str(&line) else {
        return Ok(());
    };
    let done = match command {
        Command::Stats => Ok(Answer::Stats(Box::new(mount.stats()))),
        Command::Sync => mount.sync().map(|()| Answer::Done),
        Command::DropCaches => mount.drop_caches().map(|()| Answer::Done),
        Command::Tune(tune) => mount.tune(&tune).map(|()| Answer::Done),
        Command::Unmount => mount.unmount().map(|()| Answer::Done),
    };
    let answer = done.unwrap_or_else(|error| Answer::Failed(error.to_string()));
    let mut text = serde_json::to_string(&answer)?;
    text.push('\n');
    (&*stream).write_all(text.as_bytes())
}

trait ReadLine {
    fn read_to_line(self, line: &mut String) -> io::Result<usize>;
}

impl<R: io::Read> ReadLine for R {
    fn read_to_line(self, line: &mut String) -> io::Result<usize> {
        BufReader::new(self).read_line(line)
    }
}

/// A mount of another process of this user, by its mountpoint.
///
/// ```no_run
/// let mount = larder_fs::Control::connect("/mnt/fast")?;
/// println!("{} bytes are dirty", mount.stats()?.dirty_bytes);
/// mount.unmount()?;
/// # Ok::<(), larder_fs::FsError>(())
/// ```
#[derive(Debug)]
pub struct Control {
    mountpoint: PathBuf,
    path: PathBuf,
}

impl Control {
    /// Finds the mount.
    ///
    /// # Errors
    /// [`FsError::NoMount`]: none of this user's answers there.
    pub fn connect(mountpoint: impl AsRef<Path>) -> Result<Self, FsError> {
        let given = mountpoint.as_ref();
        // Of a mount that ended badly only the name is left.
        let mountpoint = given.canonicalize().unwrap_or_else(|_| given.to_owned());
        let name = socket_name(&mountpoint);
        let of = |directory: PathBuf| Self {
            mountpoint: mountpoint.clone(),
            path: directory.join(&name),
        };
        let mut all: Vec<Self> = directories().into_iter().map(of).collect();
        let answers = all.iter().position(|control| control.stream().is_ok());
        let is_there = || all.iter().position(|control| control.path.exists());
        let control = all.swap_remove(answers.or_else(is_there).unwrap_or(0));
        control.stream()?;
        Ok(control)
    }

    fn stream(&self) -> Result<UnixStream, FsError> {
        let directory = self.path.parent().map_or(Ok(()), check_own);
        directory.and_then(|()| connected(&self.path)).map_err(|error| {
            if !is_mounted(&self.mountpoint) {
                return self.none(error);
            }
            let text = format!(
                "{} cannot be reached: {error}; the mount makes its socket anew within {} s where it can, and `umount {}` ends \
                 it too: then its process writes back",
                self.path.display(),
                LOOK.as_secs(),
                self.mountpoint.display()
            );
            self.none(io::Error::new(error.kind(), text))
        })
    }

    fn none(&self, error: io::Error) -> FsError {
        let path = self.mountpoint.clone();
        FsError::NoMount { path, error }
    }

    /// Waits for the answer for so long; for ever without a number.
    fn ask(
        &self,
        command: &Command,
        patience: Option<Duration>,
    ) -> Result<Option<MountStats>, FsError> {
        let stream = self.stream()?;
        stream
            .set_read_timeout(patience)
            .map_err(|error| self.none(error))?;
        let ask = || -> io::Result<Answer> {
            let mut text = serde_json::to_string(command)?;
            text.push('\n');
            (&stream).write_all(text.as_bytes())?;
            let mut line = String::new();
            (&stream).read_to_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        match ask().map_err(|error| self.none(error))? {
            Answer::Stats(stats) => Ok(Some(*stats)),
            Answer::Done => Ok(None),
            Answer::Failed(text) => Err(FsError::Refused(text)),
        }
    }

    /// What the mount has done.
    ///
    /// # Errors
    /// The mount does not answer.
    pub fn stats(&self) -> Result<MountStats, FsError> {
        self.ask(&Command::Stats, None)
            .map(Option::unwrap_or_default)
    }

    /// See [`Mount::sync`](crate::Mount::sync).
    ///
    /// # Errors
    /// What could not be written, or the mount does not answer.
    pub fn sync(&self) -> Result<(), FsError> {
        self.ask(&Command::Sync, None).map(drop)
    }

    /// See [`Mount::drop_caches`](crate::Mount::drop_caches).
    ///
    /// # Errors
    /// What could not be written, or the mount does not answer.
    pub fn drop_caches(&self) -> Result<(), FsError> {
        self.ask(&Command::DropCaches, None).map(drop)
    }

    /// See [`Mount::tune`](crate::Mount::tune).
    ///
    /// # Errors
    /// The mount refuses, or does not answer.
    pub fn tune(&self, tune: &Tune) -> Result<(), FsError> {
        self.ask(&Command::Tune(tune.clone()), None).map(drop)
    }

    /// See [`Mount::unmount`](crate::Mount::unmount). Returns when all is with the source, and both places can be mounted again.
    ///
    /// # Errors
    /// The mount is in use, cannot be written back, or does not answer.
    pub fn unmount(&self) -> Result<(), FsError> {
        self.ask(&Command::Unmount, None)?;
        // The mount takes its socket away, which is soon.
        let end = Instant::now() + Duration::from_secs(1);
        while self.path.exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// All mounts of this user that answer within two seconds: one that stands still does not hide the others.
///
/// ```
/// for mount in larder_fs::mounts() {
///     println!("{} on {}", mount.source.display(), mount.mountpoint.display());
/// }
/// ```
pub fn mounts() -> Vec<MountStats> {
    let entries = own_directories().filter_map(|directory| std::fs::read_dir(directory).ok());
    let entries = entries.flatten().flatten();
    let sockets = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "sock"));
    let all = sockets.filter_map(|entry| {
        let (mountpoint, path) = (PathBuf::new(), entry.path());
        let control = Control { mountpoint, path };
        control.ask(&Command::Stats, Some(PATIENCE)).ok()?
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| one.mountpoint.cmp(&other.mountpoint));
    all
}

/// Mountpoints of this user's mounts that are not among those that answered: their processes stand still, or their sockets cannot be
/// reached.
///
/// ```
/// for mountpoint in larder_fs::unanswered(&larder_fs::mounts()) {
///     println!("{} does not answer", mountpoint.display());
/// }
/// ```
pub fn unanswered(answered: &[MountStats]) -> Vec<PathBuf> {
    let mut all = all_mounted(rustix::process::geteuid().as_raw());
    all.retain(|path| answered.iter().all(|mount| mount.mountpoint != *path));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_can_enter_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let set = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(outer.path(), mode).unwrap();
            check_own(outer.path())
        };
        set(0o700).unwrap();
        for open in [0o710, 0o701, 0o777] {
            let error = set(open).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{open:o}");
        }
        let file = outer.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(check_own(&file).is_err());
    }

    #[test]
    fn a_listener_that_stands_still_keeps_no_caller_for_ever() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let mut waiting = Vec::new();
        loop {
            let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
            let socket = rustix::net::socket_with(family, kind, flags, None).unwrap();
            match rustix::net::connect(&socket, &address) {
                Ok(()) => waiting.push(socket),
                Err(error) => break assert_eq!(error, Errno::AGAIN),
            }
        }
        let (sender, ended) = std::sync::mpsc::channel();
        let at = path.clone();
        std::thread::spawn(move || sender.send(connected(&at).unwrap_err().kind()));
        let kind = ended.recv_timeout(Duration::from_secs(60));
        assert_eq!(kind, Ok(io::ErrorKind::WouldBlock));
        // With room it is a connection as any other.
        listener.accept().unwrap();
        let stream = connected(&path).unwrap();
        assert_eq!(stream.write_timeout().unwrap(), None);
    }
}
