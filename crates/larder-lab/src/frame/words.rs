//! How estimates read in a sentence, and when a goal is met.

use crate::measure::RunView;
use crate::model::{Goal, GoalState};
use crate::stats::{Estimate, Verdict};

/// `1.23 [1.20, 1.26]`.
pub fn ratio(estimate: &Estimate) -> String {
    format!(
        "{} [{}, {}]",
        short(estimate.value),
        short(estimate.lo),
        short(estimate.hi)
    )
}

/// A number with three significant digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 {
        format!("{value:.2}")
    } else if size >= 0.001 {
        format!("{value:.4}")
    } else {
        format!("{value:.2e}")
    }
}

/// Why a goal or an answer that rests on disturbed samples is left open.
pub const TOO_NOISY: &str = "too noisy: other programs disturbed more than a quarter of its rounds";

/// The verdict's word.
pub fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Faster => "faster".to_owned(),
        Verdict::Slower => "slower".to_owned(),
        Verdict::Same { within } => format!("the same within {:.0} %", 100.0 * within),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::Refused => "not comparable".to_owned(),
        Verdict::Noisy => "refused: noisy".to_owned(),
    }
}

/// The verdict with its subject: `larder's pool is faster than mimalloc`.
pub fn reading(ours: &str, verdict: Verdict, theirs: &str) -> String {
    match verdict {
        Verdict::Faster => format!("{ours} is faster than {theirs}"),
        Verdict::Slower => format!("{ours} is slower than {theirs}"),
        Verdict::Same { within } => {
            let within = 100.0 * within;
            format!("{ours} and {theirs} are the same within {within:.0} %")
        }
        Verdict::Inconclusive => format!("this run does not decide between {ours} and {theirs}"),
        Verdict::Refused => format!("{ours} and {theirs} cannot be compared in this run"),
        Verdict::Noisy => format!("{ours} and {theirs} were measured under too much noise"),
    }
}

/// Members of a sweep for a sentence, neighbours as a range: `2, 14 to 18 and 64`.
pub fn spans(settings: &[f64], members: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &index in members {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let name = |index: usize| {
        settings
            .get(index)
            .map_or_else(String::new, |x| format!("{x:.0}"))
    };
    let texts: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => name(first),
            1 => format!("{}, {}", name(first), name(last)),
            _ => format!("{} to {}", name(first), name(last)),
        })
        .collect();
    match texts.as_slice() {
        [] => "no".to_owned(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// A bound on a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// The ratio should be this or less.
    AtMost(f64),
    /// The ratio should be this or more.
    AtLeast(f64),
    /// The ratio should be less than this.
    Below(f64),
}

impl Bound {
    /// The bound in words.
    pub fn text(self) -> String {
        match self {
            Self::AtMost(x) => format!("at most {x}"),
            Self::AtLeast(x) => format!("at least {x}"),
            Self::Below(x) => format!("below {x}"),
        }
    }

    /// Met when the whole interval is on the good side, missed when it is on the bad side.
    pub fn state(self, measured: Option<&Estimate>) -> GoalState {
        let Some(Estimate { lo, hi, .. }) = measured else {
            return GoalState::Skipped;
        };
        let (good, bad) = match self {
            Self::AtMost(x) => (*hi <= x, *lo > x),
            Self::AtLeast(x) => (*lo >= x, *hi < x),
            Self::Below(x) => (*hi < x, *lo >= x),
        };
        match (good, bad) {
            (true, _) => GoalState::Met,
            (_, true) => GoalState::Missed,
            _ => GoalState::Open,
        }
    }

    /// A goal with this bound. A goal without a measurement says in `note` why.
    pub fn goal(
        self,
        what: impl Into<String>,
        against: impl Into<String>,
        measured: Option<Estimate>,
        held_bytes: Option<(f64, f64)>,
        note: impl Into<String>,
    ) -> Goal {
        let note = note.into();
        let state = self.state(measured.as_ref());
        Goal {
            what: what.into(),
            against: against.into(),
            bound: self.text(),
            measured,
            unit: "x".to_owned(),
            held_bytes,
            note: match (&state, note.is_empty()) {
                (GoalState::Skipped, true) => {
                    "fewer than 6 common rounds: no interval can be had; give it more time"
                        .to_owned()
                }
                _ => note,
            },
            state,
        }
    }
}

impl Bound {
    /// A goal whose size this run does not have: not measured, with the command that measures it.
    pub fn needs(
        self,
        what: impl Into<String>,
        against: impl Into<String>,
        needed: &str,
        command: &str,
    ) -> Goal {
        let note = format!("needs {needed}: run `larder measure {command}`");
        self.goal(what, against, None, None, note)
    }

    /// A goal on a count of instructions: exact, and of a release build only.
    pub fn counted(
        self,
        view: &RunView<'_>,
        what: impl Into<String>,
        against: impl Into<String>,
        value: f64,
    ) -> Goal {
        match view.run().machine.text("build.opt_level") {
            "3" | "unknown" => self.goal(
                what,
                against,
                Some(exact(value)),
                None,
                "counted by callgrind",
            ),
            level => {
                let needed = format!("a release build (this one has opt-level {level})");
                let experiment = format!(
                    "{}`, built with `cargo build --release",
                    view.run().experiment
                );
                self.needs(what, against, &needed, &experiment)
            }
        }
    }
}

/// A count has no interval: it is the same every time.
pub fn exact(value: f64) -> Estimate {
    Estimate {
        value,
        lo: value,
        hi: value,
        n: 1,
        level: 1.0,
    }
}

/// The goal, whose note also says this, unless it is empty.
pub fn noted(mut goal: Goal, more: &str) -> Goal {
    if !more.is_empty() {
        let comma = if goal.note.is_empty() { "" } else { "; " };
        goal.note = format!("{}{comma}{more}", goal.note);
    }
    goal
}

/// The goal, whose note also names the peers that did not run: "best" is the best of those that did.
pub fn with_absent(goal: Goal, peers: &[&str], ran: impl Fn(&str) -> bool) -> Goal {
    let gone: Vec<&str> = peers.iter().copied().filter(|peer| !ran(peer)).collect();
    if gone.is_empty() {
        return goal;
    }
    noted(goal, &format!("absent: {}", gone.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(lo: f64, hi: f64) -> Estimate {
        Estimate {
            value: f64::midpoint(lo, hi),
            lo,
            hi,
            n: 10,
            level: 0.95,
        }
    }

    #[test]
    fn a_goal_is_met_by_its_whole_interval_only() {
        let bound = Bound::AtMost(0.7);
        assert_eq!(bound.state(Some(&estimate(0.5, 0.7))), GoalState::Met);
        assert_eq!(bound.state(Some(&estimate(0.6, 0.8))), GoalState::Open);
        assert_eq!(bound.state(Some(&estimate(0.71, 0.8))), GoalState::Missed);
        assert_eq!(bound.state(None), GoalState::Skipped);
        let bound = Bound::AtLeast(20.0);
        assert_eq!(bound.state(Some(&estimate(20.0, 30.0))), GoalState::Met);
        assert_eq!(bound.state(Some(&estimate(10.0, 19.9))), GoalState::Missed);
        let bound = Bound::Below(1.0);
        assert_eq!(bound.state(Some(&estimate(0.9, 1.0))), GoalState::Open);
        assert_eq!(bound.state(Some(&estimate(1.0, 1.1))), GoalState::Missed);
    }

    #[test]
    fn numbers_read_well() {
        let settings = [2.0, 14.0, 15.0, 16.0, 64.0, 128.0];
        assert_eq!(spans(&settings, &[0, 1, 2, 3]), "2 to 16");
        assert_eq!(spans(&settings, &[0, 2, 3, 5]), "2, 15, 16 and 128");
        assert_eq!(spans(&settings, &[4]), "64");
        assert_eq!(spans(&settings, &[]), "no");
        assert_eq!(short(1234.6), "1235");
        assert_eq!(short(12.34), "12.3");
        assert_eq!(short(0.567), "0.57");
        assert_eq!(ratio(&estimate(1.0, 2.0)), "1.50 [1.00, 2.00]");
    }
}
