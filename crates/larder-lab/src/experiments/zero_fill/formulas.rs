//! The costs by his formulas, beside what was measured directly.

use super::cells::{MMAP, TIMINGS};
use super::look::{Look, wide_ratio};
use super::steps::kernel_zeroing;
use super::timings::section;
use super::words::{self, NAT, finding, text, value};
use crate::calc::{Quantity, Timings, derive};
use crate::contestants::mapping::cycle::FOUR;
use crate::model::{Analysis, Block, Finding, Table, Value};
use crate::published;
use crate::stats::Estimate;

/// One of his derived costs for this machine, nanoseconds: computed in each round, settled over the rounds.
pub(super) fn derived(look: &Look<'_>, way: &str, quantity: Quantity) -> Option<Estimate> {
    let cell = look.four(way)?;
    look.over_rounds(TIMINGS, &FOUR.map(|name| (cell, name)), |row| {
        let us = |i: usize| row[i] / 1e3;
        let timings = Timings::new(us(0), us(1), Some(us(2)), us(3)).ok()?;
        derive(&timings).get(quantity, 1).map(|cost| cost * 1e3)
    })
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let mut blocks = Vec::new();
    blocks.extend(table(look).map(Block::Table));
    if !blocks.is_empty() {
        blocks.push(Block::Text(
            "His formulas share the time out by assumption: allocation and deallocation take the same, the object's cost \
             is split evenly, and a quarter of an allocation is the bare fault. The last column measures instead: \
             zero-filling by the difference of two faults that differ in nothing else, the page table by placing blocks."
                .to_owned(),
        ));
    }
    let mut findings = Vec::new();
    findings.extend(guess_against_measure(look));
    findings.extend(second_page(look));
    Analysis {
        findings,
        sections: section("What four timings say", blocks),
        ..Analysis::default()
    }
}

fn table(look: &Look<'_>) -> Option<Table> {
    look.four(MMAP)?;
    let model = super::model::fit(look);
    let row = |quantity: Quantity, key: &str| {
        let then = published::zerofill_derived()
            .iter()
            .find(|row| row.quantity == key)
            .map_or(Value::Empty, |row| {
                Value::Published(row.us, "us".to_owned())
            });
        let direct = match quantity {
            Quantity::ZeroFill => kernel_zeroing(look),
            Quantity::Object => model.as_ref().map(|m| m.per_table),
            Quantity::FaultAndZeroFill => model.as_ref().map(|m| m.per_page),
            _ => None,
        };
        vec![
            text(quantity.label()),
            text(quantity.formula()),
            then,
            value(derived(look, MMAP, quantity), "ns"),
            value(derived(look, "pool-zeroed", quantity), "ns"),
            value(direct, "ns"),
        ]
    };
    Some(Table {
        title: "Derived costs".to_owned(),
        columns: [
            "cost",
            "his formula",
            "1 GHz G4, 2003",
            "here, mmap",
            "here, PagePool",
            "measured directly",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![
            row(Quantity::PageExtra, "page_extra_cost"),
            row(Quantity::Allocation, "allocation_cost"),
            row(Quantity::PageFaultExtra, "page_fault_extra_cost"),
            row(Quantity::Object, "object_cost"),
            row(Quantity::FaultAndZeroFill, "fault_and_zerofill_cost"),
            row(Quantity::Deallocation, "deallocation_cost_1_page"),
            row(Quantity::ZeroFill, "zerofill_cost"),
        ],
        notes: vec![
            "Measured directly: 'object' is one page table, 'fault + zerofill' is one more page of the fitted model (its \
             share of the unmapping included), 'zerofill' is the kernel's zeroing of a warm page. A negative cost means \
             that his assumptions do not hold here."
                .to_owned(),
        ],
        long: false,
    })
}

fn guess_against_measure(look: &Look<'_>) -> Option<Finding> {
    let guess = derived(look, MMAP, Quantity::ZeroFill)?;
    let direct = kernel_zeroing(look)?;
    let mut answer = format!(
        "His formulas give {} for zero-filling one page here; measured directly it is {}.",
        words::ns(&guess),
        words::ns(&direct)
    );
    match wide_ratio(&guess, &direct) {
        Some(ratio) if ratio.lo > 1.0 => {
            answer += &format!(
                " The guess is too high by {}: what is left of a fault after a quarter of an allocation is not zeroing \
                 but entering the kernel, finding a page, charging and mapping it.",
                words::times(&ratio)
            );
        }
        Some(ratio) if ratio.hi < 1.0 => {
            answer += &format!(
                " The guess is too low: {} of the measure.",
                words::times(&ratio)
            );
        }
        Some(ratio) => {
            answer += &format!(
                " The two agree within what was measured: {}.",
                words::times(&ratio)
            );
        }
        None => {
            answer += " One of the two is not surely above zero, so no ratio is given.";
        }
    }
    Some(finding(
        "\"I assumed that approximately a quarter of the time used for allocation is spent for the actual page \
         faulting.\" What do the assumptions get wrong here?",
        NAT,
        answer,
        None,
    ))
}

/// The assumption that two pages cost twice one page and one object.
fn second_page(look: &Look<'_>) -> Option<Finding> {
    let cell = look.four(MMAP)?;
    let of = FOUR.map(|name| (cell, name));
    let first = look.over_rounds(TIMINGS, &of, |r| Some(r[1] - r[0]))?;
    let second = look.over_rounds(TIMINGS, &of, |r| Some((r[3] - r[2]) - (r[1] - r[0])))?;
    let ratio = look.over_rounds(TIMINGS, &of, |r| {
        let (first, second) = (r[1] - r[0], (r[3] - r[2]) - (r[1] - r[0]));
        (first > 0.0).then(|| second / first)
    })?;
    let mut answer = format!(
        "Touching the first page of a fresh block adds {}, the second {}: {} of the first.",
        words::ns(&first),
        words::ns(&second),
        words::times(&ratio)
    );
    let two = published_second_page();
    if let Some((lo, hi)) = two {
        answer += &format!(" On his machines it was {lo:.2} to {hi:.2}.");
    }
    if let Some(model) = super::model::fit(look) {
        answer += &format!(
            " What the first adds is what he called the object; a page table, which it needs where no neighbour has one, \
             is {} of it.",
            words::ns(&model.per_table)
        );
    }
    Some(finding(
        "What does the first touch of a block cost beside its page (the \"object cost\")?",
        NAT,
        answer,
        None,
    ))
}

/// Smallest and largest ratio of the second page's cost to the first's in the published table.
fn published_second_page() -> Option<(f64, f64)> {
    let ratios: Vec<f64> = published::zerofill_machines()
        .iter()
        .filter_map(|m| {
            let first = m.alloc1_fault_us - m.alloc1_us;
            let second = (m.alloc2_fault_us - m.alloc2_us?) - first;
            (first > 0.0).then(|| second / first)
        })
        .collect();
    let lo = ratios.iter().copied().min_by(f64::total_cmp)?;
    let hi = ratios.iter().copied().max_by(f64::total_cmp)?;
    Some((lo, hi))
}
