//! The whole layer, in every mode that this machine has: nothing is lost, nothing is given twice.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::os::MetaRegion;
use crate::os::rseq::Mode;
use crate::os::testing::system;

/// Numbers 1 to `limit`; knows which ones it has handed out.
#[derive(Debug)]
pub(super) struct Tokens {
    home: Mutex<Vec<usize>>,
    fetches: AtomicUsize,
}

impl Tokens {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            home: Mutex::new((1..=limit).rev().collect()),
            fetches: AtomicUsize::new(0),
        }
    }

    pub(super) fn home(&self) -> Vec<usize> {
        let mut home = self.home.lock().unwrap().clone();
        home.sort_unstable();
        home
    }
}

impl Supply for Tokens {
    type Error = &'static str;
    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        let mut home = self.home.lock().unwrap();
        let n = rounds.len().min(home.len());
        let rest = home.len() - n;
        rounds[..n].copy_from_slice(&home[rest..]);
        home.truncate(rest);
        if n == 0 { Err("no tokens") } else { Ok(n) }
    }
    fn accept(&self, rounds: &[usize]) {
        self.home.lock().unwrap().extend_from_slice(rounds);
    }
}

pub(super) fn modes() -> Vec<Mode> {
    let mut modes = vec![Mode::Locked("test")];
    if let mode @ Mode::PerCpu(_) = crate::os::rseq::mode() {
        modes.push(mode);
    }
    modes
}

pub(super) fn each_mode(rounds: usize, most_rounds: usize, test: impl Fn(Stock)) {
    for mode in modes() {
        test(Stock::new(
            system(),
            StockConfig {
                rounds,
                most_rounds,
                mode,
            },
        ));
    }
}

#[test]
fn all_tokens_come_out_once_and_go_home() {
    each_mode(7, 255, |stock| {
        let tokens = Tokens::new(1000);
        let mut out: Vec<_> = (0..1000).map(|_| stock.get(&tokens).unwrap()).collect();
        assert_eq!(stock.get(&tokens), Err("no tokens"));
        assert_eq!(out.iter().collect::<HashSet<_>>().len(), 1000);
        while let Some(token) = out.pop() {
            stock.put(token, &tokens);
        }
        assert!(tokens.home().is_empty(), "put asks nothing of the supply");
        assert_eq!(stock.drain(&tokens), 1000);
        assert_eq!(tokens.home(), (1..=1000).collect::<Vec<_>>());
    });
}

#[test]
fn a_pair_at_the_edge_of_a_magazine_stays_on_its_cpu() {
    each_mode(4, 4, |stock| {
        let tokens = Tokens::new(100);
        let mut held: Vec<_> = (0..20).map(|_| stock.get(&tokens).unwrap()).collect();
        let before = (
            tokens.fetches.load(Ordering::Relaxed),
            stock.stats().magazines,
        );
        for _ in 0..1000 {
            stock.put(held.pop().unwrap(), &tokens);
            held.push(stock.get(&tokens).unwrap());
        }
        let after = (
            tokens.fetches.load(Ordering::Relaxed),
            stock.stats().magazines,
        );
        // A migration to the other CPU may cost one fetch; a thrashing edge would cost a thousand.
        assert!(
            after.0 - before.0 < 50 && after.1 - before.1 < 50,
            "{before:?} {after:?}"
        );
    });
}

#[test]
fn batches_are_whole_and_distinct() {
    each_mode(15, 255, |stock| {
        let tokens = Tokens::new(500);
        let mut out = [0; 300];
        assert_eq!(stock.get_many(&mut out, &tokens), Ok(300));
        assert_eq!(out.iter().collect::<HashSet<_>>().len(), 300);
        let mut more = [0; 300];
        assert_eq!(stock.get_many(&mut more, &tokens), Ok(200), "what there is");
        assert_eq!(stock.get_many(&mut [0; 3], &tokens), Err("no tokens"));
        assert_eq!(stock.get_many(&mut [], &tokens), Ok(0));
        stock.put_many(&out, &tokens);
        stock.put_many(&more[..200], &tokens);
        stock.put_many(&[], &tokens);
        assert_eq!(stock.drain(&tokens), 500);
        assert_eq!(tokens.home(), (1..=500).collect::<Vec<_>>());
    });
}

#[test]
fn handles_and_stock_share_their_rounds() {
    each_mode(5, 5, |stock| {
        let tokens = Tokens::new(100);
        {
            let mut a = StockHandle::new(&stock).unwrap();
            let mut b = StockHandle::new(&stock).unwrap();
            let out: Vec<_> = (0..100).map(|_| a.get(&tokens).unwrap()).collect();
            assert_eq!(b.get(&tokens), Err("no tokens"));
            for &token in &out {
                b.put(token, &tokens);
            }
            assert_eq!(
                b.len(),
                10,
                "as many as two magazines of five; the others lie in the depot"
            );
            let again: HashSet<_> = (0..90).map(|_| a.get(&tokens).unwrap()).collect();
            assert_eq!(again.len(), 90);
            for token in again {
                stock.put(token, &tokens);
            }
            assert!(a.is_empty());
        }
        assert_eq!(stock.drain(&tokens), 100);
    });
}

#[test]
fn a_full_owner_gives_the_older_half() {
    // As many as two magazines of the depot's, or as one can hold.
    for (rounds, most) in [(1, 2), (3, 6), (127, 254), (128, 255), (255, 255)] {
        each_mode(rounds, rounds, |stock| {
            let tokens = Tokens::new(300);
            let mut magazine = OwnMagazine::none();
            magazine.equip(&stock).unwrap();
            let puts = (1..=300).take_while(|&token| magazine.try_put(token));
            assert_eq!(puts.count(), most);
            magazine.put(most + 1, &stock, &tokens, stock.owner_rounds());
            assert_eq!(magazine.len(), most - most / 2 + 1);
            let kept = std::iter::from_fn(|| magazine.try_get());
            let newest = (most / 2 + 1..=most + 1).rev();
            assert!(kept.eq(newest), "{rounds} rounds");
            let older = (0..most / 2).map(|_| match magazine.try_get() {
                Some(token) => token,
                None => magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap(),
            });
            assert!(older.eq((1..=most / 2).rev()), "{rounds} rounds");
            magazine.give_up(&stock);
        });
    }
}

#[test]
fn an_owner_takes_no_more_than_it_may_hold() {
    each_mode(7, 7, |stock| {
        let tokens = Tokens::new(20);
        let fill = |leave: fn(&mut OwnMagazine, &Stock)| {
            let mut full = OwnMagazine::none();
            let all: Vec<_> = (0..14)
                .map(|_| full.get(&stock, &tokens, 14).unwrap())
                .collect();
            for token in all {
                if !full.try_put(token) {
                    full.put(token, &stock, &tokens, 14);
                }
            }
            assert_eq!(full.len(), 14);
            leave(&mut full, &stock);
        };
        for most in [0, 1, 3, 14] {
            let mut few = OwnMagazine::none();
            let most_or_one = most.max(1);
            fill(OwnMagazine::give_back);
            few.get(&stock, &tokens, most).unwrap();
            assert_eq!(few.len(), most_or_one - 1);
            few.give_back(&stock);
            stock.drain(&tokens);
            fill(OwnMagazine::give_up);
            let inherited = few.inherit(&stock, most).unwrap();
            assert_eq!((inherited.1, few.len()), (most_or_one, most_or_one - 1));
            // What it may hold falls while it has more.
            let room = most.min(1);
            few.put(30, &stock, &tokens, room);
            assert!(!few.try_put(31), "{most}");
            few.give_back(&stock);
            stock.drain(&tokens);
            *tokens.home.lock().unwrap() = (1..=20).collect();
        }
    });
}

#[test]
fn what_owners_give_fills_magazines() {
    // A half of 127 rounds each: two are in one magazine, where the depot's may have more than 127.
    for (rounds, magazines) in [(255, 5), (128, 5), (127, 9)] {
        let stock = Stock::new(
            system(),
            StockConfig {
                rounds,
                most_rounds: rounds,
                ..StockConfig::default()
            },
        );
        let tokens = Tokens::new(0);
        let mut magazine = OwnMagazine::none();
        magazine.equip(&stock).unwrap();
        // The first 254 or 255 fill it, and each half makes room for as many.
        for token in 1..=255 + 127 * 7 {
            if !magazine.try_put(token) {
                magazine.put(token, &stock, &tokens, stock.owner_rounds());
            }
        }
        assert_eq!(stock.stats().magazines, magazines, "{rounds} rounds");
        magazine.give_up(&stock);
    }
}

#[test]
fn a_handle_takes_what_lies_in_the_cpu_layer_before_it_fails() {
    each_mode(50, 50, |stock| {
        let tokens = Tokens::new(3);
        for _ in 0..3 {
            stock.put(stock.get(&tokens).unwrap(), &tokens);
        }
        let mut handle = StockHandle::new(&stock).unwrap();
        let mut got: Vec<_> = (0..3).map(|_| handle.get(&tokens).unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, [1, 2, 3]);
        assert!(handle.get(&tokens).is_err());
    });
}

/// Has a handle take three rounds of the supply, give them back and go.
fn leave_three(stock: &Stock, tokens: &Tokens) {
    let mut handle = StockHandle::new(stock).unwrap();
    let got: Vec<_> = (0..3).map(|_| handle.get(tokens).unwrap()).collect();
    for token in got {
        handle.put(token, tokens);
    }
}

#[test]
fn what_a_handle_leaves_is_found_by_whoever_asks() {
    each_mode(3, 3, |stock| {
        let tokens = Tokens::new(3);
        for _ in 0..3 {
            leave_three(&stock, &tokens);
        }
        assert_eq!(tokens.fetches.load(Ordering::Relaxed), 1, "the next handle");
        let token = stock.get(&tokens).expect("a CPU without rounds");
        assert_eq!(tokens.fetches.load(Ordering::Relaxed), 1);
        stock.put(token, &tokens);
        stock.drain(&tokens);
        leave_three(&stock, &tokens);
        assert_eq!(stock.drain(&tokens), 3);
        leave_three(&stock, &tokens);
        std::thread::scope(|s| {
            s.spawn(|| leave_three(&stock, &tokens)).join().unwrap();
        });
        assert_eq!(stock.reap(usize::MAX, &tokens), 0, "it was used");
        assert_eq!(stock.reap(usize::MAX, &tokens), 3);
        leave_three(&stock, &tokens);
        assert!(stock.close(&tokens));
        assert_eq!(tokens.home(), [1, 2, 3]);
    });
}

#[test]
fn reaping_gives_back_what_an_interval_did_not_use() {
    each_mode(10, 10, |stock| {
        let tokens = Tokens::new(200);
        let out: Vec<_> = (0..200).map(|_| stock.get(&tokens).unwrap()).collect();
        stock.put_many(&out, &tokens);
        assert_eq!(
            stock.reap(usize::MAX, &tokens),
            0,
            "this interval saw the depot empty"
        );
        let full = stock.stats().full_magazines;
        assert!(full >= 16);
        assert_eq!(
            stock.reap(35, &tokens),
            40,
            "whole magazines, up to the bound"
        );
        assert_eq!(stock.reap(usize::MAX, &tokens), 10 * (full - 4));
    });
}

#[test]
fn a_closed_stock_sends_everything_home() {
    each_mode(10, 10, |stock| {
        let tokens = Tokens::new(100);
        let out: Vec<_> = (0..60).map(|_| stock.get(&tokens).unwrap()).collect();
        stock.put_many(&out[..30], &tokens);
        assert!(stock.close(&tokens));
        assert_eq!(tokens.home().len(), 70);
        for &token in &out[30..] {
            stock.put(token, &tokens);
        }
        assert_eq!(tokens.home(), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn closing_twice_is_closing_once() {
    each_mode(10, 10, |stock| {
        let tokens = Tokens::new(10);
        assert!(stock.close(&tokens));
        assert!(stock.close(&tokens));
        assert!(!stock.gather(), "there is nothing to gather any more");
    });
}

#[test]
fn stray_rounds_share_a_magazine() {
    each_mode(10, 10, |stock| {
        let tokens = Tokens::new(25);
        for round in 1..=25 {
            stock.put_into_depot(round, &tokens);
        }
        let stats = stock.stats();
        assert_eq!((stats.full_magazines, stats.full_rounds), (3, 25));
    });
}

/// Every thread holds tokens, checks that no other thread holds them, and gives them back in another order, while one
/// thread empties the CPU layer again and again.
#[test]
fn no_token_has_two_owners() {
    // An interpreter gets what it can do within minutes.
    const THREADS: usize = if cfg!(miri) { 3 } else { 6 };
    const TOKENS: usize = if cfg!(miri) { 260 } else { 800 };
    let turns = if cfg!(miri) {
        40
    } else if cfg!(debug_assertions) {
        30_000
    } else {
        200_000
    };
    each_mode(7, 63, |stock| {
        let tokens = Tokens::new(TOKENS);
        let owners: Vec<AtomicUsize> = (0..=TOKENS).map(|_| AtomicUsize::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            let workers: Vec<_> = (1..=THREADS)
                .map(|me| {
                    let (stock, tokens, owners) = (&stock, &tokens, &owners);
                    s.spawn(move || {
                        let mut held = Vec::new();
                        let mut state = me as u64;
                        let mut handle = (me % 2 == 0).then(|| StockHandle::new(stock).unwrap());
                        for _ in 0..turns {
                            state = state
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1_442_695_040_888_963_407);
                            let pick = (state >> 33) as usize;
                            if held.len() < TOKENS / 8
                                && (held.is_empty() || pick.is_multiple_of(2))
                            {
                                let got = match &mut handle {
                                    Some(h) if pick.is_multiple_of(4) => h.get(tokens),
                                    _ => stock.get(tokens),
                                };
                                let token = got.unwrap();
                                assert_eq!(
                                    owners[token].swap(me, Ordering::AcqRel),
                                    0,
                                    "token {token} has two owners"
                                );
                                held.push(token);
                            } else {
                                let token = held.swap_remove(pick % held.len());
                                assert_eq!(owners[token].swap(0, Ordering::AcqRel), me);
                                match &mut handle {
                                    Some(h) if pick % 4 == 1 => h.put(token, tokens),
                                    _ => stock.put(token, tokens),
                                }
                            }
                        }
                        for token in held {
                            owners[token].store(0, Ordering::Release);
                            stock.put(token, tokens);
                        }
                    })
                })
                .collect();
            let drainer = s.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    stock.gather();
                    stock.reap(50, &tokens);
                    std::thread::yield_now();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            drainer.join().unwrap();
        });
        stock.drain(&tokens);
        assert_eq!(tokens.home(), (1..=TOKENS).collect::<Vec<_>>());
    });
}

/// Sections that fault in their middle, because they copy a magazine to fresh memory, against a thread that does
/// nothing but empty the CPU layer: a fault does not restart a section, so without the barrier the CPU layer would lose
/// magazines that a section is still reading.
#[test]
#[cfg_attr(
    miri,
    ignore = "there are no sections to wait for, and the loop takes for ever"
)]
fn emptying_waits_for_sections_under_way() {
    const TOKENS: usize = 2000;
    let turns = 5000;
    each_mode(255, 255, |stock| {
        let tokens = Tokens::new(TOKENS);
        let owned: Vec<AtomicBool> = (0..=TOKENS).map(|_| AtomicBool::new(false)).collect();
        let working = AtomicUsize::new(2);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..turns {
                        // The first store into it is inside the section.
                        let fresh = MetaRegion::new(system(), 200 * WORD, WORD).unwrap();
                        // SAFETY: 200 words of memory that is zero and ours until the end of the turn.
                        let batch = unsafe {
                            core::slice::from_raw_parts_mut(
                                fresh.span().at.as_ptr().cast::<usize>(),
                                200,
                            )
                        };
                        let n = stock.get_many(batch, &tokens).unwrap_or(0);
                        for &token in &batch[..n] {
                            let taken = owned[token].swap(true, Ordering::AcqRel);
                            if taken {
                                working.fetch_sub(1, Ordering::Relaxed);
                            }
                            assert!(!taken, "token {token} has two owners");
                        }
                        for &token in &batch[..n] {
                            owned[token].store(false, Ordering::Release);
                        }
                        stock.put_many(&batch[..n], &tokens);
                    }
                    working.fetch_sub(1, Ordering::Relaxed);
                });
            }
            while working.load(Ordering::Relaxed) > 0 {
                stock.gather();
                std::hint::black_box(stock.stats());
            }
        });
        stock.drain(&tokens);
        assert_eq!(tokens.home(), (1..=TOKENS).collect::<Vec<_>>());
    });
}

/// A machine may hide CPUs on which threads run nevertheless: nothing that lies there is lost.
#[test]
fn what_lies_on_cpus_that_the_machine_hides_is_found() {
    for mode in modes() {
        if matches!(mode, Mode::Locked(_)) {
            continue; // Slots are chosen among those that are known.
        }
        let magazines = std::sync::Arc::new(Magazines::new(system()));
        let config = StockConfig {
            rounds: 7,
            most_rounds: 7,
            mode,
        };
        let mut made = 0;
        for turn in 0..20 {
            let tokens = Tokens::new(100);
            let mut stock = Stock::sharing(magazines.clone(), system(), config.clone());
            stock.pretend_cpus(0);
            let out: Vec<_> = (0..100).map(|_| stock.get(&tokens).unwrap()).collect();
            stock.put_many(&out, &tokens);
            assert!(stock.stats().pushes > 0, "this CPU has a slot");
            if turn % 2 == 0 {
                assert_eq!(stock.drain(&tokens), 100);
                assert_eq!(tokens.home(), (1..=100).collect::<Vec<_>>());
            }
            drop(stock);
            // A thread that moves between CPUs may need a few more.
            assert!(turn == 0 || magazines.made() <= made + 4);
            made = made.max(magazines.made());
        }
    }
}

/// A supply that fails for good, after rounds from elsewhere came into the stock.
struct Broken<'a> {
    stock: &'a Stock,
    tokens: Tokens,
}

impl Supply for Broken<'_> {
    type Error = &'static str;
    fn is_final(_: &Self::Error) -> bool {
        true
    }
    fn fetch(&self, _: &mut [usize]) -> Result<usize, Self::Error> {
        self.stock.stock_up(&[1000, 1001], &self.tokens);
        self.stock.put(1002, &self.tokens);
        Err("broken")
    }
    fn accept(&self, rounds: &[usize]) {
        self.tokens.accept(rounds);
    }
}

#[test]
fn an_error_that_must_be_told_is_told_whatever_is_in_stock() {
    each_mode(7, 7, |stock| {
        let broken = Broken {
            stock: &stock,
            tokens: Tokens::new(0),
        };
        assert_eq!(stock.get(&broken), Err("broken"));
        stock.drain(&broken.tokens);
        let mut handle = StockHandle::new(&stock).unwrap();
        assert_eq!(handle.get(&broken), Err("broken"));
        stock.drain(&broken.tokens);
        let tokens = Tokens::new(5);
        let out: Vec<_> = (0..5).map(|_| stock.get(&tokens).unwrap()).collect();
        stock.put_many(&out, &tokens);
        assert_eq!(stock.get_many(&mut [0; 20], &broken), Err("broken"));
        stock.drain(&broken.tokens);
        let mut home = broken.tokens.home();
        home.dedup();
        assert_eq!(
            home,
            [1, 2, 3, 4, 5, 1000, 1001, 1002],
            "what was had before it failed is put back"
        );
    });
}

#[test]
fn the_depot_is_emptied_where_it_may_have_enough() {
    each_mode(4, 4, |stock| {
        let tokens = Tokens::new(100);
        stock.stock_up(&[101, 102, 103, 104, 105, 106, 107, 108], &tokens);
        assert_eq!(stock.empty_depot(9, &tokens), 0);
        assert_eq!(tokens.home().len(), 100);
        assert_eq!(stock.empty_depot(8, &tokens), 8);
        assert_eq!(tokens.home().len(), 108);
        let mut handle = StockHandle::new(&stock).unwrap();
        handle.put(109, &tokens);
        assert_eq!(stock.empty_depot(1, &tokens), 0, "it is not in the depot");
        drop(handle);
        assert_eq!(stock.empty_depot(1, &tokens), 1, "what its owner left is");
    });
}
