//! What is checked: the words of `LARDER_MALLOC_DEBUG`.

use core::fmt;

use super::MOST_FRAMES;

/// Bytes of a redzone, least and most.
const REDZONE: (u64, u64) = (16, 4096);

/// What a debug heap does. Read from words by [`Options::read`].
///
/// ```
/// use larder::heap::debug::Options;
/// let options = Options::read("on,redzone=64,leaks", &mut |bad| panic!("{bad}")).unwrap();
/// assert_eq!(options.redzone, 64);
/// assert!(options.leaks);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes before and after each block that the program must not write: 16 to 4096, a multiple of 16, or the next that is.
    pub redzone: usize,
    /// Bytes of freed blocks that are kept from being used again.
    pub quarantine: usize,
    /// Whether new and freed blocks are filled with a pattern, and the freed ones looked at again.
    pub fill: bool,
    /// Frames of the stacks that are kept, 0 to 32.
    pub frames: usize,
    /// One block in so many lies at the end of pages of its own, between inaccessible pages; 0 is none, 1 is all.
    pub guard: u64,
    /// Whether malloc's blocks must be freed by free, new's by delete and new[]'s by delete[].
    pub families: bool,
    /// Whether the blocks that nothing points to are reported at the program's end.
    pub leaks: bool,
    /// The exit code of a program that leaked; 0 leaves it.
    pub leak_code: u8,
    /// Every so many allocations one fails; 0 is never.
    pub fail: u64,
    /// One allocation in so many fails, drawn by a generator; 0 is never.
    pub fail_chance: u64,
    /// So many allocations go before the first failure is possible.
    pub fail_after: u64,
    /// The generator's seed, for failures and for guard pages.
    pub seed: u64,
    /// Whether the process goes on after a misuse.
    pub keep_going: bool,
}

impl Options {
    /// Takes the nearest redzone that can be.
    pub(super) fn bound(&mut self) {
        let redzone = self.redzone.clamp(REDZONE.0 as usize, REDZONE.1 as usize);
        self.redzone = redzone.next_multiple_of(16);
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            redzone: 32,
            quarantine: 16 << 20,
            fill: true,
            frames: 12,
            guard: 0,
            families: true,
            leaks: false,
            leak_code: 0,
            fail: 0,
            fail_chance: 0,
            fail_after: 0,
            seed: 1,
            keep_going: false,
        }
    }
}

/// All words, as a message names them.
const WORDS: &str = "on, off, redzone=BYTES, quarantine=BYTES, no-fill, frames=N, guard, guard=N, no-families, leaks, \
     leaks=CODE, fail=N, fail-chance=N, fail-after=N, seed=N, keep-going";

/// A word that means nothing.
///
/// ```
/// use larder::heap::debug::Options;
/// let mut told = Vec::new();
/// Options::read("redzone=7", &mut |bad| told.push(bad.to_string()));
/// assert!(told[0].contains("needs a number from 16 to 4096"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadWord<'a> {
    word: &'a str,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Unknown,
    Number { least: u64, most: u64 },
    NoNumber,
}

impl fmt::Display for BadWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.get(..60).unwrap_or(self.word);
        match self.why {
            Why::Unknown => write!(f, "there is no debug option {word:?}; there are {WORDS}"),
            Why::NoNumber => write!(f, "the debug option {word:?} takes no number"),
            Why::Number { least, most } => write!(
                f,
                "the debug option {word:?} needs a number from {least} to {most}, which may end in K, M or G"
            ),
        }
    }
}

impl Options {
    /// Reads words with commas between them. A word that means nothing is reported and left out. `None` when no word is
    /// left or one of them is `off`.
    ///
    /// ```
    /// use larder::heap::debug::Options;
    /// let mut bad = 0;
    /// let options = Options::read("redzone=64,no-such-word", &mut |_| bad += 1);
    /// assert_eq!((options.map(|options| options.redzone), bad), (Some(64), 1));
    /// assert_eq!(Options::read("off", &mut |_| ()), None);
    /// ```
    pub fn read<'a>(text: &'a str, bad: &mut dyn FnMut(BadWord<'a>)) -> Option<Self> {
        let mut options = Self::default();
        let (mut any, mut off) = (false, false);
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            if matches!(word, "off" | "0") {
                off = true;
            } else {
                match options.take(word) {
                    Ok(()) => any = true,
                    Err(why) => bad(BadWord { word, why }),
                }
            }
        }
        (any && !off).then_some(options)
    }

    fn take(&mut self, word: &str) -> Result<(), Why> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let number = |least, most| {
            value
                .and_then(number)
                .filter(|n| (least..=most).contains(n))
                .ok_or(Why::Number { least, most })
        };
        match name {
            "redzone" => {
                self.redzone = number(REDZONE.0, REDZONE.1)? as usize;
                self.bound();
            }
            "quarantine" => self.quarantine = number(0, 1 << 40)? as usize,
            "frames" => self.frames = number(0, MOST_FRAMES as u64)? as usize,
            "guard" if value.is_none() => self.guard = 1,
            "guard" => self.guard = number(1, u64::from(u32::MAX))?,
            "leaks" if value.is_none() => self.leaks = true,
            "leaks" => {
                self.leak_code = number(1, 125)? as u8;
                self.leaks = true;
            }
            "fail" => self.fail = number(1, u64::MAX)?,
            "fail-chance" => self.fail_chance = number(1, u64::from(u32::MAX))?,
            "fail-after" => self.fail_after = number(0, u64::MAX)?,
            "seed" => self.seed = number(0, u64::MAX)?,
            "on" | "1" | "no-fill" | "no-families" | "keep-going" if value.is_some() => {
                return Err(Why::NoNumber);
            }
            "on" | "1" => {}
            "no-fill" => self.fill = false,
            "no-families" => self.families = false,
            "keep-going" => self.keep_going = true,
            _ => return Err(Why::Unknown),
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        b'G' | b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Options>, Vec<String>) {
        let mut said = Vec::new();
        let options = Options::read(text, &mut |bad| said.push(bad.to_string()));
        (options, said)
    }

    #[test]
    fn every_word_does_something() {
        let base = Options::default();
        assert_eq!(read("on"), (Some(base), Vec::new()));
        for word in WORDS.split(", ") {
            let text = word
                .replace("BYTES", "4K")
                .replace("CODE", "3")
                .replace("=N", "=7");
            let (options, said) = read(&text);
            assert!(said.is_empty(), "{said:?}");
            match word {
                "on" => assert_eq!(options, Some(base)),
                "off" => assert_eq!(options, None),
                _ => assert_ne!(options, Some(base), "{text}"),
            }
        }
    }

    #[test]
    fn a_bad_word_is_told_and_left_out() {
        for (text, needle) in [
            ("bogus", "no debug option \"bogus\"; there are on, off"),
            ("redzone=8", "from 16 to 4096"),
            ("redzone=", "from 16 to 4096"),
            ("redzone", "from 16 to 4096"),
            ("frames=33", "from 0 to 32"),
            ("guard=0", "from 1 to"),
            ("fail=-1", "from 1 to"),
            ("fail=+1", "from 1 to"),
            ("quarantine=99999999999G", "from 0 to"),
            ("quarantine=K", "from 0 to"),
            ("on=1", "takes no number"),
            ("leaks=200", "from 1 to 125"),
        ] {
            let (options, said) = read(text);
            assert_eq!(options, None, "{text}");
            assert_eq!(said.len(), 1);
            assert!(
                said[0].contains(needle) && !said[0].contains('\n'),
                "{said:?}"
            );
        }
        let (options, said) = read("on,bogus,guard=10");
        assert_eq!((options.unwrap().guard, said.len()), (10, 1));
    }

    #[test]
    fn off_wins_and_nothing_is_off() {
        for text in ["", ",", "off", "0", "on,off", " , "] {
            assert_eq!(read(text), (None, Vec::new()), "{text}");
        }
        assert!(read(" on , leaks ").0.unwrap().leaks);
        assert_eq!(read("redzone=17").0.unwrap().redzone, 32);
    }
}
