//! The address of a database: `mysql://user:password@host:port,host2:port/database?ssl-mode=...&ssl-ca=...`.

use mysql_async::{DriverError, Error, IoError, Opts, OptsBuilder};
use percent_encoding::percent_decode_str;

use crate::mysql::client::error::{OpenError, REFUSES_USER};
use crate::mysql::client::tls::{self, Mode};
use crate::mysql::client::writer::NoWriter;

/// Where a URL points to, and how its connections are encrypted.
#[derive(Debug)]
pub(in crate::mysql) struct Address {
    /// The servers, in the order in which they are named; at least one.
    pub hosts: Vec<Host>,
    /// All of them and the database, without the password.
    pub place: String,
}

/// One server of an address.
#[derive(Debug, Clone)]
pub(in crate::mysql) struct Host {
    /// With TLS, unless the mode is [`Mode::Disabled`].
    pub opts: Opts,
    /// Without TLS, where that will do for a server that offers none.
    pub plain: Option<Opts>,
    /// Host and port, or the socket.
    pub place: String,
}

impl Address {
    pub fn of(url: &str) -> Result<Self, OpenError> {
        let bad = |why: &str| OpenError::BadUrl(why.to_owned());
        let Some(rest) = url.strip_prefix("mysql://") else { return Err(bad("it does not begin with mysql://")) };
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = Parameters::of(query)?;
        let (authority, database) = base.split_once('/').unwrap_or((base, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let at = if user.is_empty() { "" } else { "@" };
        let hosts: Vec<&str> = hosts.split(',').collect();
        if hosts.len() > 1 && parameters.socket.is_some() {
            return Err(bad("a socket of this machine is one server, and it names several"));
        }
        if hosts.len() > 1 && hosts.iter().any(|host| host.trim().is_empty()) {
            return Err(bad("it names no host before or behind a comma"));
        }
        let url_of = |host: &&str| format!("mysql://{user}{at}{}/{database}", host.trim());
        let hosts: Vec<Host> =
            hosts.iter().map(|host| Host::of(&url_of(host), &parameters)).collect::<Result<_, _>>()?;
        let places: Vec<&str> = hosts.iter().map(|host| host.place.as_str()).collect();
        let place =
            format!("{}/{}", places.join(","), hosts.first().and_then(|host| host.opts.db_name()).unwrap_or_default());
        Ok(Self { hosts, place })
    }

    /// Why no connection came about: what passes, and what will not pass by itself.
    pub fn unreachable(&self, error: &Error) -> OpenError {
        match error {
            Error::Server(server) if REFUSES_USER.contains(&server.code) => self.unfit(server.message.clone()),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => self.unfit(
                "it offers no TLS, and ssl-mode asks for it: give the server a certificate, or write \
                 ssl-mode=preferred or ssl-mode=disabled",
            ),
            Error::Other(problem) if self.hosts.len() == 1 && problem.is::<NoWriter>() => {
                self.unfit(problem.to_string())
            }
            Error::Io(IoError::Tls(problem)) => self.unfit(tls::refused(problem)),
            Error::Io(IoError::Io(problem)) if problem.kind() == std::io::ErrorKind::InvalidData => {
                self.unfit(tls::refused(problem))
            }
            _ => OpenError::Unreachable { place: self.place.clone(), reason: error.to_string() },
        }
    }

    pub fn unfit(&self, reason: impl Into<String>) -> OpenError {
        OpenError::Unfit { place: self.place.clone(), reason: reason.into() }
    }
}

impl Host {
    fn of(base: &str, parameters: &Parameters) -> Result<Self, OpenError> {
        let bad = |why: &str| OpenError::BadUrl(why.to_owned());
        let opts = Opts::from_url(base).map_err(|error| OpenError::BadUrl(error.to_string()))?;
        if opts.db_name().is_none() {
            return Err(bad("it names no database"));
        }
        let Parameters { mode, ca, socket } = parameters;
        let place = match socket {
            Some(socket) => socket.clone(),
            None => format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()),
        };
        let builder = OptsBuilder::from_opts(opts).client_found_rows(true).tcp_nodelay(true).stmt_cache_size(128);
        let builder = builder.prefer_socket(false).socket(socket.clone());
        let plain = (*mode <= Mode::Preferred).then(|| builder.clone().into());
        let ssl = match (socket, mode) {
            (_, Mode::Disabled) | (Some(_), Mode::Preferred) => None,
            (Some(_), _) => return Err(bad("a socket of this machine goes without ssl-mode")),
            (None, _) => {
                let unfit = |reason| OpenError::Unfit { place: place.clone(), reason };
                Some(tls::options(*mode, ca.as_deref()).map_err(unfit)?)
            }
        };
        Ok(Self { opts: builder.ssl_opts(ssl).into(), plain, place })
    }
}

/// The part after the question mark.
#[derive(Default)]
struct Parameters {
    mode: Mode,
    ca: Option<String>,
    socket: Option<String>,
}

impl Parameters {
    fn of(query: &str) -> Result<Self, OpenError> {
        let mut this = Self::default();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "ssl-mode" => {
                    let unknown = || format!("ssl-mode is one of {}, not {}", Mode::names(), shown(&value));
                    this.mode = Mode::named(&value).ok_or_else(unknown).map_err(OpenError::BadUrl)?;
                }
                "ssl-ca" => this.ca = Some(value),
                "socket" => this.socket = Some(value),
                name => {
                    let known = "ssl-mode, ssl-ca and socket are known";
                    return Err(OpenError::BadUrl(format!("it has a parameter {}; {known}", shown(name))));
                }
            }
        }
        if this.ca.is_some() != (this.mode >= Mode::VerifyCa) {
            let why = "ssl-ca=FILE and ssl-mode=verify_ca or verify_identity are written together or not at all";
            return Err(OpenError::BadUrl(why.to_owned()));
        }
        Ok(this)
    }
}

/// A word of the user's; it may be the rest of a password in which a question mark was not written as %3F.
fn shown(word: &str) -> &str {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if plain && word.len() <= 32 { word } else { "that is none (a ? in a password is written %3F)" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        let said = Address::of(url).map(|address| address.place).unwrap_err().to_string();
        assert!(!said.contains("secret"), "{said}");
        said
    }

    #[test]
    fn an_address_names_a_database_and_shows_no_password() {
        let address = Address::of("mysql://u:secret@db.example:3307/carillon").unwrap();
        assert_eq!(address.place, "db.example:3307/carillon");
        for bad in ["carillon.db", "sqlite://c.db", "mysql://u:secret@h:1", "mysql://u:secret@h:notaport/c"] {
            refused(bad);
        }
        refused("mysql://u:what?secret@h/c");
        refused("mysql://u:wh@h/c?/secret@h/c");
    }

    #[test]
    fn several_hosts_are_one_address() {
        let address = Address::of("mysql://u:secret@a:3307, b,[::1]:3308/carillon?ssl-mode=required").unwrap();
        let places: Vec<&str> = address.hosts.iter().map(|host| host.place.as_str()).collect();
        assert_eq!(places, ["a:3307", "b:3306", "[::1]:3308"]);
        assert_eq!(address.place, "a:3307,b:3306,[::1]:3308/carillon");
        for host in &address.hosts {
            assert_eq!(
                (host.opts.user(), host.opts.pass(), host.opts.db_name()),
                (Some("u"), Some("secret"), Some("carillon"))
            );
            assert!(host.opts.ssl_opts().is_some() && host.plain.is_none());
        }
        assert!(refused("mysql://u:secret@a,,b/c").contains("before or behind a comma"));
        assert!(refused("mysql://u:secret@a,/c").contains("before or behind a comma"));
        assert!(refused("mysql://u:secret@a,b/c?socket=/s").contains("one server"));
        assert!(refused("mysql://u:secret@a,b:port/c").contains("port"));
    }

    #[test]
    fn a_parameter_that_is_not_known_is_refused_by_name() {
        assert!(refused("mysql://u:secret@h/c?sslmode=required").contains("a parameter sslmode;"));
        assert!(refused("mysql://u:secret@h/c?ssl-mode=required&pool_min=1").contains("a parameter pool_min;"));
    }

    #[test]
    fn every_mode_is_read_in_upper_and_lower_case() {
        let address = |query: &str| Address::of(&format!("mysql://u:secret@h/c{query}")).unwrap();
        for (query, tls, plain) in [
            ("", true, true),
            ("?ssl-mode=DISABLED", false, true),
            ("?ssl-mode=preferred", true, true),
            ("?ssl-mode=Required", true, false),
        ] {
            let address = address(query);
            let host = &address.hosts[0];
            assert_eq!((host.opts.ssl_opts().is_some(), host.plain.is_some()), (tls, plain), "{query}");
        }
        assert!(address("?socket=%2Frun%2Fmysqld.sock").hosts[0].opts.ssl_opts().is_none());
        let said = refused("mysql://u:secret@h/c?ssl-mode=require");
        assert!(said.contains("verify_identity, not require"), "{said}");
    }

    #[test]
    fn an_authority_goes_with_a_mode_that_asks_it() {
        for query in ["ssl-ca=/ca.pem", "ssl-mode=required&ssl-ca=/ca.pem", "ssl-mode=VERIFY_CA"] {
            assert!(refused(&format!("mysql://u:secret@h/c?{query}")).contains("written together"), "{query}");
        }
        let said = refused("mysql://u:secret@h/c?ssl-mode=verify_ca&ssl-ca=%2Fno%2Fca.pem");
        assert!(said.contains("/no/ca.pem") && said.contains("cannot be read"), "{said}");
        assert!(refused("mysql://u:secret@h/c?ssl-mode=required&socket=/s").contains("socket"));
    }
}
