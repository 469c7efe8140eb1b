//! One whole pass over the list, comparing or marking: what decides where the curves cross.

use anyhow::{bail, ensure};

use crate::contestants::getpid::{
    Bits, Layout, Locked, Near, PID_MAX, Packed, Plain, Random31, Tasks, compare_pass, mark_pass,
};
use crate::contestants::timing::{ns_per_op, opaque, thread_cpu_ns};
use crate::measure::Contestant;
use crate::model::{Measures, Params};

use super::harness::{Harness, Series};
use super::timed::clock_cost;

/// The three kinds of pass.
#[derive(Clone, Copy)]
enum Kind {
    Compare,
    Mark,
    MarkLocked,
}

/// A kind of pass as a contestant.
struct Pass(Kind);

/// The passes.
pub(super) fn all() -> Vec<Box<dyn Contestant>> {
    [Kind::Compare, Kind::Mark, Kind::MarkLocked]
        .map(|kind| Box::new(Pass(kind)) as Box<dyn Contestant>)
        .into()
}

impl Contestant for Pass {
    fn name(&self) -> &'static str {
        match self.0 {
            Kind::Compare => "compare-pass",
            Kind::Mark => "mark-pass",
            Kind::MarkLocked => "mark-pass-locked",
        }
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Kind::Compare => {
                "one pass of algo-0 over all tasks: four ids compared and the interval narrowed"
            }
            Kind::Mark => {
                "one pass of a sweep over all tasks: four ids marked in the map by plain stores"
            }
            Kind::MarkLocked => "the same by atomic instructions",
        }
    }

    fn run(&self, params: &Params) -> anyhow::Result<Measures> {
        let most = u32::try_from(params.count("tasks")?)?;
        ensure!(
            (2..PID_MAX).contains(&most),
            "tasks is {most}; it is from 2 to 32767"
        );
        let room = most as usize;
        match params.text("memory")? {
            "near" => Ok(timed(Tasks::<Near>::new(room), most, self.0)),
            "packed" => Ok(timed(Tasks::<Packed>::new(room), most, self.0)),
            "scattered" => {
                let mut random = Random31::new(99);
                let tasks = Tasks::<Near>::scattered(room, || random.draw());
                Ok(timed(tasks, most, self.0))
            }
            other => bail!("memory is '{other}'; it is near, scattered or packed"),
        }
    }
}

/// Passes until a quarter of a million tasks were looked at, at least eight of them.
fn timed<L: Layout>(mut tasks: Tasks<L>, most: u32, kind: Kind) -> Measures {
    let mut harness = Harness::new(Series::List, 1, true);
    harness.thin_to(most);
    for pid in harness.in_list_order() {
        tasks.add(pid);
    }
    let live = tasks.len() as u64;
    let passes = (250_000 / live.max(1)).max(8);
    let (mut plain, mut locked) = (Plain::new(), Locked::new());
    let mut pass = || match kind {
        // No task has the id 0, so the pass goes to the end.
        Kind::Compare => {
            opaque(compare_pass(&tasks, opaque(0)));
        }
        Kind::Mark => mark_pass(&tasks, opaque(&mut plain)),
        Kind::MarkLocked => mark_pass(&tasks, opaque(&mut locked)),
    };
    pass();
    let reading = clock_cost();
    let clock = thread_cpu_ns();
    for _ in 0..passes {
        pass();
    }
    let spent = (thread_cpu_ns() - clock).saturating_sub(reading);
    Measures::new().with("ns_per_task", ns_per_op(spent.max(1), passes * live))
}
