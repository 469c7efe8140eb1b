//! A line on standard error, without an allocation and without a lock.

use core::fmt::{self, Write};

/// On the stack; what does not fit is left out.
struct Line {
    bytes: [u8; 256],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let n = s.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

/// Writes what begins with `larder: `, in one call.
#[cold]
pub fn say(text: fmt::Arguments<'_>) {
    let mut line = Line {
        bytes: [0; 256],
        len: 0,
    };
    let _ = writeln!(line, "larder: {text}");
    let _ = rustix::io::write(rustix::stdio::stderr(), &line.bytes[..line.len]);
}

/// Says that a variable of the environment names a mode that is none.
#[cold]
pub(crate) fn say_unknown(variable: &str, word: &[u8], known: &str) {
    let (word, more) = cut(word);
    say(format_args!(
        "{variable}: there is no mode \"{}{more}\"; there are {known}; it is ignored",
        word.escape_ascii()
    ));
}

/// Says that a variable of the environment has a word that is not what it should be.
#[cold]
pub(crate) fn say_ignored(variable: &str, word: &[u8], is: &str) {
    let (word, more) = cut(word);
    say(format_args!(
        "{variable}: \"{}{more}\" is {is}; it is ignored",
        word.escape_ascii()
    ));
}

/// So much of a long word that the rest of the line fits.
fn cut(word: &[u8]) -> (&[u8], &str) {
    match word.get(..64) {
        Some(first) if word.len() > 64 => (first, "..."),
        _ => (word, ""),
    }
}
