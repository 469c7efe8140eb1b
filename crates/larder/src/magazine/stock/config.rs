//! How a stock is made.

use crate::magazine::MAX_ROUNDS;
use crate::magazine::cpu_layer::CpuLayer;
use crate::os::rseq::Mode;

/// How a stock is made.
#[derive(Debug, Clone)]
pub(crate) struct StockConfig {
    /// Rounds of a magazine at first.
    pub rounds: usize,
    /// Rounds of a magazine at most, however much contention there is; at most [`MAX_ROUNDS`].
    pub most_rounds: usize,
    /// Per CPU or locked.
    pub mode: Mode,
}

impl Default for StockConfig {
    /// Magazines of 63 rounds that may grow to 255, in the best mode of this machine.
    fn default() -> Self {
        Self {
            rounds: 63,
            most_rounds: MAX_ROUNDS,
            mode: CpuLayer::default_mode(),
        }
    }
}
