//! How this program was built, and the C library below it.

use super::fields::{Fields, Reading};

pub(super) fn read(fields: &mut Fields) {
    for (name, value) in [
        ("build.rustc", env!("LARDER_RUSTC")),
        ("build.target", env!("LARDER_TARGET")),
        ("build.profile", env!("LARDER_PROFILE")),
        ("build.opt_level", env!("LARDER_OPT_LEVEL")),
        ("build.version", env!("CARGO_PKG_VERSION")),
    ] {
        fields.put(name, Ok(value.to_owned()));
    }
    fields.put("libc.version", libc_version());
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Reading {
    // SAFETY: glibc returns a pointer to a constant string that ends in zero.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Ok(format!("glibc {}", text.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Reading {
    Err("the C library does not tell its version".to_owned())
}
