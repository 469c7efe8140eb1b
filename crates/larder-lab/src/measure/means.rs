//! The change of each contestant between two sides of runs: its mean over cells, with the scatter from run to run.
//!
//! A run may be off as a whole: by the layout of memory, by the clock, by other programs. No sample inside a run
//! shows this. With one run a side the scatter is that of the contestants that should not have changed, and of the
//! twins. With several runs a side it comes from the runs' means.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Better, Cell};
use crate::stats::special::{student_quantile, student_two_sided};
use crate::stats::{Estimate, defaults, holm, middle_of};

/// A group's name and a cell.
pub(super) type Key<'a> = (&'a str, &'a Cell);

/// One cell to its group's reference, in one run: the log ratio and its squared standard error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) log: f64,
    pub(super) se2: f64,
}

/// The cells of one run, references and twins among them.
pub(super) type Points<'a> = BTreeMap<Key<'a>, Point>;

/// How far each cell's log ratio moved.
type Moved<'a> = BTreeMap<Key<'a>, f64>;

/// One contestant.
#[derive(Debug, Clone)]
pub(super) struct Mean {
    /// Cells behind the mean.
    pub(super) cells: usize,
    /// `after / before`.
    pub(super) change: Estimate,
    /// p-value that nothing changed, by Holm over the contestants.
    pub(super) p: f64,
    /// The factor from squared errors inside the runs to the scatter between runs.
    pub(super) spread: f64,
}

/// The changes of the contestants and of their groups' centres.
#[derive(Debug, Default)]
pub(super) struct Means<'a> {
    pub(super) by_contestant: BTreeMap<&'a str, Mean>,
    /// How far the middle contestant of a group moved against the reference: not 0 when the reference moved.
    pub(super) centres: BTreeMap<&'a str, f64>,
    /// Degrees of freedom of the cells' intervals.
    pub(super) df: f64,
}

/// The cells that every run of both sides has.
pub(super) fn common<'a>(before: &[Points<'a>], after: &[Points<'a>]) -> BTreeSet<Key<'a>> {
    let Some(first) = before.first() else {
        return BTreeSet::new();
    };
    first
        .keys()
        .filter(|k| before.iter().chain(after).all(|run| run.contains_key(*k)))
        .copied()
        .collect()
}

/// The contestants' means. `reference` tells whether a cell is its group's reference, `better` the good direction of
/// its group's metric.
pub(super) fn means<'a>(
    before: &[Points<'a>],
    after: &[Points<'a>],
    reference: impl Fn(Key<'a>) -> bool,
    better: impl Fn(&str) -> Better,
) -> Means<'a> {
    let keys = common(before, after);
    if after.is_empty() || keys.is_empty() {
        return Means::default();
    }
    let mut family = Family::new(keys, &reference, &better);
    let (first, second) = (family.mean_logs(before), family.mean_logs(after));
    let moved: Moved<'a> = first.iter().map(|(k, x)| (*k, second[k] - x)).collect();
    let within = family.within(before, after, &reference);
    let alone = before.len() + after.len() == 2;
    let (errors, spread, df);
    if alone {
        family.weigh_by_errors(&moved, &within);
        errors = family.errors(&moved, &within, true);
        let shifts = family.means(&moved, &family.centres(&moved));
        let twins = family.twins(&before[0], &after[0]);
        let (of_others, fewest) = spread_of_others(&shifts, &errors, &twins);
        (spread, df) = (of_others, fewest);
    } else {
        let offs: Vec<Moved<'a>> = [(before, &first), (after, &second)]
            .into_iter()
            .flat_map(|(runs, mean)| runs.iter().map(move |run| (run, mean)))
            .map(|(run, mean)| mean.iter().map(|(k, x)| (*k, run[k].log - x)).collect())
            .collect();
        let own = offs.len() as f64 - 2.0;
        let share = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
        family.weigh_by_runs(&offs, own);
        errors = family.errors(&moved, &within, false);
        let means: Vec<_> = offs
            .iter()
            .map(|off| family.means(off, &family.centres(off)))
            .collect();
        spread = spread_of_runs(&means, own, share, &errors);
        df = own;
    }
    let centres = family.centres(&moved);
    let shifts = family.means(&moved, &centres);
    let names: Vec<&str> = shifts.keys().copied().collect();
    let se = |name: &str| (errors[name] * spread[name]).sqrt();
    let p: Vec<f64> = names
        .iter()
        .map(|n| two_sided(shifts[n], se(n), if alone { defaults::TAIL_DF } else { df }))
        .collect();
    let t = student_quantile(0.5 + defaults::LEVEL / 2.0, df);
    let by_contestant = names
        .iter()
        .zip(holm(&p))
        .map(|(name, p)| {
            let mean = Mean {
                cells: family.used[name].len(),
                change: interval(shifts[name], t * se(name), before.len().min(after.len())),
                p,
                spread: spread[name],
            };
            (*name, mean)
        })
        .collect();
    Means {
        by_contestant,
        centres,
        df,
    }
}

/// A log change with its half width, as a ratio.
pub(super) fn interval(log: f64, half: f64, n: usize) -> Estimate {
    Estimate {
        value: log.exp(),
        lo: (log - half).exp(),
        hi: (log + half).exp(),
        n,
        level: defaults::LEVEL,
    }
}

fn two_sided(shift: f64, se: f64, df: f64) -> f64 {
    if se > 0.0 {
        student_two_sided(shift / se, df)
    } else if shift == 0.0 {
        1.0
    } else {
        0.0
    }
}

/// Birge's ratio with one contestant left out: by how much the others and the twins moved, in units of the squared
/// errors inside the runs. [`defaults::SPREAD`] counts as [`defaults::SPREAD_WEIGHT`] of them.
fn spread_of_others<'a>(
    shifts: &BTreeMap<&'a str, f64>,
    errors: &BTreeMap<&'a str, f64>,
    twins: &[f64],
) -> (BTreeMap<&'a str, f64>, f64) {
    let square = |name: &str| {
        let e = errors[name];
        (e > 0.0).then(|| shifts[name].powi(2) / e)
    };
    let mut spread = BTreeMap::new();
    let mut fewest = f64::INFINITY;
    for name in shifts.keys() {
        let mut others: Vec<f64> = shifts
            .keys()
            .filter(|n| *n != name)
            .filter_map(|n| square(n))
            .chain(twins.iter().copied())
            .collect();
        // The one that moved most may be the one that did change.
        others.sort_by(f64::total_cmp);
        others.pop();
        let df = defaults::SPREAD_WEIGHT + others.len() as f64;
        let sum = defaults::SPREAD_WEIGHT * defaults::SPREAD + others.iter().sum::<f64>();
        spread.insert(*name, (sum / df).max(1.0));
        fewest = fewest.min(df);
    }
    (spread, fewest)
}

/// The scatter of the runs' means around their side's mean, in the same units; each contestant's own, raised
/// towards the middle of the others where it is below, because few runs can be alike by luck. It is never lowered: some
/// contestants do scatter more than the others.
fn spread_of_runs<'a>(
    runs: &[BTreeMap<&'a str, f64>],
    own: f64,
    share: f64,
    errors: &BTreeMap<&'a str, f64>,
) -> BTreeMap<&'a str, f64> {
    // Squared error of the difference of the two sides' means. The runs are given as distances from their own
    // side's mean, so their sum of squares is the scatter.
    let scatter: BTreeMap<&str, f64> = errors
        .keys()
        .map(|name| {
            let squares: f64 = runs.iter().map(|r| r[name].powi(2)).sum();
            (*name, squares / own * share)
        })
        .collect();
    let weight = defaults::RUNS_WEIGHT;
    errors
        .iter()
        .map(|(name, error)| {
            let others: Vec<f64> = scatter
                .iter()
                .filter(|(n, s)| *n != name && **s > 0.0)
                .map(|(_, s)| *s)
                .collect();
            let prior = middle_of(&others).unwrap_or(defaults::SPREAD * error);
            let square = (own * scatter[name] + weight * prior) / (own + weight);
            let square = square.max(scatter[name]);
            (*name, if *error > 0.0 { square / error } else { 1.0 })
        })
        .collect()
}

/// The cells that are judged, by contestant and group.
struct Family<'a> {
    keys: BTreeSet<Key<'a>>,
    groups: BTreeMap<&'a str, BTreeMap<&'a str, Vec<Key<'a>>>>,
    /// The cells behind each contestant's mean.
    used: BTreeMap<&'a str, Vec<Key<'a>>>,
    /// -1 where more is better and other cells of the contestant have it the other way round.
    signs: BTreeMap<Key<'a>, f64>,
    /// A cell that scatters much says little about its contestant: weights of the mean.
    weights: BTreeMap<Key<'a>, f64>,
}

impl<'a> Family<'a> {
    fn new(
        keys: BTreeSet<Key<'a>>,
        reference: &impl Fn(Key<'a>) -> bool,
        better: &impl Fn(&str) -> Better,
    ) -> Self {
        let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Key<'a>>>> = BTreeMap::new();
        for key in keys.iter().filter(|k| !k.1.twin) {
            groups
                .entry(key.0)
                .or_default()
                .entry(&key.1.contestant)
                .or_default()
                .push(*key);
        }
        // A contestant alone in its group has nothing but itself to be held against: such cells count only where
        // it has no others. Its reference is 1 by definition.
        let mut used: BTreeMap<&str, Vec<Key<'a>>> = BTreeMap::new();
        for among in [true, false] {
            let mut more: BTreeMap<&str, Vec<Key<'a>>> = BTreeMap::new();
            for members in groups.values().filter(|m| (m.len() > 1) == among) {
                for (name, cells) in members {
                    let counted = cells.iter().filter(|k| among || !reference(**k));
                    more.entry(name).or_default().extend(counted);
                }
            }
            for (name, cells) in more {
                if !cells.is_empty() {
                    used.entry(name).or_insert(cells);
                }
            }
        }
        let mut signs = BTreeMap::new();
        for cells in used.values() {
            let lower = cells.iter().any(|k| better(k.0) == Better::Lower);
            for k in cells {
                let flip = lower && better(k.0) == Better::Higher;
                signs.insert(*k, if flip { -1.0 } else { 1.0 });
            }
        }
        let weights = groups
            .values()
            .flat_map(BTreeMap::values)
            .flatten()
            .map(|k| (*k, 1.0))
            .collect();
        Self {
            keys,
            groups,
            used,
            signs,
            weights,
        }
    }

    fn cells(&self) -> impl Iterator<Item = Key<'a>> + '_ {
        self.keys.iter().filter(|k| !k.1.twin).copied()
    }

    fn mean_logs(&self, runs: &[Points<'a>]) -> Moved<'a> {
        let mean = |k| runs.iter().map(|r| r[&k].log).sum::<f64>() / runs.len() as f64;
        self.cells().map(|k| (k, mean(k))).collect()
    }

    /// Weights with one run a side: by the errors inside the runs, and less where a cell moved unlike its
    /// contestant. Few steps suffice, because the weights need not be exact.
    fn weigh_by_errors(&mut self, moved: &Moved<'a>, within: &BTreeMap<Key<'a>, f64>) {
        let all: Vec<f64> = within.values().copied().collect();
        let floor = 0.25 * middle_of(&all).unwrap_or(0.0) + f64::MIN_POSITIVE;
        for step in 0..5 {
            let centres = self.centres(moved);
            let means = self.means(moved, &centres);
            for (name, cells) in &self.used {
                for k in cells {
                    let unlike = if step == 0 {
                        0.0
                    } else {
                        self.off(moved, &centres, *k) - means[name]
                    };
                    let error = (floor + within[k]).sqrt();
                    self.weights
                        .insert(*k, 1.0 / (error * (error + unlike.abs())));
                }
            }
        }
    }

    /// Weights with several runs: by the scatter of each cell's runs, what moved its whole group taken out.
    fn weigh_by_runs(&mut self, offs: &[Moved<'a>], own: f64) {
        let mut squares: BTreeMap<Key<'a>, f64> = BTreeMap::new();
        for off in offs {
            for group in self.groups.values() {
                let all: Vec<f64> = group.values().flatten().map(|k| off[k]).collect();
                let middle = middle_of(&all).unwrap_or(0.0);
                for k in group.values().flatten() {
                    *squares.entry(*k).or_default() += (off[k] - middle).powi(2) / own;
                }
            }
        }
        let all: Vec<f64> = squares.values().copied().collect();
        let floor = 0.25 * middle_of(&all).unwrap_or(0.0) + defaults::LEAST_ERROR.powi(2);
        for (k, square) in squares {
            self.weights.insert(k, 1.0 / (floor + square));
        }
    }

    /// The weighted mean of `value` over cells.
    fn mean(&self, cells: &[Key<'a>], value: impl Fn(Key<'a>) -> f64) -> f64 {
        let all: f64 = cells.iter().map(|k| self.weights[k]).sum();
        cells
            .iter()
            .map(|k| self.weights[k] * value(*k))
            .sum::<f64>()
            / all
    }

    /// How far each group's middle contestant moved. Where there are fewer than three, the larger groups tell how
    /// far its contestants moved; where these tell nothing, the reference counts as unmoved.
    fn centres(&self, moved: &Moved<'a>) -> BTreeMap<&'a str, f64> {
        let mean = |cells: &[Key<'a>]| self.mean(cells, |k| moved[&k]);
        let mut centres = BTreeMap::new();
        for (group, members) in self.groups.iter().filter(|(_, m)| m.len() >= 3) {
            let each: Vec<f64> = members.values().map(|cells| mean(cells)).collect();
            centres.insert(*group, middle_of(&each).unwrap_or(0.0));
        }
        let mut known: BTreeMap<&str, Vec<Key<'a>>> = BTreeMap::new();
        for group in centres.keys() {
            for (name, cells) in &self.groups[group] {
                known.entry(name).or_default().extend(cells);
            }
        }
        let known: BTreeMap<&str, f64> = known
            .into_iter()
            .map(|(name, cells)| (name, self.mean(&cells, |k| moved[&k] - centres[k.0])))
            .collect();
        for (group, members) in self.groups.iter().filter(|(_, m)| m.len() < 3) {
            let each: Vec<f64> = members
                .iter()
                .filter_map(|(name, cells)| Some(mean(cells) - known.get(name)?))
                .collect();
            let centre = each.iter().sum::<f64>() / (each.len().max(1)) as f64;
            centres.insert(*group, if members.len() < 2 { 0.0 } else { centre });
        }
        centres
    }

    fn off(&self, moved: &Moved<'a>, centres: &BTreeMap<&str, f64>, k: Key<'a>) -> f64 {
        self.signs[&k] * (moved[&k] - centres[k.0])
    }

    fn means(&self, moved: &Moved<'a>, centres: &BTreeMap<&str, f64>) -> BTreeMap<&'a str, f64> {
        self.used
            .iter()
            .map(|(name, cells)| (*name, self.mean(cells, |k| self.off(moved, centres, k))))
            .collect()
    }

    /// Squared error of each cell's change, from the rounds. The reference's own ratio has none: it takes the middle
    /// of its group.
    fn within(
        &self,
        before: &[Points<'a>],
        after: &[Points<'a>],
        reference: &impl Fn(Key<'a>) -> bool,
    ) -> BTreeMap<Key<'a>, f64> {
        let side = |runs: &[Points<'a>], k: &Key<'a>| {
            runs.iter().map(|r| r[k].se2).sum::<f64>() / (runs.len() as f64).powi(2)
        };
        let all: BTreeMap<Key<'a>, f64> = self
            .keys
            .iter()
            .map(|k| (*k, side(before, k) + side(after, k)))
            .collect();
        self.cells()
            .map(|k| {
                if !reference(k) {
                    return (k, all[&k]);
                }
                let group: Vec<f64> = all
                    .iter()
                    .filter(|(other, _)| other.0 == k.0 && !reference(**other))
                    .map(|(_, e)| *e)
                    .collect();
                (k, middle_of(&group).unwrap_or(0.0))
            })
            .collect()
    }

    /// Squared error of each contestant's mean: from the rounds, or, where `residuals`, from how unlike its cells moved
    /// if that is more.
    fn errors(
        &self,
        moved: &Moved<'a>,
        within: &BTreeMap<Key<'a>, f64>,
        residuals: bool,
    ) -> BTreeMap<&'a str, f64> {
        let centres = self.centres(moved);
        let means = self.means(moved, &centres);
        self.used
            .iter()
            .map(|(name, cells)| {
                let all: f64 = cells.iter().map(|k| self.weights[k]).sum();
                let sum = |square: &dyn Fn(Key<'a>) -> f64| -> f64 {
                    let each = cells
                        .iter()
                        .map(|k| (self.weights[k] / all).powi(2) * square(*k));
                    each.sum()
                };
                let rounds = sum(&|k| within[&k]);
                let n = cells.len() as f64;
                if residuals && n > 1.0 {
                    let unlike = sum(&|k| (self.off(moved, &centres, k) - means[name]).powi(2));
                    (*name, rounds.max(unlike * n / (n - 1.0)))
                } else {
                    (*name, rounds)
                }
            })
            .collect()
    }

    /// How far the twins moved, in squared errors.
    fn twins(&self, before: &Points<'a>, after: &Points<'a>) -> Vec<f64> {
        self.keys
            .iter()
            .filter(|k| k.1.twin)
            .filter_map(|k| {
                let error = before[k].se2 + after[k].se2;
                (error > 0.0).then(|| (after[k].log - before[k].log).powi(2) / error)
            })
            .collect()
    }
}
