//! What the arenas experiment concludes from samples whose truth is known.

use crate::record::{cut, record, spoiled};
use crate::said::draw;
use larder_lab::experiments::arenas::ARENAS;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Analysis, Block, Cell, GoalState, Measures, Value};

/// Quantum caches cost the same always, best fit as the ranges are many, and handles twice as much in the end.
fn truth(_: &str, cell: &Cell) -> Measures {
    let live = cell.params.int("live").unwrap_or(1) as f64;
    let cost = match cell.contestant.as_str() {
        "quantum" => 10.0,
        "handle" => 5.0 * if live > 50_000.0 { 2.0 } else { 1.0 },
        "instant" => 60.0,
        "offset-allocator" => 20.0,
        _ => 10.0 + live,
    };
    Measures::new()
        .with("ns_per_range", cost)
        .with("segments", 2.0 * live)
        .with("bookkeeping_bytes", 64.0 * live)
}

fn analysis(depth: Depth) -> Analysis {
    ARENAS.analyse(&record(&ARENAS, depth, 10, truth))
}

#[test]
fn constant_is_what_does_not_grow() {
    for depth in [Depth::Quick, Depth::Full] {
        let analysis = analysis(depth);
        // One goal speaks of both, and of the one that misses it.
        let goals: Vec<_> = analysis.goals.iter().map(|g| (g.state, &*g.note)).collect();
        assert_eq!(goals, [(GoalState::Missed, "worst at handle")]);
        let growth = &analysis.findings[0];
        for words in ["handle grows most: to 2.00 [", "(grows)"] {
            assert!(growth.answer.contains(words), "{}", growth.answer);
        }
        let table = growth.table.as_ref().expect("a row for each arena");
        let said: Vec<_> = table.rows.iter().map(|row| (&row[0], &row[4])).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        for (name, word) in [
            ("quantum", "constant"),
            ("handle", "grows"),
            ("best", "grows"),
        ] {
            assert!(said.contains(&(&text(name), &text(word))), "{said:?}");
        }
    }
}

#[test]
fn a_smaller_range_decides_no_goal() {
    let mut run = record(&ARENAS, Depth::Quick, 10, truth);
    run.samples
        .retain(|sample| sample.cell.params.int("live").is_ok_and(|n| n <= 10_000));
    for goal in ARENAS.analyse(&run).goals {
        assert_eq!((goal.state, goal.measured), (GoalState::Skipped, None));
        assert!(goal.note.contains("100000 ranges"), "{}", goal.note);
    }
    // Too few rounds of the right size are another reason.
    for goal in ARENAS
        .analyse(&record(&ARENAS, Depth::Quick, 2, truth))
        .goals
    {
        assert!(goal.note.contains("6 common rounds"), "{}", goal.note);
    }
}

#[test]
#[cfg(feature = "peers")]
fn ours_are_shares_of_the_peer_where_it_has_most() {
    let analysis = analysis(Depth::Quick);
    let beside = analysis
        .findings
        .iter()
        .find(|f| f.question.contains("beside offset-allocator, 100000"))
        .expect("told");
    assert!(
        beside
            .answer
            .contains("ns, 0.50 [0.50, 0.50] of offset-allocator (20.0 ns)"),
        "{}",
        beside.answer
    );
    assert_eq!(
        beside.reading,
        "larder's arena is faster than offset-allocator"
    );
    let least = analysis.findings.iter().any(|f| {
        f.question.contains("beside range-alloc") && f.answer.contains("of range-alloc (100")
    });
    assert!(least);
}

#[test]
fn tables_have_a_row_for_each_count() {
    let analysis = analysis(Depth::Full);
    assert_eq!(analysis.sections.len(), 2);
    for section in &analysis.sections {
        let Some(Block::Table(table)) = section.blocks.first() else {
            panic!("no table");
        };
        assert_eq!(table.rows.len(), 5);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
    }
}

#[test]
fn partial_and_absurd_runs_are_read_without_panic() {
    let full = record(&ARENAS, Depth::Full, 6, truth);
    for run in cut(&full, 17) {
        let _ = ARENAS.analyse(&run);
    }
    for odd in [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE] {
        let run = spoiled(&full, 0, 3, odd);
        draw(&ARENAS, &run);
    }
    let empty = ARENAS.analyse(&record(&ARENAS, Depth::Quick, 0, truth));
    assert!(empty.findings.is_empty());
    assert!(
        empty
            .goals
            .iter()
            .all(|g| g.state == GoalState::Skipped && !g.note.is_empty())
    );
}
