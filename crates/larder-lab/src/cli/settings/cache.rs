//! The file's part about block caches: `larder sim` writes it, the lab's runs write the rest, and neither loses what the other wrote.

use std::io::ErrorKind;
use std::path::Path;

use toml::{Table, Value};

use super::file::validate;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::output;

/// A rule and a size for a block cache.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct CacheChoice {
    pub(in crate::cli) policy: String,
    pub(in crate::cli) bytes: u64,
    /// Why this rule, in a sentence.
    pub(in crate::cli) because: String,
}

/// Writes the part about block caches into a settings file, which is made if it is not there.
pub(in crate::cli) fn write_cache(path: &Path, choice: &CacheChoice) -> Outcome {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => "version = 1\n".to_owned(),
        Err(error) => {
            return Err(Failure::io(format!(
                "cannot read settings file {}: {error}",
                path.display()
            )));
        }
    };
    let refused = |why| Failure::io(format!("{}: {why}", path.display()));
    validate(&text).map_err(refused)?;
    let text = join(&parts(&text).0, &choice.to_toml());
    validate(&text).map_err(refused)?;
    output::write_file(path, &text)
}

/// Writes a settings file's text, with the part about block caches of the file that was there.
pub(super) fn write_keeping_cache(path: &Path, text: &str) -> Outcome {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let kept = join(text, &parts(&before).1);
    // What is no settings file has nothing to be kept.
    let text = if validate(&kept).is_ok() { &kept } else { text };
    output::write_file(path, text)
}

fn join(rest: &str, cache: &str) -> String {
    if cache.is_empty() {
        return rest.to_owned();
    }
    format!("{}\n\n{cache}", rest.trim_end())
}

/// A file's text without its part about block caches, and that part. Lines go as they are, comments too.
fn parts(text: &str) -> (String, String) {
    let (mut rest, mut cache) = (String::new(), String::new());
    let mut in_cache = false;
    for line in text.lines() {
        if let Some(head) = line.trim().strip_prefix('[') {
            let head = head.split(']').next().unwrap_or_default().trim();
            in_cache = ["cache", "evidence.cache"]
                .iter()
                .any(|own| head == *own || head.starts_with(&format!("{own}.")));
        }
        let part = if in_cache { &mut cache } else { &mut rest };
        *part += line;
        *part += "\n";
    }
    (rest, cache)
}

impl CacheChoice {
    fn to_toml(&self) -> String {
        let string = |text: &str| Value::String(text.to_owned());
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        let table = |pairs: [(&str, Value); 2]| {
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
            Value::Table(Table::from_iter(pairs))
        };
        let within = |name: &str, value| Value::Table(Table::from_iter([(name.to_owned(), value)]));
        // A string of several lines could hold one that looks like a table's head to `parts`.
        let because = self.because.replace(char::is_control, " ");
        let evidence = table([("run", string("sim")), ("because", string(&because))]);
        let root = Table::from_iter([
            (
                "cache".to_owned(),
                table([
                    ("policy", string(&self.policy)),
                    ("bytes", Value::Integer(bytes)),
                ]),
            ),
            (
                "evidence".to_owned(),
                within("cache", within("policy", evidence)),
            ),
        ]);
        toml::to_string(&root).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder::settings::Settings;

    fn choice() -> CacheChoice {
        CacheChoice {
            policy: "lirs".to_owned(),
            bytes: 1 << 20,
            because: "the \"best\"\n[pages]".to_owned(),
        }
    }

    #[test]
    fn both_writers_keep_what_the_other_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("larder.toml");
        assert!(write_cache(&path, &choice()).is_ok());
        let measured = "# measured\nversion = 1\n[pages]\nprezero = true\n\n[evidence.pages.prezero]\nrun = \"1\"\n";
        assert!(write_keeping_cache(&path, measured).is_ok());
        let kept = Settings::read(&path).unwrap();
        assert_eq!(kept.cache().bytes, Some(1 << 20));
        assert!(kept.pages().prezero);
        let later = CacheChoice {
            bytes: 1 << 21,
            ..choice()
        };
        assert!(write_cache(&path, &later).is_ok());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# measured\n"), "{text}");
        let read = Settings::read(&path).unwrap();
        assert!(read.pages().prezero);
        assert_eq!(read.cache().bytes, Some(1 << 21));
        assert_eq!(read.cache().policy.as_deref(), Some("lirs"));
        assert!(read.evidence("pages", "prezero").is_some());
        let because = read.evidence("cache", "policy").unwrap().because.clone();
        assert_eq!(because, "the \"best\" [pages]");
    }

    #[test]
    fn what_is_no_settings_file_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "[cache]\nmine = 1\n").unwrap();
        assert!(write_cache(&path, &choice()).is_err());
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "[cache]\nmine = 1\n");
    }
}
