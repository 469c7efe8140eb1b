//! All segments of an arena, shown to a function of the program.

use core::ffi::c_void;

use larder::arena::{Segment, SegmentKind};

use super::named::larder_arena;
use crate::call::on;
use crate::error::{Failed, larder_error, larder_status};

/// A span that was added by hand; its segments follow.
pub const LARDER_SEGMENT_ADDED_SPAN: u32 = 1;
/// A span from the source; its segments follow.
pub const LARDER_SEGMENT_IMPORTED_SPAN: u32 = 2;
/// Free.
pub const LARDER_SEGMENT_FREE: u32 = 3;
/// With a consumer.
pub const LARDER_SEGMENT_ALLOCATED: u32 = 4;
/// In a magazine of a quantum cache.
pub const LARDER_SEGMENT_CACHED: u32 = 5;

/// One segment, or a span as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct larder_segment {
    /// First number.
    pub addr: u64,
    /// Numbers.
    pub units: u64,
    /// A LARDER_SEGMENT_*.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
}

impl From<Segment> for larder_segment {
    fn from(segment: Segment) -> Self {
        Self {
            addr: segment.addr,
            units: segment.size,
            kind: match segment.kind {
                SegmentKind::AddedSpan => LARDER_SEGMENT_ADDED_SPAN,
                SegmentKind::ImportedSpan => LARDER_SEGMENT_IMPORTED_SPAN,
                SegmentKind::Free => LARDER_SEGMENT_FREE,
                SegmentKind::Allocated => LARDER_SEGMENT_ALLOCATED,
                SegmentKind::Cached => LARDER_SEGMENT_CACHED,
            },
            reserved: 0,
        }
    }
}

/// Sees one segment; false ends the walk. It may use the arena. It must return: no longjmp, no C++ exception.
pub type larder_visit_fn =
    Option<unsafe extern "C" fn(segment: *const larder_segment, user: *mut c_void) -> bool>;

/// Shows every span and then its segments, in the order of their numbers, to `visit`. The arena may be used meanwhile: a change
/// is seen or not.
///
/// # Safety
/// `arena` is NULL or a live arena; `visit` does what its documentation asks for; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_walk(
    arena: *const larder_arena,
    visit: larder_visit_fn,
    user: *mut c_void,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe {
        on(arena, error, |named| {
            let visit = visit.ok_or_else(|| Failed::null("visit"))?;
            for segment in named.arena.walk() {
                let segment = larder_segment::from(segment);
                if !visit(&raw const segment, user) {
                    break;
                }
            }
            Ok::<_, Failed>(())
        })
    }
}
