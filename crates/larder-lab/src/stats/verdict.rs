//! The verdict on a ratio; [`Verdict::Noisy`] is decided by the samples behind it.

use super::{Estimate, Verdict};
use crate::model::Better;

/// What a ratio a / b says about a, given the floor of the session.
///
/// `floor` is the A/A floor as a distance `|ln ratio|`: how far two runs of one and the same contestant lay
/// apart. `same_within` is the share that counts as equal (0.02 is two percent), as a factor on both sides:
/// from `1 / 1.02` to `1.02`, so that swapping a and b swaps the words and nothing else.
///
/// In this order:
/// 1. [`Verdict::Refused`]: an end of the interval or the floor is not a number, or the interval is not of
///    a ratio; or a metric without a good direction differs.
/// 2. [`Verdict::Same`]: the whole interval is within `same_within`, and so is the floor. A machine that
///    shows 10 % between twins cannot vouch for 2 %. This comes before faster and slower: a difference
///    that is sure and too small to matter is no difference.
/// 3. [`Verdict::Faster`], [`Verdict::Slower`]: the whole interval lies beyond the floor on one side.
/// 4. [`Verdict::Inconclusive`]: anything else.
#[must_use]
pub fn verdict(ratio: &Estimate, floor: f64, better: Better, same_within: f64) -> Verdict {
    let usable = ratio.lo > 0.0
        && ratio.lo <= ratio.hi
        && ratio.hi.is_finite()
        && floor >= 0.0
        && same_within >= 0.0;
    if !usable {
        return Verdict::Refused;
    }
    let (lo, hi) = (ratio.lo.ln(), ratio.hi.ln());
    let same = same_within.ln_1p();
    if lo >= -same && hi <= same && floor <= same {
        return Verdict::Same {
            within: same_within,
        };
    }
    let (below, above) = (hi < -floor && hi < 0.0, lo > floor && lo > 0.0);
    match better {
        Better::Neither => Verdict::Refused,
        Better::Lower if below => Verdict::Faster,
        Better::Lower if above => Verdict::Slower,
        Better::Higher if above => Verdict::Faster,
        Better::Higher if below => Verdict::Slower,
        Better::Lower | Better::Higher => Verdict::Inconclusive,
    }
}
