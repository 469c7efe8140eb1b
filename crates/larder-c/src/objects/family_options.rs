//! Settings of a family that is to be.

use std::time::Duration;

use larder::objects::{Family, FamilyBuilder, Misuse};

use crate::error::{Failed, larder_status};
use crate::options::{LARDER_MODE_AUTO, init, larder_pool_options, mode, read_sized};

/// Settings of a family. `larder_family_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_family_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_family_options)`.
    pub size: usize,
    /// Settings of the pool that slabs come from, its limit and reservation among them; NULL for the defaults.
    pub pages: *const larder_pool_options,
    /// The working-set interval in milliseconds: memory that a whole interval did not need goes one step back.
    pub interval_ms: u64,
    /// LARDER_MODE_AUTO or LARDER_MODE_LOCKED, for the magazines of caches; the pool has its own.
    pub mode: u32,
    /// 0.
    pub flags: u32,
}

impl Default for larder_family_options {
    fn default() -> Self {
        Self {
            size: size_of::<Self>(),
            pages: core::ptr::null(),
            interval_ms: 1000,
            mode: LARDER_MODE_AUTO,
            flags: 0,
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_family_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_family_options_init(
    options: *mut larder_family_options,
) -> larder_status {
    // SAFETY: the caller gives memory for the struct.
    unsafe { init(options) }
}

impl larder_family_options {
    /// # Safety
    /// `pages` is NULL or points to options that begin with their size.
    pub(super) unsafe fn builder(&self) -> Result<FamilyBuilder, Failed> {
        crate::options::check_flags(self.flags, 0)?;
        // SAFETY: the caller's promise.
        let pages = unsafe { read_sized(self.pages)? };
        let mut builder = counted(Family::builder())
            .pages(pages.builder()?)
            .interval(Duration::from_millis(self.interval_ms));
        if let Some(mode) = mode(self.mode)? {
            builder = builder.mode(mode);
        }
        Ok(builder)
    }
}

/// A wrong pointer that is found only when it reaches its slab is counted (`refused` in the statistics of its cache) and
/// not taken: no call is there to which an error could be returned.
pub(crate) fn counted(builder: FamilyBuilder) -> FamilyBuilder {
    fn nothing_more(_: &Misuse) {}
    builder.on_misuse(nothing_more)
}
