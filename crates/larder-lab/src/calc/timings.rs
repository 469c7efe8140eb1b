//! The four timings; values that are no timing are refused.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest time that is taken for a timing of one operation: eleven days, microseconds.
pub const MAX_US: f64 = 1e12;

/// The most pages that a deallocation is computed for: 4 TiB of 4 KiB pages.
pub const MAX_PAGES: u32 = 1 << 30;

/// An input of the calculator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// One page allocated and freed.
    Alloc1,
    /// The same, the page touched in between.
    Alloc1Fault,
    /// Two pages in one call, allocated and freed.
    Alloc2,
    /// The same, both pages touched in between.
    Alloc2Fault,
    /// Pages of the deallocation that is computed.
    Pages,
}

impl Field {
    /// The four timings in the order of the tables.
    pub const TIMINGS: [Self; 4] = [
        Self::Alloc1,
        Self::Alloc1Fault,
        Self::Alloc2,
        Self::Alloc2Fault,
    ];

    /// Key in files and in the page's script.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Alloc1 => "alloc1",
            Self::Alloc1Fault => "alloc1_fault",
            Self::Alloc2 => "alloc2",
            Self::Alloc2Fault => "alloc2_fault",
            Self::Pages => "pages",
        }
    }

    /// Label, as the tables of 2003 print it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Alloc1 => "1p alloc",
            Self::Alloc1Fault => "1p alloc + fault",
            Self::Alloc2 => "2p alloc",
            Self::Alloc2Fault => "2p alloc + fault",
            Self::Pages => "pages",
        }
    }
}

/// Why an input is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refusal {
    /// Nothing was given.
    Empty,
    /// Not a number.
    Text,
    /// A number with a decimal comma.
    Comma,
    /// Infinite, or too large for a number of the machine.
    Infinite,
    /// The floating-point value "not a number".
    Nan,
    /// Below zero.
    Negative,
    /// Above [`MAX_US`].
    Large,
    /// Not a whole number of pages from 1 to [`MAX_PAGES`].
    Pages,
}

impl Refusal {
    /// The sentence for the user; the page's script says the same.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Empty => "empty: type the time of one operation in microseconds",
            Self::Text => "not a number: type digits, such as 11.2",
            Self::Comma => "not a number: write the decimals after a point, such as 77.3",
            Self::Infinite => "infinite: an operation ends, so its time is a finite number",
            Self::Nan => "NaN is no time: the timing failed, measure again",
            Self::Negative => "negative: a time is zero or more",
            Self::Large => "more than eleven days for one operation: the unit is the microsecond",
            Self::Pages => "type a whole number of pages from 1 to 1073741824",
        }
    }
}

/// One input that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} '{given}' refused: {}", field.label(), why.reason())]
pub struct FieldError {
    /// Which one.
    pub field: Field,
    /// What was given.
    pub given: String,
    /// Why it is refused.
    pub why: Refusal,
}

/// Four timings of one operation each, microseconds: finite, not negative, at most [`MAX_US`].
///
/// The operation is one call to allocate and one to free. Two pages without a touch may be absent,
/// as in the first row of the published table; then only the page fault extra cost can be derived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Timings {
    alloc1: f64,
    alloc1_fault: f64,
    alloc2: Option<f64>,
    alloc2_fault: f64,
}

/// The form in files: any numbers, checked on the way in.
#[derive(Serialize, Deserialize)]
struct Raw {
    alloc1_us: f64,
    alloc1_fault_us: f64,
    alloc2_us: Option<f64>,
    alloc2_fault_us: f64,
}

/// Several refusals as one error, for readers of files.
#[derive(Debug)]
struct Refused(Vec<FieldError>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, e) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            e.fmt(f)?;
        }
        Ok(())
    }
}

impl TryFrom<Raw> for Timings {
    type Error = Refused;

    fn try_from(r: Raw) -> Result<Self, Refused> {
        Self::new(
            r.alloc1_us,
            r.alloc1_fault_us,
            r.alloc2_us,
            r.alloc2_fault_us,
        )
        .map_err(Refused)
    }
}

impl From<Timings> for Raw {
    fn from(t: Timings) -> Self {
        Self {
            alloc1_us: t.alloc1,
            alloc1_fault_us: t.alloc1_fault,
            alloc2_us: t.alloc2,
            alloc2_fault_us: t.alloc2_fault,
        }
    }
}

impl Timings {
    /// Four timings in microseconds, in the order of the tables of 2003.
    ///
    /// # Errors
    /// One entry for each timing that is negative, infinite, NaN or above [`MAX_US`].
    pub fn new(
        alloc1: f64,
        alloc1_fault: f64,
        alloc2: Option<f64>,
        alloc2_fault: f64,
    ) -> Result<Self, Vec<FieldError>> {
        let given = [Some(alloc1), Some(alloc1_fault), alloc2, Some(alloc2_fault)];
        let errors: Vec<FieldError> = Field::TIMINGS
            .into_iter()
            .zip(given)
            .filter_map(|(field, value)| {
                let value = value?;
                Some(FieldError {
                    field,
                    given: value.to_string(),
                    why: check(value)?,
                })
            })
            .collect();
        if errors.is_empty() {
            Ok(Self {
                alloc1,
                alloc1_fault,
                alloc2,
                alloc2_fault,
            })
        } else {
            Err(errors)
        }
    }

    /// One page allocated and freed, microseconds.
    #[must_use]
    pub fn alloc1(&self) -> f64 {
        self.alloc1
    }

    /// One page allocated, touched and freed, microseconds.
    #[must_use]
    pub fn alloc1_fault(&self) -> f64 {
        self.alloc1_fault
    }

    /// Two pages allocated and freed, microseconds; `None` where it was not measured.
    #[must_use]
    pub fn alloc2(&self) -> Option<f64> {
        self.alloc2
    }

    /// Two pages allocated, touched and freed, microseconds.
    #[must_use]
    pub fn alloc2_fault(&self) -> f64 {
        self.alloc2_fault
    }

    /// One timing by field; `None` for an absent one and for [`Field::Pages`].
    #[must_use]
    pub fn get(&self, field: Field) -> Option<f64> {
        match field {
            Field::Alloc1 => Some(self.alloc1),
            Field::Alloc1Fault => Some(self.alloc1_fault),
            Field::Alloc2 => self.alloc2,
            Field::Alloc2Fault => Some(self.alloc2_fault),
            Field::Pages => None,
        }
    }
}

/// What is wrong with a timing, if anything.
fn check(value: f64) -> Option<Refusal> {
    if value.is_nan() {
        Some(Refusal::Nan)
    } else if value < 0.0 {
        Some(Refusal::Negative)
    } else if value.is_infinite() {
        Some(Refusal::Infinite)
    } else if value > MAX_US {
        Some(Refusal::Large)
    } else {
        None
    }
}

/// Reads a decimal number by the grammar that the page's script uses too:
/// a sign, digits, a point, digits, an exponent; no names, no hexadecimal, no separators.
fn parse_number(text: &str) -> Result<f64, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Refusal::Empty);
    }
    let bare = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    match bare.as_str() {
        "nan" => return Err(Refusal::Nan),
        "inf" | "infinity" | "\u{221e}" => return Err(Refusal::Infinite),
        _ => {}
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
    {
        return Err(match text.split_once(',') {
            // One comma only: a second one is neither a decimal point nor refused in a new way.
            Some((whole, part))
                if !part.contains(',') && parse_number(&format!("{whole}.{part}")).is_ok() =>
            {
                Refusal::Comma
            }
            _ => Refusal::Text,
        });
    }
    text.parse().map_err(|_| Refusal::Text)
}

fn parse_timing(field: Field, text: &str) -> Result<f64, FieldError> {
    let refused = |why| FieldError {
        field,
        given: text.to_owned(),
        why,
    };
    let value = parse_number(text).map_err(refused)?;
    check(value).map_or(Ok(value), |why| Err(refused(why)))
}

/// Reads four timings from text, in the order of the tables of 2003, microseconds.
///
/// Two pages without a touch may be left out as an empty text, `-` or `N/A`.
///
/// # Errors
/// One entry for each refused text, all of them at once.
///
/// ```
/// use larder_lab::calc::{Field, Refusal, parse_timings};
///
/// let errors = parse_timings(["11.2", "-24", "", "77,3"]).expect_err("two are refused");
/// assert_eq!((errors[0].field, errors[0].why), (Field::Alloc1Fault, Refusal::Negative));
/// assert_eq!((errors[1].field, errors[1].why), (Field::Alloc2Fault, Refusal::Comma));
/// ```
pub fn parse_timings(texts: [&str; 4]) -> Result<Timings, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut values = [None; 4];
    for ((field, text), value) in Field::TIMINGS.into_iter().zip(texts).zip(&mut values) {
        let bare = text.trim();
        let absent = bare.is_empty() || bare == "-" || bare.eq_ignore_ascii_case("n/a");
        if field == Field::Alloc2 && absent {
            continue;
        }
        match parse_timing(field, text) {
            Ok(v) => *value = Some(v),
            Err(e) => errors.push(e),
        }
    }
    match values {
        [Some(a), Some(b), c, Some(d)] if errors.is_empty() => Timings::new(a, b, c, d),
        _ => Err(errors),
    }
}

/// Reads the number of pages of a deallocation.
///
/// # Errors
/// Everything that is not a whole number from 1 to [`MAX_PAGES`].
pub fn parse_pages(text: &str) -> Result<u32, FieldError> {
    let bare = text.trim();
    let digits = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_digit());
    match bare.parse::<u32>() {
        Ok(n) if digits && (1..=MAX_PAGES).contains(&n) => Ok(n),
        _ => Err(FieldError {
            field: Field::Pages,
            given: text.to_owned(),
            why: Refusal::Pages,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> Option<Refusal> {
        parse_timings([text, "1", "1", "1"]).err().map(|e| e[0].why)
    }

    #[test]
    fn each_kind_of_nonsense_has_its_reason() {
        for (text, refusal) in [
            ("", Refusal::Empty),
            ("  ", Refusal::Empty),
            ("abc", Refusal::Text),
            ("11.2us", Refusal::Text),
            ("0x10", Refusal::Text),
            ("1_000", Refusal::Text),
            ("1e", Refusal::Text),
            (".", Refusal::Text),
            ("1,2,3", Refusal::Text),
            ("77,3", Refusal::Comma),
            ("inf", Refusal::Infinite),
            ("-Infinity", Refusal::Infinite),
            ("1e999", Refusal::Infinite),
            ("NaN", Refusal::Nan),
            ("-0.1", Refusal::Negative),
            ("-1e999", Refusal::Negative),
            ("2e12", Refusal::Large),
        ] {
            assert_eq!(why(text), Some(refusal), "'{text}'");
        }
        for text in ["0", "11.2", " 11.2 ", "1e3", "+5", ".5", "5.", "1e12"] {
            assert_eq!(why(text), None, "'{text}'");
        }
    }

    #[test]
    fn every_bad_field_is_named_at_once() {
        let e = parse_timings(["x", "", "-3", "inf"]).unwrap_err();
        let fields: Vec<Field> = e.iter().map(|e| e.field).collect();
        assert_eq!(fields, Field::TIMINGS);
        assert_eq!(
            e[0].to_string(),
            "1p alloc 'x' refused: not a number: type digits, such as 11.2"
        );
    }

    #[test]
    fn only_two_pages_without_a_touch_may_be_absent() {
        for absent in ["", "-", "N/A", "n/a"] {
            assert_eq!(
                parse_timings(["1", "2", absent, "3"]).unwrap().alloc2(),
                None
            );
        }
        assert!(parse_timings(["1", "n/a", "2", "3"]).is_err());
    }

    #[test]
    fn numbers_are_checked_like_texts() {
        let e = Timings::new(f64::NAN, f64::INFINITY, Some(-1.0), 1e13).unwrap_err();
        let whys: Vec<Refusal> = e.iter().map(|e| e.why).collect();
        assert_eq!(
            whys,
            [
                Refusal::Nan,
                Refusal::Infinite,
                Refusal::Negative,
                Refusal::Large
            ]
        );
    }

    #[test]
    fn files_are_checked_too() {
        let good = Timings::new(9.03, 18.13, None, 24.58).unwrap();
        let text = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Timings>(&text).unwrap(), good);
        let bad = text.replace("18.13", "-18.13");
        let e = serde_json::from_str::<Timings>(&bad).unwrap_err();
        assert!(e.to_string().contains("1p alloc + fault '-18.13'"), "{e}");
    }

    #[test]
    fn pages_are_a_whole_number_in_range() {
        assert_eq!(parse_pages(" 64 ").unwrap(), 64);
        assert_eq!(parse_pages("1073741824").unwrap(), MAX_PAGES);
        for bad in [
            "",
            "0",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "x",
            "1073741825",
            "99999999999999",
        ] {
            assert_eq!(parse_pages(bad).unwrap_err().why, Refusal::Pages, "'{bad}'");
        }
    }
}
