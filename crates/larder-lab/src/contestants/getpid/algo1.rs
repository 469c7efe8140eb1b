//! algo-1: mark and sweep, anew with every search.

use super::bits::Bits;
use super::sweep::{Bound, Mask, Start, Sweep};

/// algo-1 as the post describes it (Franke 2002): clear the map, mark all ids in one walk, find the next free interval
/// "starting from last_pid".
#[must_use]
pub fn algo_1<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Last, false, Mask::Meant, Bound::None)
}

/// algo-1 as it was measured. In the harness of March 2002 the lines of algo-1, switched off but still there, begin
/// every search at the first id of the space; the post of August says so in passing ("rather than always start from
/// the beginning again"). Short intervals then come first, and that is why its S is fifty times that of algo-0 at
/// 2000 tasks. Its 256-id bound was on too, which shows in one row of the table.
#[must_use]
pub fn algo_1_post<B: Bits>() -> Sweep<B> {
    Sweep::new(Start::Beginning, false, Mask::Posted, Bound::Posted)
}
