//! The statistics against vectors from SciPy (`golden/make_stats.py` says how each was found).

use larder_lab::stats::{self, Estimate, Moments, fit};
use serde_json::Value;

const LEVEL: f64 = 0.95;

fn golden(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../golden/stats.json")).unwrap();
    let rows = all[part].as_array().unwrap().clone();
    assert!(!rows.is_empty());
    rows
}

fn sample(name: &Value) -> Vec<f64> {
    let all: Value = serde_json::from_str(include_str!("../golden/stats.json")).unwrap();
    numbers(&all["samples"][name.as_str().unwrap()])
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"))
}

#[track_caller]
fn near(ours: f64, theirs: f64, tolerance: f64) {
    let scale = theirs.abs().max(1e-300);
    assert!(
        (ours - theirs).abs() <= tolerance * scale || (ours - theirs).abs() < 1e-13 * tolerance,
        "{ours} is not {theirs}: {:e}",
        (ours - theirs).abs() / scale
    );
}

#[track_caller]
fn interval(ours: &Estimate, theirs: &Value) {
    near(ours.value, number(theirs, "value"), 1e-12);
    near(ours.lo, number(theirs, "lo"), 1e-12);
    near(ours.hi, number(theirs, "hi"), 1e-12);
}

#[test]
fn medians_and_their_coverage() {
    for row in golden("median") {
        let x = sample(&row["x"]);
        let level = number(&row, "level");
        interval(&stats::median(&x, level).unwrap(), &row);
        let coverage = stats::median_coverage(x.len(), level).unwrap();
        near(coverage, number(&row, "coverage"), 1e-12);
        assert!(coverage >= level);
    }
}

#[test]
fn hodges_lehmann_centres() {
    for row in golden("hodges_lehmann") {
        let level = number(&row, "level");
        interval(
            &stats::hodges_lehmann(&sample(&row["x"]), level).unwrap(),
            &row,
        );
    }
}

#[test]
fn paired_ratios() {
    for row in golden("ratio") {
        let (a, b) = (numbers(&row["a"]), numbers(&row["b"]));
        interval(&stats::paired_ratio(&a, &b, LEVEL).unwrap(), &row);
    }
}

#[test]
fn shifts_and_mann_whitney() {
    for row in golden("shift") {
        let (a, b) = (numbers(&row["a"]), numbers(&row["b"]));
        let test = stats::mann_whitney(&a, &b).unwrap();
        assert_eq!(test.exact, row["exact"].as_bool().unwrap());
        near(test.statistic, number(&row, "u"), 1e-14);
        near(test.p, number(&row, "p"), 1e-10);
        if test.exact {
            interval(&stats::shift(&a, &b, LEVEL).unwrap(), &row);
        }
    }
}

#[test]
fn signed_ranks() {
    for row in golden("signed_rank") {
        let test = stats::signed_rank(&numbers(&row["x"])).unwrap();
        assert_eq!(test.exact, row["exact"].as_bool().unwrap());
        near(test.p, number(&row, "p"), 1e-10);
    }
}

#[test]
fn moments_of_the_published_tables() {
    for row in golden("moments") {
        let m = stats::moments(&sample(&row["x"])).unwrap();
        near(m.mean, number(&row, "mean"), 1e-12);
        near(m.sd, number(&row, "sd"), 1e-12);
        near(m.se, number(&row, "se"), 1e-12);
    }
}

#[test]
fn welch_from_summaries() {
    for row in golden("welch") {
        // Only n, mean and sd survive, as in a published table.
        let summary = |key: &str| {
            let m = stats::moments(&numbers(&row[key])).unwrap();
            Moments { se: f64::NAN, ..m }
        };
        let w = stats::welch(&summary("a"), &summary("b"), LEVEL).unwrap();
        near(w.t, number(&row, "t"), 1e-11);
        near(w.df, number(&row, "df"), 1e-11);
        near(w.p, number(&row, "p"), 1e-10);
        near(w.difference.lo, number(&row, "lo"), 1e-10);
        near(w.difference.hi, number(&row, "hi"), 1e-10);
    }
}

#[test]
fn holm_adjusted() {
    for row in golden("holm") {
        for (ours, theirs) in stats::holm(&numbers(&row["p"]))
            .iter()
            .zip(numbers(&row["adjusted"]))
        {
            near(*ours, theirs, 1e-14);
        }
    }
}

#[test]
fn autocorrelation_and_outliers() {
    for (row, warn) in golden("series").iter().zip([true, false, false]) {
        let x = numbers(&row["x"]);
        let lag = stats::lag1(&x).unwrap();
        near(lag.r, number(row, "r"), 1e-11);
        assert_eq!(lag.warn, warn);
        let outliers: Vec<f64> = stats::outliers(&x)
            .unwrap()
            .into_iter()
            .map(|i| i as f64)
            .collect();
        assert_eq!(outliers, numbers(&row["outliers"]));
    }
}

#[test]
fn fits_and_their_form() {
    for row in golden("fit") {
        let rows: Vec<Vec<f64>> = row["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect();
        let y = numbers(&row["y"]);
        let fitted = fit::weighted(&rows, &y, &numbers(&row["weights"]), LEVEL).unwrap();
        let parts = ["coefficients", "lo", "hi", "p"].map(|key| numbers(&row[key]));
        for (j, c) in fitted.coefficients.iter().enumerate() {
            near(c.value, parts[0][j], 1e-9);
            near(c.lo, parts[1][j], 1e-9);
            near(c.hi, parts[2][j], 1e-9);
            near(fitted.p[j], parts[3][j], 1e-8);
        }
        near(fitted.residual_sd, number(&row, "residual_sd"), 1e-10);
        near(fitted.r2, number(&row, "r2"), 1e-10);
        match (fitted.lack_of_fit, row.get("lack")) {
            (None, None) => {}
            (Some(ours), Some(theirs)) => {
                near(ours.f, number(theirs, "f"), 1e-9);
                near(ours.p, number(theirs, "p"), 1e-8);
                near(ours.df_lack as f64, number(theirs, "df_lack"), 0.0);
                near(ours.df_pure as f64, number(theirs, "df_pure"), 0.0);
            }
            (ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
        }
    }
}
