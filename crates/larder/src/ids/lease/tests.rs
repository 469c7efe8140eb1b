//! Leases on a disk that stops in the middle of every write, after every byte.

use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::num::NonZeroU64;
use std::io;

use super::file::{Fault, Medium, Records};
use super::{Durable, Lease, LeaseError};
use crate::ids::{IdError, IdRange};

/// What a machine that stops does with what was written and not flushed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// Only so many bytes of the write that was going on reach the disk.
    After(usize),
    /// All bytes but the first so many.
    Until(usize),
}

/// A disk that remembers what is durable, and stops for good at one of its operations.
#[derive(Debug)]
struct Disk {
    durable: Vec<u8>,
    /// The write that was not flushed yet. (There is never more than one.)
    unflushed: Option<(usize, Vec<u8>)>,
    operations_left: usize,
    cut: Cut,
}

type Shared = Rc<RefCell<Disk>>;

impl Disk {
    fn new(durable: Vec<u8>, operations_left: usize, cut: Cut) -> Shared {
        Rc::new(RefCell::new(Self {
            durable,
            unflushed: None,
            operations_left,
            cut,
        }))
    }

    fn operation(&mut self) -> io::Result<()> {
        if self.operations_left == 0 {
            return Err(io::Error::other("the machine has stopped"));
        }
        self.operations_left -= 1;
        Ok(())
    }

    /// What is found when the machine starts again.
    fn after_the_stop(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        if let Some((at, written)) = &self.unflushed {
            let part = match self.cut {
                Cut::After(count) => 0..count.min(written.len()),
                Cut::Until(count) => count.min(written.len())..written.len(),
            };
            bytes[at + part.start..at + part.end].copy_from_slice(&written[part]);
        }
        bytes
    }
}

impl Medium for Shared {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut disk = self.borrow_mut();
        disk.operation()?;
        let mut seen = disk.durable.clone();
        if let Some((at, written)) = &disk.unflushed {
            seen[*at..*at + written.len()].copy_from_slice(written);
        }
        bytes.copy_from_slice(&seen[at as usize..][..bytes.len()]);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.borrow_mut();
        assert!(disk.unflushed.is_none(), "two records at once can be torn");
        // The operation at which it stops may have begun.
        let result = disk.operation();
        disk.unflushed = Some((at as usize, bytes.to_vec()));
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut disk = self.borrow_mut();
        disk.operation()?;
        if let Some((at, bytes)) = disk.unflushed.take() {
            disk.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

impl<M: Medium> Durable for Records<M> {
    type Error = Fault;

    fn load(&mut self) -> Result<Option<u64>, Fault> {
        Records::load(self)
    }

    fn store(&mut self, next: u64) -> Result<(), Fault> {
        Records::store(self, next)
    }
}

const BLOCK: u64 = 3;

fn open<D: Durable>(store: D) -> Result<Lease<D>, LeaseError<D::Error>> {
    Lease::new(
        store,
        IdRange::new(10, 1000).unwrap(),
        NonZeroU64::new(BLOCK).unwrap(),
    )
}

/// Seven identifiers and a clean end, on this disk; what was handed out is added to `given`.
fn a_life(disk: &Shared, given: &mut Vec<u64>) -> Result<(), LeaseError<Fault>> {
    let mut lease = open(Records::new(Rc::clone(disk)))?;
    for _ in 0..7 {
        given.push(lease.alloc()?);
    }
    lease.close()
}

/// No identifier was handed out twice, and no more were skipped than a block for each stop.
fn check(given: &[u64], stops: u64) {
    assert!(given.windows(2).all(|pair| pair[0] < pair[1]), "{given:?}");
    let skipped = given.last().map_or(0, |last| last - 9 - given.len() as u64);
    assert!(skipped <= stops * BLOCK, "{skipped} skipped: {given:?}");
}

fn cuts() -> impl Iterator<Item = Cut> {
    (0..=32).map(Cut::After).chain((0..=32).map(Cut::Until))
}

#[test]
fn a_stop_at_any_operation_and_byte_repeats_nothing() {
    let mut stopped = 0;
    for cut in cuts() {
        for operations in 0.. {
            let mut given = Vec::new();
            let disk = Disk::new(Records::<Shared>::fresh(), operations, cut);
            let ended = a_life(&disk, &mut given).is_ok();
            let disk = Disk::new(disk.borrow().after_the_stop(), usize::MAX, cut);
            a_life(&disk, &mut given).unwrap();
            check(&given, 1);
            if ended {
                check(&given, 0);
                break;
            }
            stopped += 1;
        }
    }
    assert!(stopped > 66 * 15, "{stopped}");
}

#[test]
fn a_second_stop_while_the_first_is_healed_repeats_nothing() {
    for cut in [0, 1, 13, 21, 31, 32]
        .into_iter()
        .flat_map(|n| [Cut::After(n), Cut::Until(n)])
    {
        for first in 0..24 {
            for second in 0..24 {
                let mut given = Vec::new();
                let disk = Disk::new(Records::<Shared>::fresh(), first, cut);
                let _ = a_life(&disk, &mut given);
                let disk = Disk::new(disk.borrow().after_the_stop(), second, cut);
                let _ = a_life(&disk, &mut given);
                let disk = Disk::new(disk.borrow().after_the_stop(), usize::MAX, cut);
                a_life(&disk, &mut given).unwrap();
                check(&given, 2);
            }
        }
    }
}

#[test]
fn a_disk_that_fails_for_a_while_repeats_and_skips_nothing() {
    for operations in 0..30 {
        for (failing, cut) in [(1, Cut::After(5)), (2, Cut::After(32)), (3, Cut::Until(9))] {
            let disk = Disk::new(Records::<Shared>::fresh(), usize::MAX, cut);
            let mut lease = open(Records::new(Rc::clone(&disk))).unwrap();
            disk.borrow_mut().operations_left = operations;
            let mut given = Vec::new();
            let mut refused = 0;
            while given.len() < 20 {
                match lease.alloc() {
                    Ok(id) => given.push(id),
                    Err(LeaseError::Store(Fault::Io(_))) => {
                        refused += 1;
                        // The system forgets what it could not write.
                        let left = disk.borrow().after_the_stop();
                        let mut disk = disk.borrow_mut();
                        disk.durable = left;
                        disk.unflushed = None;
                        disk.operations_left = if refused < failing {
                            refused
                        } else {
                            usize::MAX
                        };
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            check(&given, 0);
            drop(lease);
            disk.borrow_mut().operations_left = usize::MAX;
            a_life(&disk, &mut given).unwrap();
            check(&given, 1);
        }
    }
}

#[test]
fn either_record_may_decay() {
    let disk = Disk::new(Records::<Shared>::fresh(), usize::MAX, Cut::After(0));
    let mut before = Vec::new();
    a_life(&disk, &mut before).unwrap();
    let whole = disk.borrow().durable.clone();
    for place in [0, 4096] {
        for byte in 0..32 {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[place + byte] ^= 1 << bit;
                let disk = Disk::new(bytes, usize::MAX, Cut::After(0));
                let mut given = before.clone();
                a_life(&disk, &mut given).unwrap();
                check(&given, 0);
            }
        }
    }
}

#[test]
fn a_record_that_was_healed_is_as_good_as_the_other() {
    let disk = Disk::new(Records::<Shared>::fresh(), usize::MAX, Cut::After(0));
    a_life(&disk, &mut Vec::new()).unwrap();
    for (first, second) in [(0, 4096), (4096, 0)] {
        disk.borrow_mut().durable[first] ^= 1;
        assert_eq!(Records::new(Rc::clone(&disk)).load().unwrap(), Some(17));
        disk.borrow_mut().durable[second] ^= 1;
        assert_eq!(Records::new(Rc::clone(&disk)).load().unwrap(), Some(17));
    }
}

#[test]
fn a_record_that_could_not_be_healed_is_written_first() {
    for damaged in [0, 4096] {
        let disk = Disk::new(Records::<Shared>::fresh(), usize::MAX, Cut::After(9));
        let mut records = Records::new(Rc::clone(&disk));
        records.load().unwrap();
        records.store(20).unwrap();
        disk.borrow_mut().durable[damaged] ^= 1;
        // Both records can be read, and none written.
        disk.borrow_mut().operations_left = 2;
        records.load().unwrap_err();
        disk.borrow_mut().unflushed = None;
        records.store(30).unwrap_err();
        let disk = Disk::new(disk.borrow().after_the_stop(), usize::MAX, Cut::After(0));
        assert_eq!(Records::new(disk).load().unwrap(), Some(20));
    }
}

#[test]
fn a_damaged_number_is_never_taken_for_none() {
    let whole = Records::<Shared>::fresh();
    for (first, second) in [(0, 4096), (31, 4127), (15, 4100)] {
        let mut bytes = whole.clone();
        bytes[first] ^= 1;
        bytes[second] ^= 1;
        let disk = Disk::new(bytes, usize::MAX, Cut::After(0));
        assert!(matches!(Records::new(disk).load(), Err(Fault::Damaged(_))));
    }
    let mut bytes = whole;
    let record = |next| super::LeaseRecord { sequence: 5, next }.to_bytes();
    bytes[..32].copy_from_slice(&record(1));
    bytes[4096..].copy_from_slice(&record(2));
    let disk = Disk::new(bytes, usize::MAX, Cut::After(0));
    assert!(matches!(Records::new(disk).load(), Err(Fault::Damaged(_))));
}

#[test]
fn a_number_that_was_stored_too_often_is_an_error() {
    let mut bytes = Records::<Shared>::fresh();
    let record = super::LeaseRecord {
        sequence: u64::MAX,
        next: 20,
    }
    .to_bytes();
    bytes[..32].copy_from_slice(&record);
    let disk = Disk::new(bytes, usize::MAX, Cut::After(0));
    let mut lease = open(Records::new(disk)).unwrap();
    assert!(matches!(
        lease.alloc(),
        Err(LeaseError::Store(Fault::Damaged(_)))
    ));
}

#[test]
fn a_lease_checks_its_range() {
    struct At(u64);
    impl Durable for At {
        type Error = ();
        fn load(&mut self) -> Result<Option<u64>, ()> {
            Ok(Some(self.0))
        }
        fn store(&mut self, next: u64) -> Result<(), ()> {
            self.0 = next;
            Ok(())
        }
    }
    let block = NonZeroU64::new(4).unwrap();
    let range = IdRange::new(5, 14).unwrap();
    for (mark, fits) in [
        (4, false),
        (5, true),
        (14, true),
        (15, true),
        (16, false),
        (u64::MAX, false),
    ] {
        let lease = Lease::new(At(mark), range, block);
        assert_eq!(lease.is_ok(), fits, "{mark}");
    }
    assert!(matches!(
        Lease::new(At(0), IdRange::ALL, block),
        Err(LeaseError::Ids(IdError::Invalid { .. }))
    ));
    let mut store = At(5);
    let mut lease = Lease::new(&mut store, range, block).unwrap();
    assert_eq!(
        (0..10).map(|_| lease.alloc().unwrap()).collect::<Vec<_>>(),
        (5..15).collect::<Vec<_>>()
    );
    let full = LeaseError::UsedUp { range };
    assert_eq!(
        (lease.alloc(), lease.left(), lease.leased()),
        (Err(full.clone()), 0, 0)
    );
    // No word of freeing, which a lease does not know.
    assert_eq!(
        LeaseError::<u8>::UsedUp { range }.to_string(),
        "all identifiers of 5..=14 were leased once, and a lease uses none again; lease a range with the same beginning and a later end"
    );
    let wider = IdRange::new(5, 20).unwrap();
    assert_eq!(Lease::new(At(15), wider, block).unwrap().alloc(), Ok(15));
    assert_eq!(store.0, 15);
    assert_eq!(
        Lease::new(&mut store, range, block).unwrap().alloc(),
        Err(full)
    );
}

#[test]
fn a_store_that_fails_gives_no_identifier() {
    /// Fails every call of a number, before or after it has stored.
    struct Moody {
        value: Option<u64>,
        calls: u32,
        fails: u32,
        stores_first: bool,
    }
    impl Durable for Moody {
        type Error = &'static str;
        fn load(&mut self) -> Result<Option<u64>, Self::Error> {
            Ok(self.value)
        }
        fn store(&mut self, next: u64) -> Result<(), Self::Error> {
            self.calls += 1;
            let fails = self.calls == self.fails;
            if !fails || self.stores_first {
                self.value = Some(next);
            }
            if fails { Err("moody") } else { Ok(()) }
        }
    }
    for fails in 1..6 {
        for stores_first in [false, true] {
            for goes_on in [false, true] {
                let mut store = Moody {
                    value: None,
                    calls: 0,
                    fails,
                    stores_first,
                };
                let mut given = Vec::new();
                let mut stops = 0;
                for _ in 0..3 {
                    let mut lease = open(&mut store).unwrap();
                    for _ in 0..5 {
                        match lease.alloc() {
                            Ok(id) => given.push(id),
                            Err(LeaseError::Store("moody")) if goes_on => {}
                            Err(_) => break,
                        }
                    }
                    stops += 1;
                }
                check(&given, stops);
            }
        }
    }
}
