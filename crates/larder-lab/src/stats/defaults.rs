//! The constants of the statistics, each with its reason.

/// Confidence of every interval. The field's custom; 6 samples suffice for it.
pub const LEVEL: f64 = 0.95;

/// `same within`: the share that a quick run may call equal. A quick run stops at a half width of 5 %,
/// so a finer claim would never be reached.
pub const SAME_WITHIN_QUICK: f64 = 0.05;

/// `same within` of a full run: below 2 % layout luck of one build is as large as most effects.
pub const SAME_WITHIN_FULL: f64 = 0.02;

/// A knee is the smallest setting within this share of the best. Under 3 % the difference is not felt,
/// and the memory of a larger setting is always paid.
pub const KNEE_EPS: f64 = 0.03;

/// Rounds at which a running group may be looked at, and only these: every further look is one more
/// chance to stop at a lucky moment. Each is half as large again as the one before.
pub const LOOKS: [u32; 6] = [10, 15, 22, 33, 50, 75];

/// The first look of a quick group: the smallest n at which a 95 % order-statistic interval exists.
pub const QUICK_FIRST_LOOK: u32 = 6;

/// Noise is steady when a look narrowed the interval by less than this share of what more rounds should
/// have given (see [`stopping`](super::stopping)).
pub const STEADY_SHARE: f64 = 0.5;

/// Modified z-score beyond which a sample is reported as an outlier (Iglewicz & Hoaglin 1993).
pub const OUTLIER_Z: f64 = 3.5;

/// Up to this n the signed-rank distribution is exact; above, the normal approximation errs by less
/// than 1e-4 in probability.
pub const EXACT_SIGNED_RANK: usize = 100;

/// Up to this size of either sample the Mann-Whitney distribution is exact.
pub const EXACT_MANN_WHITNEY: usize = 50;

/// Resamples of a bootstrap: the ends of a 95 % interval then rest on 50 resamples each.
pub const RESAMPLES: usize = 2000;

/// How much wider than inside a run the squared scatter is from run to run, before anything is seen: between runs of one
/// and the same program 9.5 % of the cells lay beyond an interval made for 5 %, which is 1.4; doubled spreads are common.
pub const SPREAD: f64 = 2.0;

/// How many contestants [`SPREAD`] counts as beside those that two runs show.
pub const SPREAD_WEIGHT: f64 = 8.0;

/// Degrees of freedom of the test of one run against one: the scatter between runs has far heavier tails than the normal
/// law, and Holm looks far out.
pub const TAIL_DF: f64 = 4.0;

/// How much the middle of the other contestants counts in the scatter of one contestant's runs, in degrees of freedom.
pub const RUNS_WEIGHT: f64 = 4.0;

/// Fewest rounds of a cell that takes part in a comparison of several runs a side, where the run is the unit.
pub const RUNS_ROUNDS: usize = 3;

/// No run knows the logarithm of a ratio better than this, however still its rounds: a tenth of a percent.
pub const LEAST_ERROR: f64 = 1e-3;

/// The share that a run of this depth (`quick` or `full`) may call equal.
#[must_use]
pub fn same_within(depth: &str) -> f64 {
    if depth == "quick" {
        SAME_WITHIN_QUICK
    } else {
        SAME_WITHIN_FULL
    }
}
