//! The fields that frames are made of, and their limits when read.

use std::ffi::CString;

use carillon_domain::id::RunId;

/// The other side sent an invalid frame. Both sides are the same binary, so this is a bug or corrupt memory.
#[derive(Debug, thiserror::Error)]
#[error("a frame is invalid: {0}")]
pub struct BadFrame(pub &'static str);

/// Splits the first whole frame off `bytes`: its body and how many bytes it took. `None` when more must be read first. One
/// longer than `longest` bytes is refused before it is read.
pub fn next_frame(bytes: &[u8], longest: usize) -> Result<Option<(&[u8], usize)>, BadFrame> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > longest {
        return Err(BadFrame("it is longer than any frame may be"));
    }
    Ok(rest.get(..length).map(|body| (body, 4 + length)))
}

/// Writes one frame; the length is filled in by [`Put::done`].
pub struct Put<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Put<'a> {
    /// Begins a frame with its tag.
    pub fn frame(out: &'a mut Vec<u8>, tag: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, tag]);
        Self { out, start }
    }

    /// Appends one byte.
    pub fn u8(self, value: u8) -> Self {
        self.out.push(value);
        self
    }

    /// Appends a number.
    pub fn u32(self, value: u32) -> Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a number.
    pub fn i32(self, value: i32) -> Self {
        self.u32(value.cast_unsigned())
    }

    /// Appends a number.
    pub fn u64(self, value: u64) -> Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a number that may be missing.
    pub fn optional_i32(self, value: Option<i32>) -> Self {
        self.u8(u8::from(value.is_some())).i32(value.unwrap_or_default())
    }

    /// Appends a number that may be missing.
    pub fn optional_u64(self, value: Option<u64>) -> Self {
        self.u8(u8::from(value.is_some())).u64(value.unwrap_or_default())
    }

    /// Appends a count. A count that does not fit makes a frame too long, and the reader refuses it.
    pub fn count(self, count: usize) -> Self {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Appends the length of `bytes`, then `bytes`.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let put = self.count(bytes.len());
        put.out.extend_from_slice(bytes);
        put
    }

    /// Appends a list of strings.
    pub fn strings(self, strings: &[CString]) -> Self {
        strings.iter().fold(self.count(strings.len()), |put, string| put.bytes(string.as_bytes()))
    }

    /// Appends the id of a run.
    pub fn run(self, run: RunId) -> Self {
        let (high, low) = run.parts();
        self.u64(high).u64(low)
    }

    /// Ends the frame.
    pub fn done(self) {
        let length = u32::try_from(self.out.len() - self.start - 4).unwrap_or(u32::MAX);
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads the fields of one frame.
pub struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(BadFrame("it ends inside a field"))?;
        self.0 = rest;
        Ok(*field)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, BadFrame> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next number.
    pub fn u32(&mut self) -> Result<u32, BadFrame> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number.
    pub fn i32(&mut self) -> Result<i32, BadFrame> {
        self.u32().map(u32::cast_signed)
    }

    /// The next number.
    pub fn u64(&mut self) -> Result<u64, BadFrame> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next number, if it is there.
    pub fn optional_i32(&mut self) -> Result<Option<i32>, BadFrame> {
        let (some, value) = (self.u8()? != 0, self.i32()?);
        Ok(some.then_some(value))
    }

    /// The next number, if it is there.
    pub fn optional_u64(&mut self) -> Result<Option<u64>, BadFrame> {
        let (some, value) = (self.u8()? != 0, self.u64()?);
        Ok(some.then_some(value))
    }

    /// The next bytes, by their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], BadFrame> {
        let length = self.u32()? as usize;
        let (field, rest) = self.0.split_at_checked(length).ok_or(BadFrame("it ends inside a field"))?;
        self.0 = rest;
        Ok(field)
    }

    /// The next bytes as text.
    pub fn text(&mut self) -> Result<String, BadFrame> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| BadFrame("a sentence is not UTF-8"))
    }

    /// The next bytes as a string for the system.
    pub fn string(&mut self) -> Result<CString, BadFrame> {
        CString::new(self.bytes()?).map_err(|_| BadFrame("a string has a NUL in it"))
    }

    /// The next list of strings.
    pub fn strings(&mut self) -> Result<Vec<CString>, BadFrame> {
        let count = self.u32()?;
        (0..count).map(|_| self.string()).collect()
    }

    /// The next id of a run.
    pub fn run(&mut self) -> Result<RunId, BadFrame> {
        Ok(RunId::from_parts(self.u64()?, self.u64()?))
    }
}
