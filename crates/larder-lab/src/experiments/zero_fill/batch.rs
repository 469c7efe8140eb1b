//! Does it pay to fault in batches, and to map small blocks at once?

use super::cells::{BLOCKS, CPU, FIRST_TOUCH, MMAP, POPULATE, SIZES, STEPS, TIMINGS};
use super::look::{Compared, Look};
use super::timings::section;
use super::words::{self, NAT, finding, ratio};
use crate::contestants::mapping::cycle::FOUR;
use crate::model::{Analysis, Block, Finding, Table, Value};
use crate::stats::{Estimate, Verdict};

/// Populated against touched, at this many pages.
fn populated(look: &Look<'_>, pages: i64) -> Option<Compared> {
    let (ours, theirs) = (
        look.block(SIZES, POPULATE, pages, 1)?,
        look.block(SIZES, MMAP, pages, 1)?,
    );
    look.compare(SIZES, ours, theirs, CPU)
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(table(look).map(Block::Table));
    let mut findings = Vec::new();
    findings.extend(batches(look));
    findings.extend(small(look));
    Analysis {
        findings,
        sections: section("Batches and early mapping", blocks),
        ..Analysis::default()
    }
}

fn table(look: &Look<'_>) -> Option<Table> {
    let rows: Vec<Vec<Value>> = BLOCKS
        .iter()
        .filter_map(|&pages| {
            let compared = populated(look, pages)?;
            let of = |way| {
                let cell = look.block(SIZES, way, pages, 1)?;
                look.estimate(SIZES, cell, CPU)
            };
            Some(vec![
                Value::Count(pages),
                words::value(of(MMAP), "ns"),
                words::value(of(POPULATE), "ns"),
                ratio(Some(compared)),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "A block faulted in page by page, and in one batch within the call".to_owned(),
        columns: ["pages", "mmap and touch", "MAP_POPULATE", "ratio"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: Vec::new(),
        long: false,
    })
}

fn batches(look: &Look<'_>) -> Option<Finding> {
    let sizes: Vec<(i64, Compared)> = [4, 16, 64]
        .into_iter()
        .filter_map(|pages| Some((pages, populated(look, pages)?)))
        .collect();
    let largest = sizes.last()?;
    let mut answer = match largest.1.verdict {
        Verdict::Faster => "Yes",
        Verdict::Slower => "No",
        Verdict::Same { .. } => "It makes no difference",
        _ => "It is not decided",
    }
    .to_owned();
    answer += &format!(" at {} pages", largest.0);
    let each: Vec<String> = sizes
        .iter()
        .map(|(pages, c)| format!("{} at {pages} pages", words::compared(c)))
        .collect();
    answer += &format!(
        ". Faulting a block in within the call (MAP_POPULATE) costs, against touching it page by page, {}.",
        words::list(&each)
    );
    if let Some(around) = fault_around(look) {
        answer += &format!(
            " For pages of a file that are in memory the kernel batches by itself (fault-around): {} of a fault per page.",
            words::times(&around)
        );
    }
    if let Some(huge) = huge(look) {
        answer += &format!(
            " One fault for a whole huge page costs, per 4 KiB, {} of small pages.",
            words::compared(&huge)
        );
    }
    Some(finding(
        "\"An easy optimization would be to batch fault more pages in when a page fault occurs.\" Does it pay?",
        NAT,
        answer,
        Some(largest.1.verdict),
    ))
}

fn fault_around(look: &Look<'_>) -> Option<Estimate> {
    let around = look.cell(STEPS, "step-shared-around", &[])?;
    let single = look.cell(STEPS, "step-zeroing", &[("pages", "64")])?;
    look.over_rounds(STEPS, &[(around, CPU), (single, "present_cpu_ns")], |r| {
        (r[1] > 0.0).then(|| r[0] / r[1])
    })
}

/// Huge against small pages on memory that the process has had before.
fn huge(look: &Look<'_>) -> Option<Compared> {
    let huge = look
        .cell(FIRST_TOUCH, "region-thp", &[])
        .or_else(|| look.cell(FIRST_TOUCH, "region-mthp", &[]))?;
    let plain = look.cell(FIRST_TOUCH, "region-touch", &[])?;
    look.compare(FIRST_TOUCH, huge, plain, "again_cpu_ns_per_op")
}

fn small(look: &Look<'_>) -> Option<Finding> {
    let (early, late) = (look.four(POPULATE)?, look.four(MMAP)?);
    let against = |metric| look.compare(TIMINGS, early, late, metric);
    let (one, two) = (against(FOUR[1])?, against(FOUR[3])?);
    let mut answer = format!(
        "Mapped within the call instead of at the first touch, one page costs {} and two pages {}.",
        words::compared(&one),
        words::compared(&two)
    );
    if let Some(untouched) = against(FOUR[0]) {
        answer += &format!(
            " A page that is never touched costs {}.",
            words::times(&untouched.ratio)
        );
    }
    if let Some(even) = break_even(look) {
        answer += &if even.lo > 1.0 {
            format!(
                " Even if every page is touched it does not pay: it would have to be {} of them.",
                words::percent(&even)
            )
        } else if even.hi <= 1.0 {
            format!(
                " It pays where more than {} of the pages are touched.",
                words::percent(&even)
            )
        } else {
            format!(
                " It pays, if at all, where nearly every page is touched: the break-even lies at {} of the pages.",
                words::percent(&even)
            )
        };
    }
    Some(finding(
        "\"For very small allocations, it would probably be advantageous to immediately map in the one or two pages.\" \
         Is it?",
        NAT,
        answer,
        Some(one.verdict),
    ))
}

/// Share of one-page blocks that must be touched for early mapping to pay:
/// (populated - untouched) / (touched - untouched).
fn break_even(look: &Look<'_>) -> Option<Estimate> {
    let (early, late) = (look.four(POPULATE)?, look.four(MMAP)?);
    look.over_rounds(
        TIMINGS,
        &[(early, FOUR[1]), (late, FOUR[0]), (late, FOUR[1])],
        |r| (r[2] > r[1]).then(|| (r[0] - r[1]) / (r[2] - r[1])),
    )
}
