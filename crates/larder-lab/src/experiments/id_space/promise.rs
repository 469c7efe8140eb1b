//! What each rule says of the rest of a freed identifier, and what was seen.

use crate::measure::RunView;

use super::plan::{DISTANCE, EPOCHS, FIRST_FREED, RULES, SHARED_RULES, SMALL};

/// The contestant whose space threads may share.
const SHARED_SPACE: &str = "id-space-ruled";

/// One cell of the distances.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    pub(super) shared: bool,
    pub(super) live: i64,
    pub(super) batch: i64,
    /// What the rule promises at least; `None` where it promises nothing.
    pub(super) least: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) p1: Option<f64>,
    pub(super) median: Option<f64>,
}

impl Looked {
    /// A defect: it states more than was found.
    pub(super) fn is_broken(&self) -> bool {
        matches!((self.least, self.min), (Some(least), Some(min)) if min < least)
    }

    /// The rule, and whether threads may share the space.
    pub(super) fn of(&self, rule: &str) -> String {
        if self.shared {
            format!("{rule}, shared")
        } else {
            rule.to_owned()
        }
    }

    /// How frees and allocations followed each other.
    pub(super) fn called(&self) -> String {
        match self.batch {
            1 => "one by one".to_owned(),
            n => format!("batches of {n}"),
        }
    }
}

/// The cells of a rule by occupancy and size of batch.
pub(super) fn cells(view: &RunView<'_>, rule: &str) -> Vec<Looked> {
    let mut all: Vec<Looked> = view
        .cells(DISTANCE)
        .into_iter()
        .filter(|cell| !cell.twin && cell.params.text("rule").is_ok_and(|own| own == rule))
        .filter_map(|cell| {
            let (live, batch) = (
                cell.params.int("live").ok()?,
                cell.params.int("batch").ok()?,
            );
            let stated = view.middle(DISTANCE, cell, "distance_stated");
            let of = |metric| view.middle(DISTANCE, cell, metric);
            let lowest = view
                .values(DISTANCE, cell, "distance_min")
                .into_iter()
                .map(|(_, value)| value)
                .reduce(f64::min);
            Some(Looked {
                shared: cell.contestant == SHARED_SPACE,
                live,
                batch,
                // What it said itself, where it knows how many CPUs there are.
                least: match stated {
                    Some(stated) => Some(stated).filter(|&stated| stated > 0.0),
                    None => least(rule, SMALL.checked_sub(live)?, batch),
                },
                min: lowest,
                p1: of("distance_p1"),
                median: of("distance_median"),
            })
        })
        .collect();
    all.sort_by_key(|looked| (looked.shared, looked.live, looked.batch));
    all
}

/// Every rule that is looked at, once.
pub(super) fn rules() -> impl Iterator<Item = &'static str> {
    let shared = SHARED_RULES.into_iter();
    RULES
        .into_iter()
        .chain(shared.filter(|rule| !RULES.contains(rule)))
}

/// The promise of a rule while `free` identifiers are free before each batch: the library's documentation, as numbers.
fn least(rule: &str, free: i64, batch: i64) -> Option<f64> {
    match rule {
        FIRST_FREED => Some(free as f64),
        // Of frees and allocations that alternate. The rounding of the sets takes one.
        EPOCHS if batch == 1 => Some((free / 2 - 1).max(0) as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_stated_is_a_defect() {
        let looked = |least, min| Looked {
            shared: true,
            live: 1,
            batch: 1,
            least,
            min,
            p1: None,
            median: None,
        };
        assert!(looked(Some(10.0), Some(9.0)).is_broken());
        assert!(!looked(Some(10.0), Some(10.0)).is_broken());
        assert!(!looked(None, Some(0.0)).is_broken());
        assert_eq!(looked(None, None).of("random"), "random, shared");
    }

    #[test]
    fn promises_follow_what_is_free() {
        assert_eq!(least(FIRST_FREED, 700, 256), Some(700.0));
        assert_eq!(least(EPOCHS, 701, 1), Some(349.0));
        assert_eq!(least(EPOCHS, 701, 256), None);
        assert_eq!(least(EPOCHS, i64::MIN, 1), Some(0.0));
        assert_eq!(least("cyclic", 700, 1), None);
    }
}
