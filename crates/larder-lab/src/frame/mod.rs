//! The frame of every experiment: what an experiment declares, and how its cells become a plan, tables, charts,
//! goals and findings.
//!
//! An experiment states what is special to it: the question, the groups of cells, which contestants are larder's, and the comparisons.
//! The frame does the rest: it leaves out and names contestants that this build lacks, finds cells by contestant and factors, writes an
//! estimate where there is one and a bare median elsewhere, and drops empty parts.
//!
//! It relies on [`measure`](crate::measure) for the statistics of a record; [`experiments`](crate::experiments) and their lists
//! of contestants rely on it.

mod bench;
mod chart;
mod curve;
mod declared;
mod finding;
mod goal;
mod plan;
mod results;
mod table;
pub mod words;

pub use bench::{Counted, bench, needing, within};
pub use chart::{line, lines, over};
pub use curve::Curve;
pub use declared::Declared;
pub use finding::{cost, finding, judged, versus, versus_called};
pub use goal::{each, goal, not_measured, undisturbed, worst};
pub use plan::{Planner, Rounds, cross};
pub use results::{
    At, Results, analysis, combined, family, mean_ratio, median_of, ratio_of, shown, together,
};
pub use table::{Column, grid, listing, number, ratios, section, text};
