//! Shared spaces against a set of taken identifiers, under every rule: one thread that goes from CPU to CPU, so that
//! identifiers come to lie ready where they are not asked for.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
mod ids_common;

use std::collections::{BTreeSet, VecDeque};

use common::cpus::{allowed_cpus, pin};
use common::modes;
use larder::ids::rule::NearFull;
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Rule, SharedRule, rule};
use larder::os::rseq::Mode;
use proptest::prelude::*;

/// One call. Numbers are turned into identifiers by [`Model::pick`].
#[derive(Debug, Clone)]
enum Op {
    Alloc(usize),
    AllocMany(usize),
    AllocAt(u64),
    AllocRange(u64, u64),
    Reserve(u64, u64),
    Free(usize, usize),
    FreeAny(u64),
    FreeMany(usize, usize, bool),
    FreeRange(u64, u64),
    Look(u64),
    Move(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (1usize..20).prop_map(Op::Alloc),
        3 => (0usize..200).prop_map(Op::AllocMany),
        2 => any::<u64>().prop_map(Op::AllocAt),
        1 => (1u64..200, 1u64..70).prop_map(|(n, a)| Op::AllocRange(n, a)),
        1 => (any::<u64>(), 0u64..300).prop_map(|(a, n)| Op::Reserve(a, n)),
        6 => (any::<usize>(), 1usize..20).prop_map(|(a, n)| Op::Free(a, n)),
        1 => any::<u64>().prop_map(Op::FreeAny),
        3 => (any::<usize>(), 0usize..200, any::<bool>()).prop_map(|(a, n, d)| Op::FreeMany(a, n, d)),
        3 => (any::<u64>(), 0u64..150).prop_map(|(a, n)| Op::FreeRange(a, n)),
        1 => any::<u64>().prop_map(Op::Look),
        1 => any::<usize>().prop_map(Op::Move),
    ];
    prop::collection::vec(op, 0..80)
}

fn ranges() -> Vec<IdRange> {
    let new = |first, last| IdRange::new(first, last).unwrap();
    vec![
        new(1, 1),
        new(0, 2),
        new(60, 127),
        new(0, 255),
        new(300, 9000),
        new(7, (1 << 20) + 7),
        new(0, (1 << 24) + 70_000),
        new(1, u64::from(u32::MAX)),
        new(u64::MAX - 200, u64::MAX),
        IdRange::ALL,
    ]
}

/// Identifiers that must rest.
#[derive(Clone)]
struct Rests {
    relax: bool,
    allocations: u64,
    /// Those that rest, and when they were freed.
    queue: VecDeque<(u64, u64)>,
}

impl Rests {
    /// Those that rest still.
    fn now(&mut self) -> &mut VecDeque<(u64, u64)> {
        while let Some(&(_, freed)) = self.queue.front()
            && self.allocations - freed >= REST
        {
            self.queue.pop_front();
        }
        &mut self.queue
    }

    /// How many identifiers rest, if some of these do and the space refuses them to a caller that asks for them.
    fn refuses(&mut self, first: u64, last: u64) -> Option<u64> {
        let asked = first..=last;
        let resting = self.now().len() as u64;
        let some = self.queue.iter().any(|(id, _)| asked.contains(id));
        (some && !self.relax).then_some(resting)
    }
}

struct Model<R: SharedRule> {
    rests: Option<Rests>,
    /// The lowest that does not rest is next.
    lowest: bool,
    ids: IdSpace<R>,
    taken: BTreeSet<u64>,
    range: IdRange,
    cpus: Vec<usize>,
}

impl<R: SharedRule> Model<R> {
    fn pick(&self, n: u64) -> u64 {
        let span = self.range.last() - self.range.first();
        let small = n / 8 % 150;
        let at = match n % 4 {
            0 => small,
            1 => span - small.min(span),
            2 => match self.nth(n as usize / 8) {
                Some(id) => (id - self.range.first()).saturating_add(small % 3),
                None => small,
            },
            _ => n,
        };
        self.range.first() + if at <= span { at } else { at % (span + 1) }
    }

    fn nth(&self, n: usize) -> Option<u64> {
        let n = n.checked_rem(self.taken.len().min(500))?;
        self.taken.iter().nth(n).copied()
    }

    fn end(&self, first: u64, n: u64) -> u64 {
        first + n.min(self.range.last() - first)
    }

    fn note(&mut self, id: u64) {
        assert!(self.range.contains(id), "{id} is foreign");
        let mut resting = BTreeSet::new();
        if let Some(rests) = &mut self.rests {
            resting.extend(rests.now().iter().map(|(id, _)| *id));
            if (self.taken.len() + resting.len()) as u128 == self.range.len() {
                assert!(rests.relax, "{id} rests");
                assert_eq!(rests.queue.front().map(|(first, _)| *first), Some(id));
                resting.clear();
            } else {
                assert!(!resting.contains(&id), "{id} rests");
            }
        }
        let relaxed = self
            .rests
            .as_ref()
            .is_some_and(|r| r.queue.front().is_some_and(|(first, _)| *first == id));
        if self.lowest && !relaxed {
            let mut from = self.range.first();
            while self.taken.contains(&from) || resting.contains(&from) {
                from += 1;
            }
            assert_eq!(id, from);
        }
        self.take(id);
    }

    fn take(&mut self, id: u64) {
        if let Some(rests) = &mut self.rests {
            rests.now().retain(|(resting, _)| *resting != id);
            rests.allocations += 1;
        }
        assert!(self.taken.insert(id), "{id} was handed out twice");
    }

    fn give(&mut self, id: u64) {
        if let Some(rests) = &mut self.rests {
            rests.queue.push_back((id, rests.allocations));
        }
        assert!(self.taken.remove(&id), "{id} was not taken");
    }

    /// Whether these may be asked for by name.
    fn rested(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        match self
            .rests
            .as_mut()
            .and_then(|rests| rests.refuses(first, last))
        {
            Some(resting) => Err(IdError::Resting { resting }),
            None => Ok(()),
        }
    }

    fn full(&mut self, error: IdError) {
        let allocated = self.taken.len() as u64;
        if let Err(rests) = self.rested(self.range.first(), self.range.last()) {
            assert_eq!(error, rests);
            let resting = self.rests.as_ref().map_or(0, |rests| rests.queue.len());
            assert_eq!((self.taken.len() + resting) as u128, self.range.len());
            return;
        }
        assert_eq!(error, IdError::Full { allocated });
        assert_eq!(u128::from(allocated), self.range.len());
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Alloc(n) => {
                for _ in 0..n {
                    match self.ids.alloc() {
                        Ok(id) => self.note(id),
                        Err(error) => self.full(error),
                    }
                }
            }
            Op::AllocMany(n) => {
                let mut out = vec![0; n];
                match self.ids.alloc_many(&mut out) {
                    Ok(done) => {
                        out[..done].iter().for_each(|&id| self.note(id));
                        if done < n {
                            let error = self.ids.alloc().unwrap_err();
                            self.full(error);
                        }
                    }
                    Err(error) => self.full(error),
                }
            }
            Op::AllocAt(n) => {
                let id = self.pick(n);
                let expect = match self.taken.contains(&id) {
                    false => self.rested(id, id),
                    true => Err(IdError::Taken { id }),
                };
                assert_eq!(self.ids.alloc_at(id), expect);
                if expect.is_ok() {
                    self.take(id);
                }
            }
            Op::AllocRange(count, align) => self.run(count, align),
            Op::Reserve(n, len) => {
                let first = self.pick(n);
                let last = self.end(first, len);
                let expect = match self.taken.range(first..=last).next() {
                    Some(&id) => Err(IdError::Taken { id }),
                    None => self.rested(first, last),
                };
                assert_eq!(self.ids.reserve(first..=last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.take(id));
                }
            }
            Op::Free(skip, n) => {
                for _ in 0..n {
                    if let Some(id) = self.nth(skip) {
                        assert_eq!(self.ids.free(id), Ok(()));
                        assert_eq!(self.ids.free(id), Err(IdError::NotAllocated { id }));
                        self.give(id);
                    }
                }
            }
            Op::FreeAny(n) => {
                let id = self.pick(n);
                let expect = match self.taken.contains(&id) {
                    true => Ok(()),
                    false => Err(IdError::NotAllocated { id }),
                };
                assert_eq!(self.ids.free(id), expect);
                if expect.is_ok() {
                    self.give(id);
                }
            }
            Op::FreeMany(skip, n, twice) => {
                let skip = skip.checked_rem(self.taken.len()).unwrap_or(0);
                let mut many: Vec<u64> = self.taken.iter().skip(skip).take(n).copied().collect();
                let twice = twice.then(|| many.first().copied()).flatten();
                many.extend(twice);
                if let Some(id) = twice {
                    assert_eq!(self.ids.free_many(&many), Err(IdError::NotAllocated { id }));
                } else {
                    assert_eq!(self.ids.free_many(&many), Ok(()));
                    many.iter().for_each(|&id| self.give(id));
                }
            }
            Op::FreeRange(n, len) => {
                let first = self.pick(n);
                let last = self.end(first, len);
                let expect = match (first..=last).find(|id| !self.taken.contains(id)) {
                    Some(id) => Err(IdError::NotAllocated { id }),
                    None => Ok(()),
                };
                assert_eq!(self.ids.free_range(first..=last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.give(id));
                }
            }
            Op::Look(n) => self.look(self.pick(n)),
            Op::Move(n) => {
                if let Some(n) = n.checked_rem(self.cpus.len()) {
                    pin(0, &self.cpus[n..=n]);
                }
            }
        }
        assert_eq!(self.ids.allocated(), self.taken.len() as u64);
    }

    fn run(&mut self, count: u64, align: u64) {
        match self.ids.alloc_range(count, align) {
            Ok(first) => {
                assert_eq!(first % align, 0);
                let last = first + (count - 1);
                if let Some(rests) = &mut self.rests {
                    let resting = rests
                        .now()
                        .iter()
                        .find(|(id, _)| (first..=last).contains(id));
                    assert_eq!(resting, None, "a run goes around what rests");
                }
                for id in first..=last {
                    assert!(self.range.contains(id), "{id}");
                    self.take(id);
                }
            }
            Err(error) => {
                assert_eq!(error, IdError::NoRun { count, align });
                assert_eq!(self.lowest_run(count, align), None);
            }
        }
    }

    /// Goes from taken identifier to taken identifier.
    fn lowest_run(&mut self, count: u64, align: u64) -> Option<u64> {
        let mut busy = self.taken.clone();
        if let Some(rests) = &mut self.rests {
            busy.extend(rests.now().iter().map(|(id, _)| *id));
        }
        let mut first = self.range.first().checked_next_multiple_of(align)?;
        loop {
            let last = first.checked_add(count - 1)?;
            if last > self.range.last() {
                return None;
            }
            match busy.range(first..=last).next() {
                None => return Some(first),
                Some(&id) => first = id.checked_add(1)?.checked_next_multiple_of(align)?,
            }
        }
    }

    fn look(&self, from: u64) {
        let next = self.taken.range(from..).next().copied();
        assert_eq!(self.ids.next_allocated(from), next);
        assert_eq!(self.ids.is_allocated(from), self.taken.contains(&from));
        let free = (from..=self.range.last()).find(|id| !self.taken.contains(id));
        assert_eq!(Allocate::next_free(&self.ids, from), free);
    }

    /// What must hold at the end: the same identifiers, one by one and as runs, and so after a rebuild.
    fn finish(self, rule: R) {
        assert!(self.ids.iter().eq(self.taken.iter().copied()));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &id in &self.taken {
            match runs.last_mut() {
                Some((_, last)) if id - *last == 1 => *last = id,
                _ => runs.push((id, id)),
            }
        }
        let found: Vec<_> = self.ids.runs().map(|r| (r.first(), r.last())).collect();
        assert_eq!(found, runs);
        let free = self.range.len() - self.taken.len() as u128;
        assert_eq!(self.ids.free_count(), free);
        let again = IdSpace::rebuild(self.range, rule, self.taken.iter().copied()).unwrap();
        assert!(again.runs().eq(self.ids.runs()));
    }
}

fn check<R: SharedRule>(
    range: IdRange,
    rule: &R,
    rests: Option<Rests>,
    lowest: bool,
    mode: Mode,
    ops: &[Op],
) {
    let mut model = Model {
        rests,
        lowest,
        ids: IdSpace::builder(range, rule.clone())
            .mode(mode)
            .build()
            .unwrap(),
        taken: BTreeSet::new(),
        range,
        cpus: allowed_cpus(),
    };
    let cpus = model.cpus.clone();
    ops.iter().for_each(|op| model.step(op));
    model.finish(rule.clone());
    // The next case looks where it may run.
    pin(0, &cpus);
}

/// Allocations; small ranges come to their end before, and large ones do not.
const REST: u64 = 100;

fn rested<R: Rule>(rule: R, near_full: NearFull) -> rule::Rested<R> {
    rule::Rested::allocations(rule, REST, near_full)
}

fn rests(relax: bool) -> Option<Rests> {
    Some(Rests {
        relax,
        allocations: 0,
        queue: VecDeque::new(),
    })
}

/// One test per rule: random calls over a random one of the ranges, in a random mode.
macro_rules! rules {
    ($($name:ident: $rule:expr, $rests:expr, $lowest:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    range in prop::sample::select(ranges()),
                    mode in prop::sample::select(modes()),
                    ops in ops(),
                ) {
                    check(range, &$rule, $rests, $lowest, mode, &ops);
                }
            )*
        }
    };
}

rules! {
    lowest: rule::Lowest, None, true;
    cyclic: rule::Cyclic, None, false;
    first_freed: rule::Fifo, None, false;
    last_freed: rule::Lifo, None, false;
    epochs: rule::Epochs::<2>, None, false;
    whichever_is_at_hand: rule::Any, None, false;
    random: rule::Random::new([1; 32]), None, false;
    lowest_that_has_rested: rested(rule::Lowest, NearFull::Fail), rests(false), true;
    lowest_that_has_rested_if_any_has: rested(rule::Lowest, NearFull::Relax), rests(true), true;
    cyclic_after_a_rest: rested(rule::Cyclic, NearFull::Fail), rests(false), false;
    cyclic_after_a_rest_if_any_had_one: rested(rule::Cyclic, NearFull::Relax), rests(true), false;
}
