//! The settings file: TOML with the value of each setting and its evidence.

use std::collections::BTreeMap;

use larder::settings::Settings as Read;
use serde_json::json;
use toml::{Table, Value};

use crate::model::{Analysis, Recommendation, RunRecord};
use crate::report::Supported;
use crate::stats::Estimate;

/// Settings with where they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings<'r> {
    entries: Vec<Entry<'r>>,
    refused: Vec<String>,
}

#[derive(Debug, Clone)]
struct Entry<'r> {
    run: &'r RunRecord,
    recommended: &'r Recommendation,
    value: Value,
}

impl<'r> Settings<'r> {
    /// The recommendations of some runs; where two recommend the same key, the first run has its way. A noisy run has
    /// none: what it recommends is in [`refused`](Self::refused).
    ///
    /// # Errors
    /// A recommendation that the library would not take: an error of the experiment, reported rather than written.
    pub(super) fn from_runs(analysed: &'r [(RunRecord, Analysis)]) -> Result<Self, String> {
        let supported = Supported::by(analysed);
        let entries = supported.settings.into_iter().map(|(run, r)| entry(run, r));
        let refused = supported.too_noisy.into_iter().map(|(run, all, why)| {
            let keys: Vec<&str> = all.iter().map(|r| r.key.as_str()).collect();
            let keys = keys.join(", ");
            format!(
                "{keys} not set: run {} of {} is noisy. {why}",
                run.id, run.experiment
            )
        });
        let settings = Self {
            entries: entries.collect::<Result<_, _>>()?,
            refused: refused.collect(),
        };
        if !settings.is_empty() {
            validate(&settings.to_toml())?;
        }
        Ok(settings)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One sentence for each noisy run whose recommendations are not taken.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// The file's text.
    pub(super) fn to_toml(&self) -> String {
        let mut values: BTreeMap<String, Table> = BTreeMap::new();
        let mut evidence: BTreeMap<String, Table> = BTreeMap::new();
        for e in &self.entries {
            let (section, key) = e.split();
            let put = |tables: &mut BTreeMap<String, Table>, value| {
                let table = tables.entry(section.to_owned()).or_default();
                table.insert(key.to_owned(), value);
            };
            put(&mut values, e.value.clone());
            put(&mut evidence, e.evidence());
        }
        let tables = |of: BTreeMap<String, Table>| {
            of.into_iter()
                .map(|(name, table)| (name, Value::Table(table)))
                .collect::<Table>()
        };
        let mut root = Table::new();
        root.insert("version".to_owned(), Value::Integer(1));
        root.extend(tables(values));
        // Values first, as a reader looks for them; the evidence below.
        let evidence = Table::from_iter([("evidence".to_owned(), Value::Table(tables(evidence)))]);
        let text = |t: &Table| toml::to_string(t).unwrap_or_default();
        format!(
            "# Measured by `larder measure`, written by `larder settings`.\n{}\n{}\n{}",
            self.entries.iter().map(Entry::comment).collect::<String>(),
            text(&root),
            text(&evidence)
        )
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let list: Vec<_> = self
            .entries
            .iter()
            .map(|e| {
                let ratio = e
                    .ratio()
                    .map(|e| json!({ "value": e.value, "lo": e.lo, "hi": e.hi }));
                json!({
                    "key": e.recommended.key,
                    "value": e.value,
                    "because": e.recommended.because,
                    "ratio": ratio,
                    "run": e.run.id,
                    "machine": e.run.machine.fingerprint,
                    "date": e.run.started,
                    "depth": e.run.depth,
                    "noise": noise(e.run),
                })
            })
            .collect();
        json!({ "schema": 1, "settings": list, "refused": self.refused })
    }
}

impl Entry<'_> {
    fn split(&self) -> (&str, &str) {
        let key = &self.recommended.key;
        key.split_once('.').unwrap_or(("pages", key))
    }

    /// The evidence's interval, where it is one.
    fn ratio(&self) -> Option<Estimate> {
        let finite = |e: &Estimate| [e.value, e.lo, e.hi].iter().all(|v| v.is_finite());
        self.recommended.evidence.filter(finite)
    }

    /// The depth and the noise of the run behind it: a comment, because libraries of today refuse keys of evidence that
    /// they do not know.
    fn comment(&self) -> String {
        let (key, run) = (&self.recommended.key, self.run);
        let line = format!("{key}: {} run {}; {}", run.depth, run.id, noise(run));
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        format!("# {line}\n")
    }

    fn evidence(&self) -> Value {
        let mut t = Table::new();
        let mut put = |key: &str, value| t.insert(key.to_owned(), value);
        put("run", Value::String(self.run.id.clone()));
        put("because", Value::String(self.recommended.because.clone()));
        if let Some(ratio) = self.ratio() {
            put("ratio", Value::Float(ratio.value));
            put("lo", Value::Float(ratio.lo));
            put("hi", Value::Float(ratio.hi));
        }
        put("date", Value::String(self.run.started.clone()));
        put(
            "machine",
            Value::String(self.run.machine.fingerprint.clone()),
        );
        Value::Table(t)
    }
}

fn entry<'r>(run: &'r RunRecord, r: &'r Recommendation) -> Result<Entry<'r>, String> {
    let parsed: Table = toml::from_str(&format!("value = {}", r.value)).map_err(|e| {
        format!(
            "experiment '{}' recommends {} = {}, which is no TOML value: {e}",
            run.experiment, r.key, r.value
        )
    })?;
    let value = parsed.get("value").cloned();
    Ok(Entry {
        run,
        recommended: r,
        value: value.ok_or_else(|| format!("'{}' is empty", r.key))?,
    })
}

/// What disturbed the run, in a few words.
fn noise(run: &RunRecord) -> String {
    let marked = run.samples.iter().filter(|s| s.is_noisy()).count();
    let of_samples = format!("{marked} of {} samples disturbed", run.samples.len());
    match (run.noise.others_percent, run.noise.cpu_pressure_percent) {
        (Some(p), _) => format!("quiet: others took {p:.1} % of the CPU time, {of_samples}"),
        (None, Some(p)) => format!("quiet: CPU pressure {p:.1} %, {of_samples}"),
        (None, None) => "not known".to_owned(),
    }
}

/// Whether the library takes this text: its own reader is asked, so that the two can never disagree.
pub(super) fn validate(text: &str) -> Result<(), String> {
    text.parse::<Read>().map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MachineRecord;

    fn run() -> RunRecord {
        RunRecord {
            schema: 1,
            id: "0123abcd".to_owned(),
            experiment: "e".to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            depth: "quick".to_owned(),
            machine: MachineRecord {
                fingerprint: "feed\nversion = 7".to_owned(),
                ..MachineRecord::default()
            },
            ..RunRecord::default()
        }
    }

    fn says(key: &str, value: &str) -> (RunRecord, Analysis) {
        let r = Recommendation {
            key: key.to_owned(),
            value: value.to_owned(),
            because: "the \"best\"\n[pages]".to_owned(),
            evidence: Some(Estimate {
                value: 1.0,
                lo: 0.98,
                hi: 1.02,
                n: 10,
                level: 0.95,
            }),
        };
        let a = Analysis {
            recommendations: vec![r],
            ..Analysis::default()
        };
        (run(), a)
    }

    #[test]
    fn a_file_carries_values_and_evidence_and_is_valid() {
        let runs = [
            says("pages.cluster_pages", "512"),
            says("pages.cluster_pages", "64"),
            says("pages.zeroing", "\"avx2\""),
            says("pages.prezero", "false"),
            says("malloc.cache_bytes", "\"auto\""),
        ];
        let text = Settings::from_runs(&runs).unwrap().to_toml();
        assert_eq!(validate(&text), Ok(()), "{text}");
        let t: Table = toml::from_str(&text).unwrap();
        assert_eq!(t["pages"]["cluster_pages"].as_integer(), Some(512));
        assert_eq!(t["pages"]["zeroing"].as_str(), Some("avx2"));
        assert_eq!(t["malloc"]["cache_bytes"].as_str(), Some("auto"));
        let e = &t["evidence"]["pages"]["cluster_pages"];
        assert_eq!(e["run"].as_str(), Some("0123abcd"));
        assert_eq!(e["lo"].as_float(), Some(0.98));
        assert_eq!(e["because"].as_str(), Some("the \"best\"\n[pages]"));
        assert_eq!(e["machine"].as_str(), Some("feed\nversion = 7"));
        assert_eq!(t["version"].as_integer(), Some(1));
    }

    #[test]
    fn each_setting_names_its_depth_and_the_noise_of_its_run() {
        let mut said = says("pages.cluster_pages", "64");
        said.0.noise.others_percent = Some(0.34);
        said.0.id = "01\nversion = 7".to_owned();
        let runs = [said];
        let settings = Settings::from_runs(&runs).unwrap();
        let text = settings.to_toml();
        let noise = "quiet: others took 0.3 % of the CPU time, 0 of 0 samples disturbed";
        let line = format!("# pages.cluster_pages: quick run 01version = 7; {noise}");
        assert!(text.lines().any(|l| l == line), "{text}");
        let json = settings.to_json();
        assert_eq!(json["settings"][0]["depth"], "quick");
        assert_eq!(json["settings"][0]["noise"], noise);
    }

    #[test]
    fn a_noisy_run_sets_nothing_and_says_so_in_one_line() {
        let mut noisy = says("pages.cluster_pages", "64");
        noisy.0.noise.noisy = true;
        noisy.0.noise.warnings = vec!["Others wanted it.".to_owned()];
        let quiet = says("pages.prezero", "true");
        let runs = [noisy, quiet];
        let settings = Settings::from_runs(&runs).unwrap();
        let text = settings.to_toml();
        assert!(
            !text.contains("cluster_pages") && text.contains("prezero = true"),
            "{text}"
        );
        let [why] = settings.refused() else {
            panic!("one line: {:?}", settings.refused());
        };
        assert!(!why.contains('\n'));
        assert!(
            why.contains("cluster_pages") && why.contains("0123abcd"),
            "{why}"
        );
        assert!(why.contains("Others wanted it."), "{why}");
    }

    #[test]
    fn what_the_library_would_refuse_is_not_written() {
        for (key, value, part) in [
            ("pages.cluster_pages", "0", "cluster_pages"),
            ("pages.cluster_pages", "\"x\"", "cluster_pages"),
            ("pages.zeroing", "\"magic\"", "zeroing"),
            ("pages.prezero", "1", "boolean"),
            ("pages.colour", "1", "colour"),
            ("malloc.decay_ms", "\"soon\"", "malloc.decay_ms"),
            ("heap.x", "1", "heap"),
            ("pages.prezero", "", "no TOML value"),
        ] {
            let why = Settings::from_runs(&[says(key, value)]).unwrap_err();
            assert!(why.contains(part), "{key} = {value}: {why}");
        }
    }
}
