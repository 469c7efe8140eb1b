//! One reader for each format.

mod arc;
mod blkparse;
mod csv;
mod dbench;
mod fio;
mod headings;
mod lcs;
mod lines;
mod msr;
mod names;
mod number;
mod oracle;
mod pieces;
mod ranges;
mod spc;
mod strace;
mod strace_files;
mod strace_line;
mod txt;
mod vscsi;
mod words;

use super::format::Format;
use super::source::ReadOptions;

pub(super) use csv::Csv;
pub(super) use headings::names_a_block;
pub(super) use lcs::{Lcs, LcsHeader, MAGIC as LCS_MAGIC};
pub(super) use lines::{LineParser, Lines};
pub(super) use oracle::OracleGeneral;
pub(super) use pieces::{Piece, Pieces};
pub(super) use ranges::Ranges;
pub(super) use vscsi::{Vscsi, plausible as vscsi_plausible};
pub(super) use words::{I32, I64, U32, U64};

/// The reader of a format of lines (all but CSV, which has to see its first lines).
pub(super) fn text(format: Format, options: &ReadOptions) -> Result<Box<dyn LineParser>, String> {
    Ok(match format {
        Format::Dbench => Box::new(dbench::Dbench::new(options.block_size)),
        Format::Txt => Box::new(txt::Txt::new(options)),
        Format::Arc => Box::new(arc::Arc),
        Format::Spc => Box::new(spc::Spc),
        Format::Msr => Box::new(msr::Msr::default()),
        Format::Fio => Box::new(fio::Fio::default()),
        Format::Blkparse => Box::new(blkparse::Blkparse::default()),
        Format::Strace => Box::new(strace::Strace::default()),
        other => {
            return Err(format!(
                "larder has no reader of lines for {}",
                other.name()
            ));
        }
    })
}
