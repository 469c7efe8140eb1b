//! `machine`: what the lab knows of this machine.

use std::io::Write;

use clap::Args;
use serde_json::json;

use super::failure::Outcome;
use super::global::Global;
use super::output::print_json;
use crate::machine;
use crate::model::Field;

/// What the lab records of this machine: no host name, no user name.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  larder machine
  larder machine --json | jq -r .machine.fingerprint")]
pub(super) struct Machine {}

pub(super) fn run(global: &Global, _: &Machine, out: &mut dyn Write) -> Outcome {
    let record = machine::capture();
    if global.json {
        return print_json(out, &json!({ "schema": 1, "machine": record }));
    }
    let width = record.fields.keys().map(String::len).max().unwrap_or(0);
    writeln!(out, "{:<width$}  {}", "fingerprint", record.fingerprint)?;
    for (name, field) in &record.fields {
        match field {
            Field::Known(v) => writeln!(out, "{name:<width$}  {v}")?,
            Field::Unknown(why) => writeln!(out, "{name:<width$}  unknown: {why}")?,
        }
    }
    Ok(())
}
