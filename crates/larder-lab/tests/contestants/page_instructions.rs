//! The count of instructions, by the program itself under valgrind.

use std::process::Command;

fn worker(supplier: &str) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_larder"))
        .args([
            "worker",
            "--experiment",
            "page-pool",
            "--contestant",
            "instructions",
        ])
        .args(["--params", &format!("{{\"supplier\":\"{supplier}\"}}")])
        .output()
        .expect("the program runs")
}

#[test]
fn counts_a_pair_or_says_what_to_install() {
    let output = worker("pool-handle");
    let said = String::from_utf8_lossy(&output.stderr);
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(!output.status.success());
        assert!(said.contains("install"), "{said}");
        eprintln!("skipped: valgrind is not installed");
        return;
    }
    assert!(output.status.success(), "{said}");
    let measures: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let count = measures["instructions"].as_f64().expect("a count");
    // A pair is more than the loop and less than a thousand, in any build.
    assert!((8.0..1000.0).contains(&count), "{count}");
}

#[test]
fn an_unknown_supplier_is_named() {
    let output = worker("nobody");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("nobody") || said.contains("valgrind"),
        "{said}"
    );
}
