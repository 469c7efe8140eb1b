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
