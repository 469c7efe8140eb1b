use std::fs;
use std::num::NonZeroU64;

use larder::ids::{IdRange, Lease, LeaseFile, LeaseFileError, LeaseRecord};
use tempfile::tempdir;

fn range() -> IdRange {
    IdRange::new(1, 1 << 40).unwrap()
}

fn block(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).unwrap()
}

#[test]
fn a_lease_goes_on_where_the_file_says() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("next");
    for life in 0..5 {
        let mut lease = Lease::new(LeaseFile::open(&path).unwrap(), range(), block(10)).unwrap();
        // A whole block and the first of another, which is then skipped but for that one.
        let given: Vec<_> = (0..11).map(|_| lease.alloc().unwrap()).collect();
        assert_eq!(given, (1 + life * 20..12 + life * 20).collect::<Vec<_>>());
        assert_eq!(lease.leased(), 9);
    }
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing else is left in the folder");
    assert_eq!(fs::metadata(&path).unwrap().len(), 4128);
}

#[test]
fn a_clean_end_skips_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("next");
    for life in 0..5 {
        let mut lease = Lease::new(LeaseFile::open(&path).unwrap(), range(), block(100)).unwrap();
        assert_eq!(lease.alloc().unwrap(), life + 1);
        lease.close().unwrap();
    }
}

#[test]
fn a_file_has_one_lease() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("next");
    let first = LeaseFile::open(&path).unwrap();
    let error = LeaseFile::open(&path).unwrap_err();
    assert!(matches!(error, LeaseFileError::Busy { .. }), "{error}");
    drop(first);
    assert!(LeaseFile::open(&path).is_ok());
}

#[test]
fn a_damaged_file_is_refused_and_a_half_damaged_one_healed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("next");
    let mut lease = Lease::new(LeaseFile::open(&path).unwrap(), range(), block(10)).unwrap();
    lease.alloc().unwrap();
    drop(lease);
    let whole = fs::read(&path).unwrap();
    let open = || Lease::new(LeaseFile::open(&path).unwrap(), range(), block(10));
    for cut in [0, 1, 31, 32, 4095, 4096, 4127] {
        fs::write(&path, &whole[..cut]).unwrap();
        if cut < 32 {
            let error = open().unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
        } else {
            // The first record is whole; the second is written anew.
            assert_eq!(open().unwrap().alloc().unwrap(), 11, "cut at {cut}");
            assert_eq!(fs::read(&path).unwrap().len(), 4128);
        }
    }
    fs::write(&path, "not a lease at all").unwrap();
    assert!(open().is_err());
    assert_eq!(
        fs::read(&path).unwrap(),
        b"not a lease at all",
        "and is left as it is"
    );
}

#[test]
fn a_record_is_read_only_when_it_is_whole() {
    let record = LeaseRecord {
        sequence: 0x0123_4567_89ab_cdef,
        next: u64::MAX - 1,
    };
    let bytes = record.to_bytes();
    assert_eq!(LeaseRecord::from_bytes(&bytes), Some(record));
    for length in 0..LeaseRecord::BYTES {
        assert_eq!(LeaseRecord::from_bytes(&bytes[..length]), None);
    }
    for bit in 0..LeaseRecord::BYTES * 8 {
        let mut bytes = bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(LeaseRecord::from_bytes(&bytes), None, "bit {bit}");
    }
    let mut long = bytes.to_vec();
    long.push(0);
    assert_eq!(LeaseRecord::from_bytes(&long), None);
}

#[test]
fn what_the_system_refuses_names_the_file() {
    let folder = tempdir().unwrap();
    let error = LeaseFile::open(folder.path().join("no/such/folder")).unwrap_err();
    assert!(matches!(error, LeaseFileError::Io { .. }));
    assert!(error.to_string().contains("no/such/folder"), "{error}");
}
