//! The better model: `cost = call + pages * b + page tables * c`, fitted to placed blocks of 1 to 64 pages.

use super::cells::*;
use crate::calc::{FittedModel, Parameter};
use crate::frame::{At, Column, Results, line, lines, listing, over, text};
use crate::model::{Block, Chart, Scale, Value};
use crate::stats::fit::{Fit, weighted};
use crate::stats::{Estimate, defaults};

/// The fitted costs in nanoseconds, with the fit behind them.
pub(super) struct Model<'r, 'a> {
    call: Estimate,
    pub(super) per_page: Estimate,
    pub(super) per_table: Estimate,
    fit: Fit,
    cells: Vec<At<'r, 'a>>,
}

/// Fits the model to every sample of the placed blocks, each weighted by the inverse square of its cell's median, because
/// noise grows with cost. `None` with too few samples.
pub(super) fn fit<'r, 'a>(results: &'r Results<'a>) -> Option<Model<'r, 'a>> {
    let (mut rows, mut y, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut cells = Vec::new();
    for at in results.all(TABLES) {
        let (Some(pages), Some(tables)) = (at.int("pages"), at.int("tables")) else {
            continue;
        };
        let Some(middle) = at.middle(CPU).filter(|middle| *middle > 0.0) else {
            continue;
        };
        for sample in at.by_round(CPU).into_values() {
            rows.push(vec![1.0, pages as f64, tables as f64]);
            y.push(sample);
            weights.push(middle.powi(-2));
        }
        cells.push(at);
    }
    let fit = weighted(&rows, &y, &weights, defaults::LEVEL).ok()?;
    let [call, per_page, per_table] = fit.coefficients.as_slice() else {
        return None;
    };
    cells.sort_by_key(|at| (at.int("pages"), at.int("tables")));
    Some(Model {
        call: *call,
        per_page: *per_page,
        per_table: *per_table,
        fit,
        cells,
    })
}

impl Model<'_, '_> {
    fn predict(&self, pages: i64, tables: i64) -> f64 {
        self.call.value + pages as f64 * self.per_page.value + tables as f64 * self.per_table.value
    }

    fn of(&self, at: &At<'_, '_>) -> Option<f64> {
        Some(self.predict(at.int("pages")?, at.int("tables")?))
    }

    /// By how much a cell's cost is off the model, as a share of the model.
    fn off(&self, at: &At<'_, '_>) -> Option<f64> {
        Some(at.middle(CPU)? / self.of(at)? - 1.0)
    }

    /// The model for the calculator, in microseconds.
    pub(super) fn for_calculator(&self, results: &Results<'_>) -> FittedModel {
        let us = |e: &Estimate| {
            let e = scaled(e, 1e-3);
            Parameter::new(e.value, e.lo, e.hi)
        };
        FittedModel {
            name: "mmap, touch, munmap".to_owned(),
            call: us(&self.call),
            per_page: us(&self.per_page),
            per_table: us(&self.per_table),
            table_pages: u32::try_from(rustix::param::page_size() / 8).unwrap_or(512),
            zero_fill: kernel_zeroing(results).as_ref().map(us),
        }
    }

    /// Whether the form describes the cells.
    pub(super) fn verdict(&self) -> &'static str {
        match &self.fit.lack_of_fit {
            Some(test) if test.p >= 0.05 => "Yes, no lack of fit is seen",
            Some(_) => "Not exactly, it misses some blocks by more than the noise",
            None => "The run was too short to test it",
        }
    }

    pub(super) fn blocks(&self) -> [Block; 2] {
        let mut table = listing(
            "Placed blocks against the model",
            self.cells.iter().copied(),
            vec![
                Column::factor("pages", "pages"),
                Column::factor("new page tables", "tables"),
                Column::metric("measured", CPU),
                Column::by("model", |at| {
                    let ns = |ns| Value::Number(ns, "ns".to_owned());
                    self.of(at).map_or(Value::Empty, ns)
                }),
                Column::by("off by", |at| {
                    let percent = |off| text(format!("{:+.1} %", off * 100.0));
                    self.off(at).map_or(Value::Empty, percent)
                }),
            ],
        );
        table.notes.push(
            "A block beside a mapped page needs no new page table, a block alone in its 2 MiB one, a block across a 2 MiB \
             boundary two."
                .to_owned(),
        );
        let test = match &self.fit.lack_of_fit {
            Some(test) => format!(
                "Lack of fit: F = {:.2} with {} and {} degrees of freedom, p = {:.3}.",
                test.f, test.df_lack, test.df_pure, test.p
            ),
            None => "The form could not be tested: too few repetitions.".to_owned(),
        };
        let samples = self.fit.residuals.len();
        let fit = format!(
            "Least squares over {samples} samples, weighted by the inverse square of the cost; R\u{b2} {:.4}. {test}",
            self.fit.r2
        );
        [Block::Table(table), Block::Text(fit)]
    }
}

/// Cost of a block against its pages, with the model where there is one.
pub(super) fn chart(results: &Results<'_>, model: Option<&Model<'_, '_>>) -> Chart {
    let of = |name: &str, way, touch| {
        let cells = results.of(SIZES, way);
        let touched = cells.filter(|at| at.int("touch") == Some(touch));
        over(name, touched, "pages", CPU)
    };
    let measured = [
        of("mmap, not touched", MMAP, 0),
        of("mmap, touched", MMAP, 1),
        of("mmap with MAP_POPULATE, touched", POPULATE, 1),
    ];
    let is_empty = measured.iter().all(|series| series.points.is_empty());
    let model = model.filter(|_| !is_empty).map(|model| {
        let point = |pages| {
            (
                pages as f64,
                crate::frame::words::exact(model.predict(pages, 1)),
            )
        };
        line("model, one new page table", BLOCKS.map(point))
    });
    lines(
        "Cost of a block against its pages",
        ("pages in a block", Scale::Log),
        ("CPU time per block (ns)", Scale::Log),
        measured.into_iter().chain(model),
    )
}
