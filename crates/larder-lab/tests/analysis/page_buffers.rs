//! What the page-buffers experiment concludes from samples whose truth is known.

use crate::record::{cut, record};
use crate::said::answer;
use larder_lab::experiments::page_buffers::PAGE_BUFFERS;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Block, Cell, Finding, GoalState, Measures, Value};

/// A machine on which unbuffered costs 5000, clusters fall to 4000 at 64 pages and are worse than unbuffered from 4096
/// on, 17 and 18 pages stand out, whole clusters are best at 64 and 96, a pool costs 100, and one that grows 1000, but
/// 900 at 128 and 512.
fn truth(group: &str, cell: &Cell) -> Measures {
    let pages = cell.params.int("pages").unwrap_or(1) as f64;
    let cost = match cell.contestant.as_str() {
        "unbuffered" => 5000.0,
        "cluster" if pages == 17.0 || pages == 18.0 => 4800.0,
        "cluster" if pages >= 4096.0 => 5500.0,
        "cluster" => 4000.0 + 100.0 * (pages / 64.0).log2().abs(),
        "cluster-whole" if pages == 64.0 || pages == 96.0 => 1000.0,
        "cluster-whole" => 1300.0,
        "cluster-populate" => 900.0,
        "pool-growth" if pages == 128.0 || pages == 512.0 => 900.0,
        "pool-growth" => 1000.0,
        "pool" | "pool-handle" => 100.0,
        "life-whole" => 1000.0 + 3000.0 / pages + pages / 10.0,
        "life-by-page" => 4000.0,
        _ => 500.0,
    };
    let measures = Measures::new()
        .with("ns_per_page", cost)
        .with("elapsed_s", cost / 1e4)
        .with("held_bytes", 4096.0);
    match group {
        "parts" => measures
            .with("get_ns", 700.0 / pages)
            .with("touch_ns", 500.0 + pages / 10.0)
            .with("give_back_ns", 500.0 + 2300.0 / pages),
        "give-back" => measures.with("call_ns", if pages > 33.0 { 7000.0 } else { 250.0 * pages }),
        _ => measures.with("calls_per_page", 2.0 / pages),
    }
}

fn analysis() -> Analysis {
    PAGE_BUFFERS.analyse(&record(&PAGE_BUFFERS, Depth::Quick, 10, truth))
}

#[test]
fn finds_the_optimum_the_odd_sizes_and_the_crossover() {
    let analysis = analysis();
    let optimum = answer(&analysis, "cluster size is best");
    assert!(optimum.contains("64 pages"), "{optimum}");
    let odd = answer(&analysis, "17 and 18");
    assert!(
        odd.contains("17 and 18 pages cost 1.15 [") && odd.contains("both are slow here, too"),
        "{odd}"
    );
    let rise = answer(&analysis, "rise past clusters of 64");
    assert!(rise.contains("It rises here, too: "), "{rise}");
    let worse = answer(&analysis, "worse than one mmap per page");
    assert!(worse.contains("become worse from"), "{worse}");
    assert!(worse.contains("1.10"), "{worse}");
    // Walfield asked for the size, for 17 and 18, and for what lies past 64.
    for finding in &analysis.findings {
        let his = [
            "cluster size is best",
            "17 and 18",
            "worse than one mmap per page",
            "rise past clusters of 64",
        ];
        let his = his.iter().any(|part| finding.question.contains(part));
        assert_eq!(
            finding.asked_by == "Walfield 2001",
            his,
            "{}",
            finding.question
        );
    }
}

#[test]
fn explains_both_sides_and_the_flush() {
    let analysis = analysis();
    let ends = |finding: &&Finding| finding.question.contains("small and of large");
    let ends = analysis.findings.iter().find(ends).expect("it ran");
    for said in [
        "Against clusters of 64, all returned whole, a page costs 3.80 [",
        "from clusters of 1, mostly in the call that gives back, and",
        "from clusters of 8192, mostly in the touch.",
    ] {
        assert!(ends.answer.contains(said), "{}", ends.answer);
    }
    let table = ends.table.as_ref().expect("of the parts");
    let Value::Ratio(small, _) = &table.rows[0][1] else {
        panic!("1 to 64 pages")
    };
    assert!((small.value - 3.79).abs() < 0.01, "{small:?}");
    let flush = answer(&analysis, "step at 33 pages");
    assert!(
        flush.contains("0.85") && flush.contains("not tested"),
        "{flush}"
    );
    let page = answer(&analysis, "page by page");
    assert!(page.contains("costs 3.78 ["), "{page}");
}

#[test]
fn a_cause_stands_only_where_a_contestant_tests_it() {
    let mut run = record(&PAGE_BUFFERS, Depth::Quick, 10, truth);
    let tested = PAGE_BUFFERS.analyse(&run);
    let table = |analysis: &Analysis| {
        let worse = |f: &&Finding| f.question.contains("worse than one mmap per page");
        let found = analysis.findings.iter().find(worse).expect("it ran");
        found.table.clone()
    };
    let rows = table(&tested).expect("of cluster-whole").rows;
    let [Value::Text(pages), Value::Ratio(ratio, _)] = rows[0].as_slice() else {
        panic!("a pair of sizes and a ratio: {rows:?}")
    };
    assert_eq!(pages, "4096 to 64");
    assert!((ratio.value - 1.3).abs() < 0.01, "{ratio:?}");
    let worse = answer(&tested, "worse than one mmap per page");
    assert!(!worse.contains("not tested"), "{worse}");
    run.samples.retain(|s| s.group != "whole-clusters");
    let without = PAGE_BUFFERS.analyse(&run);
    assert_eq!(table(&without), None);
    let worse = answer(&without, "worse than one mmap per page");
    assert!(worse.contains("Why is not tested"), "{worse}");
    let all: String = [&tested, &without]
        .iter()
        .flat_map(|a| &a.findings)
        .map(|f| f.answer.as_str())
        .collect();
    for typed in [
        "shows his shape",
        "near cache",
        "Because",
        "cannot be the reason",
    ] {
        assert!(!all.contains(typed), "{typed}: {all}");
    }
}

#[test]
fn without_odd_sizes_it_says_so() {
    let flat = record(&PAGE_BUFFERS, Depth::Quick, 10, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant == "cluster" {
            measures.0.insert("ns_per_page".to_owned(), 4000.0);
        }
        measures
    });
    let analysis = PAGE_BUFFERS.analyse(&flat);
    let odd = answer(&analysis, "17 and 18");
    assert!(odd.contains("do not both stand out"), "{odd}");
    let rise = answer(&analysis, "rise past clusters of 64");
    assert!(rise.contains("It does not rise here: "), "{rise}");
    let worse = answer(&analysis, "worse than one mmap per page");
    assert!(worse.contains("surely worse here"), "{worse}");
    // All sizes are one group and the cheapest of a group is the smallest.
    let optimum = answer(&analysis, "cluster size is best");
    assert!(optimum.contains("1 to 8192 pages"), "{optimum}");
}

#[test]
fn recommends_the_smallest_of_the_best_of_the_pool() {
    // Whole clusters are best at 64 and 96; the setting is the pool's.
    let analysis = analysis();
    let [recommendation] = analysis.recommendations.as_slice() else {
        panic!("one recommendation");
    };
    assert_eq!(recommendation.key, "pages.cluster_pages");
    assert_eq!(recommendation.value, "128");
    assert!(
        recommendation.because.contains("128 and 512 pages"),
        "{}",
        recommendation.because
    );
}

#[test]
fn a_single_best_size_is_not_a_range() {
    let sharp = record(&PAGE_BUFFERS, Depth::Quick, 10, |group, cell| {
        let mut measures = truth(group, cell);
        let pages = cell.params.int("pages").unwrap_or(1);
        if ["cluster", "pool-growth"].contains(&cell.contestant.as_str()) {
            let cost = if pages == 64 { 50.0 } else { 4000.0 };
            measures.0.insert("ns_per_page".to_owned(), cost);
        }
        measures
    });
    let analysis = PAGE_BUFFERS.analyse(&sharp);
    assert_eq!(
        analysis.answers[0].answer,
        "64 pages are best; 2001: 14 to 24"
    );
    let because = &analysis.recommendations[0].because;
    assert_eq!(
        because,
        "A PagePool grows cheapest by clusters of 64 pages."
    );
    let optimum = answer(&analysis, "cluster size is best");
    assert!(
        optimum.starts_with("Clusters of 64 pages are best, at 0.0100 ["),
        "{optimum}"
    );
}

#[test]
fn the_goal_is_met_at_fifty_times_and_missed_at_ten() {
    let met = PAGE_BUFFERS.analyse(&record(&PAGE_BUFFERS, Depth::Full, 10, truth));
    assert_eq!(met.goals.len(), 2);
    for goal in &met.goals {
        assert_eq!(goal.state, GoalState::Met, "{}", goal.what);
    }
    let slow = record(&PAGE_BUFFERS, Depth::Full, 10, |group, cell| {
        let mut measures = truth(group, cell);
        if cell.contestant == "pool" {
            measures.0.insert("ns_per_page".to_owned(), 500.0);
        }
        measures
    });
    let slow = PAGE_BUFFERS.analyse(&slow);
    assert_eq!(slow.goals[0].state, GoalState::Missed);
    assert_eq!(slow.goals[1].state, GoalState::Met);
}

#[test]
fn a_goal_names_the_total_that_it_holds_at() {
    for (depth, total) in [(Depth::Quick, "65536"), (Depth::Full, "1048576")] {
        let goals = PAGE_BUFFERS
            .analyse(&record(&PAGE_BUFFERS, depth, 10, truth))
            .goals;
        for goal in goals {
            let named = format!("page buffers, {total} allocations, to ");
            assert!(goal.what.starts_with(&named), "{}", goal.what);
            assert_eq!(goal.state, GoalState::Met, "{}", goal.what);
        }
    }
}

#[test]
fn a_goal_of_another_total_is_not_measured() {
    let mut run = record(&PAGE_BUFFERS, Depth::Quick, 10, truth);
    run.samples.retain(|s| s.group != "total-65536");
    run.groups.retain(|g| g.name != "total-65536");
    let goals = PAGE_BUFFERS.analyse(&run).goals;
    assert_eq!(goals.len(), 2);
    for goal in goals {
        assert_eq!(goal.state, GoalState::Skipped, "{}", goal.what);
        assert_eq!(goal.measured, None);
        assert!(
            goal.note.contains("1048576 allocations")
                && goal.note.contains("--full --group total-1048576"),
            "{}",
            goal.note
        );
    }
}

#[test]
fn full_has_his_tables_in_his_layout() {
    let run = record(&PAGE_BUFFERS, Depth::Full, 10, truth);
    let analysis = PAGE_BUFFERS.analyse(&run);
    let tables: Vec<_> = analysis
        .sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        })
        .collect();
    // 38 rows; Walfield's five columns, the lab's five, and the heading.
    assert_eq!(tables[0].rows.len(), 38);
    assert_eq!(tables[0].columns.len(), 11);
    assert_eq!(tables[0].rows[0][1], Value::Published(2.36, "s".to_owned()));
    assert!(
        tables[0]
            .rows
            .iter()
            .flatten()
            .all(|value| *value != Value::Empty)
    );
    assert_eq!(tables[1].rows.len(), 8);
    assert_eq!(tables[2].rows.len(), 8);
    assert_eq!(tables[2].columns.len(), 3);
    for table in tables {
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len()),
            "{}",
            table.title
        );
    }
}

#[test]
fn partial_runs_are_read_without_panic() {
    let full = record(&PAGE_BUFFERS, Depth::Quick, 7, truth);
    for run in cut(&full, 13) {
        let _ = PAGE_BUFFERS.analyse(&run);
    }
    for group in &full.groups {
        let mut run = full.clone();
        run.samples.retain(|sample| sample.group != group.name);
        run.groups.retain(|other| other.name != group.name);
        let _ = PAGE_BUFFERS.analyse(&run);
    }
    // Without any measure a sample says nothing, and zero has no ratio.
    for value in [None, Some(0.0)] {
        let run = record(&PAGE_BUFFERS, Depth::Quick, 7, |group, cell| match value {
            None => Measures::new(),
            Some(_) => Measures(
                truth(group, cell)
                    .0
                    .into_keys()
                    .map(|name| (name, 0.0))
                    .collect(),
            ),
        });
        let analysis = PAGE_BUFFERS.analyse(&run);
        assert!(
            analysis
                .goals
                .iter()
                .all(|goal| goal.state == GoalState::Skipped)
        );
        assert!(analysis.recommendations.is_empty());
    }
}
