//! Sizes of caches: blocks, or a share of a trace's blocks.

/// A size as requested.
///
/// ```
/// use larder_sim::Size;
///
/// assert_eq!(Size::parse("1000")?.of(500_000), 1000);
/// assert_eq!(Size::parse("0.1%")?.of(500_000), 500);
/// assert_eq!(Size::parse("0.1%")?.of(10), 1); // at least one block
/// assert_eq!(Size::parse("4k")?.of(0), 4096);
/// assert!(Size::parse("0").is_err() && Size::parse("101%").is_err() && Size::parse("-5").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Blocks(usize),
    Percent(f64),
}

impl Size {
    /// `1000`, `4k`, `1M` (of 1024) or `0.1%`.
    ///
    /// # Errors
    /// A sentence: no number, nothing, more than all.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let why = |what: &str| {
            format!(
                "'{text}' {what}; write a number of blocks (1000, 4k, 1M) or a share of the trace's blocks (1%)"
            )
        };
        let kind = if let Some(share) = text.strip_suffix('%') {
            match share.trim().parse::<f64>() {
                Ok(p) if p > 0.0 && p <= 100.0 => Kind::Percent(p),
                _ => return Err(why("is no share between 0 and 100 %")),
            }
        } else {
            let (digits, unit) = match text.as_bytes().last() {
                Some(b'k' | b'K') => (&text[..text.len() - 1], 1024),
                Some(b'm' | b'M') => (&text[..text.len() - 1], 1024 * 1024),
                _ => (text, 1),
            };
            match digits
                .parse::<usize>()
                .ok()
                .and_then(|n| n.checked_mul(unit))
            {
                Some(0) => return Err(why("is no cache at all")),
                Some(n) if n <= larder_policy::MOST_FRAMES => Kind::Blocks(n),
                Some(_) => return Err(why("is more than a rule can number")),
                None => return Err(why("is no size")),
            }
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }

    /// Blocks, for a trace with this many different ones. A share is rounded down, to at least 1.
    #[must_use]
    pub fn of(&self, blocks: u32) -> usize {
        match self.kind {
            Kind::Blocks(n) => n,
            Kind::Percent(p) => ((f64::from(blocks) * p / 100.0) as usize).max(1),
        }
    }

    /// Whether it needs the number of blocks.
    #[must_use]
    pub fn is_share(&self) -> bool {
        matches!(self.kind, Kind::Percent(_))
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
