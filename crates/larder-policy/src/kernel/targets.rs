//! How many pages 2.4.7 wants free and inactive (`mm/page_alloc.c`, `mm/swap.c`, `include/linux/swap.h`).

/// Share of a zone that is kept free, before the limits (`zone_balance_ratio`).
const BALANCE_RATIO: usize = 128;
/// Fewest and most pages of it (`zone_balance_min`, `zone_balance_max`).
const BALANCE_MIN: usize = 10;
const BALANCE_MAX: usize = 255;
/// Seconds over which pressure sets the inactive target, as a power of two (`INACTIVE_SHIFT`).
const INACTIVE_SHIFT: u32 = 6;
/// Frees lower the pressure no further than this (`NR_CPUS`; the machine of the measurements had two).
const CPUS: i64 = 2;

/// The targets of one zone and the pressure that moves them. Signed, as in the kernel: a shortage may be below 0.
#[derive(Debug)]
pub(super) struct Targets {
    /// `freepages.high`: three times the zone's mask.
    pub(super) high: i64,
    quarter: i64,
    /// `memory_pressure`: allocations and reclaims, less frees, decaying by 1/64 a second.
    pressure: i64,
}

impl Targets {
    pub(super) fn new(frames: usize) -> Self {
        let mut targets = Self {
            high: 0,
            quarter: 0,
            pressure: 0,
        };
        targets.resize(frames);
        targets
    }

    /// `free_area_init_core`: pages_min, low and high are 1, 2 and 3 times the mask.
    pub(super) fn resize(&mut self, frames: usize) {
        let mask = (frames / BALANCE_RATIO).clamp(BALANCE_MIN, BALANCE_MAX);
        self.high = 3 * mask as i64;
        self.quarter = (frames / 4) as i64;
    }

    /// `__alloc_pages` and `reclaim_page` each add one.
    pub(super) fn press(&mut self) {
        self.pressure += 1;
    }

    /// `__free_pages_ok` takes one off.
    pub(super) fn relieve(&mut self) {
        if self.pressure > CPUS {
            self.pressure -= 1;
        }
    }

    /// `recalculate_vm_stats`, once a second.
    pub(super) fn decay(&mut self) {
        self.pressure -= self.pressure >> INACTIVE_SHIFT;
    }

    /// `inactive_target`: what a second takes, at most a quarter of memory.
    pub(super) fn inactive(&self) -> i64 {
        (self.pressure >> INACTIVE_SHIFT).min(self.quarter)
    }

    /// `free_shortage` of one zone; below or at 0 there is none. (The second half of the function, for single zones, cannot
    /// find a shortage where there is only one.)
    pub(super) fn free_shortage(&self, free: usize, clean: usize) -> i64 {
        self.high + self.inactive() / 3 - (free + clean) as i64
    }

    /// `inactive_shortage`.
    pub(super) fn inactive_shortage(&self, free: usize, clean: usize, dirty: usize) -> i64 {
        self.high + self.inactive() - (free + clean + dirty) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_of_128_megabytes_keeps_765_pages() {
        assert_eq!(Targets::new(32768).high, 765);
        assert_eq!(Targets::new(6400).high, 150);
        assert_eq!(Targets::new(1).high, 30);
    }

    #[test]
    fn the_inactive_target_is_what_a_second_takes() {
        let mut targets = Targets::new(40_000);
        for _ in 0..1_000 {
            (0..300).for_each(|_| targets.press());
            targets.decay();
        }
        assert_eq!(targets.inactive(), (63 * 300) >> 6); // 300 less what the last decay took
        (0..1_000_000).for_each(|_| targets.press());
        assert_eq!(targets.inactive(), 10_000);
        assert_eq!(targets.free_shortage(5, 10), 765 + 3_333 - 15);
        assert_eq!(targets.inactive_shortage(5, 10, 20), 765 + 10_000 - 35);
    }

    #[test]
    fn frees_do_not_make_the_pressure_negative() {
        let mut targets = Targets::new(100);
        (0..5).for_each(|_| targets.press());
        (0..9).for_each(|_| targets.relieve());
        assert_eq!(targets.pressure, CPUS);
    }
}
