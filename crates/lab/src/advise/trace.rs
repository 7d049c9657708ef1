//! An imported trace: the reads that reached storage, one in each line.
//!
//! ```text
//! file block              names or numbers; several files
//! 7 123456
//!
//! 1048576                 a byte offset: one block
//!
//! offset,size,op          or columns in any order, named in the first line: file, block, offset, size (bytes), op (R or W); others are ignored
//! 1048576,65536,R
//! ```
//! Columns are separated by commas, or by blanks and tabs. `#` begins a comment. A write says that the block had changed: what a flash cache has of it is
//! stale.
//!
//! A trace does not tell when blocks left the buffer cache. With its size known, a block is taken to leave when as many others have been read since; without, at
//! once, as below a page cache that keeps nothing.

use crate::LabError;
use stats::mrc::{Event, Reference, References, Sampler, is_kept};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use units::{Bytes, Seed};

/// References kept in memory, 8 bytes each.
const KEPT_MAX: usize = 1 << 21;
/// Bits of a block's number in its file.
const BLOCK_BITS: u32 = 40;

/// # Errors
/// A file that cannot be read; a line that is none, with its number and what was expected.
pub fn read(path: &Path, block: Bytes, cache: Bytes, seed: Seed) -> Result<References, LabError> {
    if !block.0.is_power_of_two() || !(512..=65_536).contains(&block.0) {
        return Err(LabError::Target(format!("--block {block} is not a block size; type 4k, 8k, 16k …")));
    }
    let failed = |error: std::io::Error| {
        LabError::Target(format!("{}: {error}; give a text file with one read in each line", path.display()))
    };
    let mut lines = BufReader::new(File::open(path).map_err(failed)?);
    let mut import = Import::new(block, cache, seed);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        if lines.read_line(&mut line).map_err(failed)? == 0 {
            break;
        }
        import.line(&line).map_err(|why| {
            LabError::Target(format!("{} line {number}: {:?}: {why}", path.display(), line.trim_end()))
        })?;
    }
    Ok(import.sampler.finish())
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    File,
    Block,
    Offset,
    Size,
    Op,
    Other,
}

struct Import {
    block: u64,
    seed: u64,
    sampler: Sampler,
    columns: Option<Vec<Column>>,
    files: HashMap<String, u64>,
    /// Sampled blocks that the buffer cache holds, with the read that brought them, the oldest first.
    buffer: VecDeque<(u64, u64)>,
    /// The newest read of each.
    held: HashMap<u64, u64>,
    buffer_blocks: u64,
    reads: u64,
}

impl Import {
    fn new(block: Bytes, cache: Bytes, seed: Seed) -> Self {
        Self {
            block: block.0,
            seed: seed.0,
            sampler: Sampler::new(seed.0, KEPT_MAX),
            columns: None,
            files: HashMap::new(),
            buffer: VecDeque::new(),
            held: HashMap::new(),
            buffer_blocks: cache.0 / block.0,
            reads: 0,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        // `file#` is the name of a column.
        let comment = if line.trim_start().starts_with('#') { Some(0) } else { line.find(" #") };
        let text = line[..comment.unwrap_or(line.len())].trim();
        if text.is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = match text.contains([',', ';']) {
            true => text.split([',', ';']).map(str::trim).collect(),
            false => text.split_whitespace().collect(),
        };
        let Some(columns) = &self.columns else {
            let (columns, is_header) = columns(&fields)?;
            self.columns = Some(columns);
            return if is_header { Ok(()) } else { self.line(line) };
        };
        if fields.len() != columns.len() {
            return Err(format!(
                "{} columns, but the first line has {}; one read in each line, such as `7 123456` for file and block",
                fields.len(),
                columns.len()
            ));
        }
        let field = |wanted: Column| columns.iter().position(|c| *c == wanted).map(|index| fields[index]);
        let number = |wanted: Column| field(wanted).map(parse).transpose();
        let first = match (number(Column::Block)?, number(Column::Offset)?) {
            (Some(block), _) => block,
            (None, Some(offset)) => offset / self.block,
            (None, None) => return Err("neither a block nor an offset".into()),
        };
        let count = match (number(Column::Size)?, number(Column::Offset)?) {
            (Some(0), _) => return Err("a size of 0 bytes reads nothing".into()),
            (Some(size), Some(offset)) => (offset % self.block + size).div_ceil(self.block),
            (Some(size), None) => size.div_ceil(self.block),
            (None, _) => 1,
        };
        if first + count > 1 << BLOCK_BITS {
            return Err(format!("block {first} is beyond what a file can have; is it an offset in bytes?"));
        }
        let event = match field(Column::Op) {
            None => Event::Read,
            Some(op) => operation(op)?,
        };
        let next = self.files.len() as u64;
        let file = field(Column::File).unwrap_or_default();
        let file = match self.files.get(file) {
            Some(file) => *file,
            None => *self.files.entry(file.to_owned()).or_insert(next),
        };
        (first..first + count).for_each(|block| self.note(file << BLOCK_BITS | block, event));
        Ok(())
    }

    fn note(&mut self, block: u64, event: Event) {
        if event == Event::Change {
            return self.sampler.note(Reference { block, event });
        }
        // It is read again, so it had left.
        if self.held.remove(&block).is_some() {
            self.sampler.note(Reference { block, event: Event::Offer });
        }
        self.sampler.note(Reference { block, event: Event::Read });
        self.reads += 1;
        if is_kept(block, self.seed, self.sampler.threshold()) {
            self.held.insert(block, self.reads);
            self.buffer.push_back((self.reads, block));
        }
        while let Some((read, block)) =
            self.buffer.front().copied().filter(|(read, _)| read + self.buffer_blocks <= self.reads)
        {
            self.buffer.pop_front();
            if self.held.get(&block) == Some(&read) {
                self.held.remove(&block);
                self.sampler.note(Reference { block, event: Event::Offer });
            }
        }
    }
}

/// What the columns hold, and whether the line said so.
fn columns(fields: &[&str]) -> Result<(Vec<Column>, bool), String> {
    let named: Vec<Column> = fields.iter().map(|field| column(field)).collect();
    if named.iter().any(|column| *column != Column::Other) {
        let has = |column| named.contains(&column);
        if !has(Column::Block) && !has(Column::Offset) {
            return Err("a first line that names columns needs `block` or `offset`".into());
        }
        return Ok((named, true));
    }
    match fields.len() {
        1 => Ok((vec![Column::Offset], false)),
        2 => Ok((vec![Column::File, Column::Block], false)),
        n => Err(format!(
            "{n} columns; name them in the first line, such as `file offset size`, of file, block, offset, size, op"
        )),
    }
}

fn column(name: &str) -> Column {
    match name.trim_matches('"').to_ascii_lowercase().as_str() {
        "file" | "file#" | "device" => Column::File,
        "block" | "block#" => Column::Block,
        "offset" => Column::Offset,
        "size" | "bytes" | "length" => Column::Size,
        "op" | "operation" | "rw" => Column::Op,
        _ => Column::Other,
    }
}

fn operation(text: &str) -> Result<Event, String> {
    match text.trim_matches('"').to_ascii_lowercase().as_str() {
        "r" | "read" => Ok(Event::Read),
        "w" | "write" => Ok(Event::Change),
        _ => Err(format!("{text:?} is no operation; R is a read, W a write")),
    }
}

fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim_matches('"');
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text:?} is not a number; blocks and offsets count from 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str, cache: u64) -> Result<Vec<(u64, Event)>, String> {
        let mut import = Import::new(Bytes(8192), Bytes(cache * 8192), Seed(1));
        text.lines().try_for_each(|line| import.line(line))?;
        Ok(import.sampler.finish().iter().map(|r| (r.block, r.event)).collect())
    }

    fn reads(text: &str) -> Vec<u64> {
        let all = import(text, 0).unwrap();
        all.into_iter().filter(|(_, event)| *event == Event::Read).map(|(block, _)| block).collect()
    }

    #[test]
    fn lines_of_every_kind_are_read() {
        let second = 1 << BLOCK_BITS;
        for (text, blocks) in [
            ("7 12\n7 13\n9 12\n", vec![12, 13, second | 12]),
            ("users01.dbf,12\nusers02.dbf,0x0c\n", vec![12, second | 12]),
            ("# of a morning\n8192\n\n24576 # later\n", vec![1, 3]),
            ("offset size\n8192 16384\n8000 400\n", vec![1, 2, 0, 1]),
            ("t,op,file#,block#,size\n0.5,R,4,10,8192\n0.6,read,4,11,16384\n", vec![10, 11, 12]),
        ] {
            assert_eq!(reads(text), blocks, "{text:?}");
        }
    }

    #[test]
    fn a_block_leaves_when_as_many_others_were_read() {
        use Event::{Change, Offer, Read};
        let said = import("1 5\n1 6\n1 7\n1 6\n", 2).unwrap();
        assert_eq!(said, [(5, Read), (6, Read), (7, Read), (5, Offer), (6, Offer), (6, Read)]);
        let said = import("block op\n5 R\n5 W\n5 R\n", 0).unwrap();
        assert_eq!(said, [(5, Read), (5, Offer), (5, Change), (5, Read), (5, Offer)]);
    }

    #[test]
    fn what_is_no_read_is_refused() {
        for (text, words) in [
            ("1 2 3\n", "name them in the first line"),
            ("1 2\n1 2 3\n", "3 columns, but the first line has 2"),
            ("1 two\n", "\"two\" is not a number"),
            ("-5\n", "is not a number"),
            ("file size\n1 8192\n", "needs `block` or `offset`"),
            ("block op\n5 X\n", "R is a read"),
            ("offset size\n8192 0\n", "reads nothing"),
            ("block\n99999999999999\n", "is it an offset in bytes?"),
        ] {
            let said = import(text, 0).unwrap_err();
            assert!(said.contains(words), "{text:?}: {said}");
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        std::fs::write(&path, "file,block\n1,2\n1,x\n").unwrap();
        let said = read(&path, Bytes(8192), Bytes(0), Seed(1)).unwrap_err().to_string();
        assert!(said.contains("trace.csv line 3") && said.contains("\"x\" is not a number"), "{said}");
        let said = read(&path, Bytes(8191), Bytes(0), Seed(1)).unwrap_err().to_string();
        assert!(said.contains("--block"), "{said}");
    }
}
