//! How the shared object is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for word in [
        "-Wl,-soname,liblarder_malloc.so",
        // Memory that it gave out must not lose its owner when a program closes what it opened.
        "-Wl,-z,nodelete",
        // Nothing is bound later: binding takes locks of the loader's, and malloc is called under them.
        "-Wl,-z,now",
    ] {
        println!("cargo::rustc-cdylib-link-arg={word}");
    }
}
