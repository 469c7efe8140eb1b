//! What the readers of `/proc` and `/sys` fill.

use std::collections::BTreeMap;

use super::Root;
use crate::model::Field;

/// A value, or why it cannot be read.
pub(super) type Reading = Result<String, String>;

/// Fields by name, as the readers fill them.
#[derive(Default)]
pub(super) struct Fields(pub(super) BTreeMap<String, Field>);

impl Fields {
    pub(super) fn put(&mut self, name: &str, reading: Reading) {
        let field = match reading {
            Ok(value) => Field::Known(value),
            Err(why) => Field::Unknown(why),
        };
        self.0.insert(name.to_owned(), field);
    }

    /// Several fields, each from the file at its path.
    pub(super) fn put_files(&mut self, root: &Root, files: &[(&str, &str)]) {
        for (name, path) in files {
            self.put(name, root.value(path));
        }
    }
}
