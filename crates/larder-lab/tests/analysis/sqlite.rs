//! What the experiment on SQLite concludes from samples whose truth is known.

use crate::record::record;
use larder_lab::experiments::sqlite::SQLITE;
use larder_lab::measure::{Depth, Experiment};
use larder_lab::model::{Cell, GoalState, Measures};

/// The rules need 0.4 of the time and miss 0.4 of the pages, but in one cell 0.95; one rule takes twice the time in a
/// transaction.
fn truth(group: &str, cell: &Cell) -> Measures {
    let text = |factor: &str| cell.params.text(factor).unwrap_or_default();
    let own = cell.contestant == "sqlite";
    let worse = text("lookups") == "and sorts of a range" && cell.params.int("mb").ok() == Some(50);
    let part = match (own, group, cell.contestant.as_str()) {
        (false, "transaction", "lirs") => 2.0,
        _ if own => 1.0,
        _ if worse => 0.95,
        _ => 0.4,
    };
    Measures::new()
        .with("ns_per_lookup", 1000.0 * part)
        .with("ms", 100.0 * part)
        .with("misses", 4096.0 * part)
        .with("given_back", if own { 0.0 } else { 90.0 })
        .with("locked", 0.0)
}

#[test]
fn goals_speak_of_the_full_size_and_of_the_worst_rule() {
    use GoalState::{Met, Missed, Skipped};
    let states = |depth| -> Vec<GoalState> {
        let analysis = SQLITE.analyse(&record(&SQLITE, depth, 10, truth));
        analysis.goals.iter().map(|goal| goal.state).collect()
    };
    // Lookups by one and two threads, the lock that is not there, statements: time and pages, a transaction, three of pages, memory.
    assert_eq!(
        states(Depth::Full),
        [Met, Met, Skipped, Met, Met, Missed, Met, Met, Met, Met]
    );
    assert_eq!(
        states(Depth::Quick),
        [
            Met, Met, Skipped, Met, Met, Missed, Skipped, Skipped, Skipped, Met
        ]
    );
    let analysis = SQLITE.analyse(&record(&SQLITE, Depth::Full, 10, truth));
    assert_eq!(analysis.goals[5].note, "worst at lirs");
    let counted = |goal: usize| analysis.goals[goal].measured.unwrap().value;
    let mean = 0.4_f64.powf(15.0 / 16.0) * 0.95_f64.powf(1.0 / 16.0);
    for (goal, wanted) in [(4, 0.4), (6, mean), (7, 0.95), (8, 0.4)] {
        assert!(
            (counted(goal) - wanted).abs() < 0.005,
            "{goal}: {}",
            counted(goal)
        );
    }
}
