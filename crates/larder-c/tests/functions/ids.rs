//! Identifiers over the C interface: what they do, and what bad input gets.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::c::{family, json, made, no_error, refused, text};
use larder_c::larder_status::*;
use larder_c::*;

fn ids(options: &larder_ids_options) -> *mut larder_ids {
    // SAFETY: live options.
    made(|out, error| unsafe { larder_ids_new(options, out, error) })
}

fn range(first: u64, last: u64, rule: u32) -> larder_ids_options {
    larder_ids_options {
        first,
        last,
        rule,
        ..larder_ids_options::default()
    }
}

/// Handles of 16 bits over 4 slots, with as many bits of generation.
fn handles(handle_bits: u32) -> larder_ids_options {
    larder_ids_options {
        handle_bits,
        ..range(0, 3, LARDER_RULE_LOWEST)
    }
}

/// # Safety
/// Live ids.
unsafe fn alloc(ids: *const larder_ids) -> u64 {
    let (mut id, mut error) = (0, no_error());
    // SAFETY: the caller's promise.
    let status = unsafe { larder_ids_alloc(ids, &raw mut id, &raw mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
    id
}

/// # Safety
/// Live ids, of which this identifier is allocated.
unsafe fn dealloc(ids: *const larder_ids, id: u64) {
    let mut error = no_error();
    // SAFETY: the caller's promise.
    let status = unsafe { larder_ids_dealloc(ids, id, &raw mut error) };
    assert_eq!(status, LARDER_OK, "{}", text(&error));
}

/// # Safety
/// Live ids.
unsafe fn stats(ids: *const larder_ids) -> larder_ids_stats {
    let mut stats = larder_ids_stats {
        size: size_of::<larder_ids_stats>(),
        ..Default::default()
    };
    // SAFETY: the caller's promise.
    let status = unsafe { larder_ids_stats_read(ids, &raw mut stats, null_mut()) };
    assert_eq!(status, LARDER_OK);
    stats
}

#[test]
fn each_rule_hands_out_its_next_one() {
    // Of 1 to 8 three are taken and given back, the second of them first; then three are taken.
    let rules = [
        (LARDER_RULE_LOWEST, [1, 2, 3]),
        (LARDER_RULE_CYCLIC, [4, 5, 6]),
        (LARDER_RULE_FIFO, [4, 5, 6]),
    ];
    for (rule, next) in rules {
        let pids = ids(&range(1, 8, rule));
        // SAFETY: live pointers.
        unsafe {
            assert_eq!([alloc(pids), alloc(pids), alloc(pids)], [1, 2, 3]);
            for id in [2, 1, 3] {
                dealloc(pids, id);
            }
            let got = [alloc(pids), alloc(pids), alloc(pids)];
            assert_eq!(got, next, "rule {rule}");
            assert_eq!([alloc(pids), alloc(pids)], [got[2] + 1, got[2] + 2]);
            let after = alloc(pids);
            let wrapped = match rule {
                LARDER_RULE_LOWEST => 6,
                LARDER_RULE_CYCLIC => 1,
                _ => 2, // The one that was given back first.
            };
            assert_eq!(after, wrapped, "rule {rule}");
            assert_eq!(larder_ids_free(pids), LARDER_OK);
        }
    }
}

#[test]
fn every_identifier_is_handed_out_once_and_then_none() {
    let tags = ids(&range(100, 163, LARDER_RULE_ANY));
    // SAFETY: live pointers.
    unsafe {
        let mut all: Vec<u64> = (0..64).map(|_| alloc(tags)).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(100..=163));
        let mut id = 7;
        refused(LARDER_EXHAUSTED, "all 64 identifiers are allocated", |e| {
            larder_ids_alloc(tags, &raw mut id, e)
        });
        assert_eq!(id, u64::MAX, "no identifier of before is left there");
        let now = stats(tags);
        assert_eq!(
            (now.allocated_ids, now.free_ids, now.retired_ids),
            (64, 0, 0)
        );
        dealloc(tags, 120);
        assert_eq!(alloc(tags), 120);
        for id in all {
            dealloc(tags, id);
        }
        assert_eq!(larder_ids_destroy(tags, null_mut()), LARDER_OK);
    }
}

#[test]
fn an_identifier_can_be_asked_for_by_its_number() {
    let fds = ids(&range(0, 1023, LARDER_RULE_LOWEST));
    // SAFETY: live pointers.
    unsafe {
        let mut id = 0;
        assert_eq!(
            larder_ids_alloc_at(fds, 2, &raw mut id, null_mut()),
            LARDER_OK
        );
        assert_eq!(id, 2);
        assert_eq!([alloc(fds), alloc(fds), alloc(fds)], [0, 1, 3]);
        refused(LARDER_BUSY, "identifier 2 is taken", |e| {
            larder_ids_alloc_at(fds, 2, &raw mut id, e)
        });
        assert_eq!(id, u64::MAX);
        refused(LARDER_ARGUMENT, "identifier 1024 is not in", |e| {
            larder_ids_alloc_at(fds, 1024, &raw mut id, e)
        });
        assert_eq!(stats(fds).allocated_ids, 4);
        assert_eq!(larder_ids_free(fds), LARDER_OK, "with four allocated");
    }
}

#[test]
fn what_is_given_back_twice_or_was_never_taken_changes_nothing() {
    // Small ranges stay in the map; of large ones most identifiers lie ready for CPUs.
    for last in [9, 4095] {
        let tags = ids(&range(0, last, LARDER_RULE_ANY));
        // SAFETY: live pointers.
        unsafe {
            let all: Vec<u64> = (0..=last).map(|_| alloc(tags)).collect();
            dealloc(tags, all[1]);
            for id in [all[1], u64::MAX, last + 1] {
                let (status, says) = if id > last {
                    (LARDER_ARGUMENT, "is not in")
                } else {
                    (LARDER_FOREIGN, "freed twice")
                };
                refused(status, says, |e| larder_ids_dealloc(tags, id, e));
                let mut slot = 5;
                let unknown = |e| larder_ids_check(tags, id, &raw mut slot, e);
                refused(LARDER_FOREIGN, "is not allocated", unknown);
                assert_eq!(slot, u64::MAX);
            }
            assert_eq!(stats(tags).allocated_ids, last);
            let mut slot = 0;
            assert_eq!(
                larder_ids_check(tags, all[0], &raw mut slot, null_mut()),
                LARDER_OK
            );
            assert_eq!(slot, all[0]);
            refused(
                LARDER_BUSY,
                "identifiers are allocated; give them back",
                |e| larder_ids_destroy(tags, e),
            );
            assert_eq!(alloc(tags), all[1], "the one that is free");
            assert_eq!(larder_ids_free(tags), LARDER_OK);
        }
    }
}

#[test]
fn a_handle_of_a_former_life_is_stale() {
    let slots = ids(&handles(32));
    // SAFETY: live pointers.
    unsafe {
        let first = alloc(slots);
        let mut slot = 9;
        assert_eq!(
            larder_ids_check(slots, first, &raw mut slot, null_mut()),
            LARDER_OK
        );
        assert_eq!(slot, 0);
        dealloc(slots, first);
        let second = alloc(slots);
        assert_ne!(first, second, "the same slot, another handle");
        assert_eq!(
            larder_ids_check(slots, second, &raw mut slot, null_mut()),
            LARDER_OK
        );
        assert_eq!(slot, 0);
        for stale in [first, second + 1, u64::MAX] {
            refused(LARDER_FOREIGN, "stale or forged", |e| {
                larder_ids_dealloc(slots, stale, e)
            });
            refused(LARDER_FOREIGN, "stale or forged", |e| {
                larder_ids_check(slots, stale, &raw mut slot, e)
            });
        }
        let mut third = 0;
        assert_eq!(
            larder_ids_alloc_at(slots, 3, &raw mut third, null_mut()),
            LARDER_OK
        );
        assert_eq!(
            larder_ids_check(slots, third, &raw mut slot, null_mut()),
            LARDER_OK
        );
        assert_eq!((slot, stats(slots).allocated_ids), (3, 2));
        dealloc(slots, second);
        dealloc(slots, third);
        assert_eq!(larder_ids_destroy(slots, null_mut()), LARDER_OK);
    }
}

#[test]
fn a_slot_whose_generations_are_used_up_is_retired_or_begins_again() {
    // 8 bits, 2 of them for 4 slots: 64 lives for each.
    let retiring = ids(&larder_ids_options {
        handle_bits: 8,
        ..range(0, 3, LARDER_RULE_LOWEST)
    });
    // SAFETY: live pointers.
    unsafe {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..4 * 64 {
            let handle = alloc(retiring);
            assert!(handle < 256 && seen.insert(handle), "{handle}");
            dealloc(retiring, handle);
        }
        let mut handle = 0;
        refused(
            LARDER_EXHAUSTED,
            "generations of all 4 slots are used up",
            |e| larder_ids_alloc(retiring, &raw mut handle, e),
        );
        let now = stats(retiring);
        assert_eq!(
            (now.allocated_ids, now.free_ids, now.retired_ids),
            (0, 0, 4)
        );
        assert_eq!(larder_ids_destroy(retiring, null_mut()), LARDER_OK);
    }
    let reusing = ids(&larder_ids_options {
        flags: LARDER_IDS_REUSE_GENERATIONS,
        ..handles(8)
    });
    // SAFETY: live pointers.
    unsafe {
        let lives: Vec<u64> = (0..65)
            .map(|_| {
                let handle = alloc(reusing);
                dealloc(reusing, handle);
                handle
            })
            .collect();
        assert_eq!(lives[0], lives[64]);
        assert_eq!(larder_ids_destroy(reusing, null_mut()), LARDER_OK);
    }
    // A program that starts again with another generation refuses what it had before.
    let again = ids(&larder_ids_options {
        first_generation: 1,
        ..handles(32)
    });
    // SAFETY: live pointers.
    unsafe {
        let handle = alloc(again);
        assert_eq!(handle, 1 << 2, "slot 0 of 2 bits");
        refused(LARDER_FOREIGN, "stale", |e| larder_ids_dealloc(again, 0, e));
        assert_eq!(larder_ids_free(again), LARDER_OK);
    }
}

#[test]
fn an_identifier_rests_for_allocations_or_time() {
    for (rule, flags) in [
        (LARDER_RULE_ANY, 0),
        (LARDER_RULE_LOWEST, LARDER_IDS_RELAX_REST),
    ] {
        let rested = ids(&larder_ids_options {
            rest_allocations: 2,
            flags,
            ..range(0, 3, rule)
        });
        // SAFETY: live pointers.
        unsafe {
            assert_eq!(alloc(rested), 0);
            dealloc(rested, 0);
            assert_eq!([alloc(rested), alloc(rested), alloc(rested)], [1, 2, 0]);
            assert_eq!(alloc(rested), 3);
            dealloc(rested, 2);
            let mut id = 0;
            if flags == 0 {
                refused(
                    LARDER_EXHAUSTED,
                    "1 identifiers are free but still rest",
                    |e| larder_ids_alloc(rested, &raw mut id, e),
                );
            } else {
                assert_eq!(alloc(rested), 2, "the longest rested one");
            }
            assert_eq!(larder_ids_free(rested), LARDER_OK);
        }
    }
    let hour = ids(&larder_ids_options {
        rest_ms: 3_600_000,
        ..range(5, 5, LARDER_RULE_LOWEST)
    });
    let moment = ids(&larder_ids_options {
        rest_ms: 1,
        ..range(5, 5, LARDER_RULE_LOWEST)
    });
    // SAFETY: live pointers.
    unsafe {
        for ids in [hour, moment] {
            assert_eq!(alloc(ids), 5);
            dealloc(ids, 5);
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
        assert_eq!(alloc(moment), 5);
        let mut id = 0;
        refused(LARDER_EXHAUSTED, "still rest", |e| {
            larder_ids_alloc(hour, &raw mut id, e)
        });
        assert_eq!(larder_ids_free(hour), LARDER_OK);
        assert_eq!(larder_ids_free(moment), LARDER_OK);
    }
}

#[test]
fn options_that_make_no_sense_say_so() {
    let good = larder_ids_options::default;
    let cases = [
        (
            larder_ids_options {
                first: 9,
                last: 3,
                ..good()
            },
            "9..=3",
        ),
        (
            larder_ids_options { rule: 4, ..good() },
            "options.rule is 4, which is no rule",
        ),
        (
            larder_ids_options { mode: 7, ..good() },
            "options.mode is 7",
        ),
        (
            larder_ids_options { flags: 4, ..good() },
            "options.flags is 4",
        ),
        (
            larder_ids_options {
                reserved: 1,
                ..good()
            },
            "options.reserved is 1; it must be 0",
        ),
        (
            larder_ids_options {
                slot_bits: 20,
                ..good()
            },
            "options.slot_bits is 20",
        ),
        (
            larder_ids_options {
                handle_bits: 65,
                ..good()
            },
            "a handle of 65 bits",
        ),
        (
            larder_ids_options {
                handle_bits: 16,
                ..good()
            },
            "16 bits of index",
        ),
        (
            larder_ids_options {
                handle_bits: 32,
                slot_bits: 15,
                ..good()
            },
            "an index of 15 bits",
        ),
        (
            larder_ids_options {
                handle_bits: 24,
                first_generation: 256,
                ..good()
            },
            "generation 256 in 8 bits",
        ),
        (
            larder_ids_options {
                rest_ms: 1,
                rest_allocations: 1,
                ..good()
            },
            "rest_allocations and rest_ms; set one",
        ),
        (
            larder_ids_options {
                rest_ms: 1,
                rule: LARDER_RULE_FIFO,
                ..good()
            },
            "options.rule is 3, which knows no rest",
        ),
        (
            larder_ids_options { size: 3, ..good() },
            "options.size is 3",
        ),
    ];
    for (options, says) in &cases {
        let mut out = core::ptr::without_provenance_mut(8);
        // SAFETY: live pointers.
        refused(LARDER_ARGUMENT, says, |e| unsafe {
            larder_ids_new(options, &raw mut out, e)
        });
        assert!(out.is_null(), "{says}");
    }
    // A program that knows the first fields only gets the defaults of the others, whatever lies behind.
    let old = larder_ids_options {
        size: 3 * size_of::<u64>(),
        last: 2,
        rule: 99,
        ..good()
    };
    let few = ids(&old);
    // SAFETY: live pointers.
    unsafe {
        assert_eq!(stats(few).free_ids, 3);
        assert_eq!(larder_ids_free(few), LARDER_OK);
        let whole = made(|out, e| larder_ids_new(null(), out, e));
        assert_eq!(stats(whole).free_ids, 65536);
        assert_eq!(larder_ids_free(whole), LARDER_OK);
        let all = ids(&range(0, u64::MAX, LARDER_RULE_LOWEST));
        assert_eq!(stats(all).free_ids, u64::MAX);
        assert_eq!(alloc(all), 0);
        assert_eq!(stats(all).free_ids, u64::MAX);
        assert_eq!(larder_ids_free(all), LARDER_OK);
        let mut options = good();
        options.last = 7;
        assert_eq!(larder_ids_options_init(&raw mut options), LARDER_OK);
        assert_eq!(options.last, 65535);
        assert_eq!(larder_ids_options_init(null_mut()), LARDER_NULL);
    }
}

#[test]
fn null_and_other_kinds_are_told() {
    let f = family(16 << 20);
    let mut words = [0u64; 8];
    let garbage: *mut larder_ids = words.as_mut_ptr().cast();
    let tags = ids(&larder_ids_options::default());
    let (mut id, mut now) = (
        0,
        larder_ids_stats {
            size: 8,
            ..Default::default()
        },
    );
    // SAFETY: live pointers, and memory that can be read.
    unsafe {
        for (wrong, status) in [
            (null_mut(), LARDER_NULL),
            (f.cast::<c_void>().cast(), LARDER_HANDLE),
            (garbage, LARDER_HANDLE),
        ] {
            let answers = [
                larder_ids_alloc(wrong, &raw mut id, null_mut()),
                larder_ids_alloc_at(wrong, 1, &raw mut id, null_mut()),
                larder_ids_dealloc(wrong, 1, null_mut()),
                larder_ids_check(wrong, 1, &raw mut id, null_mut()),
                larder_ids_stats_read(wrong, &raw mut now, null_mut()),
                larder_ids_stats_json(wrong, null_mut(), 0, null_mut(), null_mut()),
            ];
            assert_eq!(answers, [status; 6]);
            let ends = [
                larder_ids_free(wrong),
                larder_ids_destroy(wrong, null_mut()),
            ];
            let expected = if wrong.is_null() { LARDER_OK } else { status };
            assert_eq!(ends, [expected; 2], "NULL is ended by nothing");
        }
        assert_eq!(
            larder_family_trim(tags.cast::<c_void>().cast(), null_mut()),
            LARDER_HANDLE
        );
        refused(LARDER_NULL, "id is NULL", |e| {
            larder_ids_alloc(tags, null_mut(), e)
        });
        refused(LARDER_NULL, "id is NULL", |e| {
            larder_ids_alloc_at(tags, 1, null_mut(), e)
        });
        assert_eq!(
            stats(tags).allocated_ids,
            0,
            "what cannot be answered is not taken"
        );
        id = alloc(tags);
        refused(LARDER_NULL, "slot is NULL", |e| {
            larder_ids_check(tags, id, null_mut(), e)
        });
        refused(LARDER_NULL, "stats is NULL", |e| {
            larder_ids_stats_read(tags, null_mut(), e)
        });
        refused(LARDER_NULL, "out is NULL", |e| {
            larder_ids_new(null(), null_mut(), e)
        });
        assert_eq!(larder_ids_free(tags), LARDER_OK);
        assert_eq!(larder_family_free(f), LARDER_OK);
    }
}

#[test]
fn the_numbers_come_as_json_too() {
    let slots = ids(&handles(16));
    // SAFETY: live pointers.
    unsafe {
        let handle = alloc(slots);
        let told =
            json(|at, bytes, needed| larder_ids_stats_json(slots, at, bytes, needed, null_mut()));
        let now = stats(slots);
        assert_eq!(
            (told["allocated_ids"].as_u64(), now.allocated_ids),
            (Some(1), 1)
        );
        assert_eq!((told["free_ids"].as_u64(), now.free_ids), (Some(3), 3));
        assert_eq!(told["retired_ids"], 0);
        assert_eq!(told["bookkeeping_bytes"], now.bookkeeping_bytes);
        assert!(now.bookkeeping_bytes > 0);
        dealloc(slots, handle);
        assert_eq!(larder_ids_destroy(slots, null_mut()), LARDER_OK);
    }
}

/// Ids that all threads use.
#[derive(Clone, Copy)]
struct Shared(*mut larder_ids);

// SAFETY: every call but the ones that end it may be made by many threads at once.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[test]
fn an_identifier_has_one_owner_whatever_threads_do() {
    const THREADS: usize = 4;
    for rule in [
        LARDER_RULE_ANY,
        LARDER_RULE_LOWEST,
        LARDER_RULE_CYCLIC,
        LARDER_RULE_FIFO,
    ] {
        let shared = Shared(ids(&range(0, 299, rule)));
        let owned: [AtomicBool; 300] = [const { AtomicBool::new(false) }; 300];
        std::thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    let all = &shared;
                    let mut mine = Vec::new();
                    for turn in 0..2000 {
                        if turn % 90 < 60 {
                            // SAFETY: live ids.
                            let id = unsafe { alloc(all.0) };
                            assert!(
                                !owned[id as usize].swap(true, SeqCst),
                                "{id} has two owners"
                            );
                            mine.push(id);
                        } else if let Some(id) = mine.pop() {
                            owned[id as usize].store(false, SeqCst);
                            // SAFETY: as above.
                            unsafe { dealloc(all.0, id) };
                        }
                        if mine.len() == 70 {
                            for id in mine.drain(..) {
                                owned[id as usize].store(false, SeqCst);
                                // SAFETY: as above.
                                unsafe { dealloc(all.0, id) };
                            }
                        }
                    }
                    for id in mine {
                        owned[id as usize].store(false, SeqCst);
                        // SAFETY: as above.
                        unsafe { dealloc(all.0, id) };
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        unsafe {
            assert_eq!(stats(shared.0).free_ids, 300);
            assert_eq!(larder_ids_destroy(shared.0, null_mut()), LARDER_OK);
        }
    }
}

#[test]
fn of_two_threads_that_give_the_same_one_back_one_succeeds() {
    for options in [range(0, 199, LARDER_RULE_ANY), handles(32)] {
        let shared = Shared(ids(&options));
        for _ in 0..200 {
            // SAFETY: live ids.
            let id = unsafe { alloc(shared.0) };
            let (succeeded, foreign) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(|| {
                        let all = &shared;
                        // SAFETY: as above.
                        match unsafe { larder_ids_dealloc(all.0, id, null_mut()) } {
                            LARDER_OK => succeeded.fetch_add(1, SeqCst),
                            LARDER_FOREIGN => foreign.fetch_add(1, SeqCst),
                            other => panic!("{other:?}"),
                        };
                    });
                }
            });
            assert_eq!((succeeded.into_inner(), foreign.into_inner()), (1, 1));
        }
        // SAFETY: the threads have ended.
        let ended = unsafe { larder_ids_destroy(shared.0, null_mut()) };
        assert_eq!(ended, LARDER_OK);
    }
}
