//! Contestants that count and take no time: his harness played again.

use anyhow::{Context, bail};

use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::harness::{self, Batch, POSTED, Series, VARIANTS};

/// Seeds of the average; his own is 1.
pub(super) const SEEDS: std::ops::RangeInclusive<u32> = 2..=5;

/// The counting contestants.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    vec![Box::new(Replay), Box::new(Average), Box::new(Variant)]
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

/// One of his runs with his random numbers.
struct Replay;

impl Contestant for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "The harness of March 2002 as posted, with the C library's random numbers of its day: counts searches"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let (batch, series) = (batch(params)?, posted(params)?);
        let mut measures = Measures::new();
        let mut all = 0;
        for row in harness::play(series, &batch, 1) {
            measures = measures
                .with(&searches_at(row.tasks), row.searches as f64)
                .with(&allocations_at(row.tasks), row.allocations as f64);
            all += row.searches;
        }
        Ok(measures.with("searches", all as f64))
    }
}

/// The same with other random numbers.
struct Average;

impl Contestant for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn about(&self) -> &'static str {
        "The same with four other seeds: the mean, which does not depend on his random numbers"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let (batch, series) = (batch(params)?, posted(params)?);
        let mut sums = vec![0.0; batch.tasks.len()];
        let mut runs = 0.0;
        for seed in SEEDS {
            for (sum, row) in sums.iter_mut().zip(harness::play(series, &batch, seed)) {
                *sum += row.searches as f64;
            }
            runs += 1.0;
        }
        let mut measures = Measures::new().with("searches", sums.iter().sum::<f64>() / runs);
        for (tasks, sum) in batch.tasks.iter().zip(sums) {
            measures = measures.with(&searches_at(*tasks), sum / runs);
        }
        Ok(measures)
    }
}

/// A guess at what gave his S1 column.
struct Variant;

impl Contestant for Variant {
    fn name(&self) -> &'static str {
        "variant"
    }

    fn about(&self) -> &'static str {
        "The same with another rule for where a sweep begins and how far an interval reaches"
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let name = params.text("rule")?;
        let Some((_, series)) = VARIANTS.iter().find(|(known, _)| *known == name) else {
            bail!("rule is '{name}', which is none of the variants");
        };
        let mut measures = Measures::new();
        let mut all = 0;
        for row in harness::play(*series, &batch(params)?, 1) {
            measures = measures.with(&searches_at(row.tasks), row.searches as f64);
            all += row.searches;
        }
        Ok(measures.with("searches", all as f64))
    }
}
