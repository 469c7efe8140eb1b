//! A source that remembers what it did.

use std::collections::BTreeMap;
use std::sync::Mutex;

use larder::arena::{Extent, Import, Refusal};

/// Addresses of the source begin here, far from those that are added by hand.
const SOURCE: u64 = 1 << 40;

/// What a source did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Import(Extent),
    Release(Extent),
}

/// A source with so many units, in which no span is given twice at the same time.
#[derive(Debug)]
pub(crate) struct Source {
    room: u64,
    state: Mutex<(BTreeMap<u64, u64>, Vec<Event>)>,
}

impl Source {
    pub(crate) fn new(room: u64) -> Self {
        Self {
            room,
            state: Mutex::default(),
        }
    }

    /// What it did since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.state.lock().unwrap().1)
    }

    /// Whether it has everything back.
    pub(crate) fn is_whole(&self) -> bool {
        self.state.lock().unwrap().0.is_empty()
    }
}

impl Import for Source {
    fn import(&self, size: u64, align: u64) -> Result<Extent, Refusal> {
        let mut state = self.state.lock().unwrap();
        let mut addr = SOURCE;
        loop {
            addr = addr.next_multiple_of(align);
            let refused = Refusal {
                by: "test",
                why: "nothing left",
                cause: None,
            };
            if addr + size > SOURCE + self.room {
                return Err(refused);
            }
            match state
                .0
                .range(..addr + size)
                .next_back()
                .filter(|(a, s)| *a + *s > addr)
            {
                Some((a, s)) => addr = a + s,
                None => break,
            }
        }
        let span = Extent { addr, size };
        state.0.insert(addr, size);
        state.1.push(Event::Import(span));
        Ok(span)
    }

    fn release(&self, span: Extent) {
        let mut state = self.state.lock().unwrap();
        assert_eq!(
            state.0.remove(&span.addr),
            Some(span.size),
            "given back as it was given"
        );
        state.1.push(Event::Release(span));
    }
}
