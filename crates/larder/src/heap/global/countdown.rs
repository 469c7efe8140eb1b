//! The bytes to a thread's next sample, which the [profile](super::profiled) and the [guard pages](super::guarded) share.
//!
//! The samples of each are a Poisson process over the allocated bytes, and so are those of both together: of a sample of both, a
//! draw says whose it is.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::slot::{self, Stage};
use crate::heap::profile::gap::{gap, random};

touched_at_start! {
    /// Mean bytes between samples of the profile, and between guarded blocks; 0 where there are none.
    static PROFILE: AtomicUsize = AtomicUsize::new(0);
    static GUARDS: AtomicUsize = AtomicUsize::new(0);
    /// The number of the next draw. With a profile alone the same order of calls gives the same distances.
    static DRAWN: AtomicU64 = AtomicU64::new(0);
}

/// What a block is a sample for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) profile: bool,
    pub(super) guards: bool,
}

/// Counts from now on, before the first thread has a heap.
pub(super) fn begin(profile: Option<usize>, guards: Option<usize>) {
    let mut first = [0; 8];
    // Each run of a program has other blocks between guard pages. Where the kernel gives nothing random, it has the same.
    if guards.is_some() {
        let _ = crate::os::random::fill(&mut first);
    }
    DRAWN.store(u64::from_ne_bytes(first), Ordering::Relaxed);
    PROFILE.store(profile.unwrap_or(0), Ordering::Relaxed);
    GUARDS.store(guards.unwrap_or(0), Ordering::Relaxed);
}

/// Whether anything is counted.
#[inline]
pub(super) fn is_on() -> bool {
    PROFILE.load(Ordering::Relaxed) | GUARDS.load(Ordering::Relaxed) != 0
}

pub(super) fn draw() -> u64 {
    random(next())
}

fn next() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

/// Counts the bytes of an allocation. What is it a sample for?
pub(super) fn count(size: usize) -> Option<Due> {
    if matches!(slot::stage(), Stage::Making | Stage::Inside) {
        return None;
    }
    let means = (
        PROFILE.load(Ordering::Relaxed),
        GUARDS.load(Ordering::Relaxed),
    );
    sample(means, size)
}

/// The same with the mean bytes between samples of the profile, and between guarded blocks.
fn sample(means: (usize, usize), size: usize) -> Option<Due> {
    let distance = |mean| isize::try_from(gap(next(), mean)).unwrap_or(isize::MAX);
    let both = match means {
        (0, 0) => return None,
        (profile, 0) => profile as f64,
        (0, guards) => guards as f64,
        (profile, guards) => 1.0 / (1.0 / profile as f64 + 1.0 / guards as f64),
    };
    let left = match slot::gap() {
        0 => distance(both),
        left => left,
    };
    let left = left.wrapping_sub_unsigned(size);
    if left > 0 {
        slot::set_gap(left);
        return None;
    }
    slot::set_gap(distance(both));
    // So many bytes of the block lie behind the sample.
    let rest = left.wrapping_neg();
    Some(match means {
        (_, 0) => Due {
            profile: true,
            guards: false,
        },
        (0, _) => Due {
            profile: false,
            guards: true,
        },
        (profile, guards) => {
            let first = draw() % (profile as u64 + guards as u64) < guards as u64;
            let other = if first { guards } else { profile };
            let too = distance(other as f64) <= rest;
            Due {
                profile: first || too,
                guards: !first || too,
            }
        }
    })
}

#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;

    /// Alone and together, each samples a block as often as its own mean says: within five standard errors.
    #[test]
    fn each_has_its_own_rate() {
        const COUNT: usize = 100_000;
        std::thread::spawn(|| {
            for (profile, guards, size) in [
                (1000, 0, 100),
                (0, 300, 100),
                (1000, 300, 100),
                (200, 500, 2000),
            ] {
                slot::set_gap(0);
                let next = |_| sample((profile, guards), size);
                let due: Vec<Due> = (0..COUNT).filter_map(next).collect();
                for (mean, hits) in [
                    (profile, due.iter().filter(|due| due.profile).count()),
                    (guards, due.iter().filter(|due| due.guards).count()),
                ] {
                    let p = if mean == 0 {
                        0.0
                    } else {
                        -(-(size as f64) / mean as f64).exp_m1()
                    };
                    let error = (p * (1.0 - p) / COUNT as f64).sqrt();
                    let hit = hits as f64 / COUNT as f64;
                    assert!(
                        (hit - p).abs() <= 5.0 * error,
                        "{profile} {guards}: {hit} {p}"
                    );
                }
            }
        })
        .join()
        .unwrap();
    }
}
