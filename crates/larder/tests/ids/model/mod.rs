//! A set of taken identifiers and what a rule promises, and what is done to identifiers and to them alike: [`Ids`] of one
//! owner, and [`IdSpace`]s that are shared.

mod owned;
mod promises;
mod shared;

use std::collections::BTreeSet;

use larder::ids::rule::{NearFull, Rested};
use larder::ids::{Allocate, IdError, IdRange, IdSpace, Ids, Rule};
use proptest::prelude::*;

use crate::common::cpus::{allowed_cpus, pin};

/// How many allocations an identifier rests; small ranges come to their end before, and large ones do not.
const REST: u64 = 100;

fn rested<R: Rule>(rule: R, near_full: NearFull) -> Rested<R> {
    Rested::allocations(rule, REST, near_full)
}

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
    Next(u64),
    /// To another CPU.
    Move(usize),
}

/// Up to `len` calls; a call to take or free one comes up to `burst` times in a row, and one to take many takes fewer than `many`.
fn ops(len: usize, burst: usize, many: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (1..=burst).prop_map(Op::Alloc),
        3 => (0..many).prop_map(Op::AllocMany),
        3 => any::<u64>().prop_map(Op::AllocAt),
        1 => (1u64..200, 1u64..70).prop_map(|(n, a)| Op::AllocRange(n, a)),
        1 => (1u64..5, prop_oneof![Just(64u64), Just(4096), Just(65536)]).prop_map(|(n, a)| Op::AllocRange(n, a)),
        1 => (any::<u64>(), 0u64..300).prop_map(|(a, n)| Op::Reserve(a, n)),
        8 => (any::<usize>(), 1..=burst).prop_map(|(a, n)| Op::Free(a, n)),
        2 => any::<u64>().prop_map(Op::FreeAny),
        3 => (any::<usize>(), 0..many * 2 / 3, any::<bool>()).prop_map(|(a, n, d)| Op::FreeMany(a, n, d)),
        3 => (any::<u64>(), 0..many as u64 / 2).prop_map(|(a, n)| Op::FreeRange(a, n)),
        1 => any::<u64>().prop_map(Op::Next),
        1 => any::<usize>().prop_map(Op::Move),
    ];
    prop::collection::vec(op, 0..len)
}

/// One test per rule: random calls over a random one of the ranges, in a random mode.
macro_rules! rules {
    ($cases:literal times $len:literal calls: $($name:ident: $rule:expr, $promise:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: $cases, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    range in prop::sample::select(ranges()),
                    mode in prop::sample::select(modes()),
                    ops in ops($len, BURST, MANY),
                ) {
                    Model::play(ids(range, $rule, mode), range, $rule, $promise, &ops);
                }
            )*
        }
    };
}
pub(crate) use rules;

/// What a rule promises about the next identifier.
trait Promise {
    /// `id` was handed out by the rule; `taken` is the state before.
    fn handed_out(&mut self, id: u64, taken: &BTreeSet<u64>, range: IdRange);
    /// `id` was asked for by name.
    fn taken(&mut self, id: u64);
    fn freed(&mut self, id: u64, range: IdRange);
    /// How many identifiers rest, if some of these do and the rule refuses them to a caller that asks for them.
    fn refuses(&mut self, _first: u64, _last: u64) -> Option<u64> {
        None
    }
    /// What is taken or rests, where some rest.
    fn busy(&mut self) -> Option<&BTreeSet<u64>> {
        None
    }
}

/// What the model is of.
trait Space: Sized {
    type Rule;
    /// Whether many threads may use it. Then a run need not be the lowest, and it matters on which CPU a call is made.
    const SHARED: bool;

    fn alloc(&mut self) -> Result<u64, IdError>;
    fn alloc_many(&mut self, out: &mut [u64]) -> Result<usize, IdError>;
    fn alloc_at(&mut self, id: u64) -> Result<(), IdError>;
    fn alloc_range(&mut self, count: u64, align: u64) -> Result<u64, IdError>;
    fn reserve(&mut self, first: u64, last: u64) -> Result<(), IdError>;
    fn free(&mut self, id: u64) -> Result<(), IdError>;
    fn free_many(&mut self, ids: &[u64]) -> Result<(), IdError>;
    fn free_range(&mut self, first: u64, last: u64) -> Result<(), IdError>;
    fn is_allocated(&self, id: u64) -> bool;
    fn next_allocated(&self, from: u64) -> Option<u64>;
    /// The lowest free one from there on, if this space can say.
    fn next_free(&self, from: u64) -> Option<Option<u64>>;
    fn allocated(&self) -> u64;
    fn free_count(&self) -> u128;
    fn list(&self) -> Vec<u64>;
    fn runs(&self) -> Vec<(u64, u64)>;
    /// Another one with these taken.
    fn again(range: IdRange, rule: Self::Rule, taken: &BTreeSet<u64>) -> Self;
}

macro_rules! space {
    ($space:ident, $shared:literal, $next_free:expr) => {
        impl<R: Rule<Order: Send>> Space for $space<R> {
            type Rule = R;
            const SHARED: bool = $shared;

            fn alloc(&mut self) -> Result<u64, IdError> {
                $space::alloc(self)
            }
            fn alloc_many(&mut self, out: &mut [u64]) -> Result<usize, IdError> {
                $space::alloc_many(self, out)
            }
            fn alloc_at(&mut self, id: u64) -> Result<(), IdError> {
                $space::alloc_at(self, id)
            }
            fn alloc_range(&mut self, count: u64, align: u64) -> Result<u64, IdError> {
                $space::alloc_range(self, count, align)
            }
            fn reserve(&mut self, first: u64, last: u64) -> Result<(), IdError> {
                $space::reserve(self, first..=last)
            }
            fn free(&mut self, id: u64) -> Result<(), IdError> {
                $space::free(self, id)
            }
            fn free_many(&mut self, ids: &[u64]) -> Result<(), IdError> {
                $space::free_many(self, ids)
            }
            fn free_range(&mut self, first: u64, last: u64) -> Result<(), IdError> {
                $space::free_range(self, first..=last)
            }
            fn is_allocated(&self, id: u64) -> bool {
                $space::is_allocated(self, id)
            }
            fn next_allocated(&self, from: u64) -> Option<u64> {
                $space::next_allocated(self, from)
            }
            fn next_free(&self, from: u64) -> Option<Option<u64>> {
                $next_free(self, from)
            }
            fn allocated(&self) -> u64 {
                $space::allocated(self)
            }
            fn free_count(&self) -> u128 {
                $space::free_count(self)
            }
            fn list(&self) -> Vec<u64> {
                $space::iter(self).collect()
            }
            fn runs(&self) -> Vec<(u64, u64)> {
                let runs = $space::runs(self);
                runs.map(|run| (run.first(), run.last())).collect()
            }
            fn again(range: IdRange, rule: R, taken: &BTreeSet<u64>) -> Self {
                $space::rebuild(range, rule, taken.iter().copied()).unwrap()
            }
        }
    };
}
space!(Ids, false, |_, _| None);
space!(IdSpace, true, |ids, from| Some(Allocate::next_free(
    ids, from
)));

struct Model<S, P> {
    ids: S,
    promise: P,
    taken: BTreeSet<u64>,
    range: IdRange,
    cpus: Vec<usize>,
}

impl<S: Space, P: Promise> Model<S, P> {
    /// Makes these calls, and looks at what is there in the end.
    fn play(ids: S, range: IdRange, rule: S::Rule, promise: P, ops: &[Op]) {
        let mut model = Self {
            ids,
            promise,
            taken: BTreeSet::new(),
            range,
            cpus: allowed_cpus(),
        };
        let cpus = model.cpus.clone();
        ops.iter().for_each(|op| model.step(op));
        model.finish(rule);
        if S::SHARED {
            // The next case looks where it may run.
            pin(0, &cpus);
        }
    }

    /// An identifier of the range: near its ends, near what is taken, near a border of words or chunks, or anywhere.
    fn pick(&self, n: u64) -> u64 {
        let span = self.range.last() - self.range.first();
        let small = n / 8 % 150;
        let at = match n % 8 {
            0 => small,
            1 => span - small.min(span),
            2 => 65536 - 75 + small,
            3 => (1u64 << 24) - 75 + small,
            4 => (1u64 << 33) - 75 + small,
            5 | 6 => match self.nth(n as usize / 8) {
                Some(id) => (id - self.range.first()).saturating_add(small % 3),
                None => small,
            },
            _ => n,
        };
        self.range.first() + if at <= span { at } else { at % (span + 1) }
    }

    fn nth(&self, n: usize) -> Option<u64> {
        // Nothing is gained by reaching every one of thousands.
        let n = n.checked_rem(self.taken.len().min(500))?;
        if n.is_multiple_of(2) {
            self.taken.iter().nth(n).copied()
        } else {
            self.taken.iter().nth_back(n / 2).copied()
        }
    }

    fn end(&self, first: u64, n: u64) -> u64 {
        first + n.min(self.range.last() - first)
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
                let expect = if self.taken.contains(&id) {
                    Err(IdError::Taken { id })
                } else {
                    self.rested(id, id)
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
                assert_eq!(self.ids.reserve(first, last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.take(id));
                }
            }
            Op::Free(which, n) => {
                for _ in 0..n {
                    if let Some(id) = self.nth(which) {
                        assert_eq!(self.ids.free(id), Ok(()));
                        self.give(id);
                        assert_eq!(self.ids.free(id), Err(IdError::NotAllocated { id }));
                    }
                }
            }
            Op::FreeAny(n) => {
                let id = self.pick(n);
                let expect = if self.taken.contains(&id) {
                    Ok(())
                } else {
                    Err(IdError::NotAllocated { id })
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
                assert_eq!(self.ids.free_range(first, last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.give(id));
                }
            }
            Op::Next(n) => self.look(self.pick(n)),
            Op::Move(n) => {
                if S::SHARED
                    && let Some(n) = n.checked_rem(self.cpus.len())
                {
                    pin(0, &self.cpus[n..=n]);
                }
            }
        }
        assert_eq!(self.ids.allocated(), self.taken.len() as u64);
    }

    fn look(&self, from: u64) {
        let next = self.taken.range(from..).next().copied();
        assert_eq!(self.ids.next_allocated(from), next);
        assert_eq!(self.ids.is_allocated(from), self.taken.contains(&from));
        if let Some(free) = self.ids.next_free(from) {
            let expect = (from..=self.range.last()).find(|id| !self.taken.contains(id));
            assert_eq!(free, expect);
        }
    }

    fn run(&mut self, count: u64, align: u64) {
        let expect = self.lowest_run(count, align);
        match self.ids.alloc_range(count, align) {
            Ok(first) if S::SHARED => {
                let last = first + (count - 1);
                assert_eq!(first % align, 0);
                assert!(self.range.contains(first) && self.range.contains(last));
                let busy = self.promise.busy().unwrap_or(&self.taken);
                let inside = busy.range(first..=last).next();
                assert_eq!(inside, None, "a run goes around what is taken or rests");
                (first..=last).for_each(|id| self.take(id));
            }
            Ok(first) => {
                assert_eq!(Some(first), expect);
                (first..=first + (count - 1)).for_each(|id| self.take(id));
            }
            Err(error) => {
                assert_eq!(error, IdError::NoRun { count, align });
                assert_eq!(expect, None);
            }
        }
    }

    /// Whether these may be asked for by name.
    fn rested(&mut self, first: u64, last: u64) -> Result<(), IdError> {
        match self.promise.refuses(first, last) {
            Some(resting) => Err(IdError::Resting { resting }),
            None => Ok(()),
        }
    }

    /// Goes from taken identifier to taken identifier, around those that rest.
    fn lowest_run(&mut self, count: u64, align: u64) -> Option<u64> {
        let busy = self.promise.busy().unwrap_or(&self.taken);
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

    fn full(&mut self, error: IdError) {
        let allocated = self.taken.len() as u64;
        let (first, last) = (self.range.first(), self.range.last());
        if let Some(resting) = self.promise.refuses(first, last) {
            assert_eq!(error, IdError::Resting { resting });
            assert_eq!(u128::from(allocated + resting), self.range.len());
            return;
        }
        assert_eq!(error, IdError::Full { allocated });
        assert_eq!(u128::from(allocated), self.range.len());
    }

    fn note(&mut self, id: u64) {
        assert!(self.range.contains(id), "{id} is foreign");
        self.promise.handed_out(id, &self.taken, self.range);
        assert!(self.taken.insert(id), "{id} was handed out twice");
    }

    fn take(&mut self, id: u64) {
        self.promise.taken(id);
        assert!(self.taken.insert(id));
    }

    fn give(&mut self, id: u64) {
        self.promise.freed(id, self.range);
        assert!(self.taken.remove(&id));
    }

    /// What must hold at the end: the same identifiers, in the same order, and so after a rebuild.
    fn finish(self, rule: S::Rule) {
        assert!(self.ids.list().into_iter().eq(self.taken.iter().copied()));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &id in &self.taken {
            match runs.last_mut() {
                Some((_, last)) if id - *last == 1 => *last = id,
                _ => runs.push((id, id)),
            }
        }
        assert_eq!(self.ids.runs(), runs);
        let free = self.range.len() - self.taken.len() as u128;
        assert_eq!(self.ids.free_count(), free);
        let again = S::again(self.range, rule, &self.taken);
        assert_eq!(again.list(), self.ids.list());
        assert_eq!(again.runs(), runs);
    }
}
