//! The pages with PG_reclaim set in 6.x. The kernel marks a dirty page that reclaim meets and moves it out of the way
//! (`shrink_folio_list`: "immediately reclaim when written back"); the end of the write brings it to the tail of the inactive
//! list (`folio_rotate_reclaimable`). Here such pages are in a list of their own, the laundry.

use super::super::lists::Lists;
use super::super::{FrameState, Frames};

/// `folio_rotate_reclaimable`: what has been written leaves the laundry and is the next to leave list `to`. A rule hears of no
/// write's end, so it looks at the oldest of these when it evicts.
pub(super) fn rotate_written<const N: usize, F: Frames>(
    lists: &mut Lists<N>,
    laundry: usize,
    to: usize,
    frames: &F,
) {
    for _ in 0..super::SWAP_CLUSTER_MAX {
        match lists.oldest(laundry) {
            Some(page) if frames.state(page) != FrameState::Dirty => {
                let bits = lists.bits(page);
                lists.move_to_oldest(page, to, bits);
            }
            _ => break,
        }
    }
}
