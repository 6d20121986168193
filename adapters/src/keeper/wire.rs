//! The frames between node and keeper: a length, a tag, a body, in the machine's own few types.
//!
//! Hand-written because every spawn pays for it, and because both ends are always the same binary: there is no version
//! to negotiate. A frame is `u32` length of what follows, `u8` tag, fields in little endian; bytes are preceded by their
//! `u32` length.

use std::ffi::CString;
use std::time::Duration;

use carillon_domain::id::RunId;

use super::spawn::{Spawn, UserIds};
use crate::executor::{Ended, Exit, Stop};

/// The largest frame either side accepts, in bytes. A job's definition is at most 1 MiB (SPEC section 6) and an exit
/// carries at most 64 KiB of output.
pub(super) const MAX_FRAME_BYTES: usize = 4 << 20;

/// Node to keeper.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Start a child.
    Spawn(Box<Spawn>),
    /// End a child; an unknown run is ignored, its exit is already on the way.
    Stop(RunId, Stop),
    /// The lease holds until this moment of CLOCK_BOOTTIME, in milliseconds.
    ExtendDeadline(u64),
}

/// Keeper to node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The keeper serves; below this cgroup directory are all its children (empty: no cgroups).
    Ready { cgroup: Vec<u8> },
    /// The run lives in the process group `pid`.
    Started { run: RunId, pid: i32 },
    /// Some output, as it came. Best effort.
    Chunk { run: RunId, bytes: Vec<u8> },
    /// The run is over and nothing of it is left.
    Ended { run: RunId, exit: Exit },
    /// Something for the node's log.
    Note(String),
}

/// The other side sent something that is not a frame. It is the same binary, so this is a bug or memory gone bad.
#[derive(Debug, thiserror::Error)]
#[error("a frame between node and keeper makes no sense: {0}")]
pub(super) struct BadFrame(&'static str);

/// Splits the first whole frame off `bytes`: its body and how many bytes it took. `None` when more must be read first.
pub(super) fn next_frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, BadFrame> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(BadFrame("it is longer than any frame may be"));
    }
    Ok(rest.get(..length).map(|body| (body, 4 + length)))
}

impl Command {
    /// Appends the command to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Spawn(spawn) => encode_spawn(spawn, out),
            Self::Stop(run, how) => Put::frame(out, 2).run(*run).u8(stop_code(*how)).done(),
            Self::ExtendDeadline(boottime_ms) => Put::frame(out, 3).u64(*boottime_ms).done(),
        }
    }

    /// Reads a frame's body.
    pub(super) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
        let mut body = Take(body);
        match body.u8()? {
            1 => Ok(Self::Spawn(Box::new(decode_spawn(&mut body)?))),
            2 => Ok(Self::Stop(body.run()?, stop_from(body.u8()?)?)),
            3 => Ok(Self::ExtendDeadline(body.u64()?)),
            _ => Err(BadFrame("unknown command")),
        }
    }
}

impl Report {
    /// Appends the report to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready { cgroup } => Put::frame(out, 1).bytes(cgroup).done(),
            Self::Started { run, pid } => Put::frame(out, 2).run(*run).i32(*pid).done(),
            Self::Chunk { run, bytes } => Self::encode_chunk(*run, bytes, out),
            Self::Ended { run, exit } => Put::frame(out, 4)
                .run(*run)
                .u8(ended_code(exit.how))
                .optional_i32(exit.exit_code)
                .optional_i32(exit.signal)
                .u8(u8::from(exit.output_truncated))
                .bytes(exit.reason.as_deref().unwrap_or_default().as_bytes())
                .bytes(&exit.output)
                .done(),
            Self::Note(text) => Put::frame(out, 5).bytes(text.as_bytes()).done(),
        }
    }

    /// A [`Report::Chunk`] of borrowed bytes.
    pub(super) fn encode_chunk(run: RunId, bytes: &[u8], out: &mut Vec<u8>) {
        Put::frame(out, 3).run(run).bytes(bytes).done();
    }

    /// Reads a frame's body.
    pub(super) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
        let mut body = Take(body);
        match body.u8()? {
            1 => Ok(Self::Ready { cgroup: body.bytes()?.to_vec() }),
            2 => Ok(Self::Started { run: body.run()?, pid: body.i32()? }),
            3 => Ok(Self::Chunk { run: body.run()?, bytes: body.bytes()?.to_vec() }),
            4 => Ok(Self::Ended { run: body.run()?, exit: decode_exit(&mut body)? }),
            5 => Ok(Self::Note(body.text()?)),
            _ => Err(BadFrame("unknown report")),
        }
    }
}

fn decode_exit(body: &mut Take<'_>) -> Result<Exit, BadFrame> {
    Ok(Exit {
        how: ended_from(body.u8()?)?,
        exit_code: body.optional_i32()?,
        signal: body.optional_i32()?,
        output_truncated: body.u8()? != 0,
        reason: Some(body.text()?).filter(|reason| !reason.is_empty()),
        output: body.bytes()?.to_vec(),
    })
}

fn encode_spawn(spawn: &Spawn, out: &mut Vec<u8>) {
    let timeout_ms = spawn.timeout.map_or(u64::MAX, whole_ms);
    let mut put = Put::frame(out, 1)
        .run(spawn.run)
        .u64(timeout_ms)
        .u64(whole_ms(spawn.kill_grace))
        .strings(&spawn.argv)
        .strings(&spawn.env)
        .bytes(spawn.dir.as_bytes())
        .u8(u8::from(spawn.dir_or_root));
    put = match &spawn.stdin {
        Some(stdin) => put.u8(1).bytes(stdin),
        None => put.u8(0),
    };
    put = match &spawn.user {
        Some(user) => {
            put = put.u8(1).u32(user.uid).u32(user.gid).count(user.groups.len());
            user.groups.iter().fold(put, |put, group| put.u32(*group))
        }
        None => put.u8(0),
    };
    put.done();
}

fn decode_spawn(body: &mut Take<'_>) -> Result<Spawn, BadFrame> {
    Ok(Spawn {
        run: body.run()?,
        timeout: Some(body.u64()?).filter(|ms| *ms != u64::MAX).map(Duration::from_millis),
        kill_grace: Duration::from_millis(body.u64()?),
        argv: body.strings()?,
        env: body.strings()?,
        dir: body.string()?,
        dir_or_root: body.u8()? != 0,
        stdin: if body.u8()? == 0 { None } else { Some(body.bytes()?.to_vec()) },
        user: if body.u8()? == 0 { None } else { Some(decode_user(body)?) },
    })
}

fn decode_user(body: &mut Take<'_>) -> Result<UserIds, BadFrame> {
    let (uid, gid, count) = (body.u32()?, body.u32()?, body.u32()?);
    let groups = (0..count).map(|_| body.u32()).collect::<Result<_, _>>()?;
    Ok(UserIds { uid, gid, groups })
}

/// Whole milliseconds, one below the largest number, which means "none".
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).min(u64::MAX - 1)
}

fn stop_code(how: Stop) -> u8 {
    match how {
        Stop::No => 0,
        Stop::Politely => 1,
        Stop::Now => 2,
    }
}

fn stop_from(code: u8) -> Result<Stop, BadFrame> {
    [Stop::No, Stop::Politely, Stop::Now].get(usize::from(code)).copied().ok_or(BadFrame("unknown way to stop"))
}

const ENDINGS: [Ended; 5] = [Ended::Succeeded, Ended::Failed, Ended::TimedOut, Ended::Cancelled, Ended::Lost];

fn ended_code(how: Ended) -> u8 {
    match how {
        Ended::Succeeded => 0,
        Ended::Failed => 1,
        Ended::TimedOut => 2,
        Ended::Cancelled => 3,
        Ended::Lost => 4,
    }
}

fn ended_from(code: u8) -> Result<Ended, BadFrame> {
    ENDINGS.get(usize::from(code)).copied().ok_or(BadFrame("unknown way to end"))
}

/// Writes one frame; the length is filled in by [`Put::done`].
struct Put<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Put<'a> {
    fn frame(out: &'a mut Vec<u8>, tag: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, tag]);
        Self { out, start }
    }

    fn u8(self, value: u8) -> Self {
        self.out.push(value);
        self
    }

    fn u32(self, value: u32) -> Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn i32(self, value: i32) -> Self {
        self.u32(value.cast_unsigned())
    }

    fn u64(self, value: u64) -> Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn optional_i32(self, value: Option<i32>) -> Self {
        self.u8(u8::from(value.is_some())).i32(value.unwrap_or_default())
    }

    /// A count that does not fit would make a frame beyond every limit, which the reader refuses.
    fn count(self, count: usize) -> Self {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let put = self.count(bytes.len());
        put.out.extend_from_slice(bytes);
        put
    }

    fn strings(self, strings: &[CString]) -> Self {
        strings.iter().fold(self.count(strings.len()), |put, string| put.bytes(string.as_bytes()))
    }

    fn run(self, run: RunId) -> Self {
        let (high, low) = run.parts();
        self.u64(high).u64(low)
    }

    fn done(self) {
        let length = u32::try_from(self.out.len() - self.start - 4).unwrap_or(u32::MAX);
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads the fields of one frame.
struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(BadFrame("it ends inside a field"))?;
        self.0 = rest;
        Ok(*field)
    }

    fn u8(&mut self) -> Result<u8, BadFrame> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, BadFrame> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, BadFrame> {
        self.u32().map(u32::cast_signed)
    }

    fn u64(&mut self) -> Result<u64, BadFrame> {
        self.array().map(u64::from_le_bytes)
    }

    fn optional_i32(&mut self) -> Result<Option<i32>, BadFrame> {
        let (some, value) = (self.u8()? != 0, self.i32()?);
        Ok(some.then_some(value))
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadFrame> {
        let length = self.u32()? as usize;
        let (field, rest) = self.0.split_at_checked(length).ok_or(BadFrame("it ends inside a field"))?;
        self.0 = rest;
        Ok(field)
    }

    fn text(&mut self) -> Result<String, BadFrame> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| BadFrame("a sentence is not UTF-8"))
    }

    fn string(&mut self) -> Result<CString, BadFrame> {
        CString::new(self.bytes()?).map_err(|_| BadFrame("a string has a NUL in it"))
    }

    fn strings(&mut self) -> Result<Vec<CString>, BadFrame> {
        let count = self.u32()?;
        (0..count).map(|_| self.string()).collect()
    }

    fn run(&mut self) -> Result<RunId, BadFrame> {
        Ok(RunId::from_parts(self.u64()?, self.u64()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn() -> Spawn {
        Spawn {
            run: RunId::from_parts(1, 2),
            argv: vec![c"echo".into(), c"".into()],
            env: vec![c"A=b".into()],
            dir: c"/tmp".into(),
            dir_or_root: true,
            stdin: Some(vec![0, 1, 2]),
            user: Some(UserIds { uid: 1, gid: 2, groups: vec![2, 3] }),
            timeout: Some(Duration::from_millis(5)),
            kill_grace: Duration::from_secs(10),
        }
    }

    #[test]
    fn commands_survive_the_wire() {
        let bare = Spawn { stdin: None, user: None, timeout: None, ..spawn() };
        let commands = [
            Command::Spawn(Box::new(spawn())),
            Command::Spawn(Box::new(bare)),
            Command::Stop(RunId::from_parts(3, 4), Stop::Politely),
            Command::ExtendDeadline(u64::MAX),
        ];
        let mut bytes = Vec::new();
        commands.iter().for_each(|command| command.encode(&mut bytes));
        let mut rest = &bytes[..];
        for command in commands {
            let (body, used) = next_frame(rest).unwrap().unwrap();
            assert!(Command::decode(body).unwrap() == command);
            rest = &rest[used..];
        }
        assert!(next_frame(rest).unwrap().is_none());
    }

    #[test]
    fn every_ending_survives_the_wire() {
        for how in ENDINGS {
            let (run, output) = (RunId::from_parts(9, 9), b"out".to_vec());
            let reason = Some("because".to_owned());
            let exit = Exit { how, exit_code: Some(-1), signal: None, reason, output, output_truncated: true };
            let report = Report::Ended { run, exit };
            let mut bytes = Vec::new();
            report.encode(&mut bytes);
            assert_eq!(Report::decode(next_frame(&bytes).unwrap().unwrap().0).unwrap(), report);
        }
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error_never_a_crash() {
        let mut bytes = Vec::new();
        Command::Spawn(Box::new(spawn())).encode(&mut bytes);
        for end in 4..bytes.len() {
            assert!(Command::decode(&bytes[4..end]).is_err());
            assert!(next_frame(&bytes[..end]).unwrap().is_none());
        }
        assert!(next_frame(&[255; 8]).is_err());
        assert!(Command::decode(&[1, 255, 255, 255, 255]).is_err());
    }
}
