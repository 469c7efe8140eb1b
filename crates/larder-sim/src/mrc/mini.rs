//! Miniature simulation: any rule over a sample of the blocks, in a cache that is smaller by the same share (Waldspurger,
//! Saemundsson, Ahmad, Park, USENIX ATC 2017).

use super::super::load::Loaded;
use super::super::run::Tally;
use super::super::{Kind, Record, SimError};
use super::shards::{hash, threshold};

/// A part of a trace that has all uses of some of its blocks.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its uses.
    pub trace: Loaded,
    /// The requested share of blocks.
    pub rate: f64,
    /// Uses of the whole trace.
    uses: u64,
}

impl Sample {
    /// The size in the sample that corresponds to `size` blocks.
    #[must_use]
    pub fn size(&self, size: usize) -> usize {
        ((size as f64 * self.rate).round() as usize).max(1)
    }

    /// The share of hits that a tally over the sample makes likely for the whole. Misses are stretched by the rate and set against
    /// all uses: a sample that has caught a hot block, or missed it, errs in hits and not in misses.
    #[must_use]
    pub fn hit_ratio(&self, tally: &Tally) -> f64 {
        if self.uses == 0 {
            return 0.0;
        }
        (1.0 - tally.misses as f64 / self.rate / self.uses as f64).clamp(0.0, 1.0)
    }
}

/// Takes a share `rate` of the blocks, chosen by hash.
///
/// # Errors
/// [`SimError::TooMuch`]: no memory. [`SimError::Spill`].
pub fn sample(trace: &Loaded, rate: f64, seed: u64) -> Result<Sample, SimError> {
    let limit = threshold(rate);
    // A second of the sample is as long as one of the trace.
    let tick = trace.tick();
    let least = u32::from(tick > 0);
    let tick = (f64::from(tick) * rate.min(1.0)).round() as u32;
    let mut loader = super::super::Loader::new().ticking(tick.max(least));
    let mut sampled = trace.alike();
    let mut records: Vec<Record> = Vec::new();
    let mut last = None;
    for chunk in trace.chunks() {
        let chunk = chunk?;
        records.clear();
        chunk.for_each(|block, request, kind| {
            if kind == Kind::Tick {
                // Time passes for the sample too.
                records.extend(last.map(|last| Record { kind, ..last }));
            } else if hash(block, seed) <= limit {
                let record = Record {
                    block: chunk.originals.of(block),
                    request,
                    kind,
                    ..Record::default()
                };
                records.push(record);
                last = Some(record);
            }
        });
        loader.add(&trace.name, &records, |chunk| {
            sampled.push(chunk);
            Ok(())
        })?;
    }
    Ok(Sample {
        trace: sampled.end(loader),
        rate: rate.min(1.0),
        uses: trace.counts.uses,
    })
}
