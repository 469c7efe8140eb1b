//! The published tables of 2001 to 2003, embedded in the program.
//!
//! Each table is a CSV file of the repository's `published/` folder, parsed once into typed rows.
//! The numbers are their authors' and were taken on their machines: the lab shows them as shapes
//! beside its own and never compares a time with them.
//!
//! ```
//! let cube = larder_lab::published::zerofill_machines()
//!     .iter()
//!     .find(|m| m.cpu_machine.contains("Cube"))
//!     .expect("the table has it");
//! assert_eq!(cube.alloc1_us, 18.1);
//! ```

use std::sync::LazyLock;

use serde::Serialize;

/// Why a table could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The first line is not the expected heading.
    #[error(
        "table {table}: the first line is '{found}', expected '{expected}'; restore the file from the repository"
    )]
    Heading {
        /// File name.
        table: &'static str,
        /// What stands there.
        found: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// A row has too few or too many fields.
    #[error("table {table}, line {line}: {found} fields, expected {expected}")]
    Fields {
        /// File name.
        table: &'static str,
        /// Line number, from 1.
        line: usize,
        /// Fields found.
        found: usize,
        /// Fields expected.
        expected: usize,
    },
    /// A field is not a number.
    #[error("table {table}, line {line}, column {column}: '{found}' is not a number of this table")]
    Number {
        /// File name.
        table: &'static str,
        /// Line number, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// What stands there.
        found: String,
    },
}

/// One cell of Walfield's table 1: elapsed seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WalfieldElapsed {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Pages allocated in the whole run.
    pub allocations: u32,
    /// Elapsed time, seconds.
    pub elapsed_s: f64,
}

/// One cell of the lower half of Walfield's table 1: the standard deviation of at least ten runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WalfieldStddev {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Pages allocated in the whole run.
    pub allocations: u32,
    /// Standard deviation, seconds.
    pub stddev_s: f64,
}

/// One row of Walfield's table 2: the standard error at 1048576 allocations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WalfieldStderr {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Standard error, seconds.
    pub stderr_s_1m: f64,
}

/// One run of Lord's dbench table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LordDbench {
    /// `vanilla` or `use-once`.
    pub kernel: String,
    /// Clients of dbench.
    pub clients: u32,
    /// 1 to 3.
    pub run: u32,
    /// Megabytes a second.
    pub throughput_mb_s: f64,
}

/// One submitted machine of 2003: microseconds per operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZerofillMachine {
    /// Processor and machine, as printed.
    pub cpu_machine: String,
    /// System version, `unknown` where it was not given.
    pub os: String,
    /// Who sent it in.
    pub submitter: String,
    /// One page allocated and freed, microseconds.
    pub alloc1_us: f64,
    /// The same with the page touched, microseconds.
    pub alloc1_fault_us: f64,
    /// Two pages allocated and freed, microseconds; absent in one row.
    pub alloc2_us: Option<f64>,
    /// The same with both pages touched, microseconds.
    pub alloc2_fault_us: f64,
}

/// One cost that was derived from the 1 GHz machine's row in 2003.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZerofillDerived {
    /// Name of the cost, for instance `page_extra_cost`.
    pub quantity: String,
    /// Microseconds, as printed.
    pub us: f64,
}

/// One timing of the 450 MHz Cube in 2003, with two ways to get memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZerofillMmap {
    /// `alloc1`, `alloc1_fault`, `alloc2` or `alloc2_fault`.
    pub operation: String,
    /// With mmap and munmap, microseconds.
    pub mmap_us: f64,
    /// With `vm_allocate` and `vm_deallocate`, microseconds.
    pub vm_allocate_us: f64,
}

/// One row of Franke's first table (2002): searches and microseconds per allocation by algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FrankeGetpid {
    /// Tasks, A in the mail.
    pub tasks: u32,
    /// Tasks deleted and allocated again in each of ten rounds, D in the mail.
    pub deletes: u32,
    /// Allocations measured, T in the mail.
    pub allocations: u32,
    /// Interval searches of algo-0, S0 in the mail.
    pub searches_algo0: u32,
    /// Microseconds per allocation of algo-0, G0 in the mail.
    pub us_algo0: f64,
    /// S1.
    pub searches_algo1: u32,
    /// G1.
    pub us_algo1: f64,
    /// S2.
    pub searches_algo2: u32,
    /// G2.
    pub us_algo2: f64,
}

/// One row of Franke's second table (2002): algo-2 without and with intervals of at most 256.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FrankeLimit256 {
    /// Tasks, A in the mail.
    pub tasks: u32,
    /// Tasks deleted and allocated again in each of ten rounds, D in the mail.
    pub deletes: u32,
    /// Allocations measured, T in the mail.
    pub allocations: u32,
    /// Interval searches of algo-2, S2 in the mail.
    pub searches_algo2: u32,
    /// Microseconds per allocation of algo-2, G2 in the mail.
    pub us_algo2: f64,
    /// S2-256.
    pub searches_algo2_256: u32,
    /// G2-256.
    pub us_algo2_256: f64,
}

/// A row of the mail's single-thread numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MagazineSingle {
    /// What ran.
    pub variant: String,
    /// Million cycles of allocation and free per second.
    pub mcycles_s: f64,
}

/// A cell of the mail's tables by threads: ten million cycles by each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MagazineThreads {
    /// Threads on two processors.
    pub threads: u32,
    /// What ran.
    pub variant: String,
    /// Elapsed time, seconds.
    pub elapsed_s: f64,
    /// Million cycles per second of all threads together, where the mail gives it.
    pub mcycles_s: Option<f64>,
}

/// A line of a table with what an error message about it needs.
struct Line<'a> {
    table: &'static str,
    number: usize,
    columns: &'a [&'static str],
    fields: Vec<&'a str>,
}

impl Line<'_> {
    fn text(&self, i: usize) -> String {
        self.fields[i].to_owned()
    }

    fn bad(&self, i: usize) -> TableError {
        TableError::Number {
            table: self.table,
            line: self.number,
            column: self.columns[i],
            found: self.fields[i].to_owned(),
        }
    }

    fn count(&self, i: usize) -> Result<u32, TableError> {
        self.fields[i].parse().map_err(|_| self.bad(i))
    }

    fn number(&self, i: usize) -> Result<f64, TableError> {
        match self.fields[i].parse::<f64>() {
            Ok(v) if v.is_finite() && v >= 0.0 => Ok(v),
            _ => Err(self.bad(i)),
        }
    }

    fn number_or_absent(&self, i: usize) -> Result<Option<f64>, TableError> {
        if self.fields[i].is_empty() {
            return Ok(None);
        }
        self.number(i).map(Some)
    }
}

/// Reads the plain CSV of these tables: no quotes, no escapes, the heading given in advance.
fn parse<T>(
    table: &'static str,
    heading: &'static str,
    text: &str,
    row: impl Fn(&Line<'_>) -> Result<T, TableError>,
) -> Result<Vec<T>, TableError> {
    let columns: Vec<&'static str> = heading.split(',').collect();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if first != heading {
        return Err(TableError::Heading {
            table,
            found: first.to_owned(),
            expected: heading,
        });
    }
    let mut rows = Vec::new();
    for (i, text) in lines.enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            return Err(TableError::Fields {
                table,
                line: i + 2,
                found: fields.len(),
                expected: columns.len(),
            });
        }
        rows.push(row(&Line {
            table,
            number: i + 2,
            columns: &columns,
            fields,
        })?);
    }
    Ok(rows)
}

macro_rules! embedded {
    ($(#[$doc:meta])* $name:ident, $parse:ident, $row:ty, $file:literal, $heading:literal, $build:expr) => {
        fn $parse(text: &str) -> Result<Vec<$row>, TableError> {
            parse($file, $heading, text, $build)
        }

        $(#[$doc])*
        #[must_use]
        pub fn $name() -> &'static [$row] {
            static ROWS: LazyLock<Vec<$row>> = LazyLock::new(|| {
                // The text is part of the program and a test parses it: this cannot fail at run time.
                $parse(include_str!(concat!("../../../published/", $file)))
                    .unwrap_or_else(|e| unreachable!("embedded {e}"))
            });
            &ROWS
        }
    };
}

embedded!(
    /// Walfield 2001, table 1: 38 pool sizes (0 is unbuffered) by five totals, seconds.
    walfield_elapsed,
    parse_walfield_elapsed,
    WalfieldElapsed,
    "walfield2001_elapsed.csv",
    "pool_pages,allocations,elapsed_s",
    |l| Ok(WalfieldElapsed {
        pool_pages: l.count(0)?,
        allocations: l.count(1)?,
        elapsed_s: l.number(2)?,
    })
);
embedded!(
    /// Walfield 2001, lower half of table 1: standard deviations for eight pool sizes, seconds.
    walfield_stddev,
    parse_walfield_stddev,
    WalfieldStddev,
    "walfield2001_stddev.csv",
    "pool_pages,allocations,stddev_s",
    |l| Ok(WalfieldStddev {
        pool_pages: l.count(0)?,
        allocations: l.count(1)?,
        stddev_s: l.number(2)?,
    })
);
embedded!(
    /// Walfield 2001, table 2: standard errors at 1048576 allocations, seconds.
    walfield_stderr,
    parse_walfield_stderr,
    WalfieldStderr,
    "walfield2001_stderr.csv",
    "pool_pages,stderr_s_1m",
    |l| Ok(WalfieldStderr {
        pool_pages: l.count(0)?,
        stderr_s_1m: l.number(1)?,
    })
);
embedded!(
    /// Zerofilling 2003, part I: seven submitted machines.
    zerofill_machines,
    parse_zerofill_machines,
    ZerofillMachine,
    "zerofill2003_machines.csv",
    "cpu_machine,os,submitter,alloc1_us,alloc1_fault_us,alloc2_us,alloc2_fault_us",
    |l| Ok(ZerofillMachine {
        cpu_machine: l.text(0),
        os: l.text(1),
        submitter: l.text(2),
        alloc1_us: l.number(3)?,
        alloc1_fault_us: l.number(4)?,
        alloc2_us: l.number_or_absent(5)?,
        alloc2_fault_us: l.number(6)?,
    })
);
embedded!(
    /// Zerofilling 2003, part III: the costs derived from the 1 GHz machine's row, as printed.
    zerofill_derived,
    parse_zerofill_derived,
    ZerofillDerived,
    "zerofill2003_derived_1ghz.csv",
    "quantity,us",
    |l| Ok(ZerofillDerived {
        quantity: l.text(0),
        us: l.number(1)?,
    })
);
embedded!(
    /// Zerofilling 2003, part IV: mmap against `vm_allocate` on a 450 MHz Cube.
    zerofill_mmap,
    parse_zerofill_mmap,
    ZerofillMmap,
    "zerofill2003_mmap.csv",
    "operation,mmap_us,vm_allocate_us",
    |l| Ok(ZerofillMmap {
        operation: l.text(0),
        mmap_us: l.number(1)?,
        vm_allocate_us: l.number(2)?,
    })
);

embedded!(
    /// Franke 2002, first table: 87 numbers of tasks, algo-0, algo-1 and algo-2.
    franke_getpid,
    parse_franke_getpid,
    FrankeGetpid,
    "franke2002_getpid.csv",
    "tasks,deletes,allocations,searches_algo0,us_algo0,searches_algo1,us_algo1,searches_algo2,us_algo2",
    |l| Ok(FrankeGetpid {
        tasks: l.count(0)?,
        deletes: l.count(1)?,
        allocations: l.count(2)?,
        searches_algo0: l.count(3)?,
        us_algo0: l.number(4)?,
        searches_algo1: l.count(5)?,
        us_algo1: l.number(6)?,
        searches_algo2: l.count(7)?,
        us_algo2: l.number(8)?,
    })
);
embedded!(
    /// Franke 2002, second table: the same rows, algo-2 without and with the bound of 256.
    franke_limit256,
    parse_franke_limit256,
    FrankeLimit256,
    "franke2002_limit256.csv",
    "tasks,deletes,allocations,searches_algo2,us_algo2,searches_algo2_256,us_algo2_256",
    |l| Ok(FrankeLimit256 {
        tasks: l.count(0)?,
        deletes: l.count(1)?,
        allocations: l.count(2)?,
        searches_algo2: l.count(3)?,
        us_algo2: l.number(4)?,
        searches_algo2_256: l.count(5)?,
        us_algo2_256: l.number(6)?,
    })
);

embedded!(
    /// The mail on magazines for Parrot: million cycles per second of one thread.
    magazine_single,
    parse_magazine_single,
    MagazineSingle,
    "magazine_single.csv",
    "variant,mcycles_s",
    |l| Ok(MagazineSingle {
        variant: l.text(0),
        mcycles_s: l.number(1)?,
    })
);
embedded!(
    /// The mail on magazines for Parrot: seconds by threads and variant.
    magazine_threads,
    parse_magazine_threads,
    MagazineThreads,
    "magazine_threads.csv",
    "threads,variant,elapsed_s,mcycles_s",
    |l| Ok(MagazineThreads {
        threads: l.count(0)?,
        variant: l.text(1),
        elapsed_s: l.number(2)?,
        mcycles_s: l.number_or_absent(3)?,
    })
);

embedded!(
    /// Lord 2001: dbench throughput by kernel and clients, three runs each. NetBench's number is 1.25 times the first.
    lord_dbench,
    parse_lord_dbench,
    LordDbench,
    "lord2001_dbench.csv",
    "kernel,clients,run,throughput_mb_s,netbench_mb_s",
    |l| Ok(LordDbench {
        kernel: l.text(0),
        clients: l.count(1)?,
        run: l.count(2)?,
        throughput_mb_s: l.number(3)?,
    })
);

#[cfg(test)]
mod tests;
