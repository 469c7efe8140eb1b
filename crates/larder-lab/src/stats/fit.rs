//! Linear least squares: a cost taken apart into a part per call, per page, per page table.

use super::error::{finite, tail};
use super::special::{fisher_beyond, student_quantile, student_two_sided};
use super::{Estimate, StatsError, median};

const WHAT: &str = "a least-squares fit";

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// One coefficient per column, with its t interval; `n` is the number of rows.
    pub coefficients: Vec<Estimate>,
    /// Two-sided p-value that the coefficient is zero.
    pub p: Vec<f64>,
    /// Standard deviation of the residuals (of weight 1): square root of their weighted square sum over `df`.
    pub residual_sd: f64,
    /// Rows minus columns.
    pub df: usize,
    /// Share of the weighted square sum about the weighted mean that the model takes; may be negative
    /// without a constant column.
    pub r2: f64,
    /// Whether the model's form holds; `None` without replicates or with as many columns as distinct rows.
    pub lack_of_fit: Option<LackOfFit>,
    /// Measured minus fitted, by row.
    pub residuals: Vec<f64>,
}

/// The F test of what the model misses against what repetition scatters (Draper & Smith, *Applied Regression
/// Analysis*, 2.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LackOfFit {
    /// Mean square of lack of fit over mean square of pure error.
    pub f: f64,
    /// Distinct rows minus columns.
    pub df_lack: usize,
    /// Rows minus distinct rows.
    pub df_pure: usize,
    /// Probability of so large an F if the form of the model is right. Under 0.05 the form is wrong: there is
    /// a bend or a step that the columns do not have.
    pub p: f64,
}

/// Least squares of `y` on the columns of `rows`, all rows of equal weight. A constant is a column of ones.
///
/// # Errors
/// As [`weighted`].
///
/// ```
/// use larder_lab::stats::fit::least_squares;
/// let rows: Vec<Vec<f64>> = (1..=8).map(|pages| vec![1.0, f64::from(pages)]).collect();
/// let y: Vec<f64> = (1..=8).map(|pages| 300.0 + 90.0 * f64::from(pages)).collect();
/// let fit = least_squares(&rows, &y, 0.95)?;
/// assert!((fit.coefficients[0].value - 300.0).abs() < 1e-9); // per call
/// assert!((fit.coefficients[1].value - 90.0).abs() < 1e-9); // per page
/// # Ok::<(), larder_lab::stats::StatsError>(())
/// ```
pub fn least_squares(rows: &[Vec<f64>], y: &[f64], level: f64) -> Result<Fit, StatsError> {
    weighted(rows, y, &vec![1.0; y.len()], level)
}

/// Least squares with weights: a row of weight w counts as w rows. For noise in proportion to the cost the
/// weight is `1 / y^2`.
///
/// Householder reflections of the weighted rows; intervals by Student's t with `df` degrees of freedom.
/// O(rows columns^2).
///
/// # Errors
/// [`StatsError::Unpaired`] for unequal lengths, [`StatsError::TooFew`] for no more rows than columns,
/// [`StatsError::NotFinite`], [`StatsError::NotPositive`] for a weight, [`StatsError::Singular`] when a
/// column depends on those before it, [`StatsError::BadLevel`].
pub fn weighted(
    rows: &[Vec<f64>],
    y: &[f64],
    weights: &[f64],
    level: f64,
) -> Result<Fit, StatsError> {
    let tail = tail(level)?;
    let (upper, values) = solve(rows, y, weights, 1)?;
    let (n, columns) = (rows.len(), values.len());
    let residuals: Vec<f64> = rows
        .iter()
        .zip(y)
        .map(|(row, y)| y - row.iter().zip(&values).map(|(x, c)| x * c).sum::<f64>())
        .collect();
    let left: f64 = residuals.iter().zip(weights).map(|(r, w)| w * r * r).sum();
    let df = n - columns;
    let variance = left / df as f64;
    let t = -student_quantile(tail, df as f64);
    let errors = standard_errors(&upper, variance);
    let coefficients = values
        .iter()
        .zip(&errors)
        .map(|(value, se)| Estimate {
            value: *value,
            lo: value - t * se,
            hi: value + t * se,
            n,
            level,
        })
        .collect();
    let p = values
        .iter()
        .zip(&errors)
        .map(|(value, se)| match (*value == 0.0, *se > 0.0) {
            (true, _) => 1.0,
            (false, true) => student_two_sided(value / se, df as f64),
            (false, false) => 0.0,
        })
        .collect();
    Ok(Fit {
        coefficients,
        p,
        residual_sd: variance.sqrt(),
        df,
        r2: 1.0 - left / about_mean(y, weights),
        lack_of_fit: lack_of_fit(rows, y, weights, left, columns),
        residuals,
    })
}

/// The coefficients fitted within each round, and their medians over the rounds.
///
/// `y[round][row]` was measured at `rows[row]`. What slows a whole round enters that round's fit only, the
/// intervals assume no law of the noise, and a wild round moves little: so this is the fit for samples of the
/// lab. `weights` are per row. For a test of the model's form use [`weighted`] on the rows' medians or on all
/// samples.
///
/// # Errors
/// As [`weighted`], and [`StatsError::TooFew`] under 6 rounds at 95 %. Rows may be as few as columns.
pub fn by_rounds(
    rows: &[Vec<f64>],
    y: &[Vec<f64>],
    weights: &[f64],
    level: f64,
) -> Result<Vec<Estimate>, StatsError> {
    let columns = rows.first().map_or(0, Vec::len);
    let mut found: Vec<Vec<f64>> = vec![Vec::with_capacity(y.len()); columns];
    for round in y {
        let (_, values) = solve(rows, round, weights, 0)?;
        for (all, value) in found.iter_mut().zip(values) {
            all.push(value);
        }
    }
    found.iter().map(|values| median(values, level)).collect()
}

/// The triangle and the coefficients of weighted least squares with at least `spare` rows more than columns.
fn solve(
    rows: &[Vec<f64>],
    y: &[f64],
    weights: &[f64],
    spare: usize,
) -> Result<(Vec<Vec<f64>>, Vec<f64>), StatsError> {
    let columns = rows.first().map_or(0, Vec::len);
    check(WHAT, rows, y, weights, columns, spare)?;
    // The weighted columns, and y as the last of them.
    let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
    let mut table: Vec<Vec<f64>> = (0..columns)
        .map(|j| rows.iter().zip(&roots).map(|(x, w)| w * x[j]).collect())
        .collect();
    table.push(y.iter().zip(&roots).map(|(y, w)| w * y).collect());
    let upper = triangle(&mut table, columns)?;
    let values = back_substitute(&upper, &table[columns][..columns]);
    // Numbers near the end of the range of f64 overflow when squared.
    finite(WHAT, &values)?;
    Ok((upper, values))
}

fn check(
    what: &'static str,
    rows: &[Vec<f64>],
    y: &[f64],
    weights: &[f64],
    columns: usize,
    spare: usize,
) -> Result<(), StatsError> {
    let unpaired = |a, b| Err(StatsError::Unpaired { what, a, b });
    if rows.len() != y.len() {
        return unpaired(rows.len(), y.len());
    }
    if weights.len() != y.len() {
        return unpaired(weights.len(), y.len());
    }
    if let Some(odd) = rows.iter().find(|row| row.len() != columns) {
        return unpaired(columns, odd.len());
    }
    if columns == 0 || rows.len() < columns + spare {
        return Err(StatsError::TooFew {
            what,
            have: rows.len(),
            need: (columns + spare).max(1),
        });
    }
    for row in rows {
        finite(what, row)?;
    }
    finite(what, y)?;
    super::error::positive(what, weights)
}

/// Turns the first `columns` columns into an upper triangle by Householder reflections, the last column
/// with them. Returns the triangle by rows.
fn triangle(table: &mut [Vec<f64>], columns: usize) -> Result<Vec<Vec<f64>>, StatsError> {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let sizes: Vec<f64> = table.iter().map(|column| norm(column)).collect();
    let mut upper = vec![vec![0.0; columns]; columns];
    for k in 0..columns {
        let length = norm(&table[k][k..]);
        if length <= 1e-11 * sizes[k] || length == 0.0 {
            return Err(StatsError::Singular { column: k });
        }
        let diagonal = if table[k][k] > 0.0 { -length } else { length };
        let mut mirror = table[k][k..].to_vec();
        mirror[0] -= diagonal;
        let square: f64 = mirror.iter().map(|v| v * v).sum();
        for column in &mut table[k..] {
            let along: f64 = mirror.iter().zip(&column[k..]).map(|(v, x)| v * x).sum();
            for (x, v) in column[k..].iter_mut().zip(&mirror) {
                *x -= 2.0 * along / square * v;
            }
        }
        for j in k..columns {
            upper[k][j] = table[j][k];
        }
    }
    Ok(upper)
}

fn back_substitute(upper: &[Vec<f64>], target: &[f64]) -> Vec<f64> {
    let mut x = target.to_vec();
    for k in (0..x.len()).rev() {
        for j in k + 1..x.len() {
            x[k] -= upper[k][j] * x[j];
        }
        x[k] /= upper[k][k];
    }
    x
}

/// Square roots of the diagonal of `variance (R' R)^-1`: row norms of `R^-1`.
fn standard_errors(upper: &[Vec<f64>], variance: f64) -> Vec<f64> {
    let size = upper.len();
    let mut squares = vec![0.0; size];
    for j in 0..size {
        let mut unit = vec![0.0; size];
        unit[j] = 1.0;
        for (sum, x) in squares.iter_mut().zip(back_substitute(upper, &unit)) {
            *sum += x * x;
        }
    }
    squares.iter().map(|s| (variance * s).sqrt()).collect()
}

/// Weighted square sum about the weighted mean.
fn about_mean(y: &[f64], weights: &[f64]) -> f64 {
    let all: f64 = weights.iter().sum();
    let mean = y.iter().zip(weights).map(|(y, w)| w * y).sum::<f64>() / all;
    y.iter()
        .zip(weights)
        .map(|(y, w)| w * (y - mean) * (y - mean))
        .sum()
}

fn lack_of_fit(
    rows: &[Vec<f64>],
    y: &[f64],
    weights: &[f64],
    left: f64,
    columns: usize,
) -> Option<LackOfFit> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let compare = |a: usize, b: usize| {
        rows[a]
            .iter()
            .zip(&rows[b])
            .map(|(a, b)| a.total_cmp(b))
            .find(|o| o.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    };
    order.sort_by(|a, b| compare(*a, *b));
    let (mut pure, mut distinct) = (0.0, 0_usize);
    for same in order.chunk_by(|a, b| compare(*a, *b).is_eq()) {
        let ys: Vec<f64> = same.iter().map(|i| y[*i]).collect();
        let ws: Vec<f64> = same.iter().map(|i| weights[*i]).collect();
        pure += about_mean(&ys, &ws);
        distinct += 1;
    }
    let df_lack = distinct.checked_sub(columns).filter(|d| *d > 0)?;
    let df_pure = rows.len().checked_sub(distinct).filter(|d| *d > 0)?;
    let lack = (left - pure).max(0.0);
    if lack == 0.0 && pure == 0.0 {
        return None;
    }
    let f = (lack / df_lack as f64) / (pure / df_pure as f64);
    Some(LackOfFit {
        f,
        df_lack,
        df_pure,
        p: fisher_beyond(f, df_lack as f64, df_pure as f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(xs: &[f64]) -> Vec<Vec<f64>> {
        xs.iter().map(|x| vec![1.0, *x]).collect()
    }

    #[test]
    fn slow_rounds_and_wild_rounds_do_not_move_the_fit_by_rounds() {
        let xs = [1.0, 2.0, 4.0, 8.0];
        let y: Vec<Vec<f64>> = (0..9)
            .map(|r| {
                let wobble = 0.01 * f64::from(r % 5 - 2);
                let wild = if r == 4 { 50.0 } else { 1.0 };
                xs.iter()
                    .map(|x| wild * (300.0 + (90.0 + wobble) * x))
                    .collect()
            })
            .collect();
        let parts = by_rounds(&line(&xs), &y, &[1.0; 4], 0.95).unwrap();
        assert!((parts[0].value - 300.0).abs() < 1e-6);
        assert!((parts[1].value - 90.0).abs() < 0.02);
        assert!(parts[1].hi < 91.0, "{parts:?}");
        assert_eq!(parts[1].n, 9);
        assert!(by_rounds(&line(&xs), &y[..5], &[1.0; 4], 0.95).is_err());
        assert!(by_rounds(&line(&xs), &y, &[1.0; 3], 0.95).is_err());
    }

    #[test]
    fn dependent_columns_are_named() {
        let rows: Vec<Vec<f64>> = (1..9)
            .map(|i| vec![1.0, f64::from(i), 2.0 * f64::from(i) + 3.0])
            .collect();
        assert_eq!(
            least_squares(&rows, &[1.0; 8], 0.95),
            Err(StatsError::Singular { column: 2 })
        );
        let zero = vec![vec![1.0, 0.0]; 4];
        assert_eq!(
            least_squares(&zero, &[1.0; 4], 0.95),
            Err(StatsError::Singular { column: 1 })
        );
    }

    #[test]
    fn odd_input_is_refused() {
        let rows = line(&[1.0, 2.0, 3.0]);
        let y = [1.0, 2.0, 3.0];
        assert!(matches!(
            least_squares(&rows[..2], &y[..2], 0.95),
            Err(StatsError::TooFew {
                have: 2,
                need: 3,
                ..
            })
        ));
        assert!(matches!(
            least_squares(&rows, &y[..2], 0.95),
            Err(StatsError::Unpaired { a: 3, b: 2, .. })
        ));
        assert!(weighted(&rows, &y, &[1.0, 0.0, 1.0], 0.95).is_err());
        assert!(weighted(&rows, &y, &[1.0; 2], 0.95).is_err());
        assert!(least_squares(&[], &[], 0.95).is_err());
        assert!(least_squares(&[vec![], vec![]], &[1.0, 2.0], 0.95).is_err());
        assert!(least_squares(&rows, &[1.0, f64::NAN, 2.0], 0.95).is_err());
        assert!(least_squares(&rows, &[1e300, -1e300, 1e300], 0.95).is_ok());
        assert!(least_squares(&[vec![1.0], vec![1.0, 2.0]], &[1.0, 2.0], 0.95).is_err());
    }

    #[test]
    fn an_exact_model_fits_without_residue() {
        let fit = least_squares(&line(&[1.0, 1.0, 2.0, 3.0]), &[5.0, 5.0, 7.0, 9.0], 0.95).unwrap();
        assert!((fit.r2 - 1.0).abs() < 1e-12 && fit.residual_sd < 1e-12);
        assert!((fit.coefficients[1].value - 2.0).abs() < 1e-12);
    }
}
