//! The address of a database: `mysql://user:password@host:port/database?ssl-mode=...&ssl-ca=...`.

use mysql_async::{DriverError, Error, IoError, Opts, OptsBuilder};
use percent_encoding::percent_decode_str;

use crate::mysql::client::error::OpenError;
use crate::mysql::client::tls::{self, Mode};

/// Where a URL points to, and how its connections are encrypted.
#[derive(Debug)]
pub(in crate::mysql) struct Address {
    /// With TLS, unless the mode is [`Mode::Disabled`].
    pub opts: Opts,
    /// Without TLS, where that will do for a server that offers none.
    pub plain: Option<Opts>,
    /// Without the password.
    pub place: String,
}

impl Address {
    pub fn of(url: &str) -> Result<Self, OpenError> {
        let bad = |why: &str| OpenError::BadUrl(why.to_owned());
        if !url.starts_with("mysql://") {
            return Err(bad("it does not begin with mysql://"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let opts = Opts::from_url(base).map_err(|error| OpenError::BadUrl(error.to_string()))?;
        let Some(database) = opts.db_name().map(str::to_owned) else {
            return Err(bad("it names no database"));
        };
        let Parameters { mode, ca, socket } = Parameters::of(query)?;
        let place = match &socket {
            Some(socket) => format!("{socket}/{database}"),
            None => format!("{}:{}/{database}", opts.ip_or_hostname(), opts.tcp_port()),
        };
        let builder = OptsBuilder::from_opts(opts).client_found_rows(true).tcp_nodelay(true).stmt_cache_size(128);
        let builder = builder.prefer_socket(false).socket(socket.clone());
        let plain = (mode <= Mode::Preferred).then(|| builder.clone().into());
        let ssl = match (socket, mode) {
            (_, Mode::Disabled) | (Some(_), Mode::Preferred) => None,
            (Some(_), _) => return Err(bad("a socket of this machine goes without ssl-mode")),
            (None, _) => {
                let unfit = |reason| OpenError::Unfit { place: place.clone(), reason };
                Some(tls::options(mode, ca.as_deref()).map_err(unfit)?)
            }
        };
        Ok(Self { opts: builder.ssl_opts(ssl).into(), plain, place })
    }

    /// Why no connection came about: what passes, and what will not pass by itself.
    pub fn unreachable(&self, error: &Error) -> OpenError {
        match error {
            Error::Server(server) if [1044, 1045, 1049, 1142, 1227, 3159].contains(&server.code) => {
                self.unfit(server.message.clone())
            }
            Error::Driver(DriverError::NoClientSslFlagFromServer) => self.unfit(
                "it offers no TLS, and ssl-mode asks for it: give the server a certificate, or write \
                 ssl-mode=preferred or ssl-mode=disabled",
            ),
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
            assert_eq!((address.opts.ssl_opts().is_some(), address.plain.is_some()), (tls, plain), "{query}");
        }
        assert!(address("?socket=%2Frun%2Fmysqld.sock").opts.ssl_opts().is_none());
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
