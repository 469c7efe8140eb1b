//! The methods that SQLite calls, for each rule.

use core::any::Any;
use core::ffi::{c_int, c_uint, c_void};
use core::marker::PhantomData;
use core::ptr;
use std::sync::RwLock;

use larder_policy::{Policy, PolicyError, Visitor, with_rule};

use crate::cache::Cache;
use crate::ffi::{Methods, NO_MEMORY, OK, Page};
use crate::process::Process;

pub(crate) static PROCESS: Process = Process::new();

/// The name of the rule, by which each cache makes its own.
static RULE: RwLock<&'static str> = RwLock::new("");

/// The methods for a rule, which caches will have from now on.
pub(crate) fn methods(rule: &str) -> Result<Methods, PolicyError> {
    with_rule(rule, 1, Table)
}

/// What the methods are for.
pub(crate) fn set_rule(name: &str) {
    let known = larder_policy::rules().iter().map(|rule| rule.name);
    if let Some(name) = known.into_iter().find(|known| *known == name)
        && let Ok(mut rule) = RULE.write()
    {
        *rule = name;
    }
}

struct Table;

impl Visitor for Table {
    type Out = Methods;

    fn visit<P: Policy>(self, _: &'static str, _: P) -> Methods {
        Methods {
            version: 1,
            arg: ptr::null_mut(),
            init,
            shutdown,
            create: create::<P>,
            cache_size: cache_size::<P>,
            page_count: page_count::<P>,
            fetch: fetch::<P>,
            unpin: unpin::<P>,
            rekey: rekey::<P>,
            truncate: truncate::<P>,
            destroy: destroy::<P>,
            shrink: shrink::<P>,
        }
    }
}

/// A rule of a known type, for another size.
struct Again<P>(PhantomData<P>);

impl<Q: Policy> Visitor for Again<Q> {
    type Out = Option<Q>;

    fn visit<P: Policy>(self, _: &'static str, rule: P) -> Option<Q> {
        let mut rule = Some(rule);
        let same: &mut dyn Any = &mut rule;
        same.downcast_mut::<Option<Q>>()?.take()
    }
}

fn make<P: Policy>(frames: usize) -> Option<P> {
    let name = *RULE.read().ok()?;
    with_rule(name, frames, Again(PhantomData)).ok()?
}

unsafe extern "C" fn init(_: *mut c_void) -> c_int {
    match PROCESS.family() {
        Ok(_) => {
            crate::state::running(true);
            OK
        }
        Err(_) => NO_MEMORY,
    }
}

unsafe extern "C" fn shutdown(_: *mut c_void) {
    crate::state::running(false);
}

unsafe extern "C" fn create<P: Policy>(
    bytes: c_int,
    extra: c_int,
    purgeable: c_int,
) -> *mut c_void {
    let (Ok(bytes), Ok(extra)) = (usize::try_from(bytes), usize::try_from(extra)) else {
        return ptr::null_mut();
    };
    if bytes == 0 {
        return ptr::null_mut();
    }
    // SAFETY: SQLite uses a cache until it destroys it, and by one thread at a time.
    let cache = unsafe { Cache::<P>::create(bytes, extra, purgeable != 0, make::<P>, &PROCESS) };
    cache.map_or(ptr::null_mut(), <*mut Cache<P>>::cast)
}

/// # Safety
/// SQLite's cache is one of `create`, for the same rule, and not destroyed.
#[inline]
unsafe fn cache<'c, P: Policy>(cache: *mut c_void) -> &'c Cache<P> {
    // SAFETY: the caller's word.
    unsafe { &*cache.cast::<Cache<P>>() }
}

unsafe extern "C" fn cache_size<P: Policy>(at: *mut c_void, pages: c_int) {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at) }.set_limit(usize::try_from(pages).unwrap_or(0));
}

unsafe extern "C" fn page_count<P: Policy>(at: *mut c_void) -> c_int {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at) }.len() as c_int
}

unsafe extern "C" fn fetch<P: Policy>(at: *mut c_void, key: c_uint, create: c_int) -> *mut Page {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at) }.fetch(key, create)
}

unsafe extern "C" fn unpin<P: Policy>(at: *mut c_void, page: *mut Page, discard: c_int) {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at).unpin(page, discard != 0) };
}

unsafe extern "C" fn rekey<P: Policy>(at: *mut c_void, page: *mut Page, _: c_uint, to: c_uint) {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at).rekey(page, to) };
}

unsafe extern "C" fn truncate<P: Policy>(at: *mut c_void, from: c_uint) {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at) }.truncate(from);
}

unsafe extern "C" fn destroy<P: Policy>(at: *mut c_void) {
    // SAFETY: SQLite's word, and it is the last one.
    unsafe { Cache::<P>::destroy(at.cast()) };
}

unsafe extern "C" fn shrink<P: Policy>(at: *mut c_void) {
    // SAFETY: SQLite's word.
    unsafe { cache::<P>(at) }.shrink();
}
