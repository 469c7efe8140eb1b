//! Where 6.x keeps dirty pages that reclaim has met, until they are written.

use super::super::{Frame, FrameState, Frames};
use larder_base::list::{Links, List, NONE};

/// Pages that one look takes back at most.
const BATCH: usize = super::SWAP_CLUSTER_MAX;

/// Pages with PG_reclaim set. The kernel marks a dirty page that reclaim meets and moves it out of the way
/// (`shrink_folio_list`: "immediately reclaim when written back"); the end of the write brings it to the tail of the inactive
/// list (`folio_rotate_reclaimable`). A rule hears of no write's end, so it looks at the oldest of these when it evicts.
#[derive(Debug)]
pub(super) struct Laundry {
    pub(super) list: List,
}

impl Laundry {
    pub(super) const fn new() -> Self {
        Self { list: List::new() }
    }

    /// Asks for a page to be written, and keeps it. It is on no list now.
    pub(super) fn take<F: Frames>(&mut self, links: &mut Links, frames: &mut F, page: Frame) {
        self.list.push_newest(links, page);
        frames.write_back(page);
    }

    /// The oldest page, taken out, if it has been written.
    pub(super) fn written<F: Frames>(&mut self, links: &mut Links, frames: &F) -> Option<Frame> {
        let page = self.list.oldest();
        if page == NONE || frames.state(page) == FrameState::Dirty {
            return None;
        }
        self.list.unlink(links, page);
        Some(page)
    }

    /// How many [`written`](Self::written) may be asked for in one look.
    pub(super) const fn batch() -> usize {
        BATCH
    }
}
