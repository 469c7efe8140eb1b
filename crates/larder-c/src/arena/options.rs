//! Settings of an arena that is to be.

use core::ffi::{c_char, c_void};
use std::sync::Arc;

use larder::arena::{Arena, ArenaBuilder, ArenaError, Import};

use super::named::{Name, Named, larder_arena};
use super::request::policy;
use super::source::{Given, larder_import_fn, larder_release_fn};
use crate::error::{Failed, larder_status};
use crate::mark::shared;
use crate::options::{SizeFirst, blank, init, magazine, mode, name};

/// Settings of an arena. `larder_arena_options_init` fills in the defaults.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct larder_arena_options {
    /// Bytes of this struct, as the program knows it: `sizeof(larder_arena_options)`.
    pub size: usize,
    /// A name for errors, which is copied; NULL is "arena".
    pub name: *const c_char,
    /// All sizes and addresses are multiples of this power of two; 0 is 1.
    pub quantum: u64,
    /// Largest size with a quantum cache, at most 16 quanta; 0 is none.
    pub quantum_max: u64,
    /// The first span: its first number. More can be added by larder_arena_add.
    pub span_addr: u64,
    /// The first span: its units; 0 is no span.
    pub span_units: u64,
    /// Most units that all spans together may have; UINT64_MAX is no limit.
    pub limit_units: u64,
    /// Spans are imported in multiples of this; 0 chooses.
    pub import_units: u64,
    /// Segments of a magazine at first, 1 to 255; 0 chooses.
    pub magazine_segments: usize,
    /// Segments of a magazine at most, up to 255; 0 chooses.
    pub magazine_most_segments: usize,
    /// LARDER_FIT_INSTANT, LARDER_FIT_BEST or LARDER_FIT_NEXT; LARDER_FIT_DEFAULT is instant.
    pub fit: u32,
    /// LARDER_MODE_AUTO or LARDER_MODE_LOCKED.
    pub mode: u32,
    /// Another arena that spans are imported from; NULL is none.
    pub source: *const larder_arena,
    /// A function of the program that gives spans; NULL is none. Not together with `source`.
    pub import: larder_import_fn,
    /// Takes spans back that `import` gave; NULL when the source takes none back.
    pub release: larder_release_fn,
    /// Handed to both functions. It must live until the arena, all its handles and all arenas over it are gone.
    pub user: *mut c_void,
}

// SAFETY: the size, then numbers, pointers and functions that may be NULL.
unsafe impl SizeFirst for larder_arena_options {}

impl Default for larder_arena_options {
    fn default() -> Self {
        Self {
            quantum: 1,
            limit_units: u64::MAX,
            ..blank()
        }
    }
}

/// Fills in the defaults. `options` points to a `larder_arena_options`; NULL is an error.
///
/// # Safety
/// `options` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn larder_arena_options_init(
    options: *mut larder_arena_options,
) -> larder_status {
    // SAFETY: the caller of the C function promises what this needs.
    unsafe { init(options) }
}

impl larder_arena_options {
    /// # Safety
    /// `name` is NULL or ends with a zero byte, `source` is NULL or an arena that is not freed meanwhile, the functions do what
    /// the header asks of them.
    pub(super) unsafe fn build(&self) -> Result<Named, Failed> {
        // SAFETY: the caller's promise.
        let own = unsafe { name(self.name)? }.map(Name::new).transpose()?;
        // SAFETY: the name is moved with its arena into a `Named`, which drops it last; where that is not reached, no error
        // that holds it leaves this function.
        let known = own.as_ref().map_or("arena", |name| unsafe { name.text() });
        let mut builder = self.settings(Arena::builder(known))?;
        // SAFETY: the caller's promise.
        if let Some(source) = unsafe { self.import_from()? } {
            builder = builder.source(source);
        }
        let arena = builder.build().map_err(refused)?;
        if self.span_units > 0 {
            arena
                .add(self.span_addr, self.span_units)
                .map_err(|error| no_span(&error, self.span_units))?;
        }
        // SAFETY: the arena has this name, or a static one.
        Ok(unsafe { Named::new(arena, own) })
    }

    fn settings(&self, mut builder: ArenaBuilder) -> Result<ArenaBuilder, Failed> {
        builder = builder
            .quantum(self.quantum.max(1))
            .quantum_max(self.quantum_max)
            .limit(self.limit_units);
        if self.import_units > 0 {
            builder = builder.import_unit(self.import_units);
        }
        if let Some((first, most)) = magazine(self.magazine_segments, self.magazine_most_segments)?
        {
            builder = builder.magazine(first, most);
        }
        if let Some(mode) = mode(self.mode)? {
            builder = builder.mode(mode);
        }
        if let Some(policy) = policy("options.fit is", self.fit)? {
            builder = builder.fit(policy);
        }
        Ok(builder)
    }

    /// # Safety
    /// As for [`build`](Self::build).
    unsafe fn import_from(&self) -> Result<Option<Arc<dyn Import>>, Failed> {
        let both = |wrong| {
            Err(Failed::said(
                larder_status::LARDER_ARGUMENT,
                "the options name",
                wrong,
            ))
        };
        match self.import {
            Some(_) if !self.source.is_null() => both("a source and an import function; set one"),
            Some(import) => Ok(Some(Arc::new(Given {
                import,
                release: self.release,
                user: self.user,
            }))),
            None if self.release.is_some() => both("a release function but no import function"),
            None if self.source.is_null() => Ok(None),
            None => {
                // SAFETY: the caller's promise.
                let source = unsafe { shared(self.source)? };
                Ok(Some(source.clone()))
            }
        }
    }
}

/// The library's error without the name, which goes with the arena.
pub(crate) fn refused(error: ArenaError) -> Failed {
    match error {
        ArenaError::Quantum { quantum, .. } => {
            Failed::argument("options.quantum is", quantum, "; it must be a power of two")
        }
        ArenaError::QuantumMax { max, .. } => Failed::argument(
            "options.quantum_max is",
            max,
            "; it is at most 16 quanta, and a number when rounded up to one",
        ),
        ArenaError::Memory { cause, .. } => cause.into(),
        _ => Failed::said(
            larder_status::LARDER_ARGUMENT,
            "the options",
            "make no arena",
        ),
    }
}

/// As [`refused`], for the first span.
fn no_span(error: &ArenaError, units: u64) -> Failed {
    const WHAT: &str = "options.span_units is";
    match error {
        ArenaError::Memory { cause, .. } => (*cause).into(),
        ArenaError::Limit { .. } => Failed::number(
            larder_status::LARDER_LIMIT,
            WHAT,
            units,
            ", more than options.limit_units",
        ),
        _ => Failed::argument(
            WHAT,
            units,
            "; first number and units must be multiples of the quantum, and the last one a number",
        ),
    }
}
