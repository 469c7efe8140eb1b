//! The rules again, as simply as can be.

use std::collections::BTreeSet;

use larder::ids::IdRange;

use super::model::Promise;

/// The lowest free one.
pub(crate) struct Lowest;

impl Promise for Lowest {
    fn handed_out(&mut self, id: u64, taken: &BTreeSet<u64>, range: IdRange) {
        assert_eq!(Some(id), first_free(range.first(), taken, range));
    }
    fn taken(&mut self, _: u64) {}
    fn freed(&mut self, _: u64) {}
}

/// Any free one.
pub(crate) struct Any;

impl Promise for Any {
    fn handed_out(&mut self, _: u64, _: &BTreeSet<u64>, _: IdRange) {}
    fn taken(&mut self, _: u64) {}
    fn freed(&mut self, _: u64) {}
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
    fn freed(&mut self, _: u64) {}
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
    fn freed(&mut self, id: u64) {
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
    fn freed(&mut self, id: u64) {
        self.stack.push(id);
    }
}

/// The lowest of the first set that is not empty; frees go to the last, and sets move up when the first is empty.
pub(crate) struct Epochs {
    /// Those never in use are in the first set, and not in it.
    sets: Vec<BTreeSet<u64>>,
    untouched: bool,
    used: BTreeSet<u64>,
}

impl Epochs {
    pub(crate) fn new(k: usize) -> Self {
        Self {
            sets: vec![BTreeSet::new(); k + 1],
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
            self.sets.rotate_left(1);
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
    fn freed(&mut self, id: u64) {
        self.sets.last_mut().unwrap().insert(id);
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
