//! `include/larder.h` is what cbindgen makes of the sources. `LARDER_BLESS=1` writes it anew.

#![allow(clippy::unwrap_used)] // Also in the helpers of the tests.

use std::path::Path;

/// Sources in the order in which a reader of the header wants them.
const SOURCES: [&str; 8] = [
    "error.rs",
    "version.rs",
    "options.rs",
    "pool.rs",
    "page_handle.rs",
    "run.rs",
    "helper.rs",
    "stats.rs",
];

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src").join(source));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/larder.h");
    if std::env::var_os("LARDER_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(there.lines()).position(|(a, b)| a != b);
    assert!(
        made == there,
        "larder.h is not what the sources say (line {}); LARDER_BLESS=1 cargo test -p larder-c --test header",
        differs.map_or(made.lines().count().min(there.lines().count()), |n| n) + 1
    );
}

#[test]
fn every_function_of_the_library_is_in_the_header() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/larder.h")).unwrap();
    let mut functions = 0;
    for entry in std::fs::read_dir(root.join("src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for (at, _) in text.match_indices("#[unsafe(no_mangle)]") {
            let name = text[at..]
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split_once('('))
                .map(|(name, _)| name)
                .unwrap();
            assert!(header.contains(&format!("{name}(")), "{name} is missing");
            functions += 1;
        }
    }
    assert!(functions >= 30, "only {functions} functions were found");
}
