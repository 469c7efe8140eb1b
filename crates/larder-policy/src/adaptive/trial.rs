//! Whether the cache gets what the miniature of its expert promised.

use super::knobs::COUNT;

/// Standard deviations of as many differences as there are frames, beyond the miss a frame that a move may cost.
const DEVIATIONS: f64 = 4.0;
/// Accesses, in frames, after which an expert that rules is doubted once less.
const PROOF: i64 = 16;
/// Most doubts.
const MOST: u32 = 3;

/// Watches the expert that rules. A miniature sees a sample of the blocks, and may hold all of a loop that is a little larger than the
/// cache, where LRU has no hit at all. So the cache itself is the witness: if it stays behind the miniature of its own expert and behind
/// that of the expert before by more than a move can cost, it goes back to the one before, and the one that failed must be further ahead to
/// rule again.
#[derive(Debug)]
pub(super) struct Trial {
    frames: i64,
    /// The expert that ruled before; the one that rules, where there is none to go back to.
    before: usize,
    /// Hits of the miniature of the expert that rules less those of the cache, above the least that this was.
    promised: i64,
    /// The same of the expert before.
    missed: i64,
    /// More of both are more than a move can cost.
    most: i64,
    /// Accesses until there is a doubt less.
    left: i64,
    doubts: [u32; COUNT],
}

impl Trial {
    /// For miniatures of this many frames.
    pub(super) fn new(frames: usize) -> Self {
        let frames = frames as i64;
        Self {
            frames,
            before: 0,
            promised: 0,
            missed: 0,
            most: frames + (DEVIATIONS * (frames as f64).sqrt()) as i64,
            left: PROOF * frames,
            doubts: [0; COUNT],
        }
    }

    /// An expert begins to rule after this one.
    pub(super) fn begin(&mut self, before: usize) {
        self.before = before;
        (self.promised, self.missed) = (0, 0);
        self.left = PROOF * self.frames;
    }

    /// An access while this expert rules, by the experts that hit, a bit each, and whether the cache hit. Returns the expert before, if it
    /// is to rule again.
    pub(super) fn observe(&mut self, ruling: usize, hits: u8, own: bool) -> Option<usize> {
        let more = |expert: usize| i64::from(hits >> expert & 1) - i64::from(own);
        self.promised = (self.promised + more(ruling)).max(0);
        self.missed = (self.missed + more(self.before)).max(0);
        self.left -= 1;
        if self.left <= 0 {
            self.left = PROOF * self.frames;
            let doubts = &mut self.doubts[ruling];
            *doubts = doubts.saturating_sub(1);
        }
        if self.promised.min(self.missed) <= self.most || ruling == self.before {
            return None;
        }
        let doubts = &mut self.doubts[ruling];
        *doubts = (*doubts + 1).min(MOST);
        let before = self.before;
        self.begin(before);
        Some(before)
    }

    /// How often an expert failed lately.
    pub(super) fn doubts(&self, expert: usize) -> u32 {
        self.doubts[expert]
    }
}
