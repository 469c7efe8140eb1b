//! Arenas over the C interface: what they do, and what bad input gets.

use core::ffi::c_void;
use core::ptr::null_mut;

use crate::c::{json, made, no_error, refused, text};
use larder_c::larder_status::*;
use larder_c::*;

fn arena(options: &larder_arena_options) -> *mut larder_arena {
    // SAFETY: live options.
    made(|out, error| unsafe { larder_arena_new(options, out, error) })
}

fn ids(units: u64) -> larder_arena_options {
    larder_arena_options {
        name: c"ids".as_ptr(),
        span_units: units,
        ..larder_arena_options::default()
    }
}

/// # Safety
/// A live arena.
unsafe fn alloc(arena: *const larder_arena, units: u64) -> u64 {
    let (mut addr, mut error) = (0, no_error());
    // SAFETY: the caller's promise.
    let status = unsafe { larder_arena_alloc(arena, units, &raw mut addr, &raw mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    addr
}

#[test]
fn ranges_are_taken_and_given_back_by_address_and_size() {
    let a = arena(&larder_arena_options {
        quantum: 4,
        quantum_max: 8,
        span_addr: 100,
        ..ids(400)
    });
    // SAFETY: live pointers.
    unsafe {
        assert_eq!(larder_arena_quantum(a), 4);
        let first = alloc(a, 3);
        let second = alloc(a, 30);
        assert!(first != second && first.is_multiple_of(4) && second >= 100);
        assert_eq!(larder_arena_in_use(a), 4 + 32);
        assert!(larder_arena_contains(a, 499) && !larder_arena_contains(a, 500));
        assert_eq!(larder_arena_audit(a, null_mut()), LARDER_OK);
        refused(LARDER_SIZE, "but 32 were allocated", |e| {
            larder_arena_dealloc(a, second, 40, e)
        });
        refused(LARDER_FOREIGN, "arena ids", |e| {
            larder_arena_dealloc(a, second + 4, 4, e)
        });
        refused(LARDER_BUSY, "36 units are allocated", |e| {
            larder_arena_destroy(a, e)
        });
        assert_eq!(larder_arena_dealloc(a, second, 30, null_mut()), LARDER_OK);
        refused(LARDER_FOREIGN, "freed twice", |e| {
            larder_arena_dealloc(a, second, 30, e)
        });
        let mut addr = 7;
        refused(LARDER_EXHAUSTED, "no free segment", |e| {
            larder_arena_alloc(a, 401, &raw mut addr, e)
        });
        assert_eq!(addr, u64::MAX, "nobody finds the address of before");
        assert_eq!(larder_arena_add(a, 500, 400, null_mut()), LARDER_OK);
        refused(LARDER_ARGUMENT, "overlaps", |e| {
            larder_arena_add(a, 800, 400, e)
        });
        assert_eq!(larder_arena_dealloc(a, first, 3, null_mut()), LARDER_OK);
        assert_eq!(larder_arena_destroy(a, null_mut()), LARDER_OK);
    }
}

#[test]
fn a_request_is_kept_in_every_part() {
    let a = arena(&ids(1 << 20));
    let mut request = larder_arena_request::default();
    // SAFETY: live pointers.
    unsafe {
        assert_eq!(larder_arena_request_init(&raw mut request), LARDER_OK);
        request.units = 600;
        request.align = 256;
        request.phase = 16;
        request.nocross = 4096;
        request.min = 5000;
        request.max = 9000;
        request.fit = LARDER_FIT_BEST;
        let mut addr = 0;
        let status = larder_arena_xalloc(a, &raw const request, &raw mut addr, null_mut());
        assert_eq!(status, LARDER_OK);
        // From 5000 on: 5136 is the first that is 16 after a multiple of 256.
        assert_eq!(addr, 5136);
        let mut next = 0;
        request.fit = LARDER_FIT_NEXT;
        (request.min, request.max) = (0, u64::MAX);
        let status = larder_arena_xalloc(a, &raw const request, &raw mut next, null_mut());
        assert_eq!(status, LARDER_OK);
        assert!(next > addr && next % 256 == 16, "{next}");
        assert_eq!(larder_arena_dealloc(a, addr, 600, null_mut()), LARDER_OK);

        let good = larder_arena_request {
            units: 8,
            ..larder_arena_request::default()
        };
        let cases: [(larder_arena_request, &str); 9] = [
            (larder_arena_request { units: 0, ..good }, "a size of 0"),
            (larder_arena_request { align: 3, ..good }, "alignment of 3"),
            (
                larder_arena_request {
                    align: 8,
                    phase: 8,
                    ..good
                },
                "phase 8",
            ),
            (
                larder_arena_request { nocross: 4, ..good },
                "multiples of 4",
            ),
            (
                larder_arena_request {
                    min: 9,
                    max: 8,
                    ..good
                },
                "within 9 to 8",
            ),
            (larder_arena_request { fit: 4, ..good }, "request.fit is 4"),
            (
                larder_arena_request {
                    reserved: 1,
                    ..good
                },
                "request.reserved is 1",
            ),
            (
                larder_arena_request { size: 3, ..good },
                "options.size is 3",
            ),
            (
                larder_arena_request {
                    size: usize::MAX,
                    ..good
                },
                "options.size is",
            ),
        ];
        for (request, says) in cases {
            let mut addr = 0;
            refused(LARDER_ARGUMENT, says, |e| {
                larder_arena_xalloc(a, &raw const request, &raw mut addr, e)
            });
        }
        // `size` before the constraints: an old program's request.
        let old = larder_arena_request {
            size: 16,
            align: 3,
            ..good
        };
        let status = larder_arena_xalloc(a, &raw const old, &raw mut addr, null_mut());
        assert_eq!(status, LARDER_OK);
        assert_eq!(larder_arena_free(a), LARDER_OK);
    }
}

#[test]
fn spans_come_from_another_arena_and_go_back() {
    let machine = arena(&larder_arena_options {
        quantum: 1 << 16,
        span_addr: 1 << 32,
        ..ids(1 << 24)
    });
    let heap = arena(&larder_arena_options {
        name: c"heap".as_ptr(),
        quantum: 4096,
        import_units: 1 << 18,
        limit_units: 1 << 20,
        source: machine,
        ..larder_arena_options::default()
    });
    // SAFETY: live pointers.
    unsafe {
        let addr = alloc(heap, 4096);
        assert_eq!(larder_arena_in_use(machine), 1 << 18);
        refused(LARDER_BUSY, "262144 units", |e| {
            larder_arena_destroy(machine, e)
        });
        assert_eq!(
            larder_arena_dealloc(heap, addr, 4096, null_mut()),
            LARDER_OK
        );
        let mut units = 0;
        assert_eq!(larder_arena_trim(heap, &raw mut units), LARDER_OK);
        assert_eq!((units, larder_arena_in_use(machine)), (1 << 18, 0));
        let mut addr = 0;
        refused(LARDER_LIMIT, "limit of 1048576", |e| {
            larder_arena_alloc(heap, 1 << 21, &raw mut addr, e)
        });
        assert_eq!(larder_arena_set_limit(heap, u64::MAX), LARDER_OK);
        refused(
            LARDER_SOURCE,
            "from its source: ids: no free segment",
            |e| larder_arena_alloc(heap, 1 << 25, &raw mut addr, e),
        );
        let addr = alloc(heap, 4096);
        // The source's handle goes first; the arena over it keeps the source.
        assert_eq!(larder_arena_free(machine), LARDER_OK);
        assert_eq!(
            larder_arena_dealloc(heap, addr, 4096, null_mut()),
            LARDER_OK
        );
        assert_eq!(larder_arena_maintain(heap, null_mut()), LARDER_OK);
        assert_eq!(larder_arena_free(heap), LARDER_OK);
    }
}

/// A source in C: numbers that were never given, as long as there are some.
struct Tickets {
    next: u64,
    end: u64,
    given: u64,
    back: u64,
    misaligned: bool,
}

unsafe extern "C" fn give(
    units: u64,
    align: u64,
    span: *mut larder_span,
    user: *mut c_void,
) -> bool {
    // SAFETY: the test's own struct, used by one thread.
    unsafe {
        let tickets = &mut *user.cast::<Tickets>();
        let addr = tickets.next.next_multiple_of(align) + u64::from(tickets.misaligned);
        if addr + units > tickets.end {
            return false;
        }
        tickets.next = addr + units;
        tickets.given += units;
        span.write(larder_span { addr, units });
        true
    }
}

unsafe extern "C" fn take_back(span: *const larder_span, user: *mut c_void) {
    // SAFETY: as above.
    unsafe { (*user.cast::<Tickets>()).back += (*span).units };
}

#[test]
fn spans_come_from_functions_of_the_program() {
    let mut tickets = Tickets {
        next: 1000,
        end: 4000,
        given: 0,
        back: 0,
        misaligned: false,
    };
    let options = larder_arena_options {
        name: c"tickets".as_ptr(),
        quantum: 8,
        import_units: 512,
        import: Some(give),
        release: Some(take_back),
        user: (&raw mut tickets).cast(),
        ..larder_arena_options::default()
    };
    let a = arena(&options);
    // SAFETY: live pointers; the struct is only looked at between calls.
    unsafe {
        let addr = alloc(a, 8);
        assert!(addr >= 1000 && (*options.user.cast::<Tickets>()).given == 512);
        let mut none = 0;
        refused(
            LARDER_SOURCE,
            "the program's import function: it gave no span",
            |e| larder_arena_alloc(a, 4096, &raw mut none, e),
        );
        (*options.user.cast::<Tickets>()).misaligned = true;
        refused(LARDER_SOURCE, "smaller or less aligned", |e| {
            larder_arena_alloc(a, 600, &raw mut none, e)
        });
        assert_eq!(larder_arena_dealloc(a, addr, 8, null_mut()), LARDER_OK);
        assert_eq!(larder_arena_free(a), LARDER_OK);
        let tickets = &*options.user.cast::<Tickets>();
        assert_eq!(
            tickets.given, tickets.back,
            "all spans went home, the bad ones at once"
        );
    }
}

#[test]
fn the_walk_shows_every_segment_and_ends_when_asked() {
    unsafe extern "C" fn collect(segment: *const larder_segment, user: *mut c_void) -> bool {
        // SAFETY: the test's own list.
        let list = unsafe { &mut *user.cast::<Vec<larder_segment>>() };
        // SAFETY: the library's segment.
        list.push(unsafe { *segment });
        list.len() < 4
    }
    let a = arena(&ids(100));
    let mut list: Vec<larder_segment> = Vec::new();
    let user = (&raw mut list).cast();
    // SAFETY: live pointers.
    unsafe {
        let addr = alloc(a, 10);
        let walk = || larder_arena_walk(a, Some(collect), user, null_mut());
        assert_eq!(walk(), LARDER_OK);
        let kinds: Vec<_> = list.iter().map(|s| (s.kind, s.addr, s.units)).collect();
        let expected = [
            (LARDER_SEGMENT_ADDED_SPAN, 0, 100),
            (LARDER_SEGMENT_ALLOCATED, addr, 10),
            (LARDER_SEGMENT_FREE, 10, 90),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(walk(), LARDER_OK);
        assert_eq!(list.len(), 4, "the function said that it has enough");
        refused(LARDER_NULL, "visit is NULL", |e| {
            larder_arena_walk(a, None, user, e)
        });
        assert_eq!(larder_arena_free(a), LARDER_OK);
    }
}

#[test]
fn a_handle_has_magazines_of_its_own_and_keeps_the_arena() {
    let a = arena(&larder_arena_options {
        quantum_max: 4,
        ..ids(1000)
    });
    // SAFETY: live pointers.
    unsafe {
        let h = made(|out, e| larder_arena_handle_new(a, out, e));
        let mut addr = 0;
        assert_eq!(
            larder_arena_handle_alloc(h, 2, &raw mut addr, null_mut()),
            LARDER_OK
        );
        assert_eq!(
            larder_arena_handle_dealloc(h, addr, 2, null_mut()),
            LARDER_OK
        );
        let mut again = 0;
        assert_eq!(
            larder_arena_handle_alloc(h, 2, &raw mut again, null_mut()),
            LARDER_OK
        );
        assert_eq!(addr, again, "the last one given back is the next one taken");
        refused(LARDER_FOREIGN, "arena ids", |e| {
            larder_arena_handle_dealloc(h, 999_999, 2, e)
        });
        assert_eq!(larder_arena_free(a), LARDER_OK);
        assert_eq!(
            larder_arena_handle_dealloc(h, addr, 2, null_mut()),
            LARDER_OK
        );
        refused(LARDER_FOREIGN, "arena ids", |e| {
            larder_arena_handle_dealloc(h, addr, 2, e)
        });
        assert_eq!(larder_arena_handle_free(h), LARDER_OK);
    }
}

#[test]
fn the_numbers_can_be_read() {
    let a = arena(&larder_arena_options {
        limit_units: 500,
        ..ids(100)
    });
    // SAFETY: live pointers.
    unsafe {
        alloc(a, 7);
        let mut stats = larder_arena_stats {
            size: size_of::<larder_arena_stats>(),
            ..Default::default()
        };
        assert_eq!(
            larder_arena_stats_read(a, &raw mut stats, null_mut()),
            LARDER_OK
        );
        let read = (
            stats.total_units,
            stats.allocated_units,
            stats.limit_units,
            stats.spans,
        );
        assert_eq!(read, (100, 7, 500, 1));
        let told = json(|at, n, needed| larder_arena_stats_json(a, at, n, needed, null_mut()));
        assert_eq!(told["free_units"], 93);
        assert_eq!(told["limit_units"], 500);
        assert_eq!(told.as_object().unwrap().len(), 15);
        larder_arena_set_limit(a, u64::MAX);
        let told = json(|at, n, needed| larder_arena_stats_json(a, at, n, needed, null_mut()));
        assert!(told["limit_units"].is_null());
        assert_eq!(larder_arena_free(a), LARDER_OK);
    }
}

#[test]
fn the_quantum_caches_can_be_looked_at() {
    let a = arena(&larder_arena_options {
        quantum: 4,
        quantum_max: 8,
        ..ids(4000)
    });
    // SAFETY: live pointers.
    unsafe {
        assert_eq!(larder_arena_quantum_caches(a), 2);
        for _ in 0..100 {
            let addr = alloc(a, 5);
            assert_eq!(larder_arena_dealloc(a, addr, 5, null_mut()), LARDER_OK);
        }
        let mut stats = larder_quantum_stats {
            size: size_of::<larder_quantum_stats>(),
            ..Default::default()
        };
        let read = |cache, stats: *mut larder_quantum_stats, e| {
            larder_arena_quantum_stats_read(a, cache, stats, e)
        };
        assert_eq!(read(1, &raw mut stats, null_mut()), LARDER_OK);
        assert_eq!((stats.units, stats.misses > 0), (8, true));
        assert!(stats.hits > 50, "{stats:?}");
        refused(LARDER_ARGUMENT, "no quantum cache number 2", |e| {
            read(2, &raw mut stats, e)
        });
        refused(LARDER_NULL, "stats is NULL", |e| read(0, null_mut(), e));
        let none = larder_arena_quantum_stats_read(null_mut(), 0, &raw mut stats, null_mut());
        assert_eq!(
            (none, larder_arena_quantum_caches(null_mut())),
            (LARDER_NULL, 0)
        );
        assert_eq!(larder_arena_destroy(a, null_mut()), LARDER_OK);
    }
}
