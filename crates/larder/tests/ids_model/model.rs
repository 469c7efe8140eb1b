//! A set of taken identifiers, and what is done to a space and to it alike.

use std::collections::BTreeSet;

use larder::ids::{IdError, IdRange, Ids, Rule};
use proptest::prelude::*;

/// One call. Numbers are turned into identifiers by [`Model::pick`].
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Alloc,
    AllocMany(usize),
    AllocAt(u64),
    AllocRange(u64, u64),
    Reserve(u64, u64),
    Free(usize),
    FreeAny(u64),
    FreeMany(usize, usize, bool),
    FreeRange(u64, u64),
    Next(u64),
}

pub(crate) fn ops(len: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => Just(Op::Alloc),
        3 => (0usize..150).prop_map(Op::AllocMany),
        3 => any::<u64>().prop_map(Op::AllocAt),
        1 => (1u64..200, 1u64..70).prop_map(|(n, a)| Op::AllocRange(n, a)),
        1 => (1u64..5, prop_oneof![Just(64u64), Just(4096), Just(65536)]).prop_map(|(n, a)| Op::AllocRange(n, a)),
        1 => (any::<u64>(), 0u64..300).prop_map(|(a, n)| Op::Reserve(a, n)),
        8 => any::<usize>().prop_map(Op::Free),
        2 => any::<u64>().prop_map(Op::FreeAny),
        2 => (any::<usize>(), 0usize..80, any::<bool>()).prop_map(|(a, n, d)| Op::FreeMany(a, n, d)),
        2 => (any::<u64>(), 0u64..70).prop_map(|(a, n)| Op::FreeRange(a, n)),
        1 => any::<u64>().prop_map(Op::Next),
    ];
    prop::collection::vec(op, 0..len)
}

/// What a rule promises about the next identifier.
pub(crate) trait Promise {
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

pub(crate) struct Model<R: Rule, P> {
    ids: Ids<R>,
    promise: P,
    taken: BTreeSet<u64>,
    range: IdRange,
}

impl<R: Rule, P: Promise> Model<R, P> {
    pub(crate) fn new(range: IdRange, rule: R, promise: P) -> Self {
        Self {
            ids: Ids::new(range, rule).unwrap(),
            promise,
            taken: BTreeSet::new(),
            range,
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

    pub(crate) fn step(&mut self, op: &Op) {
        match *op {
            Op::Alloc => match self.ids.alloc() {
                Ok(id) => self.note(id),
                Err(error) => self.full(error),
            },
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
                assert_eq!(self.ids.reserve(first..=last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.take(id));
                }
            }
            Op::Free(n) => {
                if let Some(id) = self.nth(n) {
                    assert_eq!(self.ids.free(id), Ok(()));
                    self.give(id);
                    assert_eq!(self.ids.free(id), Err(IdError::NotAllocated { id }));
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
                assert_eq!(self.ids.free_range(first..=last), expect);
                if expect.is_ok() {
                    (first..=last).for_each(|id| self.give(id));
                }
            }
            Op::Next(n) => {
                let from = self.pick(n);
                assert_eq!(
                    self.ids.next_allocated(from),
                    self.taken.range(from..).next().copied()
                );
                assert_eq!(self.ids.is_allocated(from), self.taken.contains(&from));
            }
        }
        assert_eq!(self.ids.allocated(), self.taken.len() as u64);
    }

    fn run(&mut self, count: u64, align: u64) {
        let expect = self.lowest_run(count, align);
        match self.ids.alloc_range(count, align) {
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
    pub(crate) fn finish(self, rule: R) {
        assert!(self.ids.iter().eq(self.taken.iter().copied()));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &id in &self.taken {
            match runs.last_mut() {
                Some((_, last)) if id - *last == 1 => *last = id,
                _ => runs.push((id, id)),
            }
        }
        assert!(
            self.ids
                .runs()
                .map(|run| (run.first(), run.last()))
                .eq(runs)
        );
        assert_eq!(
            self.ids.free_count(),
            self.range.len() - self.taken.len() as u128
        );
        let again = Ids::rebuild(self.range, rule, self.taken.iter().copied()).unwrap();
        assert!(again.iter().eq(self.ids.iter()));
    }
}
