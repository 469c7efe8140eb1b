//! The formats of traces, by name.

/// The table: what the reader's page says of each format, its name, and a line for users.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident: $name:literal, $about:literal;)*) => {
        /// A format. The names are those of `--format`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// All of them, in the order in which they are listed.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$format),*];

            /// The name for `--format`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                }
            }

            /// What it is, in a line.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$format => $about,)*
                }
            }
        }
    };
}

formats! {
    /// libCacheSim's 24 bytes: time, object, size, next access.
    OracleGeneral: "oracleGeneral", "libCacheSim, 24 bytes: u32 time, u64 object, u32 size, i64 next access";
    /// libCacheSim's own, with a header.
    Lcs: "lcs", "libCacheSim's own format with a header, versions 1 to 8";
    /// Columns, with a header or named by `--columns`.
    Csv: "csv", "columns by their headings or --columns; id, or offset/sector and size";
    /// One number a line; `*` lines are marks (LIRS).
    Txt: "txt", "one block a line; lines of LIRS traces with * are marks";
    /// VMware's vscsiStats records, first version.
    Vscsi1: "vscsi1", "VMware vscsiStats, records of 32 bytes";
    /// The second.
    Vscsi2: "vscsi2", "VMware vscsiStats, records of 40 bytes";
    /// Lines `start count ignored request` (ARC).
    Arc: "arc", "lines 'start count ignored request' (.lis)";
    /// Numbers of 32 bits, low byte first.
    U32le: "u32le", "numbers of 32 bits, low byte first";
    /// Numbers of 32 bits, high byte first.
    U32be: "u32be", "numbers of 32 bits, high byte first";
    /// Signed numbers of 32 bits, low byte first.
    I32le: "i32le", "signed numbers of 32 bits, low byte first";
    /// Signed numbers of 32 bits, high byte first.
    I32be: "i32be", "signed numbers of 32 bits, high byte first";
    /// Numbers of 64 bits, low byte first.
    U64le: "u64le", "numbers of 64 bits, low byte first";
    /// Numbers of 64 bits, high byte first.
    U64be: "u64be", "numbers of 64 bits, high byte first";
    /// Signed numbers of 64 bits, low byte first.
    I64le: "i64le", "signed numbers of 64 bits, low byte first";
    /// Signed numbers of 64 bits, high byte first.
    I64be: "i64be", "signed numbers of 64 bits, high byte first";
    /// Storage Performance Council, as UMass publishes: `unit,sector,bytes,r|w,seconds`.
    Spc: "spc", "UMass / Storage Performance Council: unit,sector,bytes,r|w,seconds";
    /// MSR Cambridge: `filetime,host,disk,Read|Write,offset,bytes,response`.
    Msr: "msr", "MSR Cambridge: timestamp,host,disk,Read|Write,offset,bytes,response";
    /// Alibaba's block traces: `device,R|W,offset,bytes,microseconds`.
    Alibaba: "alibaba", "Alibaba's block traces: device,R|W,offset,bytes,microseconds";
    /// Tencent's block storage: `seconds,sector,sectors,0|1,volume`.
    Tencent: "tencent", "Tencent's block storage: seconds,sector,sectors,0|1,volume";
    /// Twitter's caches: `seconds,key,key bytes,value bytes,client,operation,seconds to live`.
    Twitter: "twitter", "Twitter's caches: seconds,key,key bytes,value bytes,client,operation,seconds to live";
    /// webcachesim's lines `time id bytes`.
    Webcachesim: "webcachesim", "webcachesim: lines 'time id bytes'";
    /// fio's iolog, versions 2 and 3.
    Fio: "fio", "fio's iolog, versions 2 and 3";
    /// The text that blkparse prints.
    Blkparse: "blkparse", "text of blkparse; queued requests (Q)";
    /// The text that strace prints.
    Strace: "strace", "text of strace -f, best with -y";
    /// dbench's load file.
    Dbench: "dbench", "dbench's load file (client.txt)";
}

/// How a format of bare numbers has them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) bits: u32,
    pub(super) signed: bool,
    /// High byte first.
    pub(super) big: bool,
}

impl Format {
    /// The numbers of a format that has nothing else.
    pub(super) const fn number(self) -> Option<Number> {
        let (bits, signed, big) = match self {
            Self::U32le => (32, false, false),
            Self::U32be => (32, false, true),
            Self::I32le => (32, true, false),
            Self::I32be => (32, true, true),
            Self::U64le => (64, false, false),
            Self::U64be => (64, false, true),
            Self::I64le => (64, true, false),
            Self::I64be => (64, true, true),
            _ => return None,
        };
        Some(Number { bits, signed, big })
    }

    /// Is it lines of text?
    pub(super) const fn is_text(self) -> bool {
        let records = matches!(
            self,
            Self::OracleGeneral | Self::Lcs | Self::Vscsi1 | Self::Vscsi2
        );
        !records && self.number().is_none()
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

    /// Is a record's time in microseconds in every trace of the format? A table may say so for itself:
    /// [`Trace::in_microseconds`](crate::Trace::in_microseconds).
    #[must_use]
    pub const fn in_microseconds(self) -> bool {
        matches!(
            self,
            Self::Vscsi1
                | Self::Vscsi2
                | Self::Spc
                | Self::Msr
                | Self::Alibaba
                | Self::Fio
                | Self::Blkparse
                | Self::Strace
        )
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
