//! Where freed identifiers stay in place: batches are found by going round over the cells.

use super::IdSpace;
use super::front::{FARTHEST, Front};
use super::ledger::Ledger;
use super::states::LINE;
use super::sync::Guard;
use crate::ids::rule::{Order, Rule};
use crate::ids::{Id, IdError};

/// Where the line of an offset ends.
fn line_end(at: u64) -> u64 {
    (at | (LINE as u64 - 1)) + 1
}

impl<R: Rule<Order: Send>, T: Id> IdSpace<R, T> {
    /// Goes on round from where the last batch ended and takes what is free, in the order of the offsets, until `out` is
    /// full. Looks at `FARTHEST` cells at most while it has nothing, and then at a share of the range. Says how many it
    /// took. The gate is down.
    ///
    /// About 30 instructions for 64 cells, and ten for each offset found.
    ///
    /// # Errors
    /// [`IdError::OutOfMemory`], when not a single one was taken.
    pub(super) fn sweep(
        &self,
        front: &Front,
        ledger: &mut Ledger<R::Order>,
        out: &mut [u64],
    ) -> Result<usize, IdError> {
        // A space with cells has far fewer than 2^64 offsets.
        let len = ledger.last + 1;
        let reach = front.reach(len);
        let mut at = ledger.next_place();
        let (mut n, mut looked) = (0, 0);
        // The next one of the map; mostly there is none.
        let mut mapped = ledger.order.next_free(at);
        while n < out.len() {
            let left = len.min(if n == 0 { FARTHEST } else { reach });
            if looked >= left {
                break;
            }
            if at == len {
                at = 0;
                mapped = ledger.order.next_free(0);
            }
            let end = line_end(at).min(len);
            if let Some(first) = mapped.filter(|&first| first < end) {
                mapped = match self.lay_out(front, ledger, first, end) {
                    Ok(next) => next,
                    Err(_) if n > 0 => break,
                    Err(error) => return Err(error),
                };
            }
            // As far as the map has nothing.
            let clear = mapped.map_or(len, |first| first & !(LINE as u64 - 1));
            let stop = clear.min(at + (left - looked)).max(end);
            let from = at;
            let listed = front
                .states
                .list_unowned(at as usize, stop as usize, &mut out[n..]);
            for &found in &out[n..n + listed.0] {
                front.states.pick_up(found as usize);
            }
            n += listed.0;
            at = listed.1;
            looked += at - from;
        }
        ledger.sweep_from = Some(at);
        Ok(n)
    }

    /// As [`sweep`](Self::sweep), but looks at the cells without the lock: a stretch is set apart under the lock, and
    /// what was found in it is picked up under the lock. So threads look at stretches of their own at the same time. What
    /// is left of a stretch waits for the next pass over the cells if another thread has gone on from its end meanwhile.
    pub(super) fn sweep_apart<'a>(
        &'a self,
        front: &Front,
        mut ledger: Guard<'a, Ledger<R::Order>>,
        out: &mut [u64],
    ) -> (Guard<'a, Ledger<R::Order>>, Result<usize, IdError>) {
        let len = ledger.last + 1;
        let mut looked = 0;
        while looked < len.min(FARTHEST) {
            // The gate is down whenever the lock was just taken: see below, and the caller.
            debug_assert!(!ledger.direct);
            if ledger.order.taken() < len {
                // Some are in the map, and come in their turn.
                let taken = self.sweep(front, &mut ledger, out);
                return (ledger, taken);
            }
            let at = ledger.next_place();
            let stop = line_end(at + (ledger.stretch - 1)).min(len);
            ledger.sweep_from = Some(stop);
            drop(ledger);
            let (n, beyond) = front.states.list_unowned(at as usize, stop as usize, out);
            ledger = self.lock();
            if ledger.direct {
                return (ledger, Ok(0));
            }
            if ledger.sweep_from == Some(stop) {
                ledger.sweep_from = Some(beyond);
            }
            ledger.stretch = if n == out.len() {
                beyond - at
            } else {
                front.reach(len).min(2 * ledger.stretch)
            };
            looked += beyond - at;
            let mut picked = 0;
            for i in 0..n {
                // Taken by name, or returned to the map, meanwhile.
                if front.states.is_unowned(out[i] as usize) {
                    front.states.pick_up(out[i] as usize);
                    out[picked] = out[i];
                    picked += 1;
                }
            }
            if picked > 0 {
                return (ledger, Ok(picked));
            }
        }
        (ledger, Ok(0))
    }

    /// Lays what the map has from `first`, which is free there, to below `end` into its cells. The next one of the map.
    fn lay_out(
        &self,
        front: &Front,
        ledger: &mut Ledger<R::Order>,
        mut first: u64,
        end: u64,
    ) -> Result<Option<u64>, IdError> {
        loop {
            let mut beyond = first + 1;
            while beyond < end && !ledger.order.is_taken(beyond) {
                beyond += 1;
            }
            if ledger.order.take_all(first, beyond - 1)?.is_ok() {
                for at in first..beyond {
                    front.states.touch(at);
                    front.states.lay_down(at as usize);
                }
            }
            if beyond > ledger.last {
                return Ok(None);
            }
            match ledger.order.next_free(beyond) {
                Some(next) if next < end => first = next,
                next => return Ok(next),
            }
        }
    }

    /// Brings all that lies in place to the map.
    pub(super) fn move_all_to_map(&self, front: &Front, ledger: &mut Ledger<R::Order>) {
        for base in front.states.used_lines() {
            let mut unowned = front.states.unowned(base);
            while unowned != 0 {
                let at = base as u64 + u64::from(unowned.trailing_zeros());
                unowned &= unowned - 1;
                front.states.pick_up(at as usize);
                self.give_back(ledger, at);
            }
        }
    }

    /// Brings what lies in place from `first` to `last` to the map.
    pub(super) fn move_to_map(
        &self,
        front: &Front,
        ledger: &mut Ledger<R::Order>,
        first: u64,
        last: u64,
    ) -> Result<(), IdError> {
        for at in first..=last {
            if front.states.is_unowned(at as usize) {
                ledger.order.give(at)?;
                front.states.pick_up(at as usize);
            }
        }
        Ok(())
    }
}
