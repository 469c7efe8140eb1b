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
            None => {
                let number = self.next;
                self.next = number
                    .checked_add(1)
                    .ok_or("more than 2^32 different names")?;
                self.set(name, number)?;
                Ok(number)
            }
        }
    }

    /// The number that a name has.
    pub(super) fn known(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The numbers of the names that begin like this, in the order of the names: that of a hash table is none.
    pub(super) fn beginning(&self, with: &[u8]) -> Vec<u32> {
        let mut found: Vec<_> = self
            .numbers
            .iter()
            .filter(|(name, _)| name.starts_with(with))
            .collect();
        found.sort();
        found.into_iter().map(|(_, number)| *number).collect()
    }

    /// Removes a name. Its bytes stay counted: the reader keeps what the number stood for.
    pub(super) fn forget(&mut self, name: &[u8]) -> Option<u32> {
        self.numbers.remove(name)
    }

    /// Makes a name stand for a number.
    pub(super) fn set(&mut self, name: &[u8], number: u32) -> Result<(), String> {
        self.bytes += name.len() as u64 + ENTRY;
        if self.bytes > self.most {
            return Err(format!(
                "the {} different names until here take more than the {} MiB that the trace may take in memory; \
                 raise --max-memory, or take a part with --limit",
                self.numbers.len(),
                self.most.div_ceil(1 << 20)
            ));
        }
        self.numbers.insert(name.into(), number);
        Ok(())
    }
}
