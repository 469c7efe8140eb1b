//! The view on made-up records.

use super::*;
use crate::model::{GroupRecord, MachineRecord, Measures, NoiseRecord, Params, StopReason};

mod families;

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

/// Twenty rounds of a reference, its twin and forty equal contestants, with independent noise of 5 %.
fn table() -> RunRecord {
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
            samples.push((cell("own", i), round, 10.0 * noise()));
        }
    }
    record(&samples)
}

#[test]
fn a_quiet_run_has_no_warnings() {
    let run = table();
    assert_eq!(RunView::new(&run).warnings(), [""; 0]);
}

/// Two groups of twenty rounds: a quiet one, and `g` with a twin a fifth above its reference, two contestants whose
/// ratios climb, and two with every third sample wild.
fn troubled() -> RunRecord {
    let base = cell("base", 1);
    let mut samples = Vec::new();
    for round in 0..20 {
        let wobble = 1.0 + 0.001 * f64::from(round % 3);
        samples.push((base.clone(), round, 10.0));
        samples.push((base.as_twin(), round, 12.0 * wobble));
        let wild = if round % 3 == 0 { 300.0 } else { 10.0 * wobble };
        for n in 1..=2 {
            samples.push((cell("climbs", n), round, 10.0 + f64::from(round)));
            samples.push((cell("wild", n), round, wild));
        }
    }
    let mut run = record(&samples);
    let mut quiet = table();
    quiet.groups[0].name = "quiet".to_owned();
    run.groups.append(&mut quiet.groups);
    run.samples
        .extend(quiet.samples.into_iter().map(|s| Sample {
            group: "quiet".to_owned(),
            ..s
        }));
    run
}

#[test]
fn warnings_name_what_is_wrong_and_where() {
    let mut run = troubled();
    run.samples.retain(|s| s.group == "g");
    let all = RunView::new(&run).warnings();
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(
        all[0].contains("1 of 1 groups") && all[0].contains("g +20.1 %"),
        "{all:?}"
    );
    assert!(all[1].contains("depend on the rounds before"), "{all:?}");
    assert!(all[2].contains("g 14 of 120"), "{all:?}");
    // Drift is judged over the whole run: 2 of 45 ratios may be chance.
    let all = RunView::new(&troubled()).warnings();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].contains("1 of 2 groups"), "{all:?}");
}

#[test]
fn without_a_ratio_of_the_twins_a_warning_says_what_is_missing() {
    let (base, own) = (cell("base", 1), cell("own", 1));
    let samples: Vec<_> = (0..3)
        .flat_map(|round| {
            let ns = 10.0 + f64::from(round);
            [
                (base.clone(), round, 10.0),
                (base.as_twin(), round, ns),
                (own.clone(), round, ns),
            ]
        })
        .collect();
    let run = record(&samples);
    let view = RunView::new(&run);
    let [warning] = view.warnings().try_into().unwrap();
    assert!(
        warning.contains("6 common rounds") && warning.contains('g'),
        "{warning}"
    );
    assert!(
        view.floor_text().contains("no floor"),
        "{}",
        view.floor_text()
    );
    // A count that is the same both times needs no floor.
    let samples: Vec<_> = [base.clone(), base.as_twin(), own]
        .map(|cell| (cell, 0, 7.0))
        .to_vec();
    let run = record(&samples);
    let view = RunView::new(&run);
    assert_eq!(view.warnings(), [""; 0]);
    assert!(
        view.floor_text().contains("counts"),
        "{}",
        view.floor_text()
    );
    assert_eq!(RunView::new(&record(&[])).floor_text(), "");
    assert_eq!(RunView::new(&record(&[])).warnings(), [""; 0]);
}

#[test]
fn the_floor_of_a_run_is_one_line() {
    let run = troubled();
    let line = RunView::new(&run).floor_text();
    assert!(
        line.starts_with("A/A: ") && line.contains("to 20.1 %") && line.contains("2 groups"),
        "{line}"
    );
}

#[test]
fn a_verdict_on_disturbed_samples_is_refused_and_a_count_is_not() {
    let (base, own) = (cell("base", 1), cell("own", 1));
    let mut run = drifting(&[
        (base.clone(), 10.0),
        (base.as_twin(), 10.0),
        (own.clone(), 5.0),
    ]);
    let mut disturb = |rounds: std::ops::Range<u32>, percent: f64| {
        for s in run.samples.iter_mut().filter(|s| rounds.contains(&s.round)) {
            s.measures.0.insert("held".to_owned(), 4.0);
            if s.cell == own {
                s.measures
                    .0
                    .insert(crate::model::OTHERS.to_owned(), percent);
            }
        }
        let view = RunView::new(&run);
        let word = |metric| {
            view.compare("g", &own, &base, metric, Better::Lower)
                .verdict
        };
        (word("ns"), word("held"), run.noise_reason().is_some())
    };
    let held = Verdict::Same { within: 0.05 };
    assert_eq!(disturb(0..7, 4.0).0, Verdict::Faster);
    // One of seven pairs is under a quarter, two are above.
    assert_eq!(disturb(0..1, 40.0), (Verdict::Faster, held, false));
    assert_eq!(disturb(0..2, 40.0), (Verdict::Noisy, held, false));
    // Of the group's samples more than a quarter: own alone is a third of them.
    assert_eq!(disturb(0..7, 40.0), (Verdict::Noisy, held, true));
}
