//! Identifiers: numbers of a range, each with one owner at a time.

use core::ffi::c_char;
use std::sync::Arc;

use larder::ids::rule::{Any, Cyclic, Fifo, Lowest, NearFull, Rested, Ticks};
use larder::ids::{Allocate, Handle, IdError, IdRange, IdSpace, OnWrap, Rule, Tagged, Widths};

use crate::call::{destroy, free, guard, on, take};
use crate::error::{Failed, larder_error, larder_status};
use crate::mark::{give, opaque};
use crate::numbers::{self, numbers};
use crate::options::{SizeFirst, blank, check_flags, check_reserved, init, mode, read_sized};

/// Any free one: the fastest where many threads allocate.
pub const LARDER_RULE_ANY: u32 = 0;
/// The lowest free one, as POSIX wants it of descriptors.
pub const LARDER_RULE_LOWEST: u32 = 1;
/// The next free one after the last, as in process ids.
pub const LARDER_RULE_CYCLIC: u32 = 2;
/// The one that was given back first: it is away for as long as possible.
pub const LARDER_RULE_FIFO: u32 = 3;

/// When all free identifiers rest, hands out the one that rests longest. Without it that is LARDER_EXHAUSTED.
pub const LARDER_IDS_RELAX_REST: u32 = 1;
/// A slot whose generations are used up begins again, and a handle that was kept that long may be taken for a new one. Without it
/// the slot is retired.
pub const LARDER_IDS_REUSE_GENERATIONS: u32 = 2;

const ALL_FLAGS: u32 = 3;

/// Settings of identifiers. `larder_ids_options_init` fills in the defaults: 0 to 65535, any free one.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_ids_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_ids_options)`.
    pub size: usize,
    /// The smallest identifier.
    pub first: u64,
    /// The largest one. Up to 2^24 of them lie ready for each CPU as far as the rule allows it; more are always behind a lock.
    pub last: u64,
    /// Other identifiers that must be handed out before one that was given back is handed out again; 0 is no rest. Those that have
    /// rested are handed out lowest first, always behind a lock.
    pub rest_allocations: u64,
    /// Milliseconds that an identifier rests after it was given back; 0 is no rest. Not together with `rest_allocations`.
    pub rest_ms: u64,
    /// The generation that every slot begins with: another one than before a restart refuses the handles of the former life.
    pub first_generation: u64,
    /// A LARDER_RULE_*.
    pub rule: u32,
    /// LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
    pub mode: u32,
    /// Bits of a handle, 8 to 64: the number of its slot, and above it a generation, which counts how often the slot was given back.
    /// 0 is no generation: identifiers are the numbers themselves.
    pub handle_bits: u32,
    /// Bits of the slot in a handle; 0 is as many as `last` has. The rest are the generation's, at least 1.
    pub slot_bits: u32,
    /// LARDER_IDS_* flags, or 0.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: the size, then numbers.
unsafe impl SizeFirst for larder_ids_options {}

impl Default for larder_ids_options {
    fn default() -> Self {
        Self {
            last: u16::MAX.into(),
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_ids_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_options_init(
    options: *mut larder_ids_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

/// Identifiers under any rule.
pub(crate) trait Space: Allocate<Id = u64> + Send + Sync {
    fn hits(&self) -> u64;
    fn bytes(&self) -> usize;
}

impl<R: Rule<Order: Send> + Send + Sync> Space for IdSpace<R> {
    fn hits(&self) -> u64 {
        self.stats().hits
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// Identifiers, and the generations of their slots where they are handles.
pub(crate) struct Ids {
    space: Arc<dyn Space>,
    tags: Option<Tagged<Arc<dyn Space>>>,
}

impl Ids {
    /// Retired slots are allocated below, but to no owner.
    fn retired(&self) -> u64 {
        self.tags.as_ref().map_or(0, Tagged::retired)
    }

    fn allocated(&self) -> u64 {
        self.space.allocated().saturating_sub(self.retired())
    }

    fn free_ids(&self) -> u64 {
        let (range, taken) = (self.space.range(), self.space.allocated());
        match range.last() - range.first() {
            u64::MAX if taken == 0 => u64::MAX,
            last => last.wrapping_add(1).wrapping_sub(taken),
        }
    }

    fn alloc(&self) -> Result<u64, IdError> {
        match &self.tags {
            None => self.space.alloc(),
            Some(tags) => tags.alloc().map(Handle::raw),
        }
    }

    fn alloc_at(&self, slot: u64) -> Result<u64, IdError> {
        match &self.tags {
            None => self.space.alloc_at(slot).map(|()| slot),
            Some(tags) => tags.alloc_at(slot).map(Handle::raw),
        }
    }

    fn free(&self, id: u64) -> Result<(), IdError> {
        match &self.tags {
            None => self.space.free(id),
            Some(tags) => tags.free(Handle::from_raw(id)),
        }
    }

    fn slot(&self, id: u64) -> Result<u64, IdError> {
        match &self.tags {
            None if self.space.is_allocated(id) => Ok(id),
            None => Err(IdError::NotAllocated { id }),
            Some(tags) => tags.check(Handle::from_raw(id)),
        }
    }
}

impl larder_ids_options {
    fn build(&self) -> Result<Ids, Failed> {
        check_flags(self.flags, ALL_FLAGS)?;
        check_reserved("options.reserved is", self.reserved)?;
        let space = match (self.rest()?, self.rule) {
            (None, LARDER_RULE_ANY) => self.space(Any),
            (None, LARDER_RULE_LOWEST) => self.space(Lowest),
            (None, LARDER_RULE_CYCLIC) => self.space(Cyclic),
            (None, LARDER_RULE_FIFO) => self.space(Fifo),
            (Some(rest), LARDER_RULE_ANY | LARDER_RULE_LOWEST) => self.space(rest),
            (_, rule) => Err(Failed::argument(
                "options.rule is",
                rule.into(),
                match rule {
                    LARDER_RULE_CYCLIC | LARDER_RULE_FIFO => {
                        ", which knows no rest; take the lowest"
                    }
                    _ => ", which is no rule",
                },
            )),
        }?;
        let tags = match (self.handle_bits, self.slot_bits) {
            (0, 0) => None,
            (0, bits) => {
                return Err(Failed::argument(
                    "options.slot_bits is",
                    bits.into(),
                    ", but options.handle_bits is 0; set both, or neither",
                ));
            }
            (bits, slot) => Some(self.tagged(space.clone(), bits, slot)?),
        };
        Ok(Ids { space, tags })
    }

    fn tagged(
        &self,
        space: Arc<dyn Space>,
        bits: u32,
        slot: u32,
    ) -> Result<Tagged<Arc<dyn Space>>, Failed> {
        let needed = u64::BITS - self.last.leading_zeros();
        let widths = Widths::new(bits, if slot == 0 { needed.max(1) } else { slot })?;
        let on_wrap = match self.flags & LARDER_IDS_REUSE_GENERATIONS {
            0 => OnWrap::Retire,
            _ => OnWrap::Reuse,
        };
        Ok(Tagged::with(space, widths, on_wrap, self.first_generation)?)
    }

    /// The rule of identifiers that rest.
    fn rest(&self) -> Result<Option<Rested<Lowest>>, Failed> {
        let near_full = match self.flags & LARDER_IDS_RELAX_REST {
            0 => NearFull::Fail,
            _ => NearFull::Relax,
        };
        let (rest, clock) = match (self.rest_allocations, self.rest_ms) {
            (0, 0) => return Ok(None),
            (rest, 0) => (rest, Ticks::Allocations),
            (0, ms) => (ms.saturating_mul(1_000_000), Ticks::nanoseconds()),
            _ => {
                return Err(Failed::said(
                    larder_status::LARDER_ARGUMENT,
                    "the options name",
                    "rest_allocations and rest_ms; set one",
                ));
            }
        };
        Ok(Some(Rested::by_clock(Lowest, rest, near_full, clock)))
    }

    fn space<R: Rule<Order: Send> + Send + Sync + 'static>(
        &self,
        rule: R,
    ) -> Result<Arc<dyn Space>, Failed> {
        let mut space = IdSpace::builder(IdRange::new(self.first, self.last)?, rule);
        if let Some(mode) = mode(self.mode)? {
            space = space.mode(mode);
        }
        Ok(Arc::new(space.build()?))
    }
}

/// Identifiers of a range: process ids, file numbers, slots of a table. Every function except larder_ids_free and larder_ids_destroy
/// may be called by many threads at once.
pub struct larder_ids {
    _opaque: [u8; 0],
}

opaque!(larder_ids, Ids, b"ldridsp1", "ids");

/// Makes a range of identifiers. `options` may be NULL for the defaults. `out` gets it, or NULL after a failure. It takes constant
/// time, and memory follows use.
///
/// # Safety
/// `options` is NULL or has as many bytes as its first field says; `out` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_new(
    options: *const larder_ids_options,
    out: *mut *mut larder_ids,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { guard(error, || give(out, || read_sized(options)?.build())) }
}

/// Ends the range, even if identifiers are allocated; NULL does nothing.
///
/// # Safety
/// `ids` is NULL or live ids, which no other thread uses, and which are not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_free(ids: *mut larder_ids) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { free(ids) }
}

/// Ends a range of which nothing is allocated; NULL does nothing. Otherwise it does nothing, and LARDER_BUSY says how many are.
///
/// # Safety
/// `ids` is NULL or live ids, which no other thread uses, and which are not used afterwards; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_destroy(
    ids: *mut larder_ids,
    error: *mut larder_error,
) -> larder_status {
    let says = [
        "the range is not ended:",
        " identifiers are allocated; give them back, or end it by larder_ids_free",
    ];
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { destroy(ids, error, Ids::allocated, says) }
}

/// Takes the identifier that the rule says is next, or a handle of the slot that it says is next. `id` gets it, or UINT64_MAX after a
/// failure.
///
/// # Safety
/// `ids` is NULL or live ids; `id` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_alloc(
    ids: *const larder_ids,
    id: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(ids, ("id", id), error, Ids::alloc) }
}

/// Takes this very identifier or slot. `id` gets the identifier, or the slot's handle, or UINT64_MAX after a failure. LARDER_BUSY when
/// another owner has it, or the slot is retired.
///
/// # Safety
/// `ids` is NULL or live ids; `id` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_alloc_at(
    ids: *const larder_ids,
    slot: u64,
    id: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(ids, ("id", id), error, |ids| ids.alloc_at(slot)) }
}

/// Gives an identifier or a handle back. One that is not allocated, was given back already or is stale is LARDER_FOREIGN, one outside
/// of the range LARDER_ARGUMENT; then nothing has changed. Of two threads that give back the same one at once, one succeeds.
///
/// # Safety
/// `ids` is NULL or live ids; `error` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_dealloc(
    ids: *const larder_ids,
    id: u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { on(ids, error, |ids| ids.free(id)) }
}

/// Looks whether an identifier or a handle is allocated. `slot` gets the number of its slot, an identifier's own number, or UINT64_MAX;
/// LARDER_FOREIGN when it is not allocated or stale.
///
/// # Safety
/// `ids` is NULL or live ids; `slot` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_check(
    ids: *const larder_ids,
    id: u64,
    slot: *mut u64,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { take(ids, ("slot", slot), error, |ids| ids.slot(id)) }
}

/// Numbers of identifiers, read while threads go on: they belong to slightly different moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct larder_ids_stats {
    /// Bytes of this struct as the program knows it; set it before the call.
    pub size: usize,
    /// Identifiers that owners have.
    pub allocated_ids: u64,
    /// Identifiers that may be allocated now or after a rest; UINT64_MAX for more.
    pub free_ids: u64,
    /// Slots whose generations are used up.
    pub retired_ids: u64,
    /// Identifiers taken from a CPU's magazines.
    pub hits: u64,
    /// Bytes of memory for all of it.
    pub bookkeeping_bytes: u64,
}

numbers!(larder_ids_stats, |ids: &Ids| space = &ids.space;
    allocated_ids = ids.allocated(),
    free_ids = ids.free_ids(),
    retired_ids = ids.retired(),
    hits = space.hits(),
    bookkeeping_bytes = (space.bytes() + ids.tags.as_ref().map_or(0, Tagged::table_bytes)) as u64,
);

/// Reads the numbers; as larder_pool_stats_read.
///
/// # Safety
/// `ids` is NULL or live ids; `stats` is NULL or has as many writable bytes as its first field says; `error` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_stats_read(
    ids: *const larder_ids,
    stats: *mut larder_ids_stats,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::read(ids, stats, error) }
}

/// Writes the numbers as one JSON object; as larder_pool_stats_json.
///
/// # Safety
/// `ids` is NULL or live ids; `buffer` points to `bytes` writable bytes; `needed` and `error` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_ids_stats_json(
    ids: *const larder_ids,
    buffer: *mut c_char,
    bytes: usize,
    needed: *mut usize,
    error: *mut larder_error,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { numbers::json::<_, larder_ids_stats>(ids, (buffer, bytes, needed), error) }
}
