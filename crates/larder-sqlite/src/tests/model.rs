//! Random calls of the methods, for every rule, beside a map that says what must be there.

use std::collections::{HashMap, HashSet};

use larder_policy::{Adaptive, Policy, Visitor, rules, with_rule};

use crate::cache::{Cache, FIND, IF_EASY};
use crate::ffi::Page;
use crate::process::Process;

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

/// A cache, and of each page that may be in it what is written there and whether it is pinned.
struct Driven<P: Policy> {
    cache: *mut Cache<P>,
    bytes: usize,
    limit: usize,
    purgeable: bool,
    pages: HashMap<u32, (u64, Option<*mut Page>)>,
    stamp: u64,
}

const MUST: i32 = 2;
const EXTRA: usize = 136;

impl<P: Policy> Driven<P> {
    fn new(bytes: usize, purgeable: bool, process: &'static Process) -> Self {
        // SAFETY: the cache is destroyed at the end, and one thread uses it.
        let made = unsafe { Cache::create(bytes, EXTRA, purgeable, make::<P>, process) };
        let mut driven = Self {
            cache: made.unwrap(),
            bytes,
            limit: 0,
            purgeable,
            pages: HashMap::new(),
            stamp: 0,
        };
        driven.set_limit(40);
        driven
    }

    fn cache(&self) -> &Cache<P> {
        // SAFETY: it is not destroyed yet.
        unsafe { &*self.cache }
    }

    fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.cache().set_limit(limit);
    }

    /// The first and the last word of a page and of its extra bytes: the key, and the stamp.
    fn words(&self, page: *mut Page) -> [*mut u64; 4] {
        // SAFETY: a pinned page has so many bytes, and so many of the owner's.
        unsafe {
            let (buf, extra) = ((*page).buf.cast::<u8>(), (*page).extra.cast::<u8>());
            assert!((buf as usize).is_multiple_of(64) && (extra as usize).is_multiple_of(8));
            [buf, buf.add(self.bytes - 8), extra, extra.add(EXTRA - 8)].map(<*mut u8>::cast)
        }
    }

    fn fetch(&mut self, key: u32, create: i32) -> bool {
        let page = self.cache().fetch(key, create);
        let known = self.pages.get(&key).copied();
        if page.is_null() {
            assert!(
                known.is_none_or(|(_, pinned)| pinned.is_none()),
                "a pinned page is gone"
            );
            self.pages.remove(&key);
            return false;
        }
        let words = self.words(page);
        // SAFETY: the words are the pinned page's.
        unsafe {
            if *words[2] == 0 {
                // New.
                assert!(create != FIND && known.is_none_or(|(_, pinned)| pinned.is_none()));
                self.stamp += 1;
                words.into_iter().for_each(|word| *word = self.stamp);
            } else {
                assert_eq!(words.map(|word| *word), [known.unwrap().0; 4]);
                assert!(known.unwrap().1.is_none_or(|at| at == page));
            }
            self.pages.insert(key, (*words[0], Some(page)));
        }
        true
    }

    /// Lets a page go that is pinned.
    fn let_go(&mut self, key: u32) {
        let pinned = self.pages.get_mut(&key).and_then(|known| known.1.take());
        // SAFETY: the page is pinned.
        unsafe { self.cache().unpin(pinned.unwrap(), false) };
    }

    /// Uses a page, and lets it go.
    fn look(&mut self, key: u32) {
        assert!(self.fetch(key, MUST));
        self.let_go(key);
    }

    /// Checks the cache a last time.
    fn end(self) {
        self.cache().check().unwrap();
        // SAFETY: nothing uses it any more.
        unsafe { Cache::destroy(self.cache) };
    }

    fn any_pinned(&self, dice: &mut Dice) -> Option<(u32, *mut Page)> {
        let mut pinned: Vec<_> = self
            .pages
            .iter()
            .filter_map(|(key, at)| Some((*key, at.1?)))
            .collect();
        pinned.sort_unstable_by_key(|(key, _)| *key);
        (!pinned.is_empty()).then(|| pinned[dice.below(pinned.len() as u32) as usize])
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(64) {
            0..34 => {
                let wide = if dice.below(8) == 0 { 200 } else { 50 };
                let key = 1 + dice.below(wide);
                let create = [FIND, IF_EASY, MUST][dice.below(3) as usize];
                self.fetch(key, create);
            }
            34..58 => {
                if let Some((key, page)) = self.any_pinned(dice) {
                    let discard = dice.below(10) == 0;
                    // SAFETY: the page is pinned.
                    unsafe { self.cache().unpin(page, discard) };
                    if discard {
                        self.pages.remove(&key);
                    } else if let Some(known) = self.pages.get_mut(&key) {
                        known.1 = None;
                    }
                }
            }
            58..60 => {
                if let Some((key, page)) = self.any_pinned(dice) {
                    let to = 1 + dice.below(250);
                    if self
                        .pages
                        .get(&to)
                        .is_none_or(|(_, pinned)| pinned.is_none())
                    {
                        // SAFETY: the page is pinned.
                        unsafe { self.cache().rekey(page, to) };
                        let moved = self.pages.remove(&key).unwrap();
                        self.pages.insert(to, moved);
                    }
                }
            }
            60 => {
                let from = [1, 2, 20, 150][dice.below(4) as usize];
                self.cache().truncate(from);
                self.pages.retain(|&key, _| key < from);
            }
            61 => self.set_limit([0, 1, 12, 40, 90][dice.below(5) as usize]),
            62 if dice.below(8) == 0 => {
                self.cache().shrink();
                if self.purgeable {
                    self.pages.retain(|_, (_, pinned)| pinned.is_some());
                    assert_eq!(self.cache().len(), self.pages.len());
                }
            }
            _ => {}
        }
        let pinned = self
            .pages
            .values()
            .filter(|(_, pinned)| pinned.is_some())
            .count();
        // Pages in use stay whatever the limit is, and what came while all were in use goes when one is let go.
        let most = self.limit.max(pinned);
        assert!(
            !self.purgeable || self.cache().len() <= most,
            "{} pages, {most} may be",
            self.cache().len()
        );
        self.cache().check().unwrap();
    }
}

fn make<P: Policy>(frames: usize) -> Option<P> {
    struct Again<P>(core::marker::PhantomData<P>);
    impl<Q: Policy> Visitor for Again<Q> {
        type Out = Option<Q>;
        fn visit<P: Policy>(self, _: &'static str, rule: P) -> Option<Q> {
            let any: Box<dyn core::any::Any> = Box::new(rule);
            any.downcast().ok().map(|rule| *rule)
        }
    }
    let of = |name| with_rule(name, frames, Again(core::marker::PhantomData)).ok()?;
    rules().iter().find_map(|rule| of(rule.name))
}

struct Run {
    process: &'static Process,
    budget: Option<usize>,
    /// Memory is refused now and then.
    failing: bool,
}

impl Visitor for Run {
    type Out = ();

    fn visit<P: Policy>(self, name: &'static str, _: P) {
        let mut dice = Dice(name.len() as u64 * 77 + 5);
        self.process.set_budget(self.budget);
        let pool = self.process.family().unwrap().pool();
        let sizes = [(4096, true), (512, true), (4096, false), (65_536, true)];
        let mut caches =
            sizes.map(|(bytes, purgeable)| Driven::<P>::new(bytes, purgeable, self.process));
        for at in 0..4000 {
            if self.failing && at % 50 == 0 {
                self.process.trim();
                let limit = if at % 100 == 0 { 0 } else { usize::MAX };
                pool.set_limit_bytes(limit);
            }
            for cache in &mut caches {
                cache.step(&mut dice);
            }
            let counted = caches.iter().filter(|cache| cache.purgeable);
            let bytes = counted.map(|cache| cache.cache().len() * cache.bytes);
            assert_eq!(self.process.used(), bytes.sum::<usize>(), "{name}");
        }
        pool.set_limit_bytes(usize::MAX);
        let stats = self.process.stats();
        let sum = |of: fn(&crate::CacheStats) -> u64| stats.caches.iter().map(of).sum::<u64>();
        let (hits, misses) = (sum(|cache| cache.hits), sum(|cache| cache.misses));
        assert!(
            hits > 300 && misses > 300,
            "{name}: {hits} hits, {misses} misses"
        );
        for cache in caches {
            cache.end();
        }
        let after = self.process.stats();
        assert_eq!(
            (after.bytes, after.hits, after.caches.len()),
            (0, stats.hits, 0),
            "{name}"
        );
        assert_eq!(self.process.used(), 0, "{name}");
    }
}

#[test]
fn pages_keep_their_contents_while_they_are_there_under_every_rule() {
    let process: &'static Process = Box::leak(Box::new(Process::new()));
    for rule in rules() {
        for (budget, failing) in [(None, false), (Some(3 << 20), false), (None, true)] {
            let run = Run {
                process,
                budget,
                failing,
            };
            with_rule(rule.name, 1, run).unwrap();
        }
    }
}

/// A process whose caches share a budget of so many pages of 4096 bytes.
fn budget_of(pages: Option<usize>) -> &'static Process {
    let process: &'static Process = Box::leak(Box::new(Process::new()));
    process.set_budget(pages.map(|pages| pages * 4096));
    process
}

/// A cache with the default rule.
fn cache_of(limit: usize, process: &'static Process) -> Driven<Adaptive> {
    let mut cache = Driven::new(4096, true, process);
    cache.set_limit(limit);
    cache
}

/// Every cache uses 600 pages in turns, again and again, while all together have no more than `most`. Returns how many each has then.
fn use_in_turns<const N: usize>(mut caches: [&mut Driven<Adaptive>; N], most: usize) -> [usize; N] {
    for at in 0..4000 {
        for cache in &mut caches {
            cache.look(1 + at % 600);
        }
        let all: usize = caches.iter().map(|cache| cache.cache().len()).sum();
        assert!(all <= most, "{all}");
    }
    caches.map(|cache| cache.cache().len())
}

/// One cache takes all of the budget; what a second one needs goes from the first to it, up to an equal share.
#[test]
fn a_budget_moves_to_the_cache_that_misses() {
    let process = budget_of(Some(400));
    let [mut one, mut two] = [(); 2].map(|()| cache_of(1000, process));
    assert_eq!(use_in_turns([&mut one], 400), [400]);
    let lens = use_in_turns([&mut one, &mut two], 400 + 16);
    assert!(lens.iter().all(|&len| len > 180), "{lens:?}");
    one.end();
    two.end();
    assert_eq!(process.used(), 0);
}

#[test]
fn a_cache_that_its_own_limit_bounds_gives_pages_to_one_below_its_share() {
    let process = budget_of(Some(400));
    let (mut one, mut two) = (cache_of(300, process), cache_of(1000, process));
    assert_eq!(use_in_turns([&mut one], 300), [300]);
    let lens = use_in_turns([&mut one, &mut two], 400);
    assert!(lens.iter().all(|&len| len > 180), "{lens:?}");
    one.end();
    two.end();
    assert_eq!(process.used(), 0);
}

#[test]
fn what_a_transaction_had_beyond_the_budget_goes_as_pages_are_missed() {
    let process = budget_of(Some(100));
    for limit in [1000, 300] {
        let mut cache = cache_of(limit, process);
        for key in 1..=300 {
            assert!(cache.fetch(key, MUST));
        }
        assert_eq!(cache.cache().len(), 300);
        (1..=300).for_each(|key| cache.let_go(key));
        (301..=600).for_each(|key| cache.look(key));
        assert_eq!((cache.cache().len(), process.used()), (100, 100 * 4096));
        cache.end();
    }
}

#[test]
fn a_rule_is_made_for_the_pages_that_may_come() {
    const NO_LIMIT: usize = i32::MAX as usize;
    for (budget, limit, frames) in [
        (None, 300, 300),
        (None, 12_800, 12_800),
        (None, NO_LIMIT, 65_536),
        (Some(400), 300, 300),
        (Some(400), NO_LIMIT, 400),
        (Some(1), NO_LIMIT, 16),
    ] {
        let mut cache = cache_of(limit, budget_of(budget));
        cache.look(1);
        assert_eq!(cache.cache().capacity(), Some(frames), "{budget:?} {limit}");
        // SQLite reads the first page before it hears of another size.
        for (other, frames) in [(10, 10), (limit, frames)] {
            cache.set_limit(other);
            assert_eq!(cache.cache().capacity(), Some(frames), "{budget:?} {limit}");
        }
        cache.end();
    }
}

#[test]
fn a_rule_grows_with_the_pages_that_come() {
    let mut cache = Driven::<Adaptive>::new(512, true, budget_of(None));
    cache.set_limit(100_000);
    let mut seen = Vec::new();
    for key in 1..=66_000 {
        cache.look(key);
        seen.extend(cache.cache().capacity());
        seen.dedup();
    }
    assert_eq!(seen, [65_536, 100_000]);
    cache.end();
}

#[test]
fn where_no_memory_is_left_a_page_is_used_again() {
    let process = budget_of(None);
    let mut cache = cache_of(1000, process);
    // As many as a slab has.
    (1..=15).for_each(|key| cache.look(key));
    let pool = process.family().unwrap().pool();
    process.trim();
    pool.set_limit_bytes(0);
    for key in 101..=150 {
        assert!(cache.fetch(key, IF_EASY), "{key}");
        cache.let_go(key);
    }
    assert_eq!((cache.cache().len(), process.used()), (15, 15 * 4096));
    cache.end();
}

#[test]
fn free_memory_goes_back_when_many_caches_end_and_stays_between_those_of_queries() {
    let process = budget_of(None);
    let filled = |pages: u32| {
        let mut cache = cache_of(1000, process);
        (1..=pages).for_each(|key| cache.look(key));
        cache
    };
    let held = || process.stats().held_bytes;
    for _ in 0..8 {
        filled(480).end();
        assert!(held() >= 480 * 4096, "{}", held());
    }
    let many = [(); 30].map(|()| filled(200));
    assert!(held() >= 30 * 200 * 4096, "{}", held());
    for cache in many {
        cache.end();
    }
    assert!(held() < (10 << 20), "{}", held());
}

#[test]
fn memory_between_pages_that_stay_serves_other_caches() {
    let process = budget_of(None);
    let filled = |pages: u32| {
        let mut cache = Driven::<Adaptive>::new(512, true, process);
        cache.set_limit(4000);
        (1..=pages).for_each(|key| cache.look(key));
        cache
    };
    let mut first = filled(3000);
    for key in (1..=3000).step_by(2) {
        assert!(first.fetch(key, MUST));
        let (_, pinned) = first.pages.remove(&key).unwrap();
        // SAFETY: the page is pinned.
        unsafe { first.cache().unpin(pinned.unwrap(), true) };
    }
    let held = process.stats().held_bytes;
    let second = filled(1400);
    assert_eq!(process.stats().held_bytes, held);
    second.end();
    first.end();
}

#[test]
fn first_bytes_of_pages_are_spread_over_the_cpus_caches() {
    for bytes in [512, 4096, 65_536] {
        let mut cache = Driven::<Adaptive>::new(bytes, true, budget_of(None));
        cache.set_limit(200);
        (1..=200).for_each(|key| cache.look(key));
        (1..=200).for_each(|key| assert!(cache.fetch(key, FIND)));
        // SAFETY: the pages are pinned.
        let first = |page: *mut Page| unsafe { (*page).buf } as usize % 4096;
        let pages = cache.pages.values().filter_map(|page| page.1);
        let places: HashSet<usize> = pages.map(first).collect();
        assert!(places.len() >= 8, "{bytes}: {places:?}");
        (1..=200).for_each(|key| cache.let_go(key));
        cache.end();
    }
}
