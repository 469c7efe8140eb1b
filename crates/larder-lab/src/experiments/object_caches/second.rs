//! "Secondly the second thread always seemed to provide the slowest operation, without exception. I can't explain this."
//!
//! Three possible causes: a cache line that two CPUs write, a lock that is handed over, the number of CPUs itself. On one CPU no line
//! moves and a lock is hardly ever found taken. With the slab's pieces on separate lines, only the arrays share lines. And waiting for
//! a lock shows in the number of sleeps.

use super::plan::{APART, AS_MAIL, ONE_CPU, RATE, SECOND, SECONDS, SLEEPS};
use crate::frame::{At, Results};
use crate::stats::Estimate;

/// A second thread that takes this much longer than one alone costs something.
const DEAR: f64 = 1.2;
/// Sleeps per million cycles from which a lock is to blame.
const MANY_SLEEPS: f64 = 20.0;

/// A cell of the group.
pub(super) fn second<'r, 'a>(
    results: &'r Results<'a>,
    contestant: &str,
    threads: i64,
    (cpus, slab): (&str, &str),
) -> Option<At<'r, 'a>> {
    results.all(SECOND).find(|at| {
        let place = at.name() == contestant
            && at.text("cpus") == Some(cpus)
            && at.text("slab") == Some(slab);
        place && at.int("threads") == Some(threads)
    })
}

/// Time of two threads over that of one, each with as many cycles.
pub(super) fn over_one_thread(
    results: &Results<'_>,
    contestant: &str,
    layout: (&str, &str),
) -> Option<Estimate> {
    let two = second(results, contestant, 2, layout)?;
    two.ratio(&second(results, contestant, 1, layout)?, SECONDS)
}

/// What is known of a variant with two threads.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Facts {
    /// Elapsed time of two threads over one, on two CPUs, memory as in the mail. 1 is what two CPUs can do.
    pub(super) as_mail: Option<Estimate>,
    /// The same with the slab's pieces on lines of their own.
    pub(super) apart: Option<Estimate>,
    /// The same on one CPU, where 2 is fair.
    pub(super) one_cpu: Option<Estimate>,
    /// Sleeps per million cycles of two threads on two CPUs.
    pub(super) sleeps: Option<f64>,
    /// Cycles per second of two threads over those of one, and of three.
    pub(super) rate_over_one: Option<Estimate>,
    pub(super) rate_over_three: Option<Estimate>,
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
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Nothing => "no cost",
            Self::Slab => "false sharing between the slab's pieces",
            Self::Arrays => "false sharing in the arrays of the threads",
            Self::Lock => "waiting for the lock",
            Self::Untested => "not tested in this run",
            Self::Unknown => "not decided by this run",
        }
    }
}

impl Facts {
    /// What the run says about a variant; `None` where two threads or one did not run.
    pub(super) fn of(results: &Results<'_>, contestant: &str) -> Option<Self> {
        let two = second(results, contestant, 2, AS_MAIL)?;
        let rate_over = |threads| two.ratio(&second(results, contestant, threads, AS_MAIL)?, RATE);
        Some(Self {
            as_mail: Some(over_one_thread(results, contestant, AS_MAIL)?),
            apart: over_one_thread(results, contestant, APART),
            one_cpu: over_one_thread(results, contestant, ONE_CPU),
            sleeps: two.middle(SLEEPS),
            rate_over_one: rate_over(1),
            rate_over_three: rate_over(3),
        })
    }

    /// Whether two threads are slower than one and than three, by the intervals of the rates.
    pub(super) fn slowest(&self) -> Option<Slowest> {
        let both = [self.rate_over_one?, self.rate_over_three?];
        Some(match both {
            _ if both.iter().all(|r| r.hi < 1.0) => Slowest::Yes,
            _ if both.iter().any(|r| r.lo > 1.0) => Slowest::No,
            _ => Slowest::Undecided,
        })
    }

    /// The cause, by elimination.
    pub(super) fn cause(&self) -> Cause {
        let Some(as_mail) = self.as_mail else {
            return Cause::Unknown;
        };
        if as_mail.lo <= DEAR {
            // Only an interval that lies wholly below says that nothing is lost.
            return if as_mail.hi <= DEAR {
                Cause::Nothing
            } else {
                Cause::Unknown
            };
        }
        // Three quarters of what the second thread costs is gone.
        let gone = 1.0 + 0.25 * (as_mail.value - 1.0);
        let slab = |apart: Estimate| apart.value <= gone.max(DEAR) && apart.hi < as_mail.lo;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slowest {
    /// Surely slower than both.
    Yes,
    /// Surely faster than one of them.
    No,
    /// Neither.
    Undecided,
}

impl Slowest {
    /// In a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Undecided => "not decided",
        }
    }
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

    fn facts(as_mail: f64, apart: f64, one_cpu: f64, sleeps: f64) -> Facts {
        Facts {
            as_mail: about(as_mail),
            apart: about(apart),
            one_cpu: about(one_cpu),
            sleeps: Some(sleeps),
            ..Facts::default()
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
