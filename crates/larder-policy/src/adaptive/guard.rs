//! A bound of what can be lost against LRU.

/// What the cache may lose before it becomes LRU: one in so many of the frames, in misses.
const LOSS: i64 = 2;
/// Accesses, in frames, for which it stays LRU the first time.
const HOLD: u64 = 2;

/// Compares the hits of the cache itself with those of LRU in miniature, on the same accesses.
///
/// When the cache has lost half a miss a frame against its best moment, LRU rules for a while, which doubles each time, and halves when
/// the cache has won as much as such a fall can cost. A cache under LRU loses at most a miss for each block that it lacks at the
/// beginning, and then nothing, so a fall costs at most 1.5 misses a frame, and in a run of u accesses a frame there are at most
/// log2(u) more falls than paid for. Against LRU a run loses at most 2 + 1.5 log2(u) misses a frame, and less of each access the longer
/// it is.
///
/// The miniature of LRU may hit where LRU in the cache does not, if it sees a sample. Then LRU is [let go](Self::let_go), and doubted.
#[derive(Debug)]
pub(super) struct Guard {
    frames: i64,
    /// Hits of the cache less those of LRU, since it fell or was paid for last.
    ahead: i64,
    /// By how much it was further ahead before.
    behind: i64,
    /// Accesses until another rule than LRU may follow, and for how many that is said next time.
    held: u64,
    hold: u64,
    falls: u64,
}

impl Guard {
    /// For miniatures of this many frames.
    pub(super) fn new(frames: usize) -> Self {
        Self {
            frames: frames as i64,
            ahead: 0,
            behind: 0,
            held: 0,
            hold: HOLD * frames as u64,
            falls: 0,
        }
    }

    /// An access. True if LRU is to rule from now on. It may have lost four times as much for each of these doubts.
    pub(super) fn observe(&mut self, lru: bool, own: Option<bool>, doubts: u32) -> bool {
        if self.held > 0 {
            self.held -= 1;
            return false;
        }
        let won = own.map_or(0, |own| i64::from(own) - i64::from(lru));
        self.ahead += won;
        self.behind = (self.behind - won).max(0);
        let loss = (self.frames / LOSS + 1) << (2 * doubts);
        if self.ahead >= loss + self.frames {
            self.ahead = 0;
            self.hold = (self.hold / 2).max(HOLD * self.frames as u64);
        }
        if self.behind < loss {
            return false;
        }
        (self.ahead, self.behind) = (0, 0);
        self.held = self.hold;
        self.hold = self.hold.saturating_mul(2);
        self.falls += 1;
        true
    }

    /// LRU need not rule any more: it does not keep what its miniature promises.
    pub(super) fn let_go(&mut self) {
        (self.ahead, self.behind, self.held) = (0, 0, 0);
        self.hold = (self.hold / 2).max(HOLD * self.frames as u64);
    }

    /// Must LRU rule?
    pub(super) fn holds(&self) -> bool {
        self.held > 0
    }

    pub(super) fn falls(&self) -> u64 {
        self.falls
    }
}
