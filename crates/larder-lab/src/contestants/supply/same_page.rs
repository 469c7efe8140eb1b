//! The cost of the loop without a supplier.

use std::ptr::NonNull;

use anyhow::Context;

use super::{ArrayStack, Supplier, Supply};

/// Hands out one page again and again: the loop, the write and nothing else.
#[derive(Debug)]
pub struct SamePage {
    page: NonNull<u8>,
    _owner: ArrayStack,
}

impl Supplier for SamePage {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        Some(self.page)
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        Some(self.page)
    }

    #[inline]
    unsafe fn put(&mut self, _page: NonNull<u8>) {}
}

/// A page of its own for every thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct SamePages;

impl Supply for SamePages {
    type Local<'a> = SamePage;

    fn local(&self) -> anyhow::Result<SamePage> {
        let mut owner = ArrayStack::new(1)?;
        let page = owner.get().context("a stack of one page has none")?;
        // The page is never used through two names: the stack that owns it is not asked again.
        Ok(SamePage {
            page,
            _owner: owner,
        })
    }
}
