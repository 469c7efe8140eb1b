//! What a cell reports.

use crate::model::Metric;

pub(super) const SECONDS: &str = "modelled_s";
pub(super) const RATE: &str = "modelled_mb_per_s";
pub(super) const HITS: &str = "hit_percent";
pub(super) const FIRST: &str = "first_hit_percent";
pub(super) const BARE: &str = "bare_hit_percent";
pub(super) const READ: &str = "pages_read";
pub(super) const WRITTEN: &str = "pages_written";

// A hit is a use that found its page: on the modelled machine, and bare, without readahead, dirty pages and time.
pub(super) const METRICS: &[Metric] = &[
    Metric::cost(SECONDS, "s", "seconds by the model's formula"),
    Metric::rate(RATE, "MB/s", "payload over those seconds"),
    Metric::rate(HITS, "%", "uses that found their page"),
    Metric::rate(FIRST, "%", "of the first client or the build alone"),
    Metric::rate(BARE, "%", "without readahead, dirty pages and time"),
    Metric::cost(READ, "", "pages read from the disk"),
    Metric::cost(WRITTEN, "", "pages written to the disk"),
    Metric::cost("disk_commands", "", "commands to the disk"),
];
