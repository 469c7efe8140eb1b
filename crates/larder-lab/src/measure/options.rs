//! The user's options for a run, and how they change an experiment's plan.

use std::time::Duration;

use super::{Depth, Experiment, FactorFilter, Group, Plan, PlanRequest};
use crate::model::{Cell, MachineRecord, Skipped};

/// The last look of the stopping rule: a group that is not stable after this many rounds will not become so.
const LOOP_ROUNDS: u32 = 75;

/// The user's options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Quick or full.
    pub depth: Depth,
    /// Seed of the orders and of the workloads.
    pub seed: u64,
    /// Begin no cell after this much time; `None` is no limit.
    pub time_cap: Option<Duration>,
    /// Rounds at most, where the user wants fewer (or, with `until_stable`, a bound at all).
    pub max_rounds: Option<u32>,
    /// Go on past the planned rounds until the intervals are narrow or stop narrowing.
    pub until_stable: bool,
    /// End a cell that takes longer.
    pub cell_limit: Duration,
    /// One of all experiments: of those that take long only some groups run.
    pub brief: bool,
    /// Only groups whose name contains one of these; empty is all.
    pub groups: Vec<String>,
    /// Only these contestants beside each group's reference; empty is all.
    pub contestants: Vec<String>,
    /// Only cells with these values of factors, beside each group's reference; empty is all.
    pub factors: Vec<FactorFilter>,
    /// The command line that repeats the run.
    pub argv: Vec<String>,
}

impl Options {
    /// Everything of one depth, with no cap.
    #[must_use]
    pub fn new(depth: Depth, seed: u64) -> Self {
        Self {
            depth,
            seed,
            time_cap: None,
            max_rounds: None,
            until_stable: false,
            cell_limit: Duration::from_secs(120),
            brief: false,
            groups: Vec::new(),
            contestants: Vec::new(),
            factors: Vec::new(),
            argv: Vec::new(),
        }
    }

    /// These options for one of the experiments: those of a run of all experiments name the groups of it that run.
    #[must_use]
    pub fn of(&self, experiment: &dyn Experiment) -> Self {
        let groups = match experiment.brief() {
            Some(brief) if self.brief && self.groups.is_empty() => brief,
            _ => &[],
        };
        let mut own = Self {
            brief: !groups.is_empty(),
            ..self.clone()
        };
        own.groups.extend(groups.iter().map(|&g| g.to_owned()));
        own
    }

    /// What an experiment may look at when it plans.
    pub(super) fn request<'a>(&self, machine: &'a MachineRecord) -> PlanRequest<'a> {
        PlanRequest {
            depth: self.depth,
            machine,
            seed: self.seed,
        }
    }

    /// The plan of an experiment with the filters applied.
    ///
    /// A group whose name no filter meets is dropped; so is every cell of another contestant or with another factor,
    /// except the reference, without which nothing could be compared, and every group of which only that is left.
    #[must_use]
    pub fn plan(&self, experiment: &dyn Experiment, machine: &MachineRecord) -> Plan {
        let mut plan = experiment.plan(&self.request(machine));
        let (kept, dropped): (Vec<Group>, Vec<Group>) = plan.groups.into_iter().partition(|g| {
            self.groups.is_empty() || self.groups.iter().any(|f| g.name.contains(f))
        });
        plan.groups = kept;
        if self.brief && !dropped.is_empty() {
            let names: Vec<String> = dropped.into_iter().map(|g| g.name).collect();
            plan.skipped.push(Skipped {
                what: names.join(", "),
                why: format!(
                    "a run of all experiments has no time for them; run `larder measure {}`",
                    experiment.name()
                ),
            });
        }
        self.narrow(&mut plan);
        plan
    }

    /// Drops the cells that are not wanted, except each group's reference, and every group of which only that is left.
    pub(super) fn narrow(&self, plan: &mut Plan) {
        plan.groups
            .retain(|group| group.cells.iter().any(|c| self.wants(c)));
        for group in &mut plan.groups {
            let reference = group.reference.clone();
            let all = group.cells.len() + 1;
            group.cells.retain(|c| *c == reference || self.wants(c));
            // The twin runs in any case.
            let share = (group.cells.len() + 1) as f64 / all as f64;
            group.round_guess = group.round_guess.mul_f64(share);
        }
    }

    pub(super) fn wants(&self, cell: &Cell) -> bool {
        (self.contestants.is_empty() || self.contestants.contains(&cell.contestant))
            && self.factors.iter().all(|f| f.keeps(&cell.params))
    }

    /// Rounds of a group at most.
    #[must_use]
    pub fn rounds_of(&self, group: &Group) -> u32 {
        match (self.until_stable, self.max_rounds) {
            (true, None) => LOOP_ROUNDS,
            (true, Some(n)) => n,
            (false, Some(n)) => n.min(group.max_rounds),
            (false, None) => group.max_rounds,
        }
    }

    /// The same with less time: that of a plan that leaves some to others.
    pub(super) fn until(&self, share: Option<f64>) -> Self {
        let cut = |cap: Duration| cap.mul_f64(share.unwrap_or(1.0));
        Self {
            time_cap: self.time_cap.map(cut),
            ..self.clone()
        }
    }

    /// How long the plan takes by its own guess, within the cap.
    #[must_use]
    pub fn guess(&self, plan: &Plan) -> Duration {
        let all = plan
            .groups
            .iter()
            .map(|g| g.round_guess.saturating_mul(self.rounds_of(g)))
            .fold(Duration::ZERO, Duration::saturating_add);
        self.time_cap.map_or(all, |cap| cap.min(all))
    }
}
