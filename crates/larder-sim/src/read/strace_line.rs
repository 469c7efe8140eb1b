//! A line of strace: process, time, call, arguments and result.

use super::number::{decimal, shown, trim, whole};

/// What a line is.
pub(super) enum Line<'l> {
    /// A signal, a message of strace.
    Nothing,
    /// A process ended.
    Gone(u32),
    /// `name(args <unfinished ...>`.
    Unfinished { pid: u32, text: &'l [u8] },
    /// `<... name resumed>args) = result`.
    Resumed {
        pid: u32,
        time: u64,
        name: &'l [u8],
        rest: &'l [u8],
    },
    /// A call in one line.
    Call(Call<'l>),
}

/// A call that has returned.
pub(super) struct Call<'l> {
    pub(super) pid: u32,
    pub(super) time: u64,
    pub(super) name: &'l [u8],
    pub(super) args: Vec<&'l [u8]>,
    /// None for `?`.
    pub(super) result: Option<i64>,
    /// What stands behind `=`.
    after: &'l [u8],
    pub(super) whole: &'l [u8],
}

/// A descriptor as an argument: its number (none if it is not one) and, with `-y`, what it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fd<'l> {
    pub(super) number: Option<i32>,
    pub(super) path: Option<&'l [u8]>,
}

impl<'l> Fd<'l> {
    fn of(word: &'l [u8]) -> Self {
        let (number, rest) = match memchr::memchr(b'<', word) {
            Some(n) => (&word[..n], &word[n + 1..]),
            None => (word, &word[..0]),
        };
        Self {
            number: decimal(trim(number)).and_then(|n| i32::try_from(n).ok()),
            path: rest.strip_suffix(b">").filter(|p| !p.is_empty()),
        }
    }
}

/// Splits a line; an error is a line that strace does not print.
pub(super) fn parse(line: &[u8]) -> Result<Line<'_>, String> {
    let line = trim(line);
    if line.is_empty() || line.starts_with(b"strace: ") {
        return Ok(Line::Nothing);
    }
    let (pid, rest) = process(line);
    let (time, rest) = clock(rest);
    if rest.starts_with(b"--- ") && rest.ends_with(b" ---") {
        return Ok(Line::Nothing);
    }
    if rest.starts_with(b"+++ ") && rest.ends_with(b" +++") {
        return Ok(Line::Gone(pid));
    }
    if let Some(resumed) = rest.strip_prefix(b"<... ") {
        let end = memchr::memmem::find(resumed, b" resumed>").ok_or("'<...' without 'resumed>'")?;
        return Ok(Line::Resumed {
            pid,
            time,
            name: &resumed[..end],
            rest: &resumed[end + b" resumed>".len()..],
        });
    }
    if let Some(text) = rest.strip_suffix(b"<unfinished ...>") {
        name(text)?;
        return Ok(Line::Unfinished {
            pid,
            text: trim(text),
        });
    }
    Call::of(pid, time, rest).map(Line::Call)
}

/// `123 ` or `[pid 123] ` at the beginning.
fn process(line: &[u8]) -> (u32, &[u8]) {
    let number = |word: &[u8]| decimal(word).and_then(|n| u32::try_from(n).ok());
    if let Some(rest) = line.strip_prefix(b"[pid ")
        && let Some(end) = memchr::memchr(b']', rest)
        && let Some(pid) = number(trim(&rest[..end]))
    {
        return (pid, trim(&rest[end + 1..]));
    }
    match memchr::memchr(b' ', line) {
        Some(n) => match number(&line[..n]) {
            Some(pid) => (pid, trim(&line[n..])),
            None => (0, line),
        },
        None => (0, line),
    }
}

/// A time, as -t, -tt, -ttt and -r print it, in microseconds.
fn clock(line: &[u8]) -> (u64, &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
    let word = &line[..end];
    if word.is_empty()
        || !word
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b':' | b'.'))
    {
        return (0, line);
    }
    let mut micros = 0_u64;
    for part in word.split(|b| *b == b':') {
        let seconds = core::str::from_utf8(part)
            .ok()
            .and_then(|t| t.parse::<f64>().ok())
            .unwrap_or(0.0);
        micros = micros
            .saturating_mul(60)
            .saturating_add((seconds * 1e6) as u64);
    }
    (micros, trim(&line[end..]))
}

/// The name before `(`.
fn name(text: &[u8]) -> Result<&[u8], String> {
    let end = text.iter().position(|b| *b == b'(').unwrap_or(0);
    let name = &text[..end];
    let first = name.first().copied().unwrap_or(b'0');
    let plain = name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if !plain || first.is_ascii_digit() {
        return Err(format!("'{}' is no line of strace", shown(text)));
    }
    Ok(name)
}

impl<'l> Call<'l> {
    pub(super) fn of(pid: u32, time: u64, text: &'l [u8]) -> Result<Self, String> {
        let name = name(text)?;
        let mut args = Vec::new();
        let end = arguments(text, name.len() + 1, &mut args).ok_or_else(|| {
            format!(
                "the arguments of {} do not end: the line is cut",
                shown(name)
            )
        })?;
        let after = trim(&text[end..]);
        let after = after
            .strip_prefix(b"=")
            .ok_or_else(|| format!("'=' and a result are missing after {}", shown(name)))?;
        let after = trim(after);
        let word_end = after
            .iter()
            .position(|b| b.is_ascii_whitespace() || *b == b'<')
            .unwrap_or(after.len());
        let result = match &after[..word_end] {
            b"?" => None,
            [b'-', digits @ ..] if decimal(digits).is_some() => Some(-1),
            word => Some(i64::try_from(whole(word, "the result")?).unwrap_or(-1)),
        };
        Ok(Self {
            pid,
            time,
            name,
            args,
            result,
            after,
            whole: text,
        })
    }

    pub(super) fn arg(&self, n: usize) -> &'l [u8] {
        self.args.get(n).copied().unwrap_or_default()
    }

    pub(super) fn fd(&self, n: usize) -> Fd<'l> {
        Fd::of(self.arg(n))
    }

    /// The returned descriptor.
    pub(super) fn returned(&self) -> Fd<'l> {
        let end = match memchr::memrchr(b'>', self.after) {
            // A time that the call took (-T) may follow the descriptor's own brackets.
            Some(n) if memchr::memmem::find(self.after, b"> <").is_some() => {
                memchr::memmem::find(&self.after[..n], b"> <").map_or(n + 1, |n| n + 1)
            }
            Some(n) => n + 1,
            None => self.after.len(),
        };
        Fd::of(&self.after[..end])
    }

    /// A string argument without its quotes. Escapes stay: they are the same wherever the path is printed.
    pub(super) fn path(&self, n: usize) -> &'l [u8] {
        let word = self.arg(n);
        let word = word.strip_prefix(b"\"").unwrap_or(word);
        word.strip_suffix(b"\"").unwrap_or(word)
    }

    /// The size in the structure of a stat (`{st_mode=…, st_size=4096, …}`); none where there is no such field, as of a device.
    pub(super) fn size(&self, n: usize) -> Option<u64> {
        const FIELD: &[u8] = b"_size=";
        let structure = self.arg(n);
        let value = &structure[memchr::memmem::find(structure, FIELD)? + FIELD.len()..];
        let end = value.iter().position(|b| !b.is_ascii_digit());
        decimal(&value[..end.unwrap_or(value.len())])
    }

    /// A number, also in brackets (`[4096] => [8192]`: the first).
    pub(super) fn number(&self, n: usize, what: &str) -> Result<u64, String> {
        let word = self.arg(n);
        let word = word.strip_prefix(b"[").unwrap_or(word);
        let end = word
            .iter()
            .position(|b| matches!(b, b']' | b' '))
            .unwrap_or(word.len());
        whole(&word[..end], what)
    }
}

/// Splits the arguments from `at` on at their commas; returns the place after the closing bracket.
fn arguments<'l>(text: &'l [u8], at: usize, args: &mut Vec<&'l [u8]>) -> Option<usize> {
    let (mut from, mut depth, mut n) = (at, 0_u32, at);
    while n < text.len() {
        match text[n] {
            b'"' => {
                n += 1;
                while *text.get(n)? != b'"' {
                    n += 1 + usize::from(text[n] == b'\\');
                }
            }
            // What a descriptor is: a path may have commas and brackets in it.
            b'<' if n > at
                && (text[n - 1].is_ascii_digit() || text[n - 1] == b'D')
                && text.get(n + 1) != Some(&b'<') =>
            {
                n += 1;
                while *text.get(n)? != b'>' || text[n - 1] == b'-' {
                    n += 1;
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if n > from {
                    args.push(trim(&text[from..n]));
                }
                return Some(n + 1);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                args.push(trim(&text[from..n]));
                from = n + 1;
            }
            _ => {}
        }
        n += 1;
    }
    None
}
