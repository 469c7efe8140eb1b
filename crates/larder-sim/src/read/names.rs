//! Names (paths, keys) as small numbers.

use std::collections::HashMap;

/// Numbers for names, in order of arrival.
#[derive(Debug)]
pub(super) struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    next: u32,
    bytes: u64,
    most: u64,
}

/// Approximate bytes of a name in the table, without its text.
const ENTRY: u64 = 64;

impl Default for Names {
    fn default() -> Self {
        Self::within(u64::MAX)
    }
}

impl Names {
    /// Names that take this many bytes at most.
    pub(super) fn within(most: u64) -> Self {
        Self {
            numbers: HashMap::new(),
            next: 0,
            bytes: 0,
            most,
        }
    }

    /// The number of a name, a new one if it has none.
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        match self.numbers.get(name) {
            Some(number) => Ok(*number),
            None => self.renew(name),
        }
    }

    /// The number that a name has.
    pub(super) fn known(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Gives a name a new number; the old number stays with what it named.
    pub(super) fn renew(&mut self, name: &[u8]) -> Result<u32, String> {
        let number = self.next;
        self.next = number
            .checked_add(1)
            .ok_or("more than 2^32 different names")?;
        self.bytes += name.len() as u64 + ENTRY;
        if self.bytes > self.most {
            return Err(format!(
                "the {number} different names until here take more than the {} MiB that the trace may take in memory; \
                 raise --max-memory, or take a part with --limit",
                self.most.div_ceil(1 << 20)
            ));
        }
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    /// Removes a name.
    pub(super) fn forget(&mut self, name: &[u8]) -> Option<u32> {
        self.numbers.remove(name)
    }

    /// Makes a name stand for a number.
    pub(super) fn set(&mut self, name: &[u8], number: u32) {
        self.numbers.insert(name.into(), number);
    }
}
