//! A malloc that the user names reaches the worker's process, and one that does not is not measured in its name.

use std::path::PathBuf;
use std::time::Duration;

use larder_lab::experiments::object_caches::OBJECT_CACHES;
use larder_lab::measure::{InProcess, Interrupt, LaunchError, Launcher, OwnProcess};
use larder_lab::model::{Cell, Measures, Params};

fn cell(library: &str) -> Cell {
    let params = Params::new()
        .with_text("shape", "pair")
        .with("bytes", 64)
        .with("turns", 1000)
        .with_text("library", library);
    Cell::new("preloaded", params)
}

fn launched(library: &str) -> Result<Measures, LaunchError> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_larder"));
    let mut launcher = OwnProcess::of(program, &Interrupt::new());
    launcher.launch(&OBJECT_CACHES, &cell(library), Duration::from_secs(100))
}

/// A library that is there and that this program does not load by itself: made with the C compiler that the build needs.
fn library(folder: &std::path::Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("count.c"), folder.join("libcount.so"));
    std::fs::write(&source, "int larder_test_library;\n").ok()?;
    let made = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    made.is_ok_and(|status| status.success()).then_some(library)
}

#[test]
fn the_named_library_is_loaded_into_the_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = library(folder.path()) else {
        eprintln!("skipped: there is no C compiler");
        return;
    };
    let library = library.to_string_lossy();
    let measures = launched(&library).expect("loaded");
    assert!(measures.get("ns_per_pair").is_some_and(|ns| ns > 0.0));
    // This process was not started with it.
    let here = InProcess.launch(&OBJECT_CACHES, &cell(&library), Duration::from_secs(100));
    let why = here.expect_err("not loaded").to_string();
    assert!(why.contains("was not loaded"), "{why}");
}

#[test]
fn what_the_linker_cannot_load_is_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("libnone.so");
    std::fs::write(&file, "no library").expect("a file");
    let why = launched(&file.to_string_lossy())
        .expect_err("no library")
        .to_string();
    assert!(why.contains("was not loaded"), "{why}");
    let why = launched("/no/such/library.so")
        .expect_err("no file")
        .to_string();
    assert!(why.contains("cannot be found"), "{why}");
}

#[test]
fn snmalloc_is_built_and_measured_where_its_source_is() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_larder"));
    let run = command
        .args(["measure", "alloc-workloads", "--group=larson"])
        .args([
            "--contestant=preloaded",
            "--rounds=1",
            "--no-save",
            "--json",
        ])
        .env("HOME", home.path())
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env_remove("LARDER_PRELOAD")
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&run.stderr);
    if !said.contains("larder: builds snmalloc with ") {
        eprintln!(
            "skipped: there is no source or no compiler of snmalloc, or it is installed: {said}"
        );
        return;
    }
    assert!(run.status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let text = json["runs"][0]["run"]["samples"].to_string();
    assert!(text.contains("libsnmallocshim.so"), "{text}");
}
