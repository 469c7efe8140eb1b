//! Contestants that count and take no time: Franke's harness played again.

use anyhow::{Context, bail};

use crate::frame::bench;
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use crate::contestants::getpid::harness::{self, Batch, POSTED, Row, Series, VARIANTS};

/// Seeds of the average; Franke's own is 1.
const SEEDS: [u32; 4] = [2, 3, 4, 5];

/// The counting contestants.
pub(super) fn contestants() -> Vec<Box<dyn Contestant>> {
    vec![
        bench(
            "replay",
            "The harness of March 2002 as posted, with the C library's random numbers of its day: counts searches",
            |params| Ok(counted(&harness::play(posted(params)?, &batch(params)?, 1))),
        ),
        bench(
            "average",
            "The same with four other seeds: the mean, which does not depend on the random numbers of 2002",
            |params| {
                let (batch, series) = (batch(params)?, posted(params)?);
                let runs = SEEDS.map(|seed| counted(&harness::play(series, &batch, seed)));
                let mean = |name: &String, first: &f64| {
                    let sum: f64 = runs.iter().filter_map(|run| run.get(name)).sum();
                    (
                        name.clone(),
                        if name.starts_with("searches") {
                            sum / 4.0
                        } else {
                            *first
                        },
                    )
                };
                Ok(Measures(
                    runs[0].0.iter().map(|(n, v)| mean(n, v)).collect(),
                ))
            },
        ),
        bench(
            "variant",
            "The same with another rule for where a sweep begins and how far an interval reaches",
            |params| {
                let name = params.text("rule")?;
                let Some((_, series)) = VARIANTS.iter().find(|(known, _)| *known == name) else {
                    bail!("rule is '{name}', which is none of the variants");
                };
                Ok(counted(&harness::play(*series, &batch(params)?, 1)))
            },
        ),
    ]
}

/// Searches and allocations of each row, and the searches of all.
fn counted(rows: &[Row]) -> Measures {
    let all: u64 = rows.iter().map(|row| row.searches).sum();
    let none = Measures::new().with("searches", all as f64);
    rows.iter().fold(none, |measures, row| {
        measures
            .with(&searches_at(row.tasks), row.searches as f64)
            .with(&allocations_at(row.tasks), row.allocations as f64)
    })
}

/// The batch that the factor `first` names by its first A.
fn batch(params: &Params) -> anyhow::Result<Batch> {
    let first = u32::try_from(params.count("first")?)?;
    harness::batches()
        .into_iter()
        .find(|batch| batch.tasks.first() == Some(&first))
        .with_context(|| format!("none of Franke's runs begins with {first} tasks"))
}

fn posted(params: &Params) -> anyhow::Result<Series> {
    let name = params.text("series")?;
    match POSTED.iter().find(|(known, _)| *known == name) {
        Some((_, series)) => Ok(*series),
        None => bail!("series is '{name}'; it is algo-0, algo-1, algo-2 or algo-2-256"),
    }
}

/// Name of the measure of one row: searches, allocations.
pub(super) fn searches_at(tasks: u32) -> String {
    format!("searches.{tasks}")
}

/// As [`searches_at`], for allocations.
pub(super) fn allocations_at(tasks: u32) -> String {
    format!("allocations.{tasks}")
}
