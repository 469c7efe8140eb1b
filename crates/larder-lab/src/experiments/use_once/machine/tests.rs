//! The modelled machine on a few pages.

use super::*;
use larder_sim::block_of;

fn record(kind: Kind, file: u32, page: u64) -> Record {
    Record {
        block: block_of(file, page).unwrap_or_default(),
        bytes: 4096,
        file,
        kind,
        ..Record::default()
    }
}

fn run(rule: &str, pages: usize, readahead: bool, records: &[Record]) -> Outcome {
    let setup = Setup {
        rule,
        pages,
        clients: 1,
        readahead,
        merged: true,
        warm: 0,
    };
    let machine = Machine::new(setup).and_then(|machine| machine.run(records.iter().copied()));
    machine.unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn what_is_removed_before_it_is_old_is_never_written() {
    let mut records: Vec<Record> = (0..20).map(|page| record(Kind::Write, 1, page)).collect();
    records.extend((0..20).map(|page| record(Kind::Remove, 1, page)));
    let outcome = run("lru", 100, true, &records);
    assert_eq!(
        (outcome.pages_written, outcome.pages_read, outcome.uses),
        (0, 0, 20)
    );
}

#[test]
fn what_comes_before_the_count_is_not_counted() {
    let records: Vec<Record> = (0..30)
        .map(|page| record(Kind::Read, 1, page % 10))
        .collect();
    let setup = Setup {
        rule: "lru",
        pages: 20,
        clients: 1,
        readahead: false,
        merged: true,
        warm: 10,
    };
    let machine = Machine::new(setup).and_then(|machine| machine.run(records.into_iter()));
    let outcome = machine.unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(
        (outcome.uses, outcome.hits, outcome.pages_read),
        (20, 20, 0)
    );
    assert_eq!(outcome.payload, 20.0 * 4096.0);
}

#[test]
fn beyond_two_fifths_dirty_pages_are_written_in_order_and_once() {
    let records: Vec<Record> = (0..90).map(|page| record(Kind::Write, 1, page)).collect();
    let outcome = run("lru", 100, true, &records);
    assert_eq!(outcome.pages_written, 50);
}

#[test]
fn a_dirty_page_that_must_leave_is_written() {
    let records: Vec<Record> = (0..3).map(|page| record(Kind::Write, 1, page)).collect();
    let outcome = run("fifo", 1, true, &records);
    assert_eq!(outcome.pages_written, 3); // 40 % of one page is none at all
}

#[test]
fn readahead_makes_fewer_commands_of_the_same_pages() {
    let mut records: Vec<Record> = (0..64).map(|page| record(Kind::Write, 1, page)).collect();
    records.extend((0..200).map(|page| record(Kind::Write, 2, page))); // flushes file 1
    records.extend((0..64).map(|page| record(Kind::Read, 1, page)));
    let with = run("lru", 100, true, &records);
    let without = run("lru", 100, false, &records);
    assert_eq!(with.pages_read, without.pages_read);
    assert!(with.hits > without.hits + 50);
    assert!(with.seconds < without.seconds && with.commands < without.commands);
}

#[test]
fn drop_behind_hits_popular_pages_in_vanilla_only() {
    // A popular file read again and again page by page beside a stream: vanilla drops what its readers pass.
    let mut records = Vec::new();
    for round in 0..40 {
        for page in 0..60 {
            records.push(record(Kind::Read, 1, page));
        }
        for page in 0..60 {
            records.push(record(Kind::Read, 2, 60 * round + page));
        }
    }
    let vanilla = run("linux-2.4.7", 120, true, &records);
    let patched = run("linux-2.4.7-use-once", 120, true, &records);
    assert!(
        patched.hits >= vanilla.hits,
        "{} {}",
        patched.hits,
        vanilla.hits
    );
}
