//! Traces for the readers: the first byte says which format is asked for, the second which options, the rest is the trace.

use larder_sim::{Encoder, Format, Kind, ReadOptions, Record, Trace, WRITABLE};

const LINES: [(Format, &str); 9] = [
    (Format::Txt, "5\n6\n*\n5\n"),
    (Format::Arc, "10 3 0 0\n7 1 0 1\n"),
    (Format::Spc, "0,15,8192,w,1.5\n1,0,1,R,2\n"),
    (
        Format::Msr,
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n",
    ),
    (
        Format::Fio,
        "fio version 3 iolog\n5 /a add\n7 /a write 0 4096\n9 /a trim 0 4096\n",
    ),
    (
        Format::Blkparse,
        "  8,0    1        1     0.000000000  4162  Q   R 16 + 16 [dd]\n",
    ),
    (
        Format::Strace,
        "1 openat(AT_FDCWD</tmp>, \"a\", O_RDWR|O_APPEND) = 3</tmp/a>\n1 read(3</tmp/a>, \"x\", 10) = 10\n1 vfork( <unfinished ...>\n\
         2 write(3, \"x\", 5) = 5\n1 <... vfork resumed>) = 2\n1 rename(\"a\", \"b\") = 0\n1 unlink(\"/tmp/b\") = 0\n2 +++ exited with 0 +++\n",
    ),
    (
        Format::Dbench,
        "NTCreateX \"\\c\\a b\" 0x40 0x2 5 NT_STATUS_OK\nWriteX 5 0 65534 65534 NT_STATUS_OK\nReadX 5 4000 200 200 NT_STATUS_OK\n\
         Rename \"\\c\\a b\" \"\\c\\d\" NT_STATUS_OK\nFlush 5 NT_STATUS_OK\nDeltree \"\\c\" NT_STATUS_OK\n",
    ),
    (
        Format::Csv,
        "time,id,size,op,request\n1,2,3,read,4\n2,3,4,remove,5\n",
    ),
];

fn index(format: Format) -> u8 {
    Format::ALL
        .iter()
        .position(|f| *f == format)
        .map_or(0, |n| n as u8 + 1)
}

/// Good inputs of every format.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = LINES
        .iter()
        .map(|(format, text)| [&[index(*format), 0][..], text.as_bytes()].concat())
        .collect();
    for format in WRITABLE {
        let mut bytes = vec![index(format), 1];
        let mut encoder = Encoder::new(format, false);
        encoder.begin(&mut bytes);
        for block in [5, 6, 5, 7] {
            let record = Record {
                block,
                ..Record::default()
            };
            let _ = encoder.record(&record, None, &mut bytes);
        }
        seeds.push(bytes);
    }
    // lcs of version 1 with no requests but one.
    let mut lcs = vec![index(Format::Lcs), 0];
    for word in [0x1234_5678_9abc_def0_u64, 1, 1, 1] {
        lcs.extend_from_slice(&word.to_le_bytes());
    }
    lcs.resize(2 + 1016, 0);
    lcs.extend_from_slice(&0x1234_5678_9abc_def0_u64.to_le_bytes());
    lcs.extend_from_slice(&[7; 24]);
    seeds.push(lcs);
    seeds
}

/// Reads a trace to its end or its error.
pub fn check(data: &[u8]) {
    let [format, options, bytes @ ..] = data else {
        return;
    };
    let options = ReadOptions {
        // 0 and what is too large: found by looking.
        format: Format::ALL
            .get(usize::from(*format).wrapping_sub(1))
            .copied(),
        block_size: [4096, 512, 1, u32::MAX][usize::from(options & 3)],
        columns: (options & 4 > 0).then(|| "id=1,op=2".to_owned()),
        text_ids: options & 8 > 0,
        limit: Some(200_000),
        ..ReadOptions::default()
    };
    let Ok(mut trace) = Trace::over("fuzz", std::io::Cursor::new(bytes.to_vec()), &options) else {
        return;
    };
    let (mut records, mut before) = (Vec::new(), None::<u32>);
    loop {
        records.clear();
        let more = trace.fill(&mut records);
        for record in &records {
            // Requests are numbered in order, without gaps; a table may number them itself.
            let step = before.map_or(0, |b| record.request.wrapping_sub(b));
            let table = trace.format() == Some(Format::Csv);
            assert!(
                table || step <= 1,
                "from request {before:?} to {}",
                record.request
            );
            before = Some(record.request);
            assert!(matches!(
                record.kind,
                Kind::Read | Kind::Write | Kind::Readahead | Kind::Remove
            ));
        }
        match more {
            Ok(true) => {}
            Ok(false) => return,
            Err(why) => {
                assert!(why.to_string().starts_with("trace fuzz"), "{why}");
                return;
            }
        }
    }
}
