//! Every format: read right, found by looking, and refused with a place when it is broken.

use std::io::Write;

use super::samples::{self, BLOCKS, DBENCH, all, lcs};
use larder_sim::{Encoder, Format, Kind, Loaded, ReadOptions, Record, SimError, Trace};

fn options(format: Option<Format>) -> ReadOptions {
    ReadOptions {
        format,
        ..ReadOptions::default()
    }
}

fn read(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Format, Vec<Record>), SimError> {
    let mut trace = Trace::over(name, std::io::Cursor::new(bytes.to_vec()), options)?;
    let mut records = Vec::new();
    while trace.fill(&mut records)? {}
    Ok((trace.format().unwrap(), records))
}

fn fault(bytes: &[u8], format: Option<Format>) -> String {
    match read("t", bytes, &options(format)) {
        Ok((format, records)) => panic!("read as {} with {} records", format.name(), records.len()),
        Err(e) => e.to_string(),
    }
}

#[test]
fn every_format_gives_its_blocks() {
    for (format, bytes) in all() {
        let (_, records) = read("t", &bytes, &options(Some(format)))
            .unwrap_or_else(|e| panic!("{}: {e}", format.name()));
        if matches!(
            format,
            Format::Twitter | Format::Fio | Format::Blkparse | Format::Strace | Format::Dbench
        ) {
            continue;
        }
        let blocks: Vec<u64> = records.iter().map(|r| r.block).collect();
        assert_eq!(blocks, BLOCKS, "{}", format.name());
        let requests: Vec<u32> = records.iter().map(|r| r.request).collect();
        assert_eq!(requests, [0, 1, 2, 3, 4, 5, 6, 7], "{}", format.name());
    }
}

#[test]
fn keys_of_twitter_are_names_and_operations_are_kinds() {
    let text = "0,b,17,213,4,get,0\n0,a,17,213,5,gets,0\n1,b,17,9,4,set,60\n2,a,17,0,4,delete,0\n";
    let (format, records) = read("t", text.as_bytes(), &options(None)).unwrap();
    assert_eq!(format, Format::Twitter);
    let all: Vec<_> = records
        .iter()
        .map(|r| (r.block, r.bytes, r.tenant, r.kind))
        .collect();
    assert_eq!(
        all,
        [
            (0, 213, 4, Kind::Read),
            (1, 213, 5, Kind::Read),
            (0, 9, 4, Kind::Write),
            (1, 0, 4, Kind::Remove)
        ]
    );
}

#[test]
fn formats_are_found_by_looking_or_asked_for() {
    for (format, bytes) in all() {
        let found = read("t", &bytes, &options(None));
        let bare = matches!(
            format,
            Format::U32le
                | Format::U32be
                | Format::I32le
                | Format::I32be
                | Format::U64le
                | Format::U64be
                | Format::I64le
                | Format::I64be
        );
        match found {
            Ok((found, _)) if !bare => assert_eq!(found, format),
            Ok((found, _)) => panic!("{} was taken for {}", format.name(), found.name()),
            Err(e) => assert!(
                bare && e.to_string().contains("--format"),
                "{}: {e}",
                format.name()
            ),
        }
        // A name that says it helps where nothing can be seen.
        let name = format!("dir.d/trace.{}.zst", format.name());
        assert_eq!(
            read(&name, &bytes, &options(None)).unwrap().0,
            format,
            "{name}"
        );
    }
}

#[test]
fn compressed_traces_are_the_same_and_truncated_ones_are_refused() {
    let (_, text) = all().into_iter().find(|(f, _)| *f == Format::Txt).unwrap();
    let text = text.repeat(5000);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&text).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&text).unwrap();
    let packed = [
        gz.finish().unwrap(),
        xz.finish().unwrap(),
        zstd::encode_all(&text[..], 1).unwrap(),
    ];
    let plain = read("t", &text, &options(None)).unwrap();
    assert_eq!(plain.1.len(), 40_000);
    for bytes in packed {
        assert_eq!(read("t", &bytes, &options(None)).unwrap(), plain);
        // Two members one after the other, as `cat a.gz b.gz` makes them.
        assert_eq!(
            read("t", &bytes.repeat(2), &options(None)).unwrap().1.len(),
            80_000
        );
        for cut in [7, bytes.len() / 2, bytes.len() - 5] {
            let e = fault(&bytes[..cut], Some(Format::Txt));
            assert!(e.contains("reading failed after"), "{cut}: {e}");
        }
    }
}

#[test]
fn binary_traces_that_end_within_a_record_are_refused_with_the_byte() {
    for (format, bytes) in all() {
        let width = match format {
            Format::OracleGeneral => 24,
            Format::Lcs => 28,
            Format::Vscsi1 => 32,
            Format::Vscsi2 => 40,
            Format::U32le | Format::U32be | Format::I32le | Format::I32be => 4,
            Format::U64le | Format::U64be | Format::I64le | Format::I64be => 8,
            _ => continue,
        };
        let e = fault(&bytes[..bytes.len() - 1], Some(format));
        let at = bytes.len() - width;
        assert!(
            e.contains(&format!("byte {at}:")) && e.contains("truncated"),
            "{}: {e}",
            format.name()
        );
    }
}

#[test]
fn records_before_an_impossible_next_use_are_read() {
    let bytes = all()
        .into_iter()
        .find(|(format, _)| *format == Format::OracleGeneral);
    let (format, mut bytes) = bytes.unwrap();
    let mut set = |record: usize, next: i64| {
        bytes[record * 24 + 16..][..8].copy_from_slice(&next.to_le_bytes());
    };
    set(2, i64::MAX);
    set(5, -2);
    let mut trace = Trace::over("t", std::io::Cursor::new(bytes), &options(Some(format))).unwrap();
    let mut records = Vec::new();
    let e = loop {
        match trace.fill(&mut records) {
            Ok(more) => assert!(more, "read to its end"),
            Err(e) => break e.to_string(),
        }
    };
    assert!(e.contains("byte 120: the next access is -2"), "{e}");
    let blocks: Vec<u64> = records.iter().map(|record| record.block).collect();
    assert_eq!(blocks, BLOCKS[..5]);
}

#[test]
fn lcs_of_every_version_is_read_and_its_promise_kept() {
    for version in 1..=8 {
        let bytes = lcs(version, if version < 3 { 1024 } else { 8192 });
        let (_, records) = read("t", &bytes, &options(None)).unwrap();
        assert_eq!(
            records.iter().map(|r| r.block).collect::<Vec<_>>(),
            BLOCKS,
            "{version}"
        );
        assert_eq!(
            records[1].kind,
            if version >= 2 {
                Kind::Write
            } else {
                Kind::Read
            }
        );
        assert_eq!(records[0].tenant, if version >= 2 { 9 } else { 0 });
        assert_eq!(records[0].bytes, 512);
    }
    assert!(fault(&lcs(3, 1024), None).contains("does not go with a header of 1024"));
    let mut many = lcs(2, 1024);
    many[24] += 1;
    assert!(fault(&many, None).contains("promises 9 requests, but 8"));
    let mut unknown = lcs(2, 8192);
    unknown[8] = 9;
    assert!(fault(&unknown, None).contains("version 9 is not known"));
    assert!(fault(&lcs(1, 1024)[..900], None).contains("second magic word"));
}

#[test]
fn wrong_lines_are_named() {
    for (format, text, place, why) in [
        (Format::Txt, "1\n2\n-3\n", "line 3", "negative"),
        (
            Format::Txt,
            "1\n99999999999999999999\n",
            "line 2",
            "64 bits",
        ),
        (Format::Txt, "1\n2 3\n", "line 2", "one number"),
        (Format::Txt, "1\nx\n", "line 2", "no whole number"),
        (
            Format::Arc,
            "1 1 0 0\n1 1 0\n",
            "line 2",
            "request is missing",
        ),
        (Format::Arc, "1 0 0 0\n", "line 1", "is 0"),
        (
            Format::Arc,
            "1 1 0 0\n5 99999999999 0 1\n",
            "line 2",
            "broken trace",
        ),
        (
            Format::Arc,
            "18446744073709551615 2 0 0\n",
            "line 1",
            "64 bits",
        ),
        (
            Format::Spc,
            "0,8,4096,r,0.5\n0,8,4096,x,0.5\n",
            "line 2",
            "opcode",
        ),
        (
            Format::Spc,
            "0,18446744073709551615,4096,r,0.5\n",
            "line 1",
            "64 bits",
        ),
        (Format::Spc, "0,8,4096,r,-1\n", "line 1", "no time"),
        (
            Format::Spc,
            "0,8,999999999999,r,1\n",
            "line 1",
            "broken trace",
        ),
        (Format::Spc, "99999999,8,4096,r,1\n", "line 1", "told apart"),
        (Format::Msr, "1,h,0,Read,0,4096\n", "line 1", "6 columns"),
        (
            Format::Alibaba,
            "1,R,0,4096,1577808144360767\n1,r,0,4096,5\n",
            "line 2",
            "not R or W",
        ),
        (
            Format::Alibaba,
            "99999999999,R,0,4096,1577808144360767\n",
            "line 1",
            "too large",
        ),
        (
            Format::Tencent,
            "1538323199,0,8,2,7\n",
            "line 1",
            "not 0 or 1",
        ),
        (
            Format::Tencent,
            "1538323199,18446744073709551615,8,0,7\n",
            "line 1",
            "64 bits",
        ),
        (
            Format::Twitter,
            "0,k,1,1,4,touch,0\n",
            "line 1",
            "no operation",
        ),
        (
            Format::Twitter,
            "0,k,1,1,4,get\n",
            "line 1",
            "6 columns instead of 7",
        ),
        (
            Format::Webcachesim,
            "1 2 3\n1 2\n",
            "line 2",
            "size (column 3) is missing",
        ),
        (
            Format::Webcachesim,
            "1 2 3 4\n",
            "line 1",
            "more than three",
        ),
        (
            Format::Msr,
            "1,h,0,Reed,0,4096,1\n",
            "line 1",
            "not Read or Write",
        ),
        (
            Format::Fio,
            "fio version 4 iolog\n",
            "line 1",
            "begins with",
        ),
        (
            Format::Fio,
            "fio version 2 iolog\n/a read 5\n",
            "line 2",
            "length is missing",
        ),
        (
            Format::Fio,
            "fio version 3 iolog\n/a read 0 5\n",
            "line 2",
            "the time is",
        ),
        (
            Format::Blkparse,
            "8,0 1 1 0.5 1 C R 1 + 1 [x]\n",
            "line 1",
            "none of the 1 events",
        ),
        (
            Format::Blkparse,
            "8;0 1 1 0.5 1 Q R 1 + 1 [x]\n",
            "line 1",
            "no device",
        ),
        (Format::Strace, "1 read(3, \"x\n", "line 1", "do not end"),
        (Format::Strace, "1 read(3, \"x\", 1)\n", "line 1", "result"),
        (Format::Strace, "hello\n", "line 1", "no line of strace"),
        (
            Format::Dbench,
            "Flush 1 NT_STATUS_OK\nReedX 1 2 3 4 NT_STATUS_OK\n",
            "line 2",
            "\"ReedX\" is no operation",
        ),
        (
            Format::Dbench,
            "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nReadX 1 0 99999999999 1 NT_STATUS_OK\n",
            "line 2",
            "taken for a mistake",
        ),
        (Format::Csv, "time,id\n1,2\n1\n", "line 3", "columns"),
        (Format::Csv, "time,id\n1,-2\n", "line 2", "negative"),
        (Format::Csv, "id,op\n1,jump\n", "line 2", "operation"),
        (Format::Csv, "time,what\n1,2\n", "line 1", "--columns"),
        (Format::Csv, "id,key\n1,2\n", "line 1", "two columns"),
    ] {
        let e = fault(text.as_bytes(), Some(format));
        assert!(
            e.contains(place) && e.contains(why),
            "{}: {text:?}: {e}",
            format.name()
        );
    }
}

#[test]
fn empty_and_unclear_traces_are_refused() {
    assert!(fault(b"", None).contains("no request"));
    assert!(fault(b"", Some(Format::Txt)).contains("no request"));
    assert!(fault(b"*\n*\n", Some(Format::Txt)).contains("no request"));
    assert!(fault(b"\n\n", None).contains("--format"));
    assert!(fault(b"what is this\n", None).contains("fits its first lines"));
    for (text, nearest) in [
        ("0,1,512,R,0.1\n0,x,512,R,0.2\n", "spc, but line 2: "),
        ("5\n6\n-7\n", "txt, but line 3: the block is -7: neg"),
        ("time,id\n1,2\n1\n", "csv, but line 3: "),
    ] {
        let e = fault(text.as_bytes(), None);
        assert!(
            e.contains(&format!("nearest is {nearest}")),
            "{text:?}: {e}"
        );
    }
    assert!(!fault(b"what is this\n", None).contains("nearest"));
    assert!(fault(&[0, 1, 2, 3, 4, 5, 6], None).contains("binary"));
    assert!(fault(&[b'x'; 3_000_000], Some(Format::Txt)).contains("longer than"));
    // A file that fits several formats is asked about: all zero bytes are times and blocks, too.
    let e = fault(&[&[0; 16][..], &[0xff; 8]].concat(), Some(Format::Lcs));
    assert!(e.contains("magic"), "{e}");
}

#[test]
fn ranges_become_blocks_of_one_request() {
    let text = "0,15,8192,w,1.5\n1,0,1,R,2\n0,0,0,r,3\n";
    let (format, records) = read("t", text.as_bytes(), &options(None)).unwrap();
    assert_eq!(format, Format::Spc);
    let brief: Vec<_> = records
        .iter()
        .map(|r| (r.block, r.request, r.bytes, r.file, r.kind, r.time))
        .collect();
    assert_eq!(
        brief,
        [
            (1, 0, 512, 0, Kind::Write, 1_500_000),
            (2, 0, 4096, 0, Kind::Write, 1_500_000),
            (3, 0, 3584, 0, Kind::Write, 1_500_000),
            (1 << 40, 1, 1, 1, Kind::Read, 2_000_000),
        ]
    );
    let wide = ReadOptions {
        block_size: 65536,
        ..options(None)
    };
    let blocks: Vec<u64> = read("t", text.as_bytes(), &wide)
        .unwrap()
        .1
        .iter()
        .map(|r| r.block)
        .collect();
    assert_eq!(blocks, [0, 1 << 40]);
    let (_, arc) = read("t", b"10 3 0 0\n7 1 0 0\n", &options(None)).unwrap();
    let brief: Vec<_> = arc.iter().map(|r| (r.block, r.request)).collect();
    assert_eq!(brief, [(10, 0), (11, 0), (12, 0), (7, 1)]);
}

#[test]
fn strace_follows_positions_processes_and_files() {
    let (format, records) = read("t", samples::STRACE.as_bytes(), &options(None)).unwrap();
    assert_eq!(format, Format::Strace);
    let at = |file: u64, page: u64| (file << 40) | page;
    let brief: Vec<_> = records
        .iter()
        .map(|r| (r.block, r.request, r.kind, r.tenant))
        .collect();
    use Kind::{Read, Remove, Write};
    assert_eq!(
        brief,
        [
            (at(0, 0), 0, Read, 0),
            (at(0, 1), 1, Read, 0), // from 4096 to 9096
            (at(0, 2), 1, Read, 0),
            (at(0, 0), 2, Read, 0), // pread does not move
            (at(0, 0), 3, Read, 1), // the child, from the shared position 0
            (at(0, 0), 4, Read, 1), // and on, from 1 to 4097
            (at(0, 1), 4, Read, 1),
            (at(1, 0), 5, Write, 0),
            (at(1, 1), 5, Write, 0),
            (at(0, 1), 6, Read, 0), // mapped from 4096 on
            (at(0, 2), 6, Read, 0),
            (at(1, 0), 7, Remove, 0),
            (at(1, 1), 7, Remove, 0),
        ]
    );
}

#[test]
fn a_mapping_is_read_whole_or_not_at_all() {
    let read_blocks = |mapped| {
        let options = ReadOptions {
            mapped,
            ..options(None)
        };
        let (_, records) = read("t", samples::STRACE.as_bytes(), &options).unwrap();
        records.iter().map(|r| r.block).collect::<Vec<_>>()
    };
    let (with, without) = (read_blocks(true), read_blocks(false));
    let at = with.len() - 4; // before the two pages that unlink removes
    assert_eq!(with[at..at + 2], [1, 2]);
    assert_eq!([&with[..at], &with[at + 2..]].concat(), without);
}

#[test]
fn a_mapping_ends_with_the_file_where_its_size_was_seen() {
    let uses = |before: &str, len: u64| {
        let text = format!(
            "1 openat(AT_FDCWD</tmp>, \"a\", O_RDWR) = 3</tmp/a>\n{before}\
             1 mmap(NULL, {len}, PROT_READ, MAP_SHARED, 3</tmp/a>, 0) = 0x7f0000000000\n"
        );
        let read = read("t", text.as_bytes(), &options(Some(Format::Strace)));
        read.map(|(_, records)| records.len())
    };
    for stat in [
        "1 fstat(3</tmp/a>, {st_mode=S_IFREG|0644, st_size=100000, ...}) = 0\n",
        "1 newfstatat(3</tmp/a>, \"\", {st_mode=S_IFREG|0644, st_size=100000, ...}, AT_EMPTY_PATH) = 0\n",
        "1 statx(3</tmp/a>, \"\", AT_STATX_SYNC_AS_STAT|AT_EMPTY_PATH, STATX_ALL, \
         {stx_mask=STATX_ALL, stx_mode=S_IFREG|0644, stx_size=100000, ...}) = 0\n",
    ] {
        assert_eq!(uses(stat, 1 << 30).unwrap(), 25, "{stat}");
        assert_eq!(uses(stat, 8 << 30).unwrap(), 25, "{stat}");
        // What is allocated later is a part of the file.
        let grown = format!("{stat}1 fallocate(3</tmp/a>, 0, 0, 200000) = 0\n");
        assert_eq!(uses(&grown, 1 << 30).unwrap(), 49, "{stat}");
    }
    assert_eq!(uses("", 1 << 20).unwrap(), 256);
    let said = uses("", 8 << 30).unwrap_err().to_string();
    assert!(
        said.contains("line 2") && said.contains("--mmap none"),
        "{said}"
    );
}

#[test]
fn four_numbers_a_line_are_arc_where_the_third_is_zero() {
    for text in ["1 5 100 1\n2 6 100 0\n", "10 3 0 0\n7 1 4 1\n"] {
        let said = fault(text.as_bytes(), None);
        assert!(said.contains("--columns time=1,id=2,size=3"), "{said}");
        // By name it is taken whatever is in the column that ARC ignores.
        read("t", text.as_bytes(), &options(Some(Format::Arc))).unwrap();
    }
    let (format, _) = read("t", b"10 3 0 7\n7 1 0 8\n", &options(None)).unwrap();
    assert_eq!(format, Format::Arc);
}

#[test]
fn tenants_beyond_16_bits_are_one_and_count_as_lost() {
    let mut large = lcs(2, 1024);
    // The uppermost byte of the first record's tenant.
    large[1024 + 19] = 1;
    for bytes in [
        &b"0,k,1,1,70000,get,0\n0,k,1,1,4,get,0\n"[..],
        &large[..],
        &b"id,tenant_number\n1,70000\n2,4\n"[..],
    ] {
        let (_, records) = read("t", bytes, &options(None)).unwrap();
        assert_eq!(records[0].tenant, u16::MAX);
        assert!(records[1].tenant < 10);
        let mut encoder = Encoder::new(Format::Csv, false);
        for record in &records {
            encoder.record(record, None, &mut Vec::new()).unwrap();
        }
        assert_eq!(encoder.lost().tenants, 1);
    }
}

#[test]
fn names_of_files_stop_at_the_bound() {
    let many = |line: &dyn Fn(u32) -> String| (0..100).map(line).collect::<String>();
    let iolog = many(&|n| format!("/f{n} read 0 4096\n"));
    for (format, text) in [
        (Format::Fio, format!("fio version 2 iolog\n{iolog}")),
        (Format::Msr, many(&|n| format!("1,h{n},0,Read,0,4096,1\n"))),
        (
            Format::Blkparse,
            many(&|n| format!("8,{n} 0 1 0.5 1 Q R 8 + 8 [x]\n")),
        ),
        (
            Format::Strace,
            many(&|n| format!("1 openat(AT_FDCWD, \"/f{n}\", O_RDONLY) = 3\n")),
        ),
        (
            Format::Dbench,
            many(&|n| format!("NTCreateX \"\\f{n}\" 0x40 0x2 {n} NT_STATUS_OK\n")),
        ),
    ] {
        let bounded = ReadOptions {
            max_memory: 4096,
            ..options(Some(format))
        };
        let said = read("t", text.as_bytes(), &bounded)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("names until here") && said.contains("--max-memory"),
            "{}: {said}",
            format.name()
        );
    }
}

/// The trace of a line again and again, after what was before, in little memory.
fn repeated(
    format: Format,
    before: &str,
    line: &dyn Fn(u32) -> String,
) -> Result<Vec<Record>, SimError> {
    let bounded = ReadOptions {
        max_memory: 1 << 14,
        ..options(Some(format))
    };
    let lines: String = (0..2000).map(line).collect();
    let text = format!("{before}{lines}");
    Ok(read("t", text.as_bytes(), &bounded)?.1)
}

const OPEN: &str = "1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n1 read(3, \"x\", 1) = 1\n";
const CREATE: &str = "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nReadX 1 0 1 1 NT_STATUS_OK\n";

#[test]
fn what_is_open_no_more_takes_no_memory() {
    let pieces = (0..400).map(|n| format!("1 pread64(3, \"\", 1, {n}00000) = 1\n"));
    let pieces: String = pieces.collect();
    let cut = format!("{OPEN}{pieces}1 ftruncate(3, 0) = 0\n");
    for (format, before, line) in [
        (
            Format::Strace,
            OPEN,
            &(|_| "1 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n".to_owned())
                as &dyn Fn(u32) -> String,
        ),
        (Format::Strace, OPEN, &|n| {
            format!("1 dup(3) = {n}\n1 close({n}) = 0\n")
        }),
        (Format::Strace, OPEN, &|_| {
            "1 execve(\"/b\", [\"b\"], 0x7ffd) = 0\n".to_owned()
        }),
        (Format::Strace, OPEN, &|n| {
            let n = n + 2;
            format!("1 fork() = {n}\n{n} close(3) = 0\n{n} +++ exited with 0 +++\n")
        }),
        (Format::Strace, OPEN, &|n| {
            let n = n + 2;
            format!("{n} read(9,  <unfinished ...>\n{n} +++ exited with 0 +++\n")
        }),
        (Format::Strace, OPEN, &|_| {
            "1 read(9,  <unfinished ...>\n1 <... read resumed>\"\", 1) = 0\n".to_owned()
        }),
        (Format::Strace, OPEN, &|_| {
            "1 chdir(\"/b\") = 0\n".to_owned()
        }),
        (Format::Strace, &cut, &|n| {
            format!("1 dup(3) = {}\n", n % 50)
        }),
        (Format::Strace, OPEN, &|_| {
            "1 rename(\"/a\", \"/b\") = 0\n1 rename(\"/b\", \"/a\") = 0\n".to_owned()
        }),
        (Format::Dbench, CREATE, &|n| {
            format!("NTCreateX \"\\a\" 0x40 0x1 {n} NT_STATUS_OK\nClose {n} NT_STATUS_OK\n")
        }),
    ] {
        let read = repeated(format, before, line);
        assert!(read.is_ok(), "{}: {read:?}", line(0));
    }
}

#[test]
fn what_stays_open_stops_at_the_bound() {
    for (format, before, line) in [
        (
            Format::Strace,
            OPEN,
            &(|n| format!("1 openat(AT_FDCWD, \"/a\", O_RDONLY) = {n}\n"))
                as &dyn Fn(u32) -> String,
        ),
        (Format::Strace, OPEN, &|n| format!("1 dup(3) = {n}\n")),
        (Format::Strace, OPEN, &|n| format!("{n} close(3) = 0\n")),
        (Format::Strace, OPEN, &|n| format!("1 fork() = {n}\n")),
        (Format::Strace, OPEN, &|n| {
            format!("{n} read(3,  <unfinished ...>\n")
        }),
        (Format::Strace, OPEN, &|_| {
            "1 chdir(\"directory\") = 0\n".to_owned()
        }),
        (Format::Strace, OPEN, &|n| {
            format!("1 pread64(3, \"\", 1, {n}00000) = 1\n")
        }),
        (Format::Strace, OPEN, &|n| {
            format!("1 mmap(NULL, 1, PROT_READ, MAP_SHARED, 3, {n}00000) = 1\n")
        }),
        (Format::Dbench, CREATE, &|n| {
            format!("ReadX 1 {n}00000 1 1 NT_STATUS_OK\n")
        }),
        (Format::Dbench, CREATE, &|n| {
            format!("NTCreateX \"\\a\" 0x40 0x1 {n} NT_STATUS_OK\n")
        }),
    ] {
        let said = repeated(format, before, line).unwrap_err().to_string();
        assert!(
            said.contains("what is open, what was used and the 1 different names until here")
                && said.contains("--max-memory"),
            "{}: {said}",
            line(0)
        );
    }
    // A process that shares its parent's descriptors has its own from execve on.
    let many: String = (4..100).map(|n| format!("1 dup(3) = {n}\n")).collect();
    let threads = |n| format!("1 clone(flags=CLONE_FILES) = {n}\n{n} execve(\"/b\") = 0\n");
    let said = repeated(Format::Strace, &format!("{OPEN}{many}"), &|n| {
        threads(n + 2)
    });
    let said = said.unwrap_err().to_string();
    assert!(said.contains("line 100: what is open,"), "{said}");
}

/// Files and kinds of what a text of strace moves.
fn moved(text: &str) -> Vec<(u32, Kind)> {
    let (_, records) = read("t", text.as_bytes(), &options(Some(Format::Strace))).unwrap();
    records.iter().map(|r| (r.file, r.kind)).collect()
}

/// A read of the first block of a path.
fn opened(path: &str) -> String {
    format!("1 open(\"{path}\", O_RDWR) = 3\n1 read(3, \"x\", 4096) = 4096\n")
}

#[test]
fn a_renamed_directory_takes_its_files_along() {
    let read = |paths: &[&str]| paths.iter().map(|path| opened(path)).collect::<String>();
    let before = read(&["/d/a", "/d/e/b", "/dd/a"]);
    // The directory itself is opened and in use.
    let rename =
        "1 open(\"/d\", O_DIRECTORY) = 4\n1 chdir(\"/d\") = 0\n1 rename(\"/d\", \"/n\") = 0\n";
    let after = read(&["/n/a", "/n/e/b", "/dd/a", "a", "/d/a"]);
    let files = moved(&format!("{before}{rename}{after}"));
    let files: Vec<u32> = files.iter().map(|(file, _)| *file).collect();
    assert_eq!(files, [0, 1, 2, 0, 1, 2, 0, 4]);
}

#[test]
fn a_directory_within_a_renamed_one_is_renamed_as_well() {
    use Kind::{Read, Remove, Write};
    let renames = "1 rename(\"/d\", \"/n\") = 0\n1 rename(\"/n/e\", \"/n/f\") = 0\n1 rename(\"/n/f/b\", \"/c\") = 0\n";
    let text = opened("/d/e/a") + &opened("/d/e/b") + renames + &opened("/n/f/a") + &opened("/c");
    assert_eq!(moved(&text), [0, 1, 0, 1].map(|file| (file, Read)));
    // A file that was there under the new name, and gone without a word, is no more.
    let text = opened("/d/a") + &opened("/n/a") + "1 rename(\"/d\", \"/n\") = 0\n";
    assert_eq!(
        moved(&(text + &opened("/n/a"))),
        [(0, Read), (1, Read), (1, Remove), (0, Read)]
    );
    // One without a name is not its directory.
    let unnamed = "1 open(\"/d\", O_RDWR|O_TMPFILE) = 3\n1 write(3, \"x\", 4096) = 4096\n";
    let named = opened("/d/a") + "1 write(3, \"x\", 4096) = 4096\n";
    assert_eq!(
        moved(&(unnamed.to_owned() + &named)),
        [(0, Read), (0, Write)]
    );
}

#[test]
fn exchanged_names_keep_their_pages() {
    use Kind::{Read, Write};
    let before = opened("/p/a") + &opened("/q") + "1 write(3, \"x\", 4096) = 4096\n";
    let exchange = "1 renameat2(AT_FDCWD, \"/p\", AT_FDCWD, \"/q\", RENAME_EXCHANGE) = 0\n";
    let after = opened("/q/a") + &opened("/p");
    assert_eq!(
        moved(&format!("{before}{exchange}{after}")),
        [(0, Read), (1, Read), (1, Write), (0, Read), (1, Read)]
    );
}

#[test]
fn fio_and_blkparse_take_what_moves_bytes() {
    use Kind::{Read, Remove, Write};
    let kinds = |text: &str| -> Vec<(u64, Kind)> {
        let (_, records) = read("t", text.as_bytes(), &options(None)).unwrap();
        records.iter().map(|r| (r.block, r.kind)).collect()
    };
    assert_eq!(
        kinds(samples::FIO),
        [(0, Read), (1, Read), ((1 << 40) | 1, Write), (0, Remove)]
    );
    assert_eq!(kinds(samples::BLKPARSE), [(2, Read), (3, Read), (1, Write)]);
    let third = "fio version 3 iolog\n5 /a add\n7 /a write 0 4096\n";
    let (_, records) = read("t", third.as_bytes(), &options(None)).unwrap();
    assert_eq!((records[0].time, records[0].kind), (7, Write));
}

#[test]
fn limits_and_touches() {
    let text = "10 3 0 0\n7 2 0 0\n";
    let limited = ReadOptions {
        limit: Some(4),
        ..options(None)
    };
    assert_eq!(read("t", text.as_bytes(), &limited).unwrap().1.len(), 4);
    let load = |apart| {
        let options = ReadOptions {
            touches_apart: apart,
            ..options(None)
        };
        let trace = Trace::over("t", std::io::Cursor::new(text), &options).unwrap();
        Loaded::from_trace(trace, |_| {}).unwrap()
    };
    let (together, apart) = (load(false), load(true));
    assert_eq!((together.counts.requests, apart.counts.requests), (2, 5));
    assert_eq!(
        together.chunks().next().unwrap().unwrap().requests,
        [0, 0, 0, 1, 1]
    );
    assert!(apart.chunks().next().unwrap().unwrap().requests.is_empty());
}

#[test]
fn a_loadfile_of_dbench_is_a_client_with_pages_of_the_asked_size() {
    let read = |block_size| {
        let options = ReadOptions {
            block_size,
            ..ReadOptions::default()
        };
        let (format, records) = read("client.txt", DBENCH.as_bytes(), &options).unwrap();
        assert_eq!(format, Format::Dbench);
        records
    };
    let said: Vec<_> = read(4096)
        .iter()
        .map(|r| (r.kind, r.block, r.request, r.bytes))
        .collect();
    use Kind::{Read, Remove, Write};
    // Only pages that were used are removed.
    assert_eq!(
        said,
        [
            (Write, 15, 0, 2),
            (Write, 16, 0, 4096),
            (Read, 0, 1, 96),
            (Read, 1, 1, 104),
            (Remove, 0, 2, 0),
            (Remove, 1, 2, 0),
            (Remove, 15, 2, 0),
            (Remove, 16, 2, 0),
        ]
    );
    let whole: Vec<_> = read(1 << 20).iter().map(|r| (r.kind, r.block)).collect();
    assert_eq!(whole, [(Write, 0), (Read, 0), (Remove, 0)]);
}
