//! The three tables of 2001 again, and those that explain them.

use std::collections::BTreeSet;

use super::groups::{
    COST, GROWTH, Main, OURS, PARTS, RELEASE, row, sizes, sizes_of_2001, totals, totals_of_2001,
};
use crate::contestants::supply::page_size;
use crate::frame::words::exact;
use crate::frame::{At, Column, Results, grid, line, lines, listing, section};
use crate::model::{Block, Chart, MachineRecord, Provenance, Scale, Section, Series, Table, Value};
use crate::published;
use crate::stats::Moments;

/// Every section, in reading order.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let measured = totals(results).into_iter().map(|(total, _)| total);
    let (known, measured) = (totals_of_2001(), measured.collect::<BTreeSet<i64>>());
    let every = &known | &measured;
    let largest = [known.last(), measured.last()];
    let moment = |of: fn(&Moments) -> f64| {
        move |at: &At<'_, '_>| {
            let moments = results.view.moments(at.group, at.cell, "elapsed_s");
            moments.map_or(Value::Empty, |m| Value::Number(of(&m), "s".to_owned()))
        }
    };
    let elapsed = beside(
        results,
        "Table 1: elapsed time by pool size and number of allocations",
        &every,
        published_elapsed,
        |at| at.value("elapsed_s"),
    )
    .noted("Walfield's times are of a 450 MHz Xeon with GNU Mach and are shown as a shape: compare rows within a column, never columns of two machines.")
    .noted("Those here are medians of the workload's wall time with their intervals; the process's start is not in them.")
    .folded();
    let title = "Table 1, lower half: standard deviation";
    let deviation = beside(
        results,
        title,
        &every,
        published_deviation,
        moment(|m| m.sd),
    )
    .noted(&runs(results))
    .folded();
    let largest = largest.into_iter().flatten().copied().collect();
    let title = "Table 2: standard error";
    let error =
        beside(results, title, &largest, published_error, moment(|m| m.se)).noted(&runs(results));
    let parts = listing(
        "Per page, CPU time",
        results.all(PARTS),
        vec![
            Column::contestant("way"),
            Column::factor("pages", "pages"),
            Column::metric("get", "get_ns"),
            Column::metric("touch", "touch_ns"),
            Column::metric("give back", "give_back_ns"),
            Column::metric("together", COST),
        ],
    )
    .noted("by-page: one munmap per page, as in 2001. whole: one munmap per cluster. populate: whole, and MAP_POPULATE makes the pages present, so the touch has no fault.")
    .noted("At least 128 pages live together, in whole clusters.");
    let release = listing(
        "One MADV_DONTNEED of present pages",
        results.all(RELEASE),
        vec![
            Column::factor("pages in the call", "pages"),
            Column::metric("call", "call_ns"),
            Column::metric("per page", COST),
        ],
    );
    let growth = listing(
        "larder's pool, growing by 4096 pages and returning them",
        results.all(GROWTH),
        vec![
            Column::factor("pages of a cluster", "pages"),
            Column::metric("a page", COST),
            Column::metric("calls", "calls_per_page"),
        ],
    );
    vec![
        section(
            "The tables of 2001, again",
            [elapsed, deviation, error].map(Block::Table),
        ),
        section(
            "Today's suppliers under the same workload",
            suppliers(results)
                .into_iter()
                .chain([growth])
                .map(Block::Table),
        ),
        section(
            "Why: the parts of a page's life",
            [parts, release].map(Block::Table),
        ),
    ]
}

/// A table of 2001 with what was measured here beside it, by pool size and total.
fn beside(
    results: &Results<'_>,
    title: &str,
    totals: &BTreeSet<i64>,
    then: fn(i64, i64) -> Option<f64>,
    now: impl Fn(&At<'_, '_>) -> Value,
) -> Table {
    let known = totals_of_2001();
    let known = |pages: &i64| known.iter().any(|total| then(*pages, *total).is_some());
    let rows = sizes_of_2001().into_iter().filter(known).map(|pages| {
        let name = match pages {
            0 => Value::Text("unbuffered".to_owned()),
            _ => Value::Count(pages),
        };
        (pages, name)
    });
    let columns = totals.iter().flat_map(|total| {
        let names = [(true, "(2001)"), (false, "here")];
        names.map(|(old, when)| ((*total, old), format!("{total} {when}")))
    });
    let groups = self::totals(results);
    grid(
        title,
        "pool, pages",
        rows,
        columns,
        |pages, (total, old)| {
            if *old {
                let seconds = then(*pages, *total);
                return seconds.map_or(Value::Empty, |s| Value::Published(s, "s".to_owned()));
            }
            let group = groups.iter().find(|(own, _)| own == total);
            let at = group.and_then(|(_, group)| row(results, group, *pages));
            at.map_or(Value::Empty, |at| now(&at))
        },
    )
}

/// The number that was published for a size and a total.
fn printed(mut rows: impl Iterator<Item = (u32, u32, f64)>, pages: i64, total: i64) -> Option<f64> {
    let row = rows.find(|row| i64::from(row.0) == pages && i64::from(row.1) == total)?;
    Some(row.2)
}

fn published_elapsed(pages: i64, total: i64) -> Option<f64> {
    let rows = published::walfield_elapsed().iter();
    let rows = rows.map(|r| (r.pool_pages, r.allocations, r.elapsed_s));
    printed(rows, pages, total)
}

fn published_deviation(pages: i64, total: i64) -> Option<f64> {
    let rows = published::walfield_stddev().iter();
    let rows = rows.map(|r| (r.pool_pages, r.allocations, r.stddev_s));
    printed(rows, pages, total)
}

/// Of the largest total only.
fn published_error(pages: i64, total: i64) -> Option<f64> {
    let rows = published::walfield_stderr().iter();
    let rows = rows.map(|r| (r.pool_pages, 1_048_576, r.stderr_s_1m));
    printed(rows, pages, total)
}

fn runs(results: &Results<'_>) -> String {
    let groups = results.view.run().groups.iter();
    let totals = groups.filter(|group| group.name.starts_with("total-"));
    let rounds = totals.map(|group| group.rounds).min().unwrap_or(0);
    format!("Here of at least {rounds} runs; in 2001 of at least ten.")
}

/// The question of 2001 on an axis of its own: cost by cluster size, each machine as a share of its own unbuffered run.
pub(super) fn shape(results: &Results<'_>) -> Chart {
    let total = totals_of_2001().last().copied().unwrap_or_default();
    let one = published_elapsed(0, total).unwrap_or(1.0);
    let then = sizes_of_2001().into_iter().filter(|pages| *pages > 0);
    let then = then.filter_map(|pages| {
        let seconds = published_elapsed(pages, total)?;
        Some((pages as f64, exact(seconds / one)))
    });
    let then = Series {
        from: Provenance::Published,
        ..line(format!("Walfield 2001, {total} allocations"), then)
    };
    let main = Main::of(results);
    let clusters = main.iter().flat_map(|main| &main.clusters.cells);
    let unbuffered = main.as_ref().and_then(|main| main.unbuffered);
    let now =
        clusters.filter_map(|(pages, at)| Some((*pages as f64, at.ratio(&unbuffered?, COST)?)));
    let mut chart = lines(
        "Cost of a page by cluster size, as a share of one mmap per page",
        ("pages per cluster", Scale::Log),
        ("cost, 1 = one mmap and munmap per page", Scale::Linear),
        [then, line("cluster", now)],
    );
    let machine = &results.view.run().machine;
    let caches = [(2, "L2"), (3, "L3")]
        .into_iter()
        .filter_map(|(level, name)| {
            let pages = cache_pages(machine, level)?;
            Some((pages as f64, format!("{name}: {pages} pages")))
        });
    let flush = (33.0, "33 pages: single-page TLB flushes end".to_owned());
    chart.marks = [flush].into_iter().chain(caches).collect();
    chart
}

/// Pages that fit the cache of this level, whose size the kernel writes as `1024K`.
fn cache_pages(machine: &MachineRecord, level: u32) -> Option<usize> {
    let size = machine.text(&format!("cache.l{level}"));
    let kib: usize = size.strip_suffix('K')?.parse().ok()?;
    Some(kib.checked_mul(1024)? / page_size())
}

/// Every supplier under the workload: cost, memory held, counts. Of a sweep its ends and its best stand for it.
fn suppliers(results: &Results<'_>) -> Option<Table> {
    let main = Main::of(results)?;
    let stands = |at: &At<'_, '_>| {
        let swept = at.name() == "cluster" || OURS.contains(&at.name());
        let curve = sizes(results, main.group, at.name());
        let mut chosen = [curve.first(), curve.last(), curve.best(COST)]
            .into_iter()
            .flatten();
        !swept || chosen.any(|(_, own)| own.cell == at.cell)
    };
    let table = listing(
        format!("Cost and memory held at {} allocations", main.total),
        results.all(main.group).filter(stands),
        vec![
            Column::contestant("supplier"),
            Column::factor("pages", "pages"),
            Column::metric("CPU time per page", COST),
            Column::against("of unbuffered", main.unbuffered, COST),
            Column::middle("system calls per page", "calls_per_page"),
            Column::middle("faults per page", "faults_per_page"),
            Column::middle("mappings", "mappings"),
            Column::middle("held after the last page is back", "held_bytes"),
            Column::middle("making the supplier", "setup_s"),
        ],
    );
    Some(table.noted("Held is what the process's resident memory grew by. System calls are counted where the supplier makes them itself. Mappings are read while 100 pages are out, 50 of them taken after 50 were given back."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Field;

    #[test]
    fn a_cache_is_so_many_pages() {
        let mut machine = MachineRecord::default();
        assert_eq!(cache_pages(&machine, 2), None);
        let known = Field::Known("1024K".to_owned());
        machine.fields.insert("cache.l2".to_owned(), known);
        assert_eq!(cache_pages(&machine, 2), Some((1 << 20) / page_size()));
    }
}
