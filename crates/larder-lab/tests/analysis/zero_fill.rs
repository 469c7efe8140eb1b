//! What `zero-fill` says about samples whose truth is known, and that it says something about any record.

use std::time::Duration;

use crate::record::has_two_cpus;
use crate::said::{finding, table};
use crate::zero_fill_record::*;
use larder_lab::experiments::zero_fill::{ZERO_FILL, presets, submission_row};
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Goal, GoalState, RunRecord, Skipped};
use larder_lab::stats::Verdict;

#[test]
fn the_three_claims_of_2003_are_held_against_its_own_formulas() {
    let analysis = analyse(&record(6, truth));
    let number =
        |question: &str, words: &str| number_after(&finding(&analysis, question).answer, words);
    // By hand from 11.2, 24.0, 11.5 and 33.6 us: a fault of 12.8 beside 5.6 to allocate and 7.5 to free.
    let fault = number("largest of", "Yes: by the formulas of 2003 it takes ");
    assert_near(fault, 12.8 / 7.5);
    // Four pages: 6.05 to allocate, 37.2 of faults, 1.75 of the object, 7.95 to free.
    let share = number("80 % of the time", "No: by the formulas of 2003 they take ");
    assert_near(share, 100.0 * 37.2 / 52.95);
    // The kernel zeroes a warm page in 60 ns.
    let zeroing = number(
        "at least half of",
        "No, refuted for warm and cold pages: zeroing 4 warm pages is ",
    );
    assert_near(zeroing, 100.0 * 0.24 / 45.0);
    // A cold one in 400 of the 1600 ns of its fault; 7.8 us are the rest of the allocation.
    let table = finding(&analysis, "at least half of")
        .table
        .as_ref()
        .unwrap();
    assert_near(
        shown(table, "allocating and faulting", "cold"),
        100.0 * 1.6 / 14.2,
    );
    assert_eq!(analysis.answers.len(), 1);
}

#[test]
fn warm_and_cold_pages_may_answer_differently() {
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        if cell.contestant == "step-zeroing" && cell.params.int("pages").unwrap() > 64 {
            measures
                .with("cpu_ns_per_op", 9_000.0)
                .with("fault_cpu_ns", 10_000.0)
        } else {
            measures
        }
    }));
    let says = &finding(&analysis, "at least half of").answer;
    let expected = "No, refuted for warm pages, yes for cold ones: ";
    assert!(says.starts_with(expected), "{says}");
}

#[test]
fn the_share_of_zeroing_is_what_was_put_in() {
    let analysis = analyse(&record(6, truth));
    let share = finding(&analysis, "at least half of")
        .table
        .as_ref()
        .unwrap();
    assert_near(shown(share, "pages: 1", "warm"), 1.0);
    assert_near(shown(share, "pages: 4", "warm"), 2.0);
    assert_near(shown(share, "pages: 64", "warm"), 4.0);
    assert_near(shown(share, "the fault alone", "warm"), 5.0);
    assert_near(shown(share, "the fault alone", "cold"), 25.0);
}

#[test]
fn the_measure_is_trusted_between_its_bounds_only() {
    let analysis = analyse(&record(6, truth));
    let trusted = finding(&analysis, "to be trusted");
    assert_near(number_after(&trusted.answer, "Yes: "), 60.0);
    let table = trusted.table.as_ref().unwrap();
    assert_near(shown(table, "lower bound", "CPU time"), 50.0);
    assert_near(shown(table, "upper bound", "CPU time"), 500.0);
    for outside in [40.0, 600.0] {
        let analysis = analyse(&record(6, |group, cell| match cell.contestant.as_str() {
            "step-zeroing" => truth(group, cell).with("cpu_ns_per_op", outside),
            _ => truth(group, cell),
        }));
        let says = &finding(&analysis, "to be trusted").answer;
        assert!(says.starts_with("No: "), "{says}");
    }
}

#[test]
fn the_formulas_give_the_numbers_of_2003_and_the_measure_stands_beside() {
    let analysis = analyse(&record(6, truth));
    let guess = &finding(&analysis, "Do the formulas of 2003 give").answer;
    assert_near(number_after(guess, "No, too much: they give "), 103.0);
    let costs = table(&analysis, "Derived costs");
    assert_near(shown(costs, "zerofill cost", "here, mmap"), 6_150.0);
    assert_near(shown(costs, "zerofill cost", "measured directly"), 60.0);
    assert_near(shown(costs, "object cost", "here, mmap"), 3_500.0);
    assert_near(shown(costs, "object cost", "measured directly"), 1_600.0);
}

#[test]
fn the_better_model_finds_its_costs_and_sees_a_bend() {
    let straight = analyse(&record(6, truth));
    let model = &finding(&straight, "a cost per call").answer;
    assert_near(
        number_after(model, "no lack of fit is seen: one more page adds "),
        1.5,
    );

    let bent = analyse(&record(6, |group, cell| {
        let mut measures = truth(group, cell);
        if group == "page-tables" && cell.params.int("pages").unwrap() == 64 {
            for (name, value) in &mut measures.0 {
                if name.contains("_ns") {
                    *value *= 0.8;
                }
            }
        }
        measures
    }));
    let model = &finding(&bent, "a cost per call").answer;
    assert!(model.starts_with("Not exactly"), "{model}");
}

#[test]
fn batches_and_early_mapping_are_judged() {
    let analysis = analyse(&record(6, truth));
    let batch = finding(&analysis, "fault in more pages at a time");
    assert_eq!(batch.verdict, Some(Verdict::Faster));
    assert_near(
        number_after(&batch.answer, "Yes: 64 pages mapped within the call cost "),
        0.8,
    );
    assert_eq!(
        batch.reading,
        "faulting in 64 pages at once is faster than faulting them in one by one"
    );
    assert_near(shown(batch.table.as_ref().unwrap(), "4", "ratio"), 1.0);
    let small = finding(&analysis, "map one or two pages at once");
    assert_eq!(small.verdict, Some(Verdict::Faster));
    assert!(
        small.answer.starts_with("Yes, for both: "),
        "{}",
        small.answer
    );
    let table = small.table.as_ref().unwrap();
    assert_near(
        shown(table, "pages that must be touched", "mapped at once"),
        50.0,
    );

    let one_only = analyse(&record(6, |group, cell| {
        match (group, cell.contestant.as_str()) {
            ("timings", "mmap-populate") => {
                truth(group, cell).with("alloc2_fault_cpu_ns", 40_000.0)
            }
            _ => truth(group, cell),
        }
    }));
    let small = &finding(&one_only, "map one or two pages at once").answer;
    assert!(small.starts_with("For one page only: "), "{small}");
}

#[test]
fn work_moved_to_a_helper_is_not_work_saved() {
    if !has_two_cpus() {
        return;
    }
    let analysis = analyse(&record(6, truth));
    let ahead = finding(&analysis, "zeroed ahead of time");
    // 40 + 360 against the cheaper of 100 and 400.
    assert_near(number_after(&ahead.answer, "writes 8 bytes pays "), 4.0);
    assert!(ahead.answer.starts_with("No: "), "{}", ahead.answer);
    assert_eq!(ahead.verdict, Some(Verdict::Slower));
    let table = ahead.table.as_ref().unwrap();
    assert_near(
        shown(table, "writes 8 bytes", "consumer alone, of a cold"),
        0.1,
    );
    assert_near(
        shown(table, "writes 8 bytes", "helper charged, of a cold"),
        1.0,
    );
    let prezero = analysis
        .recommendations
        .iter()
        .find(|r| r.key == "pages.prezero")
        .unwrap();
    assert_eq!(prezero.value, "false");
    assert!(
        prezero.because.contains("does not earn"),
        "{}",
        prezero.because
    );
}

#[test]
fn answers_are_one_sentence_and_short() {
    let findings = analyse(&record(6, truth)).findings;
    let mut words = 0;
    for f in &findings {
        assert!(f.question.ends_with('?'), "{}", f.question);
        assert!(!f.asked_by.is_empty(), "{}", f.question);
        let sentence = f.answer.strip_suffix('.').unwrap();
        assert!(!sentence.contains(". "), "{sentence}");
        words += f.question.split_whitespace().count() + f.answer.split_whitespace().count();
    }
    assert!(findings.len() >= 12, "{findings:?}");
    assert!(words < 350, "{words} words in {} findings", findings.len());
}

#[test]
fn a_helper_that_costs_nothing_would_be_recommended() {
    if !has_two_cpus() {
        return;
    }
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        if cell.contestant == "bill-prezeroed-before" {
            measures
                .with("helper_cpu_ns_per_op", 1.0)
                .with("total_cpu_ns_per_op", 41.0)
        } else {
            measures
        }
    }));
    let prezero = analysis
        .recommendations
        .iter()
        .find(|r| r.key == "pages.prezero")
        .unwrap();
    assert_eq!(prezero.value, "true", "{}", prezero.because);
    let ahead = &finding(&analysis, "zeroed ahead of time").answer;
    assert!(ahead.starts_with("Yes: "), "{ahead}");
}

#[test]
fn a_helper_that_pays_for_one_use_only_is_not_recommended() {
    if !has_two_cpus() {
        return;
    }
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        match (group, cell.contestant.as_str()) {
            ("bill-write-8", "bill-prezeroed-before") => measures.with("total_cpu_ns_per_op", 41.0),
            _ => measures,
        }
    }));
    let ahead = finding(&analysis, "zeroed ahead of time");
    assert!(
        ahead.answer.starts_with("For some uses only: "),
        "{}",
        ahead.answer
    );
    assert_eq!(ahead.verdict, Some(Verdict::Faster));
    let mut settings = analysis.recommendations.iter();
    let prezero = settings.find(|r| r.key == "pages.prezero").unwrap();
    assert_eq!(prezero.value, "false");
}

#[test]
fn a_helper_that_only_breaks_even_is_not_recommended() {
    if !has_two_cpus() {
        return;
    }
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        if cell.contestant == "bill-warm" {
            measures.with("total_cpu_ns_per_op", 400.0)
        } else {
            measures
        }
    }));
    let prezero = analysis
        .recommendations
        .iter()
        .find(|r| r.key == "pages.prezero")
        .unwrap();
    assert_eq!(prezero.value, "false");
    assert!(
        prezero.because.contains("not surely less"),
        "{}",
        prezero.because
    );
}

fn goal<'a>(analysis: &'a Analysis, what: &str, against: &str) -> &'a Goal {
    let mut goals = analysis.goals.iter();
    goals
        .find(|g| g.what.contains(what) && g.against == against)
        .unwrap_or_else(|| panic!("no goal '{what}' against {against}"))
}

#[test]
fn the_goal_is_met_missed_or_skipped_with_its_reason() {
    let state = |run: &RunRecord| {
        let analysis = analyse(run);
        goal(&analysis, "memory used before", "region-touch").clone()
    };
    // The plan of a machine without huge pages has no such cell; then the record says why.
    let run = record(6, truth);
    let has_pool = run
        .samples
        .iter()
        .any(|s| s.cell.contestant == "region-pool");
    if has_pool {
        let met = state(&run);
        assert_eq!(met.state, GoalState::Met);
        assert_near(met.measured.unwrap().value, 0.4);
        assert_eq!(met.held_bytes, Some((269_000_000.0, 268_435_456.0)));
        let missed = state(&record(6, |group, cell| {
            let measures = truth(group, cell);
            if cell.contestant == "region-pool" {
                measures.with("again_cpu_ns_per_op", 600.0)
            } else {
                measures
            }
        }));
        assert_eq!(missed.state, GoalState::Missed);
    }
    let mut without = run;
    without
        .samples
        .retain(|s| s.cell.contestant != "region-pool");
    without.skipped.push(Skipped {
        what: "region-pool".to_owned(),
        why: "transparent huge pages are switched off".to_owned(),
    });
    let skipped = state(&without);
    assert_eq!(skipped.state, GoalState::Skipped);
    assert!(skipped.note.contains("switched off"), "{}", skipped.note);
}

#[test]
fn a_zeroed_page_of_the_pool_is_held_against_the_kernel_and_against_zeroing() {
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        match cell.contestant.as_str() {
            "pool-zeroed" => measures.with("cpu_ns_per_op", 2_000.0),
            "bill-pool" => measures.with("total_cpu_ns_per_op", 200.0),
            _ => measures,
        }
    }));
    let page = goal(&analysis, "one page", "mmap");
    assert_eq!(page.state, GoalState::Met);
    assert_near(page.measured.unwrap().value, 2.0 / 24.0);
    let zeroing = goal(&analysis, "64 pages", "bill-warm");
    assert_eq!(zeroing.state, GoalState::Missed);
    assert_near(zeroing.measured.unwrap().value, 2.0);
    let fault = goal(&analysis, "64 pages", "bill-fault");
    assert_near(fault.measured.unwrap().value, 0.2);
}

#[test]
fn of_equal_routines_the_one_that_asks_least_is_recommended() {
    let analysis = analyse(&record(6, |group, cell| {
        let measures = truth(group, cell);
        if group == "zero-warm" {
            // All alike, and in each round another one ahead.
            measures.with("cpu_ns_per_op", 50.0).with("ns_per_op", 50.0)
        } else {
            measures
        }
    }));
    let zeroing = analysis
        .recommendations
        .iter()
        .find(|r| r.key == "pages.zeroing")
        .unwrap();
    assert_eq!(zeroing.value, "\"portable\"", "{}", zeroing.because);
    let says = &finding(&analysis, "With what should").answer;
    assert_near(number_after(says, "Warm pages with portable, in "), 50.0);
}

#[test]
fn the_host_is_described_where_it_can_be_read() {
    let analysis = analyse(&record(6, truth));
    let text = format!("{:?}", analysis.sections);
    assert!(text.contains("balloon took 7 pages and gave 5 back"));
    assert!(text.contains("order 9"));
    let passes = finding(&analysis, "never touched");
    assert_near(number_after(&passes.answer, "256 MiB costs "), 2.0);
}

#[test]
fn this_machines_row_has_the_timings_and_no_name() {
    let run = record(6, truth);
    let row = submission_row(&run).unwrap();
    assert_eq!(row.machine, "Test CPU 3000");
    assert_eq!(row.os, "Linux 6.1");
    assert_eq!(row.date, "2026-01-02");
    assert_near(row.timings.alloc1(), 11.2);
    assert_near(row.timings.alloc2_fault(), 33.6);
    let presets = presets(&run);
    assert_eq!(presets[0].label, "this machine, mmap");
    let fitted = presets[0].fitted.as_ref().unwrap();
    assert_near(fitted.per_page.value, 1.5);
    assert_near(fitted.zero_fill.unwrap().value, 0.06);
    assert!(presets[1..].iter().all(|p| p.fitted.is_none()));
    assert_eq!(analyse(&run).calculator, presets);
    // The first choice is this machine's row, so without mmap there is none.
    let mut without = run.clone();
    without.samples.retain(|s| s.cell.contestant != "mmap");
    assert!(analyse(&without).calculator.is_empty());
    assert_eq!(submission_row(&record(0, truth)), None);
}

#[test]
fn the_machines_of_2003_stand_beside_as_published() {
    let analysis = analyse(&record(6, truth));
    let text = serde_json::to_string(&analysis.sections).unwrap();
    for name in ["1.25GHz G4", "450 MHz G4 (Cube)", "500 MHz G3"] {
        assert!(text.contains(name), "{name}");
    }
    assert!(text.contains("{\"published\":[51.2,\"us\"]}"), "{text}");
}

#[test]
fn any_part_may_be_missing() {
    let whole = record(6, truth);
    let mut names: Vec<String> = whole
        .samples
        .iter()
        .flat_map(|s| [s.group.clone(), s.cell.contestant.clone()])
        .collect();
    names.sort();
    names.dedup();
    for name in &names {
        let mut partial = whole.clone();
        partial
            .samples
            .retain(|s| s.group != *name && s.cell.contestant != *name);
        analyse(&partial);
        let _ = (submission_row(&partial), presets(&partial));
    }
    for rounds in 0..6 {
        let analysis = analyse(&record(rounds, truth));
        let warning = &analysis.warnings[0];
        assert!(warning.contains("without intervals"), "{warning}");
        for group in &whole.groups {
            assert!(warning.contains(&group.name), "{warning}");
        }
        // Nothing is decided without an interval; only the model is fitted to every sample of its group.
        for f in &analysis.findings {
            assert!(f.question.contains("describe a block"), "{}", f.question);
            assert_eq!(f.verdict, None, "{rounds} rounds");
        }
    }
    let mut cut = whole.clone();
    cut.samples.truncate(whole.samples.len() / 3);
    analyse(&cut);
}

#[test]
fn odd_numbers_are_survived() {
    for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, f64::MIN_POSITIVE] {
        let run = record(6, |group, cell| {
            let mut measures = truth(group, cell);
            for value in measures.0.values_mut() {
                *value = odd;
            }
            measures
        });
        analyse(&run);
        let _ = (submission_row(&run), presets(&run));
    }
}

#[test]
fn the_plan_is_sound() {
    for depth in [Depth::Quick, Depth::Full] {
        let plan = plan(depth);
        let contestants = ZERO_FILL.contestants();
        let mut names: Vec<&str> = contestants.iter().map(|c| c.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a contestant's name is used twice");
        let mut groups: Vec<&str> = plan.groups.iter().map(|g| g.name.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), plan.groups.len());
        let metrics: Vec<&str> = ZERO_FILL.metrics().iter().map(|m| m.name).collect();
        for group in &plan.groups {
            assert!(group.cells.contains(&group.reference), "{}", group.name);
            assert!(metrics.contains(&group.metric), "{}", group.metric);
            assert!(group.min_rounds >= 6 && group.max_rounds >= group.min_rounds);
            let mut cells = group.cells.clone();
            cells.sort();
            cells.dedup();
            assert_eq!(cells.len(), group.cells.len(), "{}", group.name);
            for cell in &group.cells {
                assert!(names.contains(&cell.contestant.as_str()), "{cell}");
            }
        }
        for skipped in &plan.skipped {
            assert!(skipped.why.len() > 20, "{skipped:?}");
        }
    }
    // Half of what the whole quick form may take.
    let quick: Duration = plan(Depth::Quick)
        .groups
        .iter()
        .map(|g| g.round_guess * g.max_rounds)
        .sum();
    assert!(quick < Duration::from_secs(60), "{quick:?}");
}

#[test]
fn the_loop_of_2003_runs_a_million_times_in_full() {
    let plan = plan(Depth::Full);
    let timings = plan.groups.iter().find(|g| g.name == "timings").unwrap();
    assert_eq!(timings.reference.params.int("ops").unwrap(), 1_000_000);
}

#[test]
fn every_measure_is_described() {
    let metrics: Vec<&str> = ZERO_FILL.metrics().iter().map(|m| m.name).collect();
    for contestant in ZERO_FILL.contestants() {
        let Some(cell) = plan(Depth::Quick)
            .groups
            .into_iter()
            .flat_map(|g| g.cells)
            .find(|c| c.contestant == contestant.name())
        else {
            continue;
        };
        // One small run: few repetitions, and a small region.
        let mut params = cell.params.clone();
        for (name, few) in [("ops", 20), ("batches", 2), ("passes", 1), ("mib", 4)] {
            if params.int(name).is_ok() {
                params = params.with(name, few);
            }
        }
        let measures = contestant.run(&params).unwrap();
        for name in measures.0.keys() {
            assert!(
                metrics.contains(&name.as_str()),
                "{}: {name}",
                contestant.name()
            );
        }
    }
}
