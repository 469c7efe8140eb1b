//! `mount-stats`: what a mount has done.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use larder_fs::{FolderStats, MountStats, OperationStats};
use serde_json::json;

use super::commands::connect;
use super::fault;
use crate::cli::args::duration;
use crate::cli::failure::Outcome;
use crate::cli::global::Global;
use crate::cli::output::{plain, print_json, table};

/// Print what a mount has done, and what it holds now.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder mount-stats /mnt/fast
  larder mount-stats /mnt/fast --watch            a line each second, until Ctrl-C
  larder mount-stats /mnt/fast --prometheus       for a collector of text files
  larder mount-stats /mnt/fast --json | jq .stats.hits")]
pub(in crate::cli) struct MountStatsArgs {
    /// The mountpoint.
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,
    /// Print a line each TIME, with what has happened since the last one [default of TIME: 1s].
    #[arg(
        long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
        value_parser = duration
    )]
    watch: Option<Duration>,
    /// Print metrics in Prometheus' text format.
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    prometheus: bool,
}

pub(in crate::cli) fn mount_stats(
    global: &Global,
    args: &MountStatsArgs,
    out: &mut dyn Write,
) -> Outcome {
    let control = connect(&args.mountpoint)?;
    let mut stats = control.stats().map_err(fault)?;
    if args.prometheus {
        return prometheus(&stats, out);
    }
    let Some(interval) = args.watch else {
        return match global.json {
            true => print_json(out, &json!({ "schema": 1, "stats": stats })),
            false => print(&stats, out),
        };
    };
    if !global.json {
        writeln!(
            out,
            "{:>10} {:>10} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}",
            "hits", "misses", "hit", "read", "written", "from source", "to source", "dirty"
        )?;
    }
    loop {
        out.flush()?;
        std::thread::sleep(interval);
        let now = control.stats().map_err(fault)?;
        match global.json {
            true => {
                serde_json::to_writer(&mut *out, &now)?;
                writeln!(out)?;
            }
            false => line(&stats, &now, out)?,
        }
        stats = now;
    }
}

/// What has happened between two looks.
fn line(before: &MountStats, now: &MountStats, out: &mut dyn Write) -> Outcome {
    let since = |of: fn(&MountStats) -> u64| of(now).saturating_sub(of(before));
    let (hits, misses) = (since(|s| s.hits), since(|s| s.misses));
    writeln!(
        out,
        "{hits:>10} {misses:>10} {:>8} {:>12} {:>12} {:>12} {:>12} {:>12}",
        hit_percent(hits, misses),
        mib(since(|s| s.read_bytes)),
        mib(since(|s| s.written_bytes)),
        mib(since(|s| s.backing_read_bytes)),
        mib(since(|s| s.backing_written_bytes)),
        mib(now.dirty_bytes)
    )?;
    Ok(())
}

fn print(stats: &MountStats, out: &mut dyn Write) -> Outcome {
    let s = stats;
    writeln!(
        out,
        "{} on {}, mode {}, rule {}",
        plain(&s.source.to_string_lossy()),
        plain(&s.mountpoint.to_string_lossy()),
        s.mode,
        s.rule
    )?;
    let lines = [
        (
            "uses",
            format!(
                "{} hits, {} misses: {}",
                s.hits,
                s.misses,
                hit_percent(s.hits, s.misses)
            ),
        ),
        (
            "cache",
            format!(
                "{} of {} in use, {} dirty, {} of tables",
                mib(s.resident_bytes),
                mib(s.capacity_bytes),
                mib(s.dirty_bytes),
                mib(s.table_bytes)
            ),
        ),
        (
            "programs",
            format!(
                "read {}, wrote {}, of which {} died before they were due",
                mib(s.read_bytes),
                mib(s.written_bytes),
                mib(s.never_written_bytes)
            ),
        ),
        (
            "source",
            format!(
                "{} in {} reads, {} in {} writes, {} syncs",
                mib(s.backing_read_bytes),
                s.backing_reads,
                mib(s.backing_written_bytes),
                s.backing_writes,
                s.backing_syncs
            ),
        ),
        (
            "files",
            format!(
                "{} known of at most {}, {} open",
                s.inodes, s.most_inodes, s.open
            ),
        ),
        (
            "changes",
            format!(
                "{} by other programs, {} conflicts, {} failed writes",
                s.outside_changes, s.conflicts, s.write_errors
            ),
        ),
    ];
    for (name, text) in lines {
        writeln!(out, "{name:<10} {text}")?;
    }
    let rows = s.operations.iter().map(|(name, operation)| {
        vec![
            name.clone(),
            operation.count.to_string(),
            operation.errors.to_string(),
            format!("{:.0} us", operation.p50_us),
            format!("{:.0} us", operation.p99_us),
        ]
    });
    if !s.folders.is_empty() {
        let rows = s.folders.iter().map(|folder| {
            vec![
                plain(&folder.folder.to_string_lossy()),
                folder.rule.clone(),
                mib(folder.capacity_bytes),
                mib(folder.resident_bytes),
                mib(folder.dirty_bytes),
                hit_percent(folder.hits, folder.misses),
            ]
        });
        let heads = vec!["folder", "rule", "part", "in use", "dirty", "hits"];
        table(heads, rows.collect(), 2..6, None, out)?;
    }
    let heads = vec!["request", "count", "errors", "half within", "99 % within"];
    table(heads, rows.collect(), 1..5, None, out)
}

/// Numbers of now; all others only grow.
const GAUGES: [&str; 7] = [
    "dirty_bytes",
    "resident_bytes",
    "capacity_bytes",
    "table_bytes",
    "inodes",
    "most_inodes",
    "open",
];

fn prometheus(stats: &MountStats, out: &mut dyn Write) -> Outcome {
    let quoted = |text: &str| format!("{:?}", plain(text));
    let mount = format!("mountpoint={}", quoted(&stats.mountpoint.to_string_lossy()));
    let all = serde_json::to_value(stats)?;
    for (name, value) in all.as_object().into_iter().flatten() {
        let Some(n) = value.as_u64() else {
            continue;
        };
        let (kind, end) = match GAUGES.contains(&name.as_str()) {
            true => ("gauge", ""),
            false => ("counter", "_total"),
        };
        writeln!(out, "# TYPE larder_mount_{name}{end} {kind}")?;
        writeln!(out, "larder_mount_{name}{end}{{{mount}}} {n}")?;
    }
    type OfFolder = fn(&FolderStats) -> u64;
    let of_folders: [(&str, &str, OfFolder); 5] = [
        ("capacity_bytes", "gauge", |f| f.capacity_bytes),
        ("resident_bytes", "gauge", |f| f.resident_bytes),
        ("dirty_bytes", "gauge", |f| f.dirty_bytes),
        ("hits_total", "counter", |f| f.hits),
        ("misses_total", "counter", |f| f.misses),
    ];
    for (name, kind, of) in of_folders {
        if !stats.folders.is_empty() {
            writeln!(out, "# TYPE larder_mount_folder_{name} {kind}")?;
        }
        for folder in &stats.folders {
            let path = quoted(&folder.folder.to_string_lossy());
            let n = of(folder);
            writeln!(
                out,
                "larder_mount_folder_{name}{{{mount},folder={path}}} {n}"
            )?;
        }
    }
    type Of = fn(&OperationStats) -> f64;
    let of_requests: [(&str, Of); 3] = [
        ("requests", |o| o.count as f64),
        ("request_errors", |o| o.errors as f64),
        ("request_seconds", |o| o.seconds),
    ];
    for (name, of) in of_requests {
        writeln!(out, "# TYPE larder_mount_{name}_total counter")?;
        for (request, operation) in &stats.operations {
            let request = quoted(request);
            let n = of(operation);
            writeln!(
                out,
                "larder_mount_{name}_total{{{mount},request={request}}} {n}"
            )?;
        }
    }
    Ok(())
}

pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub(super) fn hit_percent(hits: u64, misses: u64) -> String {
    match hits + misses {
        0 => "-".to_owned(),
        all => format!("{:.1} %", 100.0 * hits as f64 / all as f64),
    }
}
