//! A thread's way into a block cache: bytes that are copied, and blocks that are pinned.

use core::ffi::c_void;
use core::mem::MaybeUninit;

use larder_cache::BlockCache;
use larder_cache::{BlockMut, BlockRef, CacheError, CacheHandle, CachedFile};

use super::cache::larder_blocks;
use super::file::larder_blocks_file;
use crate::busy::{Owned, on_owned};
use crate::call::{NO_ERROR, free, guard, make};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{opaque, shared};

/// The block is written from front to end: it is not read first.
pub const LARDER_BLOCKS_OVERWRITE: u32 = 1;

/// Blocks that one call of larder_blocks_handle_read asks for together.
const RUN: u64 = 64;

/// One thread's access to a block cache. It may move between threads, but only one may use it at a time. It keeps its cache.
pub struct larder_blocks_handle {
    _opaque: [u8; 0],
}

opaque!(
    larder_blocks_handle,
    Owned<Access>,
    b"ldrbhan1",
    "block handle",
    |own| own.busy.may_end()
);

/// A handle, and how blocks lie in a file.
pub(crate) struct Access {
    handle: CacheHandle,
    block: u64,
}

/// Makes a handle over a block cache. `out` gets it, or NULL after a failure.
///
/// # Safety
/// `blocks` is NULL or a live block cache; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_new(
    blocks: *const larder_blocks,
    out: *mut *mut larder_blocks_handle,
    error: *mut larder_error,
) -> larder_status {
    let access = |blocks: &BlockCache| {
        let (handle, block) = (blocks.handle(), blocks.block_size() as u64);
        Ok(Owned::new(Access { handle, block }, ()))
    };
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { make(blocks, out, error, access) }
}

/// Ends a handle; NULL does nothing. Blocks that it pinned stay pinned.
///
/// # Safety
/// `handle` is NULL or a live block handle, which no other thread uses, and which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_free(
    handle: *mut larder_blocks_handle,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(handle) }
}

/// Which bytes of which block come next.
fn place(offset: u64, left: usize, block: u64) -> (u64, usize, usize) {
    let within = offset % block;
    let len = (left as u64).min(block - within);
    (offset / block, within as usize, len as usize)
}

/// Refuses what lies behind the largest offset.
fn check(offset: u64, bytes: usize) -> Result<(), Failed> {
    match offset.checked_add(bytes as u64) {
        Some(_) => Ok(()),
        None => Err(Failed::argument(
            "offset is",
            offset,
            "; no file has so many bytes",
        )),
    }
}

impl Access {
    /// # Safety
    /// `into` has room for `bytes`.
    unsafe fn read(
        &mut self,
        file: &CachedFile,
        offset: u64,
        into: *mut u8,
        bytes: usize,
    ) -> Result<(), Failed> {
        check(offset, bytes)?;
        let block = self.block;
        self.handle.request(|handle| {
            let (mut done, mut most) = (0, RUN);
            let mut blocks = Vec::new();
            while done < bytes {
                let (index, _, _) = place(offset + done as u64, bytes - done, block);
                let end = (offset + bytes as u64).div_ceil(block);
                let run = (end - index).min(most);
                if blocks.try_reserve(run as usize).is_err() {
                    return Err(Failed::memory("room for the blocks of a read"));
                }
                match handle.read_many(file, index..index + run, &mut blocks) {
                    // Not all of them have room at once.
                    Err(CacheError::Pinned { .. }) if run > 1 => {
                        most = 1;
                        continue;
                    }
                    read => read?,
                }
                for page in blocks.drain(..) {
                    let (_, from, len) = place(offset + done as u64, bytes - done, block);
                    // SAFETY: `done + len` is at most `bytes`, and the block has `from + len`.
                    unsafe {
                        let to = into.add(done);
                        core::ptr::copy_nonoverlapping(page[from..from + len].as_ptr(), to, len);
                    }
                    done += len;
                }
            }
            Ok(())
        })
    }

    /// # Safety
    /// `from` has `bytes`, and `done` is NULL or can be written.
    unsafe fn write(
        &mut self,
        file: &CachedFile,
        offset: u64,
        from: *const u8,
        bytes: usize,
        written: *mut usize,
    ) -> Result<(), Failed> {
        check(offset, bytes)?;
        let (block, end) = (self.block, offset + bytes as u64);
        self.handle.request(|handle| {
            let mut done = 0;
            while done < bytes {
                let (index, at, len) = place(offset + done as u64, bytes - done, block);
                let mut page = match len as u64 == block {
                    true => handle.overwrite_until(file, index, end)?,
                    false => handle.write_until(file, index, end)?,
                };
                // SAFETY: `done + len` is at most `bytes`, and the file has so much of the block: it ends at `end` or later.
                unsafe {
                    let to = page[at..at + len].as_mut_ptr();
                    core::ptr::copy_nonoverlapping(from.add(done), to, len);
                }
                drop(page);
                done += len;
                if !written.is_null() {
                    // SAFETY: the caller's promise.
                    unsafe { written.write(done) };
                }
            }
            Ok(())
        })
    }
}

/// Copies `bytes` from `offset` of a file on; what lies behind its end is zeroes. Blocks that are not in memory are read together.
///
/// # Safety
/// `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file; `into` is NULL or has
/// room for `bytes`; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_read(
    handle: *mut larder_blocks_handle,
    file: *const larder_blocks_file,
    offset: u64,
    into: *mut c_void,
    bytes: usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on_owned(handle, error, |access| {
            let file = shared(file)?;
            if into.is_null() && bytes > 0 {
                return Err(Failed::null("into"));
            }
            access.read(file, offset, into.cast(), bytes)
        })
    }
}

/// Copies `bytes` to `offset` of a file, which is as long as that afterwards. `written`, which may be NULL, gets how many were
/// copied, also after a failure.
///
/// # Safety
/// `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file; `from` is NULL or has
/// `bytes`; `written` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_write(
    handle: *mut larder_blocks_handle,
    file: *const larder_blocks_file,
    offset: u64,
    from: *const c_void,
    bytes: usize,
    written: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on_owned(handle, error, |access| {
            if !written.is_null() {
                written.write(0);
            }
            let file = shared(file)?;
            if from.is_null() && bytes > 0 {
                return Err(Failed::null("from"));
            }
            access.write(file, offset, from.cast(), bytes, written)
        })
    }
}

/// A pinned block: it stays in memory, where `data` points, until it is unpinned. The caller gives the memory for this struct and may
/// move it, but not copy it and unpin both.
#[derive(Debug)]
#[repr(C)]
pub struct larder_block {
    /// The block; NULL when nothing is pinned.
    pub data: *mut c_void,
    /// Its bytes; of one pinned for writing, as many as the file has of it.
    pub bytes: usize,
    /// The library's.
    pub inside: [usize; 5],
}

/// What is pinned.
enum Guard {
    Read(BlockRef<'static>),
    Write(BlockMut<'static>),
}

/// As it lies in a [`larder_block`]: a mark that says whether there is one, and the guard.
#[repr(C)]
struct Inside {
    mark: usize,
    guard: MaybeUninit<Guard>,
}

const MARK: usize = usize::from_ne_bytes(*b"pinned!\0");
const _: () = assert!(size_of::<Inside>() <= size_of::<[usize; 5]>());
const _: () = assert!(align_of::<Inside>() == align_of::<usize>());

/// # Safety
/// `out` is NULL or can be written.
unsafe fn pin(
    out: *mut larder_block,
    take: impl FnOnce() -> Result<(Guard, *mut u8, usize), Failed>,
) -> Result<(), Failed> {
    if out.is_null() {
        return Err(Failed::null("out"));
    }
    let (data, bytes, inside) = (core::ptr::null_mut(), 0, [0; 5]);
    let none = larder_block {
        data,
        bytes,
        inside,
    };
    // SAFETY: the caller's promise; the second struct fits into the words of the first, as is checked above.
    unsafe {
        out.write(none);
        let (guard, data, bytes) = take()?;
        ((*out).data, (*out).bytes) = (data.cast(), bytes);
        (&raw mut (*out).inside).cast::<Inside>().write(Inside {
            mark: MARK,
            guard: MaybeUninit::new(guard),
        });
    }
    Ok(())
}

/// Pins block number `index` of a file for reading, which is read if it is not in memory. Many may pin it so. `out` gets the block, or
/// nothing after a failure. The handle may be used for other blocks meanwhile; a thread takes several in one order that all threads
/// keep, and none that it has pinned for writing.
///
/// # Safety
/// `handle` is NULL or a live block handle that no other thread uses meanwhile; `file` is NULL or a live file, which stays open until
/// the block is unpinned; `out` and `error` are NULL or can be written. `data` is read only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_pin(
    handle: *mut larder_blocks_handle,
    file: *const larder_blocks_file,
    index: u64,
    out: *mut larder_block,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs. The file stays as long as the guard.
    unsafe {
        on_owned(handle, error, |access| {
            pin(out, || {
                let block = access.handle.read(shared(file)?, index)?;
                let (data, bytes) = (block.as_ptr().cast_mut(), block.len());
                Ok((Guard::Read(block), data, bytes))
            })
        })
    }
}

/// Pins a block for writing: no other thread reads or writes it until it is unpinned, and it is written back later. The file ends at
/// `end` or later, as far as this block goes; LARDER_BLOCKS_NO_END is the end of the block. `flags` is 0 or LARDER_BLOCKS_OVERWRITE.
///
/// # Safety
/// As for larder_blocks_handle_pin; the thread that pins it unpins it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_handle_pin_write(
    handle: *mut larder_blocks_handle,
    file: *const larder_blocks_file,
    index: u64,
    end: u64,
    flags: u32,
    out: *mut larder_block,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: as above.
    unsafe {
        on_owned(handle, error, |access| {
            pin(out, || {
                let (file, handle) = (shared(file)?, &mut access.handle);
                let mut block = match flags {
                    0 => handle.write_until(file, index, end)?,
                    LARDER_BLOCKS_OVERWRITE => handle.overwrite_until(file, index, end)?,
                    other => {
                        let wrong = ", with bits that this version does not know";
                        return Err(Failed::argument("flags is", other.into(), wrong));
                    }
                };
                let (data, bytes) = (block.as_mut_ptr(), block.len());
                Ok((Guard::Write(block), data, bytes))
            })
        })
    }
}

/// Unpins a block; `data` is NULL afterwards. A block that is not pinned is LARDER_HANDLE.
///
/// # Safety
/// `block` is NULL or one that was given to larder_blocks_handle_pin or larder_blocks_handle_pin_write, or zeroes; what `data`
/// points to is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_blocks_unpin(block: *mut larder_block) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        guard(NO_ERROR, || {
            if block.is_null() {
                return Err(Failed::null("block"));
            }
            let inside = (&raw mut (*block).inside).cast::<Inside>();
            if (*inside).mark != MARK {
                return Err(Failed::said(
                    larder_status::LARDER_HANDLE,
                    "the block",
                    "is not pinned",
                ));
            }
            (*inside).mark = 0;
            ((*block).data, (*block).bytes) = (core::ptr::null_mut(), 0);
            match (*inside).guard.assume_init_read() {
                Guard::Read(block) => drop(block),
                Guard::Write(block) => drop(block),
            }
            Ok(())
        })
    }
}
