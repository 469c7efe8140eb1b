//! algo-2: mark and sweep over a map that is kept.

use super::bits::Bits;
use super::sweep::{Bound, Mask, Start, Sweep};

/// algo-2 as the post describes it (Franke 2002): the map is kept and marked on top of; only when no free interval is
/// found is it cleared and marked once more.
#[must_use]
pub fn algo_2<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, true, Mask::Meant, Bound::None)
}

/// algo-2 as it was measured: with the mask of the posted code, which leaves out the wrong ids of the first word. It
/// costs or saves about one search in a hundred.
#[must_use]
pub fn algo_2_post<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, true, Mask::Posted, Bound::None)
}
