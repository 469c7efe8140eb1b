//! One algorithm over the number of tasks, as the samples have it.

use crate::measure::RunView;
use crate::model::Cell;
use crate::stats::defaults::LEVEL;
use crate::stats::sweep::{Crossover, crossover};

use crate::frame::words::short;

/// The cells of one contestant in one group, by ascending A.
pub(super) fn cells(view: &RunView<'_>, group: &str, contestant: &str) -> Vec<(i64, Cell)> {
    let mut cells: Vec<(i64, Cell)> = view
        .cells(group)
        .into_iter()
        .filter(|cell| cell.contestant == contestant && !cell.twin)
        .filter_map(|cell| Some((cell.params.int("tasks").ok()?, cell.clone())))
        .collect();
    cells.sort_by_key(|(tasks, _)| *tasks);
    cells
}

/// The cell at one A.
pub(super) fn at(view: &RunView<'_>, group: &str, contestant: &str, tasks: i64) -> Option<Cell> {
    cells(view, group, contestant)
        .into_iter()
        .find(|(a, _)| *a == tasks)
        .map(|(_, cell)| cell)
}

/// Where `a` and `b` cross, from 1000 tasks on: below, both are a matter of nanoseconds and of the timer.
pub(super) fn crossing(view: &RunView<'_>, group: &str, a: &str, b: &str) -> Option<Crossover> {
    let (of_a, of_b) = (cells(view, group, a), cells(view, group, b));
    let pairs: Vec<(i64, &Cell, &Cell)> = of_a
        .iter()
        .filter(|(tasks, _)| *tasks >= 1000)
        .filter_map(|(tasks, cell)| {
            let (_, other) = of_b.iter().find(|(other, _)| other == tasks)?;
            Some((*tasks, cell, other))
        })
        .collect();
    type Column = Vec<(u32, f64)>;
    let columns: Vec<(Column, Column)> = pairs
        .iter()
        .map(|(_, a, b)| {
            (
                view.values(group, a, "us_per_alloc"),
                view.values(group, b, "us_per_alloc"),
            )
        })
        .collect();
    let value = |column: &[(u32, f64)], round: u32| {
        column.iter().find(|(r, _)| *r == round).map(|(_, v)| *v)
    };
    let rounds: Vec<u32> = columns.first()?.0.iter().map(|(r, _)| *r).collect();
    let (mut rows_a, mut rows_b) = (Vec::new(), Vec::new());
    for round in rounds {
        let row: Option<Vec<(f64, f64)>> = columns
            .iter()
            .map(|(a, b)| Some((value(a, round)?, value(b, round)?)))
            .collect();
        if let Some(row) = row {
            rows_a.push(row.iter().map(|(a, _)| *a).collect());
            rows_b.push(row.iter().map(|(_, b)| *b).collect());
        }
    }
    let sizes: Vec<f64> = pairs.iter().map(|(tasks, _, _)| *tasks as f64).collect();
    crossover(&sizes, &rows_a, &rows_b, LEVEL, view.run().seed).ok()
}

/// The crossing in words, `name` being the one that is cheaper above it.
pub(super) fn words(crossing: &Crossover, a: &str, b: &str) -> String {
    match crossing {
        Crossover::NoneInRange { a_ahead } => format!(
            "{} costs less at every number of tasks",
            if *a_ahead { a } else { b }
        ),
        Crossover::One(one) => format!(
            "{} costs less above {} tasks [{}, {}]",
            if one.a_wins_above { a } else { b },
            short(one.at.value),
            short(one.at.lo),
            short(one.at.hi)
        ),
        Crossover::Several(places) => {
            let places: Vec<String> = places.iter().map(|p| short(p.at.value)).collect();
            format!("they cross at {} tasks", places.join(", "))
        }
        Crossover::Touches { at } => {
            let at: Vec<String> = at.iter().map(|x| short(*x)).collect();
            format!(
                "they never change places for sure; at {} tasks they cannot be told apart",
                at.join(", ")
            )
        }
    }
}
