//! The name of a run: a hash of its content, so that importing twice changes nothing.

use crate::machine::fnv1a_wide;
use crate::model::RunRecord;

/// Version of the layout of [`RunRecord`] that this program writes.
pub const SCHEMA: u32 = 1;

/// The identifier of a record: 32 hexadecimal digits, FNV-1a over 128 bits of the record's JSON without its id,
/// with the keys of every object in alphabetical order.
///
/// It names content, it does not defend against a forger.
#[must_use]
pub fn id_of(run: &RunRecord) -> String {
    // A record is plain data with text keys: it cannot fail to become JSON.
    let mut json = serde_json::to_value(run).unwrap_or_default();
    if let Some(object) = json.as_object_mut() {
        object.remove("id");
    }
    sort(&mut json);
    format!("{:032x}", fnv1a_wide(json.to_string().as_bytes()))
}

/// Keys in alphabetical order, whatever order the JSON library keeps in this build.
fn sort(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(map) => {
            let mut entries: Vec<_> = std::mem::take(map).into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            for (key, mut value) in entries {
                sort(&mut value);
                map.insert(key, value);
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(sort),
        // SQLite keeps no negative zero.
        serde_json::Value::Number(n) if n.as_f64() == Some(0.0) && n.is_f64() => *json = 0.0.into(),
        _ => {}
    }
}
