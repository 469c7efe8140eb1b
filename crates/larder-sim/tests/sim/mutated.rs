//! Broken traces by the thousand: none may panic or hang, whatever the format.

use larder_sim::{Format, ReadOptions, Trace};

fn try_read(bytes: &[u8], format: Option<Format>) -> Result<usize, String> {
    let options = ReadOptions {
        format,
        limit: Some(100_000),
        ..ReadOptions::default()
    };
    let mut trace = Trace::over("t", std::io::Cursor::new(bytes.to_vec()), &options)
        .map_err(|e| e.to_string())?;
    let mut records = Vec::new();
    let mut all = 0;
    loop {
        records.clear();
        let more = trace.fill(&mut records).map_err(|e| e.to_string())?;
        all += records.len();
        if !more {
            return Ok(all);
        }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, dice: &mut Dice) {
    const PIECES: [&[u8]; 12] = [
        b"\n",
        b"-1",
        b"18446744073709551615",
        b"99999999999999999999",
        b",",
        b"\"",
        b"(",
        b" <unfinished ...>\n",
        b"\0",
        b"\xff\xff\xff\xff",
        b"*",
        b"0x",
    ];
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(5) {
            0 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            2 => bytes.truncate(at),
            3 => {
                let piece = PIECES[dice.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => {
                let end = (at + dice.below(40)).min(bytes.len());
                let copy: Vec<u8> = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
        }
    }
}

#[test]
fn mutated_traces_are_read_or_refused() {
    let mut dice = Dice(42);
    let (mut good, mut bad) = (0, 0);
    for (format, sample) in super::samples::all() {
        for n in 0..1500 {
            let mut bytes = sample.clone();
            mutate(&mut bytes, &mut dice);
            match try_read(&bytes, (n % 4 > 0).then_some(format)) {
                Ok(_) => good += 1,
                Err(why) => {
                    assert!(why.starts_with("trace t"), "{why}");
                    bad += 1;
                }
            }
        }
    }
    // The mutations do reach both ends.
    assert!(good > 2000 && bad > 2000, "{good} {bad}");
}

#[test]
fn every_format_reads_every_other_or_refuses() {
    for (_, sample) in super::samples::all() {
        for format in Format::ALL {
            if let Err(why) = try_read(&sample, Some(format)) {
                assert!(why.starts_with("trace t"), "{why}");
            }
        }
    }
}
