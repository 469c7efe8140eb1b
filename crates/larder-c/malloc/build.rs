//! How the shared objects are linked: this package's, and that of `larder-malloc-debug`.

fn main() {
    let name = env!("CARGO_PKG_NAME").replace('-', "_");
    println!("cargo::rustc-check-cfg=cfg(lazy_unwinder, ordered)");
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
    // Another linker than the usual ones may not read such a file.
    let asked_for =
        std::env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if name == "larder_malloc" && x86_64 && !asked_for && std::env::var_os("RUSTC_LINKER").is_none()
    {
        let order = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("order.ld");
        println!("cargo::rustc-cfg=ordered");
        println!("cargo::rerun-if-changed={}", order.display());
        println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{}", order.display());
    }
}
