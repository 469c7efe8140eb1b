//! Sizes of caches: blocks, bytes, or a share of a trace's blocks.

/// A size as requested.
///
/// ```
/// use larder_sim::Size;
///
/// assert_eq!(Size::parse("1000")?.of(500_000, 4096)?, 1000);
/// assert_eq!(Size::parse("0.1%")?.of(500_000, 4096)?, 500);
/// assert_eq!(Size::parse("0.1%")?.of(10, 4096)?, 1); // at least one block
/// assert_eq!(Size::parse("4k")?.of(0, 4096)?, 4096);
/// assert_eq!(Size::parse("64MiB")?.of(0, 4096)?, 16384);
/// assert!(Size::parse("2KiB")?.of(0, 4096).is_err()); // not one block
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
    Bytes(u64),
    Percent(f64),
}

impl Size {
    /// `1000`, `4k`, `1M` blocks (of 1024), `64MiB`, `1GB` (of 1024) or `0.1%`.
    ///
    /// # Errors
    /// A sentence: no number, nothing, more than all.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let why = |what: &str| {
            format!(
                "'{text}' {what}; write a number of blocks (1000, 4k, 1M), bytes (64MiB) or a share of the trace's blocks (1%)"
            )
        };
        let whole = |text: &str| {
            let (digits, unit) = match text.as_bytes().last() {
                Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
                Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
                Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
                _ => (text, 1),
            };
            let n = digits.trim().parse::<u64>().ok();
            match n.and_then(|n| n.checked_mul(unit)) {
                Some(0) => Err(why("is no cache at all")),
                n => n.ok_or_else(|| why("is no size")),
            }
        };
        let kind = if let Some(share) = text.strip_suffix('%') {
            match share.trim().parse::<f64>() {
                Ok(p) if p > 0.0 && p <= 100.0 => Kind::Percent(p),
                _ => return Err(why("is no share between 0 and 100 %")),
            }
        } else if let Some(bytes) = text.strip_suffix('B') {
            Kind::Bytes(whole(bytes.strip_suffix('i').unwrap_or(bytes))?)
        } else {
            match usize::try_from(whole(text)?) {
                Ok(n) if n <= larder_policy::MOST_FRAMES => Kind::Blocks(n),
                _ => return Err(why("is more than a rule can number")),
            }
        };
        Ok(Self {
            text: text.to_owned(),
            kind,
        })
    }

    /// Blocks of `block_size` bytes, for a trace with `blocks` different ones. A share is rounded down, to at least 1. Bytes of
    /// objects that have sizes of their own are no number of them: the caller refuses those.
    ///
    /// # Errors
    /// A sentence: bytes that are less than a block, or more than a rule can number.
    pub fn of(&self, blocks: u32, block_size: u32) -> Result<usize, String> {
        match self.kind {
            Kind::Blocks(n) => Ok(n),
            Kind::Bytes(bytes) => match usize::try_from(bytes / u64::from(block_size.max(1))) {
                Ok(0) => Err(format!(
                    "'{}' is less than a block of {block_size} bytes",
                    self.text
                )),
                Ok(n) if n <= larder_policy::MOST_FRAMES => Ok(n),
                _ => Err(format!("'{}' is more than a rule can number", self.text)),
            },
            Kind::Percent(p) => Ok(((f64::from(blocks) * p / 100.0) as usize).max(1)),
        }
    }

    /// Whether it needs the number of blocks.
    #[must_use]
    pub fn is_share(&self) -> bool {
        matches!(self.kind, Kind::Percent(_))
    }

    /// Whether it counts bytes, which are blocks only where each block has `block_size` of them.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        matches!(self.kind, Kind::Bytes(_))
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
