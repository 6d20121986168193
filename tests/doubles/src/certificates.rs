//! Certificates for tests, made anew each time: an authority, and what it issues.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

/// An authority that nobody else trusts.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its private key, both in PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub cert: String,
    /// The private key.
    pub key: String,
    /// The certificate in DER, of which a fingerprint is made.
    pub der: Vec<u8>,
}

impl Authority {
    /// An authority of its own.
    pub fn new(name: &str) -> Self {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let pem = params.self_signed(&key).expect("an authority signs itself").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Its certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The certificate of a server on this machine.
    pub fn server(&self) -> Issued {
        self.issue(named("server", &["localhost", "127.0.0.1"]), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// One that ends so long from now.
    pub fn server_for(&self, rest: Duration) -> Issued {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let mut params = named("server", &["localhost", "127.0.0.1"]);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970 + rest;
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// One that expired in February 2020.
    pub fn expired_server(&self) -> Issued {
        let mut params = named("server", &["localhost", "127.0.0.1"]);
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 1));
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The certificate of a client.
    pub fn client(&self, name: &str) -> Issued {
        self.issue(named(name, &[]), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Issued {
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key can be made");
        let cert = params.signed_by(&key, &self.issuer).expect("an authority signs");
        Issued { cert: cert.pem(), key: key.serialize_pem(), der: cert.der().to_vec() }
    }
}

fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).expect("names of hosts");
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params
}
