//! Memory pressure, from the kernel's pressure stall information (PSI).

use std::fs;

use super::decimal::billionths;

/// Percent of the last ten seconds in which some task of this machine waited for memory; `None` without PSI.
///
/// ```
/// if let Some(percent) = larder::os::pressure::memory_some_avg10() {
///     assert!((0.0..=100.0).contains(&percent));
/// }
/// ```
#[must_use]
pub fn memory_some_avg10() -> Option<f64> {
    parse_avg10(&fs::read_to_string("/proc/pressure/memory").ok()?)
}

fn parse_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let percent = some
        .split_whitespace()
        .find_map(|field| field.strip_prefix("avg10="))?;
    Some(billionths(percent)? as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_line_named_some() {
        let text = "full avg10=9.00 avg60=0.00\nsome avg10=1.25 avg60=0.40 avg300=0.10 total=12\n";
        assert_eq!(parse_avg10(text), Some(1.25));
        assert_eq!(parse_avg10("full avg10=9.00"), None);
        assert_eq!(parse_avg10("some avg60=1.0"), None);
    }
}
