//! Workloads by name.

use larder_sim::{ReadOptions, workload::MADE, workload::Spec};

/// Every workload but that of a file, with all its parameters as they are without being said, and some as users write them.
pub fn seeds() -> Vec<String> {
    let whole = MADE
        .iter()
        .filter(|made| made.name != "dbench")
        .map(|made| {
            let parameters = made.parameters.iter();
            let given: Vec<String> = parameters
                .map(|parameter| format!("{}={}", parameter.name, parameter.default))
                .collect();
            format!("{}:{}", made.name, given.join(","))
        });
    let some = ["zipf:alpha=0.9", "loop:blocks=1e3, requests=2.5e3", "scan:"];
    whole.chain(some.map(str::to_owned)).collect()
}

/// Reads a name, and makes the first records of the workload.
pub fn check(text: &str) {
    // That one opens the file which it is told.
    if text.starts_with("dbench:") {
        return;
    }
    match Spec::parse(text) {
        Ok(None) => {}
        Ok(Some(spec)) => {
            let records = spec.records(&ReadOptions::default());
            let records = records.unwrap_or_else(|why| panic!("{text}: {why}"));
            let mut before = None::<u32>;
            for record in records.take(2_000) {
                let step = before.map_or(0, |before| record.request.wrapping_sub(before));
                assert!(step <= 1, "{text}: requests out of order");
                before = Some(record.request);
            }
        }
        Err(why) => {
            let name = text.split(':').next().unwrap_or_default();
            assert!(why.to_string().contains(name), "{why}");
        }
    }
}
