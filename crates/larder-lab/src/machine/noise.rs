//! What disturbs a run: pressure-stall information, stolen time, load.
//!
//! What `some` of `/proc/pressure/cpu` means here. It is the share of time in which at least one task of the
//! whole machine was ready to run and had to wait for a CPU. With one measured thread on an otherwise idle
//! machine of two CPUs it is near zero, and every percent is another program that wanted a CPU while the worker had one.
//! But a contestant with as many threads as there are CPUs, or more, makes tasks wait by itself: with eight
//! threads on two CPUs `some` reads 100 % on the quietest machine. The number is therefore summed over those
//! cells only whose worker used at most one CPU (CPU time over wall time); the others cannot tell noise from
//! work. If no such cell ran, the pressure is reported as unknown.
//!
//! The lab itself makes tasks wait: each cell is a new process, and its parent and the threads that read its pipes
//! wait while it starts, mostly for one slice of the scheduler (0.2 ms in the middle, 4 ms in one cell of ten). Cells
//! take 5 to 40 ms, so a quiet machine shows 2 to 18 % over a run. Whether others disturbed a sample is therefore
//! read from the worker: `proc.waited_seconds` is how long its thread was ready while another task had the CPU, over
//! the measured part alone. On a quiet machine that is near zero whatever the length of the cell. Stolen time is
//! added. A worker with threads of its own has no such measure, because its threads wait for each other.

use std::time::Duration;

use super::Root;
use crate::model::{Measures, NOISY_PERCENT, NoiseRecord, OTHERS};

/// Percent of `cpu some` above which an idle lab finds the machine noisy.
const CPU_SOME_LIMIT: f64 = 10.0;
/// The same of a run whose workers do not say how long they waited. The lab's own starts make up to 18 % of it on a
/// quiet machine; one other busy program on two CPUs makes more than 40.
const CPU_SOME_OF_RUN_LIMIT: f64 = 25.0;
/// Percent of the measured time taken by others above which a run is noisy: as much as for one sample
/// ([`NOISY_PERCENT`]).
const OTHERS_LIMIT: f64 = NOISY_PERCENT;
/// Percent of `memory some` above which a run is noisy: the kernel was reclaiming while pages were measured.
const MEMORY_SOME_LIMIT: f64 = 5.0;
/// Percent of stolen CPU time above which a run is noisy.
const STEAL_LIMIT: f64 = 1.0;

/// Ticks of all CPUs that a cell must last for its stolen share to mean anything: of fewer, one tick is too much.
const LEAST_TICKS: f64 = 20.0;

/// A worker that used more CPU time than this share of its wall time had more than one running thread.
const ONE_CPU: f64 = 1.05;

/// Watches the machine from its making until [`finish`](NoiseMeter::finish).
#[derive(Debug, Clone)]
pub struct NoiseMeter {
    root: Root,
    begin: Totals,
    // Microseconds of `cpu some` and of wall time over the cells that can tell.
    cpu_some: f64,
    cpu_wall: f64,
    cell: Option<f64>,
    cell_steal: Option<(f64, f64)>,
    // Seconds that the measured threads waited, and those with the ones that they ran.
    waited: f64,
    wanted: f64,
    cpu_limit: f64,
}

/// Counters that only grow.
#[derive(Debug, Clone, Default)]
struct Totals {
    cpu: Option<f64>,
    memory: Option<f64>,
    io: Option<f64>,
    // Stolen and all ticks.
    steal: Option<(f64, f64)>,
    load: Option<f64>,
    // Microseconds on the monotonic clock.
    at: f64,
}

impl NoiseMeter {
    /// Begins to watch the running machine.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::begin(Root::system())
    }

    /// Begins to watch the machine whose `/proc` lies under `root`.
    #[must_use]
    pub fn begin(root: Root) -> Self {
        Self {
            begin: totals(&root),
            root,
            cpu_some: 0.0,
            cpu_wall: 0.0,
            cell: None,
            cell_steal: None,
            waited: 0.0,
            wanted: 0.0,
            cpu_limit: CPU_SOME_OF_RUN_LIMIT,
        }
    }

    /// A cell is about to run.
    pub fn cell_begins(&mut self) {
        self.cell = some_total(&self.root, "cpu");
        self.cell_steal = steal(&self.root);
    }

    /// A cell has run for `wall`; adds its own pressure to its measures, and what others took of it.
    pub fn cell_ends(&mut self, wall: Duration, measures: Measures) -> Measures {
        let measures = self.others(wall, measures);
        let wall = wall.as_secs_f64() * 1e6;
        let (Some(before), Some(after)) = (self.cell.take(), some_total(&self.root, "cpu")) else {
            return measures;
        };
        if wall <= 0.0 {
            return measures;
        }
        let some = (after - before).clamp(0.0, wall);
        let cpu = measures.get("proc.user_seconds").unwrap_or(0.0)
            + measures.get("proc.system_seconds").unwrap_or(0.0);
        if cpu * 1e6 <= wall * ONE_CPU {
            self.cpu_some += some;
            self.cpu_wall += wall;
        }
        measures.with("proc.cpu_pressure_percent", 100.0 * some / wall)
    }

    /// Adds the share of its CPU time that others kept the cell from.
    fn others(&mut self, wall: Duration, measures: Measures) -> Measures {
        let stolen = stolen(self.cell_steal.take(), steal(&self.root), LEAST_TICKS);
        let waited = measures.get("proc.waited_seconds").and_then(|waited| {
            let ran = measures.get("proc.user_seconds")? + measures.get("proc.system_seconds")?;
            let wanted = ran + waited;
            let usable = wanted > 0.0 && waited <= wall.as_secs_f64();
            usable.then_some((waited, wanted))
        });
        if let Some((waited, wanted)) = waited {
            self.waited += waited;
            self.wanted += wanted;
        }
        let percent = match (waited, stolen) {
            (None, None) => return measures,
            (waited, stolen) => {
                waited.map_or(0.0, |(waited, wanted)| 100.0 * waited / wanted)
                    + stolen.unwrap_or(0.0)
            }
        };
        measures.with(OTHERS, percent.min(100.0))
    }

    /// What disturbed the time since the beginning, with a sentence for each threshold that was passed.
    ///
    /// Without any cell in between, the CPU pressure is that of the whole time.
    #[must_use]
    pub fn finish(&self) -> NoiseRecord {
        let end = totals(&self.root);
        let wall = end.at - self.begin.at;
        let share = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) if wall > 0.0 => Some((100.0 * (b - a) / wall).clamp(0.0, 100.0)),
            _ => None,
        };
        let mut record = NoiseRecord {
            cpu_pressure_percent: (self.cpu_wall > 0.0)
                .then(|| 100.0 * self.cpu_some / self.cpu_wall),
            memory_pressure_percent: share(self.begin.memory, end.memory),
            io_pressure_percent: share(self.begin.io, end.io),
            steal_percent: stolen(self.begin.steal, end.steal, 0.0),
            load: self.begin.load.zip(end.load),
            others_percent: (self.wanted > 0.0).then(|| 100.0 * self.waited / self.wanted),
            warnings: Vec::new(),
            noisy: false,
        };
        judge(&mut record, self.cpu_limit);
        record
    }

    /// Watches for a while in which the lab itself does nothing, for a look before the first cell.
    #[must_use]
    pub fn idle_look(root: Root, time: Duration) -> NoiseRecord {
        let mut meter = Self::begin(root);
        meter.cpu_limit = CPU_SOME_LIMIT;
        std::thread::sleep(time);
        let end = totals(&meter.root);
        if let (Some(a), Some(b)) = (meter.begin.cpu, end.cpu) {
            meter.cpu_wall = end.at - meter.begin.at;
            meter.cpu_some = (b - a).clamp(0.0, meter.cpu_wall);
        }
        meter.finish()
    }
}

/// The noise of a run from those of its two parts, each with its seconds; the sentences are those about the whole.
pub(crate) fn joined(
    a: &NoiseRecord,
    a_seconds: f64,
    b: &NoiseRecord,
    b_seconds: f64,
) -> NoiseRecord {
    let mean = |of: fn(&NoiseRecord) -> Option<f64>| match (of(a), of(b)) {
        (Some(a), Some(b)) => Some((a * a_seconds + b * b_seconds) / (a_seconds + b_seconds)),
        (a, b) => a.or(b),
    };
    let mut whole = NoiseRecord {
        cpu_pressure_percent: mean(|r| r.cpu_pressure_percent),
        memory_pressure_percent: mean(|r| r.memory_pressure_percent),
        io_pressure_percent: mean(|r| r.io_pressure_percent),
        steal_percent: mean(|r| r.steal_percent),
        load: a.load.zip(b.load).map(|(a, b)| (a.0, b.1)),
        others_percent: mean(|r| r.others_percent),
        warnings: Vec::new(),
        noisy: false,
    };
    judge(&mut whole, CPU_SOME_OF_RUN_LIMIT);
    whole
}

/// Compares with the thresholds and writes the sentences.
fn judge(record: &mut NoiseRecord, cpu_limit: f64) {
    // The workers' own waits say which process waited; the pressure of the machine does not.
    let (cpu, limit) = match record.others_percent {
        Some(others) => (Some(others), OTHERS_LIMIT),
        None => (record.cpu_pressure_percent, cpu_limit),
    };
    let mut warn = |percent: Option<f64>, limit: f64, say: &dyn Fn(f64) -> String| {
        let passed = percent.filter(|p| *p > limit);
        record.warnings.extend(passed.map(say));
    };
    warn(cpu, limit, &|p| {
        format!(
            "Other programs wanted the CPU during {p:.0} % of the time (more than {limit:.0} % is \
             noisy), so intervals are wider and small differences are lost. Close them, or measure later."
        )
    });
    warn(record.memory_pressure_percent, MEMORY_SOME_LIMIT, &|p| {
        format!(
            "Tasks waited for memory during {p:.0} % of the run (more than {MEMORY_SOME_LIMIT:.0} % is noisy): the \
             kernel was reclaiming pages, which is in the times of faults and mappings. Free some memory, or \
             measure with --quick."
        )
    });
    warn(record.steal_percent, STEAL_LIMIT, &|p| {
        format!(
            "The hypervisor took {p:.1} % of the CPU time away (more than {STEAL_LIMIT:.0} % is noisy), which no \
             program in this machine can see or prevent. Measure at another hour, or on a machine of your own."
        )
    });
    record.noisy = !record.warnings.is_empty();
}

fn totals(root: &Root) -> Totals {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Totals {
        cpu: some_total(root, "cpu"),
        memory: some_total(root, "memory"),
        io: some_total(root, "io"),
        steal: steal(root),
        load: root
            .read("proc/loadavg")
            .ok()
            .and_then(|t| t.split_whitespace().next()?.parse().ok()),
        at: now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3,
    }
}

/// Microseconds in which some task stalled, since boot.
fn some_total(root: &Root, what: &str) -> Option<f64> {
    let text = root.read(&format!("proc/pressure/{what}")).ok()?;
    let line = text.lines().find(|l| l.starts_with("some "))?;
    let total = line
        .split_whitespace()
        .find_map(|w| w.strip_prefix("total="))?;
    total.parse().ok()
}

/// The share of the ticks of all CPUs that was stolen, percent; of fewer ticks than `least` it says nothing.
fn stolen(before: Option<(f64, f64)>, after: Option<(f64, f64)>, least: f64) -> Option<f64> {
    let ((s0, t0), (s1, t1)) = before.zip(after)?;
    let ticks = t1 - t0;
    (ticks > 0.0 && ticks >= least).then(|| (100.0 * (s1 - s0) / ticks).clamp(0.0, 100.0))
}

/// Stolen ticks and all ticks, since boot. Guest time is part of user time and not counted twice.
fn steal(root: &Root) -> Option<(f64, f64)> {
    let text = root.read("proc/stat").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .take(8)
        .map(|t| t.parse().unwrap_or(0.0))
        .collect();
    let stolen = *ticks.get(7)?;
    Some((stolen, ticks.iter().sum()))
}
