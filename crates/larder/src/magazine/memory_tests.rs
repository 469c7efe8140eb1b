//! What the layer takes from the system and from its supply, and what it does without it.

use std::collections::HashSet;
use std::sync::{Arc, Barrier};

use super::own::OwnMagazine;
use super::tests::{Tokens, each_mode, modes};
use super::*;
use crate::os::rseq::Mode;
use crate::os::testing::{Base, Call, Failing, Hooked, Recording, system};

/// A stock whose system refuses its reservations from number `first` on: the first magazines', then the CPU layer's.
fn without_memory(first: usize, mode: Mode) -> Stock {
    let system = Hooked::new(
        Base::default(),
        Failing::only(Call::Reserve, first, usize::MAX),
    );
    let config = StockConfig {
        mode,
        ..StockConfig::default()
    };
    Stock::new(Arc::new(system), config)
}

#[test]
fn without_memory_for_the_cpu_layer_rounds_flow_through_the_depot() {
    for mode in modes() {
        let stock = without_memory(1, mode);
        let tokens = Tokens::new(10);
        let out: Vec<_> = (0..10).map(|_| stock.get(&tokens).unwrap()).collect();
        assert_eq!(out.iter().collect::<HashSet<_>>().len(), 10);
        assert!(stock.get(&tokens).is_err());
        for token in out {
            stock.put(token, &tokens);
        }
        assert_eq!(stock.stats().pushes, 0, "there is no CPU layer");
        assert_eq!(stock.drain(&tokens), 10);
        assert_eq!(tokens.home(), (1..=10).collect::<Vec<_>>());
    }
}

#[test]
fn a_stock_that_nobody_used_has_taken_no_memory() {
    for mode in modes() {
        let system = Arc::new(Hooked::new(Base::default(), Recording::default()));
        let config = StockConfig {
            mode,
            ..StockConfig::default()
        };
        let stock = Stock::new(system.clone(), config);
        let tokens = Tokens::new(1);
        assert_eq!((stock.try_get(), stock.try_put(1)), (None, false));
        assert_eq!(stock.drain(&tokens), 0);
        assert_eq!(system.hook().count(Call::Reserve), 0);
        stock.put(stock.get(&tokens).unwrap(), &tokens);
        assert_eq!(stock.stats().pushes, 1, "and now it has a CPU layer");
        drop(stock);
        let hook = system.hook();
        assert_eq!(hook.count(Call::Reserve), hook.count(Call::Release));
    }
}

#[test]
fn without_memory_for_magazines_rounds_still_flow() {
    for mode in modes() {
        let stock = without_memory(0, mode);
        let tokens = Tokens::new(10);
        let out: Vec<_> = (0..10).map(|_| stock.get(&tokens).unwrap()).collect();
        assert!(stock.get(&tokens).is_err());
        for token in out {
            stock.put(token, &tokens);
        }
        assert_eq!(tokens.home(), (1..=10).collect::<Vec<_>>());
        assert!(StockHandle::new(&stock).is_err());
        let mut magazine = OwnMagazine::none();
        let token = magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap();
        assert_eq!(
            tokens.home().len(),
            9,
            "one was fetched: nothing can keep more"
        );
        magazine.put(token, &stock, &tokens, stock.owner_rounds());
        assert_eq!(tokens.home(), (1..=10).collect::<Vec<_>>());
    }
}

/// At a memory limit every put would ask the system again, in vain.
#[test]
fn memory_that_was_refused_is_not_asked_for_at_each_put() {
    // The magazines' memory, or the CPU layer's.
    for first in 0..2 {
        for mode in modes() {
            let failing = Hooked::new(
                Base::default(),
                Failing::only(Call::Reserve, first, usize::MAX),
            );
            let system = Arc::new(Hooked::new(failing, Recording::default()));
            let config = StockConfig {
                mode,
                ..StockConfig::default()
            };
            let stock = Stock::new(system.clone(), config);
            let tokens = Tokens::new(1000);
            let out: Vec<_> = (0..1000).map(|_| stock.get(&tokens).unwrap()).collect();
            let asked = system.hook().count(Call::Reserve);
            for token in out {
                stock.put(token, &tokens);
            }
            let puts = system.hook().count(Call::Reserve) - asked;
            assert!((1..=50).contains(&puts), "{puts} times for 1000 puts");
            stock.drain(&tokens);
            assert_eq!(tokens.home(), (1..=1000).collect::<Vec<_>>());
        }
    }
}

#[test]
fn memory_that_comes_back_is_used_again() {
    for mode in modes() {
        let system = Hooked::new(Base::default(), Failing::only(Call::Reserve, 0, 1));
        let config = StockConfig {
            mode,
            ..StockConfig::default()
        };
        let stock = Stock::new(Arc::new(system), config);
        let tokens = Tokens::new(1);
        let turns = (0..1000).take_while(|_| {
            stock.put(stock.get(&tokens).unwrap(), &tokens);
            stock.stats().pushes == 0
        });
        assert!((10..500).contains(&turns.count()));
    }
}

/// A supply in which every thread waits until all are in it: the worst moment for a stock that fetches by magazines.
struct Crowded {
    tokens: Tokens,
    everybody: Barrier,
}

impl Supply for Crowded {
    type Error = &'static str;
    fn fetch(&self, rounds: &mut [usize]) -> Result<usize, Self::Error> {
        self.everybody.wait();
        self.tokens.fetch(rounds)
    }
    fn accept(&self, rounds: &[usize]) {
        self.tokens.accept(rounds);
    }
}

#[test]
fn what_is_fetched_is_bounded_by_cpus_and_not_by_threads() {
    const ROUNDS: usize = 63;
    let cpus = crate::os::usable_cpus();
    let threads = 4 * cpus + 8;
    let total = 1000 * threads;
    each_mode(ROUNDS, ROUNDS, |stock| {
        let supply = Crowded {
            tokens: Tokens::new(total),
            everybody: Barrier::new(threads),
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| stock.get(&supply).unwrap());
            }
        });
        let fetched = total - supply.tokens.home().len();
        assert!(
            (threads..=cpus * ROUNDS + threads).contains(&fetched),
            "{threads} threads on {cpus} CPUs fetched {fetched}"
        );
    });
}

#[test]
fn an_owner_takes_its_magazine_when_it_needs_one() {
    each_mode(7, 7, |stock| {
        let tokens = Tokens::new(100);
        let mut magazine = OwnMagazine::none();
        assert_eq!(
            (magazine.try_get(), magazine.try_put(1), magazine.len()),
            (None, false, 0)
        );
        magazine.give_up(&stock);
        assert_eq!(stock.stats().magazines, 0, "it had nothing to give");
        let out: Vec<_> = (0..30)
            .map(|_| magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap())
            .collect();
        for &token in &out {
            if !magazine.try_put(token) {
                magazine.put(token, &stock, &tokens, stock.owner_rounds());
            }
        }
        magazine.give_up(&stock);
        assert_eq!((magazine.try_get(), magazine.len()), (None, 0));
        let mut first_put = OwnMagazine::none();
        first_put.put(
            magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap(),
            &stock,
            &tokens,
            stock.owner_rounds(),
        );
        magazine.give_up(&stock);
        first_put.give_up(&stock);
        stock.drain(&tokens);
        assert_eq!(tokens.home(), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn a_short_life_costs_an_owner_one_magazine() {
    each_mode(7, 7, |stock| {
        let tokens = Tokens::new(100);
        for _ in 0..10 {
            let mut magazine = OwnMagazine::none();
            let out =
                [(); 5].map(|()| magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap());
            for token in out {
                assert!(
                    magazine.try_put(token),
                    "there is room where they came from"
                );
            }
            assert_eq!(magazine.len(), 7);
            magazine.give_up(&stock);
        }
        assert_eq!(stock.stats().magazines, 1);
        stock.drain(&tokens);
        assert_eq!(tokens.home(), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn an_owner_that_overflows_keeps_everything() {
    each_mode(7, 7, |stock| {
        let tokens = Tokens::new(100);
        let out: Vec<_> = (0..40).map(|_| stock.get(&tokens).unwrap()).collect();
        let mut magazine = OwnMagazine::none();
        for &token in &out {
            if !magazine.try_put(token) {
                magazine.put(token, &stock, &tokens, stock.owner_rounds());
            }
        }
        assert!(
            magazine.len() <= 14 && magazine.len() > 7,
            "{}",
            magazine.len()
        );
        // Across the edge and back: from the own magazine, then from the depot.
        let again: Vec<_> = (0..40)
            .map(|_| {
                magazine
                    .try_get()
                    .unwrap_or_else(|| magazine.get(&stock, &tokens, stock.owner_rounds()).unwrap())
            })
            .collect();
        for &token in &again {
            magazine.put(token, &stock, &tokens, stock.owner_rounds());
        }
        magazine.give_up(&stock);
        stock.drain(&tokens);
        assert_eq!(tokens.home(), (1..=100).collect::<Vec<_>>());
    });
}

#[test]
fn a_stock_that_goes_leaves_its_magazines_to_those_it_shared_them_with() {
    for mode in modes() {
        let magazines = Arc::new(Magazines::new(system()));
        let stock = || {
            let config = StockConfig {
                rounds: 7,
                most_rounds: 7,
                mode,
            };
            Stock::sharing(magazines.clone(), system(), config)
        };
        let mut made = 0;
        for turn in 0..20 {
            let stock = stock();
            let tokens = Tokens::new(100);
            let out: Vec<_> = (0..100).map(|_| stock.get(&tokens).unwrap()).collect();
            stock.put_many(&out, &tokens);
            let now = stock.stats().magazines;
            assert!(now > 10, "a hundred rounds fill fourteen magazines");
            // A thread that moves between CPUs may need a few more.
            assert!(turn == 0 || now <= made + 4, "{made} magazines, then {now}");
            made = made.max(now);
        }
    }
}
