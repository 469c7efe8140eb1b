//! The costs by his formulas, beside what was measured directly.

use super::cells::{MMAP, TIMINGS};
use super::look::{Look, scaled, wide_ratio};
use super::steps::kernel_zeroing;
use super::timings::section;
use super::words::{self, NAT, finding, text, value};
use crate::calc::{Derived, Quantity, Timings, derive};
use crate::contestants::mapping::cycle::FOUR;
use crate::model::{Analysis, Block, Finding, ShortAnswer, Table, Value};
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
    findings.extend(fault_is_largest(look));
    findings.extend(four_pages(look));
    findings.extend(zeroing_of_four(look).map(|share| zeroing_finding(&share)));
    Analysis {
        findings,
        answers: answers(look),
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
                " The guess is too high by {}; what the rest of the fault is, the table of its steps counts.",
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

/// What his model makes of the four timings, in each round, settled over the rounds.
fn modelled(look: &Look<'_>, of: impl Fn(&Derived) -> Option<f64>) -> Option<Estimate> {
    let cell = look.four(MMAP)?;
    look.over_rounds(TIMINGS, &FOUR.map(|name| (cell, name)), |row| {
        let us = |i: usize| row[i] / 1e3;
        of(&derive(
            &Timings::new(us(0), us(1), Some(us(2)), us(3)).ok()?,
        ))
    })
}

/// Microseconds of allocating and faulting in so many pages by his model; the first touch makes half of the object.
fn allocated_and_faulted(d: &Derived, pages: u32) -> Option<f64> {
    let faults = f64::from(pages) * d.fault_and_zero_fill? + d.object? / 2.0;
    Some(d.allocation_of(pages)? + faults)
}

/// "On all machines observed ... the page fault time is the largest of the three."
fn fault_is_largest(look: &Look<'_>) -> Option<Finding> {
    let ratio = modelled(look, |d| {
        let rest = d.allocation_of(1)?.max(d.deallocation(1)?);
        (rest > 0.0).then(|| d.page_fault_extra / rest)
    })?;
    let says = match ratio {
        r if r.lo > 1.0 => "Yes",
        r if r.hi < 1.0 => "No",
        _ => "Not decided",
    };
    Some(finding(
        "\"The page fault time is the largest of the three\", beside allocation and deallocation. Is it?",
        NAT,
        format!(
            "{says}: by the formulas of 2003 it is {} of the larger of the other two.",
            words::times(&ratio)
        ),
        None,
    ))
}

/// "Already with only 4 pages ... the time for faulting in and zerofilling the pages takes 80% of the time."
fn four_pages(look: &Look<'_>) -> Option<Finding> {
    let share = modelled(look, |d| {
        let whole = allocated_and_faulted(d, 4)? + d.deallocation(4)?;
        (whole > 0.0).then_some(4.0 * d.fault_and_zero_fill? / whole)
    })?;
    Some(finding(
        "Do faulting in and zero-filling take 80 % of the time with only 4 pages?",
        NAT,
        format!(
            "By the formulas of 2003 they take {} of allocating, touching and freeing 4 pages here.",
            words::percent(&share)
        ),
        None,
    ))
}

/// Zero-filling 4 pages, as the kernel does it to warm ones, over allocating and faulting them in.
fn zeroing_of_four(look: &Look<'_>) -> Option<Estimate> {
    let zeroing = scaled(&kernel_zeroing(look)?, 4.0);
    let whole = modelled(look, |d| allocated_and_faulted(d, 4).map(|us| us * 1e3))?;
    wide_ratio(&zeroing, &whole)
}

/// "Of the time spent for allocating and faulting in 4 pages, at least 50% will be spent zero filling."
fn zeroing_finding(share: &Estimate) -> Finding {
    let says = match share {
        s if s.hi < 0.5 => "No, that is refuted here",
        s if s.lo >= 0.5 => "Yes",
        _ => "Not decided",
    };
    let percent = words::percent(share);
    finding(
        "Is at least half of allocating and faulting in 4 pages zero-filling?",
        NAT,
        format!(
            "{says}: zeroing 4 warm pages is {percent} of that time. Its two parts come from different rounds, so the interval \
             is wide."
        ),
        None,
    )
}

/// What the summary says of zero-filling.
fn answers(look: &Look<'_>) -> Vec<ShortAnswer> {
    let zeroing = zeroing_of_four(look).map(|share| {
        let says = if share.hi < 0.5 { "no" } else { "perhaps" };
        let percent = words::percent(&share);
        ShortAnswer::new(
            "Is zero-filling the cost?",
            format!("{says}: {percent} of getting 4 pages"),
        )
    });
    zeroing.into_iter().collect()
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
