//! Which tiers are worth protecting: a controller that compares each tier with tier 0 (`mm/vmscan.c`).

use super::generations::WORKINGSET;

/// Tiers (`MAX_NR_TIERS`).
const TIERS: usize = 4;
/// Fewer refaults than this decide nothing (`MIN_LRU_BATCH`).
const MIN_LRU_BATCH: u64 = 64;
/// Gains of tier 0 and of the tier that is compared with it (`get_tier_idx`).
const GAIN_FIRST: u64 = 2;
const GAIN_OTHER: u64 = 3;

/// `lru_tier_from_refs`: the logarithm of the uses, rounded up; the last for the working set.
pub(super) const fn tier(refs: u8, flags: u8) -> usize {
    if flags & WORKINGSET != 0 {
        return TIERS - 1;
    }
    match refs {
        0 | 1 => 0,
        2 => 1,
        _ => 2,
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Tier {
    avg_refaulted: u64,
    avg_total: u64,
    refaulted: u64,
    evicted: u64,
    protected: u64,
}

impl Tier {
    /// `read_ctrl_pos`.
    const fn position(&self) -> (u64, u64) {
        (
            self.avg_refaulted + self.refaulted,
            self.avg_total + self.protected + self.evicted,
        )
    }
}

/// What became of each tier's pages: since the oldest generation became so, and before, halved each time.
#[derive(Debug, Default)]
pub(super) struct Controller([Tier; TIERS]);

impl Controller {
    pub(super) fn evicted(&mut self, tier: usize) {
        self.0[tier].evicted += 1;
    }

    pub(super) fn protected(&mut self, tier: usize) {
        self.0[tier].protected += 1;
    }

    pub(super) fn refaulted(&mut self, tier: usize) {
        self.0[tier].refaulted += 1;
    }

    /// `reset_ctrl_pos` with carryover, when a generation is done.
    pub(super) fn carry_over(&mut self) {
        for tier in &mut self.0 {
            let (refaulted, total) = tier.position();
            *tier = Tier {
                avg_refaulted: refaulted / 2,
                avg_total: total / 2,
                ..Tier::default()
            };
        }
    }

    /// `get_tier_idx`: the last tier that refaults no more than the first; those above are protected.
    pub(super) fn tier_index(&self) -> usize {
        let (first_refaulted, first_total) = self.0[0].position();
        let fine = |tier: &Tier| {
            // positive_ctrl_err
            let (refaulted, total) = tier.position();
            refaulted < MIN_LRU_BATCH
                || refaulted * (first_total + MIN_LRU_BATCH) * GAIN_FIRST
                    <= (first_refaulted + 1) * total * GAIN_OTHER
        };
        self.0[1..].iter().take_while(|tier| fine(tier)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_the_logarithm_of_the_uses() {
        assert_eq!([0, 1, 2, 3, 4].map(|refs| tier(refs, 0)), [0, 0, 1, 2, 2]);
        assert_eq!(tier(0, WORKINGSET), 3);
    }

    #[test]
    fn a_tier_is_protected_when_it_refaults_more() {
        let mut controller = Controller::default();
        assert_eq!(controller.tier_index(), 3); // nothing is known: nothing is protected
        for _ in 0..1_000 {
            controller.evicted(0);
            controller.evicted(1);
        }
        for _ in 0..100 {
            controller.refaulted(0);
        }
        // (refaulted1 * 1064 * 2 <= 101 * 1000 * 3) holds up to 142
        for _ in 0..142 {
            controller.refaulted(1);
        }
        assert_eq!(controller.tier_index(), 3);
        controller.refaulted(1);
        assert_eq!(controller.tier_index(), 0);
        // Halved: 71 of 500 against 50 of 500: 71 * 564 * 2 <= 51 * 500 * 3 does not hold
        controller.carry_over();
        assert_eq!(controller.tier_index(), 0);
        // Halved again, 35 refaults say nothing
        controller.carry_over();
        assert_eq!(controller.tier_index(), 3);
    }
}
