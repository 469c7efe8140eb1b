//! His three tables again, and those that explain them.

use crate::measure::RunView;
use crate::model::{
    Axis, Block, Cell, Chart, Point, Provenance, Scale, Section, Series, Table, Value,
};
use crate::published;

use super::curve::Curve;
use super::findings::{COST, totals};
use super::plan::{self, PARTS, RELEASE, WHOLE, cell, total_group};

/// Every section, in reading order.
pub(super) fn sections(view: &RunView<'_>) -> Vec<Section> {
    vec![
        Section {
            title: "The tables of 2001, again".to_owned(),
            blocks: vec![
                Block::Table(elapsed(view)),
                Block::Table(deviation(view)),
                Block::Table(standard_error(view)),
            ],
        },
        Section {
            title: "The shape".to_owned(),
            blocks: vec![Block::Chart(shape(view))],
        },
        Section {
            title: "Today's suppliers under the same workload".to_owned(),
            blocks: vec![Block::Table(suppliers(view))],
        },
        Section {
            title: "Why: the parts of a page's life".to_owned(),
            blocks: vec![
                Block::Table(parts(view)),
                Block::Table(release(view)),
                Block::Table(counts(view)),
            ],
        },
    ]
}

fn label(pages: i64) -> Value {
    if pages == 0 {
        Value::Text("unbuffered".to_owned())
    } else {
        Value::Count(pages)
    }
}

/// The cell of a row of his table.
fn row_cell(total: u64, pages: i64) -> Cell {
    if pages == 0 {
        cell("unbuffered", total, None)
    } else {
        cell("cluster", total, Some(pages))
    }
}

/// All totals that either he or this run has.
fn columns(view: &RunView<'_>) -> Vec<u64> {
    let mut all = plan::totals();
    all.extend(totals(view));
    all.sort_unstable();
    all.dedup();
    all
}

/// Elapsed seconds beside his, all pool sizes.
fn elapsed(view: &RunView<'_>) -> Table {
    let ours = totals(view);
    let theirs = plan::totals();
    let mut headings = vec!["pool, pages".to_owned()];
    for total in columns(view) {
        if theirs.contains(&total) {
            headings.push(format!("{total} (2001)"));
        }
        if ours.contains(&total) {
            headings.push(format!("{total} here"));
        }
    }
    let mut sizes = vec![0];
    sizes.extend(plan::pool_sizes());
    let rows = sizes
        .into_iter()
        .map(|pages| {
            let mut row = vec![label(pages)];
            for total in columns(view) {
                if theirs.contains(&total) {
                    row.push(published_elapsed(pages, total));
                }
                if ours.contains(&total) {
                    row.push(estimate(
                        view,
                        &total_group(total),
                        &row_cell(total, pages),
                        "elapsed_s",
                        "s",
                    ));
                }
            }
            row
        })
        .collect();
    Table {
        title: "Table 1: elapsed time by pool size and number of allocations".to_owned(),
        columns: headings,
        rows,
        notes: vec![
            "Walfield's times are of a 450 MHz Xeon with GNU Mach and are shown as a shape: compare rows within a column, never columns of two machines.".to_owned(),
            "Those here are medians of the workload's wall time with their intervals; the process's start is not in them.".to_owned(),
        ],
        long: true,
    }
}

fn published_elapsed(pages: i64, total: u64) -> Value {
    published::walfield_elapsed()
        .iter()
        .find(|row| i64::from(row.pool_pages) == pages && u64::from(row.allocations) == total)
        .map_or(Value::Empty, |row| {
            Value::Published(row.elapsed_s, "s".to_owned())
        })
}

fn estimate(view: &RunView<'_>, group: &str, cell: &Cell, metric: &str, unit: &str) -> Value {
    match view.estimate(group, cell, metric) {
        Some(estimate) => Value::Estimate(estimate, unit.to_owned()),
        None => view
            .middle(group, cell, metric)
            .map_or(Value::Empty, |value| Value::Number(value, unit.to_owned())),
    }
}

/// His eight rows of standard deviations.
fn deviation(view: &RunView<'_>) -> Table {
    let ours = totals(view);
    let theirs = plan::totals();
    let mut headings = vec!["pool, pages".to_owned()];
    for total in columns(view) {
        if theirs.contains(&total) {
            headings.push(format!("{total} (2001)"));
        }
        if ours.contains(&total) {
            headings.push(format!("{total} here"));
        }
    }
    let mut sizes: Vec<i64> = published::walfield_stddev()
        .iter()
        .map(|row| i64::from(row.pool_pages))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let rows = sizes
        .into_iter()
        .map(|pages| {
            let mut row = vec![label(pages)];
            for total in columns(view) {
                if theirs.contains(&total) {
                    row.push(
                        published::walfield_stddev()
                            .iter()
                            .find(|r| {
                                i64::from(r.pool_pages) == pages
                                    && u64::from(r.allocations) == total
                            })
                            .map_or(Value::Empty, |r| {
                                Value::Published(r.stddev_s, "s".to_owned())
                            }),
                    );
                }
                if ours.contains(&total) {
                    row.push(moment(view, total, pages, |m| m.sd));
                }
            }
            row
        })
        .collect();
    Table {
        title: "Table 1, lower half: standard deviation".to_owned(),
        columns: headings,
        rows,
        notes: vec![runs_note(view)],
        long: true,
    }
}

fn moment(
    view: &RunView<'_>,
    total: u64,
    pages: i64,
    pick: impl Fn(&crate::stats::Moments) -> f64,
) -> Value {
    view.moments(&total_group(total), &row_cell(total, pages), "elapsed_s")
        .map_or(Value::Empty, |m| Value::Number(pick(&m), "s".to_owned()))
}

fn runs_note(view: &RunView<'_>) -> String {
    let rounds = view
        .run()
        .groups
        .iter()
        .filter(|group| group.name.starts_with("total-"))
        .map(|group| group.rounds)
        .min()
        .unwrap_or(0);
    format!(
        "Here of at least {rounds} runs; in 2001 of at least ten.{}",
        if rounds < 10 {
            " Run with --full for ten."
        } else {
            ""
        }
    )
}

/// His table 2: the standard error at his largest total, ours at our largest.
fn standard_error(view: &RunView<'_>) -> Table {
    let ours = totals(view).last().copied();
    let mut headings = vec!["pool, pages".to_owned(), "1048576 (2001)".to_owned()];
    headings.extend(ours.map(|total| format!("{total} here")));
    let rows = published::walfield_stderr()
        .iter()
        .map(|row| {
            let pages = i64::from(row.pool_pages);
            let mut cells = vec![
                label(pages),
                Value::Published(row.stderr_s_1m, "s".to_owned()),
            ];
            cells.extend(ours.map(|total| moment(view, total, pages, |m| m.se)));
            cells
        })
        .collect();
    Table {
        title: "Table 2: standard error".to_owned(),
        columns: headings,
        rows,
        notes: vec![runs_note(view)],
        long: false,
    }
}

/// The question of 2001 on an axis of its own: cost over cluster size, each machine as a share of its own unbuffered run.
pub(super) fn u_shape(view: &RunView<'_>) -> Chart {
    let mut chart = shape(view);
    let wanted = |name: &str| name == "cluster" || name.starts_with("Walfield");
    chart.series.retain(|series| wanted(&series.name));
    chart.title = "Cost of a page by cluster size, as a share of one mmap per page".to_owned();
    chart.y.scale = Scale::Linear;
    chart
}

/// Cost over pool size, each machine as a share of its own unbuffered run.
fn shape(view: &RunView<'_>) -> Chart {
    let mut series = vec![his_shape()];
    if let Some(total) = totals(view).last() {
        let group = total_group(*total);
        for contestant in ["cluster", "pool", "pool-handle"] {
            series.push(ratios(view, &group, contestant));
        }
    }
    for contestant in ["cluster-whole", "cluster-populate"] {
        series.push(ratios(view, WHOLE, contestant));
    }
    series.retain(|series| !series.points.is_empty());
    let mut marks = vec![(33.0, "33 pages: single-page TLB flushes end".to_owned())];
    for (level, name) in [(2, "L2"), (3, "L3")] {
        if let Some(pages) = super::cache_size::pages(&view.run().machine, level) {
            marks.push((pages as f64, format!("{name}: {pages} pages")));
        }
    }
    Chart {
        title: "Cost of a page as a share of unbuffered, by pool size".to_owned(),
        x: Axis {
            label: "pages per cluster".to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "cost, 1 = one mmap and munmap per page".to_owned(),
            scale: Scale::Log,
        },
        series,
        marks,
        categories: Vec::new(),
    }
}

fn his_shape() -> Series {
    let total = plan::totals().last().copied().unwrap_or_default();
    let at = |pages: i64| match published_elapsed(pages, total) {
        Value::Published(seconds, _) => Some(seconds),
        _ => None,
    };
    let unbuffered = at(0).unwrap_or(1.0);
    Series {
        name: format!("Walfield 2001, {total} allocations"),
        points: plan::pool_sizes()
            .into_iter()
            .filter_map(|pages| {
                let y = at(pages)? / unbuffered;
                Some(Point {
                    x: pages as f64,
                    y,
                    lo: y,
                    hi: y,
                })
            })
            .collect(),
        from: Provenance::Published,
    }
}

fn ratios(view: &RunView<'_>, group: &str, contestant: &str) -> Series {
    let curve = Curve::new(view, group, contestant);
    let points = view.reference(group).map_or_else(Vec::new, |reference| {
        curve
            .cells()
            .iter()
            .filter_map(|(pages, cell)| {
                let r = view.ratio(group, cell, reference, COST)?;
                Some(Point {
                    x: *pages as f64,
                    y: r.value,
                    lo: r.lo,
                    hi: r.hi,
                })
            })
            .collect()
    });
    Series {
        name: contestant.to_owned(),
        points,
        from: Provenance::Measured,
    }
}

/// Everybody under the workload at the largest total: cost, ratio, memory held.
fn suppliers(view: &RunView<'_>) -> Table {
    let mut table = Table {
        title: "Cost and memory held".to_owned(),
        columns: ["supplier", "pages", "CPU time per page", "of unbuffered", "system calls per page", "faults per page", "held after the last page is back", "making the supplier"]
            .map(str::to_owned)
            .to_vec(),
        notes: vec![
            "Held is what the process's resident memory grew by. System calls are counted where the supplier makes them itself.".to_owned(),
        ],
        ..Table::default()
    };
    let Some(total) = totals(view).last().copied() else {
        return table;
    };
    let group = total_group(total);
    table.title = format!("{} at {total} allocations", table.title);
    let reference = cell("unbuffered", total, None);
    for cell in view.cells(&group) {
        let wide = matches!(cell.contestant.as_str(), "cluster" | "pool" | "pool-handle");
        let pages = cell.params.int("pages").ok();
        // The sweep is in table 1; here its ends and its best stand for it.
        if cell.twin || (wide && !stands_for(view, &group, cell)) {
            continue;
        }
        let c = view.compare(&group, cell, &reference, COST, crate::model::Better::Lower);
        let number = |metric: &str, unit: &str| {
            view.middle(&group, cell, metric)
                .map_or(Value::Empty, |v| Value::Number(v, unit.to_owned()))
        };
        table.rows.push(vec![
            Value::Text(cell.contestant.clone()),
            pages.map_or(Value::Empty, Value::Count),
            estimate(view, &group, cell, COST, "ns"),
            c.ratio.map_or(Value::Empty, |r| Value::Ratio(r, c.verdict)),
            number("calls_per_page", ""),
            number("faults_per_page", ""),
            number("held_bytes", "B"),
            number("setup_s", "s"),
        ]);
    }
    table
}

fn stands_for(view: &RunView<'_>, group: &str, cell: &Cell) -> bool {
    let curve = Curve::new(view, group, &cell.contestant);
    let ends = [curve.cells().first(), curve.cells().last()];
    ends.iter().flatten().any(|(_, end)| end == cell)
        || curve.best(COST).is_some_and(|(_, best)| best == cell)
}

/// Get, touch, give back by cluster size and way of giving back.
fn parts(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    for life in ["life-by-page", "life-whole", "life-populate"] {
        for (pages, cell) in Curve::new(view, PARTS, life).cells() {
            let of = |metric: &str| estimate(view, PARTS, cell, metric, "ns");
            rows.push(vec![
                Value::Text(life.to_owned()),
                Value::Count(*pages),
                of("get_ns"),
                of("touch_ns"),
                of("give_back_ns"),
                of(COST),
            ]);
        }
    }
    Table {
        title: "Per page, CPU time".to_owned(),
        columns: ["way", "pages", "get", "touch", "give back", "together"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec![
            "by-page: one munmap per page, as in 2001. whole: one munmap per cluster. populate: whole, and MAP_POPULATE makes the pages present, so the touch has no fault.".to_owned(),
            "At least 128 pages live together, in whole clusters.".to_owned(),
        ],
        long: false,
    }
}

/// The give-back call around the flush ceiling.
fn release(view: &RunView<'_>) -> Table {
    let rows = Curve::new(view, RELEASE, "release")
        .cells()
        .iter()
        .map(|(pages, cell)| {
            vec![
                Value::Count(*pages),
                estimate(view, RELEASE, cell, "call_ns", "ns"),
                estimate(view, RELEASE, cell, COST, "ns"),
            ]
        })
        .collect();
    Table {
        title: "One MADV_DONTNEED of present pages".to_owned(),
        columns: ["pages in the call", "call", "per page"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: Vec::new(),
        long: false,
    }
}

/// What does not depend on noise.
fn counts(view: &RunView<'_>) -> Table {
    let mut rows = Vec::new();
    let groups = totals(view)
        .last()
        .map(|total| total_group(*total))
        .into_iter()
        .chain([WHOLE.to_owned()]);
    for group in groups {
        for cell in view.cells(&group) {
            if cell.twin || view.middle(&group, cell, "calls_per_page").is_none() {
                continue;
            }
            let count = |metric: &str| {
                view.middle(&group, cell, metric)
                    .map_or(Value::Empty, |v| Value::Number(v, String::new()))
            };
            rows.push(vec![
                Value::Text(cell.contestant.clone()),
                cell.params.int("pages").map_or(Value::Empty, Value::Count),
                count("calls_per_page"),
                count("faults_per_page"),
                count("mappings"),
            ]);
        }
    }
    Table {
        title: "Counts per page".to_owned(),
        columns: ["contestant", "pages", "system calls", "pages made present", "mappings of the process"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec!["The kernel counts a page that a populate call makes present as a fault. Mappings are read while 100 pages are out, 50 of them taken after 50 were given back.".to_owned()],
        long: true,
    }
}
