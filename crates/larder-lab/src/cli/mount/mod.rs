//! `mount`, and the commands to a mount by its mountpoint.

mod commands;
mod daemon;
mod fstab;
mod stats;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use larder_fs::{Coherence, FolderBudget, FsError, Mode, MountOptions};

use super::args::duration;
use super::failure::Failure;
use super::sim::bytes;

pub(super) use commands::{Mounts, OneMount, Tune, drop_caches, mounts, sync, tune, unmount};
pub(super) use daemon::run;
pub(super) use fstab::words;
pub(super) use stats::{MountStatsArgs, mount_stats};

/// Mount a directory behind a cache of its own.
#[derive(Debug, Args)]
#[command(after_help = "\
The command returns when the mount can be used; a process in the background serves it until `larder unmount`, which writes back \
first. SIGTERM does the same. docs/fs.md has what it promises.

Examples:
  larder mount /mnt/disk /mnt/fast --cache 512M
  larder mount /mnt/nfs /mnt/fast --cache 1G --coherence ttl=30s
  larder mount ~/src ~/build --cache 64M --rule lirs --trace t.csv   and later: larder sim t.csv
  larder mount ~/src ~/build --cache 256M --budget target=192M:lirs --budget logs=1M:fifo
  larder mount /usr /mnt/look --read-only --foreground

Linked as /sbin/mount.larder the program serves /etc/fstab, where the options have the same names:
  /mnt/disk  /mnt/fast  larder  cache=512M,rule=lirs,noexec  0 0

Exit codes: 2 source, mountpoint or an option cannot be used, 4 FUSE is missing or the source is mounted already, 5 reading or \
writing failed.")]
pub(super) struct Mount {
    /// The directory to be cached.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// An empty directory, through which it can be used.
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,
    /// Bytes of the cache with its tables, for instance 512M or 4G; at least 1M.
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = bytes)]
    cache: u64,
    /// Most bytes that `larder tune` may ask for, up to about 16 times those of --cache [default: those of --cache].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    most_cache: Option<u64>,
    /// Replacement rule (see `larder sim --rules`).
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    rule: String,
    /// A part of the cache, and if you like a rule, for a folder of the mount alone; may be given for several.
    #[arg(long, value_name = "DIR=BYTES[:RULE]", value_parser = budget)]
    budget: Vec<FolderBudget>,
    /// Which accesses reach the cache: own (all), shared (those that the kernel's page cache lacks), bypass (none).
    #[arg(long, value_name = "MODE", default_value = "own")]
    mode: Mode,
    /// Share of the cache that may be dirty.
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = share)]
    dirty: f64,
    /// How long a block may be dirty before it is written to the source.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    dirty_age: Duration,
    /// When writes reach the source.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Write::Back)]
    write: Write,
    /// Closing a file writes it to the source [default: yes on network file systems].
    #[arg(
        long, value_name = "YES|NO", num_args = 0..=1, require_equals = true, default_missing_value = "yes",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    close_to_open: Option<bool>,
    /// When changes of the source by other programs are looked for: strict, open, ttl=TIME, exclusive.
    #[arg(long, value_name = "WHEN", default_value = "open")]
    coherence: Coherence,
    /// Nothing can be changed through the mount.
    #[arg(long)]
    read_only: bool,
    /// Most bytes read ahead of a sequential reader; `off` is none.
    #[arg(long, value_name = "BYTES", default_value = "128K", value_parser = read_ahead)]
    read_ahead: u64,
    /// Threads that answer the kernel at a time, one for each 512K of the cache at most [default: as many as CPUs, 2 to 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Take requests by io_uring (Linux 6.14, switched on in /sys/module/fuse/parameters/enable_uring).
    #[arg(long)]
    io_uring: bool,
    /// Write each use of a block here, as a trace that `larder sim` replays.
    #[arg(long, value_name = "FILE.csv")]
    trace: Option<PathBuf>,
    /// Stay in the foreground, for a supervisor; Ctrl-C unmounts.
    #[arg(long)]
    foreground: bool,
    /// Options of the kernel's mount: suid, dev, noexec, noatime and others; sync is --write through.
    #[arg(short = 'o', value_name = "OPTION,…", value_delimiter = ',')]
    fuse_options: Vec<String>,
}

/// Options that mean nothing here; some of them the kernel does not take from a FUSE file system. Times of access are the source's,
/// which has options of its own.
const WITHOUT_EFFECT: [&str; 11] = [
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "async",
    "loud",
    "silent",
];

/// The option by which writes do not wait in memory.
const SYNC: &str = "sync";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Write {
    /// By age and share, and when a program syncs.
    Back,
    /// Before each write returns.
    Through,
}

impl Mount {
    fn writes_through(&self) -> bool {
        self.write == Write::Through || self.fuse_options.iter().any(|option| option == SYNC)
    }

    /// Options of the kernel's mount that it takes.
    fn for_the_kernel(&self) -> impl Iterator<Item = &String> {
        let takes =
            |option: &&String| *option != SYNC && !WITHOUT_EFFECT.contains(&option.as_str());
        self.fuse_options.iter().filter(takes)
    }

    fn options(&self) -> MountOptions {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut options = MountOptions::new(&self.source, &self.mountpoint)
            .cache_bytes(size(self.cache))
            .rule(&self.rule)
            .mode(self.mode)
            .dirty_share(self.dirty)
            .dirty_age(self.dirty_age)
            .write_through(self.writes_through())
            .coherence(self.coherence)
            .read_only(self.read_only)
            .read_ahead(size(self.read_ahead))
            .io_uring(self.io_uring)
            .fuse_options(self.for_the_kernel().cloned());
        if let Some(bytes) = self.most_cache {
            options = options.most_bytes(size(bytes));
        }
        if let Some(yes) = self.close_to_open {
            options = options.close_to_open(yes);
        }
        if let Some(threads) = self.threads {
            options = options.threads(threads.into());
        }
        for budget in &self.budget {
            options = options.budget(budget.clone());
        }
        if let Some(path) = &self.trace {
            options = options.trace(path);
        }
        options
    }
}

/// `25%`.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("'{text}' is no share; write 0% to 100%"))
}

/// `DIR=64M`, `DIR=64M:lirs`.
fn budget(text: &str) -> Result<FolderBudget, String> {
    let form = || format!("'{text}' is no folder with its part; write DIR=64M or DIR=64M:RULE");
    let (folder, part) = text.rsplit_once('=').ok_or_else(form)?;
    let (size, rule) = match part.split_once(':') {
        Some((size, rule)) => (size, Some(rule.to_owned())),
        None => (part, None),
    };
    let size = usize::try_from(bytes(size).map_err(|_| form())?).map_err(|_| form())?;
    Ok(FolderBudget {
        folder: folder.into(),
        bytes: Some(size),
        rule,
    })
}

/// `DIR=64M:lirs`, or `DIR=none`.
fn new_budget(text: &str) -> Result<FolderBudget, String> {
    match text.strip_suffix("=none") {
        Some(folder) => Ok(FolderBudget {
            folder: folder.into(),
            ..FolderBudget::default()
        }),
        None => budget(text),
    }
}

fn read_ahead(text: &str) -> Result<u64, String> {
    match text {
        "0" | "off" => Ok(0),
        _ => bytes(text),
    }
}

/// How a command ends by an error of the file system.
fn fault(error: FsError) -> Failure {
    match error {
        FsError::Source { .. }
        | FsError::Mountpoint { .. }
        | FsError::Nested { .. }
        | FsError::Mode { .. }
        | FsError::IoUring(_)
        | FsError::Budget { .. }
        | FsError::Most { .. }
        | FsError::Folder { .. }
        | FsError::Cache(_) => Failure::usage(error),
        FsError::Busy { .. }
        | FsError::Fuse { .. }
        | FsError::InUse { .. }
        | FsError::NoMount { .. } => Failure::refused(error),
        _ => Failure::io(error),
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn mount(options: &str) -> Mount {
        let command = Mount::augment_args(clap::Command::new("mount"));
        let words = ["mount", "/s", "/m", "-o", options];
        let matches = command.try_get_matches_from(words).unwrap();
        Mount::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn options_of_any_file_system_are_taken() {
        let given = "relatime,nodiratime,noexec,lazytime,async,allow_other";
        let plain = mount(given);
        assert!(plain.for_the_kernel().eq(["noexec", "allow_other"]));
        assert!(!plain.writes_through());
        let through = mount("nosuid,sync");
        assert!(through.for_the_kernel().eq(["nosuid"]));
        assert!(through.writes_through());
    }

    #[test]
    fn parts_of_folders_have_a_size_and_may_have_a_rule() {
        let part = |folder: &str, bytes, rule: Option<&str>| FolderBudget {
            folder: folder.into(),
            bytes,
            rule: rule.map(str::to_owned),
        };
        assert_eq!(budget("a/b=64M"), Ok(part("a/b", Some(64 << 20), None)));
        assert_eq!(
            budget("a=b=1K:lirs"),
            Ok(part("a=b", Some(1024), Some("lirs")))
        );
        assert_eq!(new_budget("a=none"), Ok(part("a", None, None)));
        for bad in ["", "a", "a=", "a=none", "a=:lirs", "a=x", "a=0"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_percents() {
        assert_eq!(
            (share("25%"), share("0"), share("100%")),
            (Ok(0.25), Ok(0.0), Ok(1.0))
        );
        for bad in ["", "%", "-1%", "101", "nan", "a quarter"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
