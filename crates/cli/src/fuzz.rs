//! Entries for fuzzers: each takes any bytes and must neither panic nor take memory without bound.

use crate::records::binary::{BinaryReader, BinaryWriter};
use crate::records::{RecordReader, RecordWriter};

/// A binary dump. One that is read whole is written again as the same entries.
pub fn dump(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut reader = BinaryReader::new(bytes).ok()?;
        let mut entries = Vec::new();
        while let Some(entry) = reader.next().ok()? {
            entries.push(entry);
        }
        Some(entries)
    };
    let Some(entries) = read(bytes) else { return };
    let mut again = Vec::new();
    let written = BinaryWriter::new(&mut again).and_then(|mut writer| {
        entries.iter().try_for_each(|(key, value)| writer.write(key, value))?;
        writer.finish()
    });
    assert!(written.is_ok(), "what was read can be written");
    assert_eq!(read(&again), Some(entries), "what was written is read back");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_make_the_decoder_panic() {
        let mut sample = Vec::new();
        let mut writer = BinaryWriter::new(&mut sample).unwrap();
        for i in 0..20u8 {
            writer.write(&[i; 3], &vec![i; usize::from(i)]).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        frondb_testkit::fuzz::smoke(1, 20_000, &[sample], dump);
    }
}
