//! Tells the program how it was built, for the machine's record.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |v| v.trim().to_owned());
    println!("cargo::rustc-env=LARDER_RUSTC={version}");
    for (name, variable) in [
        ("LARDER_TARGET", "TARGET"),
        ("LARDER_PROFILE", "PROFILE"),
        ("LARDER_OPT_LEVEL", "OPT_LEVEL"),
    ] {
        let value = env::var(variable).unwrap_or_else(|_| "unknown".to_owned());
        println!("cargo::rustc-env={name}={value}");
    }
    // The program lets cargo build the library that it preloads, where that is missing.
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    println!("cargo::rustc-env=LARDER_CARGO={cargo}");
    let home = env::var("CARGO_HOME").unwrap_or_else(|_| {
        let home = env::var("HOME").unwrap_or_default();
        format!("{home}/.cargo")
    });
    println!("cargo::rustc-env=LARDER_CARGO_HOME={home}");
    println!("cargo::rerun-if-changed=build.rs");
}
