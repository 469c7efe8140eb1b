//! What `sim` prints.

use std::io::Write;

use serde::Serialize;

use super::work::Bend;
use crate::cli::failure::Outcome;
use crate::cli::global::Global;
use crate::cli::output::{self, plain};
use crate::report::number;
use larder_sim::{self as sim, Answer, DEFAULT, Knee, Placed, Row, answers, place, standing};

pub(super) fn rows(
    global: &Global,
    rows: &[Row],
    bends: &[Bend],
    csv: bool,
    out: &mut dyn Write,
) -> Outcome {
    let placed = place(rows);
    if global.json {
        return json_lines(&placed, bends, out);
    }
    if csv {
        return values(&placed, out);
    }
    let mut from = 0;
    while from < placed.len() {
        let trace = &placed[from].row.trace;
        let len = placed[from..]
            .iter()
            .take_while(|p| &p.row.trace == trace)
            .count();
        table(&placed[from..from + len], out)?;
        from += len;
    }
    summary(&placed, out)?;
    let best = [
        best_rules(&placed, bends),
        best_on_disk(&placed, bends),
        best_sizes(bends),
    ];
    for line in best.iter().flatten() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The best rule of each trace and size, a sentence each.
pub(super) fn best_rules(placed: &[Placed], bends: &[Bend]) -> Vec<String> {
    let sentence = |answer: &Answer| {
        let row = &answer.best.row;
        format!("{}: {}.", cell(row, bends), best(answer))
    };
    answers(placed).iter().map(sentence).collect()
}

/// The trace and size of a row.
fn cell(row: &Row, bends: &[Bend]) -> String {
    let bend = bend_of(row, bends);
    let size = blocks(row.size, bend.and_then(|b| b.block_size));
    format!("{}, {size}", plain(&row.trace))
}

fn bend_of<'a>(row: &Row, bends: &'a [Bend]) -> Option<&'a Bend> {
    bends.iter().find(|b| b.trace == row.trace)
}

/// Seconds of the modelled disk.
fn seconds(row: &Row) -> f64 {
    row.disk.map_or(f64::INFINITY, |disk| disk.total_s)
}

/// The row with which the modelled disk is done first, none without a disk: of equal ones LRU, then the default, then the first.
pub(super) fn first_on_disk<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    let preferred = |row: &Row| (row.policy != "lru", row.policy != DEFAULT);
    rows.filter(|row| row.disk.is_some()).min_by(|a, b| {
        let by_seconds = seconds(a).total_cmp(&seconds(b));
        by_seconds.then(preferred(a).cmp(&preferred(b)))
    })
}

/// The rule under which the modelled disk is done first, a sentence for each trace and size.
pub(super) fn best_on_disk(placed: &[Placed], bends: &[Bend]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut rest: Vec<&Row> = placed.iter().map(|p| &p.row).collect();
    rest.retain(|row| row.disk.is_some());
    while let Some(&first) = rest.first() {
        let same = |row: &&Row| row.trace == first.trace && row.asked == first.asked;
        let here: Vec<&Row> = rest.iter().copied().filter(|row| same(row)).collect();
        rest.retain(|row| !same(row));
        let named = |name| here.iter().find(|row| row.policy == name);
        let first = first_on_disk(here.iter().copied());
        let Some(best) = first.filter(|_| here.len() > 1) else {
            continue;
        };
        let mut sentence = format!(
            "{}, on the disk: {} in {}",
            cell(best, bends),
            best.policy,
            number::number(seconds(best), "s")
        );
        for (name, what) in [("lru", ""), (DEFAULT, ", the default")] {
            let other = named(name).filter(|row| seconds(row) > seconds(best));
            if let Some(other) = other {
                let less = (1.0 - seconds(best) / seconds(other)) * 100.0;
                sentence += &format!("; {less:.1} % less than {name}{what}");
            }
        }
        sentences.push(sentence + ".");
    }
    sentences
}

/// Where each trace's curve bends, a sentence each.
pub(super) fn best_sizes(bends: &[Bend]) -> Vec<String> {
    let sentence = |bend: &Bend| {
        let trace = plain(&bend.trace);
        let Some(knee) = bend.knee else {
            return format!("{trace}: no size hits.");
        };
        let size = |n| blocks(n, bend.block_size);
        let further = match knee.a_tenth_more {
            Some(more) => format!("another 10 % of hits cost {} more", size(more)),
            None => "no size brings another 10 % of hits".to_owned(),
        };
        let (about, sample) = if bend.rate < 1.0 {
            let share = bend.rate * 100.0;
            let sample = format!("; an estimate from {share:.2} % of the blocks");
            ("about ", sample)
        } else {
            ("", String::new())
        };
        format!(
            "{trace}: the curve under lru bends at {about}{}, with {:.1} % hits; {further}{sample}.",
            size(knee.size),
            knee.hit_ratio * 100.0
        )
    };
    bends.iter().map(sentence).collect()
}

fn blocks(n: usize, block_size: Option<u32>) -> String {
    let bytes = block_size.map_or(String::new(), |size| {
        format!(" ({})", number::number(n as f64 * f64::from(size), "B"))
    });
    format!("{} blocks{bytes}", number::count(n as i64))
}

fn best(answer: &Answer) -> String {
    let Answer {
        best,
        default_behind_percent,
    } = answer;
    let mut parts = Vec::new();
    match best.misses_saved_percent {
        Some(_) if best.row.policy == "lru" => {
            parts.push("no rule has fewer misses than lru".to_owned());
        }
        Some(saved) => parts.push(format!("{saved:.1} % fewer misses than lru")),
        None => {}
    }
    if let Some(below) = best.below_opt_percent {
        parts.push(format!("{below:.2} points of hits below the best possible"));
    }
    match default_behind_percent {
        Some(behind) if *behind >= 0.005 => parts.push(format!(
            "{DEFAULT}, the default, is {behind:.2} points behind"
        )),
        Some(_) if best.row.policy != DEFAULT => {
            parts.push(format!("{DEFAULT}, the default, is as good"));
        }
        _ => {}
    }
    parts.insert(0, best.row.policy.clone());
    parts.join("; ")
}

/// A row, and where the curve of its trace bends.
#[derive(Serialize)]
struct JsonRow<'a> {
    #[serde(flatten)]
    placed: &'a Placed,
    #[serde(skip_serializing_if = "Option::is_none")]
    knee: Option<JsonKnee>,
}

#[derive(Serialize)]
struct JsonKnee {
    #[serde(flatten)]
    knee: Knee,
    /// Share of the blocks that were looked at.
    rate: f64,
}

/// One line for each.
fn json_lines(placed: &[Placed], bends: &[Bend], out: &mut dyn Write) -> Outcome {
    for placed in placed {
        let bend = bend_of(&placed.row, bends);
        let knee = bend.and_then(|bend| {
            let rate = bend.rate;
            bend.knee.map(|knee| JsonKnee { knee, rate })
        });
        serde_json::to_writer(&mut *out, &JsonRow { placed, knee })?;
        writeln!(out)?;
    }
    Ok(())
}

fn values(placed: &[Placed], out: &mut dyn Write) -> Outcome {
    let on_disk = placed.iter().any(|p| p.row.disk.is_some());
    write!(
        out,
        "trace,format,uses,blocks,policy,size,hits,misses,hit_percent,gap_closed_percent"
    )?;
    if on_disk {
        write!(out, ",disk_read,disk_written,disk_commands,disk_seconds")?;
    }
    writeln!(out)?;
    for Placed {
        row,
        hit_percent,
        gap_closed_percent,
        ..
    } in placed
    {
        let trace = row.trace.replace('"', "\"\"");
        let closed = gap_closed_percent.map_or(String::new(), |c| c.to_string());
        write!(
            out,
            "\"{trace}\",{},{},{},{},{},{},{},{hit_percent},{closed}",
            row.format,
            row.counts.uses,
            row.counts.blocks,
            row.policy,
            row.size,
            row.tally.hits,
            row.tally.misses
        )?;
        match row.disk {
            Some(disk) => write!(
                out,
                ",{},{},{},{}",
                disk.read, disk.written, disk.commands, disk.total_s
            )?,
            None if on_disk => write!(out, ",,,,")?,
            None => {}
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Rules down, sizes across.
fn table(placed: &[Placed], out: &mut dyn Write) -> Outcome {
    let Some(Placed { row: first, .. }) = placed.first() else {
        return Ok(());
    };
    let counts = &first.counts;
    write!(
        out,
        "{} ({}): {} uses of {} blocks",
        plain(&first.trace),
        first.format,
        counts.uses,
        counts.blocks
    )?;
    if counts.requests != counts.uses {
        write!(out, " by {} requests", counts.requests)?;
    }
    for (n, what) in [
        (counts.writes, "writes"),
        (counts.readahead, "read ahead"),
        (counts.removed, "removed"),
        (counts.states, "changes of state"),
    ] {
        if n > 0 {
            write!(out, ", {n} {what}")?;
        }
    }
    writeln!(out)?;
    let mut sizes: Vec<(usize, &str)> = Vec::new();
    let mut policies: Vec<&str> = Vec::new();
    for p in placed {
        let size = (p.row.size, p.row.asked.as_str());
        if !sizes.contains(&size) {
            sizes.push(size);
        }
        if !policies.contains(&p.row.policy.as_str()) {
            policies.push(&p.row.policy);
        }
    }
    if first.disk.is_some() {
        return on_disk(placed, &sizes, out);
    }
    let mut heads = vec!["rule".to_owned()];
    for (size, asked) in &sizes {
        let share = if asked.ends_with(['%', 'B']) {
            format!(" ({asked})")
        } else {
            String::new()
        };
        heads.push(format!("{size}{share}"));
        heads.push("gap".to_owned());
    }
    let rows = policies.into_iter().map(|policy| {
        let mut cells = vec![policy.to_owned()];
        for (size, asked) in &sizes {
            let found = placed
                .iter()
                .find(|p| p.row.policy == policy && p.row.size == *size && p.row.asked == *asked);
            cells.push(found.map_or(String::new(), |p| format!("{:.2}", p.hit_percent)));
            let closed = found.and_then(|p| p.gap_closed_percent);
            cells.push(closed.map_or("-".to_owned(), |c| format!("{c:.0}")));
        }
        cells
    });
    output::table(heads, rows.collect(), 1..usize::MAX, None, out)?;
    writeln!(
        out,
        "Hits in % of the uses; gap: the share of the way from lru to opt, in %.\n"
    )?;
    Ok(())
}

/// A table for each size: what the rules find, and what the disk does under them.
fn on_disk(placed: &[Placed], sizes: &[(usize, &str)], out: &mut dyn Write) -> Outcome {
    for (size, asked) in sizes {
        let here = placed
            .iter()
            .filter(|p| p.row.size == *size && p.row.asked == *asked);
        let rows = here.filter_map(|p| {
            let disk = p.row.disk?;
            Some(vec![
                p.row.policy.clone(),
                format!("{:.2}", p.hit_percent),
                disk.read.to_string(),
                disk.written.to_string(),
                disk.commands.to_string(),
                format!("{:.2}", disk.waited_s),
                format!("{:.2}", disk.total_s),
            ])
        });
        let heads = ["hits %", "read", "written", "commands", "waited s", "all s"];
        let heads: Vec<String> = std::iter::once(format!("{size} blocks"))
            .chain(heads.map(str::to_owned))
            .collect();
        output::table(heads, rows.collect(), 1..usize::MAX, None, out)?;
    }
    writeln!(
        out,
        "Hits in % of the uses; blocks read and written, commands and seconds of the modelled disk.\n"
    )?;
    Ok(())
}

fn summary(placed: &[Placed], out: &mut dyn Write) -> Outcome {
    let standing = standing(placed);
    if standing.len() < 3 {
        return Ok(());
    }
    writeln!(
        out,
        "Share of the way from LRU to OPT, over all traces and sizes:"
    )?;
    for (policy, mean, least, cells) in standing {
        writeln!(
            out,
            "  {policy:14} {mean:6.1} % in the mean, {least:6.1} % at least, {cells} cells"
        )?;
    }
    Ok(())
}

/// How fast each cell was, on stderr.
pub(super) fn times(records: usize, outcomes: &[sim::Outcome]) {
    for o in outcomes {
        let rate = records as f64 / o.took.as_secs_f64().max(1e-9) / 1e6;
        eprintln!(
            "{:14} {:9} blocks  {:8.1} M records/s  {:6.1} MiB of state",
            o.job.policy,
            o.job.size,
            rate,
            o.bytes as f64 / 1048576.0
        );
    }
}
