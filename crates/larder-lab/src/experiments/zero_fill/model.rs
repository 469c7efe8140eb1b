//! The better model: `cost = call + pages * b + page tables * c`, fitted to placed blocks of 1 to 64 pages.

use super::cells::{BLOCKS, CPU, MMAP, POPULATE, SIZES, TABLES};
use super::look::{Look, scaled, settle};
use super::timings::section;
use super::words::{self, finding, text, value};
use crate::calc::{FittedModel, Parameter};
use crate::model::{
    Analysis, Axis, Block, Chart, Finding, Point, Provenance, Scale, Section, Series, Table, Value,
};
use crate::stats::fit::{Fit, weighted};
use crate::stats::{Estimate, defaults};

/// The fitted costs in nanoseconds, with the fit behind them.
pub(super) struct Model {
    pub(super) call: Estimate,
    pub(super) per_page: Estimate,
    pub(super) per_table: Estimate,
    pub(super) fit: Fit,
    /// Pages, page tables, median cost and its deviation from the model as a share of the cost.
    pub(super) cells: Vec<(i64, i64, Estimate, f64)>,
}

impl Model {
    fn predict(&self, pages: i64, tables: i64) -> f64 {
        self.call.value + pages as f64 * self.per_page.value + tables as f64 * self.per_table.value
    }

    /// Whether the form holds at 5 %; `None` where it cannot be tested.
    fn holds(&self) -> Option<bool> {
        self.fit.lack_of_fit.map(|test| test.p >= 0.05)
    }

    /// The cell that the model misses by the largest share.
    fn worst(&self) -> Option<&(i64, i64, Estimate, f64)> {
        self.cells
            .iter()
            .max_by(|a, b| a.3.abs().total_cmp(&b.3.abs()))
    }
}

/// Fits the model to every sample of the placed blocks, each weighted by the inverse square of its cell's median,
/// because noise grows with cost. `None` with too few samples.
pub(super) fn fit(look: &Look<'_>) -> Option<Model> {
    let (mut rows, mut y, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut cells = Vec::new();
    for cell in look.view.cells(TABLES).into_iter().filter(|c| !c.twin) {
        let (Ok(pages), Ok(tables)) = (cell.params.int("pages"), cell.params.int("tables")) else {
            continue;
        };
        let samples = look.plain(TABLES, cell, CPU);
        let Some(middle) = settle(&samples).filter(|m| m.value > 0.0) else {
            continue;
        };
        for sample in samples {
            rows.push(vec![1.0, pages as f64, tables as f64]);
            y.push(sample);
            weights.push(middle.value.powi(-2));
        }
        cells.push((pages, tables, middle, 0.0));
    }
    let fit = weighted(&rows, &y, &weights, defaults::LEVEL).ok()?;
    let [call, per_page, per_table] = fit.coefficients.as_slice() else {
        return None;
    };
    let mut model = Model {
        call: *call,
        per_page: *per_page,
        per_table: *per_table,
        cells: Vec::new(),
        fit: fit.clone(),
    };
    cells.sort_unstable_by_key(|c| (c.0, c.1));
    model.cells = cells
        .into_iter()
        .map(|(pages, tables, middle, _)| {
            let off = middle.value / model.predict(pages, tables) - 1.0;
            (pages, tables, middle, off)
        })
        .collect();
    Some(model)
}

/// The model for the calculator, in microseconds; `zero_fill` is what was measured directly, nanoseconds.
pub(super) fn for_calculator(model: &Model, zero_fill: Option<Estimate>) -> FittedModel {
    let us = |e: &Estimate| {
        let e = scaled(e, 1e-3);
        Parameter::new(e.value, e.lo, e.hi)
    };
    let page = rustix::param::page_size();
    FittedModel {
        name: "mmap, touch, munmap".to_owned(),
        call: us(&model.call),
        per_page: us(&model.per_page),
        per_table: us(&model.per_table),
        table_pages: u32::try_from(page / 8).unwrap_or(512),
        zero_fill: zero_fill.as_ref().map(us),
    }
}

pub(super) fn part(look: &Look<'_>) -> Analysis {
    let model = fit(look);
    let mut blocks = Vec::new();
    blocks.extend(chart(look, model.as_ref()).map(Block::Chart));
    if let Some(model) = &model {
        blocks.push(Block::Table(table(model)));
        blocks.push(Block::Text(verdict_on_form(model)));
    }
    let sections: Vec<Section> = section("The better model", blocks);
    Analysis {
        findings: model.as_ref().map(sentence).into_iter().collect(),
        sections,
        ..Analysis::default()
    }
}

fn sentence(model: &Model) -> Finding {
    let form = match (model.holds(), model.worst()) {
        (Some(true), _) => " The form holds: no lack of fit is seen.".to_owned(),
        (Some(false), Some((pages, tables, _, off))) => format!(
            " The form does not hold exactly: it is off by up to {:.1} % (at {pages} pages with {tables} new page \
             tables), more than the samples scatter.",
            off.abs() * 100.0
        ),
        _ => String::new(),
    };
    finding(
        "Is the cost of a block a cost per call and a cost per page?",
        "Nat! 2003 (his model)",
        format!(
            "A touched block of n pages costs {} per call, {} per page and {} per new page table.{form}",
            words::ns(&model.call),
            words::ns(&model.per_page),
            words::ns(&model.per_table)
        ),
        None,
    )
}

fn verdict_on_form(model: &Model) -> String {
    let spread = format!(
        "Least squares over {} samples, weighted by the inverse square of the cost; R\u{b2} {:.4}.",
        model.fit.residuals.len(),
        model.fit.r2
    );
    match &model.fit.lack_of_fit {
        Some(test) => format!(
            "{spread} Lack of fit: F = {:.2} with {} and {} degrees of freedom, p = {:.3}. {}",
            test.f,
            test.df_lack,
            test.df_pure,
            test.p,
            if test.p < 0.05 {
                "The cost bends somewhere in 1 to 64 pages: give the model as an approximation."
            } else {
                "A straight line describes 1 to 64 pages."
            }
        ),
        None => format!("{spread} The form could not be tested: too few repetitions."),
    }
}

fn table(model: &Model) -> Table {
    let rows = model
        .cells
        .iter()
        .map(|(pages, tables, cost, off)| {
            vec![
                Value::Count(*pages),
                Value::Count(*tables),
                value(Some(*cost), "ns"),
                Value::Number(model.predict(*pages, *tables), "ns".to_owned()),
                text(&format!("{:+.1} %", off * 100.0)),
            ]
        })
        .collect();
    Table {
        title: "Placed blocks against the model".to_owned(),
        columns: ["pages", "new page tables", "measured", "model", "off by"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        notes: vec![
            "A block beside a mapped page needs no new page table, a block alone in its 2 MiB needs one, a block across \
             a 2 MiB boundary two."
                .to_owned(),
        ],
        long: false,
    }
}

fn chart(look: &Look<'_>, model: Option<&Model>) -> Option<Chart> {
    let line = |name: &str, way: &str, touch| {
        let points: Vec<Point> = BLOCKS
            .iter()
            .filter_map(|&pages| {
                let cell = look.block(SIZES, way, pages, touch)?;
                let e = look.estimate(SIZES, cell, CPU)?;
                Some(Point {
                    x: pages as f64,
                    y: e.value,
                    lo: e.lo,
                    hi: e.hi,
                })
            })
            .collect();
        (!points.is_empty()).then(|| Series {
            name: name.to_owned(),
            points,
            from: Provenance::Measured,
        })
    };
    let mut series: Vec<Series> = [
        line("mmap, not touched", MMAP, 0),
        line("mmap, touched", MMAP, 1),
        line("mmap with MAP_POPULATE, touched", POPULATE, 1),
    ]
    .into_iter()
    .flatten()
    .collect();
    if series.is_empty() {
        return None;
    }
    if let Some(model) = model {
        series.push(Series {
            name: "model, one new page table".to_owned(),
            points: BLOCKS
                .iter()
                .map(|&pages| {
                    let y = model.predict(pages, 1);
                    Point {
                        x: pages as f64,
                        y,
                        lo: y,
                        hi: y,
                    }
                })
                .collect(),
            from: Provenance::Measured,
        });
    }
    Some(Chart {
        title: "Cost of a block against its pages".to_owned(),
        x: Axis {
            label: "pages in a block".to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: "CPU time per block (ns)".to_owned(),
            scale: Scale::Log,
        },
        series,
        marks: Vec::new(),
        categories: Vec::new(),
    })
}
