//! The view on made-up records.

use super::*;
use crate::model::{GroupRecord, MachineRecord, Measures, NoiseRecord, Params, StopReason};

fn cell(name: &str, pages: i64) -> Cell {
    Cell::new(name, Params::new().with("pages", pages))
}

/// A record of one group `g` with the reference `base pages=1`, from (cell, round, ns).
fn record(samples: &[(Cell, u32, f64)]) -> RunRecord {
    RunRecord {
        schema: 1,
        id: String::new(),
        experiment: "e".to_owned(),
        started: String::new(),
        seconds: 0.0,
        version: String::new(),
        argv: Vec::new(),
        seed: 0,
        depth: "quick".to_owned(),
        machine: MachineRecord::default(),
        noise: NoiseRecord::default(),
        groups: vec![GroupRecord {
            name: "g".to_owned(),
            reference: cell("base", 1),
            metric: "ns".to_owned(),
            rounds: 0,
            stopped: StopReason::Rounds,
        }],
        skipped: Vec::new(),
        samples: samples
            .iter()
            .map(|(cell, round, ns)| Sample {
                group: "g".to_owned(),
                cell: cell.clone(),
                round: *round,
                slot: 0,
                at_us: 0,
                measures: Measures::new().with("ns", *ns).with("per_s", 1.0 / ns),
            })
            .collect(),
    }
}

/// Seven rounds, each slower than the one before by half: only pairing sees through that.
fn drifting(cells: &[(Cell, f64)]) -> RunRecord {
    let samples: Vec<(Cell, u32, f64)> = (0..7)
        .flat_map(|round| {
            cells.iter().enumerate().map(move |(slot, (cell, ns))| {
                let wobble = 1.0 + 0.002 * f64::from((round * 3 + slot as u32 * 5) % 7);
                (
                    cell.clone(),
                    round,
                    ns * wobble * 1.5_f64.powf(f64::from(round)),
                )
            })
        })
        .collect();
    record(&samples)
}

#[test]
fn pairs_see_through_a_drift() {
    let (base, own) = (cell("base", 1), cell("own", 1));
    let run = drifting(&[
        (base.clone(), 10.0),
        (base.as_twin(), 10.0),
        (own.clone(), 5.0),
    ]);
    let view = RunView::new(&run);
    let c = view.compare("g", &own, &base, "ns", Better::Lower);
    let ratio = c.ratio.unwrap();
    assert!((ratio.value - 0.5).abs() < 0.01 && ratio.hi < 0.51);
    assert_eq!((c.verdict, c.n), (Verdict::Faster, 7));
    assert!(c.floor.unwrap() < 0.02);
    assert_eq!(
        view.compare("g", &own, &base, "per_s", Better::Higher)
            .verdict,
        Verdict::Faster
    );
    assert_eq!(
        view.compare("g", &base, &own, "ns", Better::Lower).verdict,
        Verdict::Slower
    );
    assert_eq!(
        view.compare("g", &base.as_twin(), &base, "ns", Better::Lower)
            .verdict,
        Verdict::Same { within: 0.05 }
    );
    let difference = view.difference("g", &own, &base, "ns").unwrap();
    assert!(difference.hi < 0.0);
}

#[test]
fn only_rounds_with_both_are_pairs() {
    let (base, own) = (cell("base", 1), cell("own", 1));
    let mut samples = Vec::new();
    for round in 0..8 {
        samples.push((base.clone(), round, 10.0));
        if round != 3 {
            samples.push((own.clone(), round, 20.0));
        }
    }
    samples.push((own.clone(), 99, 1.0));
    samples.push((own.clone(), 0, 7.0)); // a second sample of a round: the first counts
    let run = record(&samples);
    let view = RunView::new(&run);
    let ratio = view.ratio("g", &own, &base, "ns").unwrap();
    assert_eq!(ratio.n, 7);
    assert!((ratio.lo - 2.0).abs() < 1e-12 && (ratio.hi - 2.0).abs() < 1e-12);
    assert_eq!(view.values("g", &own, "ns").len(), 8);
    assert_eq!(view.values("g", &own, "ns")[0], (0, 20.0));
}

#[test]
fn without_a_twin_there_is_no_verdict() {
    let (base, own) = (cell("base", 1), cell("own", 1));
    let run = drifting(&[(base.clone(), 10.0), (own.clone(), 5.0)]);
    let c = RunView::new(&run).compare("g", &own, &base, "ns", Better::Lower);
    assert!(c.ratio.is_some() && c.floor.is_none());
    assert_eq!(c.verdict, Verdict::Refused);
}

#[test]
fn too_few_rounds_give_a_number_and_no_interval() {
    let base = cell("base", 1);
    let samples: Vec<_> = (0..5).map(|r| (base.clone(), r, f64::from(r))).collect();
    let run = record(&samples);
    let view = RunView::new(&run);
    assert_eq!(view.estimate("g", &base, "ns"), None);
    assert_eq!(view.middle("g", &base, "ns"), Some(2.0));
    assert_eq!(view.moments("g", &base, "ns").unwrap().mean, 2.0);
    assert_eq!(view.middle("g", &base, "no such metric"), None);
    assert_eq!(view.middle("no such group", &base, "ns"), None);
}

#[test]
fn groups_and_cells_are_listed_in_order() {
    let mut run = drifting(&[
        (cell("b", 10), 1.0),
        (cell("b", 9), 1.0),
        (cell("a", 1), 1.0),
    ]);
    run.samples[0].group = "another".to_owned();
    let view = RunView::new(&run);
    assert_eq!(view.groups(), ["g", "another"]);
    let names: Vec<String> = view.cells("g").iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a pages=1", "b pages=9", "b pages=10"]);
}

#[test]
fn a_sweep_is_sorted_by_setting_and_knows_its_cells() {
    let cells: Vec<(Cell, f64)> = [(8, 10.0), (1, 30.0), (64, 10.0), (2, 20.0)]
        .map(|(pages, ns)| (cell("base", pages), ns))
        .to_vec();
    let run = drifting(&cells);
    let view = RunView::new(&run);
    let mut settings: Vec<(f64, Cell)> = [64, 1, 2, 8]
        .map(|pages: i64| (pages as f64, cell("base", pages)))
        .to_vec();
    settings.push((3.0, cell("never ran", 3)));
    for (metric, better) in [("ns", Better::Lower), ("per_s", Better::Higher)] {
        let swept = view.sweep("g", &settings, metric, better).unwrap();
        assert_eq!(swept.sweep.settings(), [1.0, 2.0, 8.0, 64.0]);
        assert_eq!(swept.cells[2], cell("base", 8));
        let set = swept.optimum(|pages, _| pages).unwrap();
        assert_eq!((set.members, set.recommended), (vec![2, 3], 2));
        assert!(matches!(swept.knee(), Some(Knee::At { index: 2, .. })));
    }
    assert!(view.sweep("g", &[], "ns", Better::Lower).is_none());
}

#[test]
fn drift_and_outliers_are_reported() {
    let base = cell("base", 1);
    let mut samples: Vec<_> = (0..20)
        .map(|r| (base.clone(), r, 100.0 + f64::from(r % 3)))
        .collect();
    samples[13].2 = 900.0;
    let run = record(&samples);
    let view = RunView::new(&run);
    assert_eq!(view.outliers("g", &base, "ns"), [13]);
    let run = drifting(&[(base.clone(), 1.0)]);
    assert!(RunView::new(&run).lag1("g", &base, "ns").is_some());
}

/// Twenty rounds of a reference, its twin and forty contestants, with independent noise of 5 %.
fn table(ratios: impl Fn(i64) -> f64) -> RunRecord {
    let mut state = 12_345_u64;
    let mut noise = move || {
        // Any rough and repeatable noise does here.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        0.95 + 0.1 * ((state >> 40) as f64 / f64::from(1 << 24))
    };
    let mut samples = Vec::new();
    for round in 0..20 {
        samples.push((cell("base", 1), round, 10.0 * noise()));
        samples.push((cell("base", 1).as_twin(), round, 10.0 * noise()));
        for i in 0..40 {
            samples.push((cell("own", i), round, 10.0 * ratios(i) * noise()));
        }
    }
    record(&samples)
}

#[test]
fn a_table_of_equals_names_no_winner() {
    let run = table(|_| 1.0);
    let rows = RunView::new(&run).compare_all("g", "ns", Better::Lower);
    assert_eq!(rows.len(), 40);
    for row in rows {
        assert!(
            !matches!(
                row.comparison.verdict,
                Verdict::Faster | Verdict::Slower | Verdict::Refused
            ),
            "{row:?}"
        );
        assert!(row.p.is_some());
    }
}

#[test]
fn a_table_names_those_that_differ() {
    let run = table(|i| if i == 7 { 0.5 } else { 1.0 });
    let view = RunView::new(&run);
    for row in view.compare_all("g", "ns", Better::Lower) {
        let own = row.cell == &cell("own", 7);
        assert_eq!(row.comparison.verdict == Verdict::Faster, own, "{row:?}");
        assert_eq!(row.p.is_some_and(|p| p < 0.05), own);
    }
    assert!(
        view.compare_all("no such group", "ns", Better::Lower)
            .is_empty()
    );
}

#[test]
fn a_quiet_run_has_no_warnings() {
    let run = table(|_| 1.0);
    assert_eq!(RunView::new(&run).warnings("g", "ns"), [""; 0]);
}

#[test]
fn warnings_name_what_is_wrong() {
    let base = cell("base", 1);
    let mut samples = Vec::new();
    for round in 0..20 {
        let wobble = 1.0 + 0.001 * f64::from(round % 3);
        samples.push((base.clone(), round, 10.0));
        samples.push((base.as_twin(), round, 12.0 * wobble));
        // Its ratio climbs during the run.
        samples.push((cell("own", 1), round, 10.0 + f64::from(round)));
        let wild = if round % 3 == 0 { 300.0 } else { 10.0 * wobble };
        samples.push((cell("wild", 1), round, wild));
        samples.push((cell("wild", 2), round, wild));
    }
    let run = record(&samples);
    let all = RunView::new(&run).warnings("g", "ns");
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[0].contains("differ in ns by 20.1 %"), "{all:?}");
    assert!(all[1].contains("lean on"), "{all:?}");
    assert!(all[2].contains("outliers"), "{all:?}");
    // Counts of zero have no ratio, so there is no floor.
    let all = RunView::new(&run).warnings("g", "faults");
    assert!(all[0].contains("no A/A ratio of faults"), "{all:?}");
}

#[test]
fn a_doubtful_row_of_a_large_table_is_inconclusive() {
    let (base, doubtful) = (cell("base", 1), cell("doubtful", 1));
    let mut samples = Vec::new();
    for round in 0..10_u32 {
        let wobble = 1.0 + 0.0001 * f64::from(round % 3);
        samples.push((base.clone(), round, 10.0));
        samples.push((base.as_twin(), round, 10.0 * wobble));
        // About 10 % faster, give or take 10 %: sure enough alone, not as one of 41.
        let away = (f64::from(round) - 4.5) / 4.5;
        samples.push((doubtful.clone(), round, 10.0 * (-0.1 + 0.16 * away).exp()));
        for i in 0..40 {
            samples.push((cell("own", i), round, 10.0 * wobble));
        }
    }
    let run = record(&samples);
    let view = RunView::new(&run);
    let alone = view.compare("g", &doubtful, &base, "ns", Better::Lower);
    assert_eq!(alone.verdict, Verdict::Faster, "{alone:?}");
    let rows = view.compare_all("g", "ns", Better::Lower);
    let row = rows.iter().find(|r| *r.cell == doubtful).unwrap();
    assert_eq!(row.comparison.verdict, Verdict::Inconclusive, "{row:?}");
    assert!(row.p.unwrap() > 0.05);
}
