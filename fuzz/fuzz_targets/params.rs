//! The factors of a cell, as the lab passes them to its worker process on the command line.

#![no_main]

use larder_fuzz::mutate_from;
use larder_lab::model::{Factor, Measures, Params};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const GOOD: [&str; 4] = [
    "{}",
    r#"{"allocations":65536,"pool":64}"#,
    r#"{"shape":"deep","depth":256,"write":"page"}"#,
    r#"{"n":-9223372036854775808,"t":"a\u0000\"b"}"#,
];

fn seeds() -> Vec<String> {
    GOOD.map(str::to_owned).to_vec()
}

fn good_ones_are_read() {
    for text in GOOD {
        let read = serde_json::from_str::<Params>(text);
        assert!(read.is_ok(), "{text}: {read:?}");
    }
}

fuzz_target!(init: good_ones_are_read(), |text: &str| {
    if let Ok(params) = serde_json::from_str::<Params>(text) {
        for (name, factor) in params.iter() {
            match factor {
                Factor::Int(n) => {
                    assert_eq!(params.int(name).ok(), Some(*n));
                    assert_eq!(params.count(name).ok(), usize::try_from(*n).ok());
                    assert!(params.text(name).is_err());
                }
                Factor::Text(t) => {
                    assert_eq!(params.text(name).ok(), Some(t.as_str()));
                    assert!(params.int(name).is_err());
                }
            }
        }
        let _ = params.to_string();
        let again = serde_json::to_string(&params).expect("factors are plain data");
        assert_eq!(serde_json::from_str::<Params>(&again).ok(), Some(params));
    }
    // A worker's answer comes from another process, so it is input too.
    if let Ok(measures) = serde_json::from_str::<Measures>(text) {
        let again = serde_json::to_string(&measures).expect("measures are plain data");
        assert_eq!(serde_json::from_str::<Measures>(&again).ok(), Some(measures));
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_from(&seeds(), data, size, max_size, seed)
});
