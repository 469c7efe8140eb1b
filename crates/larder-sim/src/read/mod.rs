//! One reader for each format.

mod alibaba;
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
mod tencent;
mod twitter;
mod txt;
mod vscsi;
mod webcachesim;
mod words;

use super::format::Format;
use super::input::Input;
use super::options::ReadOptions;
use super::parser::Parser;
use super::{Place, SimError};
use lcs::{Lcs, LcsHeader};
use pieces::Pieces;
use vscsi::Vscsi;
use words::{I32, I64, U32, U64};

pub(super) use arc::plausible as arc_plausible;
pub(super) use csv::Csv;
pub(super) use headings::names_a_block;
pub(super) use lcs::MAGIC as LCS_MAGIC;
pub(super) use lines::{LineParser, Lines};
pub(super) use oracle::OracleGeneral;
pub(super) use pieces::Piece;
pub(super) use vscsi::plausible as vscsi_plausible;

/// The reader of a format of lines (all but CSV, which has to see its first lines).
pub(super) fn text(format: Format, options: &ReadOptions) -> Result<Box<dyn LineParser>, String> {
    Ok(match format {
        Format::Dbench => Box::new(dbench::Dbench::new(options)),
        Format::Txt => Box::new(txt::Txt::new(options)),
        Format::Arc => Box::new(arc::Arc),
        Format::Spc => Box::new(spc::Spc),
        Format::Msr => Box::new(msr::Msr::new(options)),
        Format::Alibaba => Box::new(alibaba::Alibaba),
        Format::Tencent => Box::new(tencent::Tencent),
        Format::Twitter => Box::new(twitter::Twitter::new(options)),
        Format::Webcachesim => Box::new(webcachesim::Webcachesim::default()),
        Format::Fio => Box::new(fio::Fio::new(options)),
        Format::Blkparse => Box::new(blkparse::Blkparse::new(options)),
        Format::Strace => Box::new(strace::Strace::new(options)),
        other => {
            return Err(format!(
                "larder has no reader of lines for {}",
                other.name()
            ));
        }
    })
}

/// The reader of a format. `input` stands at the beginning.
pub(super) fn parser(
    format: Format,
    input: &mut Input,
    options: &ReadOptions,
) -> Result<Box<dyn Parser>, SimError> {
    let wrong = |input: &Input, fault: String| SimError::Wrong {
        trace: input.name().to_owned(),
        place: Place::Byte(0),
        fault,
    };
    Ok(match format {
        Format::OracleGeneral => Box::new(Pieces::new(OracleGeneral)),
        Format::Lcs => {
            let header = {
                let (head, _) = input.head()?;
                LcsHeader::parse(head)
            };
            let header = header.map_err(|fault| wrong(input, fault))?;
            input.pieces(header.bytes, 1)?;
            Box::new(Pieces::new(Lcs::new(header)))
        }
        Format::Vscsi1 => Box::new(Pieces::new(Vscsi::<1>)),
        Format::Vscsi2 => Box::new(Pieces::new(Vscsi::<2>)),
        Format::U32le => Box::new(Pieces::new(U32::<false>)),
        Format::U32be => Box::new(Pieces::new(U32::<true>)),
        Format::I32le => Box::new(Pieces::new(I32::<false>)),
        Format::I32be => Box::new(Pieces::new(I32::<true>)),
        Format::U64le => Box::new(Pieces::new(U64::<false>)),
        Format::U64be => Box::new(Pieces::new(U64::<true>)),
        Format::I64le => Box::new(Pieces::new(I64::<false>)),
        Format::I64be => Box::new(Pieces::new(I64::<true>)),
        Format::Csv => {
            let csv = {
                let (head, _) = input.head()?;
                Csv::new(head, options)
            };
            let csv = csv.map_err(|fault| SimError::Columns {
                trace: input.name().to_owned(),
                fault,
            })?;
            Box::new(Lines::new(csv))
        }
        lines => Box::new(Lines::new(
            text(lines, options).map_err(|fault| wrong(input, fault))?,
        )),
    })
}
