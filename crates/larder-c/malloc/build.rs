//! How the shared objects are linked: this package's, and that of `larder-malloc-debug`.

fn main() {
    let name = env!("CARGO_PKG_NAME").replace('-', "_");
    println!("cargo::rustc-check-cfg=cfg(lazy_unwinder)");
    let x86_64 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if name == "larder_malloc" && x86_64 {
        println!("cargo::rustc-cfg=lazy_unwinder");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,lib{name}.so");
    for word in [
        // Memory that it gave out must not lose its owner when a program closes what it opened.
        "-Wl,-z,nodelete",
        // Nothing is bound later: binding takes locks of the loader's, and malloc is called under them.
        "-Wl,-z,now",
    ] {
        println!("cargo::rustc-cdylib-link-arg={word}");
    }
}
