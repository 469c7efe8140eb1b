//! The better model: a cost per call, per page and per page table, each with its interval.

use serde::{Deserialize, Serialize};

/// One fitted cost with its interval, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub lo: f64,
    /// Upper end of its interval.
    pub hi: f64,
}

impl Parameter {
    /// A cost with its interval; the ends are put in order.
    #[must_use]
    pub fn new(value: f64, lo: f64, hi: f64) -> Self {
        Self {
            value,
            lo: lo.min(hi),
            hi: hi.max(lo),
        }
    }

    /// A cost known without an interval.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self::new(value, value, value)
    }
}

/// `cost = call + pages * per_page + page_tables * per_table`, microseconds per operation.
///
/// An operation is the whole life of `pages` pages in one call: allocated, touched, freed.
/// A page table maps `table_pages` pages, so `pages` of them need `ceil(pages / table_pages)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedModel {
    /// What was fitted, for instance `mmap + touch + munmap`.
    pub name: String,
    /// Cost of a call pair whatever its size.
    pub call: Parameter,
    /// Cost of one page.
    pub per_page: Parameter,
    /// Cost of one page table; zero where the fit had none.
    pub per_table: Parameter,
    /// Pages that one page table maps: 512 on x86-64 and on most others.
    pub table_pages: u32,
    /// Zero-filling of one page as it was measured directly, where it was.
    pub zero_fill: Option<Parameter>,
}

impl FittedModel {
    /// Cost of `pages` pages in one operation, microseconds.
    ///
    /// The interval is the model at the lower and at the upper ends of all its costs: it is never too
    /// narrow, and wider than a joint interval would be because errors of the three costs offset each other.
    ///
    /// ```
    /// use larder_lab::calc::{FittedModel, Parameter};
    ///
    /// let model = FittedModel {
    ///     name: "mmap".into(),
    ///     call: Parameter::new(1.0, 0.9, 1.1),
    ///     per_page: Parameter::new(0.5, 0.4, 0.6),
    ///     per_table: Parameter::exact(0.2),
    ///     table_pages: 512,
    ///     zero_fill: None,
    /// };
    /// assert_eq!(model.predict(4).value, 1.0 + 4.0 * 0.5 + 0.2);
    /// assert_eq!(model.predict(513).value, 1.0 + 513.0 * 0.5 + 2.0 * 0.2);
    /// ```
    #[must_use]
    pub fn predict(&self, pages: u32) -> Parameter {
        let n = f64::from(pages);
        let tables = f64::from(pages.div_ceil(self.table_pages.max(1)));
        let at = |part: fn(&Parameter) -> f64| {
            part(&self.call) + n * part(&self.per_page) + tables * part(&self.per_table)
        };
        Parameter {
            value: at(|p| p.value),
            lo: at(|p| p.lo),
            hi: at(|p| p.hi),
        }
    }

    /// Share of zero-filling in the cost of `pages` pages, 0 to 1 where the model fits;
    /// `None` where zero-filling was not measured or the cost is not positive.
    #[must_use]
    pub fn zero_fill_share(&self, pages: u32) -> Option<f64> {
        let cost = self.predict(pages).value;
        let zero = self.zero_fill?.value * f64::from(pages);
        (cost > 0.0).then_some(zero / cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> FittedModel {
        FittedModel {
            name: "mmap".into(),
            call: Parameter::new(1.0, 0.9, 1.1),
            per_page: Parameter::new(0.5, 0.6, 0.4),
            per_table: Parameter::new(0.25, 0.0, 0.5),
            table_pages: 512,
            zero_fill: Some(Parameter::exact(0.125)),
        }
    }

    #[test]
    fn tables_are_counted_whole() {
        let m = model();
        assert_eq!(m.predict(512).value, 1.0 + 256.0 + 0.25);
        assert_eq!(m.predict(513).value, 1.0 + 256.5 + 0.5);
    }

    #[test]
    fn the_interval_holds_the_estimate() {
        let p = model().predict(64);
        assert!(p.lo < p.value && p.value < p.hi, "{p:?}");
        assert!((p.lo - (0.9 + 64.0 * 0.4)).abs() < 1e-12);
    }

    #[test]
    fn zero_pages_per_table_is_no_division_by_zero() {
        let m = FittedModel {
            table_pages: 0,
            ..model()
        };
        assert!(m.predict(4).value.is_finite());
    }

    #[test]
    fn share_of_zero_filling() {
        let share = model().zero_fill_share(4).unwrap();
        assert!((share - 0.5 / 3.25).abs() < 1e-12);
        let unknown = FittedModel {
            zero_fill: None,
            ..model()
        };
        assert_eq!(unknown.zero_fill_share(4), None);
    }
}
