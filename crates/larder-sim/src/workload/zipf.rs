//! Zipf's law by rejection-inversion, in constant memory.

use super::draw::Draw;

/// Ranks from 0, rank r with a weight of 1 / (r + 1)^s. W. Hörmann and G. Derflinger, Rejection-inversion to generate variates
/// from monotone discrete distributions, ACM TOMACS 6(3), 1996.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    n: f64,
    s: f64,
    first: f64,
    last: f64,
    cut: f64,
}

impl Zipf {
    /// `n` at least 1; `s` at least 0.
    pub(super) fn new(n: u64, s: f64) -> Self {
        let mut zipf = Self {
            n: n.max(1) as f64,
            s: if s.is_finite() { s.max(0.0) } else { 1.0 },
            first: 0.0,
            last: 0.0,
            cut: 0.0,
        };
        zipf.first = zipf.area(1.5) - 1.0;
        zipf.last = zipf.area(zipf.n + 0.5);
        zipf.cut = 2.0 - zipf.inverse(zipf.area(2.5) - 2.0_f64.powf(-zipf.s));
        zipf
    }

    /// The integral of x^-s.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.s) * log;
        if t.abs() > 1e-8 {
            log * t.exp_m1() / t
        } else {
            log * (1.0 + t / 2.0)
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.s)).max(-1.0);
        let log = if t.abs() > 1e-8 {
            area * t.ln_1p() / t
        } else {
            area * (1.0 - t / 2.0)
        };
        log.exp()
    }

    pub(super) fn draw(&self, draw: &mut Draw) -> u64 {
        loop {
            let u = self.last + draw.unit() * (self.first - self.last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.cut || u >= self.area(k + 0.5) - k.powf(-self.s) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_shares_that_the_law_gives() {
        for s in [0.0, 0.8, 1.0, 1.3] {
            let (n, draws) = (50, 400_000);
            let zipf = Zipf::new(n, s);
            let mut draw = Draw::new(7, 0);
            let mut counts = vec![0.0; n as usize];
            (0..draws).for_each(|_| counts[zipf.draw(&mut draw) as usize] += 1.0);
            let total: f64 = (1..=n).map(|k| (k as f64).powf(-s)).sum();
            for (rank, count) in counts.iter().enumerate() {
                let expected = f64::from(draws) * (rank as f64 + 1.0).powf(-s) / total;
                let off = (count - expected).abs();
                assert!(
                    off < 6.0 * expected.sqrt(),
                    "s {s} rank {rank}: {count} for {expected}"
                );
            }
        }
    }
}
