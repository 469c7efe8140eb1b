//! What lies ready for each CPU.

use std::sync::Arc;

use super::gate::{FREE, Gate, UNOWNED};
use super::states::States;
use super::sync::{BATCH, Stock};
use crate::ids::IdError;
use crate::ids::rule::Shape;
use crate::magazine::StockConfig;
use crate::os::rseq::Mode;
use crate::os::{Linux, System, usable_cpus};

/// Cells that a batch is looked for in at most, where identifiers lie in place: about half a microsecond.
pub(super) const FARTHEST: u64 = 1 << 14;

/// What a space is made of.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) mode: Option<Mode>,
    pub(super) system: Option<Arc<dyn System>>,
}

fn system(config: &Config) -> Arc<dyn System> {
    match &config.system {
        Some(system) => system.clone(),
        None => Arc::new(Linux),
    }
}

fn stock(config: &Config) -> Stock {
    let mut stock = StockConfig {
        rounds: BATCH,
        most_rounds: BATCH,
        ..StockConfig::default()
    };
    if let Some(mode) = config.mode {
        stock.mode = mode;
    }
    Stock::new(system(config), stock)
}

/// The part of a space that works without a lock.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) states: States,
    pub(super) gate: Gate,
    /// What the cell of an identifier reads when it is freed: `UNOWNED` where it stays in place.
    pub(super) vacated: u8,
    /// Identifiers to be handed out.
    pub(super) ready: Stock,
    /// Identifiers on their way to the map, where that is another stock.
    returns: Option<Stock>,
    /// Of the free identifiers of the map one in so many may be claimed for one CPU.
    share: u64,
    /// With fewer free ones the map is used directly.
    few: u64,
}

impl Front {
    pub(super) fn new(config: &Config, shape: Shape, len: usize) -> Result<Self, IdError> {
        let stock = || stock(config);
        let share = if cfg!(shuttle) {
            1
        } else {
            4 * usable_cpus() as u64
        };
        let in_place = shape == Shape::InPlace;
        Ok(Self {
            ready: stock(),
            returns: (shape == Shape::InOrder).then(stock),
            states: States::new(system(config), len)?,
            gate: Gate::new(),
            vacated: if in_place { UNOWNED } else { FREE },
            share,
            // A reading of all cells is bought with this many operations at least. Where every batch is looked for in the
            // cells there is one to be found in a few lines.
            few: share.max(len as u64 >> if in_place { 12 } else { 14 }),
        })
    }

    /// Sends freed identifiers to the map by a stock of their own from here on. What lies in cells must be brought to the map.
    pub(super) fn stock_returns(&mut self, config: &Config) {
        self.returns = Some(stock(config));
        self.vacated = FREE;
    }

    /// Whether freed identifiers stay where they are.
    #[inline]
    pub(super) fn in_place(&self) -> bool {
        self.vacated == UNOWNED
    }

    /// Cells that one batch may be gathered from, of `len`.
    pub(super) fn reach(&self, len: u64) -> u64 {
        (len / self.share).clamp(1, FARTHEST)
    }

    /// Where freed identifiers go, if they do not stay in place.
    #[inline]
    pub(super) fn returns(&self) -> &Stock {
        self.returns.as_ref().unwrap_or(&self.ready)
    }

    /// Whether batches and returns are two stocks.
    pub(super) fn in_order(&self) -> bool {
        self.returns.is_some()
    }

    /// How many identifiers one CPU may claim when `free` are in the map; 0 when none should.
    pub(super) fn batch(&self, free: u64) -> usize {
        if free < self.few {
            0
        } else {
            usize::try_from(free / self.share).map_or(BATCH, |n| n.min(BATCH))
        }
    }

    /// Whether there are enough free identifiers in the map to use magazines again.
    pub(super) fn is_plenty(&self, free: u64) -> bool {
        free >= 4 * self.few
    }

    /// Bytes held, the magazines' included.
    pub(super) fn bytes(&self) -> usize {
        let magazines =
            self.ready.stats().magazines + self.returns.as_ref().map_or(0, |s| s.stats().magazines);
        magazines * crate::magazine::MAGAZINE_BYTES + self.states.bytes()
    }
}
