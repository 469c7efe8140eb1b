//! The cache over files of the system.

use std::path::Path;

use larder_cache::{BlockCache, FileId, Files, Part, Storage};

/// Bytes of a file that ends within a block.
const LEN: usize = 150 * 4096 + 777;

fn byte(at: usize) -> u8 {
    (at / 4096 * 31 + at % 251) as u8
}

fn contents() -> Vec<u8> {
    (0..LEN).map(byte).collect()
}

/// Reads it from front to end and back, changes some blocks, syncs, and looks at what the system has.
fn is_a_file(storage: impl Storage, path: &Path) {
    let size = larder::os::page_size();
    let builder = BlockCache::builder(storage).bytes(64 * size);
    let cache = builder.build().unwrap();
    let file = cache.file(FileId(1)).unwrap();
    let mut expected = contents();
    let mut handle = cache.handle();
    let blocks = LEN.div_ceil(size);
    for index in (0..blocks + 2).chain((0..blocks).rev()) {
        let block = handle.read(&file, index as u64).unwrap();
        for (at, &seen) in (index * size..).zip(block.iter()) {
            let there = expected.get(at).copied().unwrap_or(0);
            assert_eq!(seen, there, "byte {at}");
        }
    }
    // runs of blocks, single ones, and the last one
    for index in (0..60).chain([70, 72, 90, blocks - 1]) {
        let mut block = handle.write(&file, index as u64).unwrap();
        block[..8].copy_from_slice(&index.to_le_bytes());
        expected[index * size..][..8].copy_from_slice(&index.to_le_bytes());
    }
    file.set_end(LEN as u64);
    file.sync().unwrap();
    assert!(std::fs::read(path).unwrap() == expected);
    let stats = cache.stats();
    assert_eq!(
        (stats.read_errors, stats.write_errors, stats.dirty),
        (0, 0, 0)
    );
    assert!(stats.read_ahead > 0);
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, contents()).unwrap();
    (folder, path)
}

fn opened(path: &Path) -> std::fs::File {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}

#[test]
fn files_are_read_and_written_in_runs() {
    let (_folder, path) = file();
    let files = Files::default();
    files.add(FileId(1), opened(&path));
    is_a_file(files, &path);
}

#[test]
fn direct_files_end_within_a_block() {
    let (_folder, path) = file();
    let files = Files::default();
    if let Err(error) = files.open_direct(FileId(1), &path) {
        eprintln!("skipped: {error}");
        return;
    }
    is_a_file(files, &path);
}

#[test]
fn a_batch_is_what_its_parts_are() {
    let (_folder, path) = file();
    let files = Files::default();
    files.add(FileId(1), opened(&path));
    let mut pages = [[0; 100], [0; 100], [0; 100], [0; 100]];
    let [one, two, three, four] = &mut pages;
    // two that follow each other, one that does not, one of a file that is not there, and one at the end
    let mut parts = [
        Part::<&mut [u8]>::new(FileId(1), 5000, one),
        Part::<&mut [u8]>::new(FileId(1), 5100, two),
        Part::<&mut [u8]>::new(FileId(2), 5200, three),
        Part::<&mut [u8]>::new(FileId(1), LEN as u64 - 10, four),
    ];
    files.read_many(&mut parts);
    let done = parts.map(|part| part.done.map(|done| done.unwrap()));
    assert_eq!(done, [Some(100), Some(100), None, Some(10)]);
    for (page, start) in pages.iter().zip([5000, 5100]) {
        assert!(page.iter().zip(start..).all(|(&seen, at)| seen == byte(at)));
    }
    let mut parts = [
        Part::<&[u8]>::new(FileId(1), 7, b"one"),
        Part::<&[u8]>::new(FileId(1), 10, b"two"),
        Part::<&[u8]>::new(FileId(2), 13, b"none"),
        Part::<&[u8]>::new(FileId(1), 8000, b"three"),
    ];
    files.write_many(&mut parts);
    let done = parts.map(|part| part.done.map(|done| done.unwrap()));
    assert_eq!(done, [Some(3), Some(3), None, Some(5)]);
    let all = std::fs::read(path).unwrap();
    assert_eq!(
        (&all[7..13], &all[8000..8005]),
        (&b"onetwo"[..], &b"three"[..])
    );
    assert_eq!(all[13], byte(13));
}

#[test]
fn a_file_that_cannot_be_had_is_named() {
    let files = Files::default();
    let error = files
        .open_direct(FileId(1), "/no/such/file")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/no/such/file") && error.contains("direct I/O"),
        "{error}"
    );
    let error = files.read(FileId(7), 0, &mut [0]).unwrap_err().to_string();
    assert_eq!(
        error,
        "storage: no file was given as number 7; add or open it first"
    );
    assert!(!files.remove(FileId(7)));
}
