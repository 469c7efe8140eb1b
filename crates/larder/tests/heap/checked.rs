//! Explicit heaps whose blocks are checked: each misuse has its own small program and the exact message that it must print.

#![cfg(feature = "debug-heap")]

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::process::Output;
use std::ptr::NonNull;

use crate::common::fork::fork;
use crate::common::{command, ended, role};
use larder::heap::debug::Options;
use larder::heap::{Classes, Heap};
use larder::objects::Family;

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// Heaps of the same classes, and the classes.
struct World {
    a: Heap,
    b: Heap,
    classes: Classes,
}

impl World {
    fn new(options: &str) -> Self {
        let options = Options::read(options, &mut |bad| panic!("{bad}")).unwrap();
        let family = Family::new().unwrap();
        let classes = Classes::checked(&family, options).unwrap();
        Self {
            a: Heap::new(&classes),
            b: Heap::new(&classes),
            classes,
        }
    }
}

/// Says where the block is, for the message.
fn told(at: NonNull<u8>) -> NonNull<u8> {
    println!("{:#x}", at.as_ptr() as usize);
    at
}

/// A program that does one thing wrong, and the first line of what it must print.
type Case = (&'static str, &'static str, fn(&World));

// SAFETY, for all of these: not at all. Every access stays inside of the heap's own memory, which is what the tests are about.
const CASES: [Case; 14] = [
    (
        "twice",
        "larder: double free: dealloc(ADDRESS) of a block that is free",
        |w| {
            let at = told(w.a.alloc(layout(100, 8)).unwrap());
            // SAFETY: see above.
            unsafe {
                w.a.dealloc(at, layout(100, 8));
                w.b.dealloc(at, layout(100, 8));
            }
        },
    ),
    (
        "twice-large",
        "larder: double free: free(ADDRESS) of a block that is free",
        |w| {
            let at = told(w.a.alloc(layout(100_000, 8)).unwrap());
            // SAFETY: see above.
            unsafe {
                w.classes.dealloc(at, layout(100_000, 8));
                w.a.dealloc_by_address(at);
            }
        },
    ),
    (
        "twice-front",
        "larder: double free: free(ADDRESS) of a block that is free",
        |w| {
            let at = told(w.classes.alloc_zeroed(layout(0, 1)).unwrap());
            // SAFETY: see above.
            unsafe {
                w.b.dealloc_by_address(at);
                w.classes.dealloc_by_address(at);
            }
        },
    ),
    (
        "inside",
        "larder: invalid free: dealloc(ADDRESS), which is 40 bytes into a block",
        |w| {
            let at = w.a.alloc(layout(100, 8)).unwrap();
            // SAFETY: see above.
            unsafe { w.a.dealloc(told(at.add(40)), layout(100, 8)) };
        },
    ),
    (
        "stack",
        "larder: invalid free: free(ADDRESS), which is on the stack",
        |w| {
            let word = std::hint::black_box(7_u64);
            // SAFETY: see above.
            unsafe { w.a.dealloc_by_address(told(NonNull::from(&word).cast())) };
        },
    ),
    (
        "other",
        "larder: invalid free: dealloc(ADDRESS), where no block is",
        |w| {
            let other = Heap::new(&Classes::new(w.classes.family()));
            let at = told(other.alloc(layout(64, 8)).unwrap());
            // SAFETY: see above.
            unsafe { w.a.dealloc(at, layout(64, 8)) };
        },
    ),
    (
        "size",
        "larder: mismatched size: dealloc(ADDRESS) with 99 bytes of a block of 100",
        |w| {
            let at = told(w.a.alloc(layout(100, 8)).unwrap());
            // SAFETY: see above.
            unsafe { w.a.dealloc(at, layout(99, 8)) };
        },
    ),
    (
        "resize",
        "larder: mismatched size: dealloc(ADDRESS) with 101 bytes of a block of 100",
        |w| {
            let at = told(w.a.alloc(layout(100, 8)).unwrap());
            // SAFETY: see above.
            let _ = unsafe { w.a.realloc(at, layout(101, 8), layout(50, 8)) };
        },
    ),
    (
        "align",
        "larder: mismatched alignment: dealloc(ADDRESS) with alignment 32 of a block aligned to 64",
        |w| {
            let at = told(w.a.alloc(layout(64, 64)).unwrap());
            // SAFETY: see above.
            unsafe { w.b.dealloc(at, layout(64, 32)) };
        },
    ),
    (
        "over",
        "larder: overflow: byte 3 after the end of a block was written, seen by dealloc(ADDRESS)",
        |w| {
            let at = told(w.a.alloc(layout(50, 1)).unwrap());
            // SAFETY: see above.
            unsafe {
                at.add(53).write(1);
                w.a.dealloc(at, layout(50, 1));
            }
        },
    ),
    (
        "under",
        "larder: underflow: byte 2 before a block was written, seen by free(ADDRESS)",
        |w| {
            let at = told(w.a.alloc(layout(50, 1)).unwrap());
            // SAFETY: see above.
            unsafe {
                at.sub(2).write(1);
                w.a.dealloc_by_address(at);
            }
        },
    ),
    (
        "under-far",
        "larder: underflow: byte 13 before a block was written, seen by free(ADDRESS)",
        |w| {
            let at = told(w.a.alloc(layout(50, 1)).unwrap());
            // SAFETY: see above.
            unsafe {
                at.sub(13).write(0);
                w.a.dealloc_by_address(at);
            }
        },
    ),
    (
        "after",
        "larder: use after free: byte 8 of a free block was written, seen when all blocks were looked at",
        |w| {
            let at = w.a.alloc(layout(50, 1)).unwrap();
            // SAFETY: see above.
            unsafe {
                w.a.dealloc(at, layout(50, 1));
                at.add(8).write(1);
            }
        },
    ),
    (
        "end",
        "larder: overflow: byte 0 after the end of a block was written, seen when all blocks were looked at",
        |w| {
            let at = w.a.alloc(layout(50, 1)).unwrap();
            // SAFETY: see above.
            unsafe { at.add(50).write(1) };
        },
    ),
];

/// Runs one test of this program again.
fn again(test: &str, role: &str, words: Option<&str>) -> Output {
    let mut command = command(test, role);
    command.env_remove("LARDER_HEAP_DEBUG");
    if let Some(words) = words {
        command.env("LARDER_HEAP_DEBUG", words);
    }
    ended(&mut command)
}

/// The first report, with the address that the program printed.
fn first_line(ended: &Output) -> String {
    let (out, err) = [&ended.stdout, &ended.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .into();
    let line = err.lines().find(|line| line.starts_with("larder: "));
    let line = line.unwrap_or_else(|| panic!("nothing was told: {out}{err}"));
    let address = out
        .lines()
        .find_map(|line| line.find("0x").map(|i| &line[i..]));
    address.map_or(line.to_owned(), |at| line.replace(at.trim(), "ADDRESS"))
}

#[test]
fn each_misuse_has_its_message() {
    const NAME: &str = "each_misuse_has_its_message";
    if let Some(role) = role() {
        let (name, words) = role.split_once(':').unwrap();
        let world = World::new(words);
        CASES.iter().find(|case| case.0 == name).unwrap().2(&world);
        drop(world);
        println!("went on");
        return;
    }
    for (name, message, _) in CASES {
        let ended = again(NAME, &format!("{name}:on"), None);
        assert_eq!(first_line(&ended), message, "{name}");
        assert!(!ended.status.success(), "{name} went on");
        let ended = again(NAME, &format!("{name}:keep-going"), None);
        assert_eq!(first_line(&ended), message, "{name}");
        assert!(ended.status.success(), "{name}: {ended:?}");
    }
}

#[test]
fn the_environment_chooses_checked_heaps() {
    const NAME: &str = "the_environment_chooses_checked_heaps";
    let family = Family::new().unwrap();
    let heaps = [Heap::new(&Classes::new(&family)), Heap::private(&family)];
    match role().as_deref() {
        Some("checked") => {
            for heap in heaps {
                assert_eq!(heap.classes().debug_options().unwrap().redzone, 64);
                let at = heap.alloc(layout(100, 8)).unwrap();
                // SAFETY: not at all: the second one must be told.
                unsafe {
                    heap.dealloc(at, layout(100, 8));
                    heap.dealloc(at, layout(100, 8));
                }
            }
        }
        Some(_) => assert!(heaps[0].classes().debug_options().is_none()),
        None => {
            let told = again(NAME, "checked", Some("redzone=64,keep-going,bogus"));
            let said = String::from_utf8_lossy(&told.stderr);
            assert!(told.status.success(), "{said}");
            assert_eq!(said.matches("larder: double free: dealloc(").count(), 2);
            let bad = "larder: LARDER_HEAP_DEBUG: there is no debug option \"bogus\"";
            assert_eq!(said.matches(bad).count(), 1, "{said}");
            for words in [None, Some("off")] {
                let told = again(NAME, "plain", words);
                assert!(told.status.success(), "{told:?}");
            }
        }
    }
}

#[test]
fn live_blocks_are_those_that_are_live() {
    let World { a, b, classes } = World::new("on");
    let mut live = BTreeMap::new();
    for i in 0..500 {
        let heap = [&a, &b][i % 2];
        let layout = layout(i * 97 % 50_000, 1 << (i % 14));
        let at = heap.alloc(layout).unwrap();
        assert_eq!(at.as_ptr() as usize % layout.align(), 0);
        assert_eq!(classes.usable_size(at), Some(layout.size()));
        live.insert(at, layout);
        if i % 3 == 0 {
            let (at, old) = live.pop_first().unwrap();
            let new = Layout::from_size_align(i, old.align()).unwrap();
            // SAFETY: of these classes, with its layout.
            let at = unsafe { b.realloc(at, old, new) }.unwrap();
            live.insert(at, new);
        }
        if i % 5 == 0 {
            let (at, layout) = live.pop_last().unwrap();
            // SAFETY: as above, and gone from the list.
            unsafe { a.dealloc(at, layout) };
        }
    }
    let mut shown = BTreeMap::new();
    classes.for_each_live(|block| {
        let layout = layout(block.size, block.align);
        let at = NonNull::new(block.address as *mut u8).unwrap();
        assert!(shown.insert(at, layout).is_none(), "shown twice");
    });
    assert_eq!(shown, live);
    assert_eq!(classes.check(), 0);
}

#[test]
fn large_blocks_of_zeros_keep_what_lies_around_them() {
    for words in ["on", "guard=2", "quarantine=0"] {
        let world = World::new(words);
        for (size, align) in [(600_000, 8), (1 << 20, 64), (3_000_000, 4096)] {
            let layout = layout(size, align);
            for turn in 0..6 {
                let at = match turn % 2 {
                    0 => world.classes.alloc_zeroed(layout),
                    _ => world.a.alloc_zeroed(layout),
                }
                .unwrap();
                // SAFETY: the block has this many bytes; it goes once.
                unsafe {
                    let bytes = std::slice::from_raw_parts(at.as_ptr(), size);
                    assert!(bytes.iter().all(|&b| b == 0), "{words} {layout:?}");
                    // Little of it, and all of it.
                    at.write_bytes(0x77, if turn < 3 { 1 } else { size });
                    world.b.dealloc(at, layout);
                }
                assert_eq!(world.classes.check(), 0, "{words} {layout:?}");
            }
        }
    }
}

#[test]
fn checked_heaps_end_with_all_they_have() {
    let family = Family::new().unwrap();
    for words in ["on", "guard=2", "quarantine=0"] {
        let options = Options::read(words, &mut |bad| panic!("{bad}")).unwrap();
        let heap = Heap::private_checked(&family, options).unwrap();
        for i in 0..300 {
            let layout = layout(i * 331, 8);
            let at = heap.alloc_zeroed(layout).unwrap();
            // SAFETY: the block has this many bytes; each goes once.
            unsafe {
                let bytes = std::slice::from_raw_parts(at.as_ptr(), layout.size());
                assert!(bytes.iter().all(|&b| b == 0));
                at.write_bytes(0x77, layout.size());
                if i % 2 == 0 {
                    heap.dealloc(at, layout);
                }
            }
        }
        assert!(heap.stats().charged_bytes > 1 << 20);
        drop(heap);
        family.trim();
        assert_eq!(family.large_held_bytes(), 0, "{words}");
        assert_eq!(family.pool().stats().out_bytes, 0, "{words}");
    }
}

#[test]
fn a_checked_block_becomes_smaller_although_every_allocation_fails() {
    let World { a, .. } = World::new("fail=1,fail-after=1");
    let at = a.alloc(layout(5000, 8)).unwrap();
    assert!(a.alloc(layout(8, 8)).is_err(), "on purpose");
    // SAFETY: with the layout that it has.
    unsafe {
        assert!(a.realloc(at, layout(5000, 8), layout(5001, 8)).is_err());
        assert_eq!(a.realloc(at, layout(5000, 8), layout(100, 8)), Ok(at));
        at.write_bytes(1, 100);
        a.dealloc(at, layout(100, 8));
    }
}

#[test]
fn a_checked_block_that_stays_is_as_aligned_as_was_asked_for_last() {
    let World { a, classes, .. } = World::new("fail=1,fail-after=2");
    let at = a.alloc(layout(5000, 256)).unwrap();
    let large = classes.alloc(layout(100_000, 16)).unwrap();
    // SAFETY: each with the layout that it has; damage and contradictions would end the process.
    unsafe {
        assert_eq!(a.realloc(at, layout(5000, 256), layout(100, 8)), Ok(at));
        let more = 2 << at.as_ptr().addr().trailing_zeros();
        assert!(a.realloc(at, layout(100, 8), layout(50, more)).is_err());
        assert_eq!(a.realloc_by_address(at, layout(50, 64)), Ok(at));
        let mut aligns = Vec::new();
        classes.for_each_live(|block| aligns.push((block.size, block.align)));
        aligns.sort_unstable();
        assert_eq!(aligns, [(50, 64), (100_000, 16)]);
        at.write_bytes(1, 50);
        classes.dealloc(at, layout(50, 64));
        assert_eq!(classes.realloc_by_address(large, layout(40, 16)), Ok(large));
        a.dealloc(large, layout(40, 16));
    }
}

/// The thread that reads the words blocks in the middle of it: its message about a bad word does not fit the full pipe behind
/// standard error.
#[test]
fn a_child_does_not_wait_for_the_thread_that_reads_the_words() {
    const NAME: &str = "a_child_does_not_wait_for_the_thread_that_reads_the_words";
    if role().is_none() {
        let ended = again(NAME, "fork", Some("bogus"));
        assert!(ended.status.success(), "{ended:?}");
        return;
    }
    let mut pipe = [0; 2];
    let byte = [0_u8];
    // SAFETY: descriptors of our own, and a byte that is there.
    unsafe {
        assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK), 0);
        while libc::write(pipe[1], byte.as_ptr().cast(), 1) == 1 {}
        assert_eq!(libc::fcntl(pipe[1], libc::F_SETFL, 0), 0);
        assert_eq!(libc::dup2(pipe[1], 2), 2);
    }
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let family = Family::new().unwrap();
        // SAFETY: asks for a number.
        send.send(unsafe { libc::gettid() }).unwrap();
        drop(Classes::new(&family));
    });
    let stat = format!("/proc/self/task/{}/stat", receive.recv().unwrap());
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
    let status = fork(|| {
        // SAFETY: descriptors of our own.
        unsafe { libc::dup2(libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY), 2) };
        drop(Classes::new(&Family::new().unwrap()));
    });
    // SAFETY: ends the process, which does not wait for its thread.
    unsafe { libc::_exit(i32::from(status != 0)) };
}
