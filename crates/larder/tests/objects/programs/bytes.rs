//! A program as bytes, and a system that refuses some calls of it.

use std::sync::Arc;
use std::time::Duration;

use larder::objects::Family;
use larder::os::Linux;
use larder::os::rseq::Mode;
use larder::os::testing::{Failing, Hooked};
use larder::pages::PagePool;

/// Most operations of one program, to keep it fast.
pub(crate) const MOST_STEPS: usize = 400;

/// Reads numbers; after the end there are zeros.
#[derive(Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(first)
    }

    /// Below 65536.
    pub(crate) fn number(&mut self) -> usize {
        self.byte() << 8 | self.byte()
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.number() % n
    }
}

/// The family of a program: its mode, its limit, and which system calls are refused. `None` when it could not be made,
/// which only a refusal excuses. And whether anything may be refused.
pub(crate) fn family(bytes: &mut Bytes<'_>, per_cpu: Mode) -> (Option<Family>, bool) {
    let setup = bytes.byte();
    let mode = if setup & 1 == 0 {
        per_cpu
    } else {
        Mode::Locked("the program wants it")
    };
    let (first, many) = if setup & 2 == 0 {
        (0, 0)
    } else {
        (bytes.byte(), bytes.byte())
    };
    let mut pages = PagePool::builder()
        .ignore_environment()
        .mode(mode)
        .reserve_bytes(64 << 20)
        .decay(Duration::from_secs(u64::from(setup & 8 != 0)))
        .system(Arc::new(Hooked::new(Linux, Failing::from(first, many))));
    let limited = setup & 4 != 0;
    if limited {
        pages = pages.limit_bytes((16 + bytes.byte()) << 14);
    }
    let family = Family::builder()
        .pages(pages)
        .mode(mode)
        .interval(Duration::from_secs(3600))
        .build();
    assert!(family.is_ok() || many > 0, "{:?}", family.err());
    (family.ok(), limited || many > 0)
}
