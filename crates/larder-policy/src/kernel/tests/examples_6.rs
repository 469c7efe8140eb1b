//! The transitions of 6.x, one by one, worked out by hand.

use super::super::super::{Policy, Reason};
use super::super::{Mglru, TwoList};
use super::owner::Owner;

fn said<P: Policy>(owner: &Owner<P>, name: &str) -> f64 {
    let explained = owner.rule.explain();
    explained.iter().find(|(at, _)| *at == name).unwrap().1
}

#[test]
fn two_list_promotes_at_the_second_use_but_not_within_a_request() {
    let mut owner = Owner::new(TwoList::new, 4);
    owner.read([0]);
    (0..5).for_each(|_| owner.again(0)); // the call that brought it
    assert_eq!(said(&owner, "active"), 0.0);
    owner.touch(0);
    assert_eq!(said(&owner, "active"), 1.0);
    owner.bring(1, Reason::Readahead);
    owner.again(1); // the call that read ahead comes to use it: first use
    assert_eq!(said(&owner, "active"), 1.0);
    owner.touch(1);
    assert_eq!(said(&owner, "active"), 2.0);
}

#[test]
fn two_list_a_refault_within_the_active_lists_length_starts_active() {
    let mut owner = Owner::new(TwoList::new, 4);
    owner.read(0..4);
    owner.touch(2);
    owner.touch(3); // two active; two activations
    assert_eq!(owner.evict(1), [0]); // distance 0 from now
    assert_eq!(owner.evict(1), [1]);
    owner.bring(0, Reason::Demand); // two evictions later: 2 <= 2
    assert_eq!(said(&owner, "active"), 3.0);
    assert_eq!(said(&owner, "refaults that activated"), 1.0);
}

#[test]
fn two_list_a_longer_distance_or_a_write_starts_inactive() {
    let mut owner = Owner::new(TwoList::new, 4);
    owner.read(0..4);
    owner.touch(3); // one active
    assert_eq!(owner.evict(3), [0, 1, 2]);
    owner.bring(0, Reason::Demand); // 3 > 1
    assert_eq!(said(&owner, "active"), 1.0);
    owner.bring(2, Reason::Write); // 1 <= 1, but it is overwritten
    assert_eq!(said(&owner, "active"), 1.0);
    assert_eq!(said(&owner, "refaults"), 1.0);
    owner.bring(1, Reason::Demand); // 2 > 1
    assert_eq!(said(&owner, "active"), 1.0);
}

#[test]
fn two_list_deactivates_when_the_inactive_list_is_low_and_referenced_saves_nobody() {
    let mut owner = Owner::new(TwoList::new, 40);
    owner.read(0..40);
    (0..40).for_each(|block| owner.touch(block)); // all active
    (0..40).for_each(|block| owner.touch(block)); // and referenced
    assert_eq!(owner.evict(1), [0]); // 32 were moved: 32 * 1 < 8 is false
    assert_eq!(
        (said(&owner, "active"), said(&owner, "inactive")),
        (8.0, 31.0)
    );
    owner.touch(1); // its bit stayed: one use brings it back
    assert_eq!(said(&owner, "active"), 9.0);
}

#[test]
fn two_list_the_working_set_bit_survives_an_eviction() {
    let mut owner = Owner::new(TwoList::new, 4);
    owner.read(0..4);
    (0..4).for_each(|block| owner.touch(block));
    assert_eq!(owner.evict(1), [0]); // deactivated first: working set
    let shadow = owner.state.shadows[&0].get();
    assert_eq!(shadow & 1, 1);
    assert_eq!(shadow >> 1, 4); // four activations
    owner.read([0]);
    // The active list is empty, so the distance of 1 is too long.
    assert_eq!(said(&owner, "refaults that activated"), 0.0);
}

#[test]
fn two_list_dirty_pages_go_out_of_the_way_and_are_the_next_once_written() {
    let mut owner = Owner::new(TwoList::new, 6);
    owner.read(0..6);
    owner.state.dirty.extend([0, 1]);
    assert_eq!(owner.evict(1), [2]);
    assert_eq!(owner.state.asked, [0, 1]);
    assert_eq!(said(&owner, "waiting for a write"), 2.0);
    owner.touch(1); // it counts as active: marked only
    assert_eq!(owner.evict(1), [3]);
    owner.state.dirty.remove(&0);
    assert_eq!(owner.evict(1), [0]);
    owner.state.pinned.extend([4, 5]);
    assert_eq!(owner.evict(1), [1]); // the last resort: still dirty
    assert_eq!(owner.evict(1), []);
}

#[test]
fn mglru_a_new_page_is_in_the_oldest_generation_and_uses_do_not_move_it() {
    let mut owner = Owner::new(Mglru::new, 4);
    owner.read(0..4);
    owner.touch(0);
    owner.touch(0); // three uses: tier 2
    assert_eq!(owner.evict(1), [0]); // nothing refaults, so no tier is protected
    assert_eq!(owner.state.shadows[&0].get(), 2 << 1); // generation 0, two uses after the first
}

#[test]
fn mglru_a_page_with_every_bit_goes_to_the_next_generation_once() {
    let mut owner = Owner::new(Mglru::new, 4);
    owner.read(0..4);
    (0..4).for_each(|_| owner.touch(0)); // five uses: 4 counted, then Workingset
    assert_eq!(owner.evict(3), [1, 2, 3]);
    assert_eq!(said(&owner, "protected"), 0.0); // lazily promoted is not counted
    assert_eq!(owner.evict(1), [0]);
    assert_eq!(owner.state.shadows[&0].get() & 1, 1); // Workingset stays
}

#[test]
fn mglru_uses_within_a_request_count_once() {
    let mut owner = Owner::new(Mglru::new, 4);
    owner.read(0..2);
    (0..9).for_each(|_| owner.again(1));
    assert_eq!(owner.evict(2), [0, 1]);
    assert_eq!(owner.state.shadows[&1].get(), 0); // one use
}

#[test]
fn mglru_a_recent_refault_of_the_working_set_starts_in_the_second_oldest() {
    let mut owner = Owner::new(Mglru::new, 6);
    owner.read(0..4);
    (0..4).for_each(|_| owner.touch(0));
    assert_eq!(owner.evict(3), [1, 2, 3]); // generation 0 is done; 0 is in 1
    owner.read([4]); // with 0, in the oldest
    assert_eq!(owner.evict(1), [0]);
    assert_eq!(owner.state.shadows[&0].get(), (1 << 2) << 1 | 1);
    assert_eq!(said(&owner, "youngest generation"), 4.0);
    owner.read([0, 5]); // 4 - 1 is less than 4: recent
    assert_eq!(said(&owner, "refaults within four generations"), 1.0);
    assert_eq!(owner.evict(3), [4, 5, 0]);
}

#[test]
fn mglru_a_tier_that_refaults_is_protected() {
    // A hundred pages used twice come back a hundred times over; those used once never do.
    let mut owner = Owner::new(Mglru::new, 400);
    let mut once = 200;
    let mut resident = std::collections::BTreeSet::new();
    for _ in 0..40 {
        for block in 0..100 {
            if resident.insert(block) {
                owner.bring(block, Reason::Demand);
            }
            owner.touch(block);
        }
        for _ in 0..100 {
            if resident.insert(once) {
                owner.bring(once, Reason::Demand);
            }
            once = if once == 399 { 200 } else { once + 1 };
        }
        let count = resident.len().min(150);
        for gone in owner.evict(count) {
            resident.remove(&gone);
            if gone >= 200 {
                owner.state.shadows.remove(&gone); // as if it were another one
            }
        }
    }
    assert!(said(&owner, "refaults within four generations") > 64.0);
    assert!(said(&owner, "protected") > 0.0);
}

#[test]
fn mglru_dirty_and_pinned_pages_stay() {
    let mut owner = Owner::new(Mglru::new, 4);
    owner.read(0..4);
    owner.state.dirty.insert(0);
    owner.state.pinned.insert(1);
    assert_eq!(owner.evict(1), [2]);
    assert_eq!(owner.state.asked, [0]);
    owner.state.dirty.clear();
    assert_eq!(owner.evict(3), [0, 3]);
    owner.state.pinned.clear();
    assert_eq!(owner.evict(3), [1]);
}
