//! Where a program works: a folder with its input and its output, and how much it has to do.

use std::ops::Deref;

pub(super) use crate::experiments::scratch::{tool, which};

use crate::experiments::scratch::Scratch;

/// Such a place.
#[derive(Debug)]
pub(super) struct Shop {
    scratch: Scratch,
    /// How much the program has to do; 1 is least.
    pub(super) scale: usize,
}

impl Shop {
    /// An empty one.
    ///
    /// # Errors
    /// Nothing can be written where temporary files go.
    pub(super) fn open(scale: usize) -> anyhow::Result<Self> {
        let scratch = Scratch::open("programs")?;
        Ok(Self { scratch, scale })
    }
}

impl Deref for Shop {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        &self.scratch
    }
}
