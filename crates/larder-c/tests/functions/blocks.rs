//! Block caches over the C interface.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

use crate::c::{json, made, refused};
use larder_c::larder_status::*;
use larder_c::*;

/// Files in memory, which fail with an error number.
#[derive(Default)]
struct Disk {
    files: Mutex<BTreeMap<u64, Vec<u8>>>,
    fails: AtomicI32,
    ended: AtomicUsize,
}

/// # Safety
/// As the header says, with a `Disk`: so for the next three.
unsafe extern "C" fn read(
    user: *mut c_void,
    file: u64,
    offset: u64,
    into: *mut c_void,
    bytes: usize,
    done: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let disk = &*user.cast::<Disk>();
        let files = disk.files.lock().unwrap();
        let all = files.get(&file).map_or(&[][..], Vec::as_slice);
        let from = all.get(offset as usize..).unwrap_or(&[]);
        let n = from.len().min(bytes);
        core::ptr::copy_nonoverlapping(from.as_ptr(), into.cast(), n);
        *done = n;
        disk.fails.load(SeqCst)
    }
}

/// # Safety
/// As above.
unsafe extern "C" fn write(
    user: *mut c_void,
    file: u64,
    offset: u64,
    from: *const c_void,
    bytes: usize,
    done: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let disk = &*user.cast::<Disk>();
        if disk.fails.load(SeqCst) != 0 {
            return disk.fails.load(SeqCst);
        }
        let mut files = disk.files.lock().unwrap();
        let all = files.entry(file).or_default();
        // Half of it: the rest is asked for again.
        let n = bytes.div_ceil(2);
        let end = offset as usize + n;
        all.resize(all.len().max(end), 0);
        core::ptr::copy_nonoverlapping(from.cast(), all[offset as usize..end].as_mut_ptr(), n);
        *done = n;
        0
    }
}

/// # Safety
/// As above.
unsafe extern "C" fn sync(user: *mut c_void, _: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { &*user.cast::<Disk>() }.fails.load(SeqCst)
}

/// # Safety
/// As above.
unsafe extern "C" fn end(user: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { &*user.cast::<Disk>() }.ended.fetch_add(1, SeqCst);
}

fn options(disk: &Disk, blocks: usize) -> larder_blocks_options {
    larder_blocks_options {
        bytes: blocks * larder::os::page_size(),
        dirty_age_ms: 0,
        read: Some(read),
        write: Some(write),
        sync: Some(sync),
        end: Some(end),
        user: (&raw const *disk).cast_mut().cast(),
        ..Default::default()
    }
}

fn none() -> larder_block {
    larder_block {
        data: null_mut(),
        bytes: 0,
        inside: [0; 5],
    }
}

const EIO: i32 = 5;

#[test]
fn a_file_is_what_was_written_to_it_whatever_the_pieces() {
    let disk = Disk::default();
    let options = options(&disk, 8);
    // SAFETY: live pointers and memory of the sizes said.
    unsafe {
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        let handle = made(|out, e| larder_blocks_handle_new(blocks, out, e));
        let file = made(|out, e| larder_blocks_file_open(blocks, 3, 0, 9, out, e));
        let (mut model, mut word) = (Vec::new(), 1_u64);
        for turn in 0..400_u64 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(turn | 1);
            let (at, len) = ((word >> 33) as usize % 70_000, (word >> 50) as usize);
            if turn % 3 == 0 {
                let mut into = vec![9_u8; len];
                let to = into.as_mut_ptr().cast();
                let status =
                    larder_blocks_handle_read(handle, file, at as u64, to, len, null_mut());
                assert_eq!(status, LARDER_OK);
                let there = |i: usize| model.get(at + i).copied().unwrap_or(0);
                assert!((0..len).all(|i| into[i] == there(i)), "turn {turn}");
                continue;
            }
            let from = vec![turn as u8; len];
            let mut written = usize::MAX;
            let status = larder_blocks_handle_write(
                handle,
                file,
                at as u64,
                from.as_ptr().cast(),
                len,
                &raw mut written,
                null_mut(),
            );
            assert_eq!((status, written), (LARDER_OK, len));
            if len > 0 {
                model.resize(model.len().max(at + len), 0);
                model[at..at + len].copy_from_slice(&from);
            }
            assert_eq!(larder_blocks_file_end(file), model.len() as u64);
        }
        assert_eq!(larder_blocks_file_sync(file, null_mut()), LARDER_OK);
        assert!(disk.files.lock().unwrap()[&3] == model);
        assert_eq!(
            larder_blocks_file_truncate(file, 5000, null_mut()),
            LARDER_OK
        );
        assert_eq!(
            larder_blocks_file_set_end(file, 4000, null_mut()),
            LARDER_OK
        );
        assert_eq!(larder_blocks_file_end(file), 4000);
        let mut stats = larder_blocks_file_stats {
            size: size_of::<larder_blocks_file_stats>(),
            ..Default::default()
        };
        let status = larder_blocks_file_stats_read(file, &raw mut stats, null_mut());
        assert_eq!((status, stats.resident <= 2), (LARDER_OK, true));
        let said =
            json(|at, n, needed| larder_blocks_stats_json(blocks, at, n, needed, null_mut()));
        assert_eq!(
            (&said["policy"], &said["capacity"]),
            (&"adaptive".into(), &8.into())
        );
        // In any order; the last of them ends the storage.
        assert_eq!(larder_blocks_free(blocks), LARDER_OK);
        assert_eq!(larder_blocks_file_discard(file, null_mut()), LARDER_OK);
        assert_eq!(larder_blocks_file_free(file), LARDER_OK);
        assert_eq!(disk.ended.load(SeqCst), 0);
        assert_eq!(larder_blocks_handle_free(handle), LARDER_OK);
        assert_eq!(disk.ended.load(SeqCst), 1);
    }
}

#[test]
fn a_settings_file_says_the_rule_and_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("larder.toml");
    let text = "version = 1\n[cache]\npolicy = \"lirs\"\nbytes = 65536\n";
    std::fs::write(&path, text).unwrap();
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let disk = Disk::default();
    let mut options = options(&disk, 8);
    options.settings = path.as_ptr();
    // SAFETY: live pointers and memory of the sizes said.
    unsafe {
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        let said =
            json(|at, n, needed| larder_blocks_stats_json(blocks, at, n, needed, null_mut()));
        let block = larder_blocks_block_bytes(blocks);
        assert_eq!(
            (&said["policy"], &said["capacity"]),
            (&"lirs".into(), &(65536 / block).into())
        );
        assert_eq!(larder_blocks_free(blocks), LARDER_OK);
        options.settings = c"/none/larder.toml".as_ptr();
        let mut out = null_mut();
        refused(LARDER_SETTING, "/none/larder.toml", |e| {
            larder_blocks_new(&raw const options, &raw mut out, e)
        });
        // Of an earlier program's options, which end before it, nothing is read.
        options.size = core::mem::offset_of!(larder_blocks_options, settings);
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        assert_eq!(larder_blocks_free(blocks), LARDER_OK);
    }
}

#[test]
fn a_pinned_block_stays_and_a_wrong_pin_is_refused() {
    let disk = Disk::default();
    let options = options(&disk, 3);
    // SAFETY: live pointers and memory of the sizes said.
    unsafe {
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        let handle = made(|out, e| larder_blocks_handle_new(blocks, out, e));
        let no_end = LARDER_BLOCKS_NO_END;
        let file = made(|out, e| larder_blocks_file_open(blocks, 3, no_end, 0, out, e));
        assert_eq!(larder_blocks_file_end(file), no_end);
        let mut pins = [none(), none(), none()];
        let e = null_mut();
        for (pin, index) in pins.iter_mut().zip(0..) {
            let status = larder_blocks_handle_pin_write(
                handle,
                file,
                index,
                no_end,
                index as u32 % 2,
                pin,
                e,
            );
            assert_eq!(
                (status, pin.bytes),
                (LARDER_OK, larder_blocks_block_bytes(blocks))
            );
            pin.data
                .cast::<u8>()
                .write_bytes(index as u8 + 1, pin.bytes);
        }
        let mut other = none();
        refused(LARDER_BUSY, "all 3 blocks are held", |e| {
            larder_blocks_handle_pin(handle, file, 9, &raw mut other, e)
        });
        assert!(other.data.is_null());
        assert_eq!(larder_blocks_unpin(&raw mut other), LARDER_HANDLE);
        refused(LARDER_BUSY, "is held", |e| {
            larder_blocks_file_invalidate(file, 0, u64::MAX, e)
        });
        for pin in &mut pins {
            assert_eq!(larder_blocks_unpin(pin), LARDER_OK);
            assert_eq!((larder_blocks_unpin(pin), pin.bytes), (LARDER_HANDLE, 0));
        }
        assert_eq!(larder_blocks_unpin(null_mut()), LARDER_NULL);
        // The upkeep writes what is old, and the helper calls it.
        assert_eq!(larder_blocks_maintain(blocks, null_mut(), e), LARDER_OK);
        let status = larder_blocks_handle_pin(handle, file, 1, &raw mut other, e);
        assert_eq!((status, other.data.cast::<u8>().read()), (LARDER_OK, 2));
        let dirty = || {
            let size = size_of::<larder_blocks_stats>();
            let mut stats = larder_blocks_stats {
                size,
                ..Default::default()
            };
            assert_eq!(
                larder_blocks_stats_read(blocks, &raw mut stats, e),
                LARDER_OK
            );
            stats.dirty
        };
        assert_eq!(dirty(), 0);
        assert_eq!(larder_blocks_unpin(&raw mut other), LARDER_OK);
        assert_eq!(larder_blocks_start_helper(blocks, 1, e), LARDER_OK);
        let from = c"hello";
        let written = null_mut();
        let status =
            larder_blocks_handle_write(handle, file, 8, from.as_ptr().cast(), 5, written, e);
        assert_eq!(status, LARDER_OK);
        while dirty() > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(larder_blocks_stop_helper(blocks), LARDER_OK);
        assert_eq!(&disk.files.lock().unwrap()[&3][7..14], b"\x01hello\x01");
        for status in [
            larder_blocks_write_back(blocks, e),
            larder_blocks_file_write_back(file, e),
            larder_blocks_trim(blocks, 1 << 20, null_mut(), e),
            larder_blocks_file_free(file),
            larder_blocks_handle_free(handle),
            larder_blocks_free(blocks),
        ] {
            assert_eq!(status, LARDER_OK);
        }
    }
}

#[test]
fn failures_of_the_storage_are_named_and_so_is_garbage() {
    let disk = Disk::default();
    let mut options = options(&disk, 8);
    // SAFETY: live pointers and memory of the sizes said, or NULL and numbers that are refused.
    unsafe {
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        let handle = made(|out, e| larder_blocks_handle_new(blocks, out, e));
        let file = made(|out, e| larder_blocks_file_open(blocks, 3, 1 << 20, 0, out, e));
        let mut byte = 7_u8;
        let at = (&raw mut byte).cast::<c_void>();
        let e = null_mut();
        assert_eq!(
            larder_blocks_handle_write(handle, file, 0, at, 1, null_mut(), e),
            LARDER_OK
        );
        disk.fails.store(EIO, SeqCst);
        let mut error = crate::c::no_error();
        let status = larder_blocks_handle_read(handle, file, 9 << 12, at, 1, &raw mut error);
        assert_eq!((status, error.os_errno), (LARDER_STORAGE, EIO));
        refused(LARDER_STORAGE, "writing block 0 of file 3", |e| {
            larder_blocks_file_sync(file, e)
        });
        disk.fails.store(0, SeqCst);
        assert_eq!(larder_blocks_file_sync(file, e), LARDER_OK);
        // Written and gone, when the storage fails to sync it.
        assert_eq!(
            larder_blocks_handle_write(handle, file, 0, at, 1, null_mut(), e),
            LARDER_OK
        );
        assert_eq!(larder_blocks_file_write_back(file, e), LARDER_OK);
        assert_eq!(
            larder_blocks_trim(blocks, 1 << 20, null_mut(), e),
            LARDER_OK
        );
        disk.fails.store(EIO, SeqCst);
        refused(LARDER_LOST, "truncate it to 0", |e| {
            larder_blocks_file_sync(file, e)
        });
        disk.fails.store(0, SeqCst);
        assert_eq!(larder_blocks_file_truncate(file, 0, e), LARDER_OK);
        assert_eq!(larder_blocks_file_sync(file, e), LARDER_OK);
        // A file that is freed before it is synced.
        let closed = made(|out, e| larder_blocks_file_open(blocks, 4, 0, 0, out, e));
        assert_eq!(
            larder_blocks_handle_write(handle, closed, 0, at, 1, null_mut(), e),
            LARDER_OK
        );
        assert_eq!(larder_blocks_file_free(closed), LARDER_OK);
        disk.fails.store(EIO, SeqCst);
        refused(LARDER_STORAGE, "of file 4", |e| {
            larder_blocks_sync(blocks, e)
        });
        disk.fails.store(0, SeqCst);
        assert_eq!(larder_blocks_sync(blocks, e), LARDER_OK);
        assert_eq!(disk.files.lock().unwrap()[&4][0], 7);

        refused(LARDER_ARGUMENT, "offset is", |e| {
            larder_blocks_handle_read(handle, file, u64::MAX, at, 2, e)
        });
        refused(LARDER_ARGUMENT, "the last one that a file can have", |e| {
            larder_blocks_handle_write(handle, file, u64::MAX - 9, at, 1, null_mut(), e)
        });
        refused(LARDER_ARGUMENT, "flags is 2", |e| {
            larder_blocks_handle_pin_write(handle, file, 0, 0, 2, &mut none(), e)
        });
        refused(LARDER_NULL, "into", |e| {
            larder_blocks_handle_read(handle, file, 0, null_mut(), 1, e)
        });
        refused(LARDER_NULL, "from", |e| {
            larder_blocks_handle_write(handle, file, 0, null(), 1, null_mut(), e)
        });
        refused(LARDER_NULL, "file", |e| {
            larder_blocks_handle_pin(handle, null(), 0, &mut none(), e)
        });
        refused(LARDER_HANDLE, "block handle", |e| {
            larder_blocks_handle_pin(blocks.cast(), file, 0, &mut none(), e)
        });
        refused(LARDER_NULL, "out", |e| {
            larder_blocks_handle_pin(handle, file, 0, null_mut(), e)
        });
        refused(LARDER_ARGUMENT, "interval_ms", |e| {
            larder_blocks_start_helper(blocks, 0, e)
        });
        refused(LARDER_ARGUMENT, "bytes were asked for", |e| {
            larder_blocks_set_bytes(blocks, 1 << 30, e)
        });
        let other = made(|out, e| larder_blocks_new(null(), out, e));
        let foreign = made(|out, e| larder_blocks_handle_new(other, out, e));
        refused(LARDER_ARGUMENT, "opened in another cache", |e| {
            larder_blocks_handle_read(foreign, file, 0, at, 1, e)
        });
        assert_eq!(larder_blocks_handle_free(foreign), LARDER_OK);
        assert_eq!(larder_blocks_free(other), LARDER_OK);
        let refused_with = |says: &str, options: &larder_blocks_options| {
            let mut out = null_mut();
            refused(LARDER_ARGUMENT, says, |e| {
                larder_blocks_new(options, &raw mut out, e)
            });
        };
        options.dirty_percent = 101;
        refused_with("dirty_percent is 101", &options);
        options.dirty_percent = 100;
        options.policy = c"best".as_ptr();
        refused_with("best", &options);
        options.policy = null();
        options.reserved = 1;
        refused_with("reserved", &options);
        assert_eq!(larder_blocks_options_init(&raw mut options), LARDER_OK);
        assert_eq!((options.bytes, options.reserved), (64 << 20, 0));
        options.bytes = 0;
        refused_with("0 bytes were asked for", &options);
        assert_eq!(larder_blocks_file_free(file), LARDER_OK);
        assert_eq!(larder_blocks_handle_free(handle), LARDER_OK);
        assert_eq!(
            (larder_blocks_free(blocks), larder_blocks_free(null_mut())),
            (LARDER_OK, LARDER_OK)
        );
        // Those that could not be made have ended nothing.
        assert_eq!(disk.ended.load(SeqCst), 1);
    }
}

#[test]
fn a_tenant_has_the_sums_of_its_files_and_a_part_of_the_cache() {
    // SAFETY: live pointers and memory of the sizes said, or NULL and numbers that are refused.
    unsafe {
        let page = larder::os::page_size();
        let options = larder_blocks_options {
            bytes: 16 * page,
            ..Default::default()
        };
        let blocks = made(|out, e| larder_blocks_new(&raw const options, out, e));
        let handle = made(|out, e| larder_blocks_handle_new(blocks, out, e));
        let e = null_mut();
        let sums = |tenant| {
            let size = size_of::<larder_blocks_file_stats>();
            let mut stats = larder_blocks_file_stats {
                size,
                ..Default::default()
            };
            let status = larder_blocks_tenant_stats_read(blocks, tenant, &raw mut stats, e);
            assert_eq!((status, stats.size), (LARDER_OK, size));
            (stats.resident, stats.dirty)
        };
        let files = [1, 2].map(|id| {
            let file = made(|out, e| larder_blocks_file_open(blocks, id, 0, 7, out, e));
            let bytes = vec![1_u8; 2 * page];
            let from = bytes.as_ptr().cast();
            let written = null_mut();
            let status = larder_blocks_handle_write(handle, file, 0, from, 2 * page, written, e);
            assert_eq!(status, LARDER_OK);
            file
        });
        assert_eq!(sums(7), (4, 4));
        assert_eq!(sums(0), (0, 0));
        let limit = |bytes, policy| larder_blocks_tenant_limit(blocks, 7, bytes, policy, e);
        assert_eq!(limit(3 * page, c"lru".as_ptr()), LARDER_OK);
        assert_eq!(sums(7).0, 3);
        assert_eq!(limit(2 * page, null()), LARDER_OK);
        assert_eq!(sums(7).0, 2);
        assert_eq!(limit(0, null()), LARDER_OK);
        refused(LARDER_ARGUMENT, "best", |e| {
            larder_blocks_tenant_limit(blocks, 7, page, c"best".as_ptr(), e)
        });
        refused(LARDER_ARGUMENT, "policy is no UTF-8", |e| {
            larder_blocks_tenant_limit(blocks, 7, page, c"\xff".as_ptr(), e)
        });
        refused(LARDER_NULL, "stats", |e| {
            larder_blocks_tenant_stats_read(blocks, 7, null_mut(), e)
        });
        refused(LARDER_NULL, "block cache", |e| {
            larder_blocks_tenant_limit(null(), 7, page, null(), e)
        });
        for file in files {
            assert_eq!(larder_blocks_file_free(file), LARDER_OK);
        }
        // What is closed counts still.
        assert_eq!(sums(7).0, 2);
        assert_eq!(larder_blocks_handle_free(handle), LARDER_OK);
        assert_eq!(larder_blocks_free(blocks), LARDER_OK);
    }
}
