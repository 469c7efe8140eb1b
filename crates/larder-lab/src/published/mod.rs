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

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One cell of Walfield's table 1: elapsed seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WalfieldElapsed {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Pages allocated in the whole run.
    pub allocations: u32,
    /// Elapsed time, seconds.
    pub elapsed_s: f64,
}

/// One cell of the lower half of Walfield's table 1: the standard deviation of at least ten runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WalfieldStddev {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Pages allocated in the whole run.
    pub allocations: u32,
    /// Standard deviation, seconds.
    pub stddev_s: f64,
}

/// One row of Walfield's table 2: the standard error at 1048576 allocations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WalfieldStderr {
    /// Pages per pool; 0 is unbuffered.
    pub pool_pages: u32,
    /// Standard error, seconds.
    pub stderr_s_1m: f64,
}

/// One run of Lord's dbench table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// One build of a kernel in Lord's second table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LordBuild {
    /// `vanilla` or `use-once`.
    pub kernel: String,
    /// CPU time in the user's code, seconds.
    pub user_s: f64,
    /// CPU time in the kernel, seconds.
    pub system_s: f64,
    /// Elapsed time, seconds.
    pub elapsed_s: f64,
    /// Page faults.
    pub page_faults: u32,
}

/// One submitted machine of 2003: microseconds per operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ZerofillMachine {
    /// Processor and machine, as printed.
    pub cpu_machine: String,
    /// System version, `unknown` where it was not given.
    pub os: String,
    /// The sender.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ZerofillDerived {
    /// Name of the cost, for instance `page_extra_cost`.
    pub quantity: String,
    /// Microseconds, as printed.
    pub us: f64,
}

/// One timing of the 450 MHz Cube in 2003, with two ways to get memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ZerofillMmap {
    /// `alloc1`, `alloc1_fault`, `alloc2` or `alloc2_fault`.
    pub operation: String,
    /// With mmap and munmap, microseconds.
    pub mmap_us: f64,
    /// With `vm_allocate` and `vm_deallocate`, microseconds.
    pub vm_allocate_us: f64,
}

/// One row of Franke's first table (2002): searches and microseconds per allocation by algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MagazineSingle {
    /// What ran.
    pub variant: String,
    /// Million cycles of allocation and free per second.
    pub mcycles_s: f64,
}

/// A cell of the mail's tables by threads: ten million cycles by each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Reads a table: every column of a row's type by its name, columns beyond them left out.
fn parse<T: DeserializeOwned>(text: &str) -> csv::Result<Vec<T>> {
    csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes())
        .deserialize()
        .collect()
}

macro_rules! embedded {
    ($($(#[$doc:meta])* $name:ident: $row:ty = $file:literal;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name() -> &'static [$row] {
            static ROWS: LazyLock<Vec<$row>> = LazyLock::new(|| {
                // The text is part of the program and a test reads it: this cannot fail at run time.
                parse(include_str!(concat!("../../published/", $file)))
                    .unwrap_or_else(|e| unreachable!("{}: {e}", $file))
            });
            &ROWS
        }
    )*};
}

embedded! {
    /// Walfield 2001, table 1: 38 pool sizes (0 is unbuffered) by five totals, seconds.
    walfield_elapsed: WalfieldElapsed = "walfield2001_elapsed.csv";
    /// Walfield 2001, lower half of table 1: standard deviations for eight pool sizes, seconds.
    walfield_stddev: WalfieldStddev = "walfield2001_stddev.csv";
    /// Walfield 2001, table 2: standard errors at 1048576 allocations, seconds.
    walfield_stderr: WalfieldStderr = "walfield2001_stderr.csv";
    /// Zerofilling 2003, part I: seven submitted machines.
    zerofill_machines: ZerofillMachine = "zerofill2003_machines.csv";
    /// Zerofilling 2003, part III: the costs derived from the 1 GHz machine's row, as printed.
    zerofill_derived: ZerofillDerived = "zerofill2003_derived_1ghz.csv";
    /// Zerofilling 2003, part IV: mmap against `vm_allocate` on a 450 MHz Cube.
    zerofill_mmap: ZerofillMmap = "zerofill2003_mmap.csv";
    /// Franke 2002, first table: 87 numbers of tasks, algo-0, algo-1 and algo-2.
    franke_getpid: FrankeGetpid = "franke2002_getpid.csv";
    /// Franke 2002, second table: the same rows, algo-2 without and with the bound of 256.
    franke_limit256: FrankeLimit256 = "franke2002_limit256.csv";
    /// The mail on magazines for Parrot: million cycles per second of one thread.
    magazine_single: MagazineSingle = "magazine_single.csv";
    /// The mail on magazines for Parrot: seconds by threads and variant.
    magazine_threads: MagazineThreads = "magazine_threads.csv";
    /// Lord 2001: dbench throughput by kernel and clients, three runs each. NetBench's number is 1.25 times the first.
    lord_dbench: LordDbench = "lord2001_dbench.csv";
    /// Lord 2001: a kernel built under each kernel, two runs each.
    lord_build: LordBuild = "lord2001_build.csv";
}

#[cfg(test)]
mod tests;
