//! The frames between the server and a host process, on two pipes.
//!
//! A message of the host fits into one write that the kernel does not split ([`libc::PIPE_BUF`]). So neither its threads
//! nor its signal handler need a lock. The frames are written by hand because the handler may not allocate.

use crate::dylib::abi_input::AbiInput;
use carillon_keeper::protocol::fields::{BadFrame, Put, Take};

/// The most output in one frame, in bytes.
pub(crate) const CHUNK_BYTES: usize = 4_000;
/// Bytes for a plugin's message, its NUL included.
pub(crate) const MESSAGE_CAPACITY: usize = 4_000;
/// The overhead of a frame: its length, its tag, a key, a few numbers.
const MOST_AROUND: usize = 4 + 1 + 8 + 4 + 8;
/// Of a [`HostMessage::Begun`].
const BEGUN_BYTES: usize = 4 + 1 + 8;
const _: () = assert!(CHUNK_BYTES + MOST_AROUND <= libc::PIPE_BUF);
/// A host says in one write that a run is over and that the next one has begun.
const _: () = assert!(MESSAGE_CAPACITY + MOST_AROUND + BEGUN_BYTES <= libc::PIPE_BUF);

/// Exit code of a host that cannot speak with the server any more, because the plugin has meddled with its handles.
pub(crate) const UNHEARD: u8 = 113;

/// The largest frame that a host accepts, in bytes: the facts of one run. Params have at most 1 MiB,
/// and may stand there twice, as `env` too, and escaped.
pub(crate) const MAX_FRAME_BYTES: usize = 16 << 20;

/// How a run of a plugin came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// `run` returned.
    Returned {
        succeeded: bool,
        /// 0 if and only if it succeeded.
        exit_code: u8,
        message: String,
        /// Threads that this run certainly started and that still exist.
        threads_left: u32,
    },
    /// `run` was not called: the node's lease was over.
    LeaseOver,
}

impl Report {
    /// Of a run that failed before the plugin had a say.
    pub(crate) fn failed(message: String) -> Self {
        Self::Returned { succeeded: false, exit_code: 1, message, threads_left: 0 }
    }

    /// The same report, with the number of threads that the run left behind.
    pub(crate) fn leaving(mut self, threads: usize) -> Self {
        if let Self::Returned { threads_left, .. } = &mut self {
            *threads_left = u32::try_from(threads).unwrap_or(u32::MAX);
        }
        self
    }

    /// How many threads it left behind.
    pub(crate) fn threads_left(&self) -> u32 {
        match self {
            Self::Returned { threads_left, .. } => *threads_left,
            Self::LeaseOver => 0,
        }
    }
}

/// From the server to a host. Runs are known by a key, which is never used twice in a host.
pub(crate) enum HostCommand {
    /// Call the plugin, if the lease, which ends at `lease_ms` of the boot clock, still holds.
    Run { key: u64, lease_ms: u64, facts: AbiInput },
    /// Tell a run that it is to stop. May be said again.
    Cancel(u64),
}

/// From a host to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostMessage {
    /// The plugin is loaded.
    Ready,
    /// The plugin cannot be loaded, and why; the host ends.
    Refused(String),
    /// The plugin is about to be called for this run.
    Begun(u64),
    /// Output of a run.
    Output(u64, Vec<u8>),
    /// A run is over.
    Ended(u64, Report),
    /// The host is about to end in the midst of this run, or of none that it knows of (0).
    Dying(u64),
    /// The host is about to end because it holds too much memory.
    TooMuchMemory,
    /// No run goes on, and yet the plugin has this many threads.
    ThreadsLeft(u32),
}

impl HostCommand {
    /// The frame of a [`HostCommand::Run`]; the error is a sentence.
    pub(crate) fn run_frame(key: u64, lease_ms: u64, facts: &AbiInput) -> Result<Vec<u8>, String> {
        let mut frame = Vec::with_capacity(512);
        facts.put(Put::frame(&mut frame, 1).u64(key).u64(lease_ms)).done();
        match frame.len() <= MAX_FRAME_BYTES {
            true => Ok(frame),
            false => Err(format!("its params are longer than {MAX_FRAME_BYTES} bytes, written as a plugin gets them")),
        }
    }

    /// The frame of a [`HostCommand::Cancel`].
    pub(crate) fn cancel_frame(key: u64) -> Vec<u8> {
        let mut frame = Vec::with_capacity(16);
        Put::frame(&mut frame, 2).u64(key).done();
        frame
    }

    /// Reads a frame's body.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
        let mut body = Take(body);
        match body.u8()? {
            1 => Ok(Self::Run { key: body.u64()?, lease_ms: body.u64()?, facts: AbiInput::take(&mut body)? }),
            2 => Ok(Self::Cancel(body.u64()?)),
            _ => Err(BadFrame("unknown command")),
        }
    }
}

/// Length of the frame of a [`HostMessage::Dying`].
pub(crate) const DYING_BYTES: usize = 13;

/// The frame of a [`HostMessage::Dying`], made without memory: for the handler of a signal.
pub(crate) fn dying_frame(key: u64) -> [u8; DYING_BYTES] {
    let mut frame = [0; DYING_BYTES];
    frame[..4].copy_from_slice(&9_u32.to_le_bytes());
    frame[4] = DYING;
    frame[5..].copy_from_slice(&key.to_le_bytes());
    frame
}

const DYING: u8 = 6;

impl HostMessage {
    /// The word as a frame of at most [`libc::PIPE_BUF`] bytes. Output must not be longer than [`CHUNK_BYTES`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(64);
        self.put(&mut frame);
        frame
    }

    /// Adds the word to others. What is to be written at once must not be longer than [`libc::PIPE_BUF`] in all.
    pub(crate) fn put(&self, frame: &mut Vec<u8>) {
        match self {
            Self::Ready => Put::frame(frame, 1).done(),
            Self::Refused(reason) => Put::frame(frame, 2).bytes(cut(reason).as_bytes()).done(),
            Self::Begun(key) => Put::frame(frame, 3).u64(*key).done(),
            Self::Output(key, bytes) => Put::frame(frame, 4).u64(*key).bytes(bytes).done(),
            Self::Ended(key, Report::LeaseOver) => Put::frame(frame, 5).u64(*key).u8(2).done(),
            Self::Ended(key, Report::Returned { succeeded, exit_code, message, threads_left }) => {
                let put = Put::frame(frame, 5).u64(*key).u8(u8::from(*succeeded)).u8(*exit_code);
                put.u32(*threads_left).bytes(cut(message).as_bytes()).done();
            }
            Self::Dying(key) => Put::frame(frame, DYING).u64(*key).done(),
            Self::TooMuchMemory => Put::frame(frame, 7).done(),
            Self::ThreadsLeft(count) => Put::frame(frame, 8).u32(*count).done(),
        }
    }

    /// The frame of a [`HostMessage::Output`] of borrowed bytes.
    pub(crate) fn output_frame(key: u64, bytes: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(bytes.len() + MOST_AROUND);
        Put::frame(&mut frame, 4).u64(key).bytes(bytes).done();
        frame
    }

    /// Reads a frame's body.
    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadFrame> {
        let mut body = Take(body);
        match body.u8()? {
            1 => Ok(Self::Ready),
            2 => Ok(Self::Refused(body.text()?)),
            3 => Ok(Self::Begun(body.u64()?)),
            4 => Ok(Self::Output(body.u64()?, body.bytes()?.to_vec())),
            5 => {
                let (key, how) = (body.u64()?, body.u8()?);
                if how == 2 {
                    return Ok(Self::Ended(key, Report::LeaseOver));
                }
                let (exit_code, threads_left, message) = (body.u8()?, body.u32()?, body.text()?);
                Ok(Self::Ended(key, Report::Returned { succeeded: how == 1, exit_code, message, threads_left }))
            }
            DYING => Ok(Self::Dying(body.u64()?)),
            7 => Ok(Self::TooMuchMemory),
            8 => Ok(Self::ThreadsLeft(body.u32()?)),
            _ => Err(BadFrame("unknown message")),
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_CAPACITY)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_keeper::protocol::fields::next_frame;

    fn words() -> Vec<HostMessage> {
        let returned = |succeeded, exit_code, message: &str| {
            let message = message.to_owned();
            HostMessage::Ended(3, Report::Returned { succeeded, exit_code, message, threads_left: 2 })
        };
        vec![
            HostMessage::Ready,
            HostMessage::Refused("because".into()),
            HostMessage::Begun(1),
            HostMessage::Output(2, vec![0; CHUNK_BYTES]),
            returned(true, 0, ""),
            returned(false, 7, &"x".repeat(MESSAGE_CAPACITY)),
            HostMessage::Ended(4, Report::LeaseOver),
            HostMessage::Dying(u64::MAX),
            HostMessage::TooMuchMemory,
            HostMessage::ThreadsLeft(5),
        ]
    }

    #[test]
    fn words_survive_the_pipe_and_are_written_at_once() {
        for word in words() {
            let frame = word.encode();
            assert!(frame.len() <= libc::PIPE_BUF, "{word:?}");
            let (body, used) = next_frame(&frame, MAX_FRAME_BYTES).unwrap().unwrap();
            assert_eq!((HostMessage::decode(body).unwrap(), used), (word, frame.len()));
        }
        assert_eq!(HostMessage::Dying(77).encode(), dying_frame(77));
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_is_cut_is_an_error() {
        let frame = HostMessage::Refused("ä".repeat(MESSAGE_CAPACITY)).encode();
        assert!(frame.len() <= libc::PIPE_BUF);
        for word in
            words().into_iter().filter(|word| *word != HostMessage::Ready && *word != HostMessage::TooMuchMemory)
        {
            let frame = word.encode();
            for end in [4, 5, frame.len() - 1] {
                assert!(HostMessage::decode(&frame[4..end]).is_err(), "{word:?} cut at {end}");
                assert!(next_frame(&frame[..end], MAX_FRAME_BYTES).unwrap().is_none());
            }
        }
        assert!(next_frame(&[255; 8], MAX_FRAME_BYTES).is_err());
    }
}
