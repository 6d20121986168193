//! The frames between the node and the keeper: a length, a tag and a body.
//!
//! Both ends are the same binary, so there is no version to negotiate. A frame is `u32` length of what follows, `u8` tag, fields in little endian; bytes are preceded by their
//! `u32` length.

use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::measured::Usage;
use carillon_domain::run::Outcome;

use crate::exit::{Exit, Stop};
use crate::protocol::fields::{BadFrame, Put, Take};
use crate::spawn_request::{Spawn, UserIds};

/// The largest frame either side accepts, in bytes. A job's definition has at most 1 MiB, and an exit
/// carries at most 64 KiB of output.
pub(crate) const MAX_FRAME_BYTES: usize = 4 << 20;

/// Node to keeper.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Start a child.
    Spawn(Box<Spawn>),
    /// End a child. An unknown run is ignored, because its exit is on the way.
    Stop(RunId, Stop),
    /// The lease holds until this moment of CLOCK_BOOTTIME, in milliseconds.
    ExtendDeadline(u64),
}

/// Keeper to node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The keeper serves; below this cgroup directory are all its children (empty: no cgroups).
    Ready { cgroup: Vec<u8> },
    /// The run lives in the process group `pid`.
    Started { run: RunId, pid: i32 },
    /// Some output, as it came. Best effort.
    Chunk { run: RunId, bytes: Vec<u8> },
    /// The run ended, and none of its processes is left.
    Ended { run: RunId, exit: Exit },
    /// Something for the node's log.
    Note(String),
}

impl Command {
    /// Appends the command to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Spawn(spawn) => encode_spawn(spawn, out),
            Self::Stop(run, how) => Put::frame(out, 2).run(*run).u8(*how as u8).done(),
            Self::ExtendDeadline(boottime_ms) => Put::frame(out, 3).u64(*boottime_ms).done(),
        }
    }

    /// Reads a frame's body.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
        let mut body = Take(body);
        match body.u8()? {
            1 => Ok(Self::Spawn(Box::new(decode_spawn(&mut body)?))),
            2 => Ok(Self::Stop(body.run()?, one_of(&STOPS, body.u8()?)?)),
            3 => Ok(Self::ExtendDeadline(body.u64()?)),
            _ => Err(BadFrame("unknown command")),
        }
    }
}

impl Report {
    /// Appends the report to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready { cgroup } => Put::frame(out, 1).bytes(cgroup).done(),
            Self::Started { run, pid } => Put::frame(out, 2).run(*run).i32(*pid).done(),
            Self::Chunk { run, bytes } => Self::encode_chunk(*run, bytes, out),
            Self::Ended { run, exit } => Put::frame(out, 4)
                .run(*run)
                .u8(exit.how as u8)
                .optional_i32(exit.exit_code)
                .optional_i32(exit.signal)
                .u8(u8::from(exit.output_truncated))
                .bytes(exit.reason.as_deref().unwrap_or_default().as_bytes())
                .bytes(&exit.output)
                .optional_u64(exit.usage.cpu_ms)
                .optional_u64(exit.usage.peak_memory_kib)
                .done(),
            Self::Note(text) => Put::frame(out, 5).bytes(text.as_bytes()).done(),
        }
    }

    /// A [`Report::Chunk`] of borrowed bytes.
    pub(crate) fn encode_chunk(run: RunId, bytes: &[u8], out: &mut Vec<u8>) {
        Put::frame(out, 3).run(run).bytes(bytes).done();
    }

    /// Reads a frame's body.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
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
        how: one_of(&Outcome::ALL, body.u8()?)?,
        exit_code: body.optional_i32()?,
        signal: body.optional_i32()?,
        output_truncated: body.u8()? != 0,
        reason: Some(body.text()?).filter(|reason| !reason.is_empty()),
        output: body.bytes()?.to_vec(),
        usage: Usage { cpu_ms: body.optional_u64()?, peak_memory_kib: body.optional_u64()? },
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

const STOPS: [Stop; 2] = [Stop::Politely, Stop::Now];

/// Reads one of `values`, which was written as its place among them.
fn one_of<T: Copy>(values: &[T], code: u8) -> Result<T, BadFrame> {
    values.get(usize::from(code)).copied().ok_or(BadFrame("unknown code of a value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::fields::next_frame;

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
            let (body, used) = next_frame(rest, MAX_FRAME_BYTES).unwrap().unwrap();
            assert!(Command::decode(body).unwrap() == command);
            rest = &rest[used..];
        }
        assert!(next_frame(rest, MAX_FRAME_BYTES).unwrap().is_none());
    }

    #[test]
    fn every_ending_survives_the_wire() {
        for how in Outcome::ALL {
            let (run, output) = (RunId::from_parts(9, 9), b"out".to_vec());
            let reason = Some("because".to_owned());
            let usage = Usage { cpu_ms: Some(u64::MAX), peak_memory_kib: None };
            let exit = Exit { how, exit_code: Some(-1), signal: None, reason, output, output_truncated: true, usage };
            let report = Report::Ended { run, exit };
            let mut bytes = Vec::new();
            report.encode(&mut bytes);
            assert_eq!(Report::decode(next_frame(&bytes, MAX_FRAME_BYTES).unwrap().unwrap().0).unwrap(), report);
        }
    }

    #[test]
    fn a_frame_cut_anywhere_is_an_error_never_a_crash() {
        let mut bytes = Vec::new();
        Command::Spawn(Box::new(spawn())).encode(&mut bytes);
        for end in 4..bytes.len() {
            assert!(Command::decode(&bytes[4..end]).is_err());
            assert!(next_frame(&bytes[..end], MAX_FRAME_BYTES).unwrap().is_none());
        }
        assert!(next_frame(&[255; 8], MAX_FRAME_BYTES).is_err());
        assert!(Command::decode(&[1, 255, 255, 255, 255]).is_err());
    }
}
