//! Runs with a scatter of their own, simulated: what `compare` finds and what it must not.

use larder_lab::measure::{Changes, changes, changes_of};
use larder_lab::model::{
    Better, Cell, GroupRecord, MachineRecord, Measures, NoiseRecord, Params, RunRecord, Sample,
    StopReason,
};
use larder_lab::stats::Verdict;
use larder_lab::store::SCHEMA;

const NAMES: [&str; 6] = ["array", "best", "heap", "pool", "quantum", "tree"];

/// A small generator (splitmix64), so that every run of the tests is the same.
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A quick run: two groups of six contestants with two cells each, 8 rounds that scatter by 2 %, each cell off by 1 %
/// in this run alone, one cell of `churn` by much more. `slower` makes all cells of one contestant slower.
fn run(seed: u64, slower: Option<(&str, f64)>) -> RunRecord {
    let mut draw = Draw(seed);
    let (mut groups, mut samples) = (Vec::new(), Vec::new());
    for group in ["churn", "pair"] {
        let cell = |name: &str, live: i64| Cell::new(name, Params::new().with("live", live));
        let reference = cell("array", 100);
        let mut cells: Vec<Cell> = NAMES
            .iter()
            .flat_map(|name| [100, 10_000].map(|live| cell(name, live)))
            .collect();
        cells.push(reference.as_twin());
        for (slot, cell) in (0u32..).zip(cells) {
            let wild = group == "churn" && slot == 5;
            let of_run = draw.normal() * if wild { 0.2 } else { 0.01 };
            let planted = match slower {
                Some((name, by)) if name == cell.contestant => by,
                _ => 1.0,
            };
            for round in 0..8 {
                let ns = 100.0 * (of_run + 0.02 * draw.normal()).exp() * planted;
                samples.push(Sample {
                    group: group.to_owned(),
                    cell: cell.clone(),
                    round,
                    slot,
                    at_us: 0,
                    measures: Measures::new().with("ns", ns),
                });
            }
        }
        groups.push(GroupRecord {
            name: group.to_owned(),
            reference,
            metric: "ns".to_owned(),
            rounds: 8,
            stopped: StopReason::Rounds,
        });
    }
    RunRecord {
        schema: SCHEMA,
        id: format!("{seed:032x}"),
        experiment: "simulated".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        seconds: 1.0,
        version: "0.1.0".to_owned(),
        argv: Vec::new(),
        seed,
        depth: "quick".to_owned(),
        machine: MachineRecord {
            fingerprint: "m".to_owned(),
            fields: [].into(),
        },
        noise: NoiseRecord::default(),
        groups,
        skipped: Vec::new(),
        samples,
    }
}

fn sides(before: &[RunRecord], after: &[RunRecord]) -> Changes {
    let (a, b): (Vec<_>, Vec<_>) = (before.iter().collect(), after.iter().collect());
    changes_of(&a, &b, |_| Better::Lower)
}

fn called(c: &Changes, wanted: impl Fn(&Verdict) -> bool) -> Vec<&str> {
    let hits = c.contestants.iter().filter(|c| wanted(&c.verdict));
    hits.map(|c| c.contestant.as_str()).collect()
}

fn changed(c: &Changes) -> Vec<&str> {
    called(c, |v| matches!(v, Verdict::Slower | Verdict::Faster))
}

#[test]
fn runs_of_one_program_are_rarely_called_changed_and_mostly_the_same() {
    let (mut alarms, mut same, mut all) = (0, 0, 0);
    for pair in 0..200 {
        let c = changes(&run(2 * pair, None), &run(2 * pair + 1, None), |_| {
            Better::Lower
        });
        let hits = changed(&c);
        alarms += usize::from(!hits.is_empty());
        same += called(&c, |v| matches!(v, Verdict::Same { .. })).len();
        all += c.contestants.len();
        for cell in &c.changes {
            assert!(
                !matches!(cell.verdict, Verdict::Slower | Verdict::Faster)
                    || hits.contains(&cell.cell.contestant.as_str()),
                "{cell:?}"
            );
        }
    }
    assert_eq!(all, 200 * NAMES.len());
    assert!(alarms <= 10, "{alarms} of 200");
    assert!(same * 2 > all, "{same} of {all}");
}

#[test]
fn five_percent_in_one_contestant_is_found_with_five_runs_a_side_and_no_other() {
    let (mut found, mut others) = (0, 0);
    for trial in 0..60 {
        // Every contestant takes its turn, the reference too.
        let name = NAMES[trial as usize % NAMES.len()];
        let before: Vec<_> = (0..5).map(|i| run(1000 + 10 * trial + i, None)).collect();
        let after: Vec<_> = (5..10)
            .map(|i| run(1000 + 10 * trial + i, Some((name, 1.05))))
            .collect();
        let c = sides(&before, &after);
        found += usize::from(called(&c, |v| *v == Verdict::Slower).contains(&name));
        others += usize::from(changed(&c).iter().any(|n| *n != name));
        assert!(c.changed_references.iter().all(|r| r == "array"), "{c:?}");
    }
    assert!(found >= 54, "{found} of 60");
    assert!(others <= 3, "{others} of 60");
}

#[test]
fn a_slower_reference_is_named_and_slows_nobody_else() {
    let before: Vec<_> = (0..5).map(|i| run(3000 + i, None)).collect();
    let after: Vec<_> = (5..10)
        .map(|i| run(3000 + i, Some(("array", 1.2))))
        .collect();
    for c in [
        sides(&before, &after),
        changes(&before[0], &after[0], |_| Better::Lower),
    ] {
        assert_eq!(changed(&c), ["array"], "{:?}", c.contestants);
        assert_eq!(c.changed_references, ["array"]);
        let slower = c.contestants[0].change;
        assert!((slower.value - 1.2).abs() < 0.05, "{slower:?}");
        let marked = c.changes.iter().filter(|c| {
            c.cell.contestant != "array" && matches!(c.verdict, Verdict::Slower | Verdict::Faster)
        });
        assert_eq!(marked.count(), 0);
    }
}
