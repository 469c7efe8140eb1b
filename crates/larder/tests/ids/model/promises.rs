//! The rules again, as simply as can be.

use std::collections::{BTreeSet, VecDeque};

use larder::ids::IdRange;

use super::Promise;

/// The lowest free one.
pub(crate) struct Lowest;

impl Promise for Lowest {
    fn handed_out(&mut self, id: u64, taken: &BTreeSet<u64>, range: IdRange) {
        assert_eq!(Some(id), first_free(range.first(), taken, range));
    }
    fn taken(&mut self, _: u64) {}
    fn freed(&mut self, _: u64, _: IdRange) {}
}

/// Any free one.
pub(crate) struct Any;

impl Promise for Any {
    fn handed_out(&mut self, _: u64, _: &BTreeSet<u64>, _: IdRange) {}
    fn taken(&mut self, _: u64) {}
    fn freed(&mut self, _: u64, _: IdRange) {}
}

/// The next free one after the latest.
#[derive(Default)]
pub(crate) struct Cyclic {
    latest: Option<u64>,
}

impl Promise for Cyclic {
    fn handed_out(&mut self, id: u64, taken: &BTreeSet<u64>, range: IdRange) {
        let after = match self.latest {
            Some(latest) => latest.checked_add(1),
            None => Some(range.first()),
        };
        let expect = after
            .and_then(|from| first_free(from, taken, range))
            .or_else(|| first_free(range.first(), taken, range));
        assert_eq!(Some(id), expect);
        self.latest = Some(id);
    }
    fn taken(&mut self, _: u64) {}
    fn freed(&mut self, _: u64, _: IdRange) {}
}

/// Those never in use, then the one that was freed first.
#[derive(Default)]
pub(crate) struct Fifo {
    queue: Vec<u64>,
    used: BTreeSet<u64>,
}

impl Promise for Fifo {
    fn handed_out(&mut self, id: u64, _: &BTreeSet<u64>, range: IdRange) {
        let expect = first_free(range.first(), &self.used, range);
        assert_eq!(Some(id), expect.or(self.queue.first().copied()));
        self.taken(id);
    }
    fn taken(&mut self, id: u64) {
        self.queue.retain(|&queued| queued != id);
        self.used.insert(id);
    }
    fn freed(&mut self, id: u64, _: IdRange) {
        self.queue.push(id);
    }
}

/// The one that was freed last, then those never in use.
#[derive(Default)]
pub(crate) struct Lifo {
    stack: Vec<u64>,
    used: BTreeSet<u64>,
}

impl Promise for Lifo {
    fn handed_out(&mut self, id: u64, _: &BTreeSet<u64>, range: IdRange) {
        let expect = first_free(range.first(), &self.used, range);
        assert_eq!(Some(id), self.stack.last().copied().or(expect));
        self.taken(id);
    }
    fn taken(&mut self, id: u64) {
        self.stack.retain(|&stacked| stacked != id);
        self.used.insert(id);
    }
    fn freed(&mut self, id: u64, _: IdRange) {
        self.stack.push(id);
    }
}

/// The lowest of the first set of a queue; frees go to the last, which is closed when it has its share.
pub(crate) struct Epochs {
    k: usize,
    /// Those never in use are in the first set, and not in it.
    sets: VecDeque<BTreeSet<u64>>,
    untouched: bool,
    used: BTreeSet<u64>,
}

impl Epochs {
    pub(crate) fn new(k: usize) -> Self {
        Self {
            k,
            sets: vec![BTreeSet::new(); 2].into(),
            untouched: true,
            used: BTreeSet::new(),
        }
    }
}

impl Promise for Epochs {
    fn handed_out(&mut self, id: u64, _: &BTreeSet<u64>, range: IdRange) {
        if self.untouched {
            let expect = first_free(range.first(), &self.used, range);
            if expect.is_some() {
                assert_eq!(Some(id), expect);
                self.used.insert(id);
                return;
            }
            self.untouched = false;
        }
        while self.sets[0].is_empty() {
            self.sets.pop_front();
            if self.sets.len() == 1 {
                self.sets.push_back(BTreeSet::new());
            }
        }
        assert_eq!(Some(&id), self.sets[0].first());
        self.sets[0].remove(&id);
    }
    fn taken(&mut self, id: u64) {
        self.used.insert(id);
        self.sets.iter_mut().for_each(|set| {
            set.remove(&id);
        });
    }
    fn freed(&mut self, id: u64, range: IdRange) {
        let never = range.len() - self.used.len() as u128;
        let free = never + self.sets.iter().map(BTreeSet::len).sum::<usize>() as u128;
        let share = (self.sets.back().unwrap().len() * self.k) as u128;
        if free == 0 {
            self.sets = vec![BTreeSet::new(); 2].into();
        } else if self.sets.len() <= self.k && share >= free {
            self.sets.push_back(BTreeSet::new());
        }
        self.sets.back_mut().unwrap().insert(id);
    }
}

/// Another rule over those that do not rest; when nothing else is left, the one that rests longest, or none.
pub(crate) struct Rested<P> {
    rule: P,
    rest: u64,
    relax: bool,
    allocations: u64,
    /// Those that rest, and when they were freed.
    queue: VecDeque<(u64, u64)>,
    /// Those that are taken or rest.
    busy: BTreeSet<u64>,
}

impl<P: Promise> Rested<P> {
    pub(crate) fn new(rule: P, rest: u64, relax: bool) -> Self {
        Self {
            rule,
            rest,
            relax,
            allocations: 0,
            queue: VecDeque::new(),
            busy: BTreeSet::new(),
        }
    }

    fn release(&mut self) {
        while let Some(&(id, freed)) = self.queue.front()
            && self.allocations - freed >= self.rest
        {
            self.queue.pop_front();
            self.busy.remove(&id);
        }
    }
}

impl<P: Promise> Promise for Rested<P> {
    fn handed_out(&mut self, id: u64, _: &BTreeSet<u64>, range: IdRange) {
        self.release();
        if self.busy.len() as u128 == range.len() {
            assert!(self.relax, "{id} rests");
            assert_eq!(self.queue.pop_front().map(|(first, _)| first), Some(id));
        } else {
            assert!(!self.busy.contains(&id), "{id} rests or is taken");
            self.rule.handed_out(id, &self.busy, range);
        }
        self.taken(id);
    }
    fn taken(&mut self, id: u64) {
        self.release();
        self.queue.retain(|&(resting, _)| resting != id);
        self.busy.insert(id);
        self.allocations += 1;
    }
    fn freed(&mut self, id: u64, _: IdRange) {
        self.queue.push_back((id, self.allocations));
    }
    fn refuses(&mut self, first: u64, last: u64) -> Option<u64> {
        self.release();
        let asked = first..=last;
        let some = self.queue.iter().any(|(id, _)| asked.contains(id));
        (some && !self.relax).then_some(self.queue.len() as u64)
    }
    fn busy(&mut self) -> Option<&BTreeSet<u64>> {
        self.release();
        Some(&self.busy)
    }
}

fn first_free(from: u64, taken: &BTreeSet<u64>, range: IdRange) -> Option<u64> {
    let mut id = from;
    for &used in taken.range(from..) {
        if used > id {
            break;
        }
        id = used.checked_add(1)?;
    }
    range.contains(id).then_some(id)
}
