//! The formulas of 2003 applied to the four timings, and estimates from more than one cell.

use super::cells::*;
use super::model;
use crate::calc::{Derived, Quantity, Timings, derive};
use crate::contestants::mapping::cycle::FOUR;
use crate::frame::{Results, shown, text};
use crate::model::{Table, Value};
use crate::published;
use crate::stats::Estimate;

/// What a function makes of the costs that the formulas derive, microseconds, in each round.
pub(super) fn derived(
    results: &Results<'_>,
    way: &str,
    of: impl Fn(&Derived) -> Option<f64>,
) -> Option<Estimate> {
    let four = four(results, way)?;
    over_rounds(&FOUR.map(|name| (four, name)), |ns| {
        let us = |i: usize| ns[i] / 1e3;
        let timings = Timings::new(us(0), us(1), Some(us(2)), us(3));
        let cost = timings.ok().and_then(|timings| of(&derive(&timings)));
        cost.unwrap_or(f64::NAN)
    })
}

/// One of the derived costs, nanoseconds.
pub(super) fn cost(results: &Results<'_>, way: &str, quantity: Quantity) -> Option<Estimate> {
    derived(results, way, |d| Some(d.get(quantity, 1)? * 1e3))
}

/// Allocating this many pages and the object of the first touch, of which the first touch makes half. Microseconds.
fn allocated(d: &Derived, pages: u32) -> Option<f64> {
    Some(d.allocation_of(pages)? + d.object? / 2.0)
}

/// Allocating and faulting in this many pages, microseconds.
fn allocated_and_faulted(d: &Derived, pages: u32) -> Option<f64> {
    Some(d.allocation_of(pages)? + (f64::from(pages) * d.fault_and_zero_fill? + d.object? / 2.0))
}

/// The page fault over the larger of allocation and deallocation, of one page.
pub(super) fn fault_of_the_rest(results: &Results<'_>) -> Option<Estimate> {
    derived(results, MMAP, |d| {
        let rest = d.allocation_of(1)?.max(d.deallocation(1)?);
        (rest > 0.0).then(|| d.page_fault_extra / rest)
    })
}

/// Share of faulting in and zero-filling in the whole life of 4 pages.
pub(super) fn faults_of_four(results: &Results<'_>) -> Option<Estimate> {
    derived(results, MMAP, |d| {
        let whole = allocated_and_faulted(d, 4)? + d.deallocation(4)?;
        (whole > 0.0).then_some(4.0 * d.fault_and_zero_fill? / whole)
    })
}

/// Share of zero-filling in allocating and faulting in 4 pages, warm. Its parts come from different rounds.
pub(super) fn zeroing_of_four(results: &Results<'_>) -> Option<Estimate> {
    let zeroing = scaled(&kernel_zeroing(results)?, 4.0);
    let whole = derived(results, MMAP, |d| Some(allocated_and_faulted(d, 4)? * 1e3))?;
    wide_ratio(&zeroing, &whole)
}

/// The same for cold pages: the fault is the one that was measured with them, the allocation that of the formulas.
pub(super) fn zeroing_of_four_cold(results: &Results<'_>) -> Option<Estimate> {
    let cold = cold(results, ZEROING)?;
    let zeroing = scaled(&cold.estimate(CPU)?, 4.0);
    let faults = scaled(&cold.estimate("fault_cpu_ns")?, 4.0);
    let allocated = derived(results, MMAP, |d| Some(allocated(d, 4)? * 1e3))?;
    let whole = Estimate {
        value: faults.value + allocated.value,
        lo: faults.lo + allocated.lo,
        hi: faults.hi + allocated.hi,
        ..allocated
    };
    wide_ratio(&zeroing, &whole)
}

/// `a / b` of two estimates that were not measured in pairs: the widest ratio that their intervals allow, which is never
/// too narrow. `None` unless both are wholly positive.
pub(super) fn wide_ratio(a: &Estimate, b: &Estimate) -> Option<Estimate> {
    (a.lo > 0.0 && b.lo > 0.0).then(|| Estimate {
        value: a.value / b.value,
        lo: a.lo / b.hi,
        hi: a.hi / b.lo,
        n: a.n.min(b.n),
        level: a.level.min(b.level),
    })
}

/// The derived costs: of 2003, of this machine, and measured directly.
pub(super) fn table(results: &Results<'_>) -> Table {
    let model = model::fit(results);
    let row = |(quantity, then): (Quantity, &published::ZerofillDerived)| {
        let direct = match quantity {
            Quantity::ZeroFill => kernel_zeroing(results),
            Quantity::Object => model.as_ref().map(|m| m.per_table),
            Quantity::FaultAndZeroFill => model.as_ref().map(|m| m.per_page),
            _ => None,
        };
        [
            text(quantity.label()),
            text(quantity.formula()),
            Value::Published(then.us, "us".to_owned()),
            shown(cost(results, MMAP, quantity), "ns"),
            shown(cost(results, POOL, quantity), "ns"),
            shown(direct, "ns"),
        ]
    };
    let rows = Quantity::ALL.into_iter();
    let rows = rows.zip(published::zerofill_derived());
    let columns = [
        "cost",
        "formula of 2003",
        "1 GHz G4, 2003",
        "here, mmap",
        "here, PagePool",
        "measured directly",
    ];
    let rows = four(results, MMAP).map_or_else(Vec::new, |_| rows.map(row).collect());
    Table::new("Derived costs", &columns, rows)
    .noted(
        "The formulas share the time out by assumption: allocation and deallocation take the same, the object's cost is split \
         evenly, and a quarter of an allocation is the bare fault. A negative cost means that they do not hold here.",
    )
    .noted(
        "Measured directly: 'object' is one page table, 'fault + zerofill' one more page of the fitted model (its share of \
         the unmapping included), 'zerofill' the kernel's zeroing of a warm page.",
    )
}
