//! How this program was built, and the C library below it.

use std::ffi::CStr;

use super::capture::Fields;
use crate::model::Field;

pub(super) fn read(fields: &mut Fields) {
    let mut add = |name: &str, value: &str| {
        fields.insert(name.to_owned(), Field::Known(value.to_owned()));
    };
    add("build.rustc", env!("LARDER_RUSTC"));
    add("build.target", env!("LARDER_TARGET"));
    add("build.profile", env!("LARDER_PROFILE"));
    add("build.opt_level", env!("LARDER_OPT_LEVEL"));
    add("build.version", env!("CARGO_PKG_VERSION"));
    fields.insert("libc.version".to_owned(), libc_version());
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Field {
    // SAFETY: glibc returns a pointer to a constant string that ends in zero.
    let text = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    Field::Known(format!("glibc {}", text.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Field {
    let _: Option<&CStr> = None;
    Field::Unknown("the C library does not tell its version".to_owned())
}
