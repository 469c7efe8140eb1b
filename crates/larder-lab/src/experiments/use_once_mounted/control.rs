//! The control: the same load on XFS before the same disk. A memory cgroup limits the kernel's page cache to the size of the mount's.
//!
//! The disk is a mount that keeps next to nothing, as that of the slow source is. It serves one file, on which a loop device stands.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use larder_fs::{Coherence, MountOptions};

use super::dbench::{Dbench, blocks};
use super::{DBENCH, DISK, PATCHED, RATE, READ, VANILLA, WRITTEN};
use super::{compared, done, loads, mount_alone, moved, tool, which};
use crate::frame::{Results, grid, number};
use crate::model::{Finding, Measures, Params, Table};

/// The contestant.
pub(super) const XFS: &str = "xfs";

/// Memory of dbench's own processes with their stacks and page tables, which the cgroup counts too. `PARENT_BYTES` is for `timeout` and
/// dbench itself, `CLIENT_BYTES` for each client. Measured with files in tmpfs: 1.2 MB with 1 client, 4.4 MB with 16, 10.7 MB with 64.
const PARENT_BYTES: usize = 1 << 20;
const CLIENT_BYTES: usize = 160 << 10;
/// Most bytes of the disk. It takes memory where something is written: 20 MB for each client, and XFS's journal.
const DISK_BYTES: u64 = 16 << 30;

/// Runs a command in a new cgroup and removes the cgroup, also where this process is gone. Processes that are killed may take a moment to
/// leave it; after ten seconds it stays.
const WITHIN: &str = r#"group=$1 file=$2 bytes=$3
shift 3
mkdir "$group" || exit
echo "$bytes" >"$group/$file" && (echo 0 >"$group/cgroup.procs" && exec "$@")
ended=$?
tries=100
until rmdir "$group" || [ ! -d "$group" ] || [ $((tries -= 1)) -le 0 ]; do sleep 0.1; done 2>/dev/null
exit $ended
"#;

/// Where memory cgroups are made, and how the file is called that limits one.
fn hierarchy(root: &Path) -> Option<(PathBuf, &'static str)> {
    let (first, limit) = (root.join("memory"), "memory.limit_in_bytes");
    if first.join(limit).exists() {
        return Some((first, limit));
    }
    let passed_on = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
    let second = passed_on.split_whitespace().any(|name| name == "memory");
    second.then(|| (root.to_owned(), "memory.max"))
}

const NO_CGROUP: &str = "/sys/fs/cgroup has no memory cgroup to make groups in; with version 2: echo +memory >/sys/fs/cgroup/cgroup.subtree_control";

fn memory_cgroups() -> Option<(PathBuf, &'static str)> {
    hierarchy(Path::new("/sys/fs/cgroup"))
}

/// Why there is no control here.
pub(super) fn missing() -> Option<String> {
    let lists_xfs = || {
        let all = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        all.split_whitespace().any(|name| name == "xfs")
    };
    let loads_xfs = || {
        let mut modprobe = Command::new("modprobe");
        let quiet = modprobe.args(["-n", "-q", "xfs"]).stderr(Stdio::null());
        quiet.status().is_ok_and(|ended| ended.success())
    };
    let why = if !rustix::process::geteuid().is_root() {
        "only root may mount XFS and limit memory; run as root"
    } else if which("mkfs.xfs").is_none() {
        "mkfs.xfs is not installed; install xfsprogs (Debian's name)"
    } else if !Path::new("/dev/loop-control").exists() {
        "there is no /dev/loop-control; load the module: modprobe loop"
    } else if !lists_xfs() && !loads_xfs() {
        "this kernel has no XFS; install its module, or boot a kernel that has it"
    } else if memory_cgroups().is_none() {
        NO_CGROUP
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// XFS on a loop device, until it is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(image: &Path, at: &'a Path) -> anyhow::Result<Self> {
        // The kernel removes the loop device when this is unmounted.
        done(
            Command::new(tool("mount")?)
                .args(["-t", "xfs", "-o", "loop"])
                .args([image, at]),
        )?;
        Ok(Self(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        use rustix::mount::{UnmountFlags, unmount};
        // What is busy is unmounted once it is not.
        let _ = unmount(self.0, UnmountFlags::empty())
            .or_else(|_| unmount(self.0, UnmountFlags::DETACH));
    }
}

pub(super) fn run(params: &Params) -> anyhow::Result<Measures> {
    let dbench = Dbench::new(params)?;
    let (disk, slow, at) = (
        dbench.folder("disk")?,
        dbench.folder("slow")?,
        dbench.folder("at")?,
    );
    let image = disk.join("image");
    File::create(&image)?.set_len(DISK_BYTES)?;
    // Sectors of a page, so that no write is smaller than a block of the cache before it.
    done(
        Command::new(tool("mkfs.xfs")?)
            .args(["-q", "-K", "-s", "size=4096"])
            .arg(&image),
    )?;
    mount_alone();
    {
        // Not through the slow disk. Unmounting empties the cache.
        let _xfs = Mounted::new(&image, &at)?;
        dbench
            .make(&at, blocks)
            .and_then(|()| Ok(rustix::fs::syncfs(File::open(&at)?)?))
            .context("the clients' files did not fit; make room in /dev/shm")?;
    }
    let mount = MountOptions::new(&disk, &slow)
        .cache_bytes(1 << 20)
        .read_ahead(0)
        .write_through(true)
        .coherence(Coherence::Exclusive)
        .disk(DISK)
        .mount()?;
    let xfs = Mounted::new(&slow.join("image"), &at)?;
    // The mount below has it open. Without a name it takes no memory once this process has ended, however it ends.
    fs::remove_file(&image)?;
    let before = mount.stats();
    let limit = (params.count("cache_mb")? << 20) + PARENT_BYTES + CLIENT_BYTES * dbench.clients();
    let rate = dbench.run(&at, Some(within(limit)?))?;
    let after = mount.stats();
    drop(xfs);
    mount.detach()?;
    drop(mount);
    Ok(moved(Measures::new().with(RATE, rate), &before, &after))
}

/// A command that runs another one in a memory cgroup of its own.
fn within(limit: usize) -> anyhow::Result<Command> {
    let (folder, file) = memory_cgroups().context(NO_CGROUP)?;
    let mut command = Command::new(tool("sh")?);
    command
        .args(["-c", WITHIN, "sh"])
        .arg(folder.join(format!("larder-{}", std::process::id())))
        .args([file, &limit.to_string()])
        // A process group of its own: what kills this process's group leaves the shell, which removes the cgroup.
        .process_group(0);
    Ok(command)
}

/// Today's kernel beside the rules at the largest load of them all.
pub(super) fn found(results: &Results<'_>) -> Option<Finding> {
    let most = results.of(DBENCH, XFS).filter_map(|at| at.int("clients"));
    let question = (
        "Is today's kernel faster, on XFS in a memory cgroup of the same size?",
        "larder",
    );
    let both = [(XFS, "XFS"), (PATCHED, "use-once")];
    Some(compared(results, both, most.max()?, question, "")?.with(table(results)))
}

fn table(results: &Results<'_>) -> Table {
    let names = [(VANILLA, "2.4.7"), (PATCHED, "use-once"), (XFS, "xfs")];
    let columns = [(READ, "read, MB"), (WRITTEN, "written, MB")];
    let columns = columns.into_iter().flat_map(|(metric, what)| {
        names.map(|(name, called)| ((name, metric), format!("{what}: {called}")))
    });
    grid(
        "What reached the disk",
        "clients",
        loads(results),
        columns,
        |clients, (name, metric)| {
            let at = results.find(DBENCH, name, &[("clients", *clients)]);
            number(at.and_then(|at| at.middle(metric)))
        },
    )
    .noted("Of the same 72 MiB the mount has 60 MiB for blocks; XFS may use nearly all for pages.")
    .noted(
        "The mount keeps a quarter dirty, for 5 s. On cgroups of version 1 XFS may keep all dirty, for 30 s.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::scratch::Scratch;

    #[test]
    fn memory_cgroups_of_both_versions_are_found() {
        let scratch = Scratch::open("test").expect("room");
        let root = scratch.folder();
        assert_eq!(hierarchy(root), None);
        scratch
            .write("cgroup.subtree_control", "cpu io\n")
            .expect("written");
        assert_eq!(hierarchy(root), None);
        scratch
            .write("cgroup.subtree_control", "cpu memory pids\n")
            .expect("written");
        assert_eq!(hierarchy(root), Some((root.to_owned(), "memory.max")));
        // Version 1, or both.
        let memory = scratch.path("memory");
        fs::create_dir(&memory).expect("made");
        fs::write(memory.join("memory.limit_in_bytes"), "1\n").expect("written");
        assert_eq!(hierarchy(root), Some((memory, "memory.limit_in_bytes")));
    }
}
