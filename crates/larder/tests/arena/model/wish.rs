//! What the model asks for.

use larder::arena::{Fit, Request};

pub(crate) fn policy(n: u16) -> Fit {
    [Fit::Instant, Fit::Best, Fit::Next][n as usize % 3]
}

/// A request, in numbers that the model can look at.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) size: u64,
    pub(crate) align: u64,
    pub(crate) phase: u64,
    pub(crate) nocross: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) policy: Option<Fit>,
}

impl Wish {
    pub(crate) fn plain(size: u64) -> Self {
        Self {
            size,
            align: 1,
            phase: 0,
            nocross: 0,
            min: 0,
            max: u64::MAX,
            policy: None,
        }
    }

    /// Now and then with bounds, and seldom with impossible ones.
    pub(crate) fn bounded(mut self, base: u64, c: u16) -> Self {
        if c & 0x300 == 0x300 {
            self.min = base.saturating_add(u64::from(c >> 10) * 64);
            self.max = match c & 0xC0 {
                0 => self.min.saturating_sub(1),
                0x40 => self.min,
                _ => self.min.saturating_add(1 << (c & 0xF)),
            };
        }
        self
    }

    pub(crate) fn is_bounded(&self) -> bool {
        (self.min, self.max) != (0, u64::MAX)
    }

    pub(crate) fn request(&self) -> Request {
        let mut request = Request::new(self.size)
            .align(self.align)
            .phase(self.phase)
            .within(self.min..=self.max);
        if self.nocross != 0 {
            request = request.nocross(self.nocross);
        }
        if let Some(policy) = self.policy {
            request = request.fit(policy);
        }
        request
    }
}
