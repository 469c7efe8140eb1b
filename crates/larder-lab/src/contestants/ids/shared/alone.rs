//! Threads that share nothing: how far the machine itself scales.

use super::super::{IdSource, Rng, Stack, Start};
use super::{LocalIds, SharedIds};

/// No source at all: the loop alone, which gets back the identifier that it gave.
#[derive(Debug)]
pub struct Nothing;

/// Hands out what it was given last.
#[derive(Debug)]
pub struct Echo {
    next: u64,
    last: Option<u64>,
}

impl LocalIds for Echo {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        Some(self.last.take().unwrap_or_else(|| {
            self.next += 1;
            self.next
        }))
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.last = Some(id);
        true
    }
}

impl SharedIds for Nothing {
    const ABOUT: &'static str = "the loop alone: how far the machine itself scales";

    type Local<'a> = Echo;

    fn new(_: u64) -> anyhow::Result<Self> {
        Ok(Self)
    }

    fn local(&self, index: usize, _: usize) -> Echo {
        Echo {
            next: (index as u64) << 32,
            last: None,
        }
    }

    const BOUNDED: bool = false;
}

/// An array stack for each thread, with a share of the identifiers: not shared, so no peer, but the floor.
#[derive(Debug)]
pub struct Alone {
    count: u64,
}

/// A thread's stack; its identifiers begin at `base`.
#[derive(Debug)]
pub struct OwnStack {
    base: u64,
    stack: Option<Stack>,
}

impl LocalIds for OwnStack {
    #[inline]
    fn alloc(&mut self) -> Option<u64> {
        Some(self.base + self.stack.as_mut()?.alloc()?)
    }

    #[inline]
    fn free(&mut self, id: u64) -> bool {
        self.stack
            .as_mut()
            .is_some_and(|stack| stack.free(id - self.base))
    }
}

impl SharedIds for Alone {
    const ABOUT: &'static str = "a bare array for each thread, nothing shared: the floor";

    type Local<'a> = OwnStack;

    fn new(count: u64) -> anyhow::Result<Self> {
        Ok(Self { count })
    }

    fn local(&self, index: usize, threads: usize) -> OwnStack {
        let share = self.count / threads.max(1) as u64;
        let stack = Start::random(share.max(1), 0, &mut Rng::new(1)).and_then(|s| Stack::start(&s));
        OwnStack {
            base: index as u64 * share,
            stack: stack.ok(),
        }
    }

    const BOUNDED: bool = false;
}
