//! The selection by the user's arguments: one that selects nothing is an error before anything is measured.

use std::collections::BTreeSet;

use super::{Experiment, FactorFilter, Options, Plan};
use crate::model::{Cell, Factor, MachineRecord};

/// A selection that leaves nothing to measure, or less than was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSelection {
    /// A word that names nothing, or that selects nothing together with the others.
    #[error("{0}")]
    Word(String),
    /// A contestant that cannot run here.
    #[error("{0}")]
    Missing(String),
}

/// Most names that an error lists.
const LISTED: usize = 40;

/// The sentence about a word that names nothing: what there is, the nearest first.
pub(crate) fn no_such(what: &str, word: &str, known: &[String]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, name)| {
            format!("; the nearest is '{name}'")
        });
    let more = match known.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more, which `larder measure EXPERIMENT --plan --json` shows"),
    };
    let known = match known {
        [] => "none".to_owned(),
        _ => known[..known.len().min(LISTED)].join(", "),
    };
    format!("there is no {what} '{word}'{nearest}; there are: {known}{more}")
}

impl Options {
    /// The experiments of which the filters select something; without filters all of them.
    ///
    /// # Errors
    /// A word that matches nothing in any of the experiments, a contestant that cannot run here, or words that select
    /// no cell together.
    pub fn select(
        &self,
        experiments: Vec<Box<dyn Experiment>>,
        machine: &MachineRecord,
    ) -> Result<Vec<Box<dyn Experiment>>, BadSelection> {
        if self.groups.is_empty() && self.contestants.is_empty() && self.factors.is_empty() {
            return Ok(experiments);
        }
        let bare = Self {
            groups: Vec::new(),
            contestants: Vec::new(),
            factors: Vec::new(),
            // A named group runs even where a run of all experiments has no time for it.
            brief: self.brief && self.groups.is_empty(),
            ..self.clone()
        };
        let plan = |options: &Self, e: &dyn Experiment| options.of(e).plan(e, machine);
        let whole: Vec<Plan> = experiments
            .iter()
            .map(|e| plan(&bare, e.as_ref()))
            .collect();
        self.known_words(&experiments, &whole)?;
        let planned: Vec<(Box<dyn Experiment>, Plan)> = experiments
            .into_iter()
            .map(|e| {
                let plan = plan(self, e.as_ref());
                (e, plan)
            })
            .collect();
        self.words_together(&planned)?;
        let chosen = planned.into_iter().filter(|(_, p)| !p.groups.is_empty());
        Ok(chosen.map(|(e, _)| e).collect())
    }

    /// These options with only the words that select something of this experiment: what repeats its part of a run.
    pub(crate) fn own_words(&self, experiment: &dyn Experiment, machine: &MachineRecord) -> Self {
        let plan = self.plan(experiment, machine);
        let cells: Vec<&Cell> = plan.groups.iter().flat_map(|g| &g.cells).collect();
        let mut own = self.clone();
        own.groups
            .retain(|word| plan.groups.iter().any(|g| g.name.contains(word)));
        own.contestants
            .retain(|word| cells.iter().any(|cell| cell.contestant == *word));
        let has = |filter: &FactorFilter, word: &str| {
            let mut factors = cells.iter().flat_map(|cell| cell.params.iter());
            factors.any(|(name, value)| name == filter.factor() && value.to_string() == word)
        };
        own.factors = own
            .factors
            .iter()
            .filter_map(|filter| filter.only(|word| has(filter, word)))
            .collect();
        own
    }

    /// Each word names something of one experiment at least.
    fn known_words(
        &self,
        experiments: &[Box<dyn Experiment>],
        plans: &[Plan],
    ) -> Result<(), BadSelection> {
        let groups = || plans.iter().flat_map(|plan| &plan.groups);
        let cells = || groups().flat_map(|group| &group.cells);
        let unknown = |what: &str, word: &str, known: Vec<String>| {
            Err(BadSelection::Word(no_such(what, word, &known)))
        };
        for word in &self.groups {
            if !groups().any(|group| group.name.contains(word)) {
                let known = groups().map(|group| group.name.clone()).collect();
                return unknown("group with a name like", word, known);
            }
        }
        for word in &self.contestants {
            let mut known: Vec<String> = Vec::new();
            for e in experiments {
                known.extend(e.contestants().iter().map(|c| c.name().to_owned()));
            }
            known.extend(cells().map(|cell| cell.contestant.clone()));
            let mut seen = BTreeSet::new();
            known.retain(|name| seen.insert(name.clone()));
            if !known.contains(word) {
                return unknown("contestant", word, known);
            }
        }
        for filter in &self.factors {
            let factors = || cells().flat_map(|cell| cell.params.iter());
            let values: BTreeSet<&Factor> = factors()
                .filter(|(name, _)| *name == filter.factor())
                .map(|(_, value)| value)
                .collect();
            if values.is_empty() {
                let known: BTreeSet<&str> = factors().map(|(name, _)| name).collect();
                let known = known.into_iter().map(str::to_owned).collect();
                return unknown("factor", filter.factor(), known);
            }
            let values: Vec<String> = values.into_iter().map(ToString::to_string).collect();
            for word in filter.values() {
                if !values.contains(word) {
                    let what = format!("value of factor '{}' like", filter.factor());
                    return unknown(&what, word, values);
                }
            }
        }
        Ok(())
    }

    /// Each word still selects something where the other words hold, too.
    fn words_together(&self, planned: &[(Box<dyn Experiment>, Plan)]) -> Result<(), BadSelection> {
        let cells: Vec<&Cell> = planned
            .iter()
            .flat_map(|(_, plan)| &plan.groups)
            .flat_map(|group| &group.cells)
            .filter(|cell| self.wants(cell))
            .collect();
        let alone = |option: &str, word: &str| {
            Err(BadSelection::Word(format!(
                "{option} '{word}' selects no cell together with the other filters; leave one out, or see \
                 `larder measure --plan --json` for the cells that there are"
            )))
        };
        for word in &self.contestants {
            if cells.iter().any(|cell| cell.contestant == *word) {
                continue;
            }
            let missing = planned
                .iter()
                .flat_map(|(e, _)| e.contestants())
                .filter(|c| c.name() == word)
                .find_map(|c| c.available().err());
            return match missing {
                Some(why) => Err(BadSelection::Missing(format!(
                    "contestant '{word}' cannot run here: {why}"
                ))),
                None => alone("--contestant", word),
            };
        }
        for filter in &self.factors {
            let has = |cell: &&Cell| cell.params.iter().any(|(name, _)| name == filter.factor());
            if !cells.iter().any(has) {
                return alone("--where", &filter.to_string());
            }
        }
        Ok(())
    }
}
