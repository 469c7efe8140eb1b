//! Groups of cells, without contestants that this build or machine lacks.

use std::time::Duration;

use crate::measure::{Contestant, Depth, Group, Plan, PlanRequest};
use crate::model::{Cell, Params, Skipped};

/// Rounds at least, at most, and the half width of a ratio's interval at which a group stops.
pub type Rounds = (u32, u32, f64);

/// Builds a plan group by group. Contestants that this build lacks are left out and named once.
pub struct Planner {
    quick: bool,
    rounds: Rounds,
    names: Vec<&'static str>,
    lacking: Vec<String>,
    plan: Plan,
}

impl Planner {
    /// A plan of nothing. `quick` and `full` are the rounds of a group at each depth.
    pub fn new(
        request: &PlanRequest<'_>,
        contestants: &[Box<dyn Contestant>],
        quick: Rounds,
        full: Rounds,
    ) -> Self {
        let is_quick = request.depth == Depth::Quick;
        Self {
            quick: is_quick,
            rounds: if is_quick { quick } else { full },
            names: contestants.iter().map(|c| c.name()).collect(),
            lacking: Vec::new(),
            plan: Plan::default(),
        }
    }

    /// Whether the quick form is planned.
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// The one for this depth.
    pub fn either<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Whether this build has the contestant.
    pub fn has(&self, contestant: &str) -> bool {
        self.names.contains(&contestant)
    }

    /// A group, judged by `metric`; one round takes about `seconds`. The reference is the first cell of the contestant
    /// `reference`, or the first cell of all where that contestant is lacking. A group without cells is left out.
    pub fn group(
        &mut self,
        name: &str,
        metric: &'static str,
        reference: &str,
        seconds: f64,
        cells: impl IntoIterator<Item = Cell>,
    ) -> &mut Self {
        let (cells, gone): (Vec<Cell>, Vec<Cell>) =
            cells.into_iter().partition(|c| self.has(&c.contestant));
        for cell in gone {
            if !self.lacking.contains(&cell.contestant) {
                self.lacking.push(cell.contestant);
            }
        }
        let wanted = cells.iter().find(|cell| cell.contestant == reference);
        let Some(reference) = wanted.or(cells.first()).cloned() else {
            return self;
        };
        let (min_rounds, max_rounds, target) = self.rounds;
        self.plan.groups.push(Group {
            name: name.to_owned(),
            reference,
            metric,
            cells,
            min_rounds,
            max_rounds,
            target,
            round_guess: Duration::from_secs_f64(seconds),
        });
        self
    }

    /// Other rounds for the group that was added last.
    pub fn rounds(&mut self, (min, max, target): Rounds) -> &mut Self {
        if let Some(group) = self.plan.groups.last_mut() {
            (group.min_rounds, group.max_rounds, group.target) = (min, max, target);
        }
        self
    }

    /// A group of counts by callgrind: one round, because a count does not depend on noise. Each of `names` is the value of
    /// `factor` of a cell of the contestant `instructions`.
    pub fn instructions(&mut self, factor: &str, names: &[&str]) {
        const GROUP: &str = "instructions";
        if let Err(why) = crate::measure::callgrind::available() {
            self.skip(GROUP, why);
            return;
        }
        let cells: Vec<Cell> = names
            .iter()
            .filter(|name| self.has(name))
            .map(|name| Cell::new(GROUP, Params::new().with_text(factor, name)))
            .collect();
        let seconds = 4.0 * (cells.len() + 1) as f64;
        self.group(GROUP, GROUP, GROUP, seconds, cells)
            .rounds((1, 1, 0.05));
    }

    /// Says what is not measured, and why; once.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let line = Skipped {
            what: what.into(),
            why: why.into(),
        };
        if !self.plan.skipped.contains(&line) {
            self.plan.skipped.push(line);
        }
    }

    /// Leaves the time after this share of the cap to what runs afresh.
    pub fn until(&mut self, share: f64) -> &mut Self {
        self.plan.until = Some(share);
        self
    }

    /// The plan.
    pub fn finish(mut self) -> Plan {
        if !self.lacking.is_empty() {
            let what = self.lacking.join(", ");
            self.skip(
                what,
                "this program was built without them; build with the default features to compare with them",
            );
        }
        self.plan
    }
}

/// A cell of each contestant with each set of factors.
pub fn cross(contestants: &[&str], params: &[Params]) -> Vec<Cell> {
    let each = |name: &&str| {
        let name = (*name).to_owned();
        params.iter().map(move |p| Cell::new(&name, p.clone()))
    };
    contestants.iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::bench;
    use crate::model::{MachineRecord, Measures};

    #[test]
    fn lacking_contestants_are_named_once_and_the_first_cell_stands_in_for_the_reference() {
        let machine = MachineRecord::default();
        let request = PlanRequest {
            depth: Depth::Quick,
            machine: &machine,
            seed: 1,
        };
        let ours = [bench("pool", "a pool", |_| Ok(Measures::new()))];
        let mut plan = Planner::new(&request, &ours, (6, 8, 0.05), (15, 33, 0.02));
        let sizes = [1, 2].map(|n| Params::new().with("n", n));
        plan.group("a", "ns", "peer", 1.0, cross(&["pool", "peer"], &sizes))
            .group("b", "ns", "peer", 1.0, cross(&["peer"], &sizes));
        let plan = plan.finish();
        assert_eq!(plan.groups.len(), 1);
        assert_eq!(plan.groups[0].cells, cross(&["pool"], &sizes));
        assert_eq!(plan.groups[0].reference, plan.groups[0].cells[0]);
        assert_eq!(plan.groups[0].max_rounds, 8);
        assert_eq!(plan.skipped.len(), 1);
        assert_eq!(plan.skipped[0].what, "peer");
    }
}
