//! `calc`: four timings in, the costs of August 2003 out.

use std::io::Write;

use clap::Args;
use serde_json::json;

use super::failure::{Failure, Outcome};
use super::global::Global;
use super::output::{self, print_json};
use crate::calc::{
    Derived, Field, FieldError, Preset, Quantity, Source, derive, find_preset, parse_pages,
    parse_timings, published_presets,
};

/// What allocation, fault, zero-fill and free cost, derived from four timings.
#[derive(Debug, Args)]
#[command(after_help = "\
The four numbers are microseconds per operation, one call to allocate and one to free: \
1 page, 1 page touched, 2 pages, 2 pages touched. Write - for 2 pages if you have not measured them. \
`larder measure zero-fill` measures them here.

Examples:
  larder calc 11.2 24.0 11.5 33.6
  larder calc --machine powerbook --pages 64
  larder calc --list
  larder calc --machine '1 GHz' --json")]
pub(super) struct Calc {
    /// The four timings, microseconds.
    #[arg(
        value_names = ["ALLOC1", "FAULT1", "ALLOC2", "FAULT2"],
        num_args = 4,
        allow_negative_numbers = true,
        required_unless_present_any = ["machine", "list"]
    )]
    timings: Vec<String>,
    /// A machine of the published tables, by any part of its name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["timings", "list"])]
    machine: Option<String>,
    /// The machines of the published tables.
    #[arg(long, conflicts_with = "timings")]
    list: bool,
    /// Pages that are freed in one call.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true
    )]
    pages: String,
}

pub(super) fn run(global: &Global, args: &Calc, out: &mut dyn Write) -> Outcome {
    let presets = published_presets();
    if args.list {
        return list(global, &presets, out);
    }
    let pages = parse_pages(&args.pages).map_err(Failure::usage)?;
    let preset = match &args.machine {
        Some(name) => find_preset(&presets, name).map_err(Failure::usage)?.clone(),
        None => typed(&args.timings)?,
    };
    let costs = derive(&preset.timings);
    if global.json {
        print_json(out, &to_json(&preset, &costs, pages))
    } else {
        print(&preset, &costs, pages, out)
    }
}

fn typed(texts: &[String]) -> Result<Preset, Failure> {
    let [a, b, c, d] = texts else {
        return Err(Failure::usage("calc takes four timings or --machine NAME"));
    };
    let timings = parse_timings([a, b, c, d]).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        Failure::usage(lines.join("\nlarder: "))
    })?;
    Ok(Preset {
        label: "four timings".to_owned(),
        detail: String::new(),
        source: Source::Typed,
        timings,
        fitted: None,
    })
}

fn list(global: &Global, presets: &[Preset], out: &mut dyn Write) -> Outcome {
    if global.json {
        return print_json(out, &json!({ "schema": 1, "machines": presets }));
    }
    let rows = presets.iter().map(|p| {
        let mut row = vec![p.label.clone(), p.detail.clone()];
        row.extend(Field::TIMINGS.map(|f| p.timings.get(f).map_or("-".to_owned(), plain)));
        row
    });
    let heads = ["machine", "about", "1p", "1p + fault", "2p", "2p + fault"];
    output::table(heads, rows.collect(), 2..6, None, out)?;
    writeln!(
        out,
        "Microseconds per operation, as published in August 2003."
    )?;
    Ok(())
}

fn print(preset: &Preset, costs: &Derived, pages: u32, out: &mut dyn Write) -> Outcome {
    writeln!(out, "{} ({})", preset.label, preset.source.label())?;
    if !preset.detail.is_empty() {
        writeln!(out, "{}", preset.detail)?;
    }
    let given = Field::TIMINGS.map(|f| {
        let value = preset.timings.get(f);
        vec![f.label().to_owned(), value.map_or("-".to_owned(), plain)]
    });
    output::table(["timing", "\u{b5}s"], given.into(), 1..2, None, out)?;
    writeln!(out)?;
    let derived = Quantity::ALL.map(|q| {
        let label = match q {
            Quantity::Deallocation if pages == 1 => format!("{}, 1 page", q.label()),
            Quantity::Deallocation => format!("{}, {pages} pages", q.label()),
            _ => q.label().to_owned(),
        };
        let value = costs
            .get(q, pages)
            .map_or("needs 2p alloc".to_owned(), plain);
        vec![label, value, q.formula().to_owned()]
    });
    output::table(
        ["derived", "\u{b5}s", "how"],
        derived.into(),
        1..2,
        None,
        out,
    )?;
    writeln!(out, "A(1) is the allocation of one page, half of 1p alloc.")?;
    if let (Some(free), Some(zero)) = (
        costs.deallocation_as_printed(pages),
        costs.zero_fill_as_printed(),
    ) {
        writeln!(
            out,
            "By the sums as they stand in the text of 2003: deallocation {}, zerofill {}.",
            plain(free),
            plain(zero)
        )?;
    }
    let negative = costs.negative(pages);
    if !negative.is_empty() {
        writeln!(out, "\nThe assumptions of 2003 do not hold here:")?;
        for q in negative {
            writeln!(out, "  {} is negative: {}", q.label(), q.negative_means())?;
        }
    }
    Ok(())
}

/// A value without the noise of binary fractions.
fn plain(v: f64) -> String {
    let rounded = (v * 1e9).round() / 1e9;
    // Minus zero is an odd thing to read.
    (rounded + 0.0).to_string()
}

fn to_json(preset: &Preset, costs: &Derived, pages: u32) -> serde_json::Value {
    let derived: serde_json::Map<_, _> = Quantity::ALL
        .into_iter()
        .map(|q| (q.key().to_owned(), json!(costs.get(q, pages))))
        .collect();
    json!({
        "schema": 1,
        "unit": "us",
        "machine": preset.label,
        "detail": preset.detail,
        "source": preset.source,
        "timings": preset.timings,
        "pages": pages,
        "derived": derived,
        "as_printed": {
            "deallocation": costs.deallocation_as_printed(pages),
            "zero_fill": costs.zero_fill_as_printed(),
        },
        "negative": costs.negative(pages),
        "missing": costs.missing(),
    })
}
