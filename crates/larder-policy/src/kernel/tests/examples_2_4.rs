//! The transitions of 2.4, one by one, worked out by hand.

use super::super::super::{Policy, Reason};
use super::super::page_lists::{On, PageLists};
use super::super::{Linux247, Linux2416};
use super::owner::Owner;

fn list(pages: &PageLists, on: On) -> Vec<u32> {
    pages.iter(on).collect()
}

/// (list, age, Referenced) of a page.
fn page(pages: &PageLists, page: u32) -> (On, u8, bool) {
    let on = [On::Active, On::Dirty, On::Clean]
        .into_iter()
        .find(|&on| pages.is_on(page, on))
        .unwrap();
    (on, pages.age(page), pages.referenced(page))
}

#[test]
fn vanilla_a_new_page_is_active_at_age_two_and_a_use_only_sets_referenced() {
    let mut owner = Owner::new(Linux247::new, 100);
    owner.read([0]);
    owner.bring(1, Reason::Readahead);
    assert_eq!(page(&owner.rule.pages, 0), (On::Active, 2, false));
    assert_eq!(page(&owner.rule.pages, 1), (On::Active, 2, false));
    owner.touch(0);
    owner.touch(0);
    assert_eq!(page(&owner.rule.pages, 0), (On::Active, 2, true));
}

#[test]
fn vanilla_a_page_written_to_its_end_and_one_dropped_behind_are_inactive() {
    let mut owner = Owner::new(Linux247::new, 100);
    owner.bring(0, Reason::Write);
    assert_eq!(page(&owner.rule.pages, 0), (On::Dirty, 0, false));
    owner.read([1]);
    for _ in 0..9 {
        owner.touch(1); // popular, and still:
    }
    owner.rule.drop_behind(1);
    assert_eq!(page(&owner.rule.pages, 1), (On::Dirty, 0, false));
    assert_eq!(list(&owner.rule.pages, On::Dirty), [0, 1]);
    owner.check();
}

#[test]
fn vanilla_ages_fall_by_half_and_a_page_at_zero_leaves_the_ring() {
    // 4 frames want 30 inactive ones, so kswapd goes round until nothing is active: 2, 1, 0.
    let mut owner = Owner::new(Linux247::new, 4);
    owner.read(0..4);
    assert_eq!(owner.evict(1), [0]);
    assert_eq!(list(&owner.rule.pages, On::Active), []);
    assert_eq!(owner.rule.pages.inactive(), 3);
}

#[test]
fn vanilla_a_referenced_page_grows_older_and_outlives_the_others() {
    let mut owner = Owner::new(Linux247::new, 4);
    owner.read(0..4);
    owner.touch(0);
    assert_eq!(owner.evict(3), [1, 2, 3]);
    assert_eq!(owner.evict(1), [0]);
}

#[test]
fn vanilla_an_inactive_page_that_is_used_is_rescued_with_referenced_left_set() {
    let mut owner = Owner::new(Linux247::new, 100);
    owner.read(0..100);
    assert_eq!(owner.evict(1), [0]);
    let clean = list(&owner.rule.pages, On::Clean);
    let next = clean[0];
    owner.touch(next); // lies at the tail of the clean list
    assert_eq!(page(&owner.rule.pages, next), (On::Clean, 0, true));
    assert_eq!(owner.evict(1), [clean[1]]);
    let (on, _, referenced) = page(&owner.rule.pages, next);
    assert_eq!((on, referenced), (On::Active, true));
}

#[test]
fn use_once_a_page_starts_inactive_and_its_first_use_makes_it_two() {
    let mut owner = Owner::new(Linux247::use_once, 100);
    owner.bring(0, Reason::Readahead);
    assert_eq!(page(&owner.rule.pages, 0), (On::Dirty, 0, false));
    owner.touch(0); // the first use of a page read ahead
    assert_eq!(page(&owner.rule.pages, 0), (On::Dirty, 2, false));
    owner.read([1]); // brought and used by one call
    owner.bring(2, Reason::Write);
    assert_eq!(page(&owner.rule.pages, 1), (On::Dirty, 2, false));
    assert_eq!(page(&owner.rule.pages, 2), (On::Dirty, 2, false));
    owner.rule.drop_behind(1);
    assert_eq!(page(&owner.rule.pages, 1), (On::Dirty, 2, false)); // deleted by the patch
}

#[test]
fn use_once_a_page_read_twice_is_rescued_at_the_tail_not_before() {
    let mut owner = Owner::new(Linux247::use_once, 1000);
    owner.read(0..1000);
    owner.touch(0);
    owner.touch(2);
    assert_eq!(page(&owner.rule.pages, 0), (On::Dirty, 2, true)); // still on its way out
    assert_eq!(owner.rule.pages.len(On::Active), 0);
    assert_eq!(owner.evict(1), [1]);
    assert_eq!(page(&owner.rule.pages, 0), (On::Active, 2, true));
    assert_eq!(page(&owner.rule.pages, 2), (On::Active, 2, true)); // page_launder looks at the whole list
    assert_eq!(page(&owner.rule.pages, 3), (On::Clean, 2, false));
    owner.touch(3); // found on the clean list
    assert_eq!(owner.evict(1), [4]);
    assert_eq!(page(&owner.rule.pages, 3), (On::Active, 2, true));
}

#[test]
fn use_once_a_page_whose_age_sank_to_zero_looks_new_at_its_next_use() {
    let mut owner = Owner::new(Linux247::use_once, 4);
    owner.read(0..4);
    (0..4).for_each(|block| owner.touch(block));
    assert_eq!(owner.evict(1), [0]); // all are rescued, age to 0, and the first of them goes
    assert_eq!(page(&owner.rule.pages, 1), (On::Clean, 0, false));
    owner.touch(1);
    assert_eq!(page(&owner.rule.pages, 1), (On::Clean, 2, false)); // not referenced: no rescue
    assert_eq!(owner.evict(1), [1]);
}

#[test]
fn the_second_touch_promotes_at_once_in_2_4_8_and_stays_referenced() {
    let mut owner = Owner::new(Linux247::merged, 4);
    owner.read(0..4);
    assert_eq!(page(&owner.rule.pages, 0), (On::Dirty, 2, false));
    owner.touch(0);
    assert_eq!(page(&owner.rule.pages, 0), (On::Active, 2, true)); // the double boost
    owner.touch(0); // an active page is only marked
    assert_eq!(page(&owner.rule.pages, 0), (On::Active, 2, true));
    owner.bring_over(1, Reason::Readahead);
    owner.touch(1); // the first use of a page read ahead
    assert_eq!(page(&owner.rule.pages, 1), (On::Dirty, 2, false));
    owner.touch(1);
    assert_eq!(page(&owner.rule.pages, 1), (On::Active, 2, true));
}

#[test]
fn dirty_pages_go_to_the_head_then_are_written_and_leave_clean_ones_first() {
    let mut owner = Owner::new(Linux247::use_once, 4);
    owner.read(0..4);
    owner.state.dirty.extend([0, 1]);
    assert_eq!(owner.evict(1), [2]);
    // The second round asked for both: pages are short as long as there are only four.
    assert_eq!(owner.state.asked[..2], [0, 1]);
    assert_eq!(owner.evict(1), [3]);
    owner.state.dirty.clear(); // written
    assert_eq!(owner.evict(2), [0, 1]);
}

#[test]
fn a_page_in_use_goes_to_the_active_list_and_none_leaves_while_all_are() {
    let mut owner = Owner::new(Linux247::use_once, 4);
    owner.read(0..4);
    owner.state.pinned.extend(0..4);
    assert_eq!(owner.evict(2), []);
    assert_eq!(owner.rule.pages.len(On::Active), 4);
    owner.state.pinned.remove(&2);
    assert_eq!(owner.evict(2), [2]);
}

#[test]
fn when_everything_is_dirty_and_no_write_ends_the_oldest_leaves_dirty() {
    let mut owner = Owner::new(Linux247::new, 4);
    owner.read(0..4);
    owner.state.dirty.extend(0..4);
    assert_eq!(owner.evict(1).len(), 1);
    let mut owner = Owner::new(Linux2416::new, 4);
    owner.read(0..4);
    owner.state.dirty.extend(0..4);
    assert_eq!(owner.evict(1).len(), 1);
}

#[test]
fn a_second_of_2_4_7_launders_decays_and_ages() {
    let mut owner = Owner::new(Linux247::new, 4000); // wants 3 * 31 free pages
    owner.read(0..4000);
    assert_eq!(owner.rule.pages.len(On::Active), 4000);
    for _ in 0..4 {
        owner.tick();
    }
    // 93, a target of 4000 / 64 = 62 that decays, and what a sixteenth of the ring gives in the background
    let inactive = owner.rule.pages.inactive();
    assert!((93..=93 + 62 + 2 * 250).contains(&inactive), "{inactive}");
    assert!(owner.rule.pages.len(On::Clean) >= 93);
    assert_eq!(owner.state.gone, []);
    // nothing is deactivated in the background once a quarter of the pages is inactive
    owner.state.pinned.extend(0..3000);
    (3000..4000).for_each(|block| owner.rule.drop_behind(block));
    let before = list(&owner.rule.pages, On::Active);
    owner.tick();
    assert_eq!(list(&owner.rule.pages, On::Active), before);
}

#[test]
fn readahead_that_is_never_used_leaves_before_what_is_used() {
    let mut owner = Owner::new(Linux247::use_once, 6);
    for block in 0..6 {
        owner.bring(
            block,
            if block % 2 == 0 {
                Reason::Readahead
            } else {
                Reason::Demand
            },
        );
    }
    for block in [1, 3, 5] {
        owner.touch(block);
    }
    assert_eq!(owner.evict(3), [0, 2, 4]);
}

#[test]
fn a_removed_page_is_on_no_list() {
    let mut owner = Owner::new(Linux247::new, 3);
    owner.read(0..3);
    owner.rule.drop_behind(1);
    for block in 0..3 {
        owner.rule.remove(block);
        owner.check();
    }
    assert_eq!((owner.rule.len(), owner.evict(1)), (0, vec![]));
}

fn lists_2416(owner: &Owner<Linux2416>) -> (f64, f64) {
    let explained = owner.rule.explain();
    (explained[0].1, explained[1].1)
}

#[test]
fn the_second_use_promotes_in_2_4_16_and_readahead_is_no_use() {
    let mut owner = Owner::new(Linux2416::new, 4);
    owner.read([0]);
    owner.bring(1, Reason::Readahead);
    owner.touch(1); // first use
    assert_eq!(lists_2416(&owner), (0.0, 2.0));
    owner.touch(0);
    assert_eq!(lists_2416(&owner), (1.0, 1.0));
    owner.touch(1);
    assert_eq!(lists_2416(&owner), (2.0, 0.0));
}

#[test]
fn a_deactivated_page_of_2_4_16_comes_back_at_one_use() {
    let mut owner = Owner::new(Linux2416::new, 3);
    owner.read(0..3);
    owner.touch(0);
    owner.touch(1);
    // 32 * 2 / (2 * 2) = 16: both active pages are moved, behind 2.
    assert_eq!(owner.evict(1), [2]);
    assert_eq!(lists_2416(&owner), (0.0, 2.0));
    owner.touch(0);
    assert_eq!(lists_2416(&owner), (1.0, 1.0));
    assert_eq!(owner.evict(1), [1]);
}

#[test]
fn a_referenced_active_page_of_2_4_16_goes_round_once() {
    let mut owner = Owner::new(Linux2416::new, 40);
    owner.read(0..40);
    (0..30).for_each(|block| owner.touch(block)); // active, 0 the oldest
    owner.touch(0); // and referenced
    // 32 * 30 / (11 * 2) = 43 > 30: all are deactivated, 0 last, since it went round
    assert_eq!(owner.evict(10), (30..40).collect::<Vec<_>>());
    assert_eq!(owner.evict(29), (1..30).collect::<Vec<_>>());
    assert_eq!(owner.evict(2), [0]);
}

#[test]
fn dirty_pages_of_2_4_16_are_written_as_the_scan_meets_them() {
    let mut owner = Owner::new(Linux2416::new, 12);
    owner.read(0..12);
    owner.state.dirty.extend(0..3);
    assert_eq!(owner.evict(1), [3]); // a sixth: 0 and 1; a fifth: 2 and 3
    assert_eq!(owner.state.asked, [0, 1, 2]);
    owner.state.dirty.clear();
    assert_eq!(owner.evict(11), [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2]);
}
