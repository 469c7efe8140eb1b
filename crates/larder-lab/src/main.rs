//! The program `larder`: everything it does lives in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    larder_lab::cli::main()
}
