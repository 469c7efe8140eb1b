//! A file that is written completely or not at all, compressed as its name says.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The destination of bytes.
pub struct Output {
    kind: Kind,
    /// The file under its temporary name, and its own.
    names: Option<(PathBuf, PathBuf)>,
}

enum Kind {
    Plain(Box<dyn Write>),
    Gz(flate2::write::GzEncoder<Box<dyn Write>>),
    Xz(liblzma::write::XzEncoder<Box<dyn Write>>),
    Zst(zstd::stream::write::Encoder<'static, Box<dyn Write>>),
    Closed,
}

impl Output {
    /// Opens a file, or standard output for `-`. `.gz`, `.xz` and `.zst` compress. The file appears under its name only when
    /// [`finish`](Self::finish) was called.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                kind: Kind::Plain(Box::new(BufWriter::new(io::stdout()))),
                names: None,
            });
        }
        let in_place = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = if in_place {
            path.to_owned()
        } else {
            PathBuf::from(part)
        };
        let file: Box<dyn Write> =
            Box::new(BufWriter::with_capacity(1 << 18, File::create(&part)?));
        let kind = match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => Kind::Gz(flate2::write::GzEncoder::new(
                file,
                flate2::Compression::default(),
            )),
            Some("xz") => Kind::Xz(liblzma::write::XzEncoder::new(file, 6)),
            Some("zst") => Kind::Zst(zstd::stream::write::Encoder::new(file, 3)?),
            _ => Kind::Plain(file),
        };
        Ok(Self {
            kind,
            names: (!in_place).then(|| (part, path.to_owned())),
        })
    }

    /// Appends.
    ///
    /// # Errors
    /// Those of the system: a disk that is full.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            Kind::Plain(w) => w.write_all(bytes),
            Kind::Gz(w) => w.write_all(bytes),
            Kind::Xz(w) => w.write_all(bytes),
            Kind::Zst(w) => w.write_all(bytes),
            Kind::Closed => Ok(()),
        }
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// Those of the system; then there is no file.
    pub fn finish(mut self) -> io::Result<()> {
        let mut file = match core::mem::replace(&mut self.kind, Kind::Closed) {
            Kind::Plain(w) => w,
            Kind::Gz(w) => w.finish()?,
            Kind::Xz(w) => w.finish()?,
            Kind::Zst(w) => w.finish()?,
            Kind::Closed => return Ok(()),
        };
        file.flush()?;
        drop(file);
        if let Some((part, path)) = &self.names {
            std::fs::rename(part, path)?;
            self.names = None;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.names {
            // An unfinished file is removed.
            let _ = std::fs::remove_file(part);
        }
    }
}
