//! An experiment from its declaration.

use super::results::{Results, analysis};
use crate::measure::{Contestant, Experiment, Plan, PlanRequest};
use crate::model::{Analysis, Metric, RunRecord};

/// Plans a stage from what the samples of the earlier ones say.
pub(super) type Afresh = fn(&PlanRequest<'_>, &[Box<dyn Contestant>], &Results<'_>, usize) -> Plan;

/// The declaration of an experiment, from which the frame makes the experiment.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Name on the command line.
    pub name: &'static str,
    /// Title of its page.
    pub title: &'static str,
    /// The document that it answers.
    pub source: &'static str,
    /// The question in one sentence.
    pub question: &'static str,
    /// What its contestants report.
    pub metrics: &'static [Metric],
    /// Its contestants in this build.
    pub contestants: fn() -> Vec<Box<dyn Contestant>>,
    /// The groups that a run of all experiments has time for; `None` is all of them.
    pub brief: Option<&'static [&'static str]>,
    /// Which cells run.
    pub plan: fn(&PlanRequest<'_>, &[Box<dyn Contestant>]) -> Plan,
    /// Which cells run after the plan, stage by stage, by what the samples say; `None` is none.
    pub afresh: Option<Afresh>,
    /// What the samples say.
    pub analyse: fn(&Results<'_>) -> Analysis,
}

impl Experiment for Declared {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn question(&self) -> &'static str {
        self.question
    }

    fn metrics(&self) -> &'static [Metric] {
        self.metrics
    }

    fn contestants(&self) -> Vec<Box<dyn Contestant>> {
        (self.contestants)()
    }

    fn brief(&self) -> Option<&'static [&'static str]> {
        self.brief
    }

    fn plan(&self, request: &PlanRequest<'_>) -> Plan {
        (self.plan)(request, &self.contestants())
    }

    fn afresh(&self, request: &PlanRequest<'_>, run: &RunRecord, stage: usize) -> Plan {
        let results = Results::new(run, self.metrics);
        self.afresh.map_or_else(Plan::default, |afresh| {
            afresh(request, &self.contestants(), &results, stage)
        })
    }

    fn analyse(&self, run: &RunRecord) -> Analysis {
        analysis(self, run, self.analyse)
    }
}
