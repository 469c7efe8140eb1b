//! How the shared library is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The name by which programs look for it. The number changes when a function or a struct changes in a way that old programs
    // would not survive.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblarder.so.0");
    // When a program closes what it opened, each thread may still have the address of a restartable sequence in the word that the
    // kernel reads, and helper threads run in the library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
