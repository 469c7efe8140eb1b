//! Commands to mounts: unmount, sync, drop, mounts, tune.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use larder_fs::{Control, FolderBudget};
use serde_json::json;

use super::stats::{hit_percent, mib};
use super::{fault, new_budget};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::global::Global;
use crate::cli::output::{self, plain, print_json};
use crate::cli::sim::bytes;

/// A mount, by its mountpoint.
#[derive(Debug, Args)]
pub(in crate::cli) struct OneMount {
    /// The mountpoint.
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,
}

/// List this user's mounts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  larder mounts\n  larder mounts --json")]
pub(in crate::cli) struct Mounts {}

/// Change a mount's cache while it is used: its size, its rule, its parts for folders.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder tune /mnt/fast --cache 256M
  larder tune /mnt/fast --rule lirs
  larder tune /mnt/fast --budget target=64M:s3-fifo --budget logs=none")]
pub(in crate::cli) struct Tune {
    /// The mountpoint.
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,
    /// Bytes of the cache with its tables, up to --most-cache of `larder mount`.
    #[arg(
        long, value_name = "BYTES", value_parser = bytes, required_unless_present_any = ["rule", "budget"]
    )]
    cache: Option<u64>,
    /// Replacement rule of all but the folders that have their own (see `larder sim --rules`).
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Another part of the cache, and if you like another rule, for a folder; `DIR=none` takes its part away.
    #[arg(long, value_name = "DIR=BYTES[:RULE]", value_parser = new_budget)]
    budget: Vec<FolderBudget>,
}

/// The mount that listens for a mountpoint.
pub(super) fn connect(mountpoint: &Path) -> Result<Control, Failure> {
    Control::connect(mountpoint).map_err(|error| {
        let seen = std::fs::metadata(mountpoint);
        match seen.is_err_and(|e| e.raw_os_error() == Some(libc::ENOTCONN)) {
            true => Failure::refused(format!(
                "{0}: the process that served it was killed; take away what it left with `umount -l {0}`, or mount there again",
                mountpoint.display()
            )),
            false => fault(error),
        }
    })
}

pub(in crate::cli) fn unmount(args: &OneMount) -> Outcome {
    connect(&args.mountpoint)?.unmount().map_err(fault)
}

pub(in crate::cli) fn sync(args: &OneMount) -> Outcome {
    connect(&args.mountpoint)?.sync().map_err(fault)
}

pub(in crate::cli) fn drop_caches(args: &OneMount) -> Outcome {
    connect(&args.mountpoint)?.drop_caches().map_err(fault)
}

pub(in crate::cli) fn tune(global: &Global, args: &Tune) -> Outcome {
    let control = connect(&args.mountpoint)?;
    let cache_bytes = args
        .cache
        .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let wanted = larder_fs::Tune {
        cache_bytes,
        rule: args.rule.clone(),
        budgets: args.budget.clone(),
    };
    control.tune(&wanted).map_err(fault)?;
    let stats = control.stats().map_err(fault)?;
    let capacity = mib(stats.capacity_bytes);
    output::hint(
        global,
        &format!("{capacity} for blocks, rule {}", stats.rule),
    );
    Ok(())
}

pub(in crate::cli) fn mounts(global: &Global, out: &mut dyn Write) -> Outcome {
    let all = larder_fs::mounts();
    for mountpoint in larder_fs::unanswered(&all) {
        output::hint(
            global,
            &format!(
                "{} is mounted too, but does not answer: its process stands still, or its socket is gone or elsewhere (XDG_RUNTIME_DIR)",
                mountpoint.display()
            ),
        );
    }
    if global.json {
        return print_json(out, &json!({ "schema": 1, "mounts": all }));
    }
    if all.is_empty() {
        output::hint(global, "nothing is mounted; see `larder mount --help`");
        return Ok(());
    }
    let rows = all.iter().map(|mount| {
        vec![
            plain(&mount.source.to_string_lossy()),
            plain(&mount.mountpoint.to_string_lossy()),
            mount.mode.clone(),
            mount.rule.clone(),
            mib(mount.capacity_bytes),
            mib(mount.dirty_bytes),
            hit_percent(mount.hits, mount.misses),
        ]
    });
    let heads = vec![
        "source",
        "mountpoint",
        "mode",
        "rule",
        "cache",
        "dirty",
        "hits",
    ];
    output::table(heads, rows.collect(), 4..7, None, out)
}
