//! Packets of MySQL's protocol, without TLS and without compression: three bytes of length, a number, the payload.

use tokio::io::{AsyncRead, AsyncReadExt, BufReader};

/// Bytes before the payload.
const HEADER: usize = 4;

/// Reads the next packet into `packet`, header and all; `false` at the end of the stream.
pub(super) async fn read<R: AsyncRead + Unpin>(from: &mut BufReader<R>, packet: &mut Vec<u8>) -> bool {
    packet.resize(HEADER, 0);
    if from.read_exact(packet).await.is_err() {
        return false;
    }
    let length = usize::from(packet[0]) | usize::from(packet[1]) << 8 | usize::from(packet[2]) << 16;
    packet.resize(HEADER + length, 0);
    from.read_exact(&mut packet[HEADER..]).await.is_ok()
}

/// A request of a node to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    /// Run this text.
    Query(String),
    /// Prepare this text.
    Prepare(String),
    /// Run the prepared statement of this number.
    Execute(u32),
    /// Anything else, or no command at all.
    Other,
}

impl Question {
    /// Reads a packet of a node. A command begins a conversation, so its number is 0.
    pub fn of(packet: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match (packet.get(3), packet.get(HEADER), packet.get(HEADER + 1..)) {
            (Some(0), Some(0x03), Some(sql)) => Question::Query(text(sql)),
            (Some(0), Some(0x16), Some(sql)) => Question::Prepare(text(sql)),
            (Some(0), Some(0x17), Some([a, b, c, d, ..])) => Question::Execute(u32::from_le_bytes([*a, *b, *c, *d])),
            _ => Question::Other,
        }
    }
}

/// How the server answers, by the first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Ok,
    /// Rows follow.
    Rows,
    /// It is refused, with this number.
    Error(u16),
    /// The server hung up without an answer.
    HungUp,
}

impl Answer {
    /// Reads the first packet of an answer.
    pub(super) fn of(packet: &[u8]) -> Self {
        match packet.get(HEADER..) {
            Some([0xff, low, high, ..]) => Answer::Error(u16::from_le_bytes([*low, *high])),
            Some([0x00 | 0xfe, ..]) | None => Answer::Ok,
            Some(_) => Answer::Rows,
        }
    }

    /// Whether the server did what it was asked.
    pub fn is_done(&self) -> bool {
        matches!(self, Answer::Ok | Answer::Rows)
    }
}

/// The number of the statement that a server says it has prepared.
pub(super) fn prepared(packet: &[u8]) -> Option<u32> {
    match packet.get(HEADER..) {
        Some([0x00, a, b, c, d, ..]) => Some(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Question, prepared, read};
    use tokio::io::BufReader;

    fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes()[..3].to_vec();
        bytes.push(number);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_command_is_told_from_what_only_looks_like_one() {
        assert_eq!(Question::of(&packet(0, b"\x03COMMIT")), Question::Query("COMMIT".into()));
        assert_eq!(Question::of(&packet(0, b"\x16UPDATE job")), Question::Prepare("UPDATE job".into()));
        assert_eq!(Question::of(&packet(0, b"\x17\x02\x01\x00\x00\x00")), Question::Execute(0x0102));
        for other in [packet(1, b"\x03COMMIT"), packet(0, b"\x0e"), packet(0, b""), packet(0, b"\x17\x01")] {
            assert_eq!(Question::of(&other), Question::Other);
        }
    }

    #[test]
    fn answers_are_read_by_their_first_packet() {
        assert_eq!(Answer::of(&packet(1, b"\x00\x00\x00")), Answer::Ok);
        assert_eq!(Answer::of(&packet(1, b"\xff\x10\x04#08004")), Answer::Error(1040));
        assert_eq!(Answer::of(&packet(1, b"\x05")), Answer::Rows);
        assert_eq!(prepared(&packet(1, b"\x00\x07\x00\x00\x00")), Some(7));
        assert_eq!(prepared(&packet(1, b"\xff\x07\x00\x00\x00")), None);
    }

    #[tokio::test]
    async fn packets_are_cut_where_their_length_says() {
        let stream = [packet(0, b"\x03COMMIT"), packet(1, b"")].concat();
        let (mut from, mut one) = (BufReader::new(&stream[..]), Vec::new());
        assert!(read(&mut from, &mut one).await);
        assert_eq!(one, packet(0, b"\x03COMMIT"));
        assert!(read(&mut from, &mut one).await);
        assert_eq!(one, packet(1, b""));
        assert!(!read(&mut from, &mut one).await, "the stream is over");
        let (mut torn, mut one) = (BufReader::new(&stream[..6]), Vec::new());
        assert!(!read(&mut torn, &mut one).await, "half a packet is none");
    }
}
