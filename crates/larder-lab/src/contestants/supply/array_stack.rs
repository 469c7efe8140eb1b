//! The floor: a bare array of pages that are already backed.

use std::ptr::NonNull;

use anyhow::Context;

use super::{Mapper, Supplier, Supply, page_size};

/// A stack of page addresses in an array, of one thread, with no check beyond its bounds and no way to grow. Nothing
/// that hands out pages can do less, so it is the floor that suppliers are compared with.
#[derive(Debug)]
pub struct ArrayStack {
    page: usize,
    stack: Box<[Option<NonNull<u8>>]>,
    top: usize,
    region: NonNull<u8>,
    mapper: Mapper,
}

impl ArrayStack {
    /// A stack of `pages` present pages.
    ///
    /// # Errors
    /// The kernel refuses the memory.
    pub fn new(pages: usize) -> anyhow::Result<Self> {
        let page = page_size();
        let mapper = Mapper::new();
        let region = mapper.map(page * pages, true).with_context(|| {
            let why = std::io::Error::last_os_error();
            format!("no memory for {pages} pages: {why}")
        })?;
        let stack = (0..pages)
            // SAFETY: page `i` lies inside the region.
            .map(|i| Some(unsafe { region.add(i * page) }))
            .collect();
        Ok(Self {
            page,
            stack,
            top: pages,
            region,
            mapper,
        })
    }
}

impl Supplier for ArrayStack {
    #[inline]
    fn get(&mut self) -> Option<NonNull<u8>> {
        let top = self.top.checked_sub(1)?;
        let page = *self.stack.get(top)?;
        self.top = top;
        page
    }

    #[inline]
    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        let page = self.get()?;
        // SAFETY: a page of the stack's region.
        unsafe { page.as_ptr().write_bytes(0, self.page) };
        Some(page)
    }

    #[inline]
    unsafe fn put(&mut self, page: NonNull<u8>) {
        if let Some(slot) = self.stack.get_mut(self.top) {
            *slot = Some(page);
            self.top += 1;
        }
    }

    fn system_calls(&self) -> Option<u64> {
        Some(self.mapper.calls())
    }
}

impl Drop for ArrayStack {
    fn drop(&mut self) {
        if self.top == self.stack.len() {
            // SAFETY: all pages are back.
            unsafe { self.mapper.unmap(self.region, self.page * self.stack.len()) };
        }
    }
}

/// An array stack of its own for every thread.
#[derive(Debug, Clone, Copy)]
pub struct ArrayStacks {
    /// Pages of each stack.
    pub pages: usize,
}

impl Supply for ArrayStacks {
    type Local<'a> = ArrayStack;

    fn local(&self) -> anyhow::Result<ArrayStack> {
        ArrayStack::new(self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_last_in_first_out_and_ends() {
        let mut stack = ArrayStack::new(2).expect("two pages");
        let a = stack.get().expect("first");
        let b = stack.get().expect("second");
        assert_ne!(a, b);
        assert_eq!(stack.get(), None);
        // SAFETY: both came from the stack.
        unsafe {
            stack.put(a);
            stack.put(b);
        }
        assert_eq!(stack.get(), Some(b));
        assert_eq!(stack.get(), Some(a));
    }
}
