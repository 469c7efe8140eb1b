//! The options that every command has.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The database of results [default: larder.sqlite in the XDG data directory].
    #[arg(long, global = true, env = "LARDER_DB", value_name = "FILE")]
    pub(super) db: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print no progress and no hints on stderr; errors are still printed.
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// Colours: `auto` follows the terminal, NO_COLOR and CLICOLOR_FORCE.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(super) color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}
