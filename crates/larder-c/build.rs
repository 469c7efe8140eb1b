//! Gives the shared library the name by which programs look for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The number changes when a function or a struct changes in a way that old programs would not survive.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblarder.so.0");
}
