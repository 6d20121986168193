//! The port of the API: may it be taken, and who has it?

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::finding::Finding;

const PART: &str = "port";

/// A process that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listener {
    pid: u32,
    name: String,
}

/// Takes the port for a moment. `holder` is the process that serves the embedded database now, as far as one is known.
pub(super) fn look(bind: SocketAddr, is_served: Option<bool>) -> Finding {
    let taken = TcpListener::bind(bind).map(drop).map_err(|error| error.kind());
    let listener = match taken {
        Err(ErrorKind::AddrInUse) => listener_at(bind.port()),
        _ => None,
    };
    judge(bind, taken, listener, is_served)
}

fn judge(
    bind: SocketAddr,
    taken: Result<(), ErrorKind>,
    listener: Option<Listener>,
    is_served: Option<bool>,
) -> Finding {
    let elsewhere = "choose another address with http.bind or --bind.";
    let error = match taken {
        Ok(()) => return Finding::ok(PART, format!("{bind} is free")),
        Err(error) => error,
    };
    match (error, listener, is_served) {
        (ErrorKind::AddrInUse, Some(Listener { name, pid }), Some(true) | None) if name.starts_with("carillon") => {
            Finding::ok(PART, format!("a running Carillon (process {pid}) listens at {bind}"))
        }
        (ErrorKind::AddrInUse, Some(Listener { name, pid }), _) => {
            let says = format!("{name} (process {pid}) listens at {bind} already");
            Finding::error(PART, says, format!("End process {pid}, or {elsewhere}"))
        }
        (ErrorKind::AddrInUse, None, Some(true)) => Finding::ok(PART, format!("the running server listens at {bind}")),
        (ErrorKind::AddrInUse, None, _) => {
            let says = format!("a process of another user listens at {bind}");
            Finding::warning(
                PART,
                says,
                format!("If `ss -ltnp` as root shows another program than this server, {elsewhere}"),
            )
        }
        (ErrorKind::PermissionDenied, ..) => {
            let says = format!("{bind} needs a privilege, as all ports below 1024 do");
            Finding::error(
                PART,
                says,
                format!("Set AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit, or {elsewhere}"),
            )
        }
        (ErrorKind::AddrNotAvailable, ..) => Finding::error(
            PART,
            format!("this machine has no address {}", bind.ip()),
            "Correct http.bind (`ip address` shows all).",
        ),
        (other, ..) => Finding::error(PART, format!("{bind} cannot be taken: {other}"), "Correct http.bind."),
    }
}

/// The process that listens at a port, if this user may know it.
fn listener_at(port: u16) -> Option<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| std::fs::read_to_string(file).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|table| sockets_at(table, port)).collect();
    let numbers =
        std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.into_iter().find_map(|pid: u32| {
        let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let holds = open.any(|entry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|to| sockets.iter().any(|socket| to.as_os_str() == socket.as_str()))
        });
        let name = || std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
        holds.then(|| Listener { pid, name: name() })
    })
}

/// The sockets that listen at a port, each such as `socket:[123]`, in the text of `/proc/net/tcp`.
fn sockets_at(table: &str, port: u16) -> Vec<String> {
    const LISTENS: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let at = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        (at == port && *state == LISTENS).then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn a_taken_port_is_good_if_it_is_our_own() {
        let bind: SocketAddr = "127.0.0.1:7650".parse().unwrap();
        let by = |name: &str| Some(Listener { pid: 7, name: name.into() });
        let used = Err(ErrorKind::AddrInUse);
        for (taken, listener, is_served, level, word) in [
            (Ok(()), None, None, Level::Ok, "free"),
            (used, by("carillon"), Some(true), Level::Ok, "process 7"),
            (used, by("carillon"), None, Level::Ok, "process 7"),
            // The static binary under the name that it is packed with, as far as the kernel keeps it.
            (used, by("carillon_0.1.0_"), None, Level::Ok, "process 7"),
            (used, by("carillon"), Some(false), Level::Error, "process 7"),
            (used, by("nginx"), Some(true), Level::Error, "nginx"),
            (used, None, Some(true), Level::Ok, "running"),
            (used, None, None, Level::Warning, "another user"),
            (Err(ErrorKind::PermissionDenied), None, None, Level::Error, "privilege"),
            (Err(ErrorKind::AddrNotAvailable), None, None, Level::Error, "no address 127.0.0.1"),
            (Err(ErrorKind::Other), None, None, Level::Error, "cannot be taken"),
        ] {
            let finding = judge(bind, taken, listener, is_served);
            assert!(finding.level == level && finding.says.contains(word), "{finding:?}");
        }
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1DE2 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n   \
                     1: 0100007F:1DE2 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n";
        assert_eq!(sockets_at(table, 7_650), ["socket:[4711]"]);
        assert_eq!(sockets_at(table, 7_651), Vec::<String>::new());
    }

    #[test]
    fn this_process_is_known_by_its_port() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listener_at(open.local_addr().unwrap().port()).unwrap();
        assert_eq!(found.pid, std::process::id());
    }
}
