//! Batches through io_uring.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use larder_cache::{BlockCache, FileId, Files, Part, Storage, Uring};

const FILE: FileId = FileId(1);
/// Bytes of a file that ends within a block.
const LEN: usize = 200 * 4096 + 123;

fn byte(at: usize) -> u8 {
    (at / 4096 * 31 + at % 251) as u8
}

fn made() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    let all: Vec<u8> = (0..LEN).map(byte).collect();
    std::fs::write(&path, all).unwrap();
    (folder, path)
}

fn plain(path: &Path) -> Files {
    let files = Files::default();
    let file = File::options().read(true).write(true).open(path).unwrap();
    files.add(FILE, file);
    files
}

/// The ring, or nothing and a line where the kernel has none for us.
fn ring(files: Files) -> Option<Uring> {
    Uring::new(files)
        .map_err(|error| eprintln!("skipped: {error}"))
        .ok()
}

/// A storage that a test can look at while a cache has it.
struct Watched(Arc<Uring>);

impl Storage for Watched {
    fn read(&self, file: FileId, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(file, offset, into)
    }
    fn write(&self, file: FileId, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.0.write(file, offset, from)
    }
    fn sync(&self, file: FileId) -> io::Result<()> {
        self.0.sync(file)
    }
    fn read_many(&self, parts: &mut [Part<&mut [u8]>]) {
        self.0.read_many(parts);
    }
    fn write_many(&self, parts: &mut [Part<&[u8]>]) {
        self.0.write_many(parts);
    }
}

fn is_a_file(ring: Uring, path: &Path) {
    let ring = Arc::new(ring);
    let size = larder::os::page_size();
    let builder = BlockCache::builder(Watched(Arc::clone(&ring))).bytes(256 * size);
    let cache = builder.build().unwrap();
    let file = cache.file(FILE).unwrap();
    let mut handle = cache.handle();
    for index in 0..LEN.div_ceil(size) {
        let block = handle.read(&file, index as u64).unwrap();
        for (at, &seen) in (index * size..).zip(block.iter()) {
            assert_eq!(seen, if at < LEN { byte(at) } else { 0 }, "byte {at}");
        }
    }
    // one submission each: 1 with 4, then with 8, 16, and six times with 32 ahead
    assert_eq!(ring.submissions(), 9);
    for index in 0..100 {
        handle.write(&file, index).unwrap().fill(index as u8);
    }
    let last = LEN / size;
    handle.write(&file, last as u64).unwrap()[0] = 77;
    file.set_end(LEN as u64);
    file.sync().unwrap();
    // 64 and 37
    assert_eq!(ring.submissions(), 11);
    let all = std::fs::read(path).unwrap();
    assert_eq!(all.len(), LEN);
    for (at, &seen) in all.iter().enumerate() {
        let expected = match at / size {
            index if index < 100 => index as u8,
            _ if at == last * size => 77,
            _ => byte(at),
        };
        assert_eq!(seen, expected, "byte {at}");
    }
}

#[test]
fn files_through_a_ring_are_files() {
    let (_folder, path) = made();
    if let Some(ring) = ring(plain(&path)) {
        is_a_file(ring, &path);
    }
}

#[test]
fn direct_files_through_a_ring_are_files() {
    let (_folder, path) = made();
    let files = Files::default();
    if let Err(error) = files.open_direct(FILE, &path) {
        eprintln!("skipped: {error}");
        return;
    }
    if let Some(ring) = ring(files) {
        is_a_file(ring, &path);
    }
}

#[test]
fn what_a_ring_cannot_do_is_left_to_be_tried() {
    let (_folder, path) = made();
    let files = Files::default();
    files.add(FILE, File::open(&path).unwrap());
    let Some(ring) = ring(files) else {
        return;
    };
    let mut pages = [[0; 10], [0; 10], [9; 10]];
    let [one, two, three] = &mut pages;
    let mut parts = [
        Part::<&mut [u8]>::new(FILE, 5000, one),
        Part::<&mut [u8]>::new(FileId(2), 0, two),
        Part::<&mut [u8]>::new(FILE, LEN as u64 - 4, three),
    ];
    ring.read_many(&mut parts);
    let done = parts.map(|part| part.done.map(|done| done.unwrap()));
    assert_eq!(done, [Some(10), None, Some(4)]);
    assert!(
        pages[0]
            .iter()
            .zip(5000..)
            .all(|(&seen, at)| seen == byte(at))
    );
    assert_eq!(pages[2][4..], [9; 6]);
    // opened for reading only: the ordinary way says why
    let mut parts = [
        Part::<&[u8]>::new(FILE, 0, b"no"),
        Part::<&[u8]>::new(FILE, 2, b"no"),
    ];
    ring.write_many(&mut parts);
    assert!(parts.iter().all(|part| part.done.is_none()));
    assert!(ring.write(FILE, 0, b"no").is_err());
}

#[test]
fn threads_have_a_ring_each() {
    let (_folder, path) = made();
    let Some(ring) = ring(plain(&path)) else {
        return;
    };
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let ring = &ring;
            threads.spawn(move || {
                for round in 0..20 {
                    let mut pages = vec![[0; 100]; 150];
                    let places = (0..150).map(|at| (at * 5003 + thread * 7 + round) as u64);
                    let mut parts: Vec<Part<&mut [u8]>> = pages
                        .iter_mut()
                        .zip(places.clone())
                        .map(|(page, at)| Part::new(FILE, at, &mut page[..]))
                        .collect();
                    ring.read_many(&mut parts);
                    assert!(parts.iter().all(|part| matches!(part.done, Some(Ok(100)))));
                    for (page, start) in pages.iter().zip(places) {
                        let expected = (start as usize..).map(byte);
                        assert!(page.iter().zip(expected).all(|(&seen, byte)| seen == byte));
                    }
                }
            });
        }
    });
    assert_eq!(ring.submissions(), 4 * 20 * 3);
}
