//! What is simulated: a workload by Zipf's law, in memory or as a file that both simulators read.

use std::path::Path;

use anyhow::{Context, ensure};

use crate::model::Params;
use crate::sim::{Encoder, Format, Loaded, NextUse, Output, ReadOptions, Record};

/// The workload of a cell.
pub(super) fn load(params: &Params) -> anyhow::Result<Loaded> {
    let (blocks, requests) = (params.count("blocks")?, params.count("requests")?);
    ensure!(
        blocks > 0 && requests > 0,
        "{requests} requests for {blocks} blocks were asked for; both must be at least 1"
    );
    let seed = params.count("seed")?;
    let name = format!("zipf:blocks={blocks},requests={requests},seed={seed}");
    let options = ReadOptions::default();
    Ok(Loaded::read(Path::new(&name), &options, |_| {})?)
}

/// Writes it as oracleGeneral, compressed as the name says: 24 bytes a request, with the request at which its block is used next.
pub(super) fn write(trace: &Loaded, path: &Path) -> anyhow::Result<()> {
    let lost = || format!("{} cannot be written", path.display());
    let next = NextUse::of(trace)?;
    let mut encoder = Encoder::new(Format::OracleGeneral, false);
    let mut out = Output::create(path).with_context(lost)?;
    let mut bytes = Vec::new();
    let mut at = 0;
    for chunk in &trace.chunks {
        bytes.clear();
        for &block in &chunk.blocks {
            let record = Record {
                block: chunk.originals.of(block),
                bytes: 4096,
                ..Record::default()
            };
            encoder
                .record(&record, next.after(at).map(u64::from), &mut bytes)
                .map_err(anyhow::Error::msg)?;
            at += 1;
        }
        out.write(&bytes).with_context(lost)?;
    }
    out.finish().with_context(lost)
}
