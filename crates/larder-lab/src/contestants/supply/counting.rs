//! A supplier that counts what a workload asks of the one underneath.

use std::ptr::NonNull;

use super::Supplier;

/// What a workload did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages taken.
    pub gets: u64,
    /// Of these, pages of zeros.
    pub zeroed: u64,
    /// Pages put back.
    pub puts: u64,
    /// Most pages out at one time.
    pub most_out: u64,
}

/// Counts and passes on.
#[derive(Debug)]
pub struct Counting<S> {
    inner: S,
    counts: Counts,
}

impl<S: Supplier> Counting<S> {
    /// Counts what is asked of `inner`.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            counts: Counts::default(),
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn note(&mut self, page: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        if page.is_some() {
            self.counts.gets += 1;
            self.counts.most_out = self
                .counts
                .most_out
                .max(self.counts.gets - self.counts.puts);
        }
        page
    }
}

impl<S: Supplier> Supplier for Counting<S> {
    fn get(&mut self) -> Option<NonNull<u8>> {
        let page = self.inner.get();
        self.note(page)
    }

    fn get_zeroed(&mut self) -> Option<NonNull<u8>> {
        let page = self.inner.get_zeroed();
        if page.is_some() {
            self.counts.zeroed += 1;
        }
        self.note(page)
    }

    unsafe fn put(&mut self, page: NonNull<u8>) {
        self.counts.puts += 1;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.put(page) };
    }

    fn system_calls(&self) -> Option<u64> {
        self.inner.system_calls()
    }
}
