//! "Secondly the second thread always seemed to provide the slowest operation, without exception. I can't explain this."
//!
//! Three suspects: a line that two CPUs write, a lock that is handed over, the number of CPUs itself. On one CPU no line
//! moves and hardly a lock is found taken; with the slab's pieces on lines of their own only what the arrays share is left;
//! and a lock that is waited for shows in the times that a thread goes to sleep.

use crate::measure::RunView;
use crate::stats::Estimate;

use super::plan::SECOND;
use super::rows::{RATE, second, second_over_one};

/// A second thread that takes this much longer than one alone costs something.
const DEAR: f64 = 1.2;
/// Sleeps per million cycles from which a lock is to blame.
const MANY_SLEEPS: f64 = 20.0;

/// What is known of a variant with two threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Facts {
    /// Elapsed time of two threads over one, on two CPUs, memory as he had it. 1 is what two CPUs can do.
    pub(super) as_his: Option<Estimate>,
    /// The same with the slab's pieces on lines of their own.
    pub(super) apart: Option<Estimate>,
    /// The same on one CPU, where 2 is fair.
    pub(super) one_cpu: Option<Estimate>,
    /// Sleeps per million cycles of two threads on two CPUs.
    pub(super) sleeps: Option<f64>,
    /// Times that they lost their CPU, in a million cycles.
    pub(super) preemptions: Option<f64>,
}

/// Why the second thread costs what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It costs nothing.
    Nothing,
    /// Pieces of the slab share a line.
    Slab,
    /// The arrays themselves share a line.
    Arrays,
    /// A lock is waited for.
    Lock,
    /// It costs something, and the memory that would tell why was not measured.
    Untested,
    /// None of these, or too little is known.
    Unknown,
}

impl Cause {
    /// Every cause, the known ones first.
    pub(super) const ALL: [Self; 6] = [
        Self::Slab,
        Self::Arrays,
        Self::Lock,
        Self::Nothing,
        Self::Untested,
        Self::Unknown,
    ];

    /// In words that stand before a colon and names.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Nothing => "The second thread costs nothing",
            Self::Slab => "False sharing between the slab's pieces",
            Self::Arrays => "False sharing in the arrays of the threads",
            Self::Lock => "Waiting for the lock",
            Self::Untested => "Slow, the cause not tested here",
            Self::Unknown => "Not decided",
        }
    }
}

impl Facts {
    /// What the run says about a variant.
    pub(super) fn of(view: &RunView<'_>, contestant: &str) -> Self {
        let his = ("two", "his");
        let count = |metric| {
            second(view, contestant, 2, his).and_then(|cell| view.middle(SECOND, cell, metric))
        };
        Self {
            as_his: second_over_one(view, contestant, his),
            apart: second_over_one(view, contestant, ("two", "apart")),
            one_cpu: second_over_one(view, contestant, ("one", "his")),
            sleeps: count("sleeps_per_million"),
            preemptions: count("preemptions_per_million"),
        }
    }

    /// The cause, by elimination.
    pub(super) fn cause(&self) -> Cause {
        let Some(as_his) = self.as_his else {
            return Cause::Unknown;
        };
        if as_his.lo <= DEAR {
            // Only an interval that lies wholly below says that nothing is lost.
            return if as_his.hi <= DEAR {
                Cause::Nothing
            } else {
                Cause::Unknown
            };
        }
        // Three quarters of what the second thread costs is gone.
        let gone = 1.0 + 0.25 * (as_his.value - 1.0);
        let slab = |apart: Estimate| apart.value <= gone.max(DEAR) && apart.hi < as_his.lo;
        if self.apart.is_some_and(slab) {
            return Cause::Slab;
        }
        if self.sleeps.is_some_and(|sleeps| sleeps >= MANY_SLEEPS) {
            return Cause::Lock;
        }
        if self.apart.is_none() {
            return Cause::Untested;
        }
        // On one CPU two threads need twice the time of one, and a shared line costs nothing.
        match (self.one_cpu, self.apart) {
            (Some(one), Some(apart)) if one.value < 2.0 * DEAR && apart.lo > gone => Cause::Arrays,
            _ => Cause::Unknown,
        }
    }
}

/// What the mail saw: two threads together slower than one and than three.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Slowest {
    /// Surely slower than both.
    Yes,
    /// Surely faster than one of them.
    No,
    /// Neither; the rate of two over that of one and that of three.
    Undecided(Estimate, Estimate),
}

/// By the intervals of a variant's rates.
pub(super) fn second_is_slowest(view: &RunView<'_>, contestant: &str) -> Option<Slowest> {
    let cell = |threads| second(view, contestant, threads, ("two", "his"));
    let (one, two, three) = (cell(1)?, cell(2)?, cell(3)?);
    let to_one = view.ratio(SECOND, two, one, RATE)?;
    let to_three = view.ratio(SECOND, two, three, RATE)?;
    Some(if to_one.hi < 1.0 && to_three.hi < 1.0 {
        Slowest::Yes
    } else if to_one.lo > 1.0 || to_three.lo > 1.0 {
        Slowest::No
    } else {
        Slowest::Undecided(to_one, to_three)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(value: f64) -> Option<Estimate> {
        Some(Estimate {
            value,
            lo: 0.98 * value,
            hi: 1.02 * value,
            n: 6,
            level: 0.95,
        })
    }

    fn facts(as_his: f64, apart: f64, one_cpu: f64, sleeps: f64) -> Facts {
        Facts {
            as_his: about(as_his),
            apart: about(apart),
            one_cpu: about(one_cpu),
            sleeps: Some(sleeps),
            preemptions: Some(0.0),
        }
    }

    #[test]
    fn each_cause_is_told_from_the_others() {
        assert_eq!(facts(1.0, 1.0, 2.0, 0.0).cause(), Cause::Nothing);
        assert_eq!(facts(8.0, 1.1, 2.0, 0.0).cause(), Cause::Slab);
        assert_eq!(facts(8.0, 7.0, 2.0, 0.0).cause(), Cause::Arrays);
        assert_eq!(facts(8.0, 7.0, 2.1, 900.0).cause(), Cause::Lock);
        assert_eq!(facts(8.0, 7.0, 9.0, 0.0).cause(), Cause::Unknown);
        assert_eq!(facts(1.2, 1.0, 2.0, 0.0).cause(), Cause::Unknown);
        // A busy machine: apart may be anything.
        let mut wide = facts(8.0, 1.1, 2.0, 0.0);
        wide.apart = wide.apart.map(|e| Estimate { hi: 50.0, ..e });
        assert_eq!(wide.cause(), Cause::Unknown);
        assert_eq!(Facts::default().cause(), Cause::Unknown);
        // Without the contestant that tests it there is no cause.
        let bare = Facts {
            apart: None,
            ..facts(8.0, 1.0, 9.0, 0.0)
        };
        assert_eq!(bare.cause(), Cause::Untested);
    }
}
