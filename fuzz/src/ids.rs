//! Identifiers of one owner played against a set, under every rule there is.

use std::cell::RefCell;
use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use larder::ids::rule::{Any, Cyclic, Epochs, Fifo, Lifo, Lowest, NearFull, Random, Rested};
use larder::ids::{IdError, IdRange, Ids, Rule, Snapshot};

/// Most operations of one case, to keep it fast.
const MOST_OPS: usize = 300;
/// Most identifiers that the model holds.
const MOST_HELD: u128 = 20_000;

/// A space and what is done with it.
#[derive(Debug, Arbitrary)]
pub struct Case {
    rule: u8,
    range: u8,
    ops: Vec<Op>,
}

/// One operation. Identifiers are counted from both ends of the range, see [`World::id`].
#[derive(Debug, Arbitrary)]
enum Op {
    Alloc,
    AllocMany(u8),
    AllocAt(u16),
    AllocRange(u8, u8),
    Reserve(u16, u16),
    Free(u16),
    FreeHeld(u16),
    FreeMany(Vec<u16>),
    FreeRange(u16, u16),
    SetCursor(u16),
    Restore,
}

/// What a rule promises about the next identifier, as far as the model can tell.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    Lowest,
    Cyclic,
    AnyFree,
    /// Any that has rested.
    Rests,
}

/// Plays a case; panics where space and model disagree.
pub fn play(case: Case) {
    let (range, ops) = (range(case.range), case.ops);
    match case.rule % 11 {
        0 => World::play(range, Lowest, Promise::Lowest, ops),
        1 => World::play(range, Cyclic, Promise::Cyclic, ops),
        2 => World::play(range, Fifo, Promise::AnyFree, ops),
        3 => World::play(range, Lifo, Promise::AnyFree, ops),
        4 => World::play(range, Epochs::<2>, Promise::AnyFree, ops),
        5 => World::play(range, Epochs::<4>, Promise::AnyFree, ops),
        6 => rested(range, Lowest, NearFull::Fail, ops),
        7 => rested(range, Cyclic, NearFull::Relax, ops),
        8 => rested(range, Fifo, NearFull::Fail, ops),
        9 => World::play(range, Random::new([case.range; 32]), Promise::AnyFree, ops),
        _ => World::play(range, Any, Promise::AnyFree, ops),
    }
}

fn rested<R: Rule>(range: IdRange, rule: R, near_full: NearFull, ops: Vec<Op>) {
    let rule = Rested::allocations(rule, 7, near_full);
    World::play(range, rule, Promise::Rests, ops);
}

fn range(pick: u8) -> IdRange {
    let (first, last) = [
        (0, 0),
        (7, 70),
        (0, 63),
        (1, 300),
        (0, 4095),
        (300, 32767),
        (5, 1 << 20),
        (0, u64::from(u32::MAX)),
        (1 << 40, 1 << 48),
        (0, u64::MAX),
        (u64::MAX - 129, u64::MAX),
    ][usize::from(pick) % 11];
    IdRange::new(first, last).expect("not empty")
}

struct World<R: Rule> {
    rule: R,
    promise: Promise,
    ids: Ids<R>,
    held: BTreeSet<u64>,
    cursor: Option<u64>,
}

impl<R: Rule> World<R> {
    fn play(range: IdRange, rule: R, promise: Promise, ops: Vec<Op>) {
        let ids = Ids::new(range, rule.clone()).expect("a space");
        let mut world = Self {
            rule,
            promise,
            ids,
            held: BTreeSet::new(),
            cursor: None,
        };
        for op in ops.into_iter().take(MOST_OPS) {
            if u128::from(world.ids.allocated()) > MOST_HELD {
                break;
            }
            world.step(op);
            assert_eq!(world.ids.allocated(), world.held.len() as u64);
            if matches!(promise, Promise::Lowest | Promise::Cyclic) {
                assert_eq!(world.ids.cursor(), world.cursor);
            }
        }
        world.compare();
    }

    /// Even numbers count from the first identifier, odd ones from the last; a few lie outside.
    fn id(&self, number: u16) -> u64 {
        let (range, distance) = (self.ids.range(), u64::from(number / 2));
        if number.is_multiple_of(2) {
            range.first().saturating_add(distance)
        } else {
            range.last().saturating_sub(distance)
        }
    }

    fn run(&self, a: u16, b: u16) -> (u64, u64) {
        let (first, last) = (self.id(a), self.id(b));
        // Not longer than the model can hold.
        (first, last.min(first.saturating_add(2000)))
    }

    fn step(&mut self, op: Op) {
        let range = self.ids.range();
        match op {
            Op::Alloc => {
                let result = self.ids.alloc();
                self.took(result);
            }
            Op::AllocMany(count) => {
                let mut out = vec![0; count.into()];
                match self.ids.alloc_many(&mut out) {
                    Ok(done) => {
                        let enough = done == out.len();
                        for id in &out[..done] {
                            self.took(Ok(*id));
                        }
                        assert!(enough || self.is_full() || self.promise == Promise::Rests);
                    }
                    Err(error) => {
                        assert!(count > 0);
                        self.took(Err(error));
                    }
                }
            }
            Op::AllocAt(number) => {
                let id = self.id(number);
                let expected = if !range.contains(id) {
                    Err(IdError::OutOfRange {
                        id,
                        first: range.first(),
                        last: range.last(),
                    })
                } else if self.held.contains(&id) {
                    Err(IdError::Taken { id })
                } else if self.one_is_kept() {
                    return;
                } else {
                    Ok(())
                };
                let result = self.ids.alloc_at(id);
                if self.may_rest(&result) && expected.is_ok() {
                    return;
                }
                assert_eq!(result, expected);
                if expected.is_ok() {
                    self.held.insert(id);
                }
            }
            Op::AllocRange(count, align) => {
                let (count, align) = (u64::from(count), u64::from(align));
                match self.ids.alloc_range(count, align) {
                    Ok(first) => {
                        assert!(first.is_multiple_of(align) && count > 0);
                        for id in first..first + (count - 1) {
                            self.take(id);
                        }
                        self.take(first + (count - 1));
                    }
                    Err(IdError::Invalid { .. }) => assert!(count == 0 || align == 0),
                    Err(IdError::NoRun { .. }) => {}
                    Err(error) => assert!(self.may_rest(&Err(error))),
                }
            }
            Op::Reserve(a, b) => {
                let (first, last) = self.run(a, b);
                match self.ids.reserve(first..=last) {
                    Ok(()) => (first..=last).for_each(|id| self.take(id)),
                    Err(IdError::Taken { id }) => {
                        assert_eq!(self.held.range(first..=last).next(), Some(&id));
                    }
                    Err(IdError::Invalid { .. }) => assert!(first > last),
                    Err(IdError::OutOfRange { id, .. }) => assert!(!range.contains(id)),
                    Err(error) => assert!(self.may_rest(&Err(error))),
                }
            }
            Op::Free(number) => self.free(self.id(number)),
            Op::FreeHeld(number) => {
                let id = self.id(number);
                let next = self.held.range(id..).next().or(self.held.first());
                if let Some(&id) = next {
                    self.free(id);
                }
            }
            Op::FreeMany(numbers) => {
                let ids: Vec<u64> = numbers.iter().map(|&number| self.id(number)).collect();
                let mut left = self.held.clone();
                let good = ids.iter().all(|id| left.remove(id));
                assert_eq!(self.ids.free_many(&ids).is_ok(), good);
                if good {
                    self.held = left;
                }
            }
            Op::FreeRange(a, b) => {
                let (first, last) = self.run(a, b);
                let good = first <= last && (first..=last).all(|id| self.held.contains(&id));
                assert_eq!(self.ids.free_range(first..=last).is_ok(), good);
                if good {
                    self.held.retain(|&id| id < first || last < id);
                }
            }
            Op::SetCursor(number) => {
                let id = self.id(number);
                assert_eq!(self.ids.set_cursor(id).is_ok(), range.contains(id));
                if range.contains(id) && self.promise == Promise::Cyclic {
                    // The last offset of all 2^64 is the one before the first.
                    self.cursor = (id.wrapping_sub(range.first()) != u64::MAX).then_some(id);
                }
            }
            Op::Restore => self.restore(),
        }
    }

    /// Of all 2^64 numbers one is never handed out.
    fn one_is_kept(&self) -> bool {
        u128::from(self.ids.allocated()) + 1 >= 1 << 64
    }

    fn is_full(&self) -> bool {
        self.held.len() as u128 == self.ids.range().len()
    }

    fn take(&mut self, id: u64) {
        assert!(self.ids.range().contains(id));
        assert!(self.held.insert(id), "{id} was given twice");
    }

    fn took(&mut self, result: Result<u64, IdError>) {
        match result {
            Ok(id) => {
                let range = self.ids.range();
                let free = |from: u64| (from..=range.last()).find(|id| !self.held.contains(id));
                match self.promise {
                    Promise::Lowest => assert_eq!(Some(id), free(range.first())),
                    Promise::Cyclic => {
                        let after = match self.cursor {
                            Some(cursor) => cursor.checked_add(1),
                            None => Some(range.first()),
                        };
                        let next = after.filter(|&id| range.contains(id)).and_then(free);
                        assert_eq!(Some(id), next.or_else(|| free(range.first())));
                        self.cursor = Some(id);
                    }
                    Promise::AnyFree | Promise::Rests => {}
                }
                self.take(id);
            }
            Err(IdError::Full { allocated }) => {
                assert!(self.is_full() && allocated == self.held.len() as u64);
            }
            Err(error) => assert!(self.may_rest(&Err(error)) && !self.is_full()),
        }
    }

    /// Whether this is refused because identifiers rest, under a rule that lets them.
    fn may_rest(&self, result: &Result<(), IdError>) -> bool {
        self.promise == Promise::Rests && matches!(result, Err(IdError::Resting { .. }))
    }

    fn free(&mut self, id: u64) {
        let result = self.ids.free(id);
        assert_eq!(result.is_ok(), self.held.remove(&id), "{id}: {result:?}");
    }

    /// Takes a snapshot and goes on with what is restored from its bytes.
    fn restore(&mut self) {
        let ids = Ids::new(self.ids.range(), self.rule.clone()).expect("a space");
        let ids = RefCell::new(std::mem::replace(&mut self.ids, ids));
        let snapshot = Snapshot::of(&ids, &self.rule).expect("a snapshot");
        let bytes = snapshot.to_bytes().expect("its bytes");
        let read = Snapshot::from_bytes(&bytes).expect("the snapshot again");
        assert_eq!(read, snapshot);
        self.ids = read.restore(self.rule.clone()).expect("the space again");
        self.compare();
    }

    fn compare(&self) {
        assert!(self.ids.iter().eq(self.held.iter().copied()));
        let runs = self.ids.runs().map(|run| run.len()).sum::<u128>();
        assert_eq!(runs, self.held.len() as u128);
    }
}
