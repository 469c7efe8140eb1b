//! The timed loops, one copy per source: no virtual call and no closure stands between the loop and the source.
//!
//! Each is its own function (`inline(never)`), so that its machine code can be read under its name. After every step
//! the source's state is forced into memory ([`keep`]): in a program other code runs between two calls.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::contestants::ids::IdSource;
use crate::contestants::ids::shared::LocalIds;
use crate::contestants::timing::keep;

/// Frees all of these; false when the source refuses one.
#[inline(never)]
pub(super) fn free_all<S: IdSource>(source: &mut S, ids: &[u64]) -> bool {
    let mut ok = true;
    for &id in ids {
        ok &= source.free(id);
        keep(source);
    }
    ok
}

/// Fills `out` with identifiers; false when there are not so many.
#[inline(never)]
pub(super) fn alloc_all<S: IdSource>(source: &mut S, out: &mut [u64]) -> bool {
    for slot in out {
        let Some(id) = source.alloc() else {
            return false;
        };
        *slot = id;
        keep(source);
    }
    true
}

/// Pairs between two looks at the flag that ends them.
pub(super) const STRETCH: usize = 256;

/// Frees one of `own` and takes another for it, until `stop`. Which one is read from `picks`, a power of two of places
/// in `own`. Returns how many pairs were made and how often the source was wrongly full; gives up when it stays so.
#[inline(never)]
pub(super) fn churn<L: LocalIds>(
    local: &mut L,
    own: &mut [u64],
    picks: &[u32],
    stop: &AtomicBool,
) -> Option<(u64, u64)> {
    let mask = picks.len().checked_sub(1)?;
    let mut pairs = 0;
    let mut full = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..STRETCH {
            let slot = own.get_mut(*picks.get(pairs & mask)? as usize)?;
            if !local.free(*slot) {
                return None;
            }
            keep(local);
            *slot = loop {
                if let Some(id) = local.alloc() {
                    break id;
                }
                full += 1;
                if full > 1_000_000 {
                    return None;
                }
            };
            keep(local);
            pairs += 1;
        }
    }
    Some((pairs as u64, full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::ids::shared::{Locked, SharedIds};
    use crate::contestants::ids::{Pidmap, Rng, Start};

    #[test]
    fn each_loop_does_what_it_says() {
        let start = Start::random(1000, 500, &mut Rng::new(1)).expect("sensible");
        let mut map = Pidmap::start(&start).expect("starts");
        let mut out = vec![0; 500];
        assert!(alloc_all(&mut map, &mut out));
        assert!(!alloc_all(&mut map, &mut [0]), "full");
        assert!(free_all(&mut map, &out));
        assert!(!free_all(&mut map, &out[..1]), "freed twice");
    }

    #[test]
    fn churn_ends_when_told_and_keeps_what_it_owns() {
        let source = Locked::<Pidmap>::new(64).expect("made");
        let mut local = source.local(0, 1);
        let mut own: Vec<u64> = (0..8).filter_map(|_| local.alloc()).collect();
        let stop = AtomicBool::new(true);
        assert_eq!(churn(&mut local, &mut own, &[0, 1], &stop), Some((0, 0)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(2));
                stop.store(true, Ordering::Relaxed);
            });
            stop.store(false, Ordering::Relaxed);
            let (pairs, full) = churn(&mut local, &mut own, &[3, 5], &stop).expect("works");
            assert!((pairs as usize).is_multiple_of(STRETCH) && full == 0);
        });
        own.sort_unstable();
        own.dedup();
        assert_eq!(own.len(), 8);
        assert_eq!(
            churn(&mut local, &mut own, &[], &AtomicBool::new(false)),
            None
        );
    }
}
