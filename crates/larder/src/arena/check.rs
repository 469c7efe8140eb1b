//! What callers ask for, checked: sizes as multiples of the quantum, and requests that make sense.

use super::core::Want;
use super::error::ArenaError;
use super::request::Request;

/// Checks a request for an arena.
pub(super) fn check(
    request: &Request,
    arena: &'static str,
    quantum: u64,
) -> Result<Want, ArenaError> {
    let size = round_up(arena, request.size, quantum)?;
    if !request.align.is_power_of_two() {
        return Err(ArenaError::Align {
            arena,
            align: request.align,
        });
    }
    let align = request.align.max(quantum);
    if request.phase >= align || !request.phase.is_multiple_of(quantum) {
        return Err(ArenaError::Phase {
            arena,
            phase: request.phase,
            align,
            quantum,
        });
    }
    if let Some(nocross) = request.nocross {
        // Where the segment begins between two multiples that it must not cross, at best.
        let offset = request.phase & nocross.wrapping_sub(1);
        if !nocross.is_power_of_two() || offset.checked_add(size).is_none_or(|end| end > nocross) {
            return Err(ArenaError::Nocross {
                arena,
                nocross,
                size,
                phase: request.phase,
            });
        }
    }
    if request.min > request.max {
        return Err(ArenaError::Bounds {
            arena,
            min: request.min,
            max: request.max,
        });
    }
    Ok(Want {
        size,
        align,
        phase: request.phase,
        nocross: request.nocross.unwrap_or(0),
        min: request.min,
        max: request.max,
        fit: request.fit,
    })
}

/// A size as a multiple of the quantum, which is a power of two.
#[inline]
pub(super) fn round_up(arena: &'static str, size: u64, quantum: u64) -> Result<u64, ArenaError> {
    if size == 0 {
        return Err(ArenaError::Empty { arena });
    }
    match size.checked_add(quantum - 1) {
        Some(sum) => Ok(sum & !(quantum - 1)),
        None => Err(ArenaError::TooLarge {
            arena,
            size,
            quantum,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fit of small numbers is the lowest address that satisfies the words of the documentation.
    #[test]
    fn a_fit_is_the_lowest_address_that_satisfies_all() {
        let mut fits = 0;
        for align in [1, 2, 4, 16] {
            for phase in 0..align {
                for nocross in [0, 4, 8, 32] {
                    for size in 1..=9 {
                        let mut request = Request::new(size).align(align).phase(phase);
                        if nocross != 0 {
                            request = request.nocross(nocross);
                        }
                        let all: Vec<u64> = (0..200)
                            .filter(|a| {
                                a % align == phase
                                    && (nocross == 0 || a / nocross == (a + size - 1) / nocross)
                            })
                            .collect();
                        let Ok(want) = check(&request, "test", 1) else {
                            assert!(all.is_empty(), "{request:?}");
                            continue;
                        };
                        for (start, last) in [(0, 5), (3, 3), (5, 40), (17, 60), (31, 99)] {
                            let expected = all
                                .iter()
                                .copied()
                                .find(|a| *a >= start && a + size - 1 <= last);
                            assert_eq!(
                                want.place(start, last),
                                expected,
                                "{request:?} in {start}..={last}"
                            );
                            fits += usize::from(expected.is_some());
                            let enough = want.enough(1).unwrap();
                            assert!(
                                last - start + 1 < enough || expected.is_some(),
                                "{request:?}"
                            );
                        }
                        let (size, align) = want.span().unwrap();
                        assert!(want.place(align, align + size - 1).is_some(), "{request:?}");
                    }
                }
            }
        }
        assert!(fits > 1000);
    }

    #[test]
    fn the_end_of_all_numbers_is_no_trap() {
        let top = u64::MAX;
        let fit = |request: Request| check(&request, "test", 1).unwrap().place(top - 9, top);
        assert_eq!(fit(Request::new(10)), Some(top - 9));
        assert_eq!(fit(Request::new(11)), None);
        assert_eq!(fit(Request::new(1).align(16)), None);
        assert_eq!(fit(Request::new(1).align(16).phase(15)), Some(top));
        assert_eq!(fit(Request::new(8).nocross(8)), Some(top - 7));
        assert_eq!(fit(Request::new(1).within(top..=top)), Some(top));
        assert_eq!(fit(Request::new(4).align(1 << 63)), None);
        let huge = check(&Request::new(top).align(1 << 63), "test", 1).unwrap();
        assert_eq!(huge.enough(1), None);
        assert_eq!(huge.place(0, top), Some(0));
        assert_eq!(huge.place(1, top), None);
    }
}
