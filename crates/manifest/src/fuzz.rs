//! Fuzz entry points: each takes any bytes and must neither panic nor take memory without bound.

use frondb_block::frame::scan::{ScanRange, Scanner, Step};

use crate::format::{FileHeader, HEADER_BYTES, Superblock, note_of};
use crate::recovery::Parser;

/// Decodes a superblock.
pub fn superblock(bytes: &[u8]) {
    if let Ok(superblock) = Superblock::decode(bytes) {
        let again = superblock.encode(note_of(bytes));
        assert_eq!(Superblock::decode(&again), Ok(superblock), "decoded bytes encode to the same");
        assert_eq!(note_of(&again), note_of(bytes), "so does the note");
    }
}

/// Parses a manifest file; its header gives the generation.
pub fn manifest_file(bytes: &[u8]) {
    let Ok(header) = FileHeader::decode(bytes) else { return };
    let range = ScanRange {
        generation: header.generation,
        offset: HEADER_BYTES,
        position: HEADER_BYTES,
        end: bytes.len() as u64,
    };
    let mut scanner = Scanner::new(bytes, range);
    let mut parser = Parser::default();
    while let Ok(Step::Record(record)) = scanner.step() {
        if parser.take(record, scanner.payload()).is_err() {
            return;
        }
    }
}
