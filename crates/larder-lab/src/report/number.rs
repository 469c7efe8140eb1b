//! One way to print numbers: units with fitting prefixes, digits by the width of the interval.

use crate::stats::{Estimate, Verdict};

/// Thin blank between groups of three digits; breaks no line.
const GROUP: char = '\u{202f}';

/// A unit taken apart: how it scales and what follows it.
#[derive(Debug, Clone, PartialEq)]
struct Unit {
    /// Factor to the base of its family: nanoseconds, bytes, or 1.
    to_base: f64,
    family: Family,
    /// What stands behind the prefix and the symbol, for instance `/page`.
    tail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Time,
    Bytes,
    /// Per second of something that is not bytes: decimal prefixes.
    Rate,
    Percent,
    Times,
    Plain,
}

const TIME: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "\u{b5}s"), (1.0, "ns")];
const KIB: f64 = 1024.0;
const BYTES: [(f64, &str); 5] = [
    (KIB * KIB * KIB * KIB, "TiB"),
    (KIB * KIB * KIB, "GiB"),
    (KIB * KIB, "MiB"),
    (KIB, "KiB"),
    (1.0, "B"),
];
const DECIMAL: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

impl Unit {
    fn parse(text: &str) -> Self {
        let text = text.trim();
        let cut = text.find(['/', ' ']).unwrap_or(text.len());
        let (head, tail) = text.split_at(cut);
        let family = match head {
            "ns" => Some((Family::Time, 1.0)),
            "us" | "\u{b5}s" | "\u{3bc}s" => Some((Family::Time, 1e3)),
            "ms" => Some((Family::Time, 1e6)),
            "s" => Some((Family::Time, 1e9)),
            "B" | "byte" | "bytes" => Some((Family::Bytes, 1.0)),
            "KiB" => Some((Family::Bytes, KIB)),
            "MiB" => Some((Family::Bytes, KIB * KIB)),
            "GiB" => Some((Family::Bytes, KIB * KIB * KIB)),
            _ => None,
        };
        if let Some((family, to_base)) = family {
            return Self {
                to_base,
                family,
                tail: tail.to_owned(),
            };
        }
        let family = match text {
            "%" | "percent" => Family::Percent,
            "x" | "\u{d7}" | "ratio" => Family::Times,
            _ if text.ends_with("/s") => Family::Rate,
            _ => Family::Plain,
        };
        Self {
            to_base: 1.0,
            family,
            tail: text.to_owned(),
        }
    }

    /// The divisor and the printed unit that suit a value of this size (in the unit as given).
    fn scale(&self, value: f64) -> (f64, String) {
        let size = value.abs() * self.to_base;
        let fit = |steps: &[(f64, &str)]| {
            steps
                .iter()
                // A hair below the step counts as the step, so that 999.9996 does not print as 1000.
                .find(|(step, _)| size >= step * 0.999_5)
                .or(steps.last())
                .map_or((1.0, String::new()), |(step, name)| {
                    (step / self.to_base, (*name).to_owned())
                })
        };
        match self.family {
            Family::Time => {
                let (by, name) = fit(&TIME);
                (by, format!(" {name}{}", self.tail))
            }
            Family::Bytes => {
                let (by, name) = fit(&BYTES);
                (by, format!(" {name}{}", self.tail))
            }
            Family::Rate => {
                let (by, prefix) = fit(&DECIMAL);
                if let Some(rest) = self.tail.strip_prefix('/') {
                    (by, format!(" {prefix}/{rest}"))
                } else if prefix.is_empty() {
                    (by, format!(" {}", self.tail))
                } else {
                    (by, format!(" {prefix} {}", self.tail))
                }
            }
            Family::Percent => (1.0, " %".to_owned()),
            Family::Times => (1.0, "\u{d7}".to_owned()),
            Family::Plain if self.tail.is_empty() => (1.0, String::new()),
            Family::Plain => (1.0, format!(" {}", self.tail)),
        }
    }
}

/// Groups the digits before the point by threes once there are more than four of them.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let (whole, part) = rest
        .find('.')
        .map_or((rest, ""), |point| rest.split_at(point));
    if whole.len() <= 4 || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut out = String::from(sign);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(GROUP);
        }
        out.push(c);
    }
    out + part
}

/// A number with this many decimals; a zero has no sign.
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    grouped(if zero {
        text.trim_start_matches('-')
    } else {
        &text
    })
}

/// Decimals that show this many significant digits of a value.
fn decimals_for(value: f64, significant: i32) -> usize {
    if value == 0.0 {
        return 0;
    }
    // The factor counts 9.996 as the 10.0 that it prints as.
    let lead = (value.abs() * 1.000_5).log10().floor() as i32;
    usize::try_from((significant - 1 - lead).clamp(0, 9)).unwrap_or(0)
}

/// Decimals at which the last digit is about a tenth of the interval's half width.
fn decimals_by_width(value: f64, half: f64) -> usize {
    if !half.is_finite() || half <= 0.0 {
        return decimals_for(value, 3);
    }
    let lead = half.log10().floor() as i32;
    let by_width = usize::try_from((1 - lead).clamp(0, 9)).unwrap_or(0);
    // Six digits are all that a reader takes in, however narrow the interval is.
    by_width.min(decimals_for(value, 6))
}

/// What stands for a number that is none.
fn odd(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("no number")
    } else if value == f64::INFINITY {
        Some("\u{221e}")
    } else if value == f64::NEG_INFINITY {
        Some("-\u{221e}")
    } else {
        None
    }
}

/// A whole number with its digits grouped.
///
/// ```
/// assert_eq!(larder_lab::report::number::count(1_048_576), "1\u{202f}048\u{202f}576");
/// ```
#[must_use]
pub fn count(value: i64) -> String {
    grouped(&value.to_string())
}

/// A number without an interval: three significant digits, a fitting prefix.
///
/// ```
/// use larder_lab::report::number::number;
///
/// assert_eq!(number(1_234.0, "ns"), "1.23 µs");
/// assert_eq!(number(3.0 * 1024.0 * 1024.0, "bytes"), "3 MiB");
/// assert_eq!(number(12_300_000.0, "pages/s"), "12.3 M pages/s");
/// ```
#[must_use]
pub fn number(value: f64, unit: &str) -> String {
    if let Some(text) = odd(value) {
        return text.to_owned();
    }
    let (by, name) = Unit::parse(unit).scale(value);
    let value = value / by;
    let mut text = fixed(value, decimals_for(value, 3));
    if text.contains('.') && value.fract() == 0.0 {
        text.truncate(text.find('.').unwrap_or(text.len()));
    }
    text + &name
}

/// A number as its author printed it, in the unit of then.
#[must_use]
pub fn published(value: f64, unit: &str) -> String {
    let name = match Unit::parse(unit).family {
        Family::Times => "\u{d7}".to_owned(),
        _ if unit.is_empty() => String::new(),
        _ if unit == "us" => " \u{b5}s".to_owned(),
        _ => format!(" {unit}"),
    };
    odd(value).map_or_else(|| grouped(&value.to_string()), str::to_owned) + &name
}

/// The parts of an estimate in print: value, interval and unit, all with one prefix and as many digits
/// as the interval supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The value with its unit.
    pub value: String,
    /// `[lo, hi]`, empty where the interval is not finite or has no width.
    pub interval: String,
}

/// Prints an estimate; the interval's width decides the digits.
#[must_use]
pub fn printed(e: &Estimate, unit: &str) -> Printed {
    if let Some(text) = odd(e.value) {
        return Printed {
            value: text.to_owned(),
            interval: String::new(),
        };
    }
    let ends = [e.lo, e.hi].into_iter().filter(|v| v.is_finite());
    let largest = if e.value == 0.0 {
        ends.fold(0.0, |a: f64, v| a.max(v.abs()))
    } else {
        e.value.abs()
    };
    let (by, name) = Unit::parse(unit).scale(largest);
    let decimals = decimals_by_width(largest / by, (e.hi - e.lo) / 2.0 / by);
    let known = e.lo.is_finite() && e.hi.is_finite() && e.hi > e.lo;
    Printed {
        value: fixed(e.value / by, decimals) + &name,
        interval: if known {
            format!(
                "[{}, {}]",
                fixed(e.lo / by, decimals),
                fixed(e.hi / by, decimals)
            )
        } else {
            String::new()
        },
    }
}

/// An estimate in one text: `1.234 µs [1.210, 1.260]`.
#[must_use]
pub fn estimate(e: &Estimate, unit: &str) -> String {
    let p = printed(e, unit);
    if p.interval.is_empty() {
        p.value
    } else {
        format!("{} {}", p.value, p.interval)
    }
}

/// The verdict in words.
#[must_use]
pub fn verdict(v: &Verdict) -> String {
    match v {
        Verdict::Faster => "faster".to_owned(),
        Verdict::Slower => "slower".to_owned(),
        Verdict::Same { within } => format!("same within {}", number(within * 100.0, "%")),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::Refused => "refused".to_owned(),
        Verdict::Noisy => "refused: noisy".to_owned(),
    }
}

/// A label on an axis: short, with the unit's prefix where the unit has one, binary where the value is.
///
/// ```
/// use larder_lab::report::number::tick;
///
/// assert_eq!(tick(64.0, ""), "64");
/// assert_eq!(tick(1024.0, ""), "1 Ki");
/// assert_eq!(tick(20_000.0, ""), "20 k");
/// assert_eq!(tick(2_000.0, "ns"), "2 µs");
/// ```
#[must_use]
pub fn tick(value: f64, unit: &str) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let parsed = Unit::parse(unit);
    let (by, name) = match parsed.family {
        Family::Time | Family::Bytes | Family::Percent | Family::Times => {
            let (by, name) = parsed.scale(value);
            (by, name.trim_end_matches(&parsed.tail).to_owned())
        }
        Family::Rate | Family::Plain => plain_prefix(value),
    };
    let shown = value / by;
    // Enough digits to tell neighbours apart, none that say nothing.
    let mut text = fixed(shown, decimals_for(shown, 4));
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text + &name
}

fn plain_prefix(value: f64) -> (f64, String) {
    let size = value.abs();
    let binary = [(KIB * KIB * KIB, "Gi"), (KIB * KIB, "Mi"), (KIB, "Ki")];
    let decimal = [(1e9, "G"), (1e6, "M"), (1e4, "k")];
    binary
        .into_iter()
        .find(|(step, _)| size >= *step && size % step == 0.0)
        .map(|(step, name)| (step, format!(" {name}")))
        .or_else(|| {
            decimal
                .into_iter()
                .find(|(step, _)| size >= *step)
                .map(|(step, name)| (if step == 1e4 { 1e3 } else { step }, format!(" {name}")))
        })
        .unwrap_or((1.0, String::new()))
}

/// The unit in an axis label's last parentheses, and the label without it, if the unit is one
/// whose prefix changes along the axis.
#[must_use]
pub fn split_label(label: &str) -> (String, String) {
    let label = label.trim();
    if let Some(inner) = label.strip_suffix(')')
        && let Some((head, unit)) = inner.rsplit_once('(')
        && matches!(
            Unit::parse(unit).family,
            Family::Time | Family::Bytes | Family::Times | Family::Percent
        )
    {
        return (head.trim().to_owned(), unit.trim().to_owned());
    }
    (label.to_owned(), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn est(value: f64, lo: f64, hi: f64) -> Estimate {
        Estimate {
            value,
            lo,
            hi,
            n: 10,
            level: 0.95,
        }
    }

    #[test]
    fn times_take_the_prefix_that_fits() {
        assert_eq!(number(0.34, "ns"), "0.340 ns");
        assert_eq!(number(999.9999, "ns"), "1.00 µs");
        assert_eq!(number(11.2, "us"), "11.2 µs");
        assert_eq!(number(0.05, "us"), "50 ns");
        assert_eq!(number(37.2, "s"), "37.2 s");
        assert_eq!(number(1.5e6, "ns/page"), "1.50 ms/page");
        assert_eq!(number(-2500.0, "ns"), "-2.50 µs");
        assert_eq!(number(0.0, "ns"), "0 ns");
    }

    #[test]
    fn bytes_rates_and_the_rest() {
        assert_eq!(number(1536.0, "B"), "1.50 KiB");
        assert_eq!(number(2.5, "GiB/s"), "2.50 GiB/s");
        assert_eq!(number(1_500.0, "/s"), "1.50 k/s");
        assert_eq!(number(20.0, "calls/s"), "20 calls/s");
        assert_eq!(number(12.34, "%"), "12.3 %");
        assert_eq!(number(0.523, "x"), "0.523×");
        assert_eq!(
            number(1_048_576.0, "pages"),
            "1\u{202f}048\u{202f}576 pages"
        );
        assert_eq!(number(0.25, ""), "0.250");
    }

    #[test]
    fn what_is_no_number_says_so() {
        assert_eq!(number(f64::NAN, "ns"), "no number");
        assert_eq!(number(f64::INFINITY, "ns"), "∞");
        assert_eq!(estimate(&est(1.0, f64::NAN, 2.0), "ns"), "1.00 ns");
        assert_eq!(estimate(&est(f64::NAN, 1.0, 2.0), "ns"), "no number");
    }

    #[test]
    fn the_width_decides_the_digits() {
        assert_eq!(
            estimate(&est(1_234.567, 1_232.5, 1_236.5), "ns"),
            "1.2346 µs [1.2325, 1.2365]"
        );
        assert_eq!(
            estimate(&est(1_234.567, 1_100.0, 1_400.0), "ns"),
            "1.23 µs [1.10, 1.40]"
        );
        assert_eq!(
            estimate(&est(0.523, 0.5, 0.55), "x"),
            "0.523× [0.500, 0.550]"
        );
        assert_eq!(estimate(&est(12.0, 5.0, 40.0), "us"), "12 µs [5, 40]");
        assert_eq!(estimate(&est(5.0, 5.0, 5.0), "us"), "5.00 µs");
        assert_eq!(
            estimate(&est(1.0, 0.999_999_9, 1.000_000_1), "s"),
            "1.00000 s [1.00000, 1.00000]"
        );
        assert_eq!(
            estimate(&est(0.0, -2_000.0, 2_000.0), "ns"),
            "0.0 µs [-2.0, 2.0]"
        );
    }

    #[test]
    fn published_numbers_stay_as_printed() {
        assert_eq!(published(37.2, "s"), "37.2 s");
        assert_eq!(published(9.03, "us"), "9.03 µs");
        assert_eq!(published(1234.5, "us"), "1234.5 µs");
        assert_eq!(published(0.7, "x"), "0.7×");
        assert_eq!(published(16_145_415.4, ""), "16\u{202f}145\u{202f}415.4");
    }

    #[test]
    fn ticks_are_short() {
        for (value, unit, text) in [
            (1.0, "", "1"),
            (512.0, "", "512"),
            (65_536.0, "", "64 Ki"),
            (1_048_576.0, "", "1 Mi"),
            (1_000.0, "", "1000"),
            (50_000.0, "", "50 k"),
            (0.5, "", "0.5"),
            (0.05, "ns", "0.05 ns"),
            (200.0, "ns", "200 ns"),
            (1.5, "us", "1.5 µs"),
            (1_048_576.0, "B", "1 MiB"),
            (0.0, "", "0"),
            (2.0, "x", "2×"),
        ] {
            assert_eq!(tick(value, unit), text);
        }
    }

    #[test]
    fn labels_give_up_their_unit_when_it_scales() {
        assert_eq!(
            split_label("time per page (ns)"),
            ("time per page".into(), "ns".into())
        );
        assert_eq!(
            split_label("pool size (pages)"),
            ("pool size (pages)".into(), String::new())
        );
        assert_eq!(split_label("x"), ("x".into(), String::new()));
        assert_eq!(split_label("odd)"), ("odd)".into(), String::new()));
    }

    #[test]
    fn verdicts_are_five_words() {
        assert_eq!(verdict(&Verdict::Same { within: 0.02 }), "same within 2 %");
        assert_eq!(verdict(&Verdict::Inconclusive), "inconclusive");
    }
}
