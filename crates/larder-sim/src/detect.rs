//! Detects the format of a trace from its content and its name.

use super::format::{Format, join};
use super::input::Input;
use super::options::ReadOptions;
use super::read::{self, Csv, Lines, OracleGeneral, Piece, arc_plausible, vscsi_plausible};
use super::sink::Sink;
use super::{Place, SimError};

/// Lines that are tried.
const LINES: usize = 300;

/// The format, or an error that names the possible ones.
pub(super) fn detect(input: &mut Input, options: &ReadOptions) -> Result<Format, SimError> {
    let name = input.name().to_owned();
    let length = input.length();
    let (head, whole) = input.head()?;
    let unclear = |fault: String, formats: &[Format]| SimError::Format {
        trace: name.clone(),
        fault,
        formats: join(formats),
    };
    if options.columns.is_some() {
        return Ok(Format::Csv);
    }
    if is_binary(head) {
        let by_name = named(&name);
        let fits = binary(head, whole, length);
        let bare_numbers = Format::ALL.into_iter().filter(|format| bare(*format));
        let records = [Format::OracleGeneral, Format::Vscsi1, Format::Vscsi2];
        let unmarked: Vec<Format> = bare_numbers.chain(records).collect();
        return match (by_name, fits.as_slice()) {
            // The name decides among formats of bare numbers, which content cannot tell apart, and where it agrees with the content.
            (Some(format), fits) if bare(format) || fits.contains(&format) => Ok(format),
            // Content takes precedence over a name that disagrees.
            (_, [format]) => Ok(*format),
            (Some(named), []) => Err(unclear(
                format!(
                    "is named like {}, but its first records are not that",
                    named.name()
                ),
                &Format::ALL,
            )),
            (_, []) => Err(unclear(
                "is binary, and nothing in it says of which format".to_owned(),
                &unmarked,
            )),
            (_, several) => Err(unclear("fits several formats".to_owned(), several)),
        };
    }
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let (trials, no_table) = text(head, whole, options);
    let fits = fitting(&trials);
    if matches!(fits.as_slice(), [] | [Format::Txt]) && read::names_a_block(first) {
        // A line with the heading of a block is no data, also where names may be blocks.
        if let Some(fault) = no_table {
            return Err(SimError::Columns { trace: name, fault });
        }
        if !fits.is_empty() {
            // The reader of tables reports what is wrong, with the line.
            return Ok(Format::Csv);
        }
    }
    match fits.as_slice() {
        [format] => Ok(*format),
        [] => {
            let first = String::from_utf8_lossy(&first[..first.len().min(60)])
                .escape_debug()
                .to_string();
            let nearest = nearest(&trials).unwrap_or_default();
            Err(unclear(
                format!(
                    "no format that larder knows fits its first lines ('{first}'){nearest}; a table without headings is \
                     read where --columns names them, for instance --columns time=1,id=2,size=3 (with --delimiter ' ' \
                     where blanks part them)"
                ),
                &Format::ALL,
            ))
        }
        several => Err(unclear("fits several formats".to_owned(), several)),
    }
}

/// Bytes that do not occur in text.
pub(super) fn is_binary(head: &[u8]) -> bool {
    head.iter().any(|b| matches!(b, 0..=8 | 14..=31 | 127))
        || (head.iter().any(|b| *b >= 128) && {
            // A cut within the last character is no error.
            match core::str::from_utf8(head) {
                Ok(_) => false,
                Err(e) => e.error_len().is_some() || head.len() - e.valid_up_to() > 3,
            }
        })
}

/// Content cannot tell bare numbers apart.
const fn bare(format: Format) -> bool {
    format.number().is_some()
}

/// A binary format by the file's name: any of the parts after dots.
fn named(name: &str) -> Option<Format> {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.split('.')
        .skip(1)
        .filter_map(Format::by_name)
        .find(|f| {
            bare(*f)
                || matches!(
                    f,
                    Format::OracleGeneral | Format::Lcs | Format::Vscsi1 | Format::Vscsi2
                )
        })
}

/// Binary formats with recognisable content that fit.
fn binary(head: &[u8], whole: bool, length: Option<u64>) -> Vec<Format> {
    let mut fits = Vec::new();
    if head.starts_with(&read::LCS_MAGIC.to_le_bytes()) {
        return vec![Format::Lcs];
    }
    let length = length.or(whole.then_some(head.len() as u64));
    let divides = |width: u64| length.is_none_or(|n| n % width == 0);
    if oracle(head) && divides(OracleGeneral.width() as u64) {
        fits.push(Format::OracleGeneral);
    }
    if vscsi_plausible::<1>(head) {
        fits.push(Format::Vscsi1);
    }
    if vscsi_plausible::<2>(head) {
        fits.push(Format::Vscsi2);
    }
    fits
}

/// Time never goes back, and the next access lies ahead.
fn oracle(head: &[u8]) -> bool {
    let mut before = 0;
    let mut records = head.chunks_exact(24).zip(0_i64..).peekable();
    records.peek().is_some()
        && records.all(|(r, n)| {
            let time = u32::from_le_bytes([r[0], r[1], r[2], r[3]]);
            let mut next = [0; 8];
            next.copy_from_slice(&r[16..24]);
            let next = i64::from_le_bytes(next);
            let ordered = time >= before;
            before = time;
            ordered && (next == -1 || next == i64::MAX || next > n)
        })
}

/// The result of reading the first lines as a format.
struct Trial {
    format: Format,
    requests: usize,
    fault: Option<(Place, String)>,
}

/// The first lines, read as each text format that these options allow; and why they are no table.
fn text(head: &[u8], whole: bool, options: &ReadOptions) -> (Vec<Trial>, Option<String>) {
    let end = match memchr::memrchr(b'\n', head) {
        Some(end) if !whole => end + 1,
        _ => head.len(),
    };
    let head = &head[..end];
    let mut trials: Vec<Trial> = [
        Format::Txt,
        Format::Arc,
        Format::Spc,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Twitter,
        Format::Webcachesim,
        Format::Fio,
        Format::Blkparse,
        Format::Strace,
        Format::Dbench,
    ]
    .into_iter()
    .filter(|format| *format != Format::Arc || arc_plausible(first_lines(head)))
    .filter_map(|format| Some(trial(format, read::text(format, options).ok()?, head)))
    .collect();
    match Csv::new(head, options) {
        Ok(csv) => {
            trials.push(trial(Format::Csv, csv, head));
            (trials, None)
        }
        Err(why) => (trials, Some(why)),
    }
}

/// The lines that are tried.
fn first_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|b| *b == b'\n').take(LINES)
}

fn trial<P: read::LineParser>(format: Format, parser: P, head: &[u8]) -> Trial {
    let mut sink = Sink::new(4096);
    let fault = Lines::new(parser).first_fault(first_lines(head), &mut sink);
    Trial {
        format,
        requests: sink.records.len(),
        fault,
    }
}

/// Formats that read the first lines without an error and find requests in them.
fn fitting(trials: &[Trial]) -> Vec<Format> {
    let fits: Vec<Format> = trials
        .iter()
        .filter(|trial| trial.fault.is_none() && trial.requests > 0)
        .map(|trial| trial.format)
        .collect();
    match fits.as_slice() {
        // A heading is no block: with texts as blocks both would read it.
        [Format::Txt, Format::Csv] => vec![Format::Csv],
        [others @ .., Format::Csv] if !others.is_empty() => others.to_vec(),
        _ => fits,
    }
}

/// The format that read the most lines before an error, and the error; none where no format read any.
fn nearest(trials: &[Trial]) -> Option<String> {
    let nearest = trials
        .iter()
        .filter(|trial| trial.requests > 0)
        .max_by_key(|trial| trial.requests)?;
    let (place, fault) = nearest.fault.as_ref()?;
    Some(format!(
        "; nearest is {}, but {place}: {fault}",
        nearest.format.name()
    ))
}
