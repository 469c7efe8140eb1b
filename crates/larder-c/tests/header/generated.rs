//! `include/larder.h` is what cbindgen makes of the sources. `LARDER_BLESS=1` writes it anew.

use std::path::Path;

/// Sources in the order in which a reader of the header wants them. None declares modules: cbindgen would read these twice.
const SOURCES: [&str; 30] = [
    "error.rs",
    "version.rs",
    "options.rs",
    "pool.rs",
    "page_handle.rs",
    "run.rs",
    "helper.rs",
    "stats.rs",
    "arena/named.rs",
    "arena/options.rs",
    "arena/request.rs",
    "arena/source.rs",
    "arena/shared.rs",
    "arena/own.rs",
    "arena/walk.rs",
    "arena/stats.rs",
    "ids.rs",
    "objects/family.rs",
    "objects/cache_options.rs",
    "objects/cache.rs",
    "objects/cache_handle.rs",
    "objects/cache_stats.rs",
    "heap/classes.rs",
    "heap/one_owner.rs",
    "blocks/storage.rs",
    "blocks/cache_options.rs",
    "blocks/cache.rs",
    "blocks/file.rs",
    "blocks/handle.rs",
    "sqlite.rs",
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
        "larder.h is not what the sources say (line {}); LARDER_BLESS=1 cargo test -p larder-c --test header up_to_date",
        differs.map_or(made.lines().count().min(there.lines().count()), |n| n) + 1
    );
}

/// All sources of the library, whatever folder they are in.
fn sources(folder: &Path, to: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, to);
        } else {
            to.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_function_of_the_library_is_in_the_header_and_says_what_it_asks_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/larder.h")).unwrap();
    let mut texts = Vec::new();
    sources(&root.join("src"), &mut texts);
    let mut functions = 0;
    for text in &texts {
        for (at, _) in text.match_indices("#[unsafe(no_mangle)]") {
            let (declaration, _) = text[at..]
                .split_once('(')
                .unwrap()
                .1
                .split_once('(')
                .unwrap();
            let name = declaration.rsplit(' ').next().unwrap();
            let declared =
                [' ', '*'].map(|before| header.matches(&format!("{before}{name}(")).count());
            assert_eq!(declared.iter().sum::<usize>(), 1, "declarations of {name}");
            let comment = text[..at].rsplit("\n\n").next().unwrap();
            assert!(
                !declaration.contains("unsafe extern") || comment.contains("# Safety"),
                "{name} does not say what its caller must promise"
            );
            functions += 1;
        }
    }
    assert!(functions >= 140, "only {functions} functions were found");
}

#[test]
fn the_documentation_names_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../../docs/c-api.md")).unwrap();
    let mut texts = Vec::new();
    sources(&root.join("src"), &mut texts);
    // In the tables a function stands whole, or as an ending behind the first of its row.
    let rows: Vec<(String, String)> = guide
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|line| {
            let cells = line.split('|').nth(2)?.to_owned();
            let first = cells.split('`').nth(1)?.to_owned();
            Some((first, cells))
        })
        .collect();
    for text in &texts {
        for (at, _) in text.match_indices("#[unsafe(no_mangle)]") {
            let (declaration, _) = text[at..]
                .split_once('(')
                .unwrap()
                .1
                .split_once('(')
                .unwrap();
            let name = declaration.rsplit(' ').next().unwrap();
            let told = guide.contains(&format!("`{name}`"))
                || rows.iter().any(|(first, cells)| {
                    cells.split('`').skip(1).step_by(2).any(|ending| {
                        ending.starts_with('_')
                            && name.ends_with(ending)
                            && first.starts_with(&name[..name.len() - ending.len()])
                    })
                });
            assert!(told, "{name} is not in docs/c-api.md");
        }
    }
}
