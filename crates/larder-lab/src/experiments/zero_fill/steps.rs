//! Where a fault's time goes, and the share of zero-filling.

use super::cells::{CPU, FAULTS, MMAP, STEPS};
use super::look::{Look, exact};
use super::timings::section;
use super::words::{self, finding, text, value};
use crate::contestants::mapping::zeroing::BATCH;
use crate::model::{Analysis, Block, Cell, Finding, Table, Value};
use crate::stats::Estimate;

/// The contestant that takes the kernel's zeroing by difference.
const ZEROING: &str = "step-zeroing";

/// A step on warm batches.
fn warm<'a>(look: &Look<'a>, name: &str) -> Option<&'a Cell> {
    look.cell(STEPS, name, &[("pages", &BATCH.to_string())])
}

/// A step on batches larger than the caches.
fn cold<'a>(look: &Look<'a>, name: &str) -> Option<&'a Cell> {
    look.view.cells(STEPS).into_iter().find(|cell| {
        !cell.twin
            && cell.contestant == name
            && cell
                .params
                .int("pages")
                .is_ok_and(|pages| pages > BATCH as i64)
    })
}

/// The kernel's zeroing of one warm page, nanoseconds: the first write to an allocated page of a memory file less the
/// write to a zeroed one.
pub(super) fn kernel_zeroing(look: &Look<'_>) -> Option<Estimate> {
    look.estimate(STEPS, warm(look, ZEROING)?, CPU)
}

/// The same for pages that are not in the caches.
fn kernel_zeroing_cold(look: &Look<'_>) -> Option<Estimate> {
    look.estimate(STEPS, cold(look, ZEROING)?, CPU)
}

/// Share of zero-filling in a whole life of a block: got, touched, unmapped.
fn share(look: &Look<'_>, pages: i64) -> Option<Estimate> {
    let zeroing = warm(look, ZEROING)?;
    let whole = look.block(STEPS, MMAP, pages, 1)?;
    look.over_rounds(STEPS, &[(zeroing, CPU), (whole, CPU)], |r| {
        (r[1] > 0.0).then(|| pages as f64 * r[0] / r[1])
    })
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(table(look).map(Block::Table));
    let mut findings = Vec::new();
    findings.extend(shares(look));
    findings.extend(bounds(look));
    Analysis {
        findings,
        sections: section("Where the time of a fault goes", blocks),
        ..Analysis::default()
    }
}

/// Share of zero-filling in the bare fault, by the cell that measured both.
fn share_of_fault(look: &Look<'_>, cell: Option<&Cell>) -> Option<Estimate> {
    look.estimate(STEPS, cell?, "share")
}

fn shares(look: &Look<'_>) -> Option<Finding> {
    let parts: Vec<String> = [1, 4, 64]
        .into_iter()
        .filter_map(|pages| {
            let share = share(look, pages)?;
            let unit = if pages == 1 { "page" } else { "pages" };
            Some(format!("{} at {pages} {unit}", words::percent(&share)))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let mut answer = format!(
        "Of the CPU time of a block's whole life, from mmap over the touch to munmap, zeroing its pages while they are warm in the CPU's \
         caches is {}.",
        words::list(&parts)
    );
    if let Some(zero) = kernel_zeroing(look) {
        answer += &format!(" The kernel zeroes a warm page in {}", words::ns(&zero));
        if let Some(share) = share_of_fault(look, warm(look, ZEROING)) {
            answer += &format!(", which is {} of the fault", words::percent(&share));
        }
        answer += ".";
    }
    if let Some(zero) = kernel_zeroing_cold(look) {
        answer += &format!(
            " When more than the caches hold is touched at once it is {}",
            words::ns(&zero)
        );
        if let Some(share) = share_of_fault(look, cold(look, ZEROING)) {
            answer += &format!(", {} of the fault", words::percent(&share));
        }
        answer += ".";
    }
    answer += " In 2003 it was put at 50 to 80 % of the fault.";
    Some(finding(
        "How much of a block's whole life is zero-filling?",
        "larder",
        answer,
        None,
    ))
}

fn bounds(look: &Look<'_>) -> Option<Finding> {
    let write = warm(look, "step-write-fault")?;
    let read = warm(look, "step-read-fault")?;
    let upper = look.over_rounds(STEPS, &[(write, CPU), (read, CPU)], |r| Some(r[0] - r[1]))?;
    let lower = ["stosb", "portable"].into_iter().find_map(|routine| {
        let cell = look.cell(STEPS, "zero-in-place", &[("routine", routine)])?;
        look.estimate(STEPS, cell, CPU)
    })?;
    Some(finding(
        "Is the measure of zero-filling to be trusted?",
        "",
        format!(
            "It is bounded from both sides: zeroing a warm page in place, with no kernel, takes {}; a write fault costs \
             {} more than a read fault, which maps the shared zero page and neither allocates nor zeroes.",
            words::ns(&lower),
            words::ns(&upper)
        ),
        None,
    ))
}

/// The steps in the order of the table, with what each bounds.
const STEPS_TOLD: [(&str, &str, &str, &str); 8] = [
    (
        "step-syscall",
        CPU,
        "a system call that does nothing",
        "floor of entering the kernel",
    ),
    (
        "step-uffd-zeropage",
        CPU,
        "zero page mapped by UFFDIO_ZEROPAGE",
        "a page table entry, no trap, no page",
    ),
    (
        "step-uffd-move",
        CPU,
        "page moved by UFFDIO_MOVE",
        "a page table entry for a page that exists, no trap",
    ),
    (
        "step-shared-around",
        CPU,
        "read of present pages of a file",
        "trap shared by up to 16 pages (fault-around)",
    ),
    (
        "step-read-fault",
        CPU,
        "read fault, zero page",
        "trap and mapping, no page",
    ),
    (
        ZEROING,
        "present_cpu_ns",
        "write fault, page of a memory file, zeroed",
        "trap and mapping of a page that exists",
    ),
    (
        ZEROING,
        "clear_cpu_ns",
        "write fault, page of a memory file, not zeroed",
        "the same and zeroing",
    ),
    (
        "step-write-fault",
        CPU,
        "write fault, anonymous memory",
        "trap, allocation, charge, zeroing, mapping",
    ),
];

fn table(look: &Look<'_>) -> Option<Table> {
    let mut rows = Vec::new();
    for (name, metric, what, bounds) in STEPS_TOLD {
        let (warm, cold) = (warm(look, name), cold(look, name));
        if warm.is_none() && cold.is_none() {
            continue;
        }
        let get = |cell: Option<&Cell>, metric| look.estimate(STEPS, cell?, metric);
        rows.push(vec![
            text(what),
            text(bounds),
            value(get(warm, metric), "ns"),
            value(get(cold, metric), "ns"),
            value(get(warm, FAULTS), ""),
        ]);
    }
    let (warm_zero, cold_zero) = (kernel_zeroing(look), kernel_zeroing_cold(look));
    if warm_zero.is_some() || cold_zero.is_some() {
        rows.push(vec![
            text("the kernel's zeroing"),
            text("difference of the two faults on a memory file, in one process"),
            value(warm_zero, "ns"),
            value(cold_zero, "ns"),
            Value::Empty,
        ]);
    }
    for routine in ["stosb", "portable"] {
        let cell = look.cell(STEPS, "zero-in-place", &[("routine", routine)]);
        if let Some(cell) = cell {
            rows.push(vec![
                text(&format!("zeroing in place, {routine}")),
                text("zeroing and nothing else"),
                value(look.estimate(STEPS, cell, CPU), "ns"),
                Value::Empty,
                value(Some(exact(0.0, 1)), ""),
            ]);
        }
    }
    (!rows.is_empty()).then(|| Table {
        title: "Steps of a fault, per page".to_owned(),
        columns: [
            "step",
            "what it bounds",
            "64 pages at a time",
            "more than the caches hold",
            "faults",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        notes: Vec::new(),
        long: false,
    })
}
