//! The costs that Nat! derived from four timings in August 2003, by the formulas of 2003.
//!
//! # What the text prints and what its program computed
//!
//! The text of 2003 gives the deallocation of one page as `5.45 + 0.3 / 2 * 1 + 3.5 / 2 = 7.5` and the zero-fill
//! as `9.3 - 5.45 / 4 - 3.5 / 2 = 6.15`. Neither sum is right as it stands: they are 7.35 and 6.1875.
//! One reading gives both printed results exactly: in these two lines the allocation cost is that of
//! a call that allocates one page, `allocation cost + page extra cost / 2 = 5.6`, which is the text's own
//! formula two paragraphs above and simply half of `1p alloc`. Then 5.6 + 0.15 + 1.75 = 7.5 and
//! 9.3 - 1.4 - 1.75 = 6.15. The golden table holds the printed results, so [`derive`] follows them;
//! the sums as they stand remain in [`Derived::deallocation_as_printed`] and
//! [`Derived::zero_fill_as_printed`].

use serde::{Deserialize, Serialize};

use super::Timings;

/// One of the seven derived costs, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// What one more page adds to a call pair without a touch.
    PageExtra,
    /// One call to allocate, or one to free, without its pages.
    Allocation,
    /// What touching one page adds to allocating and freeing it.
    PageFaultExtra,
    /// The memory object that the first touch creates and the last free destroys.
    Object,
    /// One page fault with its zero-filling.
    FaultAndZeroFill,
    /// Freeing pages that were touched.
    Deallocation,
    /// Zero-filling one page.
    ZeroFill,
}

impl Quantity {
    /// All of them, in the order of the text.
    pub const ALL: [Self; 7] = [
        Self::PageExtra,
        Self::Allocation,
        Self::PageFaultExtra,
        Self::Object,
        Self::FaultAndZeroFill,
        Self::Deallocation,
        Self::ZeroFill,
    ];

    /// Key in files and in the page's script.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::PageExtra => "page_extra",
            Self::Allocation => "allocation",
            Self::PageFaultExtra => "page_fault_extra",
            Self::Object => "object",
            Self::FaultAndZeroFill => "fault_and_zero_fill",
            Self::Deallocation => "deallocation",
            Self::ZeroFill => "zero_fill",
        }
    }

    /// Label for the user.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::PageExtra => "page extra cost",
            Self::Allocation => "allocation cost",
            Self::PageFaultExtra => "page fault extra cost",
            Self::Object => "object cost",
            Self::FaultAndZeroFill => "fault + zerofill cost",
            Self::Deallocation => "deallocation cost",
            Self::ZeroFill => "zerofill cost",
        }
    }

    /// The formula as it is computed here; `A(1)` is the allocation of one page, half of `1p alloc`.
    #[must_use]
    pub fn formula(self) -> &'static str {
        match self {
            Self::PageExtra => "2p alloc - 1p alloc",
            Self::Allocation => "(1p alloc - page extra) / 2",
            Self::PageFaultExtra => "1p alloc+fault - 1p alloc",
            Self::Object => "2 * (1p alloc+fault - 1p alloc) - (2p alloc+fault - 2p alloc)",
            Self::FaultAndZeroFill => "(2p alloc+fault - 2p alloc) / 2 - object / 2",
            Self::Deallocation => "A(1) + page extra / 2 * pages + object / 2",
            Self::ZeroFill => "fault+zerofill - A(1) / 4 - object / 2",
        }
    }

    /// What a negative value says about the assumptions of 2003.
    #[must_use]
    pub fn negative_means(self) -> &'static str {
        match self {
            Self::PageExtra => "two pages cost less than one: the difference is noise",
            Self::Allocation => "a second page costs more than a whole call pair",
            Self::PageFaultExtra => "touching a page made the call pair cheaper",
            Self::Object => "a second page costs more to touch than the first",
            Self::FaultAndZeroFill => "the object's share is larger than the fault it is part of",
            Self::Deallocation => "the shares of the free do not add up to a time",
            Self::ZeroFill => "less than nothing is left for zero-filling after the guessed shares",
        }
    }
}

/// The derived costs, microseconds. A cost is `None` where it needs the absent `2p alloc`.
///
/// Costs may be negative: then the assumptions do not hold for these timings, see [`Derived::negative`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Derived {
    /// `2p alloc - 1p alloc`.
    pub page_extra: Option<f64>,
    /// `(1p alloc - page extra) / 2`.
    pub allocation: Option<f64>,
    /// `1p alloc+fault - 1p alloc`.
    pub page_fault_extra: f64,
    /// `2 * (1p alloc+fault - 1p alloc) - (2p alloc+fault - 2p alloc)`.
    pub object: Option<f64>,
    /// `(2p alloc+fault - 2p alloc) / 2 - object / 2`.
    pub fault_and_zero_fill: Option<f64>,
    /// `fault+zerofill - A(1) / 4 - object / 2`, with A(1) the allocation of one page.
    pub zero_fill: Option<f64>,
}

/// Derives the costs by the formulas of 2003; docs/calculator.md tells the two places where
/// the printed sums and the printed results differ.
///
/// ```
/// use larder_lab::calc::{Timings, derive};
///
/// // The first row of the table has no 2p alloc: one cost remains.
/// let magee = derive(&Timings::new(9.03, 18.13, None, 24.58).expect("three times"));
/// assert!((magee.page_fault_extra - 9.1).abs() < 1e-9);
/// assert_eq!(magee.zero_fill, None);
/// ```
#[must_use]
pub fn derive(t: &Timings) -> Derived {
    let page_fault_extra = t.alloc1_fault() - t.alloc1();
    let Some(alloc2) = t.alloc2() else {
        return Derived {
            page_extra: None,
            allocation: None,
            page_fault_extra,
            object: None,
            fault_and_zero_fill: None,
            zero_fill: None,
        };
    };
    let page_extra = alloc2 - t.alloc1();
    let allocation = (t.alloc1() - page_extra) / 2.0;
    let fault_extra2 = t.alloc2_fault() - alloc2;
    let object = 2.0 * page_fault_extra - fault_extra2;
    let fault_and_zero_fill = fault_extra2 / 2.0 - object / 2.0;
    let zero_fill = fault_and_zero_fill - one_page(allocation, page_extra) / 4.0 - object / 2.0;
    Derived {
        page_extra: Some(page_extra),
        allocation: Some(allocation),
        page_fault_extra,
        object: Some(object),
        fault_and_zero_fill: Some(fault_and_zero_fill),
        zero_fill: Some(zero_fill),
    }
}

/// "For each page allocated in one call": the allocation cost of a call for one page.
fn one_page(allocation: f64, page_extra: f64) -> f64 {
    allocation + page_extra / 2.0
}

impl Derived {
    /// Freeing `pages` touched pages in one call, microseconds.
    #[must_use]
    pub fn deallocation(&self, pages: u32) -> Option<f64> {
        let extra = self.page_extra?;
        Some(
            one_page(self.allocation?, extra) + extra / 2.0 * f64::from(pages) + self.object? / 2.0,
        )
    }

    /// The same by the sum as it stands in the text, which does not give the printed result.
    #[must_use]
    pub fn deallocation_as_printed(&self, pages: u32) -> Option<f64> {
        Some(self.allocation? + self.page_extra? / 2.0 * f64::from(pages) + self.object? / 2.0)
    }

    /// Zero-filling by the sum as it stands in the text, which does not give the printed result.
    #[must_use]
    pub fn zero_fill_as_printed(&self) -> Option<f64> {
        Some(self.fault_and_zero_fill? - self.allocation? / 4.0 - self.object? / 2.0)
    }

    /// Allocating `pages` pages in one call, microseconds: `allocation + page extra / 2 * pages`.
    #[must_use]
    pub fn allocation_of(&self, pages: u32) -> Option<f64> {
        Some(self.allocation? + self.page_extra? / 2.0 * f64::from(pages))
    }

    /// The whole life of `pages` pages by the model of 2003: allocated, touched and freed, microseconds.
    ///
    /// Its shares, put together again: the allocation, one fault per page, half an object with the first
    /// fault, and the deallocation. It returns the four timings for one and two pages, which is why the
    /// deallocation here is the sum as it stands in the text.
    #[must_use]
    pub fn round_trip(&self, pages: u32) -> Option<f64> {
        Some(
            self.allocation_of(pages)?
                + self.fault_and_zero_fill? * f64::from(pages)
                + self.object? / 2.0
                + self.deallocation_as_printed(pages)?,
        )
    }

    /// One cost by name; `pages` counts for the deallocation only.
    #[must_use]
    pub fn get(&self, quantity: Quantity, pages: u32) -> Option<f64> {
        match quantity {
            Quantity::PageExtra => self.page_extra,
            Quantity::Allocation => self.allocation,
            Quantity::PageFaultExtra => Some(self.page_fault_extra),
            Quantity::Object => self.object,
            Quantity::FaultAndZeroFill => self.fault_and_zero_fill,
            Quantity::Deallocation => self.deallocation(pages),
            Quantity::ZeroFill => self.zero_fill,
        }
    }

    /// The costs below zero: the assumptions do not hold for these timings.
    #[must_use]
    pub fn negative(&self, pages: u32) -> Vec<Quantity> {
        Quantity::ALL
            .into_iter()
            .filter(|q| self.get(*q, pages).is_some_and(|v| v < 0.0))
            .collect()
    }

    /// The costs that cannot be derived because `2p alloc` is absent.
    #[must_use]
    pub fn missing(&self) -> Vec<Quantity> {
        Quantity::ALL
            .into_iter()
            .filter(|q| self.get(*q, 1).is_none())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn ghz() -> Derived {
        derive(&Timings::new(11.2, 24.0, Some(11.5), 33.6).unwrap())
    }

    #[test]
    fn the_1_ghz_example_gives_the_published_table() {
        let names = [
            "page_extra_cost",
            "allocation_cost",
            "page_fault_extra_cost",
            "object_cost",
            "fault_and_zerofill_cost",
            "deallocation_cost_1_page",
            "zerofill_cost",
        ];
        let d = ghz();
        for ((row, name), q) in published::zerofill_derived()
            .iter()
            .zip(names)
            .zip(Quantity::ALL)
        {
            assert_eq!(row.quantity, name);
            let here = d.get(q, 1).unwrap();
            assert!(close(here, row.us), "{name}: {here}, printed {}", row.us);
        }
    }

    #[test]
    fn the_sums_as_printed_differ_from_the_printed_results() {
        let d = ghz();
        assert!(close(d.deallocation_as_printed(1).unwrap(), 7.35));
        assert!(close(d.zero_fill_as_printed().unwrap(), 6.1875));
    }

    #[test]
    fn deallocation_grows_by_half_the_page_extra() {
        let d = ghz();
        assert!(close(d.deallocation(64).unwrap(), 5.6 + 0.15 * 64.0 + 1.75));
    }

    #[test]
    fn the_shares_put_together_give_the_timings_back() {
        let d = ghz();
        assert!(
            close(d.round_trip(1).unwrap(), 24.0),
            "{:?}",
            d.round_trip(1)
        );
        assert!(
            close(d.round_trip(2).unwrap(), 33.6),
            "{:?}",
            d.round_trip(2)
        );
    }

    #[test]
    fn without_two_pages_one_cost_remains() {
        let d = derive(&Timings::new(9.03, 18.13, None, 24.58).unwrap());
        assert!(close(d.page_fault_extra, 9.1));
        assert_eq!(d.missing().len(), 6);
        assert_eq!(d.deallocation(4), None);
        assert!(d.negative(1).is_empty());
    }

    #[test]
    fn negative_costs_are_named() {
        let d = derive(&Timings::new(10.0, 9.0, Some(8.0), 40.0).unwrap());
        let negative = d.negative(1);
        assert!(negative.contains(&Quantity::PageExtra));
        assert!(negative.contains(&Quantity::PageFaultExtra));
        assert!(negative.contains(&Quantity::Object));
        assert!(!negative.contains(&Quantity::Allocation));
        assert!(ghz().negative(1).is_empty());
    }
}
