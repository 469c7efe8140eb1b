//! The CPU layer and the depot together under every order of events: `RUSTFLAGS="--cfg loom" cargo test -p larder --lib --target-dir
//! target/loom stock`.

use core::cell::RefCell;

use loom::sync::Arc as Shared;
use loom::thread;

use super::*;
use crate::magazine::sections;
use crate::os::Linux;
use crate::os::rseq::{Mode, Registration};

/// A supply that has no rounds and keeps what one thread returns. Each thread has its own, so that it orders nothing.
#[derive(Debug, Default)]
struct Home(RefCell<Vec<usize>>);

impl Supply for Home {
    type Error = ();
    fn fetch(&self, _: &mut [usize]) -> Result<usize, ()> {
        Err(())
    }
    fn accept(&self, rounds: &[usize]) {
        self.0.borrow_mut().extend_from_slice(rounds);
    }
}

/// A stock of magazines with one round each. CPU 0 has round 0.
fn stocked(mode: Mode) -> Stock {
    let mut stock = Stock::new(
        Arc::new(Linux),
        StockConfig {
            rounds: 1,
            most_rounds: 1,
            mode,
        },
    );
    stock.pretend_cpus(2);
    stock.put(0, &Home::default());
    assert_eq!(stock.stats().pushes, 1, "it lies in the CPU layer");
    stock
}

/// One thread on CPU 0 does `ours` while another on CPU 1 does `theirs`. Afterwards each of `rounds` rounds has one owner or
/// is back in the supply.
fn beside(
    rounds: usize,
    ours: impl Fn(&Stock, &Home) -> Option<usize> + Copy + Sync + Send + 'static,
    theirs: impl Fn(&Stock, &Home) -> Option<usize> + Copy + Sync + Send + 'static,
) {
    for mode in [
        Mode::PerCpu(Registration::of_a_model()),
        Mode::Locked("test"),
    ] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let mut stock = Shared::new(stocked(mode));
            let other = {
                let stock = stock.clone();
                thread::spawn(move || {
                    sections::run_on(1);
                    let home = Home::default();
                    let held = theirs(&stock, &home);
                    (held, home.0.take())
                })
            };
            let home = Home::default();
            let held = ours(&stock, &home);
            let (others, gone) = other.join().unwrap();
            let mut all: Vec<_> = [home.0.take(), gone].concat();
            all.extend(held.into_iter().chain(others));
            if stock.cpu_layer.is_closed() {
                // In locked mode the other thread may have held a slot's lock: under loom the closing thread does not wait
                // long.
                let per_cpu = matches!(mode, Mode::PerCpu(_));
                Shared::get_mut(&mut stock)
                    .unwrap()
                    .cpu_layer
                    .clear(|magazine| {
                        assert!(!per_cpu || magazine.len() == 0, "left behind");
                        all.extend(magazine.rounds());
                    });
            } else {
                let home = Home::default();
                stock.drain(&home);
                all.extend(home.0.take());
            }
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..rounds), "{mode:?} {all:?}");
        });
    }
}

/// A round that comes while the stock is closed goes back to the supply, from the thread that sees it last.
#[test]
fn stock_closes_beside_a_round_that_comes() {
    beside(
        2,
        |stock, home| {
            stock.put(1, home);
            None
        },
        |stock, home| {
            stock.close(home);
            None
        },
    );
}

#[test]
fn stock_is_emptied_beside_a_round_that_comes() {
    beside(
        2,
        |stock, home| {
            stock.put(1, home);
            None
        },
        |stock, home| {
            stock.drain(home);
            None
        },
    );
}

/// Without a supply: what a thread finds lay on the other's CPU or in the depot.
#[test]
fn stock_rounds_go_between_two_cpus() {
    beside(
        2,
        |stock, home| {
            stock.put(1, home);
            stock.get(home).ok()
        },
        |stock, home| stock.get(home).ok(),
    );
}
