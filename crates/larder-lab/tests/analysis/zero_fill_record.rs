//! Records of zero-fill whose truth is known.

use larder_lab::experiments::zero_fill::ZERO_FILL;
use larder_lab::measure::{Depth, Experiment, Plan, PlanRequest};
use larder_lab::model::{
    Analysis, Cell, Field, GroupRecord, MachineRecord, Measures, NoiseRecord, RunRecord, Sample,
    StopReason, Table, Value,
};

pub(crate) fn machine() -> MachineRecord {
    let mut machine = MachineRecord::default();
    for (name, value) in [("cpu.model", "Test CPU 3000"), ("kernel.release", "6.1")] {
        machine
            .fields
            .insert(name.to_owned(), Field::Known(value.to_owned()));
    }
    machine
}

pub(crate) fn plan(depth: Depth) -> Plan {
    ZERO_FILL.plan(&PlanRequest {
        depth,
        machine: &machine(),
        seed: 1,
    })
}

/// The truth about every cell, nanoseconds.
pub(crate) fn truth(group: &str, cell: &Cell) -> Measures {
    let int = |name| cell.params.int(name).unwrap_or(0) as f64;
    let text = |name| cell.params.text(name).unwrap_or("").to_owned();
    let cpu = |ns: f64| {
        Measures::new()
            .with("cpu_ns_per_op", ns)
            .with("ns_per_op", ns)
            .with("faults_per_op", 1.0)
            .with("held_bytes", 4096.0)
    };
    let four = |t: [f64; 4]| {
        cpu(t[1])
            .with("alloc1_cpu_ns", t[0])
            .with("alloc1_fault_cpu_ns", t[1])
            .with("alloc2_cpu_ns", t[2])
            .with("alloc2_fault_cpu_ns", t[3])
            .with("first_cpu_ns_per_op", 1.5 * t[1])
    };
    match (group, cell.contestant.as_str()) {
        // The 1 GHz G4 of 2003.
        ("timings", "mmap") => four([11_200.0, 24_000.0, 11_500.0, 33_600.0]),
        // Early mapping breaks even when half of the pages are touched.
        ("timings", "mmap-populate") => four([17_600.0, 17_600.0, 20_000.0, 20_000.0]),
        ("timings", "dontneed") => four([1_000.0, 6_000.0, 1_000.0, 12_000.0]),
        ("timings", _) => four([20_000.0, 48_000.0, 20_000.0, 60_000.0]),
        ("sizes" | "steps", "mmap") => cpu(match (int("pages") as i64, int("touch") as i64) {
            (pages, 0) => 3_000.0 + pages as f64,
            (1, _) => 6_000.0,
            (4, _) => 12_000.0,
            (pages, _) => 1_500.0 * pages as f64,
        }),
        ("sizes", "mmap-populate") => cpu(match int("pages") as i64 {
            4 => 12_000.0,
            pages => 1_200.0 * pages as f64,
        }),
        ("page-tables", _) => cpu(5_000.0 + 1_500.0 * int("pages") + 1_600.0 * int("tables")),
        ("steps", "step-zeroing") if int("pages") <= 64.0 => cpu(60.0)
            .with("share", 0.05)
            .with("clear_cpu_ns", 1_060.0)
            .with("present_cpu_ns", 1_000.0)
            .with("fault_cpu_ns", 1_200.0),
        ("steps", "step-zeroing") => cpu(400.0).with("share", 0.25).with("fault_cpu_ns", 1_600.0),
        ("steps", "step-write-fault") => cpu(1_200.0),
        ("steps", "step-read-fault") => cpu(700.0),
        ("steps", "step-shared-around") => cpu(200.0),
        ("steps", _) => cpu(50.0),
        ("zero-warm", _) => cpu(match text("routine").as_str() {
            "portable" => 60.0,
            "sse2" => 80.0,
            "stosb" => 50.0,
            _ => 40.0,
        }),
        ("zero-cold", _) => cpu(200.0),
        ("first-touch", "region-touch") => cpu(2_000.0)
            .with("again_cpu_ns_per_op", 1_000.0)
            .with("held_bytes", 268_435_456.0)
            .with("guest", 1.0)
            .with("balloon_inflated_pages", 7.0)
            .with("balloon_deflated_pages", 5.0)
            .with("free_page_reporting_order", 9.0),
        ("first-touch", "region-pool") => cpu(1_000.0)
            .with("again_cpu_ns_per_op", 400.0)
            .with("held_bytes", 269_000_000.0),
        ("first-touch", _) => cpu(1_500.0).with("again_cpu_ns_per_op", 700.0),
        (_, supply) => {
            // Consumer and helper of the bill.
            let (consumer, helper) = match supply {
                "bill-warm" => (100.0, 0.0),
                "bill-cold" => (400.0, 0.0),
                "bill-prezeroed-now" => (80.0, 360.0),
                "bill-prezeroed-before" => (40.0, 360.0),
                "floor-warm" => (5.0, 0.0),
                _ => (1_000.0, 0.0),
            };
            cpu(consumer)
                .with("helper_cpu_ns_per_op", helper)
                .with("total_cpu_ns_per_op", consumer + helper)
        }
    }
}

/// A record with this many rounds of every planned cell, in which each round is a little faster or slower as a whole
/// and every cell scatters a little, so that medians over six rounds are the truth.
pub(crate) fn record(rounds: u32, truth: impl Fn(&str, &Cell) -> Measures) -> RunRecord {
    let plan = plan(Depth::Quick);
    let mut run = RunRecord {
        schema: 1,
        id: "test".to_owned(),
        experiment: "zero-fill".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seconds: 1.0,
        version: "0".to_owned(),
        argv: Vec::new(),
        seed: 1,
        depth: "quick".to_owned(),
        machine: machine(),
        noise: NoiseRecord::default(),
        groups: Vec::new(),
        skipped: plan.skipped,
        samples: Vec::new(),
    };
    for group in plan.groups {
        let mut cells = group.cells.clone();
        cells.push(group.reference.as_twin());
        for round in 0..rounds {
            for (slot, cell) in cells.iter().enumerate() {
                let wobble = [-2.0, 1.0, -1.0, 2.0, -0.5, 0.5][(round as usize + slot) % 6];
                let factor = 1.0 + 1e-4 * wobble;
                let mut measures = truth(
                    &group.name,
                    &Cell {
                        twin: false,
                        ..cell.clone()
                    },
                );
                for (name, value) in &mut measures.0 {
                    if name.contains("_ns") {
                        *value *= factor;
                    }
                }
                run.samples.push(Sample {
                    group: group.name.clone(),
                    cell: cell.clone(),
                    round,
                    slot: slot as u32,
                    at_us: 0,
                    measures,
                });
            }
        }
        run.groups.push(GroupRecord {
            name: group.name,
            reference: group.reference,
            metric: group.metric.to_owned(),
            rounds,
            stopped: StopReason::Rounds,
        });
    }
    run
}

pub(crate) fn analyse(run: &RunRecord) -> Analysis {
    ZERO_FILL.analyse(run)
}

/// The first number after these words.
#[track_caller]
pub(crate) fn number_after(text: &str, words: &str) -> f64 {
    let at = text
        .find(words)
        .unwrap_or_else(|| panic!("'{words}' is not in: {text}"));
    let rest = text[at + words.len()..].trim_start();
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(rest.len());
    rest[..end]
        .trim_end_matches('.')
        .parse()
        .unwrap_or_else(|_| panic!("no number after '{words}' in: {text}"))
}

#[track_caller]
pub(crate) fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 0.003 * expected.abs(),
        "{found} found, {expected} expected"
    );
}

/// The number in the row whose first value has these words, below the heading that has the others.
#[track_caller]
pub(crate) fn shown(table: &Table, row: &str, column: &str) -> f64 {
    let at = table.columns.iter().position(|c| c.contains(column));
    let at = at.unwrap_or_else(|| panic!("no column '{column}' in {:?}", table.columns));
    let named = |is: fn(&str, &str) -> bool| {
        let mut rows = table.rows.iter();
        rows.find(|values| match &values[0] {
            Value::Text(text) => is(text, row),
            Value::Count(n) => is(&n.to_string(), row),
            _ => false,
        })
    };
    let found = named(|text, row| text == row).or_else(|| named(|text, row| text.contains(row)));
    match found.map(|values| &values[at]) {
        Some(Value::Estimate(e, _) | Value::Ratio(e, _)) => e.value,
        other => panic!("{other:?} at '{row}', '{column}'"),
    }
}
