//! Axes: where values lie, which of them are labelled, and how.

use crate::model::{Axis as AxisModel, Chart, Scale};
use crate::report::number;

/// An axis that is ready to place values.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    scale: Scale,
    /// Label without a unit that the ticks carry.
    label: String,
    unit: String,
    /// Ends in the transformed space (logarithms on a logarithmic axis).
    lo: f64,
    hi: f64,
    /// Place of the value zero on a logarithmic axis: left of a gap, because it has no logarithm.
    zero: Option<f64>,
    ticks: Vec<f64>,
}

/// The axes of a chart of lines: horizontal, vertical.
pub(super) fn axes(chart: &Chart) -> (Axis, Axis) {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let marks = chart.marks.iter().map(|m| m.0);
    let x: Vec<f64> = points().map(|p| p.x).chain(marks).collect();
    (Axis::new(&chart.x, &x, true), values(chart))
}

/// The axis of a chart's values, with room for their intervals.
pub(super) fn values(chart: &Chart) -> Axis {
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let mut y: Vec<f64> = points().map(|p| p.y).collect();
    // The length of a bar is its value only if it begins at zero.
    if !chart.categories.is_empty() && chart.y.scale == Scale::Linear {
        y.push(0.0);
    }
    let mut axis = Axis::new(&chart.y, &y, false);
    let ends: Vec<f64> = points().flat_map(|p| [p.lo, p.hi]).collect();
    axis.stretch(&ends);
    axis
}

impl Axis {
    fn new(model: &AxisModel, values: &[f64], horizontal: bool) -> Self {
        let (label, unit) = number::split_label(&model.label);
        let log = model.scale == Scale::Log;
        let mut usable: Vec<f64> = values
            .iter()
            .copied()
            .filter(|v| drawable(*v) && (!log || *v > 0.0))
            .collect();
        usable.sort_by(f64::total_cmp);
        usable.dedup();
        let (min, max) = match (usable.first(), usable.last()) {
            (Some(a), Some(b)) => (*a, *b),
            _ => (1.0, 10.0),
        };
        let mut axis = Self {
            scale: model.scale,
            label,
            unit,
            lo: 0.0,
            hi: 1.0,
            zero: None,
            ticks: Vec::new(),
        };
        if log {
            let has_zero = horizontal && values.contains(&0.0);
            axis.logarithmic(min, max, has_zero, binary(&usable));
        } else {
            axis.linear(min, max, horizontal);
        }
        axis
    }

    fn linear(&mut self, min: f64, max: f64, horizontal: bool) {
        let (mut min, mut max) = (min, max);
        // A line may begin above zero, but only where starting at zero would hide its form.
        if !horizontal && min > 0.0 && min < 0.6 * max {
            min = 0.0;
        }
        if max <= min {
            let half = if min == 0.0 { 1.0 } else { min.abs() / 2.0 };
            (min, max) = (min - half, max + half);
        }
        let step = nice_step((max - min) / if horizontal { 8.0 } else { 5.0 });
        let first = (min / step).floor();
        let last = (max / step).ceil();
        if horizontal {
            let pad = (max - min) * 0.03;
            (self.lo, self.hi) = (min - pad, max + pad);
        } else {
            (self.lo, self.hi) = (first * step, last * step);
        }
        let count = (last - first).clamp(0.0, 40.0) as usize;
        self.ticks = (0..=count)
            .map(|i| clean_zero((first + i as f64) * step, step))
            .filter(|t| (self.lo..=self.hi).contains(t))
            .collect();
    }

    fn logarithmic(&mut self, min: f64, max: f64, has_zero: bool, base2: bool) {
        let (mut lo, mut hi) = (min.ln(), max.ln());
        if hi - lo < 0.1 {
            (lo, hi) = (lo - 0.35, hi + 0.35);
        }
        let pad = (hi - lo) * 0.04;
        (self.lo, self.hi) = (lo - pad, hi + pad);
        let range = self.lo.exp()..=self.hi.exp();
        self.ticks = if base2 {
            powers_of_two(min, max)
        } else {
            decades(self.lo.exp(), self.hi.exp())
        };
        self.ticks.retain(|t| range.contains(t));
        if has_zero {
            let gap = (hi - lo) * 0.075;
            self.zero = Some(self.lo - gap);
            self.lo -= gap + pad;
            self.ticks.insert(0, 0.0);
        }
    }

    /// Makes room for the ends of intervals, as far as that does not dwarf the values.
    fn stretch(&mut self, ends: &[f64]) {
        let (lo, hi) = (self.lo, self.hi);
        let span = hi - lo;
        let places = ends.iter().filter_map(|v| self.place(*v));
        let (mut low, mut high) = (lo, hi);
        for p in places {
            low = low.min(p.max(lo - span * 0.6));
            high = high.max(p.min(hi + span * 0.6));
        }
        if low >= lo && high <= hi {
            return;
        }
        if self.scale == Scale::Log {
            self.logarithmic(low.exp(), high.exp(), false, false);
        } else {
            self.linear(low, high, false);
        }
    }

    /// Place of a value in the transformed space.
    fn place(&self, value: f64) -> Option<f64> {
        match self.scale {
            _ if !drawable(value) => None,
            Scale::Linear => Some(value),
            Scale::Log if value > 0.0 => Some(value.ln()),
            Scale::Log if value == 0.0 => self.zero,
            Scale::Log => None,
        }
    }

    /// Whether the axis has a place for a value.
    pub(super) fn shows(&self, value: f64) -> bool {
        self.place(value).is_some()
    }

    /// Share of the axis between the place of zero and the rest of a logarithmic axis.
    pub(super) fn gap(&self) -> Option<f64> {
        let zero = self.zero?;
        let first = self.ticks.get(1).copied()?.ln();
        let at = (zero + first.min(zero + (self.hi - zero) * 0.09)) / 2.0;
        Some((at - self.lo) / (self.hi - self.lo))
    }

    /// The labelled values, in order.
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// A labelled value as text.
    pub(super) fn tick(&self, value: f64) -> String {
        number::tick(value, &self.unit)
    }

    /// Drops ticks, the roundest last, until each label has its room on an axis of this many units.
    pub(super) fn thin(&mut self, length: f64, room: impl Fn(&str) -> f64) {
        let fits = |ticks: &[f64]| {
            let spans: Vec<(f64, f64)> = ticks
                .iter()
                .map(|t| (self.share(*t) * length, room(&self.tick(*t)) / 2.0))
                .collect();
            spans.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0 - w[1].1)
        };
        let log = self.scale == Scale::Log;
        let step = self
            .ticks
            .windows(2)
            .map(|w| w[1] - w[0])
            .fold(f64::INFINITY, f64::min);
        let twos = log && self.ticks.iter().filter(|t| **t > 0.0).all(power_of_two);
        let keep = |level: i32, t: f64| {
            let tens = t.log10();
            let whole = (tens - tens.round()).abs() < 1e-9;
            let each = |n: f64, every: i32| (n.round() as i64).rem_euclid(i64::from(every)) == 0;
            match level {
                _ if level == 0 || (log && t == 0.0) => true,
                _ if twos => each(t.log2(), level + 1),
                _ if !log => each(t / step, [1, 2, 4, 5, 10, 20, 40][level.min(6) as usize]),
                1 => [1.0, 2.0, 5.0]
                    .iter()
                    .any(|m| (t / m).log10().fract().abs() < 1e-9),
                _ => whole && each(tens, level - 1),
            }
        };
        let chosen = (0..12)
            .map(|level| -> Vec<f64> {
                let kept = self.ticks.iter().copied().filter(|t| keep(level, *t));
                kept.collect()
            })
            // Two labels say what an axis does; fewer do not, so such a level is no choice.
            .find(|ticks| ticks.len() >= 2 && fits(ticks));
        let ends = || {
            let ends = [self.ticks.first(), self.ticks.last()];
            ends.into_iter().flatten().copied().collect::<Vec<_>>()
        };
        self.ticks = chosen.unwrap_or_else(|| if fits(&ends()) { ends() } else { Vec::new() });
        self.ticks.dedup();
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn unit(&self) -> &str {
        &self.unit
    }

    /// Share of the axis, 0 to 1, at which a value lies; what lies outside is drawn at the edge.
    pub(super) fn share(&self, value: f64) -> f64 {
        let place = self.place(value).unwrap_or(self.lo);
        ((place - self.lo) / (self.hi - self.lo)).clamp(0.0, 1.0)
    }
}

/// Finite, and so far from the largest number that differences and paddings stay finite too.
fn drawable(value: f64) -> bool {
    value.abs() < 1e300
}

fn power_of_two(value: &f64) -> bool {
    value.fract() == 0.0 && *value <= 2f64.powi(52) && (*value as u64).is_power_of_two()
}

/// Whether an axis counts in powers of two: it ends at one, and has several.
fn binary(sorted: &[f64]) -> bool {
    sorted.last().is_some_and(power_of_two)
        && sorted.iter().filter(|v| power_of_two(v)).count() >= 4
}

fn powers_of_two(min: f64, max: f64) -> Vec<f64> {
    let first = min.log2().floor() as i32;
    let last = max.log2().ceil() as i32;
    let every = ((last - first) / 10 + 1).max(1);
    (first..=last)
        // Counted from 1, so that 1, 4, 16 … and 1 Ki are among them.
        .filter(|e| e.rem_euclid(every) == 0)
        .map(|e| 2f64.powi(e))
        .collect()
}

fn decades(lo: f64, hi: f64) -> Vec<f64> {
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let span = hi.log10() - lo.log10();
    if span <= 0.6 {
        // Over less than a factor of four a logarithmic axis reads like a linear one.
        let step = nice_step((hi - lo) / 5.0);
        let first = (lo / step).ceil();
        let count = ((hi / step).floor() - first).clamp(0.0, 12.0) as usize;
        return (0..=count)
            .map(|i| clean_zero((first + i as f64) * step, step))
            .collect();
    }
    let steps: &[f64] = if span <= 1.2 {
        &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
    } else if span <= 3.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let every = ((span / 8.0).floor() as i32).max(1);
    (first..=last)
        .filter(|e| e.rem_euclid(every) == 0)
        .flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)))
        .collect()
}

/// The next 1, 2 or 5 times a power of ten that is not smaller.
fn nice_step(rough: f64) -> f64 {
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powi(rough.log10().floor() as i32);
    let lead = rough / power;
    let nice = if lead <= 1.0 {
        1.0
    } else if lead <= 2.0 {
        2.0
    } else if lead <= 5.0 {
        5.0
    } else {
        10.0
    };
    nice * power
}

/// Rounds away the noise of binary fractions, so that no tick reads -0 or 0.30000000000000004.
fn clean_zero(value: f64, step: f64) -> f64 {
    let decimals = 10f64.powi(12 - step.log10().floor() as i32);
    if !decimals.is_finite() {
        return value;
    }
    let rounded = (value * decimals).round() / decimals;
    if rounded.is_finite() {
        rounded + 0.0
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, values: &[f64], horizontal: bool) -> Axis {
        let model = AxisModel {
            label: "time (ns)".into(),
            scale,
        };
        Axis::new(&model, values, horizontal)
    }

    #[test]
    fn linear_ticks_are_round_and_cover_the_values() {
        let a = axis(Scale::Linear, &[3.0, 97.0], false);
        assert_eq!(a.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let a = axis(Scale::Linear, &[0.1, 0.7], false);
        assert!(a.ticks.contains(&0.6), "{:?}", a.ticks);
        let a = axis(Scale::Linear, &[90.0, 97.0], false);
        assert_eq!(a.ticks.first(), Some(&90.0));
    }

    #[test]
    fn a_narrow_logarithmic_axis_has_more_than_one_label() {
        for values in [[0.812, 1.01], [95.0, 105.0], [1.0, 3.9]] {
            let a = axis(Scale::Log, &values, false);
            assert!(
                (3..=12).contains(&a.ticks.len()),
                "{values:?}: {:?}",
                a.ticks
            );
        }
    }

    #[test]
    fn sizes_are_labelled_at_powers_of_two() {
        let sizes: Vec<f64> = (0..17).map(|e| 2f64.powi(e)).collect();
        let a = axis(Scale::Log, &sizes, true);
        assert_eq!(a.ticks[..3], [1.0, 4.0, 16.0]);
        assert!(a.ticks.contains(&1024.0) && a.ticks.contains(&65_536.0));
    }

    #[test]
    fn zero_has_a_place_of_its_own_on_a_horizontal_log_axis() {
        let a = axis(Scale::Log, &[0.0, 1.0, 2.0, 4.0, 8.0], true);
        assert!(a.shows(0.0) && !a.shows(-1.0) && !a.shows(f64::NAN));
        assert_eq!(a.ticks[0], 0.0);
        assert!(a.share(0.0) < a.share(1.0));
        let gap = a.gap().unwrap();
        assert!(a.share(0.0) < gap && gap < a.share(1.0), "{gap}");
        assert!(!axis(Scale::Log, &[0.0, 1.0], false).shows(0.0));
    }

    #[test]
    fn labels_that_have_no_room_are_dropped_and_the_roundest_stay() {
        let wide = |text: &str| text.chars().count() as f64 * 8.0 + 8.0;
        let sizes: Vec<f64> = (0..17).map(|e| 2f64.powi(e)).collect();
        let mut a = axis(Scale::Log, &sizes, true);
        a.thin(200.0, wide);
        assert!((2..=5).contains(&a.ticks.len()), "{:?}", a.ticks);
        assert!(a.ticks.contains(&1.0), "{:?}", a.ticks);
        let mut a = axis(Scale::Log, &[1.0, 900.0], false);
        a.thin(200.0, wide);
        assert_eq!(a.ticks, [1.0, 10.0, 100.0, 1000.0]);
        let mut a = axis(Scale::Linear, &[0.0, 80.0], true);
        a.thin(150.0, wide);
        assert_eq!(a.ticks, [0.0, 40.0, 80.0]);
        for values in [&[5.0][..], &[1.0, 1.001], &[1e-300, 1e300], &[]] {
            for scale in [Scale::Linear, Scale::Log] {
                let mut a = axis(scale, values, true);
                a.thin(100.0, wide);
                for w in a.ticks.windows(2) {
                    assert!(a.share(w[0]) < a.share(w[1]), "{:?}", a.ticks);
                }
            }
        }
    }

    #[test]
    fn odd_values_leave_a_usable_axis() {
        for values in [
            &[][..],
            &[f64::NAN],
            &[f64::INFINITY, -1.0],
            &[5.0],
            &[0.0],
            &[1e-300, 1e300],
            &[-1e308, 1e308],
        ] {
            for scale in [Scale::Linear, Scale::Log] {
                let a = axis(scale, values, false);
                for v in values {
                    assert!((0.0..=1.0).contains(&a.share(*v)), "{scale:?} {values:?}");
                }
                assert!(
                    a.ticks.len() < 60,
                    "{scale:?} {values:?}: {}",
                    a.ticks.len()
                );
            }
        }
    }

    #[test]
    fn one_wild_interval_does_not_dwarf_the_values() {
        let mut a = axis(Scale::Linear, &[10.0, 20.0], false);
        a.stretch(&[9.0, 1e9]);
        assert!(a.hi < 50.0, "{}", a.hi);
        let mut a = axis(Scale::Linear, &[10.0, 20.0], false);
        let before = a.hi;
        a.stretch(&[12.0, 15.0]);
        assert_eq!(a.hi, before);
    }
}
