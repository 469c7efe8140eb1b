//! The workloads by name, with their parameters.

use std::sync::Arc;

use super::super::input::Input;
use super::super::parser::BATCH;
use super::super::read::parser;
use super::super::record::{MOST_FILES, Record};
use super::super::sink::Sink;
use super::super::{Format, ReadOptions, SimError};
use super::parameter::{Parameter, Range, Values};
use super::patterns::{correlated, cycle, mixed, scan, zipf};
use super::{BuildShape, Records, Shape, build_like, dbench_client, interleave};

/// A workload that can be named.
pub struct Made {
    /// Its name.
    pub name: &'static str,
    /// What it is, in half a sentence.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(super) make: fn(&Values, &ReadOptions) -> Result<Records, SimError>,
}

impl core::fmt::Debug for Made {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

impl Made {
    /// Names of the parameters in a row.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.parameters.iter().map(|p| p.name).collect();
        names.join(", ")
    }
}

const fn whole(
    name: &'static str,
    default: &'static str,
    range: (u64, u64),
    about: &'static str,
) -> Parameter {
    Parameter {
        name,
        default,
        range: Range::Whole(range.0, range.1),
        about,
    }
}

const BLOCKS: Parameter = whole("blocks", "100000", (1, 1 << 40), "different blocks");
const REQUESTS: Parameter = whole("requests", "1000000", (1, 1 << 40), "uses");
const SEED: Parameter = whole("seed", "1", (0, u64::MAX), "of what is drawn");
const CLIENTS: Parameter = whole("clients", "1", (1, 1024), "clients at once, by lot");
const ALPHA: Parameter = Parameter {
    name: "alpha",
    default: "1",
    range: Range::Real(0.0, 10.0),
    about: "exponent of Zipf's law",
};

/// All workloads.
pub static MADE: [Made; 8] = [
    Made {
        name: "zipf",
        about: "blocks by Zipf's law",
        parameters: &[BLOCKS, REQUESTS, ALPHA, SEED],
        make: |values, _| Ok(Box::new(zipf(&shape(values)))),
    },
    Made {
        name: "scan",
        about: "blocks one after the other, each once",
        parameters: &[REQUESTS],
        make: |values, _| Ok(Box::new(scan(&shape(values)))),
    },
    Made {
        name: "loop",
        about: "the same blocks round and round",
        parameters: &[BLOCKS, REQUESTS],
        make: |values, _| Ok(Box::new(cycle(&shape(values)))),
    },
    Made {
        name: "mixed",
        about: "Zipf's law with a scan of new blocks now and then",
        parameters: &[BLOCKS, REQUESTS, ALPHA, SEED],
        make: |values, _| Ok(Box::new(mixed(&shape(values)))),
    },
    Made {
        name: "correlated",
        about: "Zipf's law, each block touched several times at once",
        parameters: &[
            BLOCKS,
            REQUESTS,
            ALPHA,
            whole("touches", "4", (1, 4096), "touches of a block at once"),
            SEED,
        ],
        make: |values, _| Ok(Box::new(correlated(&shape(values)))),
    },
    Made {
        name: "dbench-like",
        about: "file server clients with the mix of dbench's loadfile",
        parameters: &[
            CLIENTS,
            whole("turns", "10", (0, 500), "turns of the loadfile's loop"),
            SEED,
        ],
        make: |values, _| {
            let seed = values.whole("seed");
            let client = |client| dbench_client(seed, client, values.small("turns"));
            let clients = 0..values.small("clients") as u16;
            Ok(Box::new(interleave(clients.map(client).collect(), seed)))
        },
    },
    Made {
        name: "build-like",
        about: "a compiler beside a search through a large tree",
        parameters: &[
            whole("units", "400", (1, 1 << 18), "compilations"),
            whole("headers", "1500", (1, 1 << 17), "headers that there are"),
            whole("includes", "60", (1, 10_000), "headers of one compilation"),
            whole(
                "compiler-pages",
                "700",
                (1, 1 << 20),
                "pages of the compiler",
            ),
            whole(
                "grep-pages",
                "40000",
                (0, 1 << 26),
                "pages that are searched, each once",
            ),
            SEED,
        ],
        make: |values, _| {
            Ok(Box::new(build_like(&BuildShape {
                seed: values.whole("seed"),
                units: values.small("units"),
                headers: values.small("headers"),
                includes: values.small("includes"),
                compiler_pages: values.whole("compiler-pages"),
                grep_pages: values.whole("grep-pages"),
            })))
        },
    },
    Made {
        name: "dbench",
        about: "clients that each do what dbench's own loadfile says",
        parameters: &[
            Parameter {
                name: "file",
                default: "/usr/share/dbench/client.txt",
                range: Range::File,
                about: "the loadfile; without it that of LARDER_DBENCH",
            },
            CLIENTS,
            SEED,
        ],
        make: loadfile,
    },
];

fn shape(values: &Values) -> Shape {
    Shape {
        seed: values.whole("seed"),
        blocks: values.whole("blocks"),
        records: values.whole("requests"),
        skew: values.real("alpha"),
        touches: values.small("touches"),
    }
}

/// Clients of the loadfile, each with files of its own.
fn loadfile(values: &Values, options: &ReadOptions) -> Result<Records, SimError> {
    let path = values.file("file");
    let mut one: Vec<Record> = Vec::new();
    let room = |fault: String| SimError::TooMuch {
        trace: path.display().to_string(),
        fault,
    };
    let (mut input, _) = Input::open(path)?;
    let mut parser = parser(Format::Dbench, &mut input, options)?;
    let mut sink = Sink::new(options.block_size);
    let mut more = true;
    while more {
        one.try_reserve(BATCH)
            .map_err(|_| room(format!("no memory for more than {} records", one.len())))?;
        more = parser.step(&mut input, &mut sink)?;
        one.append(&mut sink.records);
    }
    if one.is_empty() {
        return Err(SimError::Empty {
            trace: path.display().to_string(),
            bytes: input.offset(),
        });
    }
    let files = 1 + one.iter().map(|record| record.file).max().unwrap_or(0);
    let clients = values.small("clients");
    if u64::from(clients) * u64::from(files) > u64::from(MOST_FILES) {
        return Err(room(format!(
            "{clients} clients of {files} files each are more than {MOST_FILES} files; take fewer clients"
        )));
    }
    let one: Arc<[Record]> = one.into();
    let client = |client: u32| {
        let (one, first) = (Arc::clone(&one), client * files);
        (0..one.len()).map(move |at| {
            let record = one[at];
            Record {
                block: record.block + (u64::from(first) << 40),
                file: record.file + first,
                ..record
            }
        })
    };
    let clients = (0..clients).map(client).collect();
    Ok(Box::new(interleave(clients, values.whole("seed"))))
}
