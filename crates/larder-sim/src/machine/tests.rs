//! The modelled machine on a few blocks.

use super::super::block_of;
use super::*;

fn record(kind: Kind, file: u32, page: u64) -> Record {
    Record {
        block: block_of(file, page).unwrap_or_default(),
        bytes: 4096,
        file,
        kind,
        ..Record::default()
    }
}

fn setup(blocks: usize, readahead: bool) -> Setup {
    Setup {
        readahead,
        requests: Requests::Merged,
        cpu: 32.1e6,
        ..Setup::new(blocks)
    }
}

fn run(rule: &str, blocks: usize, readahead: bool, records: &[Record]) -> Counted {
    let mut machine = Machine::new(rule, setup(blocks, readahead)).unwrap();
    records.iter().for_each(|r| machine.step(r).unwrap());
    machine.counted()
}

#[test]
fn what_is_removed_before_it_is_old_is_never_written() {
    let mut records: Vec<Record> = (0..20).map(|page| record(Kind::Write, 1, page)).collect();
    records.extend((0..20).map(|page| record(Kind::Remove, 1, page)));
    let outcome = run("lru", 100, true, &records);
    assert_eq!(
        (
            outcome.disk.written,
            outcome.disk.read,
            outcome.tally.misses
        ),
        (0, 0, 20)
    );
}

#[test]
fn what_comes_before_the_count_is_not_counted() {
    let mut machine = Machine::new("lru", setup(20, false)).unwrap();
    let mut before = Counted::default();
    for at in 0..30 {
        if at == 10 {
            before = machine.counted();
        }
        machine.step(&record(Kind::Read, 1, at % 10)).unwrap();
    }
    let since = machine.counted().since(&before, 32.1e6);
    assert_eq!(
        (since.tally.hits, since.tally.misses, since.disk.read),
        (20, 0, 0)
    );
    assert_eq!(since.payload, 20.0 * 4096.0);
    assert_eq!(since.disk.total_s, since.payload / 32.1e6);
}

#[test]
fn what_a_trace_says_was_read_ahead_is_read_once_and_counts_as_no_use() {
    let mut records = vec![record(Kind::Readahead, 1, 5); 2];
    records.push(record(Kind::Read, 1, 5));
    let counted = run("lru", 10, false, &records);
    assert_eq!((counted.tally.hits, counted.tally.misses), (1, 0));
    assert_eq!((counted.tally.fetched, counted.disk.read), (1, 1));
    // Not used: it leaves for nothing.
    records.truncate(2);
    records.push(record(Kind::Remove, 1, 5));
    assert_eq!(run("lru", 10, false, &records).tally.wasted, 1);
}

#[test]
fn beyond_two_fifths_dirty_pages_are_written_in_order_and_once() {
    let records: Vec<Record> = (0..90).map(|page| record(Kind::Write, 1, page)).collect();
    let outcome = run("lru", 100, true, &records);
    assert_eq!(outcome.disk.written, 50);
}

#[test]
fn what_is_removed_is_in_no_queue() {
    let mut machine = Machine::new("lru", Setup::new(100)).unwrap();
    machine.step(&record(Kind::Write, 1, 0)).unwrap(); // the oldest stays
    for kind in [Kind::Write, Kind::Remove].into_iter().cycle().take(1000) {
        machine.step(&record(kind, 1, 7)).unwrap();
    }
    assert_eq!(machine.house.queue.len(), 1);
    let (_, &(oldest, _)) = machine.house.queue.first_key_value().unwrap();
    let is_dirty = |machine: &Machine| machine.house.frames[oldest as usize].dirty.is_some();
    for page in 1..40 {
        machine.step(&record(Kind::Write, 1, page)).unwrap();
        assert!(is_dirty(&machine), "{page}");
    }
    // Beyond 40 it is the first to be written.
    machine.step(&record(Kind::Write, 1, 40)).unwrap();
    machine.step(&record(Kind::Write, 1, 41)).unwrap();
    assert!(!is_dirty(&machine));
    assert_eq!(machine.house.queue.len(), 40);
}

#[test]
fn a_dirty_page_that_must_leave_is_written() {
    let records: Vec<Record> = (0..3).map(|page| record(Kind::Write, 1, page)).collect();
    let outcome = run("fifo", 1, true, &records);
    assert_eq!(outcome.disk.written, 3); // 40 % of one page is none at all
}

#[test]
fn readahead_makes_fewer_commands_of_the_same_pages() {
    let mut records: Vec<Record> = (0..64).map(|page| record(Kind::Write, 1, page)).collect();
    records.extend((0..200).map(|page| record(Kind::Write, 2, page))); // flushes file 1
    records.extend((0..64).map(|page| record(Kind::Read, 1, page)));
    let with = run("lru", 100, true, &records);
    let without = run("lru", 100, false, &records);
    assert_eq!(with.disk.read, without.disk.read);
    assert!(with.tally.hits > without.tally.hits + 50);
    assert!(with.disk.total_s < without.disk.total_s && with.disk.commands < without.disk.commands);
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
        patched.tally.hits >= vanilla.tally.hits,
        "{} {}",
        patched.tally.hits,
        vanilla.tally.hits
    );
}
