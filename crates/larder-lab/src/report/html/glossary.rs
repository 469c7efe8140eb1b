//! The words of the page, and what the names of contestants stand for.

use std::collections::BTreeSet;

use crate::experiments;
use crate::report::Document;

/// The contestants of an experiment that ran.
pub(super) struct Contestants {
    pub(super) experiment: String,
    /// Name, and what it is.
    pub(super) names: Vec<(String, String)>,
}

/// Words that the page uses in one meaning.
pub(super) const WORDS: [(&str, &str); 7] = [
    (
        "round",
        "One turn in which every contestant runs once, each in a fresh process, in random order.",
    ),
    (
        "interval",
        "The numbers in brackets: a range that holds the true value in 95 of 100 such runs.",
    ),
    (
        "twin",
        "A second copy of the reference. The two are the same program, so what parts them is noise.",
    ),
    (
        "floor, of a comparison",
        "The distance between the reference and its twin. A smaller difference counts as none.",
    ),
    (
        "floor, of a cost",
        "The least that this measurement can show, for instance an empty loop.",
    ),
    (
        "verdict",
        "What a comparison says: faster, slower, same within a bound, inconclusive or undecided (the interval allows both), or refused (too few rounds, or too noisy).",
    ),
    (
        "goal",
        "A bound set before the measurement. It holds if the whole interval keeps to it, and is undecided if the interval crosses it.",
    ),
];

/// The contestants that have samples, by experiment.
pub(super) fn contestants(doc: &Document) -> Vec<Contestants> {
    let mut all: Vec<Contestants> = Vec::new();
    for (run, _) in &doc.runs {
        if all.iter().any(|c| c.experiment == run.experiment) {
            continue;
        }
        let Some(experiment) = experiments::find(&run.experiment) else {
            continue;
        };
        let of_name = doc
            .runs
            .iter()
            .filter(|(r, _)| r.experiment == run.experiment);
        let ran: BTreeSet<&str> = of_name
            .flat_map(|(r, _)| &r.samples)
            .map(|s| s.cell.contestant.as_str())
            .collect();
        let names: Vec<(String, String)> = experiment
            .contestants()
            .iter()
            .filter(|c| ran.contains(c.name()))
            .map(|c| (c.name().to_owned(), c.about().to_owned()))
            .collect();
        if !names.is_empty() {
            all.push(Contestants {
                experiment: run.experiment.clone(),
                names,
            });
        }
    }
    all
}
