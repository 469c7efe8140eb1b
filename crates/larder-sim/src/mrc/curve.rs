//! A curve: for each size the share of hits.

/// Uses by the size from which on they hit.
///
/// ```
/// use larder_sim::Curve;
///
/// let mut curve = Curve::default();
/// curve.add(Some(1), 1.0);
/// curve.add(Some(3), 1.0);
/// curve.add(None, 2.0); // first uses hit nowhere
/// assert_eq!([0, 1, 2, 3, 9].map(|size| curve.hit_ratio(size)), [0.0, 0.25, 0.25, 0.5, 0.5]);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// By size - 1.
    weights: Vec<f64>,
    total: f64,
    /// Uses that sampling missed, or saw too often: they count as hits at every size (SHARDS-adj).
    shift: f64,
}

impl Curve {
    /// Adds a use that hits in caches of `size` blocks and more, or in none.
    pub fn add(&mut self, size: Option<u64>, weight: f64) {
        self.total += weight;
        if let Some(at) = size.and_then(|s| usize::try_from(s.max(1) - 1).ok()) {
            if at >= self.weights.len() {
                self.weights.resize(at + 1, 0.0);
            }
            self.weights[at] += weight;
        }
    }

    /// Sets the true number of uses: the difference goes to the sizes where hits are certain (Waldspurger et al., FAST 2015, 3.4).
    pub(super) fn adjust(&mut self, uses: u64) {
        self.shift = uses as f64 - self.total;
        self.total = uses as f64;
    }

    /// Share of hits of a cache of `size` blocks, 0 to 1.
    #[must_use]
    pub fn hit_ratio(&self, size: usize) -> f64 {
        self.hit_ratios(&[size])[0]
    }

    /// The same for sizes in rising order, in one pass.
    #[must_use]
    pub fn hit_ratios(&self, sizes: &[usize]) -> Vec<f64> {
        let (mut at, mut hits) = (0, 0.0);
        sizes
            .iter()
            .map(|&size| {
                let end = size.min(self.weights.len());
                if end > at {
                    hits += self.weights[at..end].iter().sum::<f64>();
                    at = end;
                }
                if self.total > 0.0 && size > 0 {
                    ((hits + self.shift) / self.total).clamp(0.0, 1.0)
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// The size from which on frames bring less than they did so far, and what it takes to go on: the point of the curve that is
    /// furthest above the line from its begin to its end (Satopää et al., *Finding a "Kneedle" in a haystack*, 2011). A curve that
    /// stays within a tenth of its height of that line, or below it, bends at its end. None where no size hits.
    #[must_use]
    pub fn knee(&self) -> Option<Knee> {
        let all = self.weights.iter().sum::<f64>();
        let sizes = self.weights.len() as f64;
        let (mut hits, mut best) = (0.0, (0.1, self.weights.len(), all));
        for (at, weight) in self.weights.iter().enumerate() {
            hits += weight;
            let above = hits / all - (at + 1) as f64 / sizes;
            if above > best.0 {
                best = (above, at + 1, hits);
            }
        }
        let (_, size, at_knee) = best;
        let mut hits = at_knee;
        let further = self.weights[size..].iter().position(|weight| {
            hits += weight;
            hits - at_knee >= self.total / 10.0
        });
        (all > 0.0).then(|| Knee {
            size,
            hit_ratio: ((at_knee + self.shift) / self.total).clamp(0.0, 1.0),
            a_tenth_more: further.map(|more| more + 1),
        })
    }

    /// Uses.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }
}

/// Where a curve bends.
///
/// ```
/// use larder_sim::{Curve, Knee};
///
/// let mut curve = Curve::default();
/// curve.add(Some(2), 60.0); // three of five uses come back at once
/// (3..=42).for_each(|size| curve.add(Some(size), 1.0));
/// let Some(Knee { size, hit_ratio, a_tenth_more }) = curve.knee() else { unreachable!() };
/// assert_eq!((size, hit_ratio, a_tenth_more), (2, 0.6, Some(10)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Knee {
    /// Blocks.
    pub size: usize,
    /// Share of hits at this size, 0 to 1.
    pub hit_ratio: f64,
    /// Blocks on top of these until another tenth of the uses hits; None where no size brings it.
    pub a_tenth_more: Option<usize>,
}

/// The distance of two lists of ratios.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Difference {
    /// Mean of the absolute differences.
    pub mean: f64,
    /// The largest.
    pub most: f64,
    /// Points.
    pub points: usize,
}

/// The distance of estimates from the truth, point by point.
#[must_use]
pub fn difference(estimates: &[f64], truth: &[f64]) -> Difference {
    let apart: Vec<f64> = estimates
        .iter()
        .zip(truth)
        .map(|(a, b)| (a - b).abs())
        .collect();
    Difference {
        mean: apart.iter().sum::<f64>() / apart.len().max(1) as f64,
        most: apart.iter().copied().fold(0.0, f64::max),
        points: apart.len(),
    }
}
