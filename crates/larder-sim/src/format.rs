//! The formats of traces, by name.

/// A format. The names are those of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// libCacheSim's 24 bytes: time, object, size, next access.
    OracleGeneral,
    /// libCacheSim's own, with a header.
    Lcs,
    /// Columns, with a header or named by `--columns`.
    Csv,
    /// One number a line; `*` lines are marks (LIRS).
    Txt,
    /// VMware's vscsiStats records, first version.
    Vscsi1,
    /// The second.
    Vscsi2,
    /// Lines `start count ignored request` (ARC).
    Arc,
    /// Numbers of 32 bits, low byte first.
    U32le,
    /// Numbers of 32 bits, high byte first.
    U32be,
    /// Signed numbers of 32 bits, low byte first.
    I32le,
    /// Signed numbers of 32 bits, high byte first.
    I32be,
    /// Numbers of 64 bits, low byte first.
    U64le,
    /// Numbers of 64 bits, high byte first.
    U64be,
    /// Signed numbers of 64 bits, low byte first.
    I64le,
    /// Signed numbers of 64 bits, high byte first.
    I64be,
    /// Storage Performance Council, as UMass publishes: `unit,sector,bytes,r|w,seconds`.
    Spc,
    /// MSR Cambridge: `filetime,host,disk,Read|Write,offset,bytes,response`.
    Msr,
    /// fio's iolog, versions 2 and 3.
    Fio,
    /// The text that blkparse prints.
    Blkparse,
    /// The text that strace prints.
    Strace,
    /// dbench's load file.
    Dbench,
}

impl Format {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 21] = [
        Self::OracleGeneral,
        Self::Lcs,
        Self::Csv,
        Self::Txt,
        Self::Vscsi1,
        Self::Vscsi2,
        Self::Arc,
        Self::U32le,
        Self::U32be,
        Self::I32le,
        Self::I32be,
        Self::U64le,
        Self::U64be,
        Self::I64le,
        Self::I64be,
        Self::Spc,
        Self::Msr,
        Self::Fio,
        Self::Blkparse,
        Self::Strace,
        Self::Dbench,
    ];

    /// The name for `--format`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OracleGeneral => "oracleGeneral",
            Self::Lcs => "lcs",
            Self::Csv => "csv",
            Self::Txt => "txt",
            Self::Vscsi1 => "vscsi1",
            Self::Vscsi2 => "vscsi2",
            Self::Arc => "arc",
            Self::U32le => "u32le",
            Self::U32be => "u32be",
            Self::I32le => "i32le",
            Self::I32be => "i32be",
            Self::U64le => "u64le",
            Self::U64be => "u64be",
            Self::I64le => "i64le",
            Self::I64be => "i64be",
            Self::Spc => "spc",
            Self::Msr => "msr",
            Self::Fio => "fio",
            Self::Blkparse => "blkparse",
            Self::Strace => "strace",
            Self::Dbench => "dbench",
        }
    }

    /// A format by name; case does not matter, and neither do `-` and `_`.
    ///
    /// ```
    /// use larder_sim::Format;
    /// assert_eq!(Format::by_name("oraclegeneral"), Some(Format::OracleGeneral));
    /// assert_eq!(Format::by_name("UMass"), Some(Format::Spc));
    /// assert_eq!(Format::by_name("xls"), None);
    /// ```
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let plain: String = name
            .chars()
            .filter(|c| !matches!(c, '-' | '_' | '.'))
            .flat_map(char::to_lowercase)
            .collect();
        let plain = match plain.as_str() {
            "umass" => "spc",
            "lis" => "arc",
            "lirs" | "text" => "txt",
            "iolog" => "fio",
            "cambridge" | "msrcambridge" => "msr",
            "vscsi" => "vscsi2",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|f| f.name().eq_ignore_ascii_case(plain))
    }

    /// Is a record's time in microseconds? Otherwise in the unit of the trace, mostly seconds.
    #[must_use]
    pub const fn in_microseconds(self) -> bool {
        matches!(
            self,
            Self::Vscsi1
                | Self::Vscsi2
                | Self::Spc
                | Self::Msr
                | Self::Fio
                | Self::Blkparse
                | Self::Strace
        )
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::OracleGeneral => {
                "libCacheSim, 24 bytes: u32 time, u64 object, u32 size, i64 next access"
            }
            Self::Lcs => "libCacheSim's own format with a header, versions 1 to 8",
            Self::Csv => "columns by their headings or --columns; id, or offset/sector and size",
            Self::Txt => "one block a line; lines of LIRS traces with * are marks",
            Self::Vscsi1 => "VMware vscsiStats, records of 32 bytes",
            Self::Vscsi2 => "VMware vscsiStats, records of 40 bytes",
            Self::Arc => "lines 'start count ignored request' (.lis)",
            Self::U32le => "numbers of 32 bits, low byte first",
            Self::U32be => "numbers of 32 bits, high byte first",
            Self::I32le => "signed numbers of 32 bits, low byte first",
            Self::I32be => "signed numbers of 32 bits, high byte first",
            Self::U64le => "numbers of 64 bits, low byte first",
            Self::U64be => "numbers of 64 bits, high byte first",
            Self::I64le => "signed numbers of 64 bits, low byte first",
            Self::I64be => "signed numbers of 64 bits, high byte first",
            Self::Spc => "UMass / Storage Performance Council: unit,sector,bytes,r|w,seconds",
            Self::Msr => "MSR Cambridge: timestamp,host,disk,Read|Write,offset,bytes,response",
            Self::Fio => "fio's iolog, versions 2 and 3",
            Self::Blkparse => "text of blkparse; queued requests (Q)",
            Self::Strace => "text of strace -f, best with -y",
            Self::Dbench => "dbench's load file (client.txt)",
        }
    }

    /// All names, for messages.
    #[must_use]
    pub fn names() -> String {
        join(&Self::ALL)
    }
}

/// Names in a row.
pub(super) fn join(formats: &[Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|f| f.name()).collect();
    names.join(", ")
}
