//! What an allocation asks for, and where it may lie.

use larder::arena::{Fit, Request};

use crate::error::{Failed, larder_status};
use crate::options::{SizeFirst, blank, check_reserved, init};

/// The arena's own fit.
pub const LARDER_FIT_DEFAULT: u32 = 0;
/// A segment of a list whose segments are all large enough: constant time.
pub const LARDER_FIT_INSTANT: u32 = 1;
/// The smallest segment in which it fits.
pub const LARDER_FIT_BEST: u32 = 2;
/// The next place after the last allocation: numbers that are given back are not handed out again soon.
pub const LARDER_FIT_NEXT: u32 = 3;

/// What larder_arena_xalloc must find. `larder_arena_request_init` fills in the defaults; then set `units`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_arena_request {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_arena_request)`.
    pub size: usize,
    /// Numbers in a row.
    pub units: u64,
    /// The first is a multiple of this, a power of two; 0 is 1.
    pub align: u64,
    /// The first lies this many units after a multiple of `align`.
    pub phase: u64,
    /// No multiple of this power of two lies inside, except at the beginning; 0 is no such boundary.
    pub nocross: u64,
    /// The first number is at least this.
    pub min: u64,
    /// The last number is at most this.
    pub max: u64,
    /// A LARDER_FIT_* for this request.
    pub fit: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: the size, then numbers.
unsafe impl SizeFirst for larder_arena_request {}

impl Default for larder_arena_request {
    fn default() -> Self {
        Self {
            align: 1,
            max: u64::MAX,
            ..blank()
        }
    }
}

/// Fills in the defaults: no constraints, the arena's fit, no units. `request` points to a `larder_arena_request`; NULL is an error.
///
/// # Safety
/// `request` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_request_init(
    request: *mut larder_arena_request,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(request) }
}

/// The fit that a number names; `None` is the arena's own.
pub(super) fn policy(what: &'static str, fit: u32) -> Result<Option<Fit>, Failed> {
    Ok(match fit {
        LARDER_FIT_DEFAULT => None,
        LARDER_FIT_INSTANT => Some(Fit::Instant),
        LARDER_FIT_BEST => Some(Fit::Best),
        LARDER_FIT_NEXT => Some(Fit::Next),
        other => return Err(Failed::argument(what, other.into(), ", which is no fit")),
    })
}

impl larder_arena_request {
    pub(super) fn request(&self) -> Result<Request, Failed> {
        check_reserved("request.reserved is", self.reserved)?;
        let mut request = Request::new(self.units)
            .align(self.align.max(1))
            .phase(self.phase)
            .within(self.min..=self.max);
        if self.nocross != 0 {
            request = request.nocross(self.nocross);
        }
        if let Some(policy) = policy("request.fit is", self.fit)? {
            request = request.fit(policy);
        }
        Ok(request)
    }
}
